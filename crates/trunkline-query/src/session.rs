//! **Sessions**: one connection's statements, settings, transaction, prepared statements and portals.
//!
//! ```text
//!   RawStatement ── Session::execute ──▶ Outcome: Rows, CopyOut, or the tag of a command
//!
//!   several of a text: begin_in_series before each, end_series after the last
//!
//!   prepare ── bind_portal ── execute_portal ──▶ Outcome          (the extended protocol)
//! ```
//!
//! A session knows nothing of a network: a server or a command line calls it, encodes the rows, and
//! sends the notices and the changed parameters that have come up meanwhile.

mod activity_rows;
mod binding;
mod client_values;
mod commands;
mod copy;
mod cursors;
mod effects;
mod encoders;
mod explain;
mod functions;
mod maintenance;
mod outcome;
mod portals;
mod prepared;
mod refusal;
mod running;
mod series;
#[expect(clippy::module_inception, reason = "the folder's name is that of its type")]
mod session;
mod session_rows;
mod setting_rows;
mod sql_prepare;
mod startup;
mod statistics_rows;
mod transaction;

pub use outcome::{Notice, Outcome, Severity, StatementDescription, TransactionStatus};
pub use running::{ClientWrite, SessionCanceller};
pub use session::Session;
pub use startup::Startup;
