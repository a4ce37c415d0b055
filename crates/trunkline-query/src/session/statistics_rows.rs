//! Rows of statistics about what doesn't happen here: writing, replication, recovery. What has no row in
//! a server that does nothing has none here, and counts are 0.
//!
//! What was left behind in the data directory is looked for. Prepared transactions are shown. If there are replication
//! slots, or progress of replication, the functions about them are refused.

use std::fs;
use std::io;

use arrow_array::ArrayRef;
use trunkline_engine::replay::ReplayError;
use trunkline_format::text_output::Type;
use trunkline_sql::catalog::{ObjectName, oids};
use trunkline_sql::functions::Argument;
use trunkline_sql::values::Carrier;
use trunkline_sql::{SqlError, SqlState};

use super::functions::{SessionFunctions, text};
use crate::server::{RowBuilder, Value};

/// What `pg_stat_activity` can show as wait events, with descriptions.
const WAIT_EVENTS: [(&str, &str, &str); 5] = [
    ("Client", "ClientRead", "Waiting for a statement of the client"),
    ("Client", "ClientWrite", "Waiting for the client to take rows"),
    ("IO", "AioIoCompletion", "Waiting for pages that a worker reads"),
    ("IO", "AioIoUringExecution", "Waiting for pages that are read through io_uring"),
    ("IO", "DataFileRead", "Waiting for values of a TOAST table"),
];

/// The size of `replorigin_checkpoint` without an origin: a magic number and a checksum.
const ORIGINS_BYTES: u64 = 8;

impl SessionFunctions {
    /// One row for a function with output parameters: counts are 0, `stats_reset` is the start of the
    /// program, and everything else is null. `subid` is an argument that is returned.
    pub(super) fn idle_row(
        &self,
        function: &str,
        argument: Option<u32>,
    ) -> Result<Vec<ArrayRef>, SqlError> {
        let names = self.names.names();
        let found = names.functions_named(ObjectName::built_in(function));
        let procedure = found.first();
        let procedure = procedure.ok_or_else(|| SqlError::unsupported_function(function))?;
        let database = self.names.catalog.database();
        let (mut carriers, mut row) = (Vec::new(), Vec::new());
        for output in procedure.parameters().iter().filter(|one| !one.mode.is_input()) {
            let ty = Type::resolve(output.type_oid, &**database);
            let ty = ty.map_err(|error| SqlError::unsupported(error.to_string()))?;
            carriers.push(Carrier::of(&ty));
            row.push(match (output.type_oid, &*output.name) {
                (_, b"stats_reset") => Value::Time(self.start_time),
                (oids::OID, b"subid") => argument.map_or(Value::Null, Value::Oid),
                (oids::INT8, _) => Value::Int8(0),
                (oids::INT4, _) => Value::Int4(0),
                (oids::FLOAT8, _) => Value::Float8(0.0),
                (oids::NUMERIC, _) => Value::Numeric(0),
                _ => Value::Null,
            });
        }
        let mut rows = RowBuilder::new(&carriers);
        rows.push(&row)?;
        Ok(rows.finish())
    }

    /// `pg_stat_get_progress_info(command)`: of these commands, we only have COPY.
    pub(super) fn progress(
        &self,
        arguments: &[Argument],
        row: usize,
    ) -> Result<Vec<ArrayRef>, SqlError> {
        let Some(command) = text(arguments, 0, row) else { return Ok(Vec::new()) };
        let known = ["VACUUM", "ANALYZE", "CLUSTER", "CREATE INDEX", "BASEBACKUP"];
        if known.iter().any(|known| known.eq_ignore_ascii_case(command)) {
            return Ok(Vec::new());
        }
        if command.eq_ignore_ascii_case("COPY") {
            let message = "the progress of COPY is not supported by trunkline";
            return Err(SqlError::unsupported(message));
        }
        let message = format!("invalid command name: \"{command}\"");
        Err(SqlError::new(SqlState::INVALID_PARAMETER_VALUE, message))
    }

    /// `pg_get_wait_events()`: those that sessions can show.
    pub(super) fn wait_events(&self) -> Result<Vec<ArrayRef>, SqlError> {
        let mut rows = RowBuilder::new(&[Carrier::Text; 3]);
        for (kind, name, description) in WAIT_EVENTS {
            rows.push(&[kind, name, description].map(|text| Value::Text(text.to_owned())))?;
        }
        Ok(rows.finish())
    }

    /// `pg_prepared_xact()`.
    pub(super) fn prepared_transactions(&self) -> Result<Vec<ArrayRef>, SqlError> {
        let mut rows = RowBuilder::new(&[
            Carrier::UInt32,
            Carrier::Text,
            Carrier::Int64,
            Carrier::UInt32,
            Carrier::UInt32,
        ]);
        let all = self.instance.cluster().dir().prepared_transactions().map_err(|error| {
            let state = match error {
                ReplayError::Prepared { .. } => SqlState::DATA_CORRUPTED,
                _ => SqlState::IO_ERROR,
            };
            SqlError::new(state, error.to_string())
        })?;
        for one in all {
            let gid = String::from_utf8(one.gid).map_err(|_| {
                let text =
                    "a prepared transaction whose name isn't UTF-8 is not supported by trunkline";
                SqlError::unsupported(text)
            })?;
            rows.push(&[
                Value::Oid(one.xid),
                Value::Text(gid),
                Value::Time(one.time),
                Value::Oid(one.owner.0),
                Value::Oid(one.database.0),
            ])?;
        }
        Ok(rows.finish())
    }

    /// `pg_get_replication_slots()`.
    pub(super) fn replication_slots(&self) -> Result<Vec<ArrayRef>, SqlError> {
        let path = self.instance.cluster().dir().path().join("pg_replslot");
        let is_empty = match fs::read_dir(&path) {
            Ok(mut entries) => entries.next().is_none(),
            Err(error) if error.kind() == io::ErrorKind::NotFound => true,
            Err(error) => return Err(unreadable(&path, &error)),
        };
        self.none_if(is_empty, "a replication slot")
    }

    /// `pg_show_replication_origin_status()`.
    pub(super) fn replication_origins(&self) -> Result<Vec<ArrayRef>, SqlError> {
        let path = self.instance.cluster().dir().path();
        let path = path.join("pg_logical/replorigin_checkpoint");
        let is_empty = match fs::metadata(&path) {
            Ok(metadata) => metadata.len() <= ORIGINS_BYTES,
            Err(error) if error.kind() == io::ErrorKind::NotFound => true,
            Err(error) => return Err(unreadable(&path, &error)),
        };
        self.none_if(is_empty, "the progress of replication")
    }

    fn none_if(&self, is_empty: bool, what: &str) -> Result<Vec<ArrayRef>, SqlError> {
        if is_empty {
            return Ok(Vec::new());
        }
        Err(SqlError::unsupported(format!(
            "{what} in the data directory is not supported by trunkline"
        )))
    }

    /// The sessions in a database (`pg_stat_get_db_numbackends`).
    pub(super) fn sessions_in(&self, database: u32) -> i32 {
        let all = self.instance.activity();
        let count = all.iter().filter(|session| session.database_oid.0 == database).count();
        i32::try_from(count).unwrap_or(i32::MAX)
    }
}

fn unreadable(path: &std::path::Path, error: &io::Error) -> SqlError {
    SqlError::new(SqlState::IO_ERROR, format!("could not open \"{}\": {error}", path.display()))
}
