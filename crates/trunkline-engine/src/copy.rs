//! **COPY TO.** Writes the rows of tables in physical order, in the text or CSV format of
//! PostgreSQL's `COPY … TO`, without a server.
//!
//! ```text
//!   CopyTask: plans of one output ──▶ worker: heap scan ──▶ page ──▶ TOAST pointers ──▶ fetch
//!   CopyTask …                          │ rows, columns, types, escapes                 │
//!                                       ▼                                               ▼
//!                                     Output: pieces of 128 KiB ◀── line ◀───────── values
//! ```
//!
//! The output is identical to that of a server with the same settings ([`TextSettings`]), so a copy
//! and a dump can be compared with `cmp`.
//!
//! A task has one output, such as a file, and the tables whose rows are written to it, for example
//! the partitions of a table. A worker finishes its task before it takes the next one. The rows of
//! an output are therefore in order, however many workers there are.
//!
//! Damage ends the copy, or is reported with its location and skipped
//! ([`CopyOptions::keep_going`]).

mod copy_job;
mod error;
mod escape;
mod line;
mod options;
mod output;
mod plan;
mod report;
mod table_copy;

pub use copy_job::copy;
pub use error::{CopyError, Finding, PlanError, ValueProblem};
pub use escape::Format;
pub use line::Extras;
pub use options::{CopyOptions, TextSettings};
pub use output::{CopyTask, Output, Outputs};
pub use plan::{ColumnNames, Plan, column_names};
pub use report::CopyReport;
