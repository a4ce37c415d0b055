//! A mount's write latency: decides whether a session should execute its buffered writes itself.
//!
//! A buffered write is usually just a copy into the page cache, which is much cheaper than passing
//! the write to another thread. Sessions therefore execute such writes themselves (decision 0008).
//! However, the kernel throttles a writer once there is too much dirty page cache
//! (`balance_dirty_pages`), and we can't tell in advance when that will happen. The latency of
//! recent writes to the same mount is the best predictor we have.
//!
//! ```text
//!   fewer than 4 of the last 16 were slow     the session writes
//!   one has been running for 10 ms            the method writes: the mount may hang
//!   otherwise                                 the method writes; now and then a session tries one,
//!                                             and a fast one is followed by another try
//! ```
//!
//! We update all fields without a lock and with relaxed ordering, so concurrent sessions may
//! overwrite each other's updates. That's OK, because a lost update only makes the prediction
//! slightly less accurate.

use crate::clock::Time;
use crate::facade::atomic::{AtomicU32, AtomicU64, Ordering};
use std::time::Duration;

/// A write counts as slow if it takes longer than the time needed to copy the data plus this many
/// microseconds. Passing a write to another thread takes 15 to 60 µs on a virtual machine, so it
/// would have been better to pass a slow write to the I/O method.
const SLOW_US: u64 = 50;

/// Minimum speed of a copy into the page cache, in bytes per nanosecond.
const BYTES_PER_NANO: u64 = 1;

/// Number of writes remembered.
const REMEMBERED: u32 = 16;

/// We consider a mount slow once this many of the remembered writes were slow. A write also looks
/// slow if its thread is descheduled for a moment, but that is unlikely to happen to several of the
/// last few writes.
const SLOW_MAX: u32 = 4;

/// After a slow trial write, we wait for this many times its duration before the next trial, within
/// the bounds below. That way, sessions spend only a small fraction of their time on trial writes.
const REST_FACTOR: u32 = 64;

/// Minimum and maximum time between two tries.
const REST_MIN: Duration = Duration::from_millis(1);
const REST_MAX: Duration = Duration::from_secs(1);

/// If an inline write has been running for longer than this, we pass other writes to the I/O
/// method. The mount may be hung, and a session that executes a write itself can't be cancelled
/// until the write returns.
const HANGS_AFTER: Duration = Duration::from_millis(10);

/// The latency of recent buffered writes to one mount.
#[derive(Debug)]
pub(crate) struct WriteLatency {
    /// Whether sessions may ever execute writes to this mount themselves.
    local: bool,
    /// One bit for each of the most recent writes, with the latest in the lowest bit. A bit is set
    /// if the write was slow.
    recent: AtomicU32,
    /// When we try a slow mount again, in nanoseconds.
    next_try: AtomicU64,
    /// Start time in nanoseconds of the inline write that we are watching, or 0 if there isn't one.
    /// We watch only one write at a time, because a single write is enough to detect that the mount
    /// is hung.
    since: AtomicU64,
}

/// A running inline write.
#[derive(Debug, Clone, Copy)]
pub(crate) struct InlineWrite {
    /// Whether this write set `since`, in which case it must also clear it.
    noted: bool,
}

impl WriteLatency {
    /// Creates a mount's record. `local` means that its file system accepts writes without waiting
    /// for another machine or process.
    pub(crate) fn new(local: bool) -> Self {
        let (recent, next_try, since) = (AtomicU32::new(0), AtomicU64::new(0), AtomicU64::new(0));
        Self { local, recent, next_try, since }
    }

    /// Whether the kernel accepts I/O on this mount without waiting for the storage.
    pub(crate) fn is_local(&self) -> bool {
        self.local
    }

    /// Returns true if the session should execute its next buffered write itself. While the mount
    /// is slow, only one of several concurrent callers is allowed to try a write. We read the clock
    /// (by calling `now`) only if we need the time, to keep the common case of a fast mount cheap.
    pub(crate) fn allows_write(&self, now: impl Fn() -> Time) -> bool {
        if !self.local || self.hangs(&now) {
            return false;
        }
        if self.recent.load(Ordering::Relaxed).count_ones() < SLOW_MAX {
            return true;
        }
        let (due, now) = (self.next_try.load(Ordering::Relaxed), now());
        let again = now.after(REST_MIN).nanos();
        now.nanos() >= due
            && self
                .next_try
                .compare_exchange(due, again, Ordering::Relaxed, Ordering::Relaxed)
                .is_ok()
    }

    /// Like [`WriteLatency::allows_write`], but for an operation that says nothing about write
    /// latency. We must not use such an operation to find out whether a slow mount has recovered.
    pub(crate) fn is_fast(&self, now: impl FnOnce() -> Time) -> bool {
        self.local
            && self.recent.load(Ordering::Relaxed).count_ones() < SLOW_MAX
            && !self.hangs(now)
    }

