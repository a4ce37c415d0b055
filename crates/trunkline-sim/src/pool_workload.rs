//! Random workloads over buffer pools and read streams on the simulated disk, with a checker.
//!
//! ```text
//!   Lab ── run(workload) ──▶ tasks: sessions that read, stream, lock, evict, cancel, vanish
//!            │                  │ every page, error and warning          every result of every read
//!            │                  ▼                                                    ▼
//!            │               ledger: what each block must show, who must be told of what ◀── watch
//!            └──▶ at the end: no pin, lock, permit, handle, frame or file is left
//! ```
//! Everything follows from the seed: sizes, methods, rates of faults, what the tasks do and how
//! their threads are interleaved. The probe knows of every read which fault struck it and for whom
//! it was made, so what the consumers are told can be judged exactly: a page that is not what it
//! must be, an error that belongs to somebody else, an error that nobody was told, all are findings.
//! ```no_run
//! use trunkline_sim::pool_workload::{Lab, PoolWorkload};
//! let report = Lab::new().run(PoolWorkload::of_seed(7))?;
//! println!("{} faults, {} pages", report.faults, report.counts.pages);
//! # Ok::<(), String>(())
//! ```

mod desk;
mod finale;
mod ledger;
mod look;
mod meter;
mod reader;
mod task;
mod truth;
mod watch;

pub use desk::Counts;
pub use meter::{CONCERNED, Cell, Concerned, KINDS, Kind, MENU, Menu, Meter, SITES, Site};

use crate::disk::Disk;
use crate::executor::SimExecutor;
use crate::fault::{FaultPlan, Rates};
use crate::files::SimFiles;
use crate::matrix;
use crate::method::SimMethod;
use ledger::{Failure, Ledger};
use reader::Parallel;
use std::fmt;
use std::io;
use std::path::Path;
use task::Task;
use trunkline_aio::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use trunkline_aio::sync::random::Rng;
use trunkline_aio::sync::{Arc, Mutex, sched, thread};
use trunkline_aio::{Aio, Builder, Canceller, File, MethodKind, WorkerSettings};
use trunkline_engine::pool::{Backend, Pool};
use trunkline_engine::storage::{FileSystem, OpenFiles, Relation, RelationLocator, Storage};
use trunkline_format::{BLOCK_SIZE, Fork};
use truth::{SHAPES, Truth};
use watch::Watch;

/// Files that the table keeps open: fewer than there are, so that they are opened and closed.
const FILES_OPEN: usize = 3;

/// What kind of run.
#[derive(Debug, Clone, Copy)]
pub struct PoolWorkload {
    /// Decides what the tasks do and how they are interleaved.
    pub seed: u64,
    /// Tasks at the same time.
    pub tasks: u32,
    /// Steps of each task.
    pub steps: u32,
    /// Buffers of the shared pool.
    pub buffers: u32,
    /// Buffers of the local pool.
    pub local_buffers: u32,
    /// How often things go wrong.
    pub rates: Rates,
    /// The method at the start.
    pub method: MethodKind,
    /// Whether it is switched meanwhile.
    pub switches: bool,
    /// One in this many switch points of the scheduler switches.
    pub switch_one_in: u32,
    /// All want the same few pages.
    pub crowd: bool,
    /// Streams of large reads, which are completed by others than those who reap them.
    pub wide: bool,
    /// Consumers often do not want any more what they have asked for.
    pub fickle: bool,
}

