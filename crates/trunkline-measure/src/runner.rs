//! **Runner**: prepares and times one repetition of one case.
//!
//! Each repetition starts with an empty pool, and with a page cache that has nothing or all of the
//! table; how much it really has is measured and reported. Two things are carried over to the next
//! repetition: the worker threads, and the page cache of the files that are written. The work must
//! have asked for exactly the planned blocks, or its time is discarded with an error.

use std::path::PathBuf;

use trunkline_aio::facade::Arc;
use trunkline_aio::{Canceller, Class};
use trunkline_engine::Engine;
use trunkline_engine::file_scan::ReadOptions;
use trunkline_engine::job::End;
use trunkline_engine::pool::{Backend, Policy, Strategy};
use trunkline_engine::prewarm::{BufferOptions, into_pool};
use trunkline_engine::read_stream::StreamOptions;
use trunkline_engine::verify::{Options, verify_files};
use trunkline_format::{BLOCK_SIZE, BlockNo};
use trunkline_sample::accounts::Accounts;

use crate::access::{Dataset, Scan};
use crate::checkpoint_copy::CheckpointCopy;
use crate::durable_file::{DurableFile, WRITES};
use crate::error::{MeasureError, expect_count};
use crate::row_sum::{RowWork, Selected};
use crate::sample::{Sample, Stopwatch, Work};
use crate::server::{Server, ServerMethod, ServerWork};
use crate::sessions::{concurrently, read_blocks, split};
use crate::table::Table;
use crate::watcher::{JobWatcher, Watcher};
use crate::workload::{Cache, Case, Task};

/// First blocks of the windows of a re-read, at most.
const REREAD_WINDOWS: BlockNo = 10_001;
/// Blocks of a window.
const REREAD_WIDTH: BlockNo = 4;
/// If less of the table is in the page cache, it is read again before a cached repetition.
const WARM_MIN: f64 = 0.999;

/// What is written to.
#[derive(Debug)]
pub struct ScratchTable {
    /// The generated table, which checkpoints copy.
    pub accounts: Option<Accounts>,
    /// Where to create the file of durable writes.
    pub durable: PathBuf,
}

/// A server to compare with, and its tables as our engine sees them.
pub struct Peer {
    /// The server, whose cluster has the tables.
    pub server: Server,
    /// Its second table. The first one is the measured table.
    pub linear_10: Table,
}

/// Everything that the repetitions share.
pub(crate) struct Runner {
    engine: Engine,
    table: Table,
    peer: Option<Peer>,
    backends: Vec<Backend>,
    rows_per_page: u32,
    seed: u64,
    /// The block list that was made last.
    list: Option<(Task, Arc<Vec<BlockNo>>)>,
    scratch: Option<ScratchTable>,
    copy: Option<CheckpointCopy>,
    durable: Option<DurableFile>,
    sessions_max: usize,
    watcher: Arc<dyn Watcher>,
}

impl Runner {
    /// Opens the sessions.
    pub(crate) fn new(
        engine: &Engine,
        (table, peer): (Table, Option<Peer>),
        scratch: Option<ScratchTable>,
        (sessions_max, seed): (usize, u64),
        watcher: Arc<dyn Watcher>,
    ) -> Result<Self, MeasureError> {
        let backend = |_| {
            let kind = trunkline_engine::pool::BackendType::Standalone;
            let mut backend = engine.pool().backend(kind)?;
            backend.set_policy(Policy::of(engine.settings()));
            Ok(backend)
        };
        let backends =
            (0..sessions_max.max(1)).map(backend).collect::<Result<_, MeasureError>>()?;
        let rows_per_page = table.rows_per_page(engine)?;
        let engine = engine.clone();
        let (list, copy, durable) = (None, None, None);
        Ok(Self {
            engine,
            table,
            peer,
            backends,
            rows_per_page,
            seed,
            list,
            scratch,
            copy,
            durable,
            sessions_max,
            watcher,
        })
    }

