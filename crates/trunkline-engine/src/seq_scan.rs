//! **Parallel sequential scan** of a table through the buffer pool.
//!
//! ```text
//!   ParallelRange ──▶ leader  ── read stream ──▶ page, content lock ──▶ consumer
//!     chunks of       worker  ── read stream ──▶ ...                ──▶ consumer
//!     the table       worker  ── read stream ──▶ ...                ──▶ consumer
//! ```
//!
//! It works like PostgreSQL's parallel sequential scan. The leader scans the table too, and a
//! participant that has finished its chunk of blocks takes the next one
//! (`table_block_parallelscan_nextpage`). If the table is larger than a quarter of the pool, we use
//! a ring buffer, so that the scan doesn't evict other sessions' working sets.
//!
//! Each participant passes its pages to its own [`PageConsumer`], and the caller combines the
//! consumers' results at the end. The participants therefore don't share any data during the scan.
//! Their streams are unordered, which means that a participant always processes the next page that
//! becomes available, regardless of its position in the table.
//!
//! As in a query, the first unreadable page ends the scan.

use std::time::Duration;

use thiserror::Error;
use trunkline_aio::facade::{Arc, Mutex};
use trunkline_format::{BLOCK_SIZE, BlockNo, PageBytes};

use crate::job::{End, IoSummary, Job, JobError, Observer, WarningLog, bytes_per_second};
use crate::pool::{Policy, Pool, ReadError, ReadWarning, Strategy, Tally};
use crate::read_stream::{ParallelRange, ReadStream, StreamOptions, StreamStats};
use crate::settings::Settings;
use crate::storage::Relation;

/// How to scan a table.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct SeqScanOptions {
    /// Participants in addition to the leader.
    pub workers: u32,
    /// How each participant reads. The strategy depends on the size of the table.
    pub stream: StreamOptions,
    /// What to do with damaged pages (`zero_damaged_pages`, `ignore_checksum_failure`).
    pub policy: Policy,
}

impl SeqScanOptions {
    /// The options according to the settings, with a sequential, unordered stream for each
    /// participant.
    pub fn of(settings: &Settings, workers: u32) -> Self {
        let stream =
            StreamOptions { unordered: true, sequential: true, ..StreamOptions::of(settings) };
        Self { workers, stream, policy: Policy::of(settings) }
    }
}

/// Processes one participant's pages. Only one thread calls it.
pub trait PageConsumer: Send + 'static {
    /// Processes one page of the table while holding a share lock on it. The consumer must not wait
    /// for another page in this function.
    fn page(&mut self, block: BlockNo, page: &PageBytes);
}

/// The result of a scan.
#[derive(Debug)]
pub struct SeqScanReport {
    /// Whether the scan reached the end of the table. If not, the other fields cover only part of
    /// the table.
    pub end: End,
    /// Pages scanned.
    pub blocks: u64,
    /// Whether the scan used a ring buffer.
    pub strategy: Strategy,
    /// The streams of all participants together.
    pub streams: StreamStats,
    /// Changes in the pool's counters during the scan, including those caused by other sessions.
    pub counts: Tally,
    /// Damaged pages that the policy accepted.
    pub warnings: Vec<ReadWarning>,
    /// Number of warnings beyond those kept.
    pub warnings_lost: u64,
    /// From the participants' start until the last participant ended.
    pub elapsed: Duration,
    /// The I/O.
    pub io: IoSummary,
}

impl SeqScanReport {
    /// Bytes of the pages scanned.
    pub fn bytes(&self) -> u64 {
        self.blocks * BLOCK_SIZE as u64
    }

    /// Bytes scanned per second.
    pub fn bytes_per_second(&self) -> f64 {
        bytes_per_second(self.bytes(), self.elapsed)
    }
}

