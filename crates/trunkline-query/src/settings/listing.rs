//! The rows of `pg_settings`: what is known of each setting of a session, besides its value.
//!
//! ```text
//!   SHOW work_mem      8MB
//!   pg_settings        setting 8192, unit kB, source session, boot_val 4096, reset_val 4096, …
//! ```
//!
//! Numbers are in the setting's own unit there. Most settings of the engine need a restart here
//! (`postmaster`), even if PostgreSQL can reload them.

use std::collections::BTreeMap;
use std::path::Path;

use trunkline_engine::settings::{Kind, Settings, Spec, Unit};

use super::category::{CUSTOMIZED, category};
use super::definition::{Context, DEFINITIONS, Definition};
use super::live::is_live;
use super::source::Source;
use super::store::{SESSION_IO, SettingsStore};

/// The file of ALTER SYSTEM, as it was last read.
#[derive(Debug, Clone, Copy)]
pub(crate) struct FileValues<'a> {
    /// Where it is.
    pub(crate) path: &'a Path,
    /// The values, by the names of settings in lower case.
    pub(crate) values: &'a BTreeMap<String, String>,
    /// The lines where they are, from 1.
    pub(crate) lines: &'a BTreeMap<String, i32>,
}

/// A row of `pg_settings`.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct SettingRow {
    /// Its name.
    pub(crate) name: String,
    /// Its value, in its own unit.
    pub(crate) setting: String,
    /// The unit of numbers.
    pub(crate) unit: Option<&'static str>,
    /// Its group.
    pub(crate) category: &'static str,
    /// What it does.
    pub(crate) short: Option<&'static str>,
    /// When it can change.
    pub(crate) context: &'static str,
    /// The type of its values.
    pub(crate) vartype: &'static str,
    /// Where its value comes from.
    pub(crate) source: &'static str,
    /// The smallest number.
    pub(crate) min: Option<String>,
    /// The largest number.
    pub(crate) max: Option<String>,
    /// The words of which the value is one.
    pub(crate) words: Option<&'static [&'static str]>,
    /// The value that comes with the program.
    pub(crate) boot: Option<String>,
    /// The value to which RESET returns.
    pub(crate) reset: Option<String>,
    /// The file that the value comes from, and the line.
    pub(crate) file: Option<(String, i32)>,
    /// Whether the file has another value, for the next start.
    pub(crate) pending_restart: bool,
}

impl SettingsStore {
    /// The rows of `pg_settings`, by name. `file` is that of ALTER SYSTEM, if there is one.
    pub(crate) fn rows(&self, file: Option<FileValues<'_>>) -> Vec<SettingRow> {
        let own = DEFINITIONS.iter().filter(|one| one.is_listed());
        let own = own.map(|one| self.own_row(one, file));
        let engine = self.engine.iter().map(|(spec, _)| self.engine_row(spec.name, spec, file));
        let specs = || self.engine.iter().map(|(spec, _)| spec);
        let aliases = Settings::aliases().filter_map(|(alias, targets)| {
            // As SHOW, it has the value of the last one.
            let last = targets.last()?;
            let spec = specs().find(|spec| spec.name == *last)?;
            Some(self.engine_row(alias, spec, file))
        });
        let custom = self.custom_names().map(|name| self.custom_row(name));
        let mut rows: Vec<SettingRow> = own.chain(engine).chain(aliases).chain(custom).collect();
        rows.sort_by_key(|row| row.name.to_ascii_lowercase());
        rows
    }

    fn own_row(&self, definition: &Definition, file: Option<FileValues<'_>>) -> SettingRow {
        let key = definition.name.to_ascii_lowercase();
        let spec = definition.spec();
        let plain = |value: String| in_own_unit(spec.as_ref(), value);
        let setting = plain(self.value(definition.name));
        let kind = spec.map(|spec| KindColumns::of(&spec)).unwrap_or_default();
        let context = match definition.context {
            Context::Internal => "internal",
            Context::Fixed if definition.name == "lc_messages" => "superuser",
            Context::User | Context::Fixed => "user",
        };
        let source = self.source(&key);
        // A number that can't change is the only one.
        let only = (definition.context == Context::Internal && kind.min.is_some())
            .then(|| setting.clone());
        SettingRow {
            name: definition.name.to_owned(),
            unit: kind.unit,
            category: category(&key),
            short: Some(definition.short),
            context,
            vartype: kind.vartype,
            source: source.name(),
            min: only.clone().or(kind.min),
            max: only.or(kind.max),
            words: kind.words,
            boot: Some(match definition.boot {
                "" if definition.context == Context::Internal => setting.clone(),
                boot => plain(boot.to_owned()),
            }),
            reset: Some(plain(self.default(&key).unwrap_or_default())),
            file: file_of(&key, source, file),
            pending_restart: false,
            setting,
        }
    }

