//! How a mount takes buffered writes: whether handing one to another thread is worth the hop.
//!
//! A write into the page cache is a copy, much cheaper than the hop to the thread that would make it,
//! so a session makes it itself (decision 0008). Not every one is just a copy: a system that has too
//! much to write back makes the writer wait. Nobody can tell beforehand, so the last writes of the
//! mount do.
//!
//! ```text
//!   fewer than 4 of the last 16 took long ──▶ the session writes
//!   one is inside for 10 ms ──▶ handed over, it may hang
//!   else ──▶ handed over; one is tried now and then, and quick ones are followed by another try
//! ```

use crate::clock::Time;
use crate::sync::atomic::{AtomicU32, AtomicU64, Ordering};
use std::time::Duration;

/// A write of nothing took long if it took more than this. A hop is 15 to 60 µs on a virtual machine.
const LONG_US: u64 = 50;

/// Bytes that a copy into the page cache moves in a nanosecond, at the least.
const BYTES_PER_NANO: u64 = 1;

/// Writes that are remembered.
const REMEMBERED: u32 = 16;

/// So many long ones among them are no accident. A thread that loses its CPU for a moment also takes
/// long, but rarely twice in a row.
const LONG_ONES: u32 = 4;

/// Between two tries that took long pass at least so many times what the last one took.
const REST_FACTOR: u32 = 64;

/// And at least, and at most, this.
const REST_MIN: Duration = Duration::from_millis(1);
const REST_MAX: Duration = Duration::from_secs(1);

/// A write that is under way for so long makes the others go to the method: the mount may hang, and
/// whoever writes by himself then cannot be cancelled.
const HANGS: Duration = Duration::from_millis(10);

/// What is known of a mount. Several sessions may lose one another's notes; that does no harm.
#[derive(Debug)]
pub(crate) struct Pace {
    /// Whether its writes may be made at once at all.
    local: bool,
    /// A bit for each of the last writes that were made at once, the last in the lowest: took long.
    recent: AtomicU32,
    /// When a mount that takes long is tried again, in nanoseconds.
    next_try: AtomicU64,
    /// When the oldest I/O began of those that a session makes now, as far as it was noted, in
    /// nanoseconds; 0 is none.
    since: AtomicU64,
}

/// An I/O that a session makes at once.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Begun {
    /// It is the one whose beginning is noted.
    noted: bool,
}

impl Pace {
    /// Of a mount that takes writes over without waiting for somebody else's answer, or does not.
    pub(crate) fn new(local: bool) -> Self {
        let (recent, next_try, since) = (AtomicU32::new(0), AtomicU64::new(0), AtomicU64::new(0));
        Self { local, recent, next_try, since }
    }

    /// Whether the kernel takes I/O over without waiting for the storage.
    pub(crate) fn is_local(&self) -> bool {
        self.local
    }

