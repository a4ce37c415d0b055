//! The settings that affect how values are printed, and where they come from.
//!
//! For each setting, we use the first of these sources that defines it: the setting's own
//! command-line option, `-c`, the database (`ALTER DATABASE ... SET`), the cluster's configuration
//! files, and finally the server's built-in default.
//!
//! If the output is to be loaded into a server, floating-point numbers are printed exactly unless the
//! command line says otherwise.
//!
//! We ignore per-role settings (`ALTER ROLE ... SET`), because the output should not depend on
//! which user runs the tool.
//!
//! We check every value given on the command line. A time zone or date style that we don't support
//! in the configuration is an error only if the copied tables need it.

use std::collections::BTreeMap;
use std::fmt::Display;

use trunkline_aio::facade::Arc;
use trunkline_engine::catalog::Database;
use trunkline_engine::copy::{Plan, TextSettings};
use trunkline_engine::datadir::DataDir;
use trunkline_engine::pool::Backend;
use trunkline_engine::time_zone::zone;
use trunkline_format::text_output::{Base, ByteaOutput, IntervalStyle, Utc};

use super::failures::catalog_failure;
use super::text_args::{BYTEA_OUTPUTS, INTERVAL_STYLES, TextArgs};
use crate::catalog_session::warn_of_damage;
use crate::config_file::{ConfigFiles, read_config_files};
use crate::exit::{Failure, message, warnings};
use crate::interrupt::Interrupt;
use crate::text_settings::TEXT_SETTINGS;

/// The value we use for a setting. We also remember whether it was given on the command line.
struct ChosenSetting<'a> {
    name: &'static str,
    value: &'a str,
    from_command_line: bool,
}

impl ChosenSetting<'_> {
    /// The failure for an invalid value.
    fn invalid(&self, hint: impl Display) -> Failure {
        let place = match self.from_command_line {
            true => "",
            false => " in the configuration of the cluster or database",
        };
        let text =
            format!("invalid value for parameter \"{}\": \"{}\"{place}", self.name, self.value);
        Failure::usage(text).with_hint(hint)
    }

    fn one_of<T: Copy>(&self, all: &[(&str, T)]) -> Result<T, Failure> {
        let found = all.iter().find(|(name, _)| name.eq_ignore_ascii_case(self.value));
        found.map(|&(_, value)| value).ok_or_else(|| {
            let names: Vec<&str> = all.iter().map(|&(name, _)| name).collect();
            let option = self.name.to_ascii_lowercase().replace('_', "-");
            self.invalid(format_args!("use --{option} with one of: {}", names.join(", ")))
        })
    }
}

/// The hint if the settings of the database could not be read.
const DATABASE_SETTINGS_HINT: &str =
    "if ALTER DATABASE ... SET was used, set --timezone and similar options";

/// The hint if lines of the configuration files were skipped.
const CONFIG_FAULTS_HINT: &str =
    "a server would not start with these files; settings in lines that were skipped are not used";

/// The sources of settings.
pub(super) struct TextSettingSources<'a> {
    args: &'a TextArgs,
    /// Assigned with `-c`.
    assigned: &'a BTreeMap<String, String>,
    /// Set for the database.
    database: BTreeMap<String, String>,
    config: ConfigFiles,
    /// Whether a server will read the output. Floating-point numbers must then be exact, even if the
    /// cluster or the database is configured otherwise. `pg_dump` does the same.
    is_loaded: bool,
    /// Whether all settings of the database could be read.
    pub(super) is_complete: bool,
}

impl<'a> TextSettingSources<'a> {
    /// Reads the configuration files of the cluster and the settings of the database.
    pub(super) fn read(
        (args, assigned, is_loaded): (&'a TextArgs, &'a BTreeMap<String, String>, bool),
        (dir, interrupt): (&DataDir, &Interrupt),
        database: &Database,
        backend: &mut Backend,
    ) -> Result<Self, Failure> {
        let config = read_config_files(dir.path().to_owned(), interrupt)?;
        warnings(&config.faults, config.faults_total - config.faults.len() as u64);
        if config.faults_total > 0 {
            message("hint", CONFIG_FAULTS_HINT);
        }
        let (database, faults, is_read) = match database.settings(backend) {
            Ok((settings, faults)) => (settings, faults, true),
            Err(error) if error.is_damage() => return Err(catalog_failure(error, dir)),
            Err(error) => {
                let text = "could not read the settings of the database";
                message("warning", format_args!("{text}: {error}"));
                message("hint", DATABASE_SETTINGS_HINT);
                (BTreeMap::new(), Vec::new(), false)
            }
        };
        warn_of_damage(&faults, None);
        if !faults.is_empty() {
            message("hint", DATABASE_SETTINGS_HINT);
        }
        let is_complete = is_read && faults.is_empty();
        Ok(Self { args, assigned, database, config, is_loaded, is_complete })
    }

