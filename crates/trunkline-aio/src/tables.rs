//! An instance's tables: handles, sessions, slots, statistics, and admission.
//!
//! These tables correspond to what PostgreSQL keeps in shared memory in `PgAioCtl`. We allocate all
//! of them at startup. The code in this layer doesn't start any threads and doesn't perform any
//! I/O.

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
