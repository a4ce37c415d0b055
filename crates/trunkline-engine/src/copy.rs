//! Tables to the bytes of `COPY … TO`: rows in physical order, as text or CSV.
//!
//! ```text
//!   Task: plans of one output ──▶ thread: scan ──▶ page ──▶ pointers ──▶ TOAST, a page's at once
//!   Task …                          │ rows, columns, types, escapes        │
//!                                   ▼                                      ▼
//!                                 Output: pieces of 128 KiB ◀── line ◀── values
//! ```
//! The bytes are those that the server prints with the same settings ([`TextSettings`]): a table that
//! is read here and one that was dumped can be compared with `cmp`. A task is one output, such as a
//! file, and the tables whose rows go there one after the other: the partitions of a table, say.
//! Threads take one task after the other, so the rows of an output are in order whoever else works.
//!
//! What is damaged ends the copy, or is noted with its place and left out.

mod error;
mod escape;
mod plan;
mod row;
mod work;

use std::io;
use std::time::Duration;

use trunkline_aio::sync::atomic::AtomicUsize;
use trunkline_aio::sync::{Arc, Mutex};
use trunkline_format::text_output::{ByteaOutput, IntervalStyle, TextOptions, TimeZone};

use crate::catalog::Database;
use crate::heap::RowFilter;
use crate::job::{End, IoSummary, Job, Observer};
use crate::pool::{Policy, Pool, ReadWarning, Tally};
use crate::read_stream::{StreamOptions, StreamStats};
use crate::settings::Settings;

pub use error::{CopyError, Finding, PlanError, ValueProblem};
pub use escape::Format;
pub use plan::{ColumnNames, Plan, column_names};
pub use row::Extras;
use work::Copy;

/// The settings of the server's session that show in the text of values.
#[derive(Clone)]
pub struct TextSettings {
    /// The server's major version.
    pub major: u32,
    /// `TimeZone`.
    pub zone: Arc<dyn TimeZone>,
    /// `extra_float_digits`.
    pub extra_float_digits: i8,
    /// `bytea_output`.
    pub bytea_output: ByteaOutput,
    /// `IntervalStyle`.
    pub interval_style: IntervalStyle,
}

impl TextSettings {
    fn options<'a>(&'a self, database: &'a Database) -> TextOptions<'a> {
        TextOptions {
            major: self.major,
            catalog: database,
            zone: &*self.zone,
            extra_float_digits: self.extra_float_digits,
            bytea_output: self.bytea_output,
            interval_style: self.interval_style,
        }
    }
}

/// What to print, and how to read.
#[derive(Clone)]
pub struct CopyOptions {
    /// How rows become bytes.
    pub format: Format,
    /// Whether the first line is the names of the columns.
    pub header: bool,
    /// What is printed before the columns.
    pub extras: Extras,
    /// Which row versions.
    pub rows: RowFilter,
    /// How values become text.
    pub text: TextSettings,
    /// Whether to go on behind what is damaged.
    pub keep_going: bool,
    /// Threads, each with a task of its own; at least 1.
    pub threads: u32,
    /// How each reads. The strategy is chosen by the size of the table.
    pub stream: StreamOptions,
    /// What to do with pages that are not sound.
    pub policy: Policy,
}

impl CopyOptions {
    /// The visible rows as text, in one thread, read as the settings say.
    pub fn of(settings: &Settings, text: TextSettings) -> Self {
        Self {
            format: Format::Text,
            header: false,
            extras: Extras::default(),
            rows: RowFilter::Visible,
            text,
            keep_going: false,
            threads: 1,
            stream: StreamOptions { sequential: true, ..StreamOptions::of(settings) },
            policy: Policy {
                zero_damaged_pages: settings.zero_damaged_pages(),
                ignore_checksum_failure: settings.ignore_checksum_failure(),
            },
        }
    }
}

/// One output, and the tables whose rows go there, one after the other.
#[derive(Debug)]
pub struct Task {
    /// The tables.
    pub plans: Vec<Plan>,
}

/// Where the rows of a task go. Dropped without [`Output::finish`], it is known to lack some.
pub trait Output {
    /// Takes whole lines.
    ///
    /// # Errors
    /// They cannot be written; the copy ends.
    fn write(&mut self, lines: &[u8]) -> io::Result<()>;

    /// That was all; `whole`: nothing was left out because it was damaged.
    ///
    /// # Errors
    /// It cannot be kept; the copy ends.
    fn finish(self: Box<Self>, whole: bool) -> io::Result<()>;
}

/// Makes the outputs of tasks.
pub trait Outputs: Send + Sync {
    /// The output of the task with this number, called in the thread that writes it.
    ///
    /// # Errors
    /// It cannot be made; the copy ends.
    fn open(&self, task: usize) -> io::Result<Box<dyn Output>>;
}

/// What was copied.
#[derive(Debug)]
pub struct CopyReport {
    /// Whether it came to its end.
    pub end: End,
    /// Tasks whose output was finished.
    pub tasks: usize,
    /// Rows.
    pub rows: u64,
    /// Bytes written.
    pub bytes: u64,
    /// Blocks read of the tables themselves.
    pub blocks: u64,
    /// What is damaged and was left out, and the table it is of: the first of them.
    pub findings: Vec<(String, Finding)>,
    /// How many there were in all.
    pub findings_total: u64,
    /// Values that could not be had in row versions that are not live, and are printed as nulls: no
    /// damage, since a vacuum removes what they need before it removes them.
    pub values_gone: u64,
    /// The streams of the tables.
    pub streams: StreamStats,
    /// The streams of their TOAST tables.
    pub toast_streams: StreamStats,
    /// What the pool counted meanwhile, whoever caused it.
    pub counts: Tally,
    /// Pages that the policy let pass.
    pub warnings: Vec<ReadWarning>,
    /// How many more warnings there were than are kept.
    pub warnings_lost: u64,
    /// From the start of the threads to the end of the last.
    pub elapsed: Duration,
    /// The I/O.
    pub io: IoSummary,
}

/// Copies the tables of all tasks.
///
/// # Errors
/// See [`CopyError`].
pub fn copy(
    pool: &Pool,
    database: &Arc<Database>,
    tasks: Vec<Task>,
    outputs: Arc<dyn Outputs>,
    options: CopyOptions,
    observer: Arc<dyn Observer>,
) -> Result<CopyReport, CopyError> {
    let job = Job::new(pool.aio(), observer);
    let copy = Arc::new(Copy {
        pool: pool.clone(),
        database: Arc::clone(database),
        transactions: Arc::clone(database.transactions()),
        tasks,
        next: AtomicUsize::new(0),
        outputs,
        options,
        found: Mutex::default(),
    });
    let before = pool.total();
    let shared = Arc::clone(&copy);
    let summary = job.run(move |job| shared.coordinate(job))?;
    let found = std::mem::take(&mut *copy.found.lock());
    Ok(CopyReport {
        end: summary.end,
        tasks: found.tasks,
        rows: found.rows,
        bytes: found.bytes,
        blocks: summary.blocks,
        findings: found.findings,
        findings_total: found.findings_total,
        values_gone: found.values_gone,
        streams: found.streams,
        toast_streams: found.toast_streams,
        counts: pool.total().since(&before),
        warnings: found.warnings.kept,
        warnings_lost: found.warnings.lost,
        elapsed: summary.working,
        io: summary.io,
    })
}