    /// Whether an inline write has been running for longer than [`HANGS_AFTER`].
    fn hangs(&self, now: impl FnOnce() -> Time) -> bool {
        let since = self.since.load(Ordering::Relaxed);
        since != 0 && now().since(Time::from_nanos(since)) > HANGS_AFTER
    }

    /// Records that a session begins an inline write.
    pub(crate) fn begin(&self, now: Time) -> InlineWrite {
        let (relaxed, began) = (Ordering::Relaxed, now.nanos().max(1));
        InlineWrite { noted: self.since.compare_exchange(0, began, relaxed, relaxed).is_ok() }
    }

    /// Records that the inline write has returned.
    pub(crate) fn end(&self, write: InlineWrite) {
        if write.noted {
            self.since.store(0, Ordering::Relaxed);
        }
    }

    /// Records an inline write of `length` bytes that took `time` and ended at `now`.
    pub(crate) fn record(&self, length: u32, time: Duration, now: Time) {
        let limit = SLOW_US * 1000 + u64::from(length) / BYTES_PER_NANO;
        let slow = time > Duration::from_nanos(limit);
        let before = self.recent.load(Ordering::Relaxed);
        let after = (before << 1 | u32::from(slow)) & ((1 << REMEMBERED) - 1);
        if before != after {
            self.recent.store(after, Ordering::Relaxed);
        }
        if slow {
            let rest = (time * REST_FACTOR).clamp(REST_MIN, REST_MAX);
            self.next_try.store(now.after(rest).nanos(), Ordering::Relaxed);
        } else if after.count_ones() >= SLOW_MAX {
            // The mount seems to be fast again. Allow the next try immediately, so that we notice
            // the recovery after just a few writes.
            self.next_try.store(0, Ordering::Relaxed);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const FAST: Duration = Duration::from_micros(5);
    const SLOW: Duration = Duration::from_millis(5);

    fn at(micros: u64) -> Time {
        Time::from_nanos(micros * 1000)
    }

    #[test]
    fn occasional_slow_writes_change_nothing() {
        let latency = WriteLatency::new(true);
        for round in 0..1000_u64 {
            assert!(latency.allows_write(|| at(round)), "{round}");
            latency.record(8192, if round.is_multiple_of(8) { SLOW } else { FAST }, at(round));
        }
        assert!(!WriteLatency::new(false).allows_write(|| at(0)), "never over a network");
    }

    #[test]
    fn a_slow_mount_is_tried_now_and_then() {
        let latency = WriteLatency::new(true);
        let mut now = 0;
        let (mut made, mut blocked) = (0, 0);
        while now < 10_000_000 {
            if latency.allows_write(|| at(now)) {
                made += 1;
                now += 5000;
                blocked += 5000;
                latency.record(8192, SLOW, at(now));
            }
            now += 10;
        }
        assert!((20..50).contains(&made), "{made} writes in ten seconds");
        assert!(blocked < 10_000_000 / 40, "blocked for {blocked} µs of ten seconds");
        // Once the mount is fast again, a dozen tries without a pause are enough.
        now += 1_000_000;
        for _ in 0..REMEMBERED {
            assert!(latency.allows_write(|| at(now)));
            latency.record(8192, FAST, at(now));
        }
        assert!(latency.allows_write(|| unreachable!("a fast mount does not need the time")));
    }

    #[test]
    fn a_write_that_hangs_sends_the_others_to_the_method() {
        let latency = WriteLatency::new(true);
        let stuck = latency.begin(at(1000));
        assert!(latency.allows_write(|| at(11_000)) && latency.is_fast(|| at(11_000)));
        let other = latency.begin(at(5000));
        latency.end(other);
        assert!(!latency.allows_write(|| at(11_001)) && !latency.is_fast(|| at(11_001)));
        latency.end(stuck);
        assert!(latency.allows_write(|| unreachable!("no write is running")));
    }

    #[test]
    fn one_of_many_sessions_tries() {
        let latency = WriteLatency::new(true);
        (0..SLOW_MAX).for_each(|_| latency.record(8192, SLOW, at(0)));
        assert!(!latency.allows_write(|| at(1000)), "it rests");
        assert!(latency.allows_write(|| at(320_001)), "64 times as long as the last one took");
        assert!(!latency.allows_write(|| at(320_002)), "another session is trying");
    }

    #[test]
    fn large_writes_may_take_longer() {
        let latency = WriteLatency::new(true);
        let time = Duration::from_micros(150);
        (0..100).for_each(|_| latency.record(128 * 1024, time, at(0)));
        assert!(latency.allows_write(|| at(0)), "128 KiB may take 150 µs");
        (0..4).for_each(|_| latency.record(8192, time, at(0)));
        assert!(!latency.allows_write(|| at(1)), "8 KiB may not");
    }
}
