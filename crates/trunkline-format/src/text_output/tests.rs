//! Compares our output of values from real servers with the servers' own output.
//!
//! Each line of `testdata/values-*.txt` and `floats.txt` contains the settings, the OID of the
//! type, the bytes of the value, and the expected text, which is escaped as in `COPY`. The files
//! `testdata/catalog-*.txt` contain the catalog rows that are needed to resolve the types.

use super::*;
use crate::align::Align;
use crate::catalog::TypeRow;
use crate::deform::Attribute;
use crate::ids::Oid;
use crate::test_catalog::{Catalog, from_hex, unescape};
use crate::test_data::XorShift;

/// A server: its version, catalogs and values.
struct Server {
    major: u32,
    catalog: Catalog,
    values: &'static str,
    floats: &'static str,
}

/// One value from a server.
struct Sample<'a> {
    settings: &'a str,
    oid: Oid,
    bytes: Vec<u8>,
    text: Vec<u8>,
}

fn servers() -> [Server; 2] {
    let catalog_15 = Catalog::parse(include_str!("../../testdata/catalog-15.txt"));
    let catalog_19 = Catalog::parse(include_str!("../../testdata/catalog-19.txt"));
    let values_15 = include_str!("../../testdata/values-15.txt");
    let values_19 = include_str!("../../testdata/values-19.txt");
    let floats = include_str!("../../testdata/floats.txt");
    [
        Server { major: 15, catalog: catalog_15, values: values_15, floats },
        Server { major: 19, catalog: catalog_19, values: values_19, floats },
    ]
}

impl Server {
    fn samples(&self) -> impl Iterator<Item = Sample<'static>> {
        self.values.lines().chain(self.floats.lines()).map(|line| {
            let line = line.strip_suffix('|').unwrap();
            let fields: Vec<&str> = line.splitn(4, '|').collect();
            let [settings, oid, bytes, text] = fields[..] else { panic!("{line}") };
            let oid = Oid(oid.parse().unwrap());
            Sample { settings, oid, bytes: from_hex(bytes), text: unescape(text) }
        })
    }

    fn options<'a>(&'a self, settings: &str, zone: &'a mut Zone) -> TextOptions<'a> {
        let mut options = TextOptions::new(self.major, &self.catalog);
        match settings {
            "default" => {}
            "escape" => options.bytea_output = ByteaOutput::Escape,
            "postgres_verbose" => options.interval_style = IntervalStyle::PostgresVerbose,
            "sql_standard" => options.interval_style = IntervalStyle::SqlStandard,
            "iso_8601" => options.interval_style = IntervalStyle::Iso8601,
            other => match (other.strip_prefix("digits"), other.strip_prefix("zone")) {
                (Some(digits), _) => options.extra_float_digits = digits.parse().unwrap(),
                (_, Some(offset)) => zone.0 = offset.parse().unwrap(),
                _ => panic!("{other}"),
            },
        }
        options.zone = zone;
        options
    }
}

/// A time zone with a fixed offset, in seconds east of UTC.
struct Zone(i32);

impl TimeZone for Zone {
    fn offset_s(&self, _unix_s: i64) -> i32 {
        self.0
    }

    fn abbreviation(&self, _unix_s: i64) -> String {
        String::new()
    }
}

#[test]
fn values_of_real_servers_have_the_text_that_those_gave_them() {
    for server in servers() {
        let mut wrong = Vec::new();
        let mut count = 0;
        for sample in server.samples() {
            let ty = Type::resolve(sample.oid, &server.catalog).unwrap();
            let mut out = Vec::new();
            let mut zone = Zone(0);
            let options = server.options(sample.settings, &mut zone);
            let written = write_text(&ty, &sample.bytes, &options, &mut out);
            if written.is_err() || out != sample.text {
                let [found, expected] = [&out, &sample.text].map(|t| String::from_utf8_lossy(t));
                let (settings, oid) = (sample.settings, sample.oid);
                wrong.push(format!("{oid} {settings} {written:?}\n  {found}\n  {expected}"));
            }
            count += 1;
        }
        assert!(wrong.is_empty(), "PostgreSQL {}:\n{}", server.major, wrong.join("\n"));
        assert!(count > 1500);
    }
}

