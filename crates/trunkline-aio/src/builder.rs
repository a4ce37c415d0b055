//! [`Builder`]: the settings of an instance, and its start.
//!
//! If PostgreSQL has a corresponding GUC, the setting's documentation gives its name.
//!
//! We allocate everything an I/O needs before the first I/O is issued: the handles and their
//! iovecs, session slots, queues with room for every handle, and the page region. The I/O path
//! itself never allocates memory, so it can't fail with an out-of-memory error. The only exception
//! is the memory of the pages in a large region, which is allocated just before the pages are first
//! used (`storage/population.rs`).

use crate::aio::Aio;
use crate::completion::completions::Completions;
use crate::completion::in_flight::InFlight;
use crate::completion::roster::WorkerSettings;
use crate::completion::worker_pool::WorkerPool;
use crate::limits::{HANDLES_MAX, IOVECS_MAX, SESSIONS_MAX};
#[cfg(feature = "sim")]
use crate::method::Method;
use crate::method::dispatcher::{Dispatcher, DispatcherSettings};
use crate::method::ring::UringSettings;
use crate::storage::executor::{Executor, Kernel};
use crate::storage::region::{Populator, Region};
use crate::tables::admission::Admission;
use crate::tables::handle_table::HandleTable;
use crate::tables::method_kind::MethodKind;
use crate::tables::probe::Probe;
use crate::tables::session_table::SessionTable;
use std::io;
use std::sync::Arc;

/// An instance's settings. They are fixed at start, except for the method and the worker pool's
/// settings.
#[derive(Clone)]
pub struct Builder {
    method: MethodKind,
    handles: u32,
    log_reserve: u32,
    foreground_reserve: u32,
    sessions: u32,
    session_quota: u32,
    iovecs: usize,
    region_bytes: usize,
    workers: WorkerSettings,
    worker_queue: usize,
    dispatcher: DispatcherSettings,
    executor: Arc<dyn Executor>,
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
    /// The default settings: 1,024 handles, a region of 16 MiB, method `worker`.
    pub fn new() -> Self {
        Self {
            method: MethodKind::Worker,
            handles: 1024,
            log_reserve: 32,
            foreground_reserve: 64,
            sessions: 255,
            session_quota: 512,
            iovecs: IOVECS_MAX,
            region_bytes: 16 << 20,
            workers: WorkerSettings::default(),
            worker_queue: usize::MAX,
            dispatcher: DispatcherSettings::default(),
            executor: Arc::new(Kernel),
            probe: None,
        }
    }

    /// Sets the initial method (`io_method`).
    #[must_use]
    pub fn method(mut self, method: MethodKind) -> Self {
        self.method = method;
        self
    }

    /// Sets the number of handles (1 to 65,536) and the sizes of two reserves. The first reserve
    /// can be used only by the log, the second only by the log and foreground reads. If the
    /// reserves don't leave enough handles for the other classes, we reduce them so that every
    /// class can acquire at least one handle.
    #[must_use]
    pub fn handles(mut self, handles: u32, log_reserve: u32, foreground_reserve: u32) -> Self {
        self.handles = handles.clamp(1, HANDLES_MAX as u32);
        self.log_reserve = log_reserve.min(self.handles - 1);
        self.foreground_reserve = foreground_reserve.min(self.handles - 1 - self.log_reserve);
        self
    }

    /// Sets the maximum number of concurrent sessions, 1 to 8,191; the default is 255. This is the
    /// counterpart of PostgreSQL's `MaxBackends`, so it also counts sessions that serve no client.
    ///
    /// A session needs about 250 bytes when the instance starts, and one bit in every handle, which
    /// is another 128 bytes with 1,024 handles. A buffer pool adds 88 bytes.
    #[must_use]
    pub fn sessions(mut self, sessions: u32) -> Self {
        self.sessions = sessions.clamp(1, SESSIONS_MAX as u32);
        self
    }

    /// Sets the maximum number of handles one session may hold (`io_max_concurrency`), at least 1.
    /// The log class is exempt from this limit: even if a session has used up its quota with
    /// read-ahead, it must still be able to flush the log.
    #[must_use]
    pub fn session_quota(mut self, quota: u32) -> Self {
        self.session_quota = quota.max(1);
        self
    }

