//! I/O claim: the right to read or write a page, held by one I/O from the time it is issued until
//! it completes.
//!
//! This is PostgreSQL's `StartBufferIO` and `TerminateBufferIO`. A read can only claim a page that
//! isn't valid, so no session can lock that page until the read has ended. A write claims a valid
//! page and its content lock together. The lock is exclusive while we compute the checksum. After
//! that it's share-exclusive while the kernel reads the frame, so that other sessions can read the
//! page but can't change it.
//!
//! Claiming the page and pinning it for the I/O is a single atomic step, and so is releasing both.
//! A page that has an I/O in progress therefore always has a pin, and can't be evicted while the
//! kernel is using its frame.
//!
//! A page can't become dirty while it is being written, because that would need the exclusive lock.
//! This means that we can simply clear `DIRTY` at the end of the write. PostgreSQL 18 needs
//! `BM_JUST_DIRTIED` for this, because it allows hint bits to be set under a shared lock while the
//! page is being written.

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
    /// The kernel has accepted the whole page, but the page may still be only in the page cache.
    Written,
    /// The kernel has accepted only part of the page, or nothing at all. The page stays dirty.
    Failed,
    /// The write was never issued.
    NotIssued,
}

impl BufferWord {
    /// Claims a page for reading. The page already has a buffer but isn't valid, because an earlier
    /// read of it failed. The read gets its own pin. If several sessions try this at the same time,
    /// one of them gets the claim and the others join its read.
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

    /// Ends a read and releases its pin. If the read succeeded, the page becomes valid. If it
    /// failed, the page keeps its buffer and tag, and the next session that needs the page will try
    /// to read it again.
    pub(crate) fn finish_read(&self, valid: bool) -> Unpinned {
        let clear = flag::IO_IN_PROGRESS | flag::IO_ERROR | flag::WAITERS;
        let set = if valid { flag::VALID } else { flag::IO_ERROR };
        self.finish_io("read", flag::IO_IN_PROGRESS, 0, clear, set)
    }

    /// Marks the page dirty (PostgreSQL's `MarkBufferDirty`). The caller must hold the exclusive
    /// lock. We don't clear the page's bit in the clean-buffer bitmap here. The bit is just a hint,
    /// so it does no harm if it is stale.
    pub(crate) fn mark_dirty(&self) {
        let marked = self.update(|word| (word & EXCLUSIVE != 0).then_some(word | flag::DIRTY));
        assert!(marked.is_ok(), "a page changed without the exclusive lock");
    }

    /// If the page is dirty, marks it for the checkpoint that is just starting. Returns false if
    /// the page is clean. Testing and marking is a single atomic step, so if a page was dirty when
    /// the checkpoint started, it has either been marked or already been written. A page that
    /// becomes dirty later is left to the next checkpoint.
    pub(crate) fn mark_for_checkpoint(&self) -> bool {
        let marked = self.update(|word| {
            BufferState(word).has(flag::DIRTY).then_some(word | flag::CHECKPOINT_NEEDED)
        });
        marked.is_ok()
    }

    /// Claims a dirty page for writing, if it has all the flags in `needed`. The write gets its own
    /// pin. The content lock is held exclusively until [`BufferWord::begin_write`], so that we can
    /// set the checksum in the page. We never wait for the lock. If the page is locked, the caller
    /// gets `Busy`.
    pub(crate) fn start_write(&self, needed: u64) -> WriteClaim {
        self.claim_write(needed, EXCLUSIVE, |state| !state.is_locked())
    }

    /// Claims a page for writing while it is locked by readers. In this case the content lock is
    /// share-exclusive from the start. We make a copy of the page and set the checksum in the copy,
    /// so the readers can keep using the page.
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

    /// Downgrades the lock of a write from exclusive to share-exclusive, so that other sessions can
    /// read the page while it is being written. Returns true if the caller must wake the waiters.
    pub(crate) fn begin_write(&self) -> bool {
        let begun = self.update(|word| {
            let mine = word & EXCLUSIVE != 0 && BufferState(word).has(flag::IO_IN_PROGRESS);
            mine.then(|| (word & !flag::WAITERS) - EXCLUSIVE + SHARE_EXCLUSIVE)
        });
        assert!(begun.is_ok(), "a write begun that was not claimed");
        begun.is_ok_and(|(old, _)| old.has(flag::WAITERS))
    }

    /// Ends a write, and releases its pin and its content lock, whichever mode that is in. The page
    /// becomes clean only if it was written completely. Note that the lock may be released by a
    /// different thread than the one that acquired it, because the completion runs on whichever
    /// thread reaps the I/O.
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

    /// Changes flags and releases the pin of an I/O, but only if the word shows that an I/O of this
    /// kind is in progress. That is the case if all flags in `needed` are set, and also at least
    /// one of the flags in `any_of`, unless `any_of` is 0.
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
