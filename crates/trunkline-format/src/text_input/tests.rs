//! Compares what we read with what real servers read.
//!
//! `testdata/input-*.txt` has inputs for every type, with the servers' output, the binary format of
//! the value, or the error. `testdata/values-*.txt` has the bytes that servers store for texts.

use super::*;
use crate::ids::Oid;
use crate::test_catalog::{Catalog, from_hex, unescape};
use crate::test_data::XorShift;
use crate::text_output::{IntervalStyle, TextOptions, TimeZone, Type, write_text};
use jiff::Timestamp;
use jiff::tz::TimeZone as Rules;
use std::sync::Arc;

/// A zone of the time zone database.
pub(crate) struct Zone(Rules);

impl Zone {
    pub(crate) fn new(name: &str) -> Option<Self> {
        Rules::get(name).or_else(|_| Rules::posix(name)).ok().map(Self)
    }
}

impl TimeZone for Zone {
    fn offset_s(&self, unix_s: i64) -> i32 {
        // The library knows the years up to 9999.
        let unix_s = unix_s.min(253_402_207_200);
        Timestamp::from_second(unix_s).map_or(0, |time| self.0.to_offset(time).seconds())
    }

    fn abbreviation(&self, unix_s: i64) -> String {
        let time = Timestamp::from_second(unix_s).unwrap_or_default();
        self.0.to_offset_info(time).abbreviation().to_owned()
    }

    fn abbreviation_s(&self, abbreviation: &str, unix_s: i64) -> Option<i32> {
        let time = Timestamp::from_second(unix_s.clamp(-370_000_000_000, 253_402_207_200)).ok()?;
        let now = self.0.to_offset_info(time);
        if now.abbreviation() == abbreviation {
            return Some(now.offset().seconds());
        }
        let same =
            |change: &jiff::tz::TimeZoneTransition<'_>| change.abbreviation() == abbreviation;
        let before = self.0.preceding(time).take(1000).find(same);
        let found = before.or_else(|| self.0.following(time).take(1000).find(same));
        let first = self.0.to_offset_info(Timestamp::MIN);
        let first = (first.abbreviation() == abbreviation).then(|| first.offset());
        found.map(|change| change.offset()).or(first).map(|offset| offset.seconds())
    }
}

pub(crate) struct Names;

impl InputNames for Names {
    fn time_zone(&self, name: &str) -> Option<Arc<dyn TimeZone>> {
        Zone::new(name).map(|zone| Arc::new(zone) as _)
    }
}

/// A line of the table: the type, the input, and the outcome.
pub(crate) struct Case {
    pub(crate) settings: String,
    pub(crate) oid: Oid,
    pub(crate) name: String,
    pub(crate) typmod: i32,
    pub(crate) input: Vec<u8>,
    /// `=`, or an SQLSTATE.
    pub(crate) code: String,
    /// The output, or the error's message.
    pub(crate) text: String,
    /// The binary format, or the error's detail.
    pub(crate) more: String,
    pub(crate) hint: String,
}

/// A server's table and catalogs.
pub(crate) struct Table {
    pub(crate) major: u32,
    pub(crate) catalog: Catalog,
    pub(crate) now_us: i64,
    pub(crate) cases: Vec<Case>,
}

/// Splits a line at each `|` that has no `\` before it.
pub(crate) fn split(line: &str) -> impl Iterator<Item = &str> {
    let mut escaped = false;
    line.split(move |c| {
        let end = c == '|' && !escaped;
        escaped = c == '\\' && !escaped;
        end
    })
}

impl Table {
    fn parse(major: u32, catalog: &str, text: &str) -> Self {
        let (mut rows, mut cases, mut now_us) = (catalog.to_owned(), Vec::new(), 0);
        for line in text.lines() {
            let fields = split(line).map(|field| String::from_utf8(unescape(field)).unwrap());
            let fields: Vec<String> = fields.collect();
            match &fields[..] {
                [now, micros, _] if now == "now" => now_us = micros.parse().unwrap(),
                [name, row] if name == "catalog" => rows.push_str(&format!("\n{row}")),
                [settings, oid, name, typmod, input, code, text, more, hint, _] => {
                    cases.push(Case {
                        settings: settings.clone(),
                        oid: Oid(oid.parse().unwrap()),
                        name: name.clone(),
                        typmod: typmod.parse().unwrap(),
                        input: input.clone().into_bytes(),
                        code: code.clone(),
                        text: text.clone(),
                        more: more.clone(),
                        hint: hint.clone(),
                    })
                }
                _ => panic!("{line}"),
            }
        }
        let catalog = Catalog::parse(&rows.replace("\n\n", "\n"));
        Self { major, catalog, now_us, cases }
    }

