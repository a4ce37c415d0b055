//! One instance: its start, its sessions, its end.
//!
//! Everything an I/O needs is allocated here, before the first one is issued. The last holder of an
//! instance (a clone of [`Aio`] or a session) waits for what is in flight, then ends the threads:
//! I/O under way may still write into the region, so nothing is torn down under it.

use crate::bitmap::Bitmap;
use crate::capacity::Capacity;
use crate::core::Core;
use crate::file::{File, OpenOptions, Registry};
use crate::freelist::FreeList;
use crate::graveyard::Graveyard;
use crate::handle::Handle;
use crate::limits::{HANDLES_MAX, INLINE_WRITE_MAX, IOVECS_MAX, SESSIONS_MAX, TRY_CACHED_BELOW};
use crate::method::uring::UringSettings;
use crate::method::worker::WorkerSettings;
use crate::method::{Method, MethodKind};
use crate::methods::{MethodStatus, Methods};
use crate::probe::Probe;
use crate::region::Region;
use crate::request::{Executor, Kernel};
use crate::session::{Class, Notifier, Session, SessionSlot};
use crate::snapshot::{IoRow, snapshot};
use crate::stats::{Counters, Latencies, Stats};
use crate::sync::atomic::Ordering;
use crate::sync::{Arc, Mutex, thread};
use std::io;
use std::path::Path;

/// The session slot that the instance itself uses to wait for its end.
const OWN_SESSION: u32 = 0;

/// Sizes and choices of an instance, all fixed at start but the method and the workers.
pub struct Builder {
    method: MethodKind,
    handles: u32,
    log_reserve: u32,
    foreground_reserve: u32,
    session_quota: u32,
    iovecs: usize,
    try_cached_below: u32,
    inline_write_max: u32,
    region_bytes: usize,
    workers: WorkerSettings,
    worker_queue: usize,
    uring: UringSettings,
    executor: Arc<dyn Executor>,
    custom: Option<Arc<dyn Method>>,
    probe: Option<Arc<dyn Probe>>,
}

impl Default for Builder {
    fn default() -> Self {
        Self::new()
    }
}

impl std::fmt::Debug for Builder {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "Builder({}, {} handles)", self.method, self.handles)
    }
}

impl Builder {
    /// 1,024 handles, a region of 16 MiB, method `worker`.
    pub fn new() -> Self {
        Self {
            method: MethodKind::Worker,
            handles: 1024,
            log_reserve: 32,
            foreground_reserve: 64,
            session_quota: 512,
            iovecs: IOVECS_MAX,
            try_cached_below: TRY_CACHED_BELOW,
            inline_write_max: INLINE_WRITE_MAX,
            region_bytes: 16 << 20,
            workers: WorkerSettings::default(),
            worker_queue: usize::MAX,
            uring: UringSettings::default(),
            executor: Arc::new(Kernel),
            custom: None,
            probe: None,
        }
    }

    /// The method to start with (`io_method`).
    #[must_use]
    pub fn method(mut self, method: MethodKind) -> Self {
        self.method = method;
        self
    }

    /// Handles of the instance, 1 to 65,536, and how many of them only the log may use, and only
    /// the log and foreground reads. The reserves are cut so that every class can have one handle.
    #[must_use]
    pub fn handles(mut self, handles: u32, log_reserve: u32, foreground_reserve: u32) -> Self {
        self.handles = handles.clamp(1, HANDLES_MAX as u32);
        self.log_reserve = log_reserve.min(self.handles - 1);
        self.foreground_reserve = foreground_reserve.min(self.handles - 1 - self.log_reserve);
        self
    }

    /// Handles that one session may hold (`io_max_concurrency`), at least 1; the log is exempt.
    #[must_use]
    pub fn session_quota(mut self, quota: u32) -> Self {
        self.session_quota = quota.max(1);
        self
    }

    /// Iovecs of a handle (`io_max_combine_limit`), 1 to 128.
    #[must_use]
    pub fn iovecs(mut self, iovecs: usize) -> Self {
        self.iovecs = iovecs.clamp(1, IOVECS_MAX);
        self
    }

    /// Buffered reads below this many bytes are first looked for in the page cache by the session
    /// itself, without waiting; 0 sends every read to the method.
    #[must_use]
    pub fn try_cached_below(mut self, bytes: u32) -> Self {
        self.try_cached_below = bytes;
        self
    }

