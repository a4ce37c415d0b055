//! Look-ahead distances: how far to look ahead, and how many blocks to combine.
//!
//! ```text
//!   look-ahead distance    pages pinned ahead of the consumer      doubles when the consumer waited
//!   combine distance       blocks collected before a read starts   doubles with every read
//! ```
//!
//! Both distances start at one page, so a scan that stops after its first page (`LIMIT 1`) doesn't
//! read any other blocks, and a scan of cached pages never looks ahead. Each hit decrements the
//! distances, but only if no read is in flight, and only if the number of hits since the last read
//! has reached the stream's maximum number of pins. Without this rule, a scan would never look
//! ahead if every other page were a hit (`docs/postgres-lessons.md#lesson-16`). These are the same
//! rules as in PostgreSQL 19's `read_stream.c`.

/// The two distances of a stream, with their bounds.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Distances {
    ahead: u32,
    combine: u32,
    /// Number of hits still to come before the distances may shrink. Each completed read resets
    /// this.
    hold_off: u32,
    ahead_max: u32,
    /// Upper bound for blocks that are expected. It is lower after pins, buffers or handles ran out.
    expected_max: u32,
    combine_max: u32,
}

impl Distances {
    /// The distances of a new stream. If `full` is set, the stream skips the slow start, because
    /// the consumer is going to read everything.
    pub(super) fn new(ahead_max: u32, combine_max: u32, full: bool) -> Self {
        let combine_max = combine_max.clamp(1, ahead_max.max(1));
        let start = if full { combine_max } else { 1 };
        let ahead_max = ahead_max.max(1);
        let (ahead, combine, expected_max) = (start, start, ahead_max);
        Self { ahead, combine, hold_off: 0, ahead_max, expected_max, combine_max }
    }

    /// Pages to pin ahead.
    pub(super) fn ahead(&self) -> u32 {
        self.ahead
    }

    /// Upper bound of [`Distances::ahead`].
    pub(super) fn ahead_max(&self) -> u32 {
        self.ahead_max
    }

    /// Pages to pin ahead if they are expected.
    pub(super) fn expected_max(&self) -> u32 {
        self.expected_max.max(self.ahead)
    }

    /// Blocks to collect before a read starts.
    pub(super) fn combine(&self) -> u32 {
        self.combine
    }

    /// Blocks of the largest read.
    pub(super) fn combine_max(&self) -> u32 {
        self.combine_max
    }

    /// Maximum length of the queue. It must have room for the entries that may be pinned or
    /// pending. We allow for twice that number, because the queue also contains blocks that were
    /// released, and entries that an unordered stream has already returned.
    pub(super) fn queue_capacity(&self) -> usize {
        2 * (self.ahead_max + self.combine_max) as usize
    }

    /// Called when a read has ended. `waited` is true if the consumer had to wait for the read or
    /// executed it itself.
    pub(super) fn read_ended(&mut self, waited: bool) {
        self.hold_off = self.ahead_max;
        self.combine = (self.combine * 2).min(self.combine_max);
        if waited {
            self.ahead = (self.ahead * 2).min(self.ahead_max);
            self.expected_max = (self.expected_max * 2).min(self.ahead_max);
        }
    }

    /// A page was found in the pool.
    pub(super) fn page_found(&mut self, reads_in_flight: bool) {
        if self.hold_off > 0 {
            self.hold_off -= 1;
        } else if !reads_in_flight {
            self.ahead = (self.ahead - 1).max(1);
            self.combine = (self.combine - 1).max(1);
        }
    }

    /// Called if we ran out of pins, buffers or handles after pinning `pinned` pages. We reduce the
    /// look-ahead distance to that number, so that we don't make another futile attempt for every
    /// page. The distance can grow again if the consumer has to wait for later reads.
    pub(super) fn limited_to(&mut self, pinned: u32) {
        self.ahead = self.ahead.min(pinned.max(1));
        self.expected_max = self.expected_max.min(pinned.max(1));
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn it_grows_only_if_the_consumer_waited() {
        let mut distances = Distances::new(272, 16, false);
        (0..10).for_each(|_| distances.read_ended(false));
        assert_eq!((distances.ahead(), distances.combine()), (1, 16));
        (0..10).for_each(|_| distances.read_ended(true));
        assert_eq!(distances.ahead(), 272);
    }

    #[test]
    fn hits_in_between_do_not_keep_it_small() {
        let mut distances = Distances::new(64, 16, false);
        for _ in 0..20 {
            distances.read_ended(true);
            distances.page_found(false);
        }
        assert_eq!(distances.ahead(), 64);
    }

    #[test]
    fn it_shrinks_when_every_page_is_a_hit() {
        let mut distances = Distances::new(64, 16, false);
        (0..10).for_each(|_| distances.read_ended(true));
        (0..64).for_each(|_| distances.page_found(false));
        assert_eq!(distances.ahead(), 64, "held off");
        (0..30).for_each(|_| distances.page_found(true));
        assert_eq!(distances.ahead(), 64, "reads in flight");
        (0..100).for_each(|_| distances.page_found(false));
        assert_eq!((distances.ahead(), distances.combine()), (1, 1));
    }
}
