//! Sums a column of a table by a sequential scan through the buffer pool, alone or with parallel
//! workers.
//!
//! ```text
//!   ParallelRange ──▶ leader  ── stream ──▶ page, content lock ──▶ sum_int4 ─┐
//!     parts of the    worker  ── stream ──▶ ...                              ├─▶ total
//!     table           worker  ── stream ──▶ ...                             ─┘
//! ```
//!
//! It stands in for `SELECT sum(column) FROM table` where there is no catalog: the caller says where
//! the column lies in a row. As in PostgreSQL the leader scans too, every participant takes the next
//! part of the table when it has finished one, and a table larger than a quarter of the pool goes
//! round in a ring of buffers. A sum does not depend on the order of its rows, so the streams are
//! unordered: whichever page is there is summed.
//!
//! The first page that cannot be had ends the scan, as it ends a query. Rows whose visibility only
//! the commit log knows are counted, never summed.

use std::fmt;
use std::io;
use std::time::Duration;

use trunkline_aio::sync::{Arc, Mutex};
use trunkline_format::{BLOCK_SIZE, BlockNo, FixedColumn, PageSum, sum_int4};

use crate::pool::{Backend, BackendType, Policy, Pool, ReadError, ReadWarning, Strategy, Tally};
use crate::read_stream::{ParallelRange, ReadStream, StreamOptions, StreamStats};
use crate::scan::{Body, End, IoSummary, Job, JobError, Observer, ReadOptions, Visitor};
use crate::settings::Settings;
use crate::storage::Relation;

/// Pages between two looks at whether to stop.
const PAGES_UNSEEN_MAX: u32 = 64;

/// What to sum, and how.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct SumOptions {
    /// Where the column is.
    pub column: FixedColumn,
    /// Participants beside the leader.
    pub workers: u32,
    /// How each participant reads. The strategy is chosen by the size of the table.
    pub stream: StreamOptions,
    /// What to do with pages that are not sound.
    pub policy: Policy,
}

impl SumOptions {
    /// As the settings say: a sequential, unordered stream for each participant.
    pub fn of(settings: &Settings, column: FixedColumn, workers: u32) -> Self {
        let stream =
            StreamOptions { unordered: true, sequential: true, ..StreamOptions::of(settings) };
        let policy = Policy {
            zero_damaged_pages: settings.zero_damaged_pages(),
            ignore_checksum_failure: settings.ignore_checksum_failure(),
        };
        Self { column, workers, stream, policy }
    }
}

/// The result of a scan.
#[derive(Debug)]
pub struct SumReport {
    /// Whether it came to its end; otherwise everything here is of a part.
    pub end: End,
    /// Rows and their sum.
    pub total: PageSum,
    /// The first row that is not sound, by block and line pointer, if there is one.
    pub corrupt: Option<(BlockNo, u16)>,
    /// Pages summed.
    pub blocks: u64,
    /// Whether it went round in a ring of buffers.
    pub strategy: Strategy,
    /// The streams of all participants together.
    pub streams: StreamStats,
    /// What the pool counted meanwhile, whoever caused it.
    pub counts: Tally,
    /// Pages that the policy let pass.
    pub warnings: Vec<ReadWarning>,
    /// How many more warnings there were than are kept.
    pub warnings_lost: u64,
    /// From the start of the participants to the end of the last.
    pub elapsed: Duration,
    /// The I/O.
    pub io: IoSummary,
}

impl SumReport {
    /// Bytes of the pages that were summed.
    pub fn bytes(&self) -> u64 {
        self.blocks * BLOCK_SIZE as u64
    }

    /// Bytes summed per second.
    pub fn bytes_per_second(&self) -> f64 {
        self.bytes() as f64 / self.elapsed.as_secs_f64().max(1e-9)
    }

    /// Whether the sum is that of all visible rows, warnings apart.
    pub fn is_exact(&self) -> bool {
        self.end == End::Complete && self.total.is_exact()
    }
}

/// Why there is no sum.
#[derive(Debug)]
pub enum SumError {
    /// A page could not be had.
    Read(ReadError),
    /// There are no threads or sessions for it.
    Job(JobError),
}

impl fmt::Display for SumError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            SumError::Read(error) => error.fmt(f),
            SumError::Job(error) => error.fmt(f),
        }
    }
}

impl std::error::Error for SumError {
    fn source(&self) -> Option<&(dyn std::error::Error + 'static)> {
        match self {
            SumError::Read(error) => Some(error),
            SumError::Job(error) => Some(error),
        }
    }
}

