//! The I/O instance's settings: turns `io_method` and related settings into a
//! [`trunkline_aio::Builder`].

use trunkline_aio::{Builder, MethodKind, WorkerSettings};

use super::{IoMethod, Settings};

/// Maximum number of I/O handles per session if `io_max_concurrency` isn't set.
const SESSION_QUOTA: u32 = 512;

/// Minimum number of handles per instance. PostgreSQL allocates `io_max_concurrency` handles for
/// each backend. We use one table for all sessions, so ours can be smaller.
const HANDLES_MIN: u32 = 1024;

impl Settings {
    /// Returns a builder for an I/O instance with these settings. The caller must still set the
    /// page memory size.
    ///
    /// A session may use as many handles as its deepest read stream needs, plus one for a page that
    /// it needs immediately. The table has room for at least two such sessions. Any other sessions
    /// may have to wait for a free handle.
    pub fn io_builder(&self) -> Builder {
        let depth = self.effective_io_concurrency().max(self.maintenance_io_concurrency());
        let needed = Self::stream_slots(depth) + 1;
        let quota = self.io_max_concurrency().unwrap_or(SESSION_QUOTA.max(needed));
        let handles = quota.saturating_mul(2).max(HANDLES_MIN);
        Builder::new()
            .method(self.io_method().into())
            .handles(handles, 0, 0)
            .sessions(self.max_sessions())
            .session_quota(quota)
            .iovecs(self.io_max_combine_limit() as usize)
            .workers(self.worker_settings())
    }

    /// The bounds and times of the worker pool, which can also be changed in a running instance.
    pub fn worker_settings(&self) -> WorkerSettings {
        WorkerSettings {
            min: self.io_min_workers() as usize,
            max: self.io_max_workers() as usize,
            idle_timeout: self.io_worker_idle_timeout(),
            launch_interval: self.io_worker_launch_interval(),
        }
    }

    /// Number of slots, and so of handles, that a read stream needs to keep `concurrency` reads at
    /// the storage: one in eight more.
    ///
    /// A slot stays occupied until the session takes the read's result. Before that, the completion
    /// passes through one or two threads that all have to be woken, and results may wait for the
    /// rest of their group. If there were only as many slots as reads, the storage would have fewer
    /// (decision 0016). With a concurrency of less than eight there are no additional slots, so a
    /// low limit is exact.
    pub(crate) fn stream_slots(concurrency: u32) -> u32 {
        let reads = concurrency.clamp(1, 1000);
        reads + reads / 8
    }
}

impl From<IoMethod> for MethodKind {
    fn from(method: IoMethod) -> MethodKind {
        match method {
            IoMethod::Sync => MethodKind::Sync,
            IoMethod::Worker => MethodKind::Worker,
            IoMethod::IoUring => MethodKind::IoUring,
        }
    }
}
