//! Executor for the simulated disk. The `sync` and `worker` methods and inline execution use it in
//! place of the kernel's system calls.
//!
//! An executor runs one request on the calling thread, as `preadv` or `fsync` would. This executor
//! blocks the thread only in virtual time. It does so if a fault plan injects a delay, if the mount
//! hangs, or if a different operation has to be executed first. See the crate documentation for an
//! example.

use crate::disk::Disk;
use crate::fault::{Fault, FaultPlan};
use crate::pause::pause;
use trunkline_aio::facade::Arc;
use trunkline_aio::facade::atomic::{AtomicU64, Ordering};
use trunkline_aio::{Executor, File, Request};

/// An executor on a simulated disk.
#[derive(Debug)]
pub struct SimExecutor {
    disk: Arc<Disk>,
    plan: FaultPlan,
    /// If this is `n`, every `n`-th cached-only read is a page cache hit. If it is 0, there is no
    /// page cache.
    cached_one_in: u64,
    cached_reads: AtomicU64,
    /// Number of [`Executor::advise`] calls, which have no other effect here.
    advised: AtomicU64,
}

impl SimExecutor {
    /// An executor on `disk`, with the faults of `plan`.
    pub fn new(disk: &Arc<Disk>, plan: FaultPlan) -> Self {
        Self {
            disk: Arc::clone(disk),
            plan,
            cached_one_in: 0,
            cached_reads: AtomicU64::new(0),
            advised: AtomicU64::new(0),
        }
    }

    /// Adds a page cache that serves one in `one_in` cached reads.
    #[must_use]
    pub fn with_cache(mut self, one_in: u64) -> Self {
        self.cached_one_in = one_in;
        self
    }

    /// Number of ranges for which kernel read-ahead was requested.
    pub fn advised(&self) -> u64 {
        self.advised.load(Ordering::SeqCst)
    }
}

impl Executor for SimExecutor {
    // We must choose the fault before the thread can block, so that executions are numbered in the
    // order of the calls.
    fn execute(&self, request: &mut Request<'_>) -> i32 {
        let fault = self.plan.next_for(request);
        self.disk.pass(request.file_id);
        match fault {
            Some(Fault::Delay(time)) => pause(time),
            Some(Fault::Reorder) => self.disk.be_overtaken(),
            _ => {}
        }
        self.disk.perform(request, fault)
    }

    fn execute_cached(&self, request: &mut Request<'_>) -> Option<i32> {
        let read = self.cached_reads.fetch_add(1, Ordering::SeqCst) + 1;
        let hit = self.cached_one_in != 0 && read.is_multiple_of(self.cached_one_in);
        let length = i32::try_from(request.length).ok()?;
        // A page cache hit doesn't access the disk at all, so we don't inject any fault into it.
        (hit && self.disk.perform(request, None) == length).then_some(length)
    }

    fn advise(&self, _file: &File, _offset: u64, _length: u64) -> bool {
        self.advised.fetch_add(1, Ordering::SeqCst);
        true
    }
}
