//! **Queries**: executes bound statements with DataFusion over the storage engine.
//!
//! ```text
//!   BoundStatement ── lower ──▶ logical plan ── DataFusion ──▶ physical plan ──▶ Rows: batches
//!                      │                                         │
//!                      ├ expression: programs of kernels         └ scan: polled heap scans
//!                      └ aggregate: states of groups
//! ```
//!
//! The meaning of a statement is decided before: by the binder, which has resolved all names and
//! types, and by the kernels and aggregates of `trunkline-sql`. DataFusion chooses and runs joins,
//! sorts, grouping and parallelism. This is the only crate that names it.
//!
//! A statement is executed by [`execute`], in a runtime of tokio:
//!
//! ```no_run
//! use trunkline_query::{Rows, StatementContext, execute};
//! use trunkline_sql::{SqlError, bound::BoundStatement};
//!
//! async fn count_rows(
//!     statement: &BoundStatement,
//!     context: &StatementContext,
//! ) -> Result<usize, SqlError> {
//!     let mut rows: Rows = execute(statement, context).await?;
//!     let mut count = 0;
//!     while let Some(batch) = rows.next().await? {
//!         count += batch.num_rows();
//!     }
//!     Ok(count)
//! }
//! ```
//!
//! The arrays of a batch hold PostgreSQL's stored values, as [`trunkline_sql::values`] describes;
//! [`Rows::columns`] has their types.

#![forbid(unsafe_code)]

mod access_path;
mod adaptive_join;
mod aggregate;
mod append;
mod children;
mod compaction;
pub mod encode;
mod environment;
pub mod error;
mod explain;
mod expression;
mod extension;
mod file_sizes;
mod hidden_constants;
mod index_join;
mod instance;
mod interruption;
mod lower;
mod materialized;
mod merge_keys;
mod operator;
mod ordered_scan;
mod pass_through;
mod scan;
mod server;
mod session;
mod session_thread;
mod settings;
mod statement;
mod subplan;

pub use access_path::PlannerSettings;
/// The rows that [`Rows::next`] returns.
pub use arrow_array::RecordBatch;
pub use environment::{Environment, ParameterValue, collations};
pub use extension::create_extension;
pub use file_sizes::FileSizes;
pub use instance::{
    Activity, ActivityState, DatabaseViews, Instance, InstanceOptions, OpenedDatabase, SessionWait,
    configure_engine,
};
pub use scan::{CancelCause, Cancellation};
pub use session::{
    ClientWrite, Notice, Outcome, Session, SessionCanceller, Severity, Startup,
    StatementDescription, TransactionStatus,
};
pub use session_thread::in_session_thread;
pub use statement::{
    ResultColumn, Rows, StatementContext, StatementOptions, execute, explain, result_columns,
    rule_names,
};
