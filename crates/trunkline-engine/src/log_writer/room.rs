//! **Log space reservation** (as in XFS).
//!
//! A session reserves buffer space for its records before it changes a page. A changed page without its WAL record
//! can't be undone; PostgreSQL panics at this point (a critical section). The room is for the longest record that the
//! change may need. What the record doesn't take is given back.
//!
//! ```text
//!   free = size of the ring − what isn't written out yet − room that sessions have
//! ```

use trunkline_aio::facade::Arc;
use trunkline_aio::facade::atomic::{AtomicU64, Ordering};
use trunkline_format::wal::{LOG_PAGE_SIZE, LONG_HEADER_SIZE, SHORT_HEADER_SIZE};

use super::reservation::ALIGNMENT;

/// The memory that is free, in bytes of the log, headers of pages included.
#[derive(Debug)]
pub(super) struct FreeRoom(AtomicU64);

impl FreeRoom {
    /// A ring of `bytes` bytes, all of which are free.
    pub(super) fn new(bytes: u64) -> Self {
        Self(AtomicU64::new(bytes))
    }

    /// How much is free.
    pub(super) fn bytes(&self) -> u64 {
        self.0.load(Ordering::SeqCst)
    }

    /// Takes `bytes`, if that much is free.
    pub(super) fn try_take(&self, bytes: u64) -> bool {
        let mut free = self.bytes();
        while let Some(left) = free.checked_sub(bytes) {
            match self.0.compare_exchange(free, left, Ordering::SeqCst, Ordering::SeqCst) {
                Ok(_) => return true,
                Err(found) => free = found,
            }
        }
        false
    }

    /// Gives back what wasn't used, or what has been written out.
    pub(super) fn give(&self, bytes: u64) {
        self.0.fetch_add(bytes, Ordering::SeqCst);
    }
}

/// Memory of the log that a session may use for its records. What is left is given back when it is dropped.
#[derive(Debug)]
pub struct Room {
    free: Arc<FreeRoom>,
    bytes: u64,
}

impl Room {
    /// `bytes` that were taken from `free`.
    pub(super) fn new(free: &Arc<FreeRoom>, bytes: u64) -> Self {
        Self { free: Arc::clone(free), bytes }
    }

    /// How much is left, in bytes of the log.
    pub(super) fn bytes(&self) -> u64 {
        self.bytes
    }

    /// Uses a part of it.
    pub(super) fn spend(&mut self, bytes: u64) {
        debug_assert!(bytes <= self.bytes, "{bytes} of {} bytes", self.bytes);
        self.bytes = self.bytes.saturating_sub(bytes);
    }
}

impl Drop for Room {
    fn drop(&mut self) {
        self.free.give(self.bytes);
    }
}

/// Upper bound of the WAL bytes that `records` records of `bytes` bytes in all take, alignment and page headers included.
/// A room for several records is enough for each of them, wherever the others began.
pub(super) fn worst_case_bytes(records: u64, bytes: u64) -> u64 {
    let (short, long) = (SHORT_HEADER_SIZE as u64, LONG_HEADER_SIZE as u64);
    let usable = LOG_PAGE_SIZE as u64 - short;
    // Each record may begin a page or a segment, and may be cut once more than its length says.
    bytes + records * (ALIGNMENT + long + short) + bytes.div_ceil(usable) * short
}

#[cfg(all(test, not(loom)))]
mod tests {
    use super::*;

    #[test]
    fn room_for_several_records_is_enough_for_each() {
        for (records, each) in [(2, 32), (2, 100), (3, 8000), (7, 8168), (2, 20_000)] {
            let together = worst_case_bytes(records, records * each);
            // The last one still passes its check after the others have taken as much as they can.
            let taken = |each: u64| {
                let pages = each.div_ceil(LOG_PAGE_SIZE as u64 - 24) + 1;
                each.next_multiple_of(ALIGNMENT) + pages * 24 + 16
            };
            let left = together - (records - 1) * taken(each);
            assert!(left >= worst_case_bytes(1, each), "{records} of {each}");
        }
    }
}
