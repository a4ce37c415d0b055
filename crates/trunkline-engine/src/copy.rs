//! **COPY TO.** Writes table rows in physical order, in the text or CSV format of PostgreSQL's
//! `COPY … TO`, without a server.
//!
//! ```text
//!   CopyTask: plans of one output ──▶ worker: heap scan ──▶ page ──▶ TOAST pointers ──▶ fetch
//!   CopyTask …                          │ rows, columns, types, escapes                 │
//!                                       ▼                                               ▼
//!                                     Output: pieces of 128 KiB ◀── line ◀───────── values
//! ```
//!
//! The output is identical to a server's with the same settings ([`TextSettings`]), so a copy and a
//! dump can be compared with `cmp`.
//!
//! A task consists of one output, such as a file, and the tables to write to it, such as all
//! partitions of a table. A worker finishes its task before it takes another one. An output's rows
//! are therefore in order, no matter how many workers there are.
//!
//! Damage either ends the copy, or is reported with its location and skipped
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
