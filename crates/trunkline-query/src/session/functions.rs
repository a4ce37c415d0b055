//! Functions that see the session: its settings, its user, its database.

use std::collections::BTreeMap;
use std::sync::Arc;

use arrow_array::cast::AsArray;
use arrow_array::types::{Int32Type, Int64Type, UInt32Type};
use arrow_array::{
    Array, ArrayRef, BinaryViewArray, BooleanArray, Int32Array, Int64Array, StringViewArray,
};
use trunkline_aio::facade::Mutex;
use trunkline_sql::catalog::{SessionCatalog, oids};
use trunkline_sql::functions::{Argument, ArrayBuilder, ServerFunctions, attribute_of};
use trunkline_sql::values::Carrier;
use trunkline_sql::{SqlError, SqlState};

use super::outcome::Notice;
use super::prepared::{CursorEntry, Prepared};
use crate::instance::Instance;
use crate::server::{RowBuilder, Value};
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
            // Nothing is locked, because nothing is written.
            "pg_lock_status" => Ok(Vec::new()),
            // There is no shared memory, and nothing is replicated.
            "pg_get_shmem_allocations"
            | "pg_get_shmem_allocations_numa"
            | "pg_stat_get_subscription"
            | "pg_stat_get_wal_receiver"
            | "pg_stat_get_wal_senders" => Ok(Vec::new()),
            "pg_stat_get_archiver" | "pg_stat_get_recovery_prefetch" | "pg_stat_get_wal" => {
                self.idle_row(function, None)
            }
            "pg_stat_get_subscription_stats" => match oid(arguments, 0, row) {
                Some(subscription) => self.idle_row(function, Some(subscription)),
                None => Ok(Vec::new()),
            },
            "pg_stat_get_progress_info" => self.progress(arguments, row),
            "pg_get_wait_events" => self.wait_events(),
            "pg_prepared_xact" => self.prepared_transactions(),
            "pg_get_replication_slots" => self.replication_slots(),
            "pg_show_replication_origin_status" => self.replication_origins(),
            "pg_config" => self.configuration(),
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
            "pgsql_version" => every(Some(&self.version())),
            "pg_backend_pid" => Arc::new(Int32Array::from_value(self.pid, rows)),
            "pg_cancel_backend" => {
                let cancelled = (0..rows)
                    .map(|row| int4(arguments, 0, row).map(|pid| self.cancel_backend(pid)));
                Arc::new(cancelled.collect::<BooleanArray>())
            }
            "pg_terminate_backend" => {
                let ended = (0..rows).map(|row| {
                    let pid = int4(arguments, 0, row).zip(int8(arguments, 1, row));
                    pid.map(|(pid, timeout)| self.terminate_backend(pid, timeout)).transpose()
                });
                Arc::new(ended.collect::<Result<BooleanArray, _>>()?)
            }
            "pg_client_encoding" => every(Some(&self.store.lock().value("client_encoding"))),
            // No session waits for a lock.
            "pg_blocking_pids" | "pg_safe_snapshot_blocking_pids" => {
                let attribute = attribute_of(oids::INT4, &**self.names.catalog.database())?;
                let none = ArrayBuilder::new(oids::INT4, attribute).finish_list()?;
                let each = (0..rows).map(|row| int4(arguments, 0, row).map(|_| &*none));
                Arc::new(each.collect::<BinaryViewArray>())
            }
            "pg_reload_conf" => {
                self.instance.reload_configuration()?;
                Arc::new(BooleanArray::from(vec![true; rows]))
            }
            "pg_is_in_recovery" => Arc::new(BooleanArray::from(vec![false; rows])),
            "pg_stat_get_db_numbackends" => {
                let counts = (0..rows)
                    .map(|row| oid(arguments, 0, row).map(|database| self.sessions_in(database)));
                Arc::new(counts.collect::<Int32Array>())
            }
            "pg_postmaster_start_time"
            | "pg_conf_load_time"
            | "pg_stat_get_bgwriter_stat_reset_time"
            | "pg_stat_get_checkpointer_stat_reset_time" => {
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
    /// `pg_config()`: how the server was built, of which we only have a version.
    fn configuration(&self) -> Result<Vec<ArrayRef>, SqlError> {
        let mut rows = RowBuilder::new(&[Carrier::Text, Carrier::Text]);
        rows.push(&[Value::Text("VERSION".to_owned()), Value::Text(self.version())])?;
        Ok(rows.finish())
    }

    fn version(&self) -> String {
        let version = self.store.lock().value("server_version");
        format!("PostgreSQL {version} (trunkline {})", env!("CARGO_PKG_VERSION"))
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

/// An `int8` argument.
fn int8(arguments: &[Argument], number: usize, row: usize) -> Option<i64> {
    let argument = arguments.get(number)?;
    let array = argument.array().as_primitive_opt::<Int64Type>()?;
    let row = argument.row(row);
    (!array.is_null(row)).then(|| array.value(row))
}

/// An argument that is an OID.
fn oid(arguments: &[Argument], number: usize, row: usize) -> Option<u32> {
    let argument = arguments.get(number)?;
    let array = argument.array().as_primitive_opt::<UInt32Type>()?;
    let row = argument.row(row);
    (!array.is_null(row)).then(|| array.value(row))
}

/// A text argument.
pub(super) fn text(arguments: &[Argument], number: usize, row: usize) -> Option<&str> {
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
