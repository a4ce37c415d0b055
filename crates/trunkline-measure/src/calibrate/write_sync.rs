//! **Write syncs**: when written pages are synced, so that a rate is the device's and not memory's.
//!
//! ```text
//!   writes      ▁▂▃▄ sync ▁▂▃▄ sync ▁▂ sync      after every 4 MB, and at the end of each window
//!   windows     ├──────────────────────────┤     a window has the time of its syncs
//! ```
//! Writes without direct I/O need it, and so do those with direct I/O that the file system may ignore
//! (OpenZFS before 2.3, tmpfs, btrfs with checksums). A mixed load needs it for one more reason: a
//! dirty page can't be dropped from the page cache, so it would serve later reads.

use super::load::Work;

/// A fill is synced after this many bytes.
const FILL_BYTES: u64 = 16 << 20;
/// Other writes are synced after this many bytes, and at the end of each window.
const BYTES: u64 = 4 << 20;

/// When to sync next.
#[derive(Debug)]
pub(super) struct WriteSync {
    is_fill: bool,
    unsynced: u64,
}

impl WriteSync {
    /// `None` if the load doesn't write pages, or if they are on the device when a write completes.
    pub(super) fn of(work: Work, may_be_cached: bool) -> Option<Self> {
        let is_fill = work == Work::Fill;
        (may_be_cached && work.writes()).then_some(Self { is_fill, unsynced: 0 })
    }

    /// Adds bytes that were written. Returns whether to sync now. While the last I/Os complete, no
    /// window ends, so a slow end isn't synced after each of them.
    pub(super) fn is_due(&mut self, bytes: u64, window_ends: bool) -> bool {
        self.unsynced += bytes;
        let is_due = match self.is_fill {
            true => self.unsynced >= FILL_BYTES,
            false => self.unsynced >= BYTES || window_ends && self.unsynced > 0,
        };
        if is_due {
            self.unsynced = 0;
        }
        is_due
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_writes_that_may_be_cached_are_synced() {
        let writes = [Work::Fill, Work::Mixed(70), Work::RandomWrite, Work::SequentialWrite];
        assert!(writes.iter().all(|work| WriteSync::of(*work, true).is_some()));
        assert!(writes.iter().all(|work| WriteSync::of(*work, false).is_none()));
        assert!(
            [Work::Random, Work::Sequential].iter().all(|it| WriteSync::of(*it, true).is_none())
        );
    }

    #[test]
    fn a_sync_is_due_after_some_bytes_and_when_a_window_ends() {
        let mut sync = WriteSync::of(Work::Mixed(70), true).expect("it writes");
        let page = 8192;
        assert!(!sync.is_due(0, true) && !sync.is_due(page, false) && sync.is_due(0, true));
        assert!(!sync.is_due(BYTES - page, false) && sync.is_due(page, false));
        // What completes at the end, in no window.
        assert_eq!((0..100).filter(|_| sync.is_due(page, false)).count(), 0);
        let mut sync = WriteSync::of(Work::Fill, true).expect("it writes");
        assert!(!sync.is_due(FILL_BYTES - 1, true) && sync.is_due(1, false));
    }
}