impl PoolWorkload {
    /// The workload that a seed stands for.
    pub fn of_seed(seed: u64) -> Self {
        let mut rng = Rng::new(seed ^ 0x0077_6F72_6B6C);
        let mut one_of = |of: &[u32]| of[rng.below(of.len() as u64) as usize];
        let rate = one_of(&[20, 100, 150, 150]);
        let (crowd, wide, fickle) =
            (one_of(&[0, 1]) == 1, one_of(&[0, 1]) == 1, one_of(&[0, 1]) == 1);
        let buffers = if wide { &[64, 128, 256][..] } else { &[16, 16, 17, 24, 32, 64, 128, 256] };
        Self {
            seed,
            tasks: one_of(if crowd { &[2, 5, 6, 8] } else { &[2, 2, 3, 4] }),
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

/// What a run was.
#[derive(Debug, Clone, Default)]
pub struct PoolReport {
    /// Faults that struck.
    pub faults: u64,
    /// What the tasks did.
    pub counts: Counts,
    /// Which faults met whom.
    pub meter: Meter,
    /// Switch points passed.
    pub steps: u64,
}

/// What all tasks of a run share.
struct Scene {
    workload: PoolWorkload,
    aio: Aio,
    disk: Arc<Disk>,
    plan: FaultPlan,
    pools: [Pool; 2],
    relations: Vec<Relation>,
    truth: Arc<Truth>,
    ledger: Arc<Ledger>,
    owners: AtomicU64,
    cancellers: Mutex<Vec<Canceller>>,
    /// Somebody waits to be alone with a page.
    alone: AtomicBool,
    parallels: Mutex<Vec<Arc<Parallel>>>,
    threads: Mutex<Vec<thread::JoinHandle>>,
    counts: Mutex<Counts>,
    /// The first finding.
    finding: Mutex<Option<String>>,
}

impl Scene {
    fn find(&self, text: String) {
        self.finding.lock().get_or_insert(text);
    }

    fn new_owner(&self) -> u64 {
        self.owners.fetch_add(1, Ordering::SeqCst) + 1
    }

    /// Holds what policies let pass against the books.
    fn check_warnings(&self, backend: &mut Backend, owner: u64) {
        let (warnings, lost) = backend.take_warnings();
        for warning in warnings {
            let failure = Failure::Warning { zeroed: warning.zeroed };
            if !self.ledger.told(owner, warning.block, failure) {
                self.find(format!("{warning}: of no read of {owner}"));
            }
        }
        if lost > 0 {
            self.find(format!("{lost} warnings lost"));
        }
    }
}

/// Where workloads are run: pages and file names, which are the same in every run. One per thread.
///
/// A cluster's number is never used again in a process and has a part in the hash of a page's
/// name; so that a seed means the same run whenever it comes, all runs are over one cluster.
#[derive(Debug)]
pub struct Lab {
    truth: Arc<Truth>,
    storage: Storage,
    files: Arc<LabFiles>,
}

/// The files of the run under way.
#[derive(Debug, Default)]
struct LabFiles(Mutex<Option<Arc<SimFiles>>>);

impl LabFiles {
    fn now(&self) -> io::Result<Arc<SimFiles>> {
        let files = self.0.lock().clone();
        files.ok_or_else(|| io::Error::other("no run is under way"))
    }
}

impl FileSystem for LabFiles {
    fn open(&self, path: &Path, direct: bool) -> io::Result<File> {
        self.now()?.open(path, direct)
    }

    fn length(&self, file: &File) -> io::Result<u64> {
        self.now()?.length(file)
    }

    fn file_length(&self, path: &Path) -> io::Result<Option<u64>> {
        self.now()?.file_length(path)
    }
}

fn locator(relation: usize) -> RelationLocator {
    matrix::cluster::locator(relation as u32)
}

/// A relation's file on the disk.
fn name_of(relation: usize) -> String {
    format!("/sim/base/5/{}", locator(relation).relfilenode)
}

impl Default for Lab {
    fn default() -> Self {
        Self::new()
    }
}

impl Lab {
    /// A lab with a cluster of its own.
    pub fn new() -> Self {
        let files = Arc::new(LabFiles::default());
        let open_files = OpenFiles::read_only(FILES_OPEN, Arc::clone(&files) as _);
        let storage =
            Storage::new(Path::new("/sim"), matrix::cluster::layout(), &open_files, false);
        Self { truth: Arc::new(Truth::new()), storage, files }
    }

    /// Number of its cluster; see above.
    pub fn cluster(&self) -> u16 {
        self.storage.number()
    }

    /// Runs a workload under the scheduler.
    ///
    /// # Errors
    /// What was found to be wrong first, or how the run failed: a panic, a deadlock, a livelock.
    pub fn run(&self, workload: PoolWorkload) -> Result<PoolReport, String> {
        let outcome = Arc::new(Mutex::new(None));
        let (told, truth) = (Arc::clone(&outcome), Arc::clone(&self.truth));
        let (storage, files) = (self.storage.clone(), Arc::clone(&self.files));
        let config = sched::Config {
            switch_one_in: workload.switch_one_in,
            ..sched::Config::new(workload.seed)
        };
        let ran = sched::run(config, move || {
            let result = run(workload, &truth, &storage, &files);
            *told.lock() = Some(result);
        });
        let ran = ran.map_err(|failure| format!("{failure}, {workload:?}"))?;
        let result = outcome.lock().take().unwrap_or_else(|| Err("no result".into()));
        let mut report = result.map_err(|finding| format!("{finding}, {workload:?}"))?;
        report.steps = ran.steps;
        Ok(report)
    }
}

/// One run, on the scheduler's first task.
fn run(
    workload: PoolWorkload,
    truth: &Arc<Truth>,
    storage: &Storage,
    files: &LabFiles,
) -> Result<PoolReport, String> {
    let disk = Arc::new(Disk::new());
    for (relation, shape) in SHAPES.iter().enumerate() {
        let device = 1 + relation as u64 % 2;
        disk.create(&name_of(relation), device, &truth.bytes(relation, 0, shape.blocks));
    }
    let plan = FaultPlan::random(workload.seed, workload.rates).keeping_strikes();
    let ledger = Arc::new(Ledger::default());
    let watch = Arc::new(Watch::new(&plan, truth, &ledger));
    let frames = (workload.buffers + workload.local_buffers) as usize;
    // Few of everything else, so that every kind of want happens.
    let aio = Builder::new()
        .handles(14, 1, 2)
        .session_quota(9)
        .region_bytes(frames * BLOCK_SIZE)
        .workers(WorkerSettings { max: 3, ..WorkerSettings::default() })
        .worker_queue(5)
        .executor(Arc::new(SimExecutor::new(&disk, plan.clone()).with_cache(9)))
        .custom_method(Arc::new(SimMethod::new(&disk, plan.clone(), 5)))
        .probe(Arc::clone(&watch) as Arc<_>)
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
    watch.begin(pools.clone(), relations.clone());
    let scene = Arc::new(Scene {
        workload,
        aio,
        disk,
        plan,
        pools,
        relations,
        truth: Arc::clone(truth),
        ledger,
        owners: AtomicU64::new(0),
        cancellers: Mutex::default(),
        alone: AtomicBool::new(false),
        parallels: Mutex::default(),
        threads: Mutex::default(),
        counts: Mutex::default(),
        finding: Mutex::default(),
    });
    for number in 0..workload.tasks {
        let task = Task::new(Arc::clone(&scene), number);
        let thread = thread::spawn(&format!("task {number}"), move || task.run());
        scene.threads.lock().push(thread.map_err(|error| error.to_string())?);
    }
    let ended = finale::judge(scene, &watch, storage, files);
    let left = files.0.lock().take();
    drop(left);
    ended
}

impl fmt::Debug for Scene {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Scene({:?})", self.workload)
    }
}
