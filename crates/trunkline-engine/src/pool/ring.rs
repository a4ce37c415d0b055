//! Rings: bulk work goes round in a few buffers of its own, and leaves the rest of the pool alone.
//!
//! A ring remembers the buffers that it took from the pool, and takes the oldest one again when a
//! page is needed, unless somebody else has found the page useful meanwhile; then it lets go of that
//! buffer and takes another from the pool. As buffers come back in the order in which they were
//! taken, runs of neighbours stay runs of neighbours.

use trunkline_format::BLOCK_SIZE;

/// What the buffers are used for. Decides whether the work has a ring, and how large.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum Strategy {
    /// Pages stay as long as they are used.
    Normal,
    /// Reads much more than fits: a scan of a table larger than a quarter of the pool.
    BulkRead,
    /// Writes much more than fits: loading or rewriting a table.
    BulkWrite,
    /// Vacuum, analyze, verification.
    Vacuum,
}

/// Bytes of a bulk read's ring beside what is in flight (PostgreSQL's).
const BULK_READ_BYTES: u32 = 256 << 10;

/// Bytes of a bulk write's ring (PostgreSQL's).
const BULK_WRITE_BYTES: u32 = 16 << 20;

/// Bytes of vacuum's ring (`vacuum_buffer_usage_limit`, PostgreSQL's default).
const VACUUM_BYTES: u32 = 2 << 20;

impl Strategy {
    /// Buffers of the ring for work that keeps `in_flight` blocks in flight, in a pool of so many
    /// buffers; `None` without one. As in PostgreSQL never more than an eighth of the pool.
    pub(crate) fn ring_size(self, in_flight: u32, buffers: u32) -> Option<u32> {
        let blocks = |bytes| bytes / BLOCK_SIZE as u32;
        let wanted = match self {
            Strategy::Normal => return None,
            Strategy::BulkRead => blocks(BULK_READ_BYTES) + in_flight,
            Strategy::BulkWrite => blocks(BULK_WRITE_BYTES),
            Strategy::Vacuum => blocks(VACUUM_BYTES),
        };
        Some(wanted.min(buffers / 8).max(1))
    }
}

/// See the module.
#[derive(Debug)]
pub(crate) struct Ring {
    /// Buffers, plus one; 0 is none yet.
    slots: Vec<u32>,
    next: usize,
}

impl Ring {
    /// With room for so many buffers.
    pub(crate) fn new(size: u32) -> Self {
        Self { slots: vec![0; size.max(1) as usize], next: 0 }
    }

    /// Buffers at most.
    pub(crate) fn size(&self) -> u32 {
        self.slots.len() as u32
    }

    /// Goes on to the next place; the buffer there, if any.
    pub(crate) fn advance(&mut self) -> Option<u32> {
        self.next = (self.next + 1) % self.slots.len();
        self.slots[self.next].checked_sub(1)
    }

    /// The buffer that [`Ring::advance`] will come to after so many calls, if any.
    pub(crate) fn ahead(&self, places: usize) -> Option<u32> {
        self.slots[(self.next + places) % self.slots.len()].checked_sub(1)
    }

    /// Puts a buffer into a place that [`Ring::advance`] has gone past lately: `back` places ago.
    pub(crate) fn replace(&mut self, back: usize, buffer: u32) {
        let size = self.slots.len();
        let at = (self.next + size - back % size) % size;
        self.slots[at] = buffer + 1;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sizes_are_postgresqls() {
        assert_eq!(Strategy::Normal.ring_size(256, 16_384), None);
        assert_eq!(Strategy::BulkRead.ring_size(256, 16_384), Some(32 + 256));
        assert_eq!(Strategy::BulkRead.ring_size(256, 1024), Some(128), "an eighth");
        assert_eq!(Strategy::BulkWrite.ring_size(0, 1 << 20), Some(2048));
        assert_eq!(Strategy::BulkWrite.ring_size(0, 1024), Some(128), "an eighth");
        assert_eq!(Strategy::Vacuum.ring_size(256, 1 << 20), Some(256));
        assert_eq!(Strategy::Vacuum.ring_size(16, 16), Some(2));
    }

    #[test]
    fn buffers_come_back_in_the_order_in_which_they_were_put() {
        let mut ring = Ring::new(3);
        for buffer in [10, 11, 12] {
            assert_eq!(ring.advance(), None);
            ring.replace(0, buffer);
        }
        assert_eq!([1, 2, 3].map(|places| ring.ahead(places)), [10, 11, 12].map(Some));
        assert_eq!([ring.advance(), ring.advance(), ring.advance()], [10, 11, 12].map(Some));
    }
}
