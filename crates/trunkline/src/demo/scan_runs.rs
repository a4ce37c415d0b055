//! Prewarms and sums the table with every I/O method, buffered and direct. All runs use the same
//! I/O instance and the same pool, and we switch the method between runs. Before a cold run, we
//! remove the table from the pool and from the operating system's cache.
//!
//! On a slow disk, cold runs of a large table can take minutes, so we limit the total time of the
//! cold runs. Each configuration gets an equal share of the time that remains. If the previous run
//! suggests that the next cold run would exceed this share, we skip the configuration's remaining
//! cold runs. Any time that a fast configuration doesn't use is available to later configurations.

use std::cell::Cell;
use std::time::Duration;

use trunkline_aio::facade::Arc;
use trunkline_aio::facade::Mutex;
use trunkline_aio::facade::atomic::{AtomicBool, AtomicU64, Ordering};
use trunkline_aio::{Aio, IoRow};
use trunkline_engine::Engine;
use trunkline_engine::job::{JobError, Observer};
use trunkline_engine::pool::ReadError;
use trunkline_engine::pool::Tally;
use trunkline_engine::prewarm::{BufferOptions, Target, into_pool};
use trunkline_engine::seq_scan::{SeqScanError, SeqScanOptions};
use trunkline_engine::settings::Settings;
use trunkline_engine::storage::{Relation, StorageError};
use trunkline_format::{BlockNo, Fork};
use trunkline_sample::FixedColumn;
use trunkline_sample::accounts::{Accounts, accounts_sum};
use trunkline_sample::column_sum::sum;

use super::cpu_time::with_cpu_seconds;
use super::io_config::{IoConfig, NotRun};
use super::relation::relation;
use super::scan_report::{RunKind, ScanReports, ScanRow, ScanRun};
use crate::exit::{Failure, message};
use crate::interrupt::Interrupt;
use crate::io_instance::IoInstance;
use crate::monitor::JobMonitor;
use crate::options::Global;

/// Numbers of workers, not including the leader, in the order of the table's rows.
const WORKERS: [u32; 4] = [0, 1, 2, 4];

/// The order of the cold runs. The smallest and largest numbers come first, because later runs may
/// be skipped.
const COLD_ORDER: [u32; 4] = [0, 4, 2, 1];

/// Time for all cold runs, unless `--full` is given.
const COLD_TIME: Duration = Duration::from_secs(40);

/// We skip the warm-up run if it is likely to take more than this fraction (one fourth) of a
/// configuration's time.
const WARM_UP_FRACTION: u32 = 4;

/// State shared by all runs.
pub(super) struct Runs<'r> {
    io: &'r IoInstance,
    engine: Engine,
    table: &'r Accounts,
    global: &'r Global,
    settings: &'r Settings,
    interrupt: &'r Interrupt,
    /// The correct sum.
    expected: i64,
    /// Time of the slowest cold buffered sum so far.
    slowest: Cell<Duration>,
}

