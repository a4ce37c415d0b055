//! Access strategy and ring buffer: bulk operations reuse a small set of buffers.
//!
//! Without a ring, scanning a large table would evict everything else from the pool. We do the same
//! as PostgreSQL (`BufferAccessStrategy`): a bulk operation uses a ring, which remembers the
//! buffers that it has taken, and when it needs another buffer, it reuses the oldest one. If
//! another session has used that buffer's page in the meantime, the page stays in the pool and the
//! ring takes a new victim instead. The pages in a ring are ordinary pages in the pool, so any
//! session can find them. The ring itself is private to one session, so it needs no lock.
//!
//! Buffers are reused in the order in which they were taken. So if their frames were adjacent the
//! first time, they will be adjacent again, and combined reads still need only a few iovecs.

use trunkline_format::BLOCK_SIZE;

/// Access strategy: what kind of operation the buffers are used for. This determines the size of
/// the ring.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum Strategy {
    /// No ring: pages stay as long as they are used.
    Normal,
    /// Sequential scan of a table that is larger than a quarter of the pool.
    BulkRead,
    /// Loading or rewriting a table.
    BulkWrite,
    /// Vacuum, analyze or verification.
    Vacuum,
}

/// Size of a bulk read's ring in bytes, not including the blocks in flight. We use the same size as
/// PostgreSQL, which is small enough to fit in the L2 cache.
const BULK_READ_BYTES: u32 = 256 << 10;

/// Size of a bulk write's ring in bytes. We use the same size as PostgreSQL, which is large enough
/// that the writer doesn't have to flush WAL every few pages.
const BULK_WRITE_BYTES: u32 = 16 << 20;

/// Bytes of vacuum's ring (PostgreSQL's default of `vacuum_buffer_usage_limit`).
const VACUUM_BYTES: u32 = 2 << 20;

impl Strategy {
    /// The name in `pg_stat_io.context`.
    pub fn context(self) -> &'static str {
        match self {
            Strategy::Normal => "normal",
            Strategy::BulkRead => "bulkread",
            Strategy::BulkWrite => "bulkwrite",
            Strategy::Vacuum => "vacuum",
        }
    }

    /// Size of the ring in blocks, or `None` if this strategy doesn't use a ring. `in_flight` is
    /// the number of blocks the caller keeps in flight, and `buffers` is the size of the pool. As
    /// in PostgreSQL, a ring is at most an eighth of the pool.
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

/// The buffers of one bulk operation, in the order of their reuse.
#[derive(Debug)]
pub(crate) struct RingBuffer {
    /// Each slot's buffer number plus one, or 0 if the slot has no buffer yet.
    slots: Vec<u32>,
    current: usize,
}

impl RingBuffer {
    /// A ring with `size` empty slots.
    pub(crate) fn new(size: u32) -> Self {
        Self { slots: vec![0; size.max(1) as usize], current: 0 }
    }

    /// Number of slots.
    pub(crate) fn size(&self) -> u32 {
        self.slots.len() as u32
    }

    /// Moves to the next slot and returns its buffer, if it has one.
    pub(crate) fn advance(&mut self) -> Option<u32> {
        self.current = (self.current + 1) % self.slots.len();
        self.slots[self.current].checked_sub(1)
    }

    /// The buffer that [`RingBuffer::advance`] would return after `steps` calls, if any.
    pub(crate) fn ahead(&self, steps: usize) -> Option<u32> {
        self.slots[(self.current + steps) % self.slots.len()].checked_sub(1)
    }

    /// Puts a buffer into the slot that [`RingBuffer::advance`] passed `back` calls ago.
    pub(crate) fn replace(&mut self, back: usize, buffer: u32) {
        let size = self.slots.len();
        let at = (self.current + size - back % size) % size;
        self.slots[at] = buffer + 1;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ring_sizes_are_those_of_postgresql() {
        assert_eq!(Strategy::Normal.ring_size(256, 16_384), None);
        assert_eq!(Strategy::BulkRead.ring_size(256, 16_384), Some(32 + 256));
        assert_eq!(Strategy::BulkRead.ring_size(256, 1024), Some(128), "an eighth");
        assert_eq!(Strategy::BulkWrite.ring_size(0, 1 << 20), Some(2048));
        assert_eq!(Strategy::BulkWrite.ring_size(0, 1024), Some(128), "an eighth");
        assert_eq!(Strategy::Vacuum.ring_size(256, 1 << 20), Some(256));
        assert_eq!(Strategy::Vacuum.ring_size(16, 16), Some(2));
    }

    #[test]
    fn buffers_are_reused_in_the_order_in_which_they_were_added() {
        let mut ring = RingBuffer::new(3);
        for buffer in [10, 11, 12] {
            assert_eq!(ring.advance(), None);
            ring.replace(0, buffer);
        }
        assert_eq!([1, 2, 3].map(|places| ring.ahead(places)), [10, 11, 12].map(Some));
        assert_eq!([ring.advance(), ring.advance(), ring.advance()], [10, 11, 12].map(Some));
    }
}
