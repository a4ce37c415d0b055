//! The settings of one session, and what of them a transaction can undo.
//!
//! ```text
//!   value = SET LOCAL, until the end of the transaction
//!           or SET, until the end of the session
//!           or the default: of the instance, the database, the start of the session
//! ```
//!
//! Every block and every savepoint keeps the values at its start, to which a rollback returns.

use std::collections::BTreeMap;

use trunkline_engine::settings::Settings;
use trunkline_sql::{SqlError, SqlState};

use crate::encode::CLIENT_ENCODINGS;

use super::definition::{Context, DEFINITIONS, Definition, find};
use super::live::is_live;
use super::source::Source;
use super::value::{Surroundings, checked, setting_error};

/// Values by names in lower case.
type Values = BTreeMap<String, String>;

/// Settings of the engine that every session can change for itself.
pub(crate) const SESSION_IO: [&str; 3] =
    ["effective_io_concurrency", "maintenance_io_concurrency", "io_combine_limit"];

/// The values of a session.
#[derive(Debug, Clone)]
pub(crate) struct SettingsStore {
    pub(super) major: u32,
    /// The number of the database's encoding.
    encoding: i32,
    pub(super) engine: Settings,
    /// Values of the file of ALTER SYSTEM.
    pub(super) reloaded: Values,
    /// Where defaults come from that don't come with the program.
    sources: BTreeMap<String, Source>,
    defaults: Values,
    session: Values,
    local: Values,
    /// The values at the start of the block, and of each of its savepoints.
    frames: Vec<(Values, Values)>,
    /// Whether the block has executed a query, after which its isolation level can't change.
    has_queried: bool,
    /// The values that the client knows.
    reported: Values,
    /// What [`SettingsStore::stamp`] was then.
    reported_at: Option<u64>,
    /// Increases whenever a value may have changed.
    pub(super) stamp: u64,
    /// `default_transaction_isolation`, and the stamp when it was looked up.
    isolation: Option<(u64, String)>,
}

impl SettingsStore {
    /// The values that come with the program.
    pub(crate) fn new(major: u32, encoding: i32, engine: Settings) -> Self {
        let defaults = DEFINITIONS.iter();
        let defaults = defaults.map(|one| (one.name.to_ascii_lowercase(), one.boot.to_owned()));
        Self {
            major,
            encoding,
            engine,
            reloaded: Values::new(),
            sources: BTreeMap::new(),
            defaults: defaults.collect(),
            session: Values::new(),
            local: Values::new(),
            frames: Vec::new(),
            has_queried: false,
            reported: Values::new(),
            reported_at: None,
            stamp: 0,
            isolation: None,
        }
    }

    /// The values of the instance, for a session in a database with this encoding.
    pub(crate) fn for_database(&self, encoding: i32) -> Self {
        let mut store = Self { encoding, ..self.clone() };
        let index = usize::try_from(encoding).ok();
        let name = index.and_then(|index| CLIENT_ENCODINGS.get(index)).copied();
        let name = name.unwrap_or("SQL_ASCII");
        store.describe("server_encoding", name.to_owned());
        if store.value("client_encoding").is_empty() {
            store.describe("client_encoding", name.to_owned());
        }
        store
    }

    /// As long as this is the same, so are all values, except for the isolation level of the
    /// transaction.
    pub(crate) fn stamp(&self) -> u64 {
        self.stamp
    }

    /// Whether there is a transaction block.
    pub(crate) fn is_in_block(&self) -> bool {
        !self.frames.is_empty()
    }

    /// Sets what the session knows: a value that can't be set otherwise.
    pub(crate) fn describe(&mut self, name: &str, value: String) {
        self.stamp += 1;
        let key = name.to_ascii_lowercase();
        self.sources.insert(key.clone(), Source::Override);
        self.defaults.insert(key, value);
    }

    /// Sets a default, to which RESET returns, and which is above the file of ALTER SYSTEM.
    ///
    /// # Errors
    /// As for [`SettingsStore::set`].
    pub(crate) fn set_default(
        &mut self,
        name: &str,
        value: &str,
        source: Source,
    ) -> Result<(), SqlError> {
        if let Ok(present) = self.engine.show(name)
            && !SESSION_IO.contains(&&*name.to_ascii_lowercase())
        {
            let mut wanted = self.engine.clone();
            wanted.set(name, value).map_err(|error| setting_error(&error, self.major))?;
            return match wanted.show(name) {
                Ok(wanted) if wanted == present => Ok(()),
                _ => Err(needs_restart(name)),
            };
        }
        let (key, value) = self.check(name, value)?;
        self.stamp += 1;
        self.sources.insert(key.clone(), source);
        self.defaults.insert(key, value);
        Ok(())
    }