    /// Cancels the waits of all sessions.
    pub(crate) fn cancellers(&mut self) -> Vec<Canceller> {
        self.backends.iter_mut().map(|backend| backend.session().canceller()).collect()
    }

    pub(crate) fn table(&self) -> &Table {
        &self.table
    }

    pub(crate) fn rows_per_page(&self) -> u32 {
        self.rows_per_page
    }

    pub(crate) fn peer(&self) -> Option<&Peer> {
        self.peer.as_ref()
    }

    /// The table that a task reads.
    fn table_of(&self, task: Task) -> &Table {
        match (task, &self.peer) {
            (
                Task::Range { dataset: Dataset::Linear10, .. }
                | Task::Planned { dataset: Dataset::Linear10, .. },
                Some(peer),
            ) => &peer.linear_10,
            _ => &self.table,
        }
    }

    /// Prepares and times one repetition. Returns how much of the table was in the page cache when
    /// it began, if that matters.
    pub(crate) fn run(&mut self, case: &Case) -> Result<(Sample, Option<f64>), MeasureError> {
        if let Some(method) = case.server {
            return self.run_on_server(case, method);
        }
        self.table.recheck()?;
        let left = self.engine.pool().evict_all().skipped;
        expect_count("pool", "buffers still in use", left.into(), 0)?;
        let cached = match case.cache {
            None => None,
            Some(cache) => self.prepare_cache(cache, case.task)?,
        };
        let sample = match case.task {
            Task::Whole | Task::Range { .. } | Task::Reread => self.read(case)?,
            Task::Planned { .. } => return Err(MeasureError::NoPlanner),
            Task::Prewarm => self.prewarm(case)?,
            Task::Verify => self.verify(case)?,
            Task::Checkpoint { scattered } => self.checkpoint(case, scattered)?,
            Task::Durable => self.write_durably(case)?,
        };
        Ok((sample, cached))
    }

    /// The same for the server. Its buffers are empty too when it begins.
    fn run_on_server(
        &mut self,
        case: &Case,
        method: ServerMethod,
    ) -> Result<(Sample, Option<f64>), MeasureError> {
        let (dataset, work) = match case.task {
            Task::Range { dataset, scan, selectivity } => {
                (dataset, ServerWork::Range { scan, selectivity })
            }
            Task::Planned { dataset, selectivity } => {
                (dataset, ServerWork::Planned { selectivity })
            }
            Task::Prewarm => (Dataset::Uniform, ServerWork::Prewarm),
            _ => (Dataset::Uniform, ServerWork::Whole),
        };
        let Some(peer) = &mut self.peer else {
            return Err(MeasureError::Thread("has no server to ask".to_owned()));
        };
        let sizes = (case.concurrency, case.combine);
        let plan = peer.server.prepare(method, (dataset, work), sizes)?;
        // Last, because a server that starts reads files.
        let cached = match case.cache {
            None => None,
            Some(cache) => self.prepare_cache(cache, case.task)?,
        };
        let Some(peer) = &mut self.peer else {
            return Err(MeasureError::Thread("has no server to ask".to_owned()));
        };
        let done = peer.server.run(dataset, work)?;
        let sample = Sample {
            seconds: done.seconds,
            blocks: done.blocks,
            hits: done.hits,
            io_bytes: done.blocks.saturating_sub(done.hits) * BLOCK_SIZE as u64,
            plan,
            ..Sample::default()
        };
        Ok((sample, cached))
    }

    /// Returns how much of the table is in the page cache afterwards, if that can be found out.
    fn prepare_cache(&self, cache: Cache, task: Task) -> Result<Option<f64>, MeasureError> {
        let table = self.table_of(task);
        match cache {
            Cache::Cold => {
                table.evict(&*self.watcher)?;
                let cached = table.cached(&self.engine)?;
                if cached.is_none_or(|part| cache.is_held(part)) {
                    return Ok(cached);
                }
                // A page that was locked, for instance by a read-ahead that still ran, was kept.
                table.evict(&*self.watcher)?;
            }
            Cache::Cached => {
                let cached = table.cached(&self.engine)?;
                if cached.is_none_or(|part| part < WARM_MIN) {
                    table.warm(&*self.watcher)?;
                }
            }
        }
        table.cached(&self.engine)
    }

