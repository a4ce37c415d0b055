//! The monotonic clock: the kernel's, or the simulator's virtual clock.
//!
//! Times are nanoseconds since an arbitrary start. A timestamp fits into an atomic word, so handles
//! can store it without a lock. In the simulator only the scheduler advances the time, so a
//! simulated run never depends on how fast the machine is.

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

    /// The time elapsed since `earlier`. Zero if `earlier` is actually later, which can happen when
    /// the two times were read on different threads.
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