    /// Sets a value.
    ///
    /// # Errors
    /// 42704: there is no such setting. 22023: the value is wrong. 55P02: it can't change.
    pub(crate) fn set(&mut self, name: &str, value: &str, local: bool) -> Result<(), SqlError> {
        let (key, value) = self.check(name, value)?;
        self.stamp += 1;
        if find(name).is_none() && !SESSION_IO.contains(&&*key) {
            self.defaults.entry(key.clone()).or_default();
        }
        match &*key {
            "transaction_isolation" => {
                self.check_isolation(&value)?;
                return self.set_local(key, value);
            }
            "transaction_read_only" => return self.set_local(key, value),
            _ => {}
        }
        if local {
            return self.set_local(key, value);
        }
        self.local.remove(&key);
        self.session.insert(key, value);
        Ok(())
    }

    /// Outside of a block, a value for the transaction has no effect.
    fn set_local(&mut self, key: String, value: String) -> Result<(), SqlError> {
        if !self.frames.is_empty() {
            self.local.insert(key, value);
        }
        Ok(())
    }

    fn check_isolation(&self, value: &str) -> Result<(), SqlError> {
        if self.value("transaction_isolation") == value || self.frames.is_empty() {
            return Ok(());
        }
        let message = if self.frames.len() > 1 {
            "SET TRANSACTION ISOLATION LEVEL must not be called in a subtransaction"
        } else if self.has_queried {
            "SET TRANSACTION ISOLATION LEVEL must be called before any query"
        } else {
            return Ok(());
        };
        Err(SqlError::new(SqlState::ACTIVE_SQL_TRANSACTION, message))
    }

    /// Checks that a setting can have a value. Returns the setting's name in lower case, and the value
    /// as it is shown.
    pub(super) fn check(&self, name: &str, value: &str) -> Result<(String, String), SqlError> {
        let key = name.to_ascii_lowercase();
        let Some(definition) = find(name) else {
            if SESSION_IO.contains(&&*key) {
                let mut wanted = self.engine.clone();
                wanted.set(&key, value).map_err(|error| setting_error(&error, self.major))?;
                return Ok((key, wanted.show(name).unwrap_or_default()));
            }
            self.check_other(name)?;
            return Ok((key, value.to_owned()));
        };
        if definition.context == Context::Internal {
            return Err(cannot_change(definition.name));
        }
        let present = self.value(definition.name);
        let default = self.defaults.get(&key).map_or("", |value| value);
        let around =
            Surroundings { major: self.major, encoding: self.encoding, present: &present, default };
        let value = checked(definition, value, &around)?;
        if definition.context == Context::Fixed && value != default {
            let message = format!(
                "setting parameter \"{}\" to \"{value}\" is not supported by trunkline",
                definition.name
            );
            return Err(SqlError::unsupported(message));
        }
        let writes = ["transaction_read_only", "default_transaction_read_only"];
        if writes.contains(&definition.name) && value == "off" {
            return Err(cannot_write());
        }
        Ok((key, value))
    }

    /// Checks the name of a setting that isn't ours: one of the engine, or of an extension.
    pub(super) fn check_other(&self, name: &str) -> Result<(), SqlError> {
        if self.engine.show(name).is_ok() {
            let name = name.to_ascii_lowercase();
            return Err(match is_live(&name) {
                true => cannot_change_now(&name),
                false => needs_restart(&name),
            });
        }
        if !name.contains('.') {
            return Err(unrecognized(name));
        }
        let is_simple = |part: &str| {
            let begins = |letter: char| letter.is_ascii_alphabetic() || letter == '_';
            let continues =
                |letter: char| letter.is_ascii_alphanumeric() || matches!(letter, '_' | '$');
            part.starts_with(|letter: char| begins(letter) || !letter.is_ascii())
                && part.chars().all(|letter| continues(letter) || !letter.is_ascii())
        };
        if name.split('.').all(is_simple) {
            return Ok(());
        }
        let message = format!("invalid configuration parameter name \"{name}\"");
        let detail =
            "Custom parameter names must be two or more simple identifiers separated by dots.";
        Err(SqlError::new(SqlState::INVALID_NAME, message).with_detail(detail))
    }