    /// The rows that a query of the server selects in its table, and their sum.
    fn selected(&self, task: Task) -> Option<(RowWork, i64)> {
        let tables = self.peer.as_ref()?.server.tables();
        let of = |dataset| tables.iter().find(move |table| table.dataset == dataset);
        match task {
            Task::Whole => Some((RowWork::Selected(Selected::ALL), of(Dataset::Uniform)?.sum)),
            Task::Range { dataset, scan, selectivity } => {
                let range = of(dataset)?.range(selectivity)?;
                let work = match scan {
                    Scan::Index => RowWork::Visits(Arc::clone(&range.visits)),
                    _ => RowWork::Selected(Selected { low: range.low, high: range.high }),
                };
                Some((work, range.sum))
            }
            _ => None,
        }
    }

    /// The blocks of a range query as the server requests them.
    fn server_blocks(&self, task: Task) -> Option<Vec<BlockNo>> {
        let Task::Range { dataset, scan, selectivity } = task else { return None };
        let tables = self.peer.as_ref()?.server.tables();
        let table = tables.iter().find(|table| table.dataset == dataset)?;
        Some(table.range(selectivity)?.requested(scan, table.blocks))
    }

    /// The blocks that a task requests, in order.
    fn blocks(&mut self, task: Task) -> Arc<Vec<BlockNo>> {
        if let Some((of, list)) = &self.list
            && *of == task
        {
            return Arc::clone(list);
        }
        let blocks = self.table_of(task).blocks();
        let of_server = self.server_blocks(task);
        let list = match task {
            Task::Range { .. } if of_server.is_some() => of_server.unwrap_or_default(),
            Task::Range { dataset, scan: scan @ (Scan::Bitmap | Scan::Index), selectivity } => {
                let rows = self.rows_per_page;
                let mut list = dataset.matching_blocks(blocks, rows, selectivity, self.seed);
                if scan == Scan::Bitmap {
                    list.sort_unstable();
                }
                list
            }
            Task::Reread => {
                let width = REREAD_WIDTH.min(blocks);
                let windows = REREAD_WINDOWS.min(blocks - width + 1);
                (0..windows).flat_map(|first| first..first + width).collect()
            }
            _ => (0..blocks).collect(),
        };
        let list = Arc::new(list);
        self.list = Some((task, Arc::clone(&list)));
        list
    }

    fn read(&mut self, case: &Case) -> Result<Sample, MeasureError> {
        let blocks = self.blocks(case.task);
        let whole = matches!(case.task, Task::Whole | Task::Range { scan: Scan::Sequential, .. });
        let options = StreamOptions {
            concurrency: case.concurrency,
            combine: case.combine,
            full: whole,
            sequential: whole,
            strategy: if whole { Strategy::BulkRead } else { Strategy::Normal },
            ..StreamOptions::default()
        };
        let parts = split(&blocks, case.sessions);
        let sessions = self.take_sessions(case.sessions)?;
        let (relation, watcher) =
            (self.table_of(case.task).relation(case.direct).clone(), Arc::clone(&self.watcher));
        let selected = self.selected(case.task);
        let (rows, expected) = selected.unzip();
        let stopwatch = Stopwatch::start(&self.engine, Work::PoolReads);
        let (sessions, read) = concurrently(sessions, parts, move |backend, part| {
            read_blocks(backend, &relation, part, (options, rows.clone()), &*watcher)
        });
        let read = read.map(|parts| {
            parts.into_iter().fold((0, 0), |sum, part| (sum.0 + part.0, sum.1 + part.1))
        });
        let pages = read.as_ref().map_or(0, |(pages, _)| *pages);
        let sample = stopwatch.stop(&self.engine, pages, None);
        self.backends.splice(..0, sessions);
        let (pages, sum) = read?;
        expect_count(&case.to_string(), "blocks read", pages, blocks.len() as u64)?;
        if let Some(expected) = expected {
            // Sums of row numbers are never negative.
            let [sum, expected] = [sum, expected].map(i64::unsigned_abs);
            expect_count(&case.to_string(), "as the sum of its rows", sum, expected)?;
        }
        Ok(sample)
    }

