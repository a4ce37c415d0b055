//! I/O claim: the right to read or write a page, held by one I/O from issue to completion.
//!
//! This is PostgreSQL's `StartBufferIO` and `TerminateBufferIO`. A read claims a page that is not
//! valid, so no content lock on it can exist until the read ends. A write claims a valid page
//! together with its content lock: exclusive while the checksum is computed, then share-exclusive
//! while the kernel reads the frame, so that readers continue and nothing changes the page.
//!
//! The claim and the I/O's pin are taken in one step and released in one step. So there's never a
//! moment at which a page has I/O in progress but no pin, and it can't be evicted while the kernel
//! uses its frame.
//!
//! No page can become dirty during its own write, because that needs the exclusive lock. The end of
//! the write may therefore clear `DIRTY` unconditionally. PostgreSQL 18 needs `BM_JUST_DIRTIED` for
//! this case, because it sets hint bits under a shared lock while the page is being written.

use super::state::{BufferState, EXCLUSIVE, PIN, SHARE_EXCLUSIVE, flag};
use super::word::{BufferWord, Unpinned};

/// Result of an attempt to claim a page for a read.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum ReadClaim {
    /// The caller may read the page in.
    Claimed,
    /// The page is valid already.
    Valid,
    /// Another I/O is reading the page.
    InProgress,
}

/// Result of an attempt to claim a page for a write.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum WriteClaim {
    /// The caller may write the page, and holds its content lock.
    Claimed,
    /// The page is clean.
    Clean,
    /// The page is locked, or under I/O.
    Busy,
}

/// How a write ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum WriteEnd {
    /// The kernel has accepted the whole page. It may still be only in the page cache.
    Written,
    /// The kernel has accepted none or only part of the page. The page stays dirty.
    Failed,
    /// The write was never issued.
    NotIssued,
}

impl BufferWord {
    /// Claims the read of a page that has a buffer but is not valid, because an earlier read
    /// failed. The read gets its own pin. If several sessions try, only one session gets the claim,
    /// and the others join its read.
    pub(crate) fn start_read(&self) -> ReadClaim {
        let started = self.update(|word| {
            let busy = BufferState(word).is_valid_or_in_progress();
            (!busy).then_some((word | flag::IO_IN_PROGRESS) + PIN)
        });
        match started {
            Ok(_) => ReadClaim::Claimed,
            Err(state) if state.has(flag::VALID) => ReadClaim::Valid,
            Err(_) => ReadClaim::InProgress,
        }
    }

    /// Ends a read, and releases the read's pin. The page becomes valid unless the read failed. A
    /// page that failed keeps its buffer and tag, so that the next session that needs it retries
    /// the read.
    pub(crate) fn finish_read(&self, valid: bool) -> Unpinned {
        let clear = flag::IO_IN_PROGRESS | flag::IO_ERROR | flag::WAITERS;
        let set = if valid { flag::VALID } else { flag::IO_ERROR };
        self.finish_io("read", flag::IO_IN_PROGRESS, 0, clear, set)
    }

    /// Marks the page dirty. The caller must hold the exclusive lock (PostgreSQL's
    /// `MarkBufferDirty`). This leaves the clean-buffer bitmap alone. If the page's bit is still
    /// set, it's just a stale hint, which is harmless.
    pub(crate) fn mark_dirty(&self) {
        let marked = self.update(|word| (word & EXCLUSIVE != 0).then_some(word | flag::DIRTY));
        assert!(marked.is_ok(), "a page changed without the exclusive lock");
    }

    /// Marks a dirty page as one that the checkpoint now starting must write. Returns false if the
    /// page is clean. Test and mark are one step, so a page that was dirty when the checkpoint
    /// began is either marked or has been written since. Pages that become dirty later are left to
    /// the next checkpoint.
    pub(crate) fn mark_for_checkpoint(&self) -> bool {
        let marked = self.update(|word| {
            BufferState(word).has(flag::DIRTY).then_some(word | flag::CHECKPOINT_NEEDED)
        });
        marked.is_ok()
    }

