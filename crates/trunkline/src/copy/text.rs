//! The settings of a session that show in values: from the command line (an option of its own before
//! `-c`), else what the database's sessions begin with, else from the cluster's configuration, else
//! the server's defaults.
//!
//! Only what the tables at hand need is asked for: a time zone that nobody knows is no obstacle to a
//! table without times.

use std::collections::BTreeMap;
use std::fmt::Display;

use clap::ValueEnum;
use trunkline_aio::sync::Arc;
use trunkline_engine::catalog::Database;
use trunkline_engine::copy::{Plan, TextSettings};
use trunkline_engine::datadir::DataDir;
use trunkline_engine::pool::Backend;
use trunkline_format::text_output::{Base, ByteaOutput, IntervalStyle, Utc};

use super::config::Config;
use super::zone::zone;
use crate::cluster;
use crate::exit::{Failure, message};

/// Options for the text of values.
#[derive(Debug, clap::Args)]
#[command(next_help_heading = "Text of values")]
pub(crate) struct TextArgs {
    /// Zone in which timestamptz is shown [default: the database's].
    #[arg(long, value_name = "ZONE")]
    timezone: Option<String>,

    /// Style of dates; only ISO is known [default: the database's].
    #[arg(long, value_name = "STYLE")]
    datestyle: Option<String>,

    /// postgres, postgres_verbose, sql_standard or iso_8601 [default: the database's].
    #[arg(long, value_name = "STYLE")]
    intervalstyle: Option<String>,

    /// hex or escape [default: the database's].
    #[arg(long, value_name = "FORMAT")]
    bytea_output: Option<String>,

    /// Digits of floats: 1 to 3 for the shortest exact text, -15 to 0 for fewer [default: the
    /// database's].
    #[arg(long, value_name = "N", allow_hyphen_values = true)]
    extra_float_digits: Option<String>,
}

/// `--format`.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub(crate) enum FormatArg {
    /// Tabs and backslashes.
    Text,
    /// Commas and quotes.
    Csv,
}

/// Styles of intervals by their names.
const INTERVAL_STYLES: [(&str, IntervalStyle); 4] = [
    ("postgres", IntervalStyle::Postgres),
    ("postgres_verbose", IntervalStyle::PostgresVerbose),
    ("sql_standard", IntervalStyle::SqlStandard),
    ("iso_8601", IntervalStyle::Iso8601),
];

/// Formats of bytea by their names.
const BYTEA_OUTPUTS: [(&str, ByteaOutput); 2] =
    [("hex", ByteaOutput::Hex), ("escape", ByteaOutput::Escape)];

/// A setting's value, and whether the command line gives it.
struct Chosen<'a> {
    name: &'static str,
    value: &'a str,
    option: bool,
}

impl Chosen<'_> {
    /// The value is none: usage, whoever gave it.
    fn invalid(&self, hint: impl Display) -> Failure {
        let place =
            if self.option { "" } else { " in the configuration of the cluster or database" };
        let text =
            format!("invalid value for parameter \"{}\": \"{}\"{place}", self.name, self.value);
        Failure::usage(text).with_hint(hint)
    }

    fn one_of<T: Copy>(&self, all: &[(&str, T)]) -> Result<T, Failure> {
        let found = all.iter().find(|(name, _)| name.eq_ignore_ascii_case(self.value));
        found.map(|&(_, value)| value).ok_or_else(|| {
            let names: Vec<&str> = all.iter().map(|&(name, _)| name).collect();
            self.invalid(format_args!("use --{} {}", option(self.name), names.join(", ")))
        })
    }
}

/// The command line's name of a setting.
fn option(name: &str) -> String {
    name.to_ascii_lowercase().replace('_', "-")
}

/// The settings of values, and what each is unless somebody says otherwise.
const DEFAULTS: [(&str, &str); 6] = [
    ("TimeZone", "GMT"),
    ("DateStyle", "ISO"),
    ("IntervalStyle", "postgres"),
    ("bytea_output", "hex"),
    ("extra_float_digits", "1"),
    ("lc_monetary", "C"),
];

/// What to do where the database's settings are not known.
const SETTINGS_HINT: &str = "use --timezone and the like if ALTER DATABASE … SET changed them";

/// Whether a setting shows in values; `name` is in lower case.
pub(crate) fn is_value_setting(name: &str) -> bool {
    DEFAULTS.iter().any(|(known, _)| known.eq_ignore_ascii_case(name))
}

/// All that says what settings are.
pub(super) struct Sources<'a> {
    args: &'a TextArgs,
    /// Given by their names on the command line.
    given: &'a BTreeMap<String, String>,
    /// What sessions of the database begin with.
    database: BTreeMap<String, String>,
    config: Config,
    /// Whether nothing of the database's was left out.
    pub(super) whole: bool,
}

impl<'a> Sources<'a> {
    /// Reads the configuration of the cluster in `dir`, and what is set for a database of it.
    pub(super) fn read(
        (args, given): (&'a TextArgs, &'a BTreeMap<String, String>),
        dir: &DataDir,
        database: &Database,
        backend: &mut Backend,
    ) -> Result<Self, Failure> {
        let config = Config::read(dir.path()).map_err(|error| {
            let text = "could not read the configuration of the cluster";
            Failure::cannot_run(format_args!("{text}: {error}"))
        })?;
        let (database, faults) = match database.settings(backend) {
            Ok(read) => read,
            Err(error) if error.is_damage() => return Err(super::damaged(error, dir)),
            Err(error) => {
                let text = "the settings of the database cannot be read";
                message("warning", format_args!("{text}: {error}"));
                message("hint", SETTINGS_HINT);
                Default::default()
            }
        };
        cluster::warn_of(&faults, None);
        if !faults.is_empty() {
            message("hint", SETTINGS_HINT);
        }
        Ok(Self { args, given, database, config, whole: faults.is_empty() })
    }

