//! The part of the server that a statement's functions see, and what they all need.

use std::fmt;
use std::sync::Arc;

use arrow_array::cast::AsArray;
use arrow_array::types::{Int32Type, Int64Type, UInt32Type};
use trunkline_engine::Engine;
use trunkline_engine::catalog::{Database, RelationInfo};
use trunkline_engine::pool::Backend;
use trunkline_engine::settings::Settings;
use trunkline_engine::storage::Relation;
use trunkline_format::Oid;
use trunkline_sql::functions::{Argument, ServerFunctions};
use trunkline_sql::{SqlError, SqlState};

use crate::scan::{Cancellation, PageCounter};
use crate::session_thread::is_session_thread;

/// What the functions of one statement see.
#[derive(Clone)]
pub(crate) struct ServerView {
    pub(super) engine: Engine,
    /// How the statement reads.
    pub(super) io: Arc<Settings>,
    pub(super) database: Arc<Database>,
    pub(super) cancellation: Cancellation,
    /// What streams of functions have read, for the node of the plan that calls them.
    pub(super) pages: PageCounter,
    /// When the statement began, in microseconds since 2000.
    pub(super) statement_start: i64,
    /// Functions that see the session, if there is one.
    pub(super) session_functions: Option<Arc<dyn ServerFunctions>>,
}

impl fmt::Debug for ServerView {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("ServerView").finish_non_exhaustive()
    }
}

impl ServerView {
    pub(crate) fn new(
        engine: Engine,
        io: Arc<Settings>,
        database: Arc<Database>,
        cancellation: Cancellation,
        statement_start: i64,
        session_functions: Option<Arc<dyn ServerFunctions>>,
    ) -> Self {
        let pages = PageCounter::default();
        Self { engine, io, database, cancellation, pages, statement_start, session_functions }
    }

    /// The same view for a node of the plan, with a counter of its own.
    pub(crate) fn counting(&self, pages: PageCounter) -> Self {
        Self { pages, ..self.clone() }
    }

    /// Opens a session that is cancelled with the statement.
    pub(super) fn session(&self) -> Result<Backend, SqlError> {
        self.cancellation.check()?;
        let backend = self.engine.session();
        let mut backend = backend
            .map_err(|error| SqlError::new(SqlState::TOO_MANY_CONNECTIONS, error.to_string()))?;
        self.cancellation.register(backend.session().canceller());
        Ok(backend)
    }

    /// The relation with this OID (`relation_open`).
    pub(super) fn relation(&self, oid: u32) -> Result<&RelationInfo, SqlError> {
        self.database
            .relation(Oid(oid))
            .ok_or_else(|| SqlError::internal(format!("could not open relation with OID {oid}")))
    }

    /// The main forks of all relations that have files.
    pub(super) fn stored_relations(&self) -> impl Iterator<Item = (&RelationInfo, Relation)> {
        let relations = self.database.relations().iter();
        relations.filter_map(|relation| Some((relation, self.database.files(relation)?)))
    }
}

/// Runs work that may block its thread. If that has other tasks, and the runtime has several threads, they
/// are moved to another one first.
#[cfg(feature = "multi-thread")]
pub(super) fn blocking<T>(work: impl FnOnce() -> T) -> T {
    use tokio::runtime::{Handle, RuntimeFlavor};
    match Handle::try_current().map(|runtime| runtime.runtime_flavor()) {
        Ok(RuntimeFlavor::MultiThread) if !is_session_thread() => tokio::task::block_in_place(work),
        _ => work(),
    }
}

/// Runs work that may block its thread, which is the only one of the runtime.
#[cfg(not(feature = "multi-thread"))]
pub(super) fn blocking<T>(work: impl FnOnce() -> T) -> T {
    work()
}

/// An argument of type `int4` in a row.
pub(super) fn int4(arguments: &[Argument], at: usize, row: usize) -> Option<i32> {
    let argument = arguments.get(at).filter(|argument| !argument.is_null(row))?;
    Some(argument.array().as_primitive_opt::<Int32Type>()?.value(argument.row(row)))
}

/// An argument of type `int8` in a row.
pub(super) fn int8(arguments: &[Argument], at: usize, row: usize) -> Option<i64> {
    let argument = arguments.get(at).filter(|argument| !argument.is_null(row))?;
    Some(argument.array().as_primitive_opt::<Int64Type>()?.value(argument.row(row)))
}

/// An argument of type `regclass` in a row.
pub(super) fn oid(arguments: &[Argument], at: usize, row: usize) -> Option<u32> {
    let argument = arguments.get(at).filter(|argument| !argument.is_null(row))?;
    Some(argument.array().as_primitive_opt::<UInt32Type>()?.value(argument.row(row)))
}

/// An argument of type `text` in a row.
pub(super) fn text(arguments: &[Argument], at: usize, row: usize) -> Option<&str> {
    let argument = arguments.get(at).filter(|argument| !argument.is_null(row))?;
    Some(argument.array().as_string_view_opt()?.value(argument.row(row)))
}

/// An argument that is an array, as its payload.
pub(super) fn array(arguments: &[Argument], at: usize, row: usize) -> Option<&[u8]> {
    let argument = arguments.get(at).filter(|argument| !argument.is_null(row))?;
    Some(argument.array().as_binary_view_opt()?.value(argument.row(row)))
}
