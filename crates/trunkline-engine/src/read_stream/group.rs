//! Group size: how many reads are submitted together, and waited for together.
//!
//! Submitting a single read costs a system call and possibly a wake-up of the ring driver, and
//! waiting for it costs a wake-up of the session. If the device is fast, this takes longer than the
//! read itself, so we spread the cost over a group of reads.
//!
//! The downside is higher latency, because slots stay empty until a group is complete, and a page
//! may have to wait for the rest of its group. We therefore limit a group to the number of reads
//! that the device completes in a quarter of a millisecond, and to a quarter of the maximum
//! concurrency. If the device or the consumer is slow, a group is just one read.

use trunkline_aio::clock::{self, Time};

/// Roughly the longest time that a page should wait for its group.
const DELAY_NANOS: u64 = 250_000;

/// Number of reads between two readings of the clock.
const READS_PER_CLOCK: u32 = 8;

/// The group size, adapted to the rate at which reads complete.
#[derive(Debug)]
pub(super) struct GroupSize {
    /// When the clock was read last.
    since: Option<Time>,
    /// Reads that have ended since the clock was read.
    ended: u32,
    size: u32,
    size_max: u32,
}

impl GroupSize {
    /// For a stream with `concurrency` reads in flight.
    pub(super) fn new(concurrency: u32) -> Self {
        Self { since: None, ended: 0, size: 1, size_max: (concurrency / 4).max(1) }
    }

    /// Reads of one group.
    pub(super) fn size(&self) -> u32 {
        self.size
    }

    /// Counts a read that has ended.
    pub(super) fn read_ended(&mut self) {
        self.ended += 1;
        if self.size_max == 1 || self.ended < READS_PER_CLOCK {
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
        let reads = DELAY_NANOS * u64::from(READS_PER_CLOCK) / nanos.max(1);
        self.size = u32::try_from(reads).unwrap_or(u32::MAX).clamp(1, self.size_max);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_group_is_complete_in_a_quarter_of_a_millisecond() {
        // Nanoseconds per read.
        for (concurrency, each, expected) in [
            (16, 25_000, 4),
            (16, 66_000, 3),
            (16, 312_000, 1),
            (64, 20_000, 12),
            (200, 25_000, 10),
            (1000, 1, 250),
            (1, 1, 1),
        ] {
            let mut group = GroupSize::new(concurrency);
            group.reads_took(each * u64::from(READS_PER_CLOCK));
            assert_eq!(group.size(), expected, "{concurrency} in flight, {each} ns each");
        }
    }
}