    /// Whether the next buffered write is to be made at once. Of several that ask while the mount takes
    /// long, one is told to try. `now` is asked only then.
    pub(crate) fn is_quick(&self, now: impl Fn() -> Time) -> bool {
        if !self.local || self.hangs(&now) {
            return false;
        }
        if self.recent.load(Ordering::Relaxed).count_ones() < LONG_ONES {
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

    /// The same for what tells nothing of how quick the mount is, and must not be the one that tries it.
    pub(crate) fn is_known_quick(&self, now: impl FnOnce() -> Time) -> bool {
        self.local
            && self.recent.load(Ordering::Relaxed).count_ones() < LONG_ONES
            && !self.hangs(now)
    }

    /// Whether somebody is inside an I/O for long.
    fn hangs(&self, now: impl FnOnce() -> Time) -> bool {
        let since = self.since.load(Ordering::Relaxed);
        since != 0 && now().since(Time::from_nanos(since)) > HANGS
    }

    /// A session begins an I/O that it makes at once.
    pub(crate) fn begins(&self, now: Time) -> Begun {
        let (free, began) = (Ordering::Relaxed, now.nanos().max(1));
        Begun { noted: self.since.compare_exchange(0, began, free, free).is_ok() }
    }

    /// It has come back.
    pub(crate) fn ended(&self, begun: Begun) {
        if begun.noted {
            self.since.store(0, Ordering::Relaxed);
        }
    }

    /// Takes note of a write of `length` bytes that was made at once, took `time` and ended at `now`.
    pub(crate) fn took(&self, length: u32, time: Duration, now: Time) {
        let limit = LONG_US * 1000 + u64::from(length) / BYTES_PER_NANO;
        let long = time > Duration::from_nanos(limit);
        let before = self.recent.load(Ordering::Relaxed);
        let after = (before << 1 | u32::from(long)) & ((1 << REMEMBERED) - 1);
        if before != after {
            self.recent.store(after, Ordering::Relaxed);
        }
        if long {
            let rest = (time * REST_FACTOR).clamp(REST_MIN, REST_MAX);
            self.next_try.store(now.after(rest).nanos(), Ordering::Relaxed);
        } else if after.count_ones() >= LONG_ONES {
            self.next_try.store(0, Ordering::Relaxed);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const QUICK: Duration = Duration::from_micros(5);
    const LONG: Duration = Duration::from_millis(5);

    fn at(micros: u64) -> Time {
        Time::from_nanos(micros * 1000)
    }

    #[test]
    fn a_few_long_ones_change_nothing() {
        let pace = Pace::new(true);
        for round in 0..1000_u64 {
            assert!(pace.is_quick(|| at(round)), "{round}");
            pace.took(8192, if round.is_multiple_of(8) { LONG } else { QUICK }, at(round));
        }
        assert!(!Pace::new(false).is_quick(|| at(0)), "never over a network");
    }

    #[test]
    fn a_mount_that_takes_long_is_tried_now_and_then() {
        let pace = Pace::new(true);
        let mut now = 0;
        let (mut made, mut blocked) = (0, 0);
        while now < 10_000_000 {
            if pace.is_quick(|| at(now)) {
                made += 1;
                now += 5000;
                blocked += 5000;
                pace.took(8192, LONG, at(now));
            }
            now += 10;
        }
        assert!((20..50).contains(&made), "{made} writes in ten seconds");
        assert!(blocked < 10_000_000 / 40, "blocked for {blocked} µs of ten seconds");
        // Once it is quick again, a dozen of tries tell, without a rest between them.
        now += 1_000_000;
        for _ in 0..REMEMBERED {
            assert!(pace.is_quick(|| at(now)));
            pace.took(8192, QUICK, at(now));
        }
        assert!(pace.is_quick(|| unreachable!("nobody asks for the time")));
    }

    #[test]
    fn nobody_follows_one_who_does_not_come_back() {
        let pace = Pace::new(true);
        let stuck = pace.begins(at(1000));
        assert!(pace.is_quick(|| at(11_000)) && pace.is_known_quick(|| at(11_000)));
        let other = pace.begins(at(5000));
        pace.ended(other);
        assert!(!pace.is_quick(|| at(11_001)) && !pace.is_known_quick(|| at(11_001)));
        pace.ended(stuck);
        assert!(pace.is_quick(|| unreachable!("nobody is inside")));
    }

    #[test]
    fn one_of_many_tries() {
        let pace = Pace::new(true);
        (0..LONG_ONES).for_each(|_| pace.took(8192, LONG, at(0)));
        assert!(!pace.is_quick(|| at(1000)), "it rests");
        assert!(pace.is_quick(|| at(320_001)), "64 times as long as the last took");
        assert!(!pace.is_quick(|| at(320_002)), "somebody is trying");
    }

    #[test]
    fn long_is_meant_by_the_byte() {
        let pace = Pace::new(true);
        let time = Duration::from_micros(150);
        (0..100).for_each(|_| pace.took(128 * 1024, time, at(0)));
        assert!(pace.is_quick(|| at(0)), "128 KiB may take 150 µs");
        (0..4).for_each(|_| pace.took(8192, time, at(0)));
        assert!(!pace.is_quick(|| at(1)), "8 KiB may not");
    }
}