    /// Buffered writes of up to this many bytes are made by the session itself, as long as the file
    /// system takes them at once, and so are the calls to write them back; 0 sends every one to the
    /// method.
    #[must_use]
    pub fn inline_write_max(mut self, bytes: u32) -> Self {
        self.inline_write_max = bytes;
        self
    }

    /// Size of the page region in bytes.
    #[must_use]
    pub fn region_bytes(mut self, bytes: usize) -> Self {
        self.region_bytes = bytes;
        self
    }

    /// The worker pool.
    #[must_use]
    pub fn workers(mut self, workers: WorkerSettings) -> Self {
        self.workers = workers;
        self
    }

    /// I/Os that may be queued for workers before sessions execute their own; by default every
    /// handle fits.
    #[must_use]
    pub fn worker_queue(mut self, queue: usize) -> Self {
        self.worker_queue = queue;
        self
    }

    /// The rings.
    #[must_use]
    pub fn uring(mut self, uring: UringSettings) -> Self {
        self.uring = uring;
        self
    }

    /// Who executes I/O in a blocking thread; the operating system by default.
    #[must_use]
    pub fn executor(mut self, executor: Arc<dyn Executor>) -> Self {
        self.executor = executor;
        self
    }

    /// A method of the embedder's own, used as [`MethodKind::Custom`].
    #[must_use]
    pub fn custom_method(mut self, method: Arc<dyn Method>) -> Self {
        self.custom = Some(method);
        self
    }

    /// A hook on every transition.
    #[must_use]
    pub fn probe(mut self, probe: Arc<dyn Probe>) -> Self {
        self.probe = Some(probe);
        self
    }

    /// Starts the instance. A method that cannot be had is replaced by the next best one; see
    /// [`Aio::method_status`].
    ///
    /// # Errors
    /// The page region could not be mapped.
    pub fn start(self) -> io::Result<Aio> {
        let handles = self.handles as usize;
        let all = self.handles;
        let foreground = all - self.log_reserve.min(all - 1);
        let rest = foreground - self.foreground_reserve.min(foreground - 1);
        let limits = [all, foreground, rest, rest, rest, rest];
        let core = Arc::new(Core {
            handles: (0..handles).map(|_| Handle::new(self.iovecs)).collect(),
            free: FreeList::new(all),
            capacity: Capacity::new(limits, SESSIONS_MAX),
            sessions: (0..SESSIONS_MAX).map(|_| SessionSlot::new()).collect(),
            ready: Bitmap::new(handles),
            registry: Arc::new(Registry::default()),
            graveyard: Graveyard::new(handles),
            region: Region::map(self.region_bytes)?,
            executor: self.executor,
            probe: self.probe,
            stats: Stats::new(),
            methods: Methods::new(
                self.workers,
                handles,
                self.worker_queue.min(handles),
                self.uring,
                self.custom,
            ),
            session_quota: self.session_quota,
            iovecs: self.iovecs,
            try_cached_below: self.try_cached_below,
            inline_write_max: self.inline_write_max,
        });
        core.methods.switch(&core, self.method);
        let free_sessions = (1..SESSIONS_MAX as u32).rev().collect();
        Ok(Aio { instance: Arc::new(Instance { core, free_sessions: Mutex::new(free_sessions) }) })
    }
}

/// An instance of asynchronous I/O. Clones share it; the last one, sessions included, waits for
/// what is in flight and ends the threads.
#[derive(Debug, Clone)]
pub struct Aio {
    instance: Arc<Instance>,
}

#[derive(Debug)]
pub(crate) struct Instance {
    core: Arc<Core>,
    free_sessions: Mutex<Vec<u32>>,
}

/// Every session slot is taken.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct TooManySessions;

impl std::fmt::Display for TooManySessions {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "more than {} sessions", SESSIONS_MAX - 1)
    }
}

impl std::error::Error for TooManySessions {}

impl Aio {
    /// A new session.
    ///
    /// # Errors
    /// 255 sessions exist.
    pub fn session(&self) -> Result<Session, TooManySessions> {
        let id = self.instance.take_session().ok_or(TooManySessions)?;
        Ok(Session::new(Arc::clone(&self.instance), Arc::clone(&self.instance.core), id))
    }

