//! Pause points: a thread stops at a pause point until the test releases it.
//!
//! Tests must not rely on sleeping, because however long a test sleeps, it can't be sure that
//! another thread has reached a particular state. With a pause point, the test can wait until that
//! thread has reached it:
//! ```text
//!   thread under test            test
//!   point.wait()   stops         point.wait_for_arrivals(1)   returns when the thread has stopped
//!                  continues     point.release()
//! ```
//! A pause point can also be used as a one-time event, which `release` signals and `wait` waits
//! for. Pause points work both under the scheduler and with real threads.

use crate::event_count::EventCount;
use std::time::Duration;
use trunkline_aio::facade::atomic::{AtomicBool, AtomicU32, Ordering};
use trunkline_aio::facade::{Arc, Futex};

/// A point where threads stop until it is released. Clones refer to the same point.
#[derive(Debug, Clone, Default)]
pub struct PausePoint(Arc<Inner>);

#[derive(Debug, Default)]
struct Inner {
    /// Incremented by every change. All waits sleep on it.
    changed: EventCount,
    released: AtomicBool,
    /// Number of threads that have called [`PausePoint::wait`], including those already released.
    arrivals: AtomicU32,
}

impl PausePoint {
    /// Creates an unreleased point.
    pub fn new() -> Self {
        Self::default()
    }

    /// Stops until the point is released.
    pub fn wait(&self) {
        self.0.arrivals.fetch_add(1, Ordering::SeqCst);
        self.0.changed.signal();
        self.0.changed.wait_until(|| self.is_released());
    }

    /// Whether the point was released.
    pub fn is_released(&self) -> bool {
        self.0.released.load(Ordering::SeqCst)
    }

    /// Releases the point. Threads stopped here continue, and later arrivals don't stop.
    pub fn release(&self) {
        self.0.released.store(true, Ordering::SeqCst);
        self.0.changed.signal();
    }

    /// Waits until `count` threads have arrived.
    pub fn wait_for_arrivals(&self, count: u32) {
        self.0.changed.wait_until(|| self.arrivals() >= count);
    }

    /// Number of threads that have arrived, including those that have since continued.
    pub fn arrivals(&self) -> u32 {
        self.0.arrivals.load(Ordering::SeqCst)
    }
}

/// Sleeps for `time` according to the façade's clock. Under the scheduler that clock is virtual,
/// and advances only when all other threads are blocked. So even after a short pause, we know that
/// every other thread has run until it had to wait.
pub fn pause(time: Duration) {
    // No thread wakes this futex. We loop only because of spurious wake-ups.
    let never = Futex::new(0);
    let until = trunkline_aio::clock::now().after(time);
    loop {
        let left = until.since(trunkline_aio::clock::now());
        if left.is_zero() {
            return;
        }
        never.wait(0, Some(left));
    }
}
