//! Allocation counter: how many buffers sessions have taken, for the background writer.
//!
//! The background writer estimates the demand from this count (PostgreSQL's `numBufferAllocs`).
//! When the pool is idle it hibernates, and the next allocation wakes it through the latch, as
//! `bgwprocno` does in PostgreSQL's `StrategyControl`. Sessions pay for the wake-up only while the
//! latch is armed.
//!
//! No allocation is missed. The background writer arms the latch and then reads the count. A
//! session raises the count and then tests whether the latch is armed. With sequentially consistent
//! accesses at least one of the two sees the other: either the writer sees the new count and does
//! not hibernate, or the session sees the latch armed and wakes it.

use std::time::Duration;
use trunkline_aio::facade::Futex;
use trunkline_aio::facade::atomic::{AtomicBool, AtomicU64, Ordering};

/// Counter of allocations, and the latch of the background writer.
#[derive(Debug, Default)]
pub(crate) struct Allocations {
    count: AtomicU64,
    /// The background writer hibernates, or is about to. The first session that swaps this to false
    /// sets the latch.
    armed: AtomicBool,
    /// The word counts how often the latch was set, so that setting it between reading the word and
    /// sleeping ends the sleep immediately.
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

    /// Makes the next allocation set the latch. The caller must read the count again afterwards.
    pub(crate) fn arm(&self) {
        self.armed.store(true, Ordering::SeqCst);
    }

    /// Sleeps until the latch was set after `epoch`, or the timeout expires. Disarms the latch.
    pub(crate) fn wait(&self, epoch: u32, timeout: Duration) {
        self.latch.wait(epoch, Some(timeout));
        self.armed.store(false, Ordering::SeqCst);
    }

    /// Wakes the background writer.
    pub(crate) fn set_latch(&self) {
        self.latch.signal();
    }
}
