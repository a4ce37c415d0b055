//! The simulated disk in the place of the kernel: under `sync`, `worker` and inline execution.
//!
//! The calling thread blocks as it would in a system call, in virtual time: for the delays of the
//! plan, before a mount that hangs, or until another operation has overtaken it. The crate's
//! documentation has an example.

use crate::disk::Disk;
use crate::fault::{Fault, FaultPlan};
use std::fmt;
use trunkline_aio::sync::Arc;
use trunkline_aio::sync::atomic::{AtomicU64, Ordering};
use trunkline_aio::{Executor, File, Request};

/// See the module.
pub struct SimExecutor {
    disk: Arc<Disk>,
    plan: FaultPlan,
    /// One look in so many finds its blocks in memory; 0 is none.
    cached_one_in: u64,
    looks: AtomicU64,
    advised: AtomicU64,
}

impl fmt::Debug for SimExecutor {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("SimExecutor")
    }
}

impl SimExecutor {
    /// Executes on `disk`, with the faults of `plan`.
    pub fn new(disk: &Arc<Disk>, plan: FaultPlan) -> Self {
        Self {
            disk: Arc::clone(disk),
            plan,
            cached_one_in: 0,
            looks: AtomicU64::new(0),
            advised: AtomicU64::new(0),
        }
    }

    /// With a page cache that one look in `looks` finds its blocks in.
    #[must_use]
    pub fn with_cache(mut self, looks: u64) -> Self {
        self.cached_one_in = looks;
        self
    }

    /// Ranges that it was told would be read soon.
    pub fn advised(&self) -> u64 {
        self.advised.load(Ordering::SeqCst)
    }
}

impl Executor for SimExecutor {
    fn execute(&self, request: &mut Request<'_>) -> i32 {
        let fault = self.plan.next_for(request);
        self.disk.pass(request.file_id);
        match fault {
            Some(Fault::Delay(time)) => Disk::delay(time),
            Some(Fault::Reorder) => self.disk.be_overtaken(),
            _ => {}
        }
        self.disk.perform(request, fault)
    }

    fn execute_cached(&self, request: &mut Request<'_>) -> Option<i32> {
        let look = self.looks.fetch_add(1, Ordering::SeqCst) + 1;
        let hit = self.cached_one_in != 0 && look.is_multiple_of(self.cached_one_in);
        let length = i32::try_from(request.length).ok()?;
        // What is in memory needs no storage, so nothing goes wrong with it.
        (hit && self.disk.perform(request, None) == length).then_some(length)
    }

    fn advise(&self, _file: &File, _offset: u64, _length: u64) -> bool {
        self.advised.fetch_add(1, Ordering::SeqCst);
        true
    }
}
