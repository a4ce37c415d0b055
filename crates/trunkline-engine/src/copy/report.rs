//! The results of a copy.
//!
//! If the copy was cancelled, all numbers in the report only cover the part that was done before.

use std::time::Duration;

use super::error::{Finding, UnknownRows};
use crate::job::{End, IoSummary};
use crate::pool::{ReadWarning, Tally};
use crate::read_stream::StreamStats;

/// The result of a copy.
#[derive(Debug, Default)]
pub struct CopyReport {
    /// Whether the copy reached its end.
    pub end: End,
    /// Tasks whose output was completed.
    pub tasks: usize,
    /// Rows written.
    pub rows: u64,
    /// Rows of each task, in the order of the tasks. `None` if its output was not completed.
    pub rows_of_tasks: Vec<Option<u64>>,
    /// Bytes written.
    pub bytes: u64,
    /// Blocks read from the tables, without those of their TOAST tables.
    pub blocks: u64,
    /// Damage that was skipped, with the name of the table. We only keep the first few findings.
    pub findings: Vec<(String, Finding)>,
    /// Rows that were left out because a file of the commit log or of multixacts is missing, short
    /// or unreadable. There is one entry for each table and file. These rows aren't in `findings`.
    pub unknown_rows: Vec<UnknownRows>,
    /// The number of findings, including the rows of unknown visibility.
    pub findings_total: u64,
    /// How many of the findings are pages or files that could not be read. We don't know how many
    /// rows they contain. Each of the other findings is a row.
    pub pages_unreadable: u64,
    /// Number of values that were printed as null because they are no longer available. These
    /// belong to tuples that are not live. This is not damage, because VACUUM removes TOAST chunks
    /// before it removes the rows that refer to them.
    pub values_gone: u64,
    /// The streams of the tables.
    pub streams: StreamStats,
    /// The streams of their TOAST tables.
    pub toast_streams: StreamStats,
    /// How much the pool's counters changed during the copy. This includes changes caused by other
    /// sessions.
    pub counts: Tally,
    /// Damaged pages that the policy let pass.
    pub warnings: Vec<ReadWarning>,
    /// Number of warnings beyond those kept.
    pub warnings_lost: u64,
    /// From the workers' start until the last worker ended.
    pub elapsed: Duration,
    /// The I/O.
    pub io: IoSummary,
}
