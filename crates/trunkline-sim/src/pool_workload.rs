//! Random workload over buffer pools and read streams on the simulated disk, with an exact model.
//!
//! ```text
//!   Runner ── run(workload) ──▶ clients: sessions that read, stream, lock, evict, cancel, vanish
//!               │                  │ every page, error and warning        every result of every read
//!               │                  ▼                                                  ▼
//!               │               expectations: what each buffer contains,   ◀──── read probe
//!               │               which owner must receive which error
//!               └──▶ final check: no pin, lock, permit, handle, frame or file is left
//! ```
//! The seed determines everything: sizes, methods, fault rates, the clients' steps, and how their
//! threads interleave. For each read, the probe knows which fault struck it and which stream issued
//! it, so we can expect one exact outcome instead of a set of permitted ones. A run fails if a page
//! has the wrong contents, if an error reaches an owner that did not issue the read, or if an owner
//! misses its own error.
//! ```no_run
//! use trunkline_sim::pool_workload::{Runner, PoolWorkload};
//! let report = Runner::new().run(PoolWorkload::of_seed(7))?;
//! println!("{} faults, {} pages", report.faults, report.counts.pages);
//! # Ok::<(), String>(())
//! ```

mod client;
mod expectations;
mod final_check;
mod meter;
mod model;
mod page_check;
mod pool_session;
mod read_probe;
mod reader;

pub use meter::{
    COMPLETION_PATHS, Cell, CompletionPath, FAULT_KINDS, FaultKind, KINDS, Kind, Meter, WAITERS,
    Waiters,
};
pub use pool_session::Counts;

use crate::disk::Disk;
use crate::executor::SimExecutor;
use crate::fault::{FaultPlan, Rates};
use crate::files::SimFiles;
use crate::matrix;
use crate::method::SimMethod;
use client::Client;
use expectations::{Expectations, Failure};
use model::{Model, SHAPES};
use read_probe::ReadProbe;
use reader::ParallelScan;
use std::fmt;
use std::io;
use std::path::Path;
use trunkline_aio::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use trunkline_aio::sync::random::Rng;
use trunkline_aio::sync::{Arc, Mutex, sched, thread};
use trunkline_aio::{Aio, Builder, Canceller, File, MethodKind, WorkerSettings};
use trunkline_engine::pool::{Backend, Pool};
use trunkline_engine::storage::{FileSystem, OpenFiles, Relation, RelationLocator, Storage};
use trunkline_format::{BLOCK_SIZE, Fork};

/// Maximum number of open files in a run. There are more relations than that, so files get closed
/// and reopened.
const FILES_OPEN: usize = 3;

/// The parameters of a run.
#[derive(Debug, Clone, Copy)]
pub struct PoolWorkload {
    /// Determines the clients' steps and how their threads interleave.
    pub seed: u64,
    /// Clients that run concurrently.
    pub clients: u32,
    /// Steps of each client.
    pub steps: u32,
    /// Buffers of the shared pool.
    pub buffers: u32,
    /// Buffers of the local pool.
    pub local_buffers: u32,
    /// Fault rates of the simulated disk.
    pub rates: Rates,
    /// The I/O method at the start.
    pub method: MethodKind,
    /// Clients switch the I/O method during the run.
    pub switches: bool,
    /// The scheduler switches threads at one in this many switch points.
    pub switch_one_in: u32,
    /// All clients read the same few pages, so they join each other's reads and wait for content
    /// locks.
    pub crowd: bool,
    /// Streams issue large reads. These have heavy callbacks, so the reaping thread leaves them to
    /// helpers or to waiting sessions.
    pub wide: bool,
    /// Consumers often abandon the reads they've requested.
    pub fickle: bool,
}

impl PoolWorkload {
    /// The workload for a seed. We draw the settings here rather than in the clients, so that a
    /// failure can print them.
    pub fn of_seed(seed: u64) -> Self {
        let mut rng = Rng::new(seed ^ 0x0077_6F72_6B6C);
        let mut one_of = |of: &[u32]| of[rng.below(of.len() as u64) as usize];
        let rate = one_of(&[20, 100, 150, 150]);
        let (crowd, wide, fickle) =
            (one_of(&[0, 1]) == 1, one_of(&[0, 1]) == 1, one_of(&[0, 1]) == 1);
        let buffers = if wide { &[64, 128, 256][..] } else { &[16, 16, 17, 24, 32, 64, 128, 256] };
        Self {
            seed,
            clients: one_of(if crowd { &[2, 5, 6, 8] } else { &[2, 2, 3, 4] }),
            steps: one_of(&[10, 20, 30]),
            buffers: one_of(buffers),
            local_buffers: one_of(if wide { &[72, 96, 128] } else { &[16, 24, 64] }),
            crowd,
            wide,
            fickle,
            rates: Rates {
                short: rate,
                again: rate,
                error: rate,
                delay: rate,
                reorder: rate,
                silent: rate,
            },
            method: match rng.below(4) {
                _ if wide => MethodKind::Custom,
                0 => MethodKind::Custom,
                1 => MethodKind::Sync,
                _ => MethodKind::Worker,
            },
            switches: rng.below(3) == 0,
            switch_one_in: [3, 5, 20, 100][rng.below(4) as usize],
        }
    }
}

