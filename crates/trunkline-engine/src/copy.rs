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
//! The output is byte for byte what a server with the same settings ([`TextSettings`]) would
//! produce, so you can compare a copy with a dump using `cmp`.
//!
//! A task is one output, such as a file, together with the tables to be written to it, such as all
//! partitions of a table. A worker always finishes its task before it takes the next one, so the
//! order of the rows within an output doesn't depend on the number of workers.
//!
//! A [`LoadScript`] loads the copies of a database into a server.
//!
//! If we find damage, we either stop the copy, or report the damage with its location and skip it
//! ([`CopyOptions::keep_going`]).

mod copy_job;
mod error;
mod escape;
mod line;
mod load_script;
mod options;
mod output;
mod plan;
mod report;
mod sql_types;
mod table_copy;

pub use copy_job::copy;
pub use error::{CopyError, Finding, PlanError, UnknownRows, ValueProblem};
pub use escape::{CsvQuotes, Format, FormatError, LineFormat, escape_text};
pub use line::Extras;
pub use load_script::{LoadScript, LoadTable};
pub use options::{CopyOptions, TextSettings};
pub use output::{CopyTask, Output, Outputs};
pub use plan::{ColumnNames, Plan, column_names};
pub use report::CopyReport;
