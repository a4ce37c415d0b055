//! Values of the file of ALTER SYSTEM: they are below those of the connection, the database and the
//! command line, and above those that come with the program.

use std::collections::BTreeMap;

use trunkline_engine::settings::Settings;
use trunkline_sql::SqlError;

use super::definition::{Context, find};
use super::store::{SESSION_IO, SettingsStore, cannot_change, unrecognized};
use super::value::setting_error;

impl SettingsStore {
    /// Takes over the values of the file. Those that are wrong, or that take effect at the next start,
    /// are left out.
    pub(crate) fn reload(&mut self, values: &BTreeMap<String, String>) {
        self.stamp += 1;
        self.reloaded.clear();
        for (name, value) in values {
            let is_own = find(name).is_some_and(|one| one.context == Context::User)
                || SESSION_IO.contains(&&**name);
            if let Ok((key, value)) = self.check(name, value)
                && is_own
            {
                self.reloaded.insert(key, value);
            }
        }
    }

    /// Shows what the running engine has now of these settings.
    pub(crate) fn follow(&mut self, engine: &Settings, names: &[&str]) {
        self.stamp += 1;
        for name in names {
            if let Ok(value) = engine.show(name) {
                // A value of the engine's settings is valid.
                let _is_set = self.engine.set(name, &value);
            }
        }
    }

    /// Checks what ALTER SYSTEM is to write. `None` stands for the default.
    ///
    /// # Errors
    /// 42704: there is no such setting. 22023: the value is wrong. 55P02: it can't change.
    pub(crate) fn check_for_file(&self, name: &str, value: Option<&str>) -> Result<(), SqlError> {
        if let Some(definition) = find(name) {
            if definition.context == Context::Internal
                || definition.name.starts_with("transaction_")
            {
                return Err(cannot_change(definition.name));
            }
            return value.map_or(Ok(()), |value| self.check(name, value).map(|_| ()));
        }
        if self.engine.show(name).is_ok() {
            let Some(value) = value else { return Ok(()) };
            let set = self.engine.clone().set(name, value);
            return set.map_err(|error| setting_error(&error, self.major));
        }
        match name.contains('.') {
            true => self.check_other(name),
            false => Err(unrecognized(name)),
        }
    }
}
