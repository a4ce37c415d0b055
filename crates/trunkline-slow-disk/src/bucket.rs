//! **Token bucket**: limits a rate, and lets a burst credit be spent above it.
//!
//! We don't count tokens. The bucket keeps the *theoretical arrival time* of the generic cell rate
//! algorithm: the time at which all work admitted so far would be paid for at the given rate. Work
//! may start as long as that time is at most the credit ahead of the clock.
//!
//! ```text
//!   100 I/Os per second, no credit                100 I/Os per second, credit for 3
//!   arrive  0 ms  0 ms  0 ms                       arrive  0 ms  0 ms  0 ms  0 ms  0 ms
//!   start   0 ms 10 ms 20 ms                       start   0 ms  0 ms  0 ms  0 ms 10 ms
//! ```
//! All arithmetic is on whole numbers, so that a simulated clock gives exact results and a run of
//! days doesn't drift: times are multiplied by the rate instead of dividing amounts by it.

/// Nanoseconds per second.
const SECOND: u128 = 1_000_000_000;

/// A limit on a rate of bytes or of I/Os. It starts with its full credit.
#[derive(Debug, Clone)]
pub(crate) struct Bucket {
    /// Units per second.
    rate: u128,
    /// How far the paid time may be ahead of the clock, scaled.
    credit: u128,
    /// When all admitted work is paid for, in nanoseconds times `rate`.
    paid: u128,
}

impl Bucket {
    /// A limit of `rate` units per second, and `credit` units that may be spent above it.
    pub(crate) fn new(rate: u64, credit: u64) -> Bucket {
        assert!(rate > 0, "a rate of zero admits nothing");
        Bucket { rate: rate.into(), credit: u128::from(credit) * SECOND, paid: 0 }
    }

    /// The earliest time, not before `now`, at which work may start. Times are in nanoseconds.
    pub(crate) fn earliest(&self, now: u64) -> u64 {
        let start = self.paid.saturating_sub(self.credit).div_ceil(self.rate);
        // Only a clock beyond 500 years doesn't fit.
        now.max(u64::try_from(start).unwrap_or(u64::MAX))
    }

    /// Charges `units` to work that starts at `start`.
    pub(crate) fn charge(&mut self, start: u64, units: u64) {
        let now = u128::from(start) * self.rate;
        // An idle bucket doesn't fill beyond its credit. A start less than a nanosecond after the
        // paid time was only rounded up, and counting that as idle would add up.
        let is_idle = now.saturating_sub(self.paid) >= self.rate;
        let from = if is_idle { now } else { self.paid };
        self.paid = from + u128::from(units) * SECOND;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Admits work of these sizes, all of which arrives at `now`, and returns when it starts.
    fn starts(bucket: &mut Bucket, now: u64, sizes: &[u64]) -> Vec<u64> {
        let admit = |&units: &u64| {
            let start = bucket.earliest(now);
            bucket.charge(start, units);
            start
        };
        sizes.iter().map(admit).collect()
    }

    #[test]
    fn work_is_paced_at_the_rate() {
        let mut bucket = Bucket::new(3_000, 0);
        // Exact thirds of a millisecond, rounded up, and no error that adds up.
        assert_eq!(starts(&mut bucket, 0, &[1; 4]), [0, 333_334, 666_667, 1_000_000]);
        let last = starts(&mut bucket, 0, &[1; 2_997]);
        assert_eq!(last.last(), Some(&1_000_000_000));
    }

    #[test]
    fn large_work_is_followed_by_a_longer_pause() {
        let mut bucket = Bucket::new(500_000_000, 0);
        let megabyte = 1 << 20;
        assert_eq!(starts(&mut bucket, 0, &[megabyte, 8192, 8192]), [0, 2_097_152, 2_113_536]);
    }

    #[test]
    fn credit_is_spent_before_the_rate_applies() {
        let mut bucket = Bucket::new(100, 3);
        let ms = 1_000_000;
        assert_eq!(starts(&mut bucket, 0, &[1; 6]), [0, 0, 0, 0, 10 * ms, 20 * ms]);
        // 20 ms after the last start there is credit for two.
        assert_eq!(starts(&mut bucket, 50 * ms, &[1; 4]), [50 * ms, 50 * ms, 50 * ms, 60 * ms]);
    }

    #[test]
    fn an_idle_bucket_does_not_fill_beyond_its_credit() {
        let mut bucket = Bucket::new(100, 2);
        let day = 86_400 * 1_000_000_000;
        let begin = starts(&mut bucket, day, &[1; 4]);
        assert_eq!(begin, [day, day, day, day + 10_000_000]);
        let week = 7 * day;
        let begin = starts(&mut bucket, week, &[1; 4]);
        assert_eq!(begin, [week, week, week, week + 10_000_000]);
    }
}
