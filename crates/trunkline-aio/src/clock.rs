//! The monotonic clock: the kernel's, or the scheduler's virtual one.
//!
//! A time is a number of nanoseconds since an arbitrary start, small enough for an atomic word, so
//! that handles can carry times without a lock.

use std::time::Duration;

/// A point on the monotonic clock.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Default)]
pub struct Time(u64);

impl Time {
    /// From the nanoseconds that [`Time::nanos`] gave.
    pub fn from_nanos(nanos: u64) -> Self {
        Self(nanos)
    }

    /// Nanoseconds since the clock's start.
    pub fn nanos(self) -> u64 {
        self.0
    }

    /// The time `duration` later, at the latest the end of the clock.
    pub fn after(self, duration: Duration) -> Self {
        Self(self.0.saturating_add(u64::try_from(duration.as_nanos()).unwrap_or(u64::MAX)))
    }

    /// How long after `earlier` this is; zero if it is not.
    pub fn since(self, earlier: Time) -> Duration {
        Duration::from_nanos(self.0.saturating_sub(earlier.0))
    }
}

/// The time now.
#[expect(clippy::disallowed_methods, reason = "the façade's own clock")]
pub fn now() -> Time {
    #[cfg(all(feature = "sched", not(loom)))]
    if let Some(nanos) = crate::sync::sched::now() {
        return Time(nanos);
    }
    let time = rustix::time::clock_gettime(rustix::time::ClockId::Monotonic);
    Time(time.tv_sec.unsigned_abs() * 1_000_000_000 + time.tv_nsec.unsigned_abs())
}