    pub(crate) fn all() -> Vec<Self> {
        let old = include_str!("../../testdata/catalog-15.txt");
        let new = include_str!("../../testdata/catalog-19.txt");
        let table = |major, text| Self::parse(major, if major < 18 { old } else { new }, text);
        vec![
            table(15, include_str!("../../testdata/input-15-scalars.txt")),
            table(18, include_str!("../../testdata/input-18-scalars.txt")),
            table(15, include_str!("../../testdata/input-15-dates.txt")),
            table(18, include_str!("../../testdata/input-18-dates.txt")),
            table(15, include_str!("../../testdata/input-15-intervals.txt")),
            table(18, include_str!("../../testdata/input-18-intervals.txt")),
            table(15, include_str!("../../testdata/input-15-compound.txt")),
            table(18, include_str!("../../testdata/input-18-compound.txt")),
        ]
    }

    /// Runs `check` with the options of a case.
    pub(crate) fn with_options<T>(
        &self,
        case: &Case,
        check: impl FnOnce(&InputOptions<'_>, &TextOptions<'_>) -> T,
    ) -> T {
        let name = if case.settings.contains('/') { &case.settings } else { "UTC" };
        let zone = Zone::new(name).unwrap();
        let mut input = InputOptions::new(self.major, &self.catalog, self.now_us);
        let mut output = TextOptions::new(self.major, &self.catalog);
        (input.names, input.zone, output.zone) = (&Names, &zone, &zone);
        match case.settings.as_str() {
            "dmy" => input.date_order = DateOrder::Dmy,
            "ymd" => input.date_order = DateOrder::Ymd,
            "sql_standard" => {
                input.interval_style = IntervalStyle::SqlStandard;
                output.interval_style = IntervalStyle::SqlStandard;
            }
            _ => {}
        }
        check(&input, &output)
    }
}

/// The outcome of reading, in the form of the table.
fn outcome(table: &Table, case: &Case) -> [String; 4] {
    let ty = Type::resolve(case.oid, &table.catalog).unwrap();
    table.with_options(case, |input, output| {
        let mut value = Vec::new();
        match read_text(&ty, &case.input, case.typmod, input, &mut value) {
            Ok(()) => {
                let mut text = Vec::new();
                let written = write_text(&ty, &value, output, &mut text);
                let text = match written {
                    Ok(()) => String::from_utf8_lossy(&text).into_owned(),
                    Err(error) => format!("unprintable: {error}"),
                };
                ["=".into(), text, String::new(), String::new()]
            }
            Err(error) => {
                assert!(value.is_empty());
                let text = |part: Option<&str>| part.unwrap_or_default().to_owned();
                let message = error.message().to_owned();
                [error.code().to_owned(), message, text(error.detail()), text(error.hint())]
            }
        }
    })
}

/// Before PostgreSQL 16, each number of a date could have a label, which was not documented. Before
/// PostgreSQL 17, an array could not consist of empty arrays.
const UNSUPPORTED: [(u32, &[u8]); 4] =
    [(15, b"y2024m02d29"), (15, b"y1999 m01 d08"), (15, b"{{}}"), (15, b"{{},{}}")];

#[test]
fn texts_are_read_as_real_servers_read_them() {
    let mut wrong = Vec::new();
    for table in Table::all() {
        for case in &table.cases {
            let found = outcome(&table, case);
            let detail = if case.code == "=" { "" } else { &case.more };
            let expected = [case.code.clone(), case.text.clone(), detail.into(), case.hint.clone()];
            let unsupported = UNSUPPORTED.contains(&(table.major, case.input.as_slice()));
            // Version 17 has new messages for malformed arrays, which we use for all versions.
            let array = table.major < 17 && case.name.ends_with("[]") && case.code != "=";
            if found != expected && !unsupported && !(array && found[0] != "=") {
                let input = String::from_utf8_lossy(&case.input);
                let what = (table.major, &case.settings, &case.name);
                wrong.push(format!("{what:?} {input:?}\n  {found:?}\n  {expected:?}"));
            }
        }
    }
    assert!(wrong.is_empty(), "{}\n{} cases", wrong.join("\n"), wrong.len());
}