    /// Claims the write of a dirty page that has all the flags in `needed`. The write gets its own
    /// pin. The content lock is exclusive until [`BufferWord::begin_write`], so that the checksum
    /// can be set in the page. We never wait for the lock: a caller that finds the page locked gets
    /// `Busy`.
    pub(crate) fn start_write(&self, needed: u64) -> WriteClaim {
        self.claim_write(needed, EXCLUSIVE, |state| !state.is_locked())
    }

    /// Claims the write of a page that readers have locked. The content lock is share-exclusive
    /// from the start: the caller copies the page while readers still use it, and sets the checksum
    /// in the copy.
    pub(crate) fn start_write_of_copy(&self, needed: u64) -> WriteClaim {
        self.claim_write(needed, SHARE_EXCLUSIVE, |state| !state.any(EXCLUSIVE | SHARE_EXCLUSIVE))
    }

    fn claim_write(
        &self,
        needed: u64,
        lock: u64,
        lockable: impl Fn(BufferState) -> bool,
    ) -> WriteClaim {
        let needed = needed | flag::DIRTY | flag::VALID;
        let started = self.update(|word| {
            let state = BufferState(word);
            let free = state.has(needed) && !state.has(flag::IO_IN_PROGRESS) && lockable(state);
            free.then(|| (word | flag::IO_IN_PROGRESS | lock) + PIN)
        });
        match started {
            Ok(_) => WriteClaim::Claimed,
            Err(state) if state.has(needed) => WriteClaim::Busy,
            Err(_) => WriteClaim::Clean,
        }
    }

    /// Downgrades the write's lock from exclusive to share-exclusive, so that readers continue
    /// until the end of the write. Returns true if the caller must wake the waiters.
    pub(crate) fn begin_write(&self) -> bool {
        let begun = self.update(|word| {
            let mine = word & EXCLUSIVE != 0 && BufferState(word).has(flag::IO_IN_PROGRESS);
            mine.then(|| (word & !flag::WAITERS) - EXCLUSIVE + SHARE_EXCLUSIVE)
        });
        assert!(begun.is_ok(), "a write begun that was not claimed");
        begun.is_ok_and(|(old, _)| old.has(flag::WAITERS))
    }

    /// Ends a write: releases the content lock, whichever mode it is in, and the write's pin. Only
    /// a page that was written completely becomes clean. Note that the thread that releases the
    /// lock may not be the one that took it, since the completion runs on whichever thread reaps
    /// the I/O.
    pub(crate) fn finish_write(&self, end: WriteEnd) -> Unpinned {
        let locks = EXCLUSIVE | SHARE_EXCLUSIVE;
        let (clean, set) = match end {
            WriteEnd::Written => (flag::DIRTY | flag::CHECKPOINT_NEEDED | flag::IO_ERROR, 0),
            WriteEnd::Failed => (0, flag::IO_ERROR),
            WriteEnd::NotIssued => (0, 0),
        };
        let clear = flag::IO_IN_PROGRESS | flag::WAITERS | locks | clean;
        self.finish_io("write", flag::IO_IN_PROGRESS | flag::VALID, locks, clear, set)
    }

    /// Clears and sets flags, and releases the I/O's pin, if the word shows an I/O of this kind:
    /// all the flags in `needed` are set and, unless `any_of` is 0, so is at least one flag in
    /// `any_of`.
    fn finish_io(&self, kind: &str, needed: u64, any_of: u64, clear: u64, set: u64) -> Unpinned {
        let finished = self.update(|word| {
            let mine = BufferState(word).has(needed) && (any_of == 0 || word & any_of != 0);
            mine.then(|| ((word & !clear) | set) - PIN)
        });
        assert!(finished.is_ok(), "a {kind} finished that was not started");
        finished.map_or(Unpinned { left: 0, wake: false }, |(old, new)| Unpinned {
            left: new.pins(),
            wake: old.has(flag::WAITERS),
        })
    }
}
