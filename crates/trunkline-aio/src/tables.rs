//! An instance's tables: handles, sessions, slots, statistics, and admission.
//!
//! They correspond to what PostgreSQL keeps in `PgAioCtl` in shared memory. All of them are
//! allocated at start. This layer doesn't start threads or perform I/O.

pub(crate) mod admission;
pub(crate) mod callback;
pub(crate) mod class;
pub(crate) mod completer;
pub(crate) mod deferred;
pub(crate) mod handle;
pub(crate) mod handle_table;
pub(crate) mod method_kind;
pub(crate) mod probe;
pub(crate) mod session_table;
pub(crate) mod slots;
pub(crate) mod snapshot;
pub(crate) mod statistics;
pub(crate) mod wake_batch;