/// The samples of real servers: for each type, the bytes of values and their text.
fn samples() -> [(u32, Catalog, &'static str); 2] {
    let catalog_15 = Catalog::parse(include_str!("../../testdata/catalog-15.txt"));
    let catalog_19 = Catalog::parse(include_str!("../../testdata/catalog-19.txt"));
    [
        (15, catalog_15, include_str!("../../testdata/values-15.txt")),
        (19, catalog_19, include_str!("../../testdata/values-19.txt")),
    ]
}

#[test]
fn texts_become_the_bytes_that_real_servers_store() {
    for (major, catalog, values) in samples() {
        let (mut wrong, mut count) = (Vec::new(), 0);
        for line in values.lines().filter(|line| line.starts_with("default|")) {
            let mut fields = line.strip_suffix('|').unwrap().splitn(4, '|').skip(1);
            let oid = Oid(fields.next().unwrap().parse().unwrap());
            let bytes = from_hex(fields.next().unwrap());
            let text = unescape(fields.next().unwrap());
            let ty = Type::resolve(oid, &catalog).unwrap();
            let mut value = Vec::new();
            let options = InputOptions::new(major, &catalog, 0);
            match read_text(&ty, &text, -1, &options, &mut value) {
                // Types that we can't read, and names that only a server can look up.
                Err(error) if error.code() == "0A000" => continue,
                Ok(()) if value == bytes => count += 1,
                read => wrong.push(format!(
                    "{major} {oid} {} {read:?}\n  {value:02x?}\n  {bytes:02x?}",
                    String::from_utf8_lossy(&text)
                )),
            }
        }
        assert!(wrong.is_empty(), "{}\n{} values", wrong.join("\n"), wrong.len());
        assert!(count > 300, "{count}");
    }
}

#[test]
fn damaged_texts_end_in_a_value_or_in_an_error() {
    let mut random = XorShift(0x2468_ACE0_1357_9BDF);
    for table in Table::all() {
        for case in &table.cases {
            let ty = Type::resolve(case.oid, &table.catalog).unwrap();
            for _ in 0..10 {
                let mut text = case.input.clone();
                for _ in 0..=random.below(3) {
                    let at = random.below(text.len() + 1);
                    let pieces: [&[u8]; 12] = [
                        b"9",
                        b"-",
                        b",",
                        b"{",
                        b"}",
                        b"(",
                        b"\"",
                        b"\\",
                        b":",
                        b"e9",
                        b" ",
                        b"\xC3\xA9",
                    ];
                    match random.below(3) {
                        0 if at < text.len() => drop(text.remove(at)),
                        1 if at < text.len() => text[at] = random.next() as u8,
                        _ => drop(text.splice(at..at, pieces[random.below(12)].iter().copied())),
                    }
                }
                let (mut value, mut again) = (Vec::new(), Vec::new());
                table.with_options(case, |input, output| {
                    if let Err(error) = read_text(&ty, &text, case.typmod, input, &mut value) {
                        assert!(value.is_empty() && !error.message().is_empty());
                        return;
                    }
                    // What we read can be printed, and is then read as the same value.
                    let mut shown = Vec::new();
                    write_text(&ty, &value, output, &mut shown).unwrap();
                    let shown_again = String::from_utf8_lossy(&shown).into_owned();
                    let read = read_text(&ty, &shown, case.typmod, input, &mut again);
                    let mut reshown = Vec::new();
                    let same =
                        read.is_ok() && write_text(&ty, &again, output, &mut reshown).is_ok();
                    // A server doesn't read the shortest interval back either, nor `"char"`s
                    // above ASCII that it prints with a backslash.
                    let lossy = matches!(case.oid.0, 18 | 1186);
                    assert!(
                        lossy || same && shown == reshown,
                        "{} {text:?} {shown_again}",
                        case.name
                    );
                });
            }
        }
    }
}

#[test]
fn nesting_costs_no_stack() {
    let catalog = Catalog::parse(include_str!("../../testdata/catalog-19.txt"));
    let options = InputOptions::new(18, &catalog, 0);
    let depth = 100_000;
    let text = ["[".repeat(depth), "]".repeat(depth)].concat();
    for oid in [114, 3802] {
        let ty = Type::resolve(Oid(oid), &catalog).unwrap();
        let (mut value, mut shown) = (Vec::new(), Vec::new());
        read_text(&ty, text.as_bytes(), -1, &options, &mut value).unwrap();
        write_text(&ty, &value, &TextOptions::new(18, &catalog), &mut shown).unwrap();
        assert_eq!(shown, text.as_bytes());
        let open = &text.as_bytes()[..depth];
        assert_eq!(read_text(&ty, open, -1, &options, &mut value).unwrap_err().code(), "22P02");
    }
}
