//! The monotonic clock and the wall clock: the kernel's, or the simulator's virtual clock.
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

/// The wall clock: microseconds since 1970-01-01 00:00 UTC. It may be set back, so durations are
/// measured with [`now`]. In the simulator, it starts in 1970.
#[expect(clippy::disallowed_methods, reason = "the façade's own clock")]
pub fn unix_micros() -> i64 {
    #[cfg(all(feature = "sched", not(loom)))]
    if let Some(nanos) = crate::facade::sched::now() {
        return i64::try_from(nanos / 1000).unwrap_or(i64::MAX);
    }
    let time = rustix::time::clock_gettime(rustix::time::ClockId::Realtime);
    time.tv_sec.saturating_mul(1_000_000).saturating_add(time.tv_nsec / 1000)
}

/// CPU time of the calling thread. It is not simulated: no schedule may depend on it.
#[expect(clippy::disallowed_methods, reason = "the façade's own clock")]
pub(crate) fn thread_cpu_time() -> Time {
    let time = rustix::time::clock_gettime(rustix::time::ClockId::ThreadCPUTime);
    Time(time.tv_sec.unsigned_abs() * 1_000_000_000 + time.tv_nsec.unsigned_abs())
}
