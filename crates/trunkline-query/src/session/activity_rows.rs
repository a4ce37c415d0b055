//! The rows of `pg_stat_activity`: a row for each session, and one for each I/O worker.
//!
//! A session that waits for its client shows `ClientRead`, or `ClientWrite` while the client doesn't take
//! its rows. The tasks of a running statement are many. It shows an event of I/O while one of them waits
//! for pages, with PostgreSQL's names for the I/O method in use, and `pg_aios` shows what they read. With
//! the method `sync`, a task reads without leaving its thread, and only values in TOAST tables, which
//! other threads fetch, are waited for.

use arrow_array::ArrayRef;
use trunkline_aio::MethodKind;
use trunkline_format::Oid;
use trunkline_format::text_output::Type;
use trunkline_sql::SqlError;
use trunkline_sql::functions::stored_address;
use trunkline_sql::values::Carrier;

use super::functions::SessionFunctions;
use crate::instance::{Activity, SessionWait};
use crate::server::{RowBuilder, Value};

/// `pg_stat_get_activity(int4)`.
const FUNCTION: Oid = Oid(2022);

impl SessionFunctions {
    /// `pg_stat_get_activity(pid)`: the row of one session, or all rows.
    pub(super) fn activity(&self, pid: Option<i32>) -> Result<Vec<ArrayRef>, SqlError> {
        // The columns differ between versions.
        let catalog = &self.names.catalog;
        let procedure = catalog.procedure(FUNCTION);
        let procedure =
            procedure.ok_or_else(|| SqlError::internal("pg_stat_get_activity isn't in pg_proc"))?;
        let outputs = procedure.parameters().iter().filter(|one| !one.mode.is_input());
        let (mut names, mut carriers) = (Vec::new(), Vec::new());
        for output in outputs {
            let ty = Type::resolve(output.type_oid, &**catalog.database());
            let ty = ty.map_err(|error| SqlError::unsupported(error.to_string()))?;
            names.push(&*output.name);
            carriers.push(Carrier::of(&ty));
        }
        let is_shown = |found: i32| pid.is_none_or(|pid| pid == found);
        let mut rows = RowBuilder::new(&carriers);
        let method = self.instance.engine().aio().method_status().used;
        let workers = self.instance.engine().aio().worker_count();
        for worker in (1..).take(workers).filter(|worker| is_shown(*worker)) {
            let row: Vec<Value> = names.iter().map(|name| worker_value(worker, name)).collect();
            rows.push(&row)?;
        }
        for session in self.instance.activity().iter().filter(|one| is_shown(one.pid)) {
            let user = self.role(&session.user)?;
            let row = names.iter().map(|name| session_value(session, user, method, name));
            rows.push(&row.collect::<Vec<_>>())?;
        }
        Ok(rows.finish())
    }

    /// The OID of a role, if the directory has it.
    fn role(&self, name: &str) -> Result<Option<Oid>, SqlError> {
        let catalog = &self.names.catalog;
        let Some(stored) = catalog.encoding().encode(name) else { return Ok(None) };
        Ok(catalog.definitions().role_named(&stored)?.map(|role| role.oid))
    }
}

/// A column of a session's row. Those that we don't know are null.
fn session_value(session: &Activity, user: Option<Oid>, method: MethodKind, name: &[u8]) -> Value {
    let time = |time: Option<i64>| time.map_or(Value::Null, Value::Time);
    match name {
        b"datid" => Value::Oid(session.database_oid.0),
        b"pid" => Value::Int4(session.pid),
        b"usesysid" => user.map_or(Value::Null, |oid| Value::Oid(oid.0)),
        b"application_name" => Value::Text(session.application_name.clone()),
        b"state" => Value::Text(session.state.name().to_owned()),
        b"query" => Value::Text(session.query.clone()),
        b"wait_event_type" => Value::text(session.wait.map(|wait| wait_event(wait, method).0)),
        b"wait_event" => Value::text(session.wait.map(|wait| wait_event(wait, method).1)),
        b"xact_start" => time(session.transaction_start),
        b"query_start" => time(session.query_start),
        b"backend_start" => Value::Time(session.backend_start),
        b"state_change" => Value::Time(session.state_change),
        b"client_addr" => {
            session.client_address.map_or(Value::Null, |at| Value::Bytes(stored_address(at)))
        }
        // A local client has the port -1.
        b"client_port" => {
            Value::Int4(session.client_address.map_or(-1, |address| address.port().into()))
        }
        b"backend_type" => Value::Text("client backend".to_owned()),
        _ => Value::Null,
    }
}

/// `wait_event_type` and `wait_event`.
fn wait_event(wait: SessionWait, method: MethodKind) -> (&'static str, &'static str) {
    match (wait, method) {
        (SessionWait::ClientRead, _) => ("Client", "ClientRead"),
        (SessionWait::ClientWrite, _) => ("Client", "ClientWrite"),
        (SessionWait::Io, MethodKind::Sync) => ("IO", "DataFileRead"),
        (SessionWait::Io, MethodKind::Worker | MethodKind::Custom) => ("IO", "AioIoCompletion"),
        (SessionWait::Io, MethodKind::IoUring) => ("IO", "AioIoUringExecution"),
    }
}

/// A column of an I/O worker's row.
fn worker_value(worker: i32, name: &[u8]) -> Value {
    match name {
        b"pid" => Value::Int4(worker),
        b"query" => Value::Text(String::new()),
        b"backend_type" => Value::Text("io worker".to_owned()),
        _ => Value::Null,
    }
}
