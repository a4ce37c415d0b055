//! The current I/O method, and the record of fallbacks.
//!
//! A ring driver that loses its ring must switch the instance to the workers. It may do so long
//! after its rings were replaced by new ones, and must not switch away from those. Therefore every
//! start of io_uring has a number, which is stored beside the method in one atomic word. A driver's
//! compare-exchange succeeds only if its own start is still current.

use crate::method::fallback::Fallback;
use crate::sync::Mutex;
use crate::sync::atomic::{AtomicU8, AtomicU64, Ordering};
use crate::tables::method_kind::MethodKind;

/// The active method, which new I/O is submitted through.
#[derive(Debug)]
pub(crate) struct MethodInForce {
    /// The method in the low byte; above it the number of the start of io_uring, or 0 for another
    /// method.
    current: AtomicU64,
    /// The method the embedder asked for last, for [`MethodInForce::requested`].
    requested: AtomicU8,
    fallbacks: Mutex<Vec<Fallback>>,
}

impl MethodInForce {
    /// `sync` is active until the first switch.
    pub(crate) fn new() -> Self {
        Self {
            current: AtomicU64::new(encode(MethodKind::Sync, 0)),
            requested: AtomicU8::new(MethodKind::Sync as u8),
            fallbacks: Mutex::default(),
        }
    }

    pub(crate) fn current(&self) -> MethodKind {
        MethodKind::from_number(self.current.load(Ordering::SeqCst) as u8)
    }

    pub(crate) fn requested(&self) -> MethodKind {
        MethodKind::from_number(self.requested.load(Ordering::SeqCst))
    }

    pub(crate) fn request(&self, wanted: MethodKind) {
        self.requested.store(wanted as u8, Ordering::SeqCst);
    }

    /// Makes a method active. `rings` is the start number if it is io_uring, otherwise 0.
    pub(crate) fn set(&self, method: MethodKind, rings: u64) {
        self.current.store(encode(method, rings), Ordering::SeqCst);
    }

    /// Switches to the workers if the rings of this start are current.
    pub(crate) fn leave_rings(&self, rings: u64) {
        let (from, to) = (encode(MethodKind::IoUring, rings), encode(MethodKind::Worker, 0));
        // Failure means that another method, or newer rings, are active.
        let _ = self.current.compare_exchange(from, to, Ordering::SeqCst, Ordering::SeqCst);
    }

    /// Records a fallback. A fallback that has been recorded before is not added again.
    pub(crate) fn note(&self, fallback: Fallback) {
        let mut fallbacks = self.fallbacks.lock();
        if !fallbacks.contains(&fallback) {
            fallbacks.push(fallback);
        }
    }

    /// The recorded fallbacks, oldest first.
    pub(crate) fn fallbacks(&self) -> Vec<Fallback> {
        self.fallbacks.lock().clone()
    }
}

fn encode(method: MethodKind, rings: u64) -> u64 {
    method as u64 | rings << 8
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_failed_ring_does_not_switch_away_from_newer_rings() {
        let method = MethodInForce::new();
        method.set(MethodKind::IoUring, 2);
        method.leave_rings(1);
        assert_eq!(method.current(), MethodKind::IoUring);
        method.leave_rings(2);
        assert_eq!(method.current(), MethodKind::Worker);
    }
}