    /// Sets the number of iovecs per handle (`io_max_combine_limit`), 1 to 128. This limits how
    /// many separate pieces of memory a single I/O can use, but not how many bytes it can transfer.
    #[must_use]
    pub fn iovecs(mut self, iovecs: usize) -> Self {
        self.iovecs = iovecs.clamp(1, IOVECS_MAX);
        self
    }

    /// If a buffered read is smaller than this many bytes, the session first tries to read the data
    /// from the page cache without waiting. A value of 0 disables this, so that every read is
    /// passed to the I/O method.
    #[must_use]
    pub fn try_cached_below(mut self, bytes: u32) -> Self {
        self.dispatcher.try_cached_below = bytes;
        self
    }

    /// As long as the mount accepts writes quickly, the session itself executes buffered writes of
    /// up to this many bytes, and the writebacks that follow them. A value of 0 disables this, so
    /// that every write is passed to the I/O method.
    #[must_use]
    pub fn inline_write_max(mut self, bytes: u32) -> Self {
        self.dispatcher.inline_write_max = bytes;
        self
    }

    /// Sets the size of the page region in bytes.
    #[must_use]
    pub fn region_bytes(mut self, bytes: usize) -> Self {
        self.region_bytes = bytes;
        self
    }

    /// Sets the limits and timeouts of the worker pool.
    #[must_use]
    pub fn workers(mut self, workers: WorkerSettings) -> Self {
        self.workers = workers;
        self
    }

    /// Sets the maximum number of I/Os in the workers' queue. When the queue is full, sessions
    /// execute their own I/O. By default, the queue has room for every handle.
    #[must_use]
    pub fn worker_queue(mut self, queue: usize) -> Self {
        self.worker_queue = queue;
        self
    }

    /// Sets the number, size and features of the rings.
    #[must_use]
    pub fn uring(mut self, uring: UringSettings) -> Self {
        self.dispatcher.uring = uring;
        self
    }

    /// Replaces the executor. The executor performs I/O in the calling thread, which is allowed to
    /// block; by default, it makes system calls.
    #[cfg(feature = "sim")]
    #[must_use]
    pub fn executor(mut self, executor: Arc<dyn Executor>) -> Self {
        self.executor = executor;
        self
    }

    /// Supplies a custom I/O method, selected with [`MethodKind::Custom`].
    #[cfg(feature = "sim")]
    #[must_use]
    pub fn custom_method(mut self, method: Arc<dyn Method>) -> Self {
        self.dispatcher.custom = Some(method);
        self
    }

    /// Installs a hook that is called at every handle state transition.
    #[cfg(feature = "sim")]
    #[must_use]
    pub fn probe(mut self, probe: Arc<dyn Probe>) -> Self {
        self.probe = Some(probe);
        self
    }

    /// Starts the instance. If the requested method is unavailable, the next best one is used; see
    /// [`Aio::method_status`].
    ///
    /// # Errors
    /// The page region could not be mapped.
    pub fn start(self) -> io::Result<Aio> {
        let handles = self.handles as usize;
        let all = self.handles;
        let foreground = all - self.log_reserve.min(all - 1);
        let rest = foreground - self.foreground_reserve.min(foreground - 1);
        // One limit per class, in the order of `CLASSES`. The log may use every handle, foreground
        // reads may use all but the log's reserve, and the other classes can't use either of the
        // two reserves.
        let limits = [all, foreground, rest, rest, rest, rest];
        // The instance itself uses a session during shutdown.
        let sessions = self.sessions as usize + 1;
        let table = HandleTable::new(all, self.iovecs, sessions, self.probe);
        let free = Arc::clone(table.free());
        let completions = Completions::new(
            table,
            Arc::new(SessionTable::new(sessions)),
            Admission::new(limits, self.session_quota, sessions, free),
            WorkerPool::new(self.workers, handles, self.worker_queue.min(handles)),
        );
        let region = Region::map(self.region_bytes)?;
        let populator = Populator::start(&region);
        let in_flight = Arc::new(InFlight::new(completions, self.executor, region));
        let dispatcher = Dispatcher::new(in_flight, self.dispatcher);
        dispatcher.switch(self.method);
        Ok(Aio::new(dispatcher, populator))
    }
}