    fn engine_row(&self, name: &str, spec: &Spec, file: Option<FileValues<'_>>) -> SettingRow {
        let plain = |value: String| in_own_unit(Some(spec), value);
        let kind = KindColumns::of(spec);
        let is_own = SESSION_IO.contains(&spec.name);
        let boot = plain(Settings::default().show(spec.name).unwrap_or_default());
        let reset = plain(self.default(spec.name).unwrap_or_default());
        let in_file = file.and_then(|file| file.values.get(name));
        let of_file = in_file.and_then(|value| Some(plain(spec.show(spec.parse(value).ok()?))));
        let source = match self.source(spec.name) {
            Source::Default if is_own || reset == boot => Source::Default,
            Source::Default if of_file.as_ref() == Some(&reset) => Source::ConfigurationFile,
            Source::Default => Source::CommandLine,
            source => source,
        };
        SettingRow {
            name: name.to_owned(),
            setting: plain(self.value(spec.name)),
            unit: kind.unit,
            category: category(name),
            short: Some(spec.short),
            context: match spec.name {
                _ if is_own => "user",
                name if is_live(name) => "sighup",
                _ => "postmaster",
            },
            vartype: kind.vartype,
            source: source.name(),
            min: kind.min,
            max: kind.max,
            words: kind.words,
            boot: Some(boot),
            pending_restart: !is_own
                && !is_live(spec.name)
                && of_file.is_some_and(|value| value != reset),
            reset: Some(reset),
            file: file_of(name, source, file),
        }
    }

    fn custom_row(&self, name: &str) -> SettingRow {
        SettingRow {
            name: name.to_owned(),
            setting: self.value(name),
            unit: None,
            category: CUSTOMIZED,
            short: None,
            context: "user",
            vartype: "string",
            source: self.source(name).name(),
            min: None,
            max: None,
            words: None,
            boot: None,
            reset: self.default(name),
            file: None,
            pending_restart: false,
        }
    }
}

impl Definition {
    /// Whether SHOW ALL and `pg_settings` have it; SHOW has all.
    pub(super) fn is_listed(&self) -> bool {
        !matches!(
            self.name,
            "session_authorization"
                | "is_superuser"
                | "transaction_isolation"
                | "transaction_read_only"
                | "transaction_deferrable"
        )
    }
}

/// What the kind of a setting says.
struct KindColumns {
    vartype: &'static str,
    unit: Option<&'static str>,
    min: Option<String>,
    max: Option<String>,
    words: Option<&'static [&'static str]>,
}

impl Default for KindColumns {
    /// Any text.
    fn default() -> Self {
        Self { vartype: "string", unit: None, min: None, max: None, words: None }
    }
}

impl KindColumns {
    fn of(spec: &Spec) -> Self {
        match spec.kind {
            Kind::Integer { unit, min, max, auto } => Self {
                vartype: "integer",
                unit: unit_name(unit),
                min: Some(if auto { -1 } else { min }.to_string()),
                max: Some(max.to_string()),
                words: None,
            },
            Kind::Real { min, max } => Self {
                vartype: "real",
                min: Some(spec.show(min)),
                max: Some(spec.show(max)),
                ..Self::default()
            },
            Kind::Choice { words } => {
                Self { vartype: "enum", words: Some(words), ..Self::default() }
            }
            Kind::Boolean => Self { vartype: "bool", ..Self::default() },
            Kind::List { .. } => Self::default(),
        }
    }
}

fn unit_name(unit: Unit) -> Option<&'static str> {
    match unit {
        Unit::None => None,
        Unit::Blocks => Some("8kB"),
        Unit::Kilobytes => Some("kB"),
        Unit::Milliseconds => Some("ms"),
        Unit::Seconds => Some("s"),
    }
}

/// A value as it is shown, but as a number without a unit if it is an integer.
fn in_own_unit(spec: Option<&Spec>, shown: String) -> String {
    let Some(spec) = spec.filter(|spec| matches!(spec.kind, Kind::Integer { .. })) else {
        return shown;
    };
    match spec.parse(&shown) {
        Ok(number) => (number as i64).to_string(),
        Err(_) => shown,
    }
}

/// Where in the file a value is that comes from there.
fn file_of(key: &str, source: Source, file: Option<FileValues<'_>>) -> Option<(String, i32)> {
    let file = file.filter(|_| source == Source::ConfigurationFile)?;
    Some((file.path.display().to_string(), *file.lines.get(key)?))
}