#[test]
fn damaged_values_end_in_text_or_in_an_error() {
    let mut random = XorShift(0x1357_9BDF_2468_ACE0);
    for server in servers() {
        let mut zone = Zone(0);
        let options = server.options("default", &mut zone);
        for sample in server.samples() {
            let ty = Type::resolve(sample.oid, &server.catalog).unwrap();
            for _ in 0..40 {
                let mut bytes = sample.bytes.clone();
                for _ in 0..=random.below(3) {
                    if !bytes.is_empty() {
                        let at = random.below(bytes.len());
                        bytes[at] = match random.below(3) {
                            0 => bytes[at] ^ 1 << random.below(8),
                            1 => random.next() as u8,
                            _ => 0xFF,
                        };
                    }
                }
                if random.below(4) == 0 {
                    bytes.truncate(random.below(bytes.len() + 1));
                }
                let mut out = Vec::new();
                if let Err(error) = write_text(&ty, &bytes, &options, &mut out) {
                    assert!(!error.to_string().is_empty());
                }
                // A numeric of a few bytes can print up to 131 072 digits and 16 383 decimals.
                assert!(out.len() <= (bytes.len() + 1) * 150_000, "{} {bytes:?}", sample.oid);
            }
        }
    }
}

#[test]
fn any_bytes_as_any_type() {
    let mut random = XorShift(99);
    let [_, server] = servers();
    let mut zone = Zone(0);
    let options = server.options("default", &mut zone);
    for oid in server.catalog.types.keys() {
        let Ok(ty) = Type::resolve(Oid(*oid), &server.catalog) else { continue };
        for _ in 0..300 {
            let mut bytes = vec![0; random.below(80)];
            random.fill(&mut bytes);
            for byte in &mut bytes {
                // Most counts and lengths are small numbers.
                *byte = if random.below(3) == 0 { *byte } else { *byte & 3 };
            }
            let mut out = Vec::new();
            drop(write_text(&ty, &bytes, &options, &mut out));
        }
    }
}

#[test]
fn types_without_text_are_refused_by_name() {
    let [_, server] = servers();
    let refused = |oid| Type::resolve(Oid(oid), &server.catalog).unwrap_err();
    assert_eq!(refused(9).to_string(), "no type has the OID 9");
    assert_eq!(refused(3642).reason, UnsupportedReason::NotStored);
    assert_eq!(
        refused(2279).to_string(),
        "type trigger (OID 2279): its values are not kept in tables"
    );
}

/// Whether we can print a base type of an extension, such as `citext`, depends on its output
/// function.
#[test]
fn base_types_of_extensions_are_printed_if_their_function_is_built_in() {
    let [_, mut server] = servers();
    let mut add = |oid, like: u32, printed_as: Option<u32>, len: Option<i16>| {
        let like = server.catalog.types[&like].clone();
        let row = TypeRow { oid: Oid(oid), len: len.unwrap_or(like.len), ..like };
        server.catalog.types.insert(oid, row);
        server.catalog.printed_as.extend(printed_as.map(|other| (oid, Oid(other))));
    };
    add(50_000, 25, Some(25), None);
    add(50_001, 20, Some(20), None);
    // The output function is not built in, or it expects values of another length.
    add(50_002, 25, None, None);
    add(50_003, 20, Some(20), Some(4));
    add(50_004, 25, Some(9), None);
    let resolve = |oid| Type::resolve(Oid(oid), &server.catalog);
    let options = TextOptions::new(19, &server.catalog);
    for (oid, bytes, text) in
        [(50_000, &b"Text"[..], &b"Text"[..]), (50_001, &[0xFF; 8], &b"-1"[..])]
    {
        let mut out = Vec::new();
        write_text(&resolve(oid).unwrap(), bytes, &options, &mut out).unwrap();
        assert_eq!(out, text);
    }
    for oid in [50_002, 50_003, 50_004] {
        assert_eq!(resolve(oid).unwrap_err().reason, UnsupportedReason::NotBuiltIn, "{oid}");
    }
}

#[test]
fn a_type_within_itself_is_too_complex() {
    let [_, mut server] = servers();
    let mut row = server.catalog.types[&25].clone();
    (row.oid, row.kind, row.base) = (Oid(50_000), b'd', Oid(50_000));
    server.catalog.types.insert(50_000, row.clone());
    let reason = |catalog: &Catalog, oid| Type::resolve(Oid(oid), catalog).unwrap_err().reason;
    assert_eq!(reason(&server.catalog, 50_000), UnsupportedReason::TooComplex);
    // Each of its columns is as wide as itself.
    (row.oid, row.kind, row.relation) = (Oid(50_001), b'c', Oid(60_000));
    let attribute = Attribute { len: -1, align: Align::Double };
    let column = ColumnRow { type_oid: Oid(50_001), modifier: -1, attribute, dropped: false };
    server.catalog.columns.insert(60_000, vec![column; 10]);
    server.catalog.types.insert(50_001, row);
    assert_eq!(reason(&server.catalog, 50_001), UnsupportedReason::TooComplex);
}

