//! The runs, one after the other in one instance and one pool: the method is switched in between,
//! and whatever is to be cold is dropped from the pool and from the operating system's cache.
//!
//! Cold runs of a large table on a slow disk take minutes. So each method and way has its share of
//! a fixed time; when the next cold run would pass it, the rest of them is left out. What a fast way
//! does not need the slow ones may use.

use std::cell::Cell;
use std::time::Duration;

use trunkline_aio::sync::Arc;
use trunkline_aio::sync::Mutex;
use trunkline_aio::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use trunkline_aio::{Aio, IoRow};
use trunkline_engine::Engine;
use trunkline_engine::job::{JobError, Observer};
use trunkline_engine::pool::ReadError;
use trunkline_engine::pool::Tally;
use trunkline_engine::prewarm::{BufferOptions, Target, into_pool};
use trunkline_engine::seq_scan::{SeqScanError, SeqScanOptions};
use trunkline_engine::settings::{IoMethod, Settings};
use trunkline_engine::storage::{Layout, Relation, RelationLocator, Storage, StorageError};
use trunkline_format::{BlockNo, Fork};
use trunkline_sample::FixedColumn;
use trunkline_sample::accounts::{Accounts, accounts_sum};
use trunkline_sample::column_sum::sum;

use super::config::Config;
use super::report::{Demo, Outcome, Row, What};
use crate::cli::Global;
use crate::exit::{Failure, message};
use crate::instance;
use crate::interrupt::Interrupt;
use crate::pooled;
use crate::watch::Watch;

/// Workers beside the leader, as the table shows them.
pub(super) const WORKERS: [u32; 4] = [0, 1, 2, 4];

/// The order in which cold runs are made, while there is time: the ends of the range first.
const COLD_ORDER: [u32; 4] = [0, 4, 2, 1];

/// Time for cold runs in all, unless everything is wanted.
const COLD_TIME: Duration = Duration::from_secs(40);

/// A cold run that takes more than this part of a way's time is not made unseen.
const SHARE_PART: u32 = 4;

/// What the runs share.
pub(super) struct Runs<'r> {
    engine: Engine,
    table: &'r Accounts,
    global: &'r Global,
    settings: &'r Settings,
    interrupt: &'r Interrupt,
    expected: i64,
    /// The cold buffered sum that has taken longest.
    slowest: Cell<Duration>,
}