/// Totals of a run.
#[derive(Debug, Clone, Default)]
pub struct PoolReport {
    /// Faults that struck.
    pub faults: u64,
    /// What the clients did.
    pub counts: Counts,
    /// Which fault struck which read.
    pub meter: Meter,
    /// Number of switch points passed.
    pub steps: u64,
}

/// State shared by all clients of a run.
struct Run {
    workload: PoolWorkload,
    aio: Aio,
    disk: Arc<Disk>,
    plan: FaultPlan,
    /// The shared pool and the local pool.
    pools: [Pool; 2],
    relations: Vec<Relation>,
    model: Arc<Model>,
    expectations: Arc<Expectations>,
    /// Number of the last owner. Each stream and each single read is a separate owner.
    owners: AtomicU64,
    /// Cancel handles for all sessions of the run, oldest first. Most of these sessions have ended.
    cancellers: Mutex<Vec<Canceller>>,
    /// A client is waiting for a cleanup lock or truncating. Only one client may do that at a time,
    /// because two of them could wait for each other's pins.
    exclusive: AtomicBool,
    /// Parallel scans started so far. Clients can still join the last one.
    parallels: Mutex<Vec<Arc<ParallelScan>>>,
    /// The run's threads. A client that moves to another thread adds the new thread here.
    threads: Mutex<Vec<thread::JoinHandle>>,
    counts: Mutex<Counts>,
    /// The first failure; later failures are usually its consequences.
    failure: Mutex<Option<String>>,
}

impl Run {
    /// Records a failure. Clients don't panic, because the other clients must still finish.
    fn fail(&self, text: String) {
        self.failure.lock().get_or_insert(text);
    }

    fn new_owner(&self) -> u64 {
        self.owners.fetch_add(1, Ordering::SeqCst) + 1
    }

    /// Compares a session's warnings with the ones its owner must receive.
    fn check_warnings(&self, backend: &mut Backend, owner: u64) {
        let (warnings, lost) = backend.take_warnings();
        for warning in warnings {
            let failure = Failure::Warning { zeroed: warning.zeroed };
            let block = warning.location.block().unwrap_or_default();
            if !self.expectations.receive(owner, block, failure) {
                self.fail(format!("{warning}: not expected by {owner}"));
            }
        }
        if lost > 0 {
            self.fail(format!("{lost} warnings lost"));
        }
    }
}

/// Runs workloads over one cluster. Each thread has its own runner.
///
/// The cluster number is part of a buffer tag's hash, and a process never reuses it. All runs of a
/// runner must therefore share one cluster; otherwise a seed would not repeat the same run within a
/// process.
#[derive(Debug)]
pub struct Runner {
    model: Arc<Model>,
    storage: Storage,
    files: Arc<RunFiles>,
}

/// The current run's files. The storage outlives a run, but each run gets a new disk and instance.
#[derive(Debug, Default)]
struct RunFiles(Mutex<Option<Arc<SimFiles>>>);

impl RunFiles {
    fn current(&self) -> io::Result<Arc<SimFiles>> {
        let files = self.0.lock().clone();
        files.ok_or_else(|| io::Error::other("no run is active"))
    }
}

impl FileSystem for RunFiles {
    fn open(&self, path: &Path, direct: bool) -> io::Result<File> {
        self.current()?.open(path, direct)
    }

    fn length(&self, file: &File) -> io::Result<u64> {
        self.current()?.length(file)
    }

    fn file_length(&self, path: &Path) -> io::Result<Option<u64>> {
        self.current()?.file_length(path)
    }
}

/// The locator of a workload relation.
fn locator(relation: usize) -> RelationLocator {
    matrix::cluster::locator(relation as u32)
}

/// A relation's file name on the disk.
fn name_of(relation: usize) -> String {
    format!("/sim/base/5/{}", locator(relation).relfilenode)
}

