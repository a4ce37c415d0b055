//! How many reads go out, and are waited for, in one go.
//!
//! A read that goes out alone costs a wake-up of whoever submits it and a call of the device, and one
//! that is waited for alone a wake-up of the session: together more than the read itself where the
//! device is fast. In groups they share these. What a group costs is time: places in flight stay empty
//! until as many are free, and a page waits until the group is there. So a group is as large as the
//! reads that the device does within a quarter of a millisecond, and never more than a quarter of
//! the concurrency. Where reads take long, or the consumer does, that is one.

use trunkline_aio::clock::{self, Time};

/// The longest that a group may take to fill.
const DELAY_NANOS: u64 = 250_000;

/// Reads between two looks at the clock.
const READS_PER_LOOK: u32 = 8;

/// See the module.
#[derive(Debug)]
pub(super) struct Pace {
    /// The last look at the clock.
    since: Option<Time>,
    /// Reads that have ended since.
    ended: u32,
    group: u32,
    group_max: u32,
}

impl Pace {
    /// For so many reads in flight.
    pub(super) fn new(concurrency: u32) -> Self {
        Self { since: None, ended: 0, group: 1, group_max: (concurrency / 4).max(1) }
    }

    /// Reads that go out, or are waited for, in one go.
    pub(super) fn group(&self) -> u32 {
        self.group
    }

    /// A read has ended.
    pub(super) fn read_ended(&mut self) {
        self.ended += 1;
        if self.group_max == 1 || self.ended < READS_PER_LOOK {
            return;
        }
        let now = clock::now();
        if let Some(since) = self.since {
            self.reads_took(u64::try_from(now.since(since).as_nanos()).unwrap_or(u64::MAX));
        }
        self.since = Some(now);
        self.ended = 0;
    }

    fn reads_took(&mut self, nanos: u64) {
        let reads = DELAY_NANOS * u64::from(READS_PER_LOOK) / nanos.max(1);
        self.group = u32::try_from(reads).unwrap_or(u32::MAX).clamp(1, self.group_max);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_group_is_what_a_quarter_of_a_millisecond_brings() {
        // Nanoseconds per read.
        for (concurrency, each, group) in [
            (16, 25_000, 4),
            (16, 66_000, 3),
            (16, 312_000, 1),
            (64, 20_000, 12),
            (200, 25_000, 10),
            (1000, 1, 250),
            (1, 1, 1),
        ] {
            let mut pace = Pace::new(concurrency);
            pace.reads_took(each * u64::from(READS_PER_LOOK));
            assert_eq!(pace.group(), group, "{concurrency} in flight, {each} ns each");
        }
    }
}