/// Why a scan failed.
#[derive(Debug, Error)]
pub enum SeqScanError {
    /// A page could not be read.
    #[error(transparent)]
    Read(#[from] ReadError),
    /// No threads or sessions could be started.
    #[error(transparent)]
    Job(#[from] JobError),
}

/// The access strategy for reading a relation of `blocks` blocks once, in a pool of `buffers`
/// buffers. As in PostgreSQL's `initscan`, we use a ring buffer if the relation is larger than a
/// quarter of shared buffers.
pub(crate) fn scan_strategy(blocks: BlockNo, buffers: u32) -> Strategy {
    if blocks > buffers / 4 { Strategy::BulkRead } else { Strategy::Normal }
}

/// Scans a table. `consumer` is called once per participant to create its consumer. All consumers
/// are returned, even if the scan was cancelled.
///
/// # Errors
/// See [`SeqScanError`].
pub fn seq_scan<C: PageConsumer>(
    pool: &Pool,
    relation: &Relation,
    options: SeqScanOptions,
    observer: Arc<dyn Observer>,
    consumer: impl Fn() -> C + Send + Sync + 'static,
) -> Result<(Vec<C>, SeqScanReport), SeqScanError> {
    let job = Job::new(pool.aio(), observer);
    let scan = Arc::new(Scan {
        pool: pool.clone(),
        relation: relation.clone(),
        options,
        results: Mutex::new(Results::default()),
    });
    let before = pool.total();
    let shared = Arc::clone(&scan);
    let summary = job.run(move |job| shared.coordinate(job, consumer))?;
    let results = std::mem::take(&mut *scan.results.lock());
    let report = SeqScanReport {
        end: summary.end,
        blocks: summary.blocks,
        strategy: results.strategy.unwrap_or(Strategy::Normal),
        streams: results.streams,
        counts: pool.total().since(&before),
        warnings: results.warnings.kept,
        warnings_lost: results.warnings.lost,
        elapsed: summary.working,
        io: summary.io,
    };
    Ok((results.consumers, report))
}

/// One scan, shared by its participants.
struct Scan<C> {
    pool: Pool,
    relation: Relation,
    options: SeqScanOptions,
    results: Mutex<Results<C>>,
}

/// The results of the participants that have finished.
struct Results<C> {
    strategy: Option<Strategy>,
    consumers: Vec<C>,
    streams: StreamStats,
    warnings: WarningLog,
}

impl<C> Default for Results<C> {
    fn default() -> Self {
        let (streams, warnings) = (StreamStats::default(), WarningLog::default());
        Self { strategy: None, consumers: Vec::new(), streams, warnings }
    }
}

impl<C: PageConsumer> Scan<C> {
    /// Determines the length of the table and the access strategy, and then runs the participants.
    /// We do this only once, so that all participants use the same values.
    fn coordinate(
        self: Arc<Self>,
        job: &Arc<Job>,
        consumer: impl Fn() -> C + Send + Sync + 'static,
    ) -> Result<(), SeqScanError> {
        let blocks = self.relation.blocks().map_err(ReadError::from)?;
        let strategy = scan_strategy(blocks, self.pool.buffers());
        self.results.lock().strategy = Some(strategy);
        job.observer().begins(1, u64::from(blocks) * BLOCK_SIZE as u64);
        let chunks = ParallelRange::new(blocks);
        let participants = self.options.workers as usize + 1;
        job.run_workers(
            participants,
            || Ok(()),
            move |job, number| self.participate(job, number, strategy, chunks.clone(), consumer()),
        )
    }

    /// Scans chunks in one participant until there are no more.
    fn participate(
        &self,
        job: &Job,
        number: usize,
        strategy: Strategy,
        chunks: ParallelRange,
        mut consumer: C,
    ) -> Result<(), SeqScanError> {
        let kind = Job::backend_type(number);
        let mut backend = job.backend(&self.pool, kind, self.options.policy)?;
        let options = StreamOptions { strategy, ..self.options.stream };
        let mut stream = ReadStream::new(&backend, &self.relation, chunks, options);
        let mut progress = job.page_progress();
        let ended = loop {
            let found = match stream.next(&mut backend) {
                Ok(Some(found)) => found,
                Ok(None) => break Ok(()),
                Err(error) => break Err(error),
            };
            let block = found.block;
            match backend.read_lock(found.pin) {
                Ok(page) => consumer.page(block, &page),
                Err(error) => break Err(error.into()),
            }
            if !progress.page_done() {
                break Ok(());
            }
        };
        let mut results = self.results.lock();
        results.consumers.push(consumer);
        results.streams.add(&stream.stats());
        results.warnings.take_from(&mut backend);
        drop(results);
        match ended {
            // Cancellation doesn't count as a scan error, because the caller asked for it.
            Ok(()) | Err(ReadError::Cancelled) => Ok(()),
            Err(error) => Err(error.into()),
        }
    }
}
