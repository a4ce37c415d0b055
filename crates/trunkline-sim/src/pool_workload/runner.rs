//! Runner of pool workloads: starts an instance, its pools and the clients of a run.

use super::client::Client;
use super::expectations::Expectations;
use super::final_check;
use super::model::{Model, SHAPES, locator, name_of};
use super::read_probe::ReadProbe;
use super::run::{PoolReport, Run};
use super::settings::PoolWorkload;
use crate::clients::FirstFailure;
use crate::disk::Disk;
use crate::executor::SimExecutor;
use crate::fault::FaultPlan;
use crate::files::SimFiles;
use crate::matrix;
use crate::method::SimMethod;
use std::io;
use std::path::Path;
use trunkline_aio::facade::atomic::{AtomicBool, AtomicU64};
use trunkline_aio::facade::{Arc, Mutex, sched, thread};
use trunkline_aio::{Builder, File, WorkerSettings};
use trunkline_engine::pool::Pool;
use trunkline_engine::storage::{FileSystem, OpenFiles, Relation, Storage};
use trunkline_format::{BLOCK_SIZE, Fork};

/// Maximum number of open files in a run. There are more relations than that, so files get closed
/// and reopened.
const FILES_OPEN: usize = 3;

/// Runs workloads over one cluster. Each thread has its own runner.
///
/// The cluster number is one of the inputs to a buffer tag's hash, and a process never uses the
/// same number twice. All runs of a runner must therefore share one cluster. Otherwise, running the
/// same seed twice in a process would give two different runs.
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

    fn clear(&self) {
        let left = self.0.lock().take();
        drop(left);
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
        failure: FirstFailure::default(),
    });
    for number in 0..workload.clients {
        let client = Client::new(Arc::clone(&run), number);
        let thread = thread::spawn(&format!("client {number}"), move || client.run());
        run.threads.lock().push(thread.map_err(|error| error.to_string())?);
    }
    let ended = final_check::check(run, &probe, storage, || files.clear());
    files.clear();
    ended
}