    /// Returns the value from the first source that defines the setting. The sources are tried in
    /// the order listed at the top of this file.
    fn choose(&self, name: &'static str) -> ChosenSetting<'_> {
        let TextArgs { timezone, datestyle, intervalstyle, bytea_output, extra_float_digits } =
            self.args;
        let option = match name {
            "TimeZone" => timezone,
            "DateStyle" => datestyle,
            "IntervalStyle" => intervalstyle,
            "bytea_output" => bytea_output,
            "extra_float_digits" => extra_float_digits,
            _ => &None,
        };
        let key = name.to_ascii_lowercase();
        let given = option.as_ref().or(self.assigned.get(&key));
        let default = TEXT_SETTINGS.iter().find(|(known, _)| *known == name);
        let exact = (self.is_loaded && name == "extra_float_digits").then_some("1");
        let value = given.map(String::as_str).or(exact);
        let value = value.or(self.database.get(&key).map(String::as_str));
        let value = value.or(self.config.get(&key));
        let value = value.unwrap_or(default.map_or("", |(_, value)| value));
        ChosenSetting { name, value, from_command_line: given.is_some() }
    }

    /// Returns why the value of a setting might not be the one that a server would use: we found no
    /// `postgresql.conf`, or skipped some of its lines.
    fn doubt(&self, chosen: &ChosenSetting<'_>) -> Option<&'static str> {
        let key = chosen.name.to_ascii_lowercase();
        if chosen.from_command_line || self.database.contains_key(&key) {
            return None;
        }
        match (self.config.found, self.config.faults_total) {
            (false, _) => Some("the cluster has no postgresql.conf"),
            (true, 0) => None,
            (true, _) => Some("the configuration files contain errors"),
        }
    }

    /// All settings and their values, one per line.
    pub(super) fn shown(&self) -> String {
        let line = |(name, _): (&'static str, _)| format!("{name} {}\n", self.choose(name).value);
        TEXT_SETTINGS.into_iter().map(line).collect()
    }

    /// Resolves the settings that the tables in `plans` need. `major` is the major version of the
    /// cluster.
    pub(super) fn resolve(
        &self,
        major: u32,
        plans: &[&Plan],
        database: &Database,
    ) -> Result<TextSettings, Failure> {
        let chosen = |name| self.choose(name);
        let printed = |test: &dyn Fn(Base) -> bool| plans.iter().any(|plan| plan.has_type(test));
        // An anyarray column, such as those in pg_statistic, may contain elements of any type.
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
        let needs_zone = has(&|base| base == Base::Timestamptz);
        let chosen_zone = chosen("TimeZone");
        if needs_zone || chosen_zone.from_command_line {
            let found = zone(chosen_zone.value);
            text.zone = found.ok_or_else(|| chosen_zone.invalid("use --timezone ZONE"))?;
            if needs_zone && let Some(doubt) = self.doubt(&chosen_zone) {
                let text = format!("{doubt}; timestamptz is printed in {}", chosen_zone.value);
                message("warning", text);
                message("hint", "use --timezone ZONE");
            }
        }
        let style = chosen("DateStyle");
        if (style.from_command_line || has(&is_dated)) && !is_iso(style.value) {
            return Err(style.invalid("only ISO is supported; use --datestyle ISO"));
        }
        text.interval_style = chosen("IntervalStyle").one_of(&INTERVAL_STYLES)?;
        text.bytea_output = chosen("bytea_output").one_of(&BYTEA_OUTPUTS)?;
        let locale = chosen("lc_monetary").value;
        let chosen = chosen("extra_float_digits");
        let digits = chosen.value.parse().ok().filter(|digits| (-15..=3).contains(digits));
        text.extra_float_digits =
            digits.ok_or_else(|| chosen.invalid("use --extra-float-digits with -15 to 3"))?;
        if has(&|base| base == Base::Money) && !is_plain_money(locale) {
            let text = format!("type money is not supported with lc_monetary \"{locale}\"");
            let hint = "use -c lc_monetary=C, or --columns without the columns of type money";
            return Err(Failure::usage(text).with_hint(hint));
        }
        Ok(text)
    }
}

/// Whether the output of a type depends on `DateStyle`.
fn is_dated(base: Base) -> bool {
    matches!(base, Base::Date | Base::Timestamp | Base::Timestamptz)
}

/// Returns whether a `DateStyle` is ISO. In that case, the order of day and month doesn't matter.
fn is_iso(style: &str) -> bool {
    let is_order = |word: &str| {
        let orders =
            ["dmy", "mdy", "ymd", "euro", "european", "us", "noneuro", "noneuropean", "default"];
        orders.iter().any(|order| order.eq_ignore_ascii_case(word)) || word.is_empty()
    };
    let mut words = style.split(',').map(str::trim);
    words.all(|word| word.eq_ignore_ascii_case("iso") || is_order(word))
}

/// Whether a locale prints money as `-$1,234.56`.
fn is_plain_money(locale: &str) -> bool {
    let language = locale.split('.').next().unwrap_or_default();
    ["C", "POSIX", "en_US", ""].contains(&language)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_iso_dates_and_plain_money_are_supported() {
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
    fn values_are_matched_without_regard_to_case() {
        let choose =
            |value| ChosenSetting { name: "IntervalStyle", value, from_command_line: true };
        let found = choose("ISO_8601").one_of(&INTERVAL_STYLES).expect("a style");
        assert_eq!(found, IntervalStyle::Iso8601);
        assert!(choose("x").one_of(&INTERVAL_STYLES).is_err());
    }
}
