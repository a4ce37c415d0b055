//! The current I/O method, and the record of fallbacks.
//!
//! When a driver's ring fails, the driver must switch the instance to the workers. But if the rings
//! have been replaced with new ones by then, it must not switch away from those. We therefore give
//! each start of io_uring a number, and store the number of the current start in the same atomic
//! word as the method. A driver switches with a compare-exchange, which succeeds only if its rings
//! belong to the current start.

use crate::facade::Mutex;
use crate::facade::atomic::{AtomicU8, AtomicU64, Ordering};
use crate::method::fallback::Fallback;
use crate::tables::method_kind::MethodKind;

/// The active method, which new I/O is submitted through.
#[derive(Debug)]
pub(crate) struct MethodInForce {
    /// The low byte contains the method. The remaining bytes contain the number of the io_uring
    /// start, or 0 for other methods.
    current: AtomicU64,
    /// The method the embedder last requested, for [`MethodInForce::requested`].
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

    /// Makes a method active. `rings` is the start number for io_uring, otherwise 0.
    pub(crate) fn set(&self, method: MethodKind, rings: u64) {
        self.current.store(encode(method, rings), Ordering::SeqCst);
    }

    /// Switches to the workers if this start's rings are current.
    pub(crate) fn leave_rings(&self, rings: u64) {
        let (from, to) = (encode(MethodKind::IoUring, rings), encode(MethodKind::Worker, 0));
        // A failure means that another method or newer rings are active.
        let _ = self.current.compare_exchange(from, to, Ordering::SeqCst, Ordering::SeqCst);
    }

    /// Records a fallback, unless it has been recorded before.
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
