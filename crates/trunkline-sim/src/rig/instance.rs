//! An instance with its storage, and how to wait for what it does.
//!
//! The storage is the simulated disk, whose faults a plan decides, or a folder of its own that is
//! removed with it. Waiting is for states, never for time: under the scheduler a pause of any length
//! lets every other thread go as far as it can, and with real threads one looks again and again.

use super::{Bench, Sizes};
use crate::disk::Disk;
use crate::executor::SimExecutor;
use crate::fault::Plan;
use crate::files::SimFiles;
use crate::gate::pause;
use crate::hooks::Hooks;
use crate::method::SimMethod;
use std::fmt;
use std::path::Path;
use std::time::Duration;
use tempfile::TempDir;
use trunkline_aio::sync::{Arc, thread};
use trunkline_aio::{Aio, Builder, MethodKind, WorkerSettings, clock};
use trunkline_engine::storage::{KernelFiles, WritableFiles};
use trunkline_format::BLOCK_SIZE;

/// Places of the simulated device, few enough to overflow.
const PLACES: usize = 6;

/// A state that does not come within this time never will.
const WAIT_MAX: Duration = Duration::from_secs(60);

/// Pages of the region beside those of the pool.
const FRAMES_BESIDE: usize = 128;

/// See the module.
pub struct Instance {
    /// The instance.
    pub aio: Aio,
    /// Its probe, unless the suite has put one of its own around it.
    pub hooks: Arc<Hooks>,
    /// The simulated disk; unused with real files.
    pub disk: Arc<Disk>,
    /// What goes wrong on it.
    pub plan: Plan,
    /// What executes on it.
    pub executor: Arc<SimExecutor>,
    folder: Option<TempDir>,
}

/// A test that fails while a mount hangs must end all the same.
impl Drop for Instance {
    fn drop(&mut self) {
        self.disk.release_all();
    }
}

impl fmt::Debug for Instance {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Instance({:?})", self.aio.method_status())
    }
}

impl Instance {
    /// Starts one under a method, on a simulated disk or in a new folder in `temporary` (a suite says
    /// `env!("CARGO_TARGET_TMPDIR")`). `sizes` has the last word about everything.
    ///
    /// # Panics
    /// If it does not start, or has to make do with another method.
    pub fn start(
        method: MethodKind,
        simulated: bool,
        temporary: &str,
        sizes: impl FnOnce(Builder, &Arc<Hooks>) -> Builder,
    ) -> Self {
        let (hooks, disk, plan) = (Arc::new(Hooks::default()), Arc::new(Disk::new()), Plan::none());
        let executor = Arc::new(SimExecutor::new(&disk, plan.clone()));
        let mut builder = Builder::new().probe(Arc::clone(&hooks) as Arc<_>).method(method);
        if simulated {
            builder = builder
                .executor(Arc::clone(&executor) as Arc<_>)
                .custom_method(Arc::new(SimMethod::new(&disk, plan.clone(), PLACES)));
        }
        let aio = sizes(builder, &hooks).start().expect("starts");
        assert_eq!(aio.method_status().used, method, "{:?}", aio.method_status());
        let folder =
            (!simulated).then(|| tempfile::tempdir_in(temporary).expect("a temporary folder"));
        Self { aio, hooks, disk, plan, executor, folder }
    }

    /// The same with room for a pool, several workers, and every read given to the method.
    ///
    /// # Panics
    /// See [`Instance::start`].
    pub fn start_for_pool(
        bench: Bench,
        sizes: Sizes,
        temporary: &str,
        more: impl FnOnce(Builder, &Arc<Hooks>) -> Builder,
    ) -> Self {
        Self::start(bench.method, bench.is_simulated(), temporary, |builder, hooks| {
            let builder = builder
                .handles(sizes.handles, 2, 4)
                .region_bytes((sizes.buffers as usize + FRAMES_BESIDE) * BLOCK_SIZE)
                .workers(WorkerSettings { min: 3, max: 4, ..WorkerSettings::default() })
                .try_cached_below(0)
                .inline_write_max(if bench.at_once { u32::MAX } else { 0 });
            more(builder, hooks)
        })
    }

    /// Whether it is a simulated disk, under the scheduler.
    pub fn is_simulated(&self) -> bool {
        self.folder.is_none()
    }

    /// The folder of real files.
    pub fn folder(&self) -> Option<&Path> {
        self.folder.as_ref().map(TempDir::path)
    }

    /// Takes the folder away, so that it outlives the instance.
    pub fn take_folder(&mut self) -> Option<TempDir> {
        self.folder.take()
    }

    /// Where a cluster lies: the folder, or a name on the disk.
    pub fn root(&self) -> &Path {
        self.folder().unwrap_or(Path::new("/sim"))
    }

    /// The file system of the storage.
    pub fn files(&self) -> Box<dyn WritableFiles> {
        match self.is_simulated() {
            true => Box::new(SimFiles::new(&self.aio, &self.disk)),
            false => Box::new(KernelFiles::new(&self.aio)),
        }
    }

    /// Waits for a state that no event announces: by looking again and again, after every other
    /// thread has had its turn.
    ///
    /// # Panics
    /// After a minute in vain.
    pub fn wait_until(&self, what: &str, mut done: impl FnMut() -> bool) {
        let begin = clock::now();
        while !done() {
            let waited = clock::now().since(begin);
            assert!(waited < WAIT_MAX, "waited in vain for: {what}");
            self.yield_once();
        }
    }

    /// Lets every other thread go as far as it can: for certain under the scheduler, a while
    /// otherwise.
    pub fn let_others_go(&self) {
        let turns = if self.is_simulated() { 1 } else { 50 };
        (0..turns).for_each(|_| self.yield_once());
    }

    fn yield_once(&self) {
        match self.is_simulated() {
            true => pause(Duration::from_micros(500)),
            false => thread::yield_now(),
        }
    }

    /// Waits until nothing is in flight.
    ///
    /// # Panics
    /// See [`Instance::wait_until`].
    pub fn settle(&self) {
        self.wait_until("nothing in flight", || self.aio.handles_in_use() == 0);
    }
}
