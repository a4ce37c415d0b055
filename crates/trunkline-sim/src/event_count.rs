//! Event counts: threads wait for a state that other threads change.
//!
//! The count is incremented after every change. A waiting thread first reads the count, then checks
//! its condition, and then goes to sleep, but only if the count is still the same. If something
//! changes after the thread has checked its condition, it will therefore not go to sleep, so it
//! can't miss a wake-up.

use std::time::Duration;
use trunkline_aio::facade::Futex;
use trunkline_aio::facade::atomic::Ordering;

/// The largest wake count that `FUTEX_WAKE` accepts, because the kernel takes an `int`.
const ALL_WAITERS: u32 = u32::MAX >> 1;

/// A count of events. It is also the futex word, so counting needs no lock.
#[derive(Debug, Default)]
pub(crate) struct EventCount(Futex);

impl EventCount {
    /// The count. A waiter must read it before it checks its condition.
    pub(crate) fn current(&self) -> u32 {
        self.0.word().load(Ordering::SeqCst)
    }

    /// Counts an event and wakes all waiters.
    pub(crate) fn signal(&self) {
        self.0.word().fetch_add(1, Ordering::SeqCst);
        self.0.wake(ALL_WAITERS);
    }

    /// Sleeps until the count differs from `seen`, or for `timeout`.
    pub(crate) fn wait(&self, seen: u32, timeout: Option<Duration>) {
        self.0.wait(seen, timeout);
    }

    /// Sleeps until `done` returns true, and calls it again after every event.
    pub(crate) fn wait_until(&self, done: impl Fn() -> bool) {
        loop {
            let seen = self.current();
            if done() {
                return;
            }
            self.wait(seen, None);
        }
    }
}
