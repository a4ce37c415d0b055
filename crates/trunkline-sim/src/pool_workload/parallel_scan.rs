//! Parallel scans of a pool workload.

use super::model::SHAPES;
use trunkline_aio::facade::Mutex;
use trunkline_aio::facade::atomic::{AtomicBool, Ordering};
use trunkline_engine::read_stream::ParallelRange;
use trunkline_format::BlockNo;

/// A parallel scan of a relation: several clients share a single block range.
#[derive(Debug)]
pub(super) struct ParallelScan {
    pub(super) range: ParallelRange,
    pub(super) relation: usize,
    /// For each block, whether a client has returned it.
    seen: Mutex<Vec<bool>>,
    /// A client took blocks from the range but didn't return all of them, so the scan can't become
    /// complete.
    abandoned: AtomicBool,
}

impl ParallelScan {
    pub(super) fn new(relation: usize) -> Self {
        let blocks = SHAPES[relation].blocks;
        Self {
            range: ParallelRange::new(blocks),
            relation,
            seen: Mutex::new(vec![false; blocks as usize]),
            abandoned: AtomicBool::new(false),
        }
    }

    /// Whether every block was returned. Only meaningful once all clients have ended. Returns
    /// `None` if a client abandoned its part.
    pub(super) fn is_complete(&self) -> Option<bool> {
        let seen = self.seen.lock().iter().all(|&seen| seen);
        (!self.abandoned.load(Ordering::SeqCst)).then_some(seen)
    }

    /// Records that a client returned a block. Returns whether a client had already returned it.
    pub(super) fn mark_seen(&self, block: BlockNo) -> bool {
        std::mem::replace(&mut self.seen.lock()[block as usize], true)
    }

    /// Records that a client won't return all blocks it took.
    pub(super) fn abandon(&self) {
        self.abandoned.store(true, Ordering::SeqCst);
    }
}