    /// Opens a file for I/O through this instance.
    ///
    /// # Errors
    /// As open(2); anything but a regular file or a block device is refused.
    pub fn open(&self, path: &Path, options: OpenOptions) -> io::Result<File> {
        let core = &self.instance.core;
        match File::open(&core.registry, path, options) {
            Err(error) if is_shortage(&error) && !core.graveyard.is_empty() => {
                // Files that nobody uses any more hold descriptors until a worker closes them.
                core.graveyard.close_all();
                File::open(&core.registry, path, options)
            }
            result => result,
        }
    }

    /// A file that exists only in the storage of the instance's own executor or method.
    pub fn open_virtual(&self, path: &Path, device: u64, direct: bool) -> File {
        File::without_descriptor(&self.instance.core.registry, path, device, direct)
    }

    /// The page region.
    pub fn region(&self) -> &Region {
        &self.instance.core.region
    }

    /// A way to wake any session, by its number.
    pub fn notifier(&self) -> Notifier {
        Notifier::new(Arc::clone(&self.instance.core))
    }

    /// Puts another method in force, or the next best one; I/O under way is not touched.
    pub fn set_method(&self, method: MethodKind) -> MethodStatus {
        self.instance.core.methods.switch(&self.instance.core, method);
        self.method_status()
    }

    /// Which method serves, and why not another.
    pub fn method_status(&self) -> MethodStatus {
        self.instance.core.methods.status()
    }

    /// Changes the worker pool.
    pub fn set_workers(&self, workers: WorkerSettings) {
        self.instance.core.methods.pool().change_settings(workers);
    }

    /// Live worker threads.
    pub fn worker_count(&self) -> usize {
        self.instance.core.methods.pool().size()
    }

    /// I/Os queued for workers.
    pub fn worker_queue_length(&self) -> usize {
        self.instance.core.methods.pool().queued()
    }

    /// Handles in use.
    pub fn handles_in_use(&self) -> u32 {
        self.instance.core.free.in_use()
    }

    /// Files open through the instance, those waiting to be closed included.
    pub fn open_files(&self) -> usize {
        self.instance.core.registry.open_files()
    }

    /// All handles that are not idle: the rows of `pg_aios`. Takes no lock that I/O needs.
    pub fn snapshot(&self) -> Vec<IoRow> {
        snapshot(&self.instance.core)
    }

    /// Everything counted since the start.
    pub fn counters(&self) -> Counters {
        self.instance.core.stats.counters()
    }

    /// Distributions of device and wait times.
    pub fn latencies(&self) -> Latencies {
        self.instance.core.stats.latencies()
    }
}

/// No descriptor is free, in the process or in the system.
fn is_shortage(error: &io::Error) -> bool {
    matches!(error.raw_os_error(), Some(libc::EMFILE | libc::ENFILE))
}

impl Instance {
    /// A free session number, if possible one whose predecessor has nothing in flight any more:
    /// what is in flight counts against the quota of the number.
    fn take_session(&self) -> Option<u32> {
        let mut free = self.free_sessions.lock();
        let idle = |id: &u32| self.core.sessions[*id as usize].in_use.load(Ordering::SeqCst) == 0;
        let at = free.iter().rposition(idle).or(free.len().checked_sub(1))?;
        Some(free.swap_remove(at))
    }

    pub(crate) fn session_ended(&self, id: u32) {
        self.free_sessions.lock().push(id);
    }
}

impl Drop for Instance {
    fn drop(&mut self) {
        let core = Arc::clone(&self.core);
        // A callback or a task may own the last clone, and be dropped by a thread that would then
        // wait for itself.
        if thread::is_internal() {
            let spawned = thread::spawn("aio end", move || end(&core));
            debug_assert!(spawned.is_ok(), "the threads of an instance are left running");
        } else {
            end(&core);
        }
    }
}

/// Waits for what is in flight and ends the threads.
fn end(core: &Arc<Core>) {
    let own = &core.sessions[OWN_SESSION as usize];
    while core.free.in_use() > 0 {
        let seen = own.event.epoch();
        core.capacity.register(Class::Maintenance, OWN_SESSION);
        if core.free.in_use() > 0 {
            own.event.wait(seen, None);
        }
    }
    core.capacity.deregister(Class::Maintenance, OWN_SESSION, &core.sessions);
    core.methods.shut_down();
    core.graveyard.close_all();
}