impl<'r> Runs<'r> {
    pub(super) fn new(
        aio: &'r Aio,
        table: &'r Accounts,
        global: &'r Global,
        settings: &'r Settings,
        interrupt: &'r Interrupt,
        buffers: u32,
    ) -> Result<Runs<'r>, Failure> {
        let engine = pooled::engine(aio, settings, buffers)?;
        let expected = accounts_sum(table.scale);
        let slowest = Cell::default();
        Ok(Runs { engine, table, global, settings, interrupt, expected, slowest })
    }

    /// The engine that all of them share.
    pub(super) fn engine(&self) -> &Engine {
        &self.engine
    }

    /// Runs everything; `full` without regard to time. On an interrupt it returns what there is.
    pub(super) fn all(&self, full: bool) -> Result<Demo, Failure> {
        let pages = self.engine.aio().region().page_kind();
        let (buffers, expected) = (self.engine.pool().buffers(), self.expected);
        let mut demo = Demo::new(self.table, self.settings, buffers, expected, pages);
        let mut told = self.engine.aio().method_status().fallbacks.len();
        let mut time = COLD_TIME;
        let ways = IoMethod::ALL.into_iter().flat_map(|method| [(method, false), (method, true)]);
        for ((method, direct), ways_left) in ways.zip((1..=6).rev()) {
            if self.interrupt.requested() {
                break;
            }
            let status = self.engine.aio().set_method(method.into());
            instance::report_fallbacks(status.fallbacks.get(told..).unwrap_or_default());
            told = status.fallbacks.len();
            let config = Config { asked: method, used: status.used, direct };
            let share = if full { Duration::MAX } else { time / ways_left };
            let spent = self.one_way(&mut demo, config, share)?;
            time = time.saturating_sub(spent);
        }
        Ok(demo)
    }

    /// All runs of one method, buffered or direct; the time that cold ones took.
    fn one_way(
        &self,
        demo: &mut Demo,
        config: Config,
        share: Duration,
    ) -> Result<Duration, Failure> {
        let relation = self.relation(config.direct);
        let mut spent = self.touch_memory(config, &relation, share);
        self.make_cold();
        match self.prewarm(demo, config, &relation) {
            Ok(elapsed) => spent += elapsed,
            Err(JobError::Direct { file_system, .. }) => {
                demo.add(config, Outcome::NoDirect(file_system));
                return Ok(Duration::ZERO);
            }
            Err(error) => return Err(error.into()),
        }
        let fits = self.engine.pool().buffers() >= self.table.blocks();
        for workers in WORKERS {
            // Past the cache and with a small pool, cached is cold.
            if self.interrupt.requested() || (config.direct && !fits) {
                break;
            }
            self.sum(demo, config, &relation, What::SumCached, workers)?;
        }
        let mut last = Duration::ZERO;
        for workers in COLD_ORDER {
            if self.interrupt.requested() {
                break;
            }
            if !last.is_zero() && spent.saturating_add(last) > share {
                demo.add(config, Outcome::LeftOut { workers });
                continue;
            }
            self.make_cold();
            last = self.sum(demo, config, &relation, What::SumCold, workers)?;
            if !config.direct {
                self.slowest.set(self.slowest.get().max(last));
            }
            spent += last;
        }
        Ok(spent)
    }

    fn relation(&self, direct: bool) -> Relation {
        let layout = Layout { checksums: true, tablespace_directory: String::new() };
        let storage = Storage::new(&self.table.path, layout, self.engine.files(), direct);
        let locator = RelationLocator {
            tablespace: Accounts::TABLESPACE,
            database: Accounts::DATABASE,
            relfilenode: Accounts::RELATION,
        };
        storage.relation(locator, Fork::Main)
    }

    /// Reads the table through the system's cache, unseen. Memory that has been free for some seconds
    /// is given back by virtual machines, and costs three times the read when it is wanted again:
    /// the first buffered run would pay that for all.
    fn touch_memory(&self, config: Config, relation: &Relation, share: Duration) -> Duration {
        if config.direct || self.slowest.get() > share / SHARE_PART {
            return Duration::ZERO;
        }
        self.make_cold();
        let options = SeqScanOptions::of(self.settings, 0);
        // What is wrong shows in the runs that are seen.
        let (pool, column) = (self.engine.pool(), FixedColumn::ABALANCE);
        let report = sum(pool, relation, column, options, self.observer());
        report.map_or(Duration::ZERO, |report| report.scan.elapsed)
    }

    /// Drops the table from the pool and from the system's cache.
    fn make_cold(&self) {
        self.engine.pool().evict_all();
        if let Err(error) = self.table.evict() {
            message("warning", format_args!("the cache could not be emptied: {error}"));
        }
    }

    fn prewarm(
        &self,
        demo: &mut Demo,
        config: Config,
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
        let cpu = cpu_time();
        let watching = Arc::clone(&observer) as _;
        let report = into_pool(self.engine.pool(), storage, None, vec![target], options, watching);
        let cpu = cpu_time().saturating_sub(cpu);
        let look = observer.end();
        let report = report?;
        let mut counts = Tally::default();
        report.counts.iter().for_each(|(_, tally)| counts.add(tally));
        demo.keep_look(look);
        for (_, text) in &report.failures.listed {
            demo.note_wrong(format!("{config}: {text}"));
        }
        let elapsed = report.elapsed;
        let row = Row {
            what: What::Prewarm,
            workers: 0,
            seconds: elapsed.as_secs_f64(),
            bytes: report.bytes(),
            cpu_seconds: cpu.as_secs_f64(),
            before: report.before,
            streams: report.streams,
            counts,
            io: report.io,
            sum: None,
        };
        demo.add(config, Outcome::Ran(Box::new(row)));
        Ok(elapsed)
    }

    fn sum(
        &self,
        demo: &mut Demo,
        config: Config,
        relation: &Relation,
        what: What,
        workers: u32,
    ) -> Result<Duration, Failure> {
        let before = self.engine.pool().residency(relation).unwrap_or_default();
        let options = SeqScanOptions::of(self.settings, workers);
        let (pool, column) = (self.engine.pool(), FixedColumn::ABALANCE);
        let observer = self.observer();
        let cpu = cpu_time();
        let report = sum(pool, relation, column, options, Arc::clone(&observer) as _);
        let cpu = cpu_time().saturating_sub(cpu);
        demo.keep_look(observer.end());
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
            let (name, expected) = (what.name(), self.expected);
            demo.note_wrong(format!(
                "{config}, {name}, {workers} workers: sum {found} of {rows} rows, expected \
                 {expected} of {}",
                self.table.rows()
            ));
        }
        let elapsed = report.scan.elapsed;
        let row = Row {
            what,
            workers,
            seconds: elapsed.as_secs_f64(),
            bytes: report.scan.bytes(),
            cpu_seconds: cpu.as_secs_f64(),
            before,
            streams: report.scan.streams,
            counts: report.scan.counts,
            io: report.scan.io,
            sum: Some(found),
        };
        demo.add(config, Outcome::Ran(Box::new(row)));
        Ok(elapsed)
    }

    fn observer(&self) -> Arc<Looking> {
        Arc::new(Looking {
            aio: self.engine.aio().clone(),
            watch: Watch::new(self.interrupt.clone(), self.global),
            total: AtomicU64::new(0),
            looked: AtomicBool::new(false),
            look: Mutex::default(),
        })
    }
}

/// Looks at the handles once, in the middle of a run.
struct Looking {
    aio: Aio,
    watch: Watch,
    total: AtomicU64,
    looked: AtomicBool,
    look: Mutex<Vec<IoRow>>,
}

impl Looking {
    /// Takes the bar off the terminal; what was seen.
    fn end(&self) -> Vec<IoRow> {
        self.watch.clear();
        std::mem::take(&mut *self.look.lock())
    }
}

impl Observer for Looking {
    fn begins(&self, files: usize, bytes: u64) {
        self.total.store(bytes, Ordering::Relaxed);
        self.watch.begins(files, bytes);
    }

    fn progressed(&self, bytes: u64) {
        self.watch.progressed(bytes);
        let total = self.total.load(Ordering::Relaxed);
        let middle = bytes > 0 && bytes < total && bytes >= total / 3;
        if middle && !self.looked.swap(true, Ordering::Relaxed) {
            *self.look.lock() = self.aio.snapshot();
        }
    }

    fn cancelled(&self) -> bool {
        self.watch.cancelled()
    }
}

/// Processor time of all threads of this process, those that the kernel runs for it included.
#[expect(clippy::disallowed_methods, reason = "a measure of effort that no program may act on")]
pub(super) fn cpu_time() -> Duration {
    let time = rustix::time::clock_gettime(rustix::time::ClockId::ProcessCPUTime);
    Duration::new(time.tv_sec.unsigned_abs(), time.tv_nsec.unsigned_abs() as u32)
}
