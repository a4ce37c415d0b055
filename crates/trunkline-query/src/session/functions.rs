//! Functions that see the session: its settings, its user, its database.

use std::collections::BTreeMap;
use std::sync::Arc;

use arrow_array::cast::AsArray;
use arrow_array::types::Int32Type;
use arrow_array::{Array, ArrayRef, BooleanArray, Int32Array, Int64Array, StringViewArray};
use trunkline_aio::facade::Mutex;
use trunkline_sql::catalog::SessionCatalog;
use trunkline_sql::functions::{Argument, ServerFunctions};
use trunkline_sql::{SqlError, SqlState};

use super::outcome::{Notice, Severity};
use super::prepared::{CursorEntry, Prepared};
use crate::instance::Instance;
use crate::settings::SettingsStore;

/// What the functions of one statement see of their session.
pub(super) struct SessionFunctions {
    pub(super) instance: Arc<Instance>,
    pub(super) store: Arc<Mutex<SettingsStore>>,
    pub(super) names: Arc<SessionCatalog>,
    pub(super) pid: i32,
    /// When the instance was started, in microseconds since 2000.
    pub(super) start_time: i64,
    pub(super) prepared: Arc<BTreeMap<String, Arc<Prepared>>>,
    pub(super) cursors: Vec<CursorEntry>,
    /// Where functions put their notices.
    pub(super) notices: Arc<Mutex<Vec<Notice>>>,
    /// The major version of PostgreSQL.
    pub(super) major: u32,
}

impl ServerFunctions for SessionFunctions {
    fn rows(
        &self,
        function: &str,
        arguments: &[Argument],
        row: usize,
    ) -> Result<Vec<ArrayRef>, SqlError> {
        match function {
            "pg_prepared_statement" => self.prepared_statements(),
            "pg_cursor" => self.cursors(),
            "pg_stat_get_activity" => self.activity(int4(arguments, 0, row)),
            "show_all_settings" => self.settings(),
            _ => Err(SqlError::unsupported_function(function)),
        }
    }

    fn values(
        &self,
        function: &str,
        arguments: &[Argument],
        rows: usize,
    ) -> Result<ArrayRef, SqlError> {
        let every = |text: Option<&str>| -> ArrayRef {
            Arc::new(StringViewArray::from_iter(std::iter::repeat_n(text, rows)))
        };
        let each = |one: &dyn Fn(usize) -> Result<Option<String>, SqlError>| {
            let texts = (0..rows).map(one).collect::<Result<StringViewArray, SqlError>>()?;
            Ok::<ArrayRef, SqlError>(Arc::new(texts))
        };
        Ok(match function {
            "pgsql_version" => {
                let version = self.store.lock().value("server_version");
                let own = env!("CARGO_PKG_VERSION");
                every(Some(&format!("PostgreSQL {version} (trunkline {own})")))
            }
            "pg_backend_pid" => Arc::new(Int32Array::from_value(self.pid, rows)),
            "pg_cancel_backend" => {
                let cancelled = (0..rows)
                    .map(|row| int4(arguments, 0, row).map(|pid| self.cancel_backend(pid)));
                Arc::new(cancelled.collect::<BooleanArray>())
            }
            "pg_reload_conf" => {
                self.instance.reload_configuration()?;
                Arc::new(BooleanArray::from(vec![true; rows]))
            }
            "pg_is_in_recovery" => Arc::new(BooleanArray::from(vec![false; rows])),
            "pg_postmaster_start_time" | "pg_conf_load_time" => {
                Arc::new(Int64Array::from_value(self.start_time, rows))
            }
            "show_config_by_name" => each(&|row| self.show(arguments, row, false))?,
            "show_config_by_name_missing_ok" => each(&|row| {
                let missing = boolean(arguments, 1, row);
                missing.map_or(Ok(None), |missing| self.show(arguments, row, missing))
            })?,
            "set_config_by_name" => each(&|row| self.set(arguments, row).map(Some))?,
            _ => return Err(SqlError::unsupported_function(function)),
        })
    }
}

impl SessionFunctions {
    /// `pg_cancel_backend`. Every user can cancel the statements of all: there is only one kind of user.
    fn cancel_backend(&self, pid: i32) -> bool {
        let is_session = self.instance.cancel(pid);
        if !is_session {
            let message = format!("PID {pid} is not a PostgreSQL backend process");
            let fields = SqlError::new(SqlState::WARNING, message);
            self.notices.lock().push(Notice { severity: Severity::Warning, fields });
        }
        is_session
    }

    fn show(
        &self,
        arguments: &[Argument],
        row: usize,
        is_missing_allowed: bool,
    ) -> Result<Option<String>, SqlError> {
        let Some(name) = text(arguments, 0, row) else { return Ok(None) };
        match self.store.lock().show(name) {
            Ok((_, value)) => Ok(Some(value)),
            Err(_) if is_missing_allowed => Ok(None),
            Err(error) => Err(error),
        }
    }

    /// Sets a setting, or resets it if the value is null, and returns its new value.
    fn set(&self, arguments: &[Argument], row: usize) -> Result<String, SqlError> {
        let Some(name) = text(arguments, 0, row) else {
            let message = "SET requires parameter name";
            return Err(SqlError::new(SqlState::NULL_VALUE_NOT_ALLOWED, message));
        };
        let local = boolean(arguments, 2, row).unwrap_or(false);
        let mut store = self.store.lock();
        if local && !store.is_in_block() {
            // The value would be in force until the statement ends.
            let message =
                "set_config for a transaction without a block is not supported by trunkline";
            return Err(SqlError::unsupported(message).with_hint("Use BEGIN."));
        }
        match text(arguments, 1, row) {
            Some(value) => store.set(name, value, local)?,
            None => store.reset(name, local)?,
        }
        Ok(store.show(name)?.1)
    }
}

/// An `int4` argument.
fn int4(arguments: &[Argument], number: usize, row: usize) -> Option<i32> {
    let argument = arguments.get(number)?;
    let array = argument.array().as_primitive_opt::<Int32Type>()?;
    let row = argument.row(row);
    (!array.is_null(row)).then(|| array.value(row))
}

/// A text argument.
fn text(arguments: &[Argument], number: usize, row: usize) -> Option<&str> {
    let argument = arguments.get(number)?;
    let array = argument.array().as_string_view_opt()?;
    let row = argument.row(row);
    (!array.is_null(row)).then(|| array.value(row))
}

/// A Boolean argument.
fn boolean(arguments: &[Argument], number: usize, row: usize) -> Option<bool> {
    let argument = arguments.get(number)?;
    let array = argument.array().as_boolean_opt()?;
    let row = argument.row(row);
    (!array.is_null(row)).then(|| array.value(row))
}