impl<'r> Runs<'r> {
    pub(super) fn new(
        io: &'r IoInstance,
        table: &'r Accounts,
        global: &'r Global,
        settings: &'r Settings,
        interrupt: &'r Interrupt,
        buffers: u32,
    ) -> Result<Runs<'r>, Failure> {
        let engine = io.engine(settings, buffers)?;
        let expected = accounts_sum(table.scale);
        let slowest = Cell::default();
        Ok(Runs { io, engine, table, global, settings, interrupt, expected, slowest })
    }

    /// The engine that all runs share.
    pub(super) fn engine(&self) -> &Engine {
        &self.engine
    }

    /// Performs all runs. `full` disables the time limit. If the user interrupts the demo, it
    /// returns the results obtained so far.
    pub(super) fn all(&self, full: bool) -> Result<ScanReports, Failure> {
        let pages = self.engine.aio().region().page_kind();
        let buffers = self.engine.pool().buffers();
        let (rows, errors, snapshot) = <_>::default();
        let mut reports = ScanReports { buffers, pages, rows, errors, snapshot };
        let mut time = COLD_TIME;
        for ((requested, direct), configs_left) in IoConfig::all().zip((1..=6).rev()) {
            if self.interrupt.requested() {
                break;
            }
            let used = self.io.set_method(requested).used;
            let config = IoConfig { requested, used, direct };
            let share = if full { Duration::MAX } else { time / configs_left };
            let spent = self.run_config(&mut reports, config, share)?;
            time = time.saturating_sub(spent);
        }
        Ok(reports)
    }

    /// Performs all runs of a configuration. Returns the time spent on cold runs.
    fn run_config(
        &self,
        reports: &mut ScanReports,
        config: IoConfig,
        share: Duration,
    ) -> Result<Duration, Failure> {
        let relation = relation(&self.engine, self.table, Accounts::RELATION, config.direct);
        let mut spent = self.warm_up_memory(config, &relation, share);
        self.make_cold();
        match self.prewarm(reports, config, &relation) {
            Ok(elapsed) => spent += elapsed,
            Err(JobError::Direct { file_system, .. }) => {
                let outcome = Err(NotRun::NoDirect(file_system));
                reports.rows.push(ScanRow { config, kind: RunKind::Prewarm, workers: 0, outcome });
                return Ok(Duration::ZERO);
            }
            Err(error) => return Err(error.into()),
        }
        let fits = self.engine.pool().buffers() >= self.table.blocks();
        for workers in WORKERS {
            // If the pool is too small for the table, there is nothing to measure with direct I/O,
            // because none of the pages would still be cached.
            if self.interrupt.requested() || (config.direct && !fits) {
                break;
            }
            self.sum(reports, config, &relation, RunKind::SumCached, workers)?;
        }
        let mut last = Duration::ZERO;
        for workers in COLD_ORDER {
            if self.interrupt.requested() {
                break;
            }
            if !last.is_zero() && spent.saturating_add(last) > share {
                let outcome = Err(NotRun::Skipped);
                reports.rows.push(ScanRow { config, kind: RunKind::SumCold, workers, outcome });
                continue;
            }
            self.make_cold();
            last = self.sum(reports, config, &relation, RunKind::SumCold, workers)?;
            if !config.direct {
                self.slowest.set(self.slowest.get().max(last));
            }
            spent += last;
        }
        Ok(spent)
    }

    /// Reads the table through the operating system's cache without reporting the run.
    ///
    /// A virtual machine may return memory to the host once the memory has been free for a few
    /// seconds (free page reporting). Getting the memory back takes three times as long as the read
    /// itself. Without this warm-up, that cost would be included in the time of the first buffered
    /// run.
    fn warm_up_memory(&self, config: IoConfig, relation: &Relation, share: Duration) -> Duration {
        if config.direct || self.slowest.get() > share / WARM_UP_FRACTION {
            return Duration::ZERO;
        }
        self.make_cold();
        let options = SeqScanOptions::of(self.settings, 0);
        // We can ignore errors here, because the reported runs will hit them too.
        let (pool, column) = (self.engine.pool(), FixedColumn::ABALANCE);
        let report = sum(pool, relation, column, options, self.observer());
        report.map_or(Duration::ZERO, |report| report.scan.elapsed)
    }

    /// Drops the table from the pool and from the operating system's cache.
    fn make_cold(&self) {
        self.engine.pool().evict_all();
        if let Err(error) = self.table.evict() {
            message("warning", format_args!("could not drop the table from the cache: {error}"));
        }
    }

    /// Loads the table into the pool, in the same way as `trunkline prewarm`. Invalid pages are
    /// recorded as errors in the report.
    fn prewarm(
        &self,
        reports: &mut ScanReports,
        config: IoConfig,
        relation: &Relation,
    ) -> Result<Duration, JobError> {
        let target = Target {
            locator: relation.locator(),
            fork: Fork::Main,
            files: self.table.files.clone(),
            first: 0,
            end: BlockNo::MAX,
        };
        let (observer, storage) = (self.observer(), relation.storage());
        let options = BufferOptions::of(self.settings);
        let (pool, observing) = (self.engine.pool(), Arc::clone(&observer) as _);
        let (report, cpu_seconds) =
            with_cpu_seconds(|| into_pool(pool, storage, None, vec![target], options, observing));
        let snapshot = observer.end();
        let report = report?;
        let mut counts = Tally::default();
        report.counts.iter().for_each(|(_, tally)| counts.add(tally));
        reports.offer_snapshot(snapshot);
        let failures = report.failures.listed.iter();
        reports.errors.extend(failures.map(|(_, text)| format!("{config}: {text}")));
        let elapsed = report.elapsed;
        let run = ScanRun {
            seconds: elapsed.as_secs_f64(),
            bytes: report.bytes(),
            cpu_seconds,
            before: report.before,
            streams: report.streams,
            counts,
            io: report.io,
            sum: None,
        };
        let outcome = Ok(Box::new(run));
        reports.rows.push(ScanRow { config, kind: RunKind::Prewarm, workers: 0, outcome });
        Ok(elapsed)
    }

    /// Sums the balances. If the sum is wrong, we report an error, unless the scan was interrupted
    /// and therefore saw only part of the table.
    fn sum(
        &self,
        reports: &mut ScanReports,
        config: IoConfig,
        relation: &Relation,
        kind: RunKind,
        workers: u32,
    ) -> Result<Duration, Failure> {
        let before = self.engine.pool().residency(relation, 0..BlockNo::MAX).unwrap_or_default();
        let options = SeqScanOptions::of(self.settings, workers);
        let (pool, column) = (self.engine.pool(), FixedColumn::ABALANCE);
        let observer = self.observer();
        let (report, cpu_seconds) =
            with_cpu_seconds(|| sum(pool, relation, column, options, Arc::clone(&observer) as _));
        reports.offer_snapshot(observer.end());
        let report = report.map_err(|error| match error {
            SeqScanError::Read(ReadError::Storage(StorageError::Direct { path, file_system })) => {
                JobError::Direct { path, file_system }.into()
            }
            error => Failure::from(error),
        })?;
        let found = report.total.sum;
        let rows = report.total.rows;
        let wrong = found != self.expected || rows != self.table.rows() || !report.is_exact();
        if wrong && !self.interrupt.requested() {
            let (name, expected) = (kind.name(), self.expected);
            reports.errors.push(format!(
                "{config}, {name}, {workers} workers: sum {found} of {rows} rows, expected \
                 {expected} of {}",
                self.table.rows()
            ));
        }
        let elapsed = report.scan.elapsed;
        let run = ScanRun {
            seconds: elapsed.as_secs_f64(),
            bytes: report.scan.bytes(),
            cpu_seconds,
            before,
            streams: report.scan.streams,
            counts: report.scan.counts,
            io: report.scan.io,
            sum: Some(found),
        };
        reports.rows.push(ScanRow { config, kind, workers, outcome: Ok(Box::new(run)) });
        Ok(elapsed)
    }

    /// A new observer: each run has its own bar and its own snapshot.
    fn observer(&self) -> Arc<SnapshotObserver> {
        Arc::new(SnapshotObserver {
            aio: self.engine.aio().clone(),
            monitor: JobMonitor::new(self.interrupt.clone(), self.global),
            total: AtomicU64::new(0),
            is_taken: AtomicBool::new(false),
            snapshot: Mutex::default(),
        })
    }
}

/// Takes one snapshot of the I/O handles in the middle of a run.
struct SnapshotObserver {
    aio: Aio,
    monitor: JobMonitor,
    total: AtomicU64,
    is_taken: AtomicBool,
    snapshot: Mutex<Vec<IoRow>>,
}

impl SnapshotObserver {
    /// Removes the progress bar and returns the snapshot.
    fn end(&self) -> Vec<IoRow> {
        self.monitor.clear();
        std::mem::take(&mut *self.snapshot.lock())
    }
}

impl Observer for SnapshotObserver {
    fn begins(&self, files: usize, bytes: u64) {
        self.total.store(bytes, Ordering::Relaxed);
        self.monitor.begins(files, bytes);
    }

    fn progressed(&self, bytes: u64) {
        self.monitor.progressed(bytes);
        let total = self.total.load(Ordering::Relaxed);
        // A third of the way in, read-ahead should have reached its full distance.
        let middle = bytes > 0 && bytes < total && bytes >= total / 3;
        if middle && !self.is_taken.swap(true, Ordering::Relaxed) {
            *self.snapshot.lock() = self.aio.snapshot();
        }
    }

    fn cancelled(&self) -> bool {
        self.monitor.cancelled()
    }
}