    /// The sessions of a case. They must be put back, whether or not it succeeds.
    fn take_sessions(&mut self, count: usize) -> Result<Vec<Backend>, MeasureError> {
        let found = self.backends.len();
        if found < count {
            return Err(MeasureError::SessionsLost { found, expected: count });
        }
        Ok(self.backends.drain(..count).collect())
    }

    fn prewarm(&mut self, case: &Case) -> Result<Sample, MeasureError> {
        let stream = StreamOptions {
            concurrency: case.concurrency,
            combine: case.combine,
            full: true,
            sequential: true,
            class: Class::Maintenance,
            ..StreamOptions::default()
        };
        let options = BufferOptions { stream, policy: Policy::of(self.engine.settings()) };
        let storage = self.table.relation(case.direct).storage().clone();
        let (targets, observer) = (vec![self.table.target()], self.job_watcher());
        let stopwatch = Stopwatch::start(&self.engine, Work::PoolReads);
        let report = into_pool(self.engine.pool(), &storage, None, targets, options, observer)?;
        let sample = stopwatch.stop(&self.engine, report.blocks, Some(report.elapsed));
        ended(report.end)?;
        expect_count("prewarm", "blocks that can't be loaded", report.failures.total, 0)?;
        expect_count("prewarm", "blocks loaded", report.blocks, self.table.blocks().into())?;
        Ok(sample)
    }

    fn verify(&mut self, case: &Case) -> Result<Sample, MeasureError> {
        let read = ReadOptions {
            direct: case.direct,
            depth: case.concurrency,
            combine_blocks: case.combine,
        };
        let options = Options { read, findings_listed: 1 };
        let (files, checksums) = (self.table.files().to_vec(), self.table.checksums());
        let observer = self.job_watcher();
        let stopwatch = Stopwatch::start(&self.engine, Work::FileReads);
        let report = verify_files(self.engine.aio(), files, checksums, options, observer)?;
        let blocks = report.bytes() / BLOCK_SIZE as u64;
        let sample = stopwatch.stop(&self.engine, blocks, None);
        ended(report.end)?;
        expect_count("verify", "damaged pages", report.findings_total(), 0)?;
        expect_count("verify", "blocks checked", blocks, self.table.blocks().into())?;
        Ok(sample)
    }

    fn checkpoint(&mut self, case: &Case, scattered: bool) -> Result<Sample, MeasureError> {
        if self.copy.is_none()
            && let Some(accounts) =
                self.scratch.as_ref().and_then(|scratch| scratch.accounts.as_ref())
        {
            let copy = CheckpointCopy::make(&self.engine, accounts, &*self.watcher)?;
            self.copy = Some(copy);
        }
        let (Some(copy), Some(backend)) = (&self.copy, self.backends.first_mut()) else {
            return Err(MeasureError::NoScratch);
        };
        let (how, size) = ((case.direct, scattered), (case.concurrency, case.combine));
        copy.run(&self.engine, backend, how, size, &*self.watcher)
    }

    fn write_durably(&mut self, case: &Case) -> Result<Sample, MeasureError> {
        let aio = self.engine.aio().clone();
        if self.durable.is_none()
            && let Some(scratch) = &self.scratch
        {
            let path = scratch.durable.clone();
            let file = DurableFile::make(&aio, path, self.sessions_max, &*self.watcher)?;
            self.durable = Some(file);
        }
        if self.durable.is_none() {
            return Err(MeasureError::NoScratch);
        }
        let sessions = self.take_sessions(case.sessions)?;
        let Some(file) = &self.durable else { return Err(MeasureError::NoScratch) };
        let expected = WRITES * case.sessions as u64;
        let stopwatch = Stopwatch::start(&self.engine, Work::DurableWrites);
        let (sessions, written) = file.run(&aio, sessions, case.direct, &self.watcher);
        let sample = stopwatch.stop(&self.engine, expected, None);
        self.backends.splice(..0, sessions);
        written?;
        // From the counters of the I/O instance, and not from the loop that issued them.
        let ios = sample.details.unwrap_or_default().ios;
        expect_count("durable", "writes", ios, expected)?;
        expect_count("durable", "bytes written", sample.io_bytes, expected * BLOCK_SIZE as u64)?;
        Ok(sample)
    }