/// Sums a column over the visible rows of a table.
///
/// # Errors
/// See [`SumError`].
pub fn sum(
    pool: &Pool,
    relation: &Relation,
    options: SumOptions,
    observer: Arc<dyn Observer>,
) -> Result<SumReport, SumError> {
    let read = ReadOptions {
        direct: relation.storage().is_direct(),
        depth: options.stream.concurrency,
        combine_blocks: options.stream.combine,
    };
    let job = Job::new(pool.aio(), read, Arc::new(NoVisitor), observer);
    let scan = Arc::new(Scan {
        pool: pool.clone(),
        relation: relation.clone(),
        options,
        found: Mutex::default(),
    });
    let before = pool.total();
    let conducted = Arc::clone(&scan);
    let outline = job.run(move |job| conducted.conduct(job)).map_err(SumError::Job)?;
    let found = std::mem::take(&mut *scan.found.lock());
    if let Some(error) = found.failure {
        return Err(SumError::Read(error));
    }
    Ok(SumReport {
        end: outline.end,
        total: found.total,
        corrupt: found.corrupt,
        blocks: outline.blocks,
        strategy: found.strategy.unwrap_or(Strategy::Normal),
        streams: found.streams,
        counts: pool.total().since(&before),
        warnings: found.warnings,
        warnings_lost: found.warnings_lost,
        elapsed: outline.reading,
        io: outline.io,
    })
}

/// A scan's pages are its streams' matter.
struct NoVisitor;

impl Visitor for NoVisitor {}

/// One scan, shared by its participants.
struct Scan {
    pool: Pool,
    relation: Relation,
    options: SumOptions,
    found: Mutex<Found>,
}

#[derive(Default)]
struct Found {
    strategy: Option<Strategy>,
    total: PageSum,
    corrupt: Option<(BlockNo, u16)>,
    streams: StreamStats,
    warnings: Vec<ReadWarning>,
    warnings_lost: u64,
    failure: Option<ReadError>,
}

impl Found {
    fn note_corrupt(&mut self, corrupt: Option<(BlockNo, u16)>) {
        self.corrupt = match (self.corrupt, corrupt) {
            (Some(one), Some(other)) => Some(one.min(other)),
            (one, other) => one.or(other),
        };
    }
}

impl Scan {
    fn conduct(self: &Arc<Self>, job: &Arc<Job>) -> Result<(), JobError> {
        let blocks = match self.relation.blocks() {
            Ok(blocks) => blocks,
            Err(error) => {
                self.found.lock().failure = Some(error.into());
                return Ok(());
            }
        };
        // PostgreSQL's rule: a larger table would drive everything else out of the pool.
        let bulk = blocks > self.pool.buffers() / 4;
        let strategy = if bulk { Strategy::BulkRead } else { Strategy::Normal };
        self.found.lock().strategy = Some(strategy);
        job.observer.begins(1, u64::from(blocks) * BLOCK_SIZE as u64);
        let parts = ParallelRange::new(blocks);
        let bodies = (0..=self.options.workers).map(|number| -> Body {
            let (scan, parts) = (Arc::clone(self), parts.clone());
            let kind = match number {
                0 => BackendType::Standalone,
                _ => BackendType::BackgroundWorker,
            };
            Box::new(move |job| scan.participate(job, parts, kind, strategy))
        });
        job.in_threads(bodies.collect(), || Ok(()))
    }

    fn participate(
        &self,
        job: &Job,
        parts: ParallelRange,
        kind: BackendType,
        strategy: Strategy,
    ) -> Result<(), JobError> {
        let backend = self.pool.backend(kind);
        let mut backend = backend.map_err(|error| JobError::Start(io::Error::other(error)))?;
        job.enrol(backend.session().canceller());
        backend.set_policy(self.options.policy);
        let options = StreamOptions { strategy, ..self.options.stream };
        let mut stream = ReadStream::new(&backend, &self.relation, parts, options);
        let mut own = Found::default();
        let ended = self.sum_pages(job, &mut backend, &mut stream, &mut own);
        let streams = stream.stats();
        // Their counts are seen once they are gone.
        drop(stream);
        (own.warnings, own.warnings_lost) = backend.take_warnings();
        drop(backend);
        let mut found = self.found.lock();
        found.total.add(&own.total);
        found.note_corrupt(own.corrupt);
        found.streams.add(&streams);
        found.warnings.append(&mut own.warnings);
        found.warnings_lost += own.warnings_lost;
        match ended {
            // To be cancelled is a way to end, and the caller knows.
            Ok(()) | Err(ReadError::Cancelled) => {}
            Err(error) => {
                found.failure.get_or_insert(error);
                job.stop();
            }
        }
        Ok(())
    }

    fn sum_pages(
        &self,
        job: &Job,
        backend: &mut Backend,
        stream: &mut ReadStream<ParallelRange>,
        own: &mut Found,
    ) -> Result<(), ReadError> {
        let mut unseen = 0;
        while let Some(found) = stream.next(backend)? {
            let block = found.block;
            let page = backend.read_lock(found.pin)?;
            let sum = sum_int4(&page, self.options.column);
            drop(page);
            own.total.add(&sum);
            own.note_corrupt(sum.corrupt.map(|item| (block, item)));
            unseen += 1;
            if unseen == PAGES_UNSEEN_MAX {
                job.count(std::mem::take(&mut unseen), PAGES_UNSEEN_MAX);
                if job.is_stopping() {
                    return Ok(());
                }
            }
        }
        job.count(unseen, unseen);
        Ok(())
    }
}