#[test]
fn errors_name_the_type_and_what_is_wrong() {
    let [_, server] = servers();
    let options = TextOptions::new(19, &server.catalog);
    let error = |oid, bytes: &[u8]| {
        let ty = Type::resolve(Oid(oid), &server.catalog).unwrap();
        write_text(&ty, bytes, &options, &mut Vec::new()).unwrap_err().to_string()
    };
    assert_eq!(error(23, &[1, 2, 3]), "integer: 3 bytes, expected 4");
    assert_eq!(error(16, &[2]), "boolean: neither true nor false");
    assert_eq!(error(1700, &[0x80]), "numeric: 1 bytes end before the value does");
    assert_eq!(error(1700, &[0, 0x81, 0x10, 0x27]), "numeric: a digit above 9999");
    assert_eq!(error(1082, &[0xFE, 0xFF, 0xFF, 0x7F]), "date: out of range");
    assert_eq!(error(869, &[4, 0]), "inet: neither IPv4 nor IPv6");
}

#[test]
fn nesting_costs_no_stack() {
    let [_, server] = servers();
    let options = TextOptions::new(19, &server.catalog);
    let text = |oid, bytes: &[u8]| {
        let ty = Type::resolve(Oid(oid), &server.catalog).unwrap();
        let mut out = Vec::new();
        write_text(&ty, bytes, &options, &mut out).map(|()| out)
    };
    // Nested one-element jsonb arrays that all end at the same byte.
    let depth = 100_000;
    let mut jsonb = Vec::new();
    for left in (1..depth).rev() {
        jsonb.extend_from_slice(&0x4000_0001_u32.to_le_bytes());
        jsonb.extend_from_slice(&(0x5000_0000_u32 | (left * 8 - 4)).to_le_bytes());
    }
    jsonb.extend_from_slice(&0x4000_0000_u32.to_le_bytes());
    let depth = depth as usize;
    assert_eq!(
        text(3802, &jsonb).unwrap(),
        ["[".repeat(depth), "]".repeat(depth)].concat().into_bytes()
    );
    // A query of nested NOT operators.
    let nots = 100_000_u32;
    let mut query = (nots + 1).to_le_bytes().to_vec();
    for _ in 0..nots {
        query.extend_from_slice(&[2, 1, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0]);
    }
    query.extend_from_slice(&[1, 0, 0, 0, 0, 0, 0, 0, 1, 0, 0, 0, b'a', 0]);
    assert!(text(3615, &query).unwrap().ends_with(b"!!'a'"));
    // A path that consists of nested unary minus operators. Since we use recursion to print it, it
    // must be rejected if it is nested too deeply.
    let minuses = |count: u32| {
        let mut path = 0x8000_0001_u32.to_le_bytes().to_vec();
        for _ in 0..count {
            path.extend_from_slice(&[20, 0, 0, 0, 0, 0, 0, 0, 12, 0, 0, 0]);
        }
        path.extend_from_slice(&[27, 0, 0, 0, 0, 0, 0, 0]);
        path
    };
    assert!(text(4072, &minuses(400)).unwrap().ends_with(&[b')'; 400]));
    assert!(text(4072, &minuses(100_000)).unwrap_err().to_string().contains("too deep"));
}

#[test]
fn names_of_types_made_of_domains() {
    // `create domain dar as int[]; create domain d as int;` as PostgreSQL 15 stores them.
    let mut catalog = Catalog::parse(include_str!("../../testdata/catalog-15.txt"));
    let more = "type|90001|dar|11|-1|i|d|,|0|0|751|1007\ntype|90002|_dar|11|-1|i|b|,|0|90001|751|0\n\
                type|90003|_loop|11|-1|i|b|,|0|90003|751|0";
    catalog.types.append(&mut Catalog::parse(more).types);
    let options = TextOptions::new(15, &catalog);
    let text = |oid: u32| {
        let mut out = Vec::new();
        let ty = Type::resolve(Oid(2206), &catalog).unwrap();
        write_text(&ty, &oid.to_le_bytes(), &options, &mut out).unwrap();
        String::from_utf8(out).unwrap()
    };
    let found = [90001, 90002, 1007, 30, 90003].map(text);
    assert_eq!(found, ["dar", "dar[]", "integer[]", "oidvector", "_loop"]);
}