    /// Returns a setting to its default.
    ///
    /// # Errors
    /// As for [`SettingsStore::set`].
    pub(crate) fn reset(&mut self, name: &str, local: bool) -> Result<(), SqlError> {
        let key = name.to_ascii_lowercase();
        match find(name).map(|definition| (definition.context, definition.name)) {
            Some((Context::Internal, name)) => return Err(cannot_change(name)),
            Some((_, name @ ("transaction_isolation" | "transaction_read_only"))) => {
                let message = format!("parameter \"{name}\" cannot be reset");
                return Err(SqlError::unsupported(message));
            }
            Some(_) => {}
            None if SESSION_IO.contains(&&*key) => {}
            None => {
                self.check_other(name)?;
                if !self.defaults.contains_key(&key) {
                    return Ok(());
                }
            }
        }
        self.stamp += 1;
        let default = self.default(&key).unwrap_or_default();
        if local {
            return self.set_local(key, default);
        }
        self.local.remove(&key);
        self.session.remove(&key);
        Ok(())
    }

    /// `RESET ALL`: what belongs to the transaction stays.
    pub(crate) fn reset_all(&mut self) {
        self.stamp += 1;
        self.session.clear();
        self.local.retain(|name, _| name.starts_with("transaction_"));
    }

    /// The name of a setting as it is defined, and its value.
    ///
    /// # Errors
    /// 42704.
    pub(crate) fn show(&self, name: &str) -> Result<(String, String), SqlError> {
        if let Some(definition) = find(name) {
            return Ok((definition.name.to_owned(), self.value(definition.name)));
        }
        if self.engine.show(name).is_ok() {
            return Ok((name.to_ascii_lowercase(), self.value(name)));
        }
        if self.defaults.contains_key(&name.to_ascii_lowercase()) {
            return Ok((name.to_owned(), self.value(name)));
        }
        Err(unrecognized(name))
    }

    /// All settings with their values and descriptions, by name.
    pub(crate) fn all(&self) -> Vec<(String, String, String)> {
        let own = DEFINITIONS.iter().filter(|one| one.is_listed());
        let own = own.map(|one| (one.name.to_owned(), self.value(one.name), one.short.to_owned()));
        let engine = self.engine.iter();
        let engine = engine
            .map(|(spec, _)| (spec.name.to_owned(), self.value(spec.name), spec.short.to_owned()));
        let aliases = Settings::aliases().map(|(alias, targets)| {
            let mut specs = self.engine.iter().map(|(spec, _)| spec);
            let spec = specs.find(|spec| targets.last() == Some(&spec.name));
            let short = spec.map_or("", |spec| spec.short);
            (alias.to_owned(), self.value(alias), short.to_owned())
        });
        let custom = self.custom_names();
        let custom = custom.map(|name| (name.to_owned(), self.value(name), String::new()));
        let mut all: Vec<_> = own.chain(engine).chain(aliases).chain(custom).collect();
        all.sort_by_key(|(name, ..)| name.to_ascii_lowercase());
        all
    }

    /// The value of a setting that exists.
    pub(crate) fn value(&self, name: &str) -> String {
        let key = name.to_ascii_lowercase();
        let layers = [&self.local, &self.session];
        let value = layers.iter().find_map(|layer| layer.get(&key)).cloned();
        let value = value.or_else(|| self.default(&key)).unwrap_or_default();
        // Between transactions, it is that of the next one.
        if key == "transaction_isolation" && value.is_empty() {
            return self.value("default_transaction_isolation");
        }
        value
    }

    /// The value to which RESET returns.
    pub(super) fn default(&self, key: &str) -> Option<String> {
        if let Some(value) = self.reloaded.get(key).filter(|_| !self.is_above_file(key)) {
            return Some(value.clone());
        }
        self.defaults.get(key).cloned().or_else(|| self.engine.show(key).ok())
    }

    /// Whether a default is one of the command line, the database or the connection.
    fn is_above_file(&self, key: &str) -> bool {
        self.sources.get(key).is_some_and(|source| *source != Source::Override)
    }

    /// Where a value comes from, by the setting's name in lower case.
    pub(super) fn source(&self, key: &str) -> Source {
        if self.local.contains_key(key) || self.session.contains_key(key) {
            return Source::Session;
        }
        match self.sources.get(key) {
            Some(source) if *source != Source::Override => *source,
            _ if self.reloaded.contains_key(key) => Source::ConfigurationFile,
            found => found.copied().unwrap_or(Source::Default),
        }
    }

    /// The settings that extensions or users have defined.
    pub(super) fn custom_names(&self) -> impl Iterator<Item = &str> {
        self.defaults.keys().filter(|name| name.contains('.')).map(|name| &**name)
    }