    /// Why durable writes can't be direct, if they can't.
    pub(crate) fn durable_direct_problem(&self) -> Option<&str> {
        self.durable.as_ref()?.direct_problem()
    }

    fn job_watcher(&self) -> Arc<JobWatcher> {
        Arc::new(JobWatcher(Arc::clone(&self.watcher)))
    }
}

fn ended(end: End) -> Result<(), MeasureError> {
    if end == End::Complete { Ok(()) } else { Err(MeasureError::Cancelled) }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::watcher::Unwatched;
    use crate::workload::Workload;
    use trunkline_engine::settings::{IoMethod, Settings};
    use trunkline_sample::accounts;

    const BUFFERS: u32 = 256;
    /// Blocks of the table at scale 1.
    const BLOCKS: u64 = 1640;

    /// A runner with this number of sessions, and hardly any other.
    fn runner(home: &std::path::Path, sessions: usize) -> Runner {
        let mut settings = Settings::default();
        // One more reads the sample page.
        settings.set("max_sessions", &(sessions + 1).to_string()).expect("valid");
        let bytes = (BUFFERS as usize + 1024) * BLOCK_SIZE;
        let aio = settings.io_builder().region_bytes(bytes).start().expect("started");
        let engine = Engine::builder(&settings).io(&aio).buffers(BUFFERS).open().expect("opened");
        let accounts = accounts::create(&aio, &home.join("table"), 1, &mut |_| true).expect("made");
        let table = Table::of_scratch(&engine, &accounts);
        let scratch = ScratchTable { accounts: Some(accounts), durable: home.join("durable") };
        let watcher = Arc::new(Unwatched);
        Runner::new(&engine, (table, None), Some(scratch), (sessions, 1), watcher)
            .expect("a runner")
    }

    fn case(workload: Workload, task: Task, sessions: usize) -> Case {
        Case {
            workload,
            task,
            server: None,
            method: IoMethod::Worker,
            direct: false,
            cache: None,
            concurrency: 4,
            combine: 16,
            sessions,
        }
    }

    #[test]
    fn a_failed_case_leaves_its_sessions_to_the_next_one() {
        let home = tempfile::tempdir().expect("a directory");
        let mut runner = runner(home.path(), 2);
        let case = case(Workload::Sequential, Task::Whole, 2);
        let [file, away] = ["table/base", "away"].map(|name| home.path().join(name));
        std::fs::rename(&file, &away).expect("renamed");
        // The files for direct I/O aren't open yet.
        let direct = Case { direct: true, ..case };
        assert!(runner.run(&direct).is_err(), "the file is away");
        std::fs::rename(&away, &file).expect("renamed");
        let (sample, _) = runner.run(&case).expect("the sessions are still there");
        assert_eq!((sample.blocks, runner.backends.len()), (BLOCKS, 2));
    }

    #[test]
    fn durable_writes_need_no_other_sessions_and_are_counted() {
        let home = tempfile::tempdir().expect("a directory");
        let mut runner = runner(home.path(), 3);
        let (sample, _) =
            runner.run(&case(Workload::Durable, Task::Durable, 3)).expect("three sessions");
        let ios = sample.details.expect("counted").ios;
        assert_eq!((sample.blocks, ios), (3 * WRITES, 3 * WRITES));
        assert_eq!(sample.io_bytes, 3 * WRITES * BLOCK_SIZE as u64);
        assert_eq!(runner.backends.len(), 3);
    }
}
