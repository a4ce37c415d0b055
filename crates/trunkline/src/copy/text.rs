//! The settings of a session that show in values: from the command line, else from the cluster's
//! configuration, else the server's defaults.
//!
//! Only what the tables at hand need is asked for: a time zone that nobody knows is no obstacle to a
//! table without times.

use std::fmt::Display;
use std::path::Path;

use clap::ValueEnum;
use trunkline_aio::sync::Arc;
use trunkline_engine::copy::{Plan, TextSettings};
use trunkline_format::types::{Base, ByteaOutput, IntervalStyle, Utc};

use super::config::Config;
use super::zone::zone;
use crate::exit::{Failure, message};

/// Options for the text of values.
#[derive(Debug, clap::Args)]
#[command(next_help_heading = "Text of values")]
pub(crate) struct TextArgs {
    /// Zone in which timestamptz is shown [default: the cluster's].
    #[arg(long, value_name = "ZONE")]
    timezone: Option<String>,

    /// Style of dates; only ISO is known [default: the cluster's].
    #[arg(long, value_name = "STYLE")]
    datestyle: Option<String>,

    /// postgres, postgres_verbose, sql_standard or iso_8601 [default: the cluster's].
    #[arg(long, value_name = "STYLE")]
    intervalstyle: Option<String>,

    /// hex or escape [default: the cluster's].
    #[arg(long, value_name = "FORMAT")]
    bytea_output: Option<String>,

    /// Digits of floats: 1 to 3 for the shortest exact text, -15 to 0 for fewer [default: the
    /// cluster's].
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
        let place = if self.option { "" } else { " in the configuration of the cluster" };
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

/// What the values of `plans` are printed with, in a cluster of version `major`.
pub(super) fn settings(
    args: &TextArgs,
    pgdata: &Path,
    major: u32,
    plans: &[&Plan],
) -> Result<TextSettings, Failure> {
    let config = Config::read(pgdata).map_err(|error| {
        Failure::cannot_run(format_args!(
            "could not read the configuration of the cluster: {error}"
        ))
    })?;
    let choose = |name: &'static str, given: &'static str, args: &'_ Option<String>| {
        let value = args.as_deref().or(config.get(&name.to_ascii_lowercase())).unwrap_or(given);
        (value.to_owned(), args.is_some())
    };
    let has = |test: &dyn Fn(Base) -> bool| plans.iter().any(|plan| plan.has_type(test));
    let mut text = TextSettings {
        major,
        zone: Arc::new(Utc),
        extra_float_digits: 1,
        bytea_output: ByteaOutput::Hex,
        interval_style: IntervalStyle::Postgres,
    };
    if has(&|base| base == Base::Timestamptz) {
        let (value, option) = choose("TimeZone", "GMT", &args.timezone);
        let chosen = Chosen { name: "TimeZone", value: &value, option };
        text.zone = zone(&value).ok_or_else(|| chosen.invalid("use --timezone ZONE"))?;
        if !config.found && !option {
            let text = "the cluster has no postgresql.conf, and timestamptz is shown in UTC";
            message("warning", text);
            message("hint", "use --timezone ZONE");
        }
    }
    if has(&is_dated) {
        let (value, option) = choose("DateStyle", "ISO", &args.datestyle);
        let chosen = Chosen { name: "DateStyle", value: &value, option };
        if !is_iso(&value) {
            return Err(chosen.invalid("only ISO is known: use --datestyle ISO"));
        }
    }
    let (value, option) = choose("IntervalStyle", "postgres", &args.intervalstyle);
    let chosen = Chosen { name: "IntervalStyle", value: &value, option };
    text.interval_style = chosen.one_of(&INTERVAL_STYLES)?;
    let (value, option) = choose("bytea_output", "hex", &args.bytea_output);
    let chosen = Chosen { name: "bytea_output", value: &value, option };
    text.bytea_output = chosen.one_of(&BYTEA_OUTPUTS)?;
    let (value, option) = choose("extra_float_digits", "1", &args.extra_float_digits);
    let chosen = Chosen { name: "extra_float_digits", value: &value, option };
    let digits = value.parse().ok().filter(|digits| (-15..=3).contains(digits));
    text.extra_float_digits =
        digits.ok_or_else(|| chosen.invalid("use --extra-float-digits -15 to 3"))?;
    let locale = config.get("lc_monetary").unwrap_or("C");
    if has(&|base| base == Base::Money) && !is_plain_money(locale) {
        let text = format!(
            "amounts of money are shown as in locale \"{locale}\", which is not known here"
        );
        return Err(
            Failure::usage(text).with_hint("name the columns that are wanted, without money")
        );
    }
    Ok(text)
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