    fn choose(&self, name: &'static str) -> Chosen<'_> {
        let TextArgs { timezone, datestyle, intervalstyle, bytea_output, extra_float_digits } =
            self.args;
        let given = match name {
            "TimeZone" => timezone,
            "DateStyle" => datestyle,
            "IntervalStyle" => intervalstyle,
            "bytea_output" => bytea_output,
            "extra_float_digits" => extra_float_digits,
            _ => &None,
        };
        let key = name.to_ascii_lowercase();
        let given = given.as_ref().or(self.given.get(&key));
        let default = DEFAULTS.iter().find(|(known, _)| *known == name);
        let value = given.map(String::as_str).or(self.database.get(&key).map(String::as_str));
        let value = value.or(self.config.get(&key));
        let value = value.unwrap_or(default.map_or("", |(_, value)| value));
        Chosen { name, value, option: given.is_some() }
    }

    /// Whether nobody says what a setting is.
    fn is_unknown(&self, chosen: &Chosen<'_>) -> bool {
        let key = chosen.name.to_ascii_lowercase();
        !chosen.option && !self.config.found && !self.database.contains_key(&key)
    }

    /// All settings with their values, line by line.
    pub(super) fn shown(&self) -> String {
        let line = |(name, _): (&'static str, _)| format!("{name} {}\n", self.choose(name).value);
        DEFAULTS.into_iter().map(line).collect()
    }

    /// What the values of `plans` are printed with, in a cluster of version `major`.
    pub(super) fn settings(
        &self,
        major: u32,
        plans: &[&Plan],
        database: &Database,
    ) -> Result<TextSettings, Failure> {
        let chosen = |name| self.choose(name);
        let printed = |test: &dyn Fn(Base) -> bool| plans.iter().any(|plan| plan.has_type(test));
        // An anyarray, as the statistics are kept in, is of any type that a column has.
        let has = |test: &dyn Fn(Base) -> bool| {
            printed(test) || printed(&|base| base == Base::AnyArray) && database.has_type(test)
        };
        let mut text = TextSettings {
            major,
            zone: Arc::new(Utc),
            extra_float_digits: 1,
            bytea_output: ByteaOutput::Hex,
            interval_style: IntervalStyle::Postgres,
        };
        if has(&|base| base == Base::Timestamptz) {
            let chosen = chosen("TimeZone");
            text.zone = zone(chosen.value).ok_or_else(|| chosen.invalid("use --timezone ZONE"))?;
            if self.is_unknown(&chosen) {
                let text = "the cluster has no postgresql.conf, and timestamptz is shown in UTC";
                message("warning", text);
                message("hint", "use --timezone ZONE");
            }
        }
        if has(&is_dated) {
            let chosen = chosen("DateStyle");
            if !is_iso(chosen.value) {
                return Err(chosen.invalid("only ISO is known: use --datestyle ISO"));
            }
        }
        text.interval_style = chosen("IntervalStyle").one_of(&INTERVAL_STYLES)?;
        text.bytea_output = chosen("bytea_output").one_of(&BYTEA_OUTPUTS)?;
        let locale = chosen("lc_monetary").value;
        let chosen = chosen("extra_float_digits");
        let digits = chosen.value.parse().ok().filter(|digits| (-15..=3).contains(digits));
        text.extra_float_digits =
            digits.ok_or_else(|| chosen.invalid("use --extra-float-digits -15 to 3"))?;
        if has(&|base| base == Base::Money) && !is_plain_money(locale) {
            let text = format!(
                "amounts of money are shown as in locale \"{locale}\", which is not known here"
            );
            let hint = "name the columns that are wanted, without money, or use -c lc_monetary=C";
            return Err(Failure::usage(text).with_hint(hint));
        }
        Ok(text)
    }
}

/// Types whose text depends on `DateStyle`.
fn is_dated(base: Base) -> bool {
    matches!(base, Base::Date | Base::Timestamp | Base::Timestamptz)
}

/// Whether a `DateStyle` shows dates as ISO does; the order of day and month plays no part then.
fn is_iso(style: &str) -> bool {
    let is_order = |word: &str| {
        let orders =
            ["dmy", "mdy", "ymd", "euro", "european", "us", "noneuro", "noneuropean", "default"];
        orders.iter().any(|order| order.eq_ignore_ascii_case(word)) || word.is_empty()
    };
    let mut words = style.split(',').map(str::trim);
    words.all(|word| word.eq_ignore_ascii_case("iso") || is_order(word))
}

/// Whether a locale shows `-$1,234.56`.
fn is_plain_money(locale: &str) -> bool {
    let language = locale.split('.').next().unwrap_or_default();
    ["C", "POSIX", "en_US", ""].contains(&language)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn styles() {
        for style in ["ISO", "iso, mdy", "DMY", "ISO,YMD"] {
            assert!(is_iso(style), "{style}");
        }
        for style in ["German", "SQL, DMY", "Postgres", "iso 8601"] {
            assert!(!is_iso(style), "{style}");
        }
        for (locale, plain) in
            [("C", true), ("C.UTF-8", true), ("en_US.utf8", true), ("de_DE", false)]
        {
            assert_eq!(is_plain_money(locale), plain, "{locale}");
        }
    }

    #[test]
    fn names_of_values() {
        let choose = |value| Chosen { name: "IntervalStyle", value, option: true };
        let found = choose("ISO_8601").one_of(&INTERVAL_STYLES).expect("a style");
        assert_eq!(found, IntervalStyle::Iso8601);
        assert!(choose("x").one_of(&INTERVAL_STYLES).is_err());
    }
}