    /// The settings of the engine, with those that the session has changed.
    pub(crate) fn engine_settings(&self) -> Settings {
        let mut settings = self.engine.clone();
        for name in SESSION_IO {
            // The value has been checked.
            let _set = settings.set(name, &self.value(name));
        }
        settings
    }

    /// The value of a setting, if it isn't the one that comes with the program.
    pub(crate) fn changed(&self, name: &str) -> Option<String> {
        let Some(definition) = find(name) else {
            let boot = Settings::default().show(name).ok()?;
            return Some(self.value(name)).filter(|value| *value != boot);
        };
        let value = self.value(definition.name);
        (value != definition.boot).then_some(value)
    }

    /// The value of a setting that is a number, in its own unit.
    pub(crate) fn number(&self, name: &str) -> f64 {
        let spec = find(name).and_then(Definition::spec);
        spec.and_then(|spec| spec.parse(&self.value(name)).ok()).unwrap_or_default()
    }

    /// A block begins.
    pub(crate) fn begin(&mut self) {
        let known = self.isolation.take().filter(|(stamp, _)| *stamp == self.stamp);
        let known = known.unwrap_or_else(|| {
            let name = "default_transaction_isolation";
            (self.stamp, self.value(name))
        });
        let isolation = known.1.clone();
        self.isolation = Some(known);
        self.frames = vec![(self.session.clone(), Values::new())];
        self.has_queried = false;
        self.local.insert("transaction_isolation".to_owned(), isolation);
    }

    /// A query is executed.
    pub(crate) fn mark_query(&mut self) {
        self.has_queried = true;
    }

    /// The block ends.
    pub(crate) fn end(&mut self, is_committed: bool) {
        if !is_committed || self.local.keys().any(|name| name != "transaction_isolation") {
            self.stamp += 1;
        }
        let frames = std::mem::take(&mut self.frames);
        if let Some((session, _)) = frames.into_iter().next().filter(|_| !is_committed) {
            self.session = session;
        }
        self.local.clear();
    }

    /// A savepoint is made.
    pub(crate) fn save(&mut self) {
        self.frames.push((self.session.clone(), self.local.clone()));
    }

    /// Savepoints end. The number of those that are left.
    pub(crate) fn release(&mut self, left: usize) {
        self.frames.truncate(left + 1);
    }

    /// Returns to the values of a savepoint, counted from 0.
    pub(crate) fn return_to(&mut self, savepoint: usize) {
        self.stamp += 1;
        self.frames.truncate(savepoint + 2);
        if let Some((session, local)) = self.frames.get(savepoint + 1) {
            (self.session, self.local) = (session.clone(), local.clone());
        }
    }

    /// The settings that clients are informed of and whose values have changed since the last call;
    /// at first, all of them.
    pub(crate) fn take_changed(&mut self) -> Vec<(String, String)> {
        let mut changed = Vec::new();
        if self.reported_at.replace(self.stamp) == Some(self.stamp) {
            return changed;
        }
        for definition in DEFINITIONS {
            if definition.reported.is_none_or(|since| self.major < since) {
                continue;
            }
            let value = self.value(definition.name);
            if self.reported.get(definition.name) != Some(&value) {
                self.reported.insert(definition.name.to_owned(), value.clone());
                changed.push((definition.name.to_owned(), value));
            }
        }
        changed
    }
}

/// 42704.
pub(crate) fn unrecognized(name: &str) -> SqlError {
    let message = format!("unrecognized configuration parameter \"{name}\"");
    SqlError::new(SqlState::UNDEFINED_OBJECT, message)
}

pub(super) fn cannot_change(name: &str) -> SqlError {
    let message = format!("parameter \"{name}\" cannot be changed");
    SqlError::new(SqlState::CANT_CHANGE_RUNTIME_PARAM, message)
}

/// The error of a setting that only ALTER SYSTEM changes.
fn cannot_change_now(name: &str) -> SqlError {
    let message = format!("parameter \"{name}\" cannot be changed now");
    SqlError::new(SqlState::CANT_CHANGE_RUNTIME_PARAM, message)
}

fn needs_restart(name: &str) -> SqlError {
    let message = format!("parameter \"{name}\" cannot be changed without restarting the server");
    SqlError::new(SqlState::CANT_CHANGE_RUNTIME_PARAM, message)
}

/// The error of a transaction that is to write.
pub(crate) fn cannot_write() -> SqlError {
    let message = "cannot set transaction read-write mode inside a read-only transaction";
    SqlError::new(SqlState::ACTIVE_SQL_TRANSACTION, message)
}
