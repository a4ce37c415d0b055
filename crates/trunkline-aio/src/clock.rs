//! The monotonic clock: the kernel's, or the simulator's virtual clock.
//!
//! Times are measured in nanoseconds from an arbitrary starting point. A timestamp fits into an
//! atomic word, so we can store it in a handle without taking a lock. In the simulator, time
//! advances only when the scheduler says so, which means that a simulated run doesn't depend on the
//! speed of the machine.

use std::time::Duration;

/// A point on the monotonic clock.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Default)]
pub struct Time(u64);

impl Time {
    /// Converts a number from [`Time::nanos`] back to a time.
    pub fn from_nanos(nanos: u64) -> Self {
        Self(nanos)
    }

    /// Nanoseconds since the start of the clock.
    pub fn nanos(self) -> u64 {
        self.0
    }

    /// This time plus `duration`. Saturates at the largest time.
    pub fn after(self, duration: Duration) -> Self {
        Self(self.0.saturating_add(u64::try_from(duration.as_nanos()).unwrap_or(u64::MAX)))
    }

    /// Returns the time elapsed since `earlier`, or zero if `earlier` is in fact later than this
    /// time. That can happen if the two times were read by different threads.
    pub fn since(self, earlier: Time) -> Duration {
        Duration::from_nanos(self.0.saturating_sub(earlier.0))
    }
}

/// The current time.
#[expect(clippy::disallowed_methods, reason = "the façade's own clock")]
pub fn now() -> Time {
    #[cfg(all(feature = "sched", not(loom)))]
    if let Some(nanos) = crate::facade::sched::now() {
        return Time(nanos);
    }
    let time = rustix::time::clock_gettime(rustix::time::ClockId::Monotonic);
    Time(time.tv_sec.unsigned_abs() * 1_000_000_000 + time.tv_nsec.unsigned_abs())
}

/// CPU time of the calling thread. It is not simulated: no schedule may depend on it.
#[expect(clippy::disallowed_methods, reason = "the façade's own clock")]
pub(crate) fn thread_cpu_time() -> Time {
    let time = rustix::time::clock_gettime(rustix::time::ClockId::ThreadCPUTime);
    Time(time.tv_sec.unsigned_abs() * 1_000_000_000 + time.tv_nsec.unsigned_abs())
}
