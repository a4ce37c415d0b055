//! An I/O instance and its storage, which is either the simulated disk or a temporary directory.
//!
//! A test case must never just sleep for a while. It must always wait until a certain state has
//! been reached. With real threads, we poll for that state. Under the scheduler, even the shortest
//! pause allows all other threads to run until they block.

use super::Environment;
use crate::disk::Disk;
use crate::executor::SimExecutor;
use crate::fault::{Fault, FaultPlan, Rule};
use crate::files::SimFiles;
use crate::method::SimMethod;
use crate::pause::pause;
use crate::probe::TestProbe;
use crate::waker::CountingWaker;
use std::path::Path;
use std::pin::pin;
use std::task::{Context, Poll};
use std::time::Duration;
use tempfile::TempDir;
use trunkline_aio::facade::atomic::{AtomicU64, Ordering};
use trunkline_aio::facade::{Arc, Mutex, thread};
use trunkline_aio::{Aio, Builder, Observed, Operation, State, clock};
use trunkline_engine::storage::{KernelFiles, WritableFiles};

/// Queue depth of the simulated device. We make it small, so that the queue becomes full in many
/// test cases and the sessions have to execute I/O themselves.
const PLACES: usize = 6;

/// How long we wait for a state to be reached. Even on a slow machine it takes much less time than
/// this, so if we hit the timeout, we can assume that the state will never be reached.
const WAIT_MAX: Duration = Duration::from_secs(60);

/// An I/O instance with its storage.
#[derive(Debug)]
pub struct Instance {
    /// The instance.
    pub aio: Aio,
    /// The instance's probe.
    pub probe: Arc<TestProbe>,
    /// The simulated disk; unused with real files.
    pub disk: Arc<Disk>,
    /// The simulated disk's faults.
    pub plan: FaultPlan,
    /// The simulated disk's executor.
    pub executor: Arc<SimExecutor>,
    /// The case's environment.
    pub environment: Environment,
    /// The temporary directory of real files, removed on drop.
    folder: Option<TempDir>,
    /// Number of results replaced by the fault that was injected last.
    replaced: Arc<AtomicU64>,
}

/// The I/O that [`Instance::inject_into`] chose, once there is one.
#[derive(Debug, Clone, Default)]
pub struct StruckIo(Arc<Mutex<Option<Observed>>>);

impl StruckIo {
    /// Whether this is the I/O.
    pub fn is(&self, io: &Observed) -> bool {
        self.0.lock().is_some_and(|chosen| chosen.io == io.io)
    }

    /// Whether this I/O does the same as the chosen one, or is the chosen one.
    fn is_retried_by(&self, io: &Observed) -> bool {
        let what = |io: &Observed| (io.operation, io.file_id, io.offset);
        self.0.lock().is_some_and(|chosen| what(&chosen) == what(io))
    }
}

// If a case fails while a mount hangs, we must release the mount, so that the blocked threads can
// terminate.
impl Drop for Instance {
    fn drop(&mut self) {
        self.disk.release_all();
    }
}

impl Instance {
    /// Starts an instance. `configure` is applied last, so it can override any setting.
    ///
    /// # Panics
    /// If the instance does not start, or falls back to another method.
    pub fn start(
        environment: Environment,
        configure: impl FnOnce(Builder, &Arc<TestProbe>) -> Builder,
    ) -> Self {
        let (probe, disk) = (Arc::new(TestProbe::default()), Arc::new(Disk::new()));
        let plan = FaultPlan::none();
        let executor = Arc::new(SimExecutor::new(&disk, plan.clone()));
        let method = environment.method;
        let mut builder = Builder::new().probe(Arc::clone(&probe) as Arc<_>).method(method);
        let simulated = environment.is_simulated();
        if simulated {
            builder = builder
                .executor(Arc::clone(&executor) as Arc<_>)
                .custom_method(Arc::new(SimMethod::new(&disk, plan.clone(), PLACES)));
        }
        let aio = configure(builder, &probe).start().expect("starts");
        // A fallback would silently test another method.
        assert_eq!(aio.method_status().used, method, "{:?}", aio.method_status());
        let folder = (!simulated).then(temporary_folder);
        let replaced = Arc::default();
        Self { aio, probe, disk, plan, executor, environment, folder, replaced }
    }

    /// Whether the case runs under the scheduler, on the simulated disk.
    pub fn is_simulated(&self) -> bool {
        self.environment.is_simulated()
    }

    /// Whether threads other than the session's execute I/O.
    pub fn is_asynchronous(&self) -> bool {
        self.environment.is_asynchronous()
    }

    /// The directory of real files; `None` on the simulated disk.
    pub fn folder(&self) -> Option<&Path> {
        self.folder.as_ref().map(TempDir::path)
    }

    /// Drops this instance but keeps its directory and returns it, so that another instance can
    /// open the same files. The I/O instance may live on if there are other clones of `aio`.
    pub fn into_folder(mut self) -> Option<TempDir> {
        self.folder.take()
    }

    /// The cluster's data directory: a real directory, or just a name on the simulated disk.
    pub fn root(&self) -> &Path {
        self.folder().unwrap_or(Path::new("/sim"))
    }

    /// The file system: the simulated disk's, or the kernel's.
    pub fn files(&self) -> Box<dyn WritableFiles> {
        match self.is_simulated() {
            true => Box::new(SimFiles::new(&self.aio, &self.disk)),
            false => Box::new(KernelFiles::new(&self.aio)),
        }
    }