impl Default for Runner {
    fn default() -> Self {
        Self::new()
    }
}

impl Runner {
    /// A runner with a new cluster.
    pub fn new() -> Self {
        let files = Arc::new(RunFiles::default());
        let open_files = OpenFiles::read_only(FILES_OPEN, Arc::clone(&files) as _);
        let storage =
            Storage::new(Path::new("/sim"), matrix::cluster::layout(), &open_files, false);
        Self { model: Arc::new(Model::new()), storage, files }
    }

    /// The runner's cluster number.
    pub fn cluster(&self) -> u16 {
        self.storage.number()
    }

    /// Executes one run under the scheduler.
    ///
    /// # Errors
    /// Returns the run's first failure, which may also be a panic, a deadlock or a livelock.
    pub fn run(&self, workload: PoolWorkload) -> Result<PoolReport, String> {
        let outcome = Arc::new(Mutex::new(None));
        let (result_of, model) = (Arc::clone(&outcome), Arc::clone(&self.model));
        let (storage, files) = (self.storage.clone(), Arc::clone(&self.files));
        let config = sched::Config {
            switch_one_in: workload.switch_one_in,
            ..sched::Config::new(workload.seed)
        };
        let ran = sched::run(config, move || {
            let result = run(workload, &model, &storage, &files);
            *result_of.lock() = Some(result);
        });
        let ran = ran.map_err(|failure| format!("{failure}, {workload:?}"))?;
        let result = outcome.lock().take().unwrap_or_else(|| Err("no result".into()));
        let mut report = result.map_err(|failure| format!("{failure}, {workload:?}"))?;
        report.steps = ran.steps;
        Ok(report)
    }
}

/// The body of a run, on the scheduler's first thread.
fn run(
    workload: PoolWorkload,
    model: &Arc<Model>,
    storage: &Storage,
    files: &RunFiles,
) -> Result<PoolReport, String> {
    let disk = Arc::new(Disk::new());
    for (relation, shape) in SHAPES.iter().enumerate() {
        // The relations alternate between two mounts.
        let device = 1 + relation as u64 % 2;
        disk.create(&name_of(relation), device, &model.bytes(relation, 0, shape.blocks));
    }
    let plan = FaultPlan::random(workload.seed, workload.rates).keeping_strikes();
    let expectations = Arc::new(Expectations::default());
    let probe = Arc::new(ReadProbe::new(&plan, model, &expectations));
    let frames = (workload.buffers + workload.local_buffers) as usize;
    // Few handles, workers and queue entries, so that we exhaust every resource.
    let aio = Builder::new()
        .handles(14, 1, 2)
        .session_quota(9)
        .region_bytes(frames * BLOCK_SIZE)
        .workers(WorkerSettings { max: 3, ..WorkerSettings::default() })
        .worker_queue(5)
        .executor(Arc::new(SimExecutor::new(&disk, plan.clone()).with_cache(9)))
        .custom_method(Arc::new(SimMethod::new(&disk, plan.clone(), 5)))
        .probe(Arc::clone(&probe) as Arc<_>)
        .method(workload.method)
        .start()
        .map_err(|error| error.to_string())?;
    *files.0.lock() = Some(Arc::new(SimFiles::new(&aio, &disk)));
    let pools = [
        Pool::new(&aio, workload.buffers).map_err(|error| error.to_string())?,
        Pool::local(&aio, workload.local_buffers).map_err(|error| error.to_string())?,
    ];
    let relations: Vec<Relation> =
        (0..SHAPES.len()).map(|at| storage.relation(locator(at), Fork::Main)).collect();
    probe.begin(pools.clone(), relations.clone());
    let run = Arc::new(Run {
        workload,
        aio,
        disk,
        plan,
        pools,
        relations,
        model: Arc::clone(model),
        expectations,
        owners: AtomicU64::new(0),
        cancellers: Mutex::default(),
        exclusive: AtomicBool::new(false),
        parallels: Mutex::default(),
        threads: Mutex::default(),
        counts: Mutex::default(),
        failure: Mutex::default(),
    });
    for number in 0..workload.clients {
        let client = Client::new(Arc::clone(&run), number);
        let thread = thread::spawn(&format!("client {number}"), move || client.run());
        run.threads.lock().push(thread.map_err(|error| error.to_string())?);
    }
    let ended = final_check::check(run, &probe, storage, files);
    let left = files.0.lock().take();
    drop(left);
    ended
}

impl fmt::Debug for Run {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Run({:?})", self.workload)
    }
}
