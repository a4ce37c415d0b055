//! Allocation counter: how many buffers sessions have taken, for the background writer.
//!
//! The background writer uses this count to estimate the demand for buffers (PostgreSQL's
//! `numBufferAllocs`). It hibernates while the pool is idle, and the next allocation wakes it
//! through the latch. PostgreSQL uses `bgwprocno` in `StrategyControl` for this. Sessions only have
//! to set the latch if the background writer has armed it.
//!
//! The background writer can't miss an allocation. It first arms the latch and then reads the
//! count, whereas a session first increments the count and then checks whether the latch is armed.
//! Because all these accesses are sequentially consistent, either the background writer sees the
//! new count and doesn't hibernate, or the session sees that the latch is armed and sets it.

use std::time::Duration;
use trunkline_aio::facade::Futex;
use trunkline_aio::facade::atomic::{AtomicBool, AtomicU64, Ordering};

/// Counter of allocations, and the latch of the background writer.
#[derive(Debug, Default)]
pub(crate) struct Allocations {
    count: AtomicU64,
    /// The background writer is hibernating, or is about to. The first session that changes this to
    /// false must set the latch.
    armed: AtomicBool,
    /// The futex word is incremented each time the latch is set. If the latch is set after the
    /// background writer has read the word but before it sleeps, it doesn't sleep at all.
    latch: Futex,
}

impl Allocations {
    /// Buffers taken since the start. Reuse within a ring does not count.
    pub(crate) fn count(&self) -> u64 {
        self.count.load(Ordering::SeqCst)
    }

    /// Counts allocations, and sets the latch if it is armed.
    pub(crate) fn add(&self, buffers: u64) {
        self.count.fetch_add(buffers, Ordering::SeqCst);
        if self.armed.load(Ordering::SeqCst) && self.armed.swap(false, Ordering::SeqCst) {
            self.set_latch();
        }
    }

    /// How often the latch was set, for [`Allocations::wait`].
    pub(crate) fn latch_epoch(&self) -> u32 {
        self.latch.epoch()
    }

    /// Makes the next allocation set the latch. After calling this, the caller must read the count
    /// again.
    pub(crate) fn arm(&self) {
        self.armed.store(true, Ordering::SeqCst);
    }

    /// Sleeps until the latch has been set since `epoch`, or until the timeout expires. Disarms the
    /// latch.
    pub(crate) fn wait(&self, epoch: u32, timeout: Duration) {
        self.latch.wait(epoch, Some(timeout));
        self.armed.store(false, Ordering::SeqCst);
    }

    /// Wakes the background writer.
    pub(crate) fn set_latch(&self) {
        self.latch.signal();
    }
}