    /// Injects `fault` into the next `times` executions of `operation`. On real files, the kernel
    /// still executes the I/O, and all we can do is replace the result. Silent faults and delays
    /// therefore only work on the simulated disk, and are ignored on real files.
    pub fn inject(&self, operation: Operation, fault: Fault, times: u64) {
        if self.is_simulated() {
            return self.plan.set(vec![Rule::new(operation, 1, fault).times(times)]);
        }
        self.replace_results(move |io| io.operation == operation, fault, times);
    }

    /// Like [`Instance::inject`], but injects the fault into a single I/O: the next one that
    /// matches when it becomes DEFINED. Whatever is executed later with the same operation at the
    /// same offset of the same file counts as a retry of that I/O, which the fault strikes again
    /// until it has struck `times` times.
    pub fn inject_into(
        &self,
        filter: impl Fn(&Observed) -> bool + Send + 'static,
        fault: Fault,
        times: u64,
    ) -> StruckIo {
        let struck = StruckIo::default();
        let (chosen, simulated) = (struck.clone(), self.is_simulated());
        self.clear_faults();
        let plan = self.plan.clone();
        self.probe.on_next(State::Defined, filter, move |io| {
            *chosen.0.lock() = Some(*io);
            if simulated {
                let rule = Rule::new(io.operation, 1, fault).times(times);
                plan.set(vec![rule.at(io.file_id, io.offset)]);
            }
        });
        if !simulated {
            let chosen = struck.clone();
            self.replace_results(move |io| chosen.is_retried_by(io), fault, times);
        }
        struck
    }

    /// Replaces the results of the next `times` matching I/Os that succeed.
    fn replace_results(
        &self,
        matches: impl Fn(&Observed) -> bool + Send + 'static,
        fault: Fault,
        times: u64,
    ) {
        self.replaced.store(0, Ordering::SeqCst);
        let replaced = Arc::clone(&self.replaced);
        self.probe.change_results(move |io, raw| {
            let spent = replaced.load(Ordering::SeqCst) >= times;
            if !matches(io) || raw < 0 || spent {
                return raw;
            }
            replaced.fetch_add(1, Ordering::SeqCst);
            match fault {
                Fault::Short(bytes) => raw.min(bytes as i32),
                _ => fault.without_transfer().unwrap_or(raw),
            }
        });
    }

    /// How often the fault that was injected last has struck.
    pub fn injected(&self) -> u64 {
        self.replaced.load(Ordering::SeqCst) + self.plan.struck()
    }

    /// Removes all faults.
    pub fn clear_faults(&self) {
        self.plan.set(Vec::new());
        self.probe.keep_results();
    }

    /// Polls until a certain state has been reached, for states that we can't be notified of. Other
    /// threads can run between two polls.
    ///
    /// # Panics
    /// If the state is not reached within a minute.
    pub fn wait_until(&self, what: &str, mut done: impl FnMut() -> bool) {
        let begin = clock::now();
        while !done() {
            let waited = clock::now().since(begin);
            assert!(waited < WAIT_MAX, "waited in vain for: {what}");
            self.yield_once();
        }
    }

    /// Polls a future until it is ready. Unlike an ordinary executor, this fails if no wake-up
    /// arrives in time.
    ///
    /// # Panics
    /// See [`Instance::wait_until`].
    pub fn block_on<T>(&self, future: impl Future<Output = T>) -> T {
        let (wakes, waker) = CountingWaker::new();
        let mut future = pin!(future);
        loop {
            let before = wakes.count();
            match future.as_mut().poll(&mut Context::from_waker(&waker)) {
                Poll::Ready(value) => return value,
                Poll::Pending => self.wait_until("a wake-up", || wakes.count() > before),
            }
        }
    }

    /// Lets other threads run. Under the scheduler, all other threads run until they block. Real
    /// threads only get a chance to run, so a case must not depend on how far they get.
    pub fn let_others_run(&self) {
        let turns = if self.is_simulated() { 1 } else { 50 };
        (0..turns).for_each(|_| self.yield_once());
    }

    // Real threads yield, because the façade forbids sleeping.
    fn yield_once(&self) {
        match self.is_simulated() {
            true => pause(Duration::from_micros(500)),
            false => thread::yield_now(),
        }
    }

    /// Waits until no I/O handle is in use. Under the scheduler, we also let the threads that
    /// completed the I/O run until they block.
    ///
    /// # Panics
    /// See [`Instance::wait_until`].
    pub fn settle(&self) {
        self.wait_until("no I/O in flight", || self.aio.handles_in_use() == 0);
        if self.is_simulated() {
            pause(Duration::from_micros(1));
        }
    }
}

/// Creates a temporary directory next to the test binaries. We don't use `/tmp`, because it might
/// be a tmpfs, which doesn't support direct I/O.
///
/// # Panics
/// If the directory cannot be created.
pub(super) fn temporary_folder() -> TempDir {
    let binary = std::env::current_exe().expect("the path of the test binary");
    // target/debug/deps/binary
    let target = binary.ancestors().nth(3).expect("a target folder").join("tmp");
    std::fs::create_dir_all(&target).expect("a folder for temporary files");
    tempfile::tempdir_in(target).expect("a temporary folder")
}
