//! The right to fill or to write a page: claimed by one I/O, ended by its completion.
//!
//! A read's claim keeps everybody out until the page is valid. A write's takes the content lock along: exclusive
//! for the moment of the checksum, share-exclusive from then on, so that readers go on and the page stays as it is.

use super::state::{BufferWord, EXCLUSIVE, PIN, SHARE_EXCLUSIVE, Seen, Unpinned, flag};

/// What became of an attempt to claim the right to fill a page.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum StartRead {
    /// It is ours.
    Claimed,
    /// Nothing to do: the page is there.
    Valid,
    /// Somebody else has it.
    InProgress,
}

/// What became of an attempt to claim the right to write a page to disk.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum StartWrite {
    /// It is ours, and for now nobody else looks at the page.
    Claimed,
    /// Nothing to write.
    Clean,
    /// Somebody looks at the page, changes it, or writes it.
    Busy,
}

/// How the claim to a write ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum WriteEnd {
    /// All of the page is with the system.
    Written,
    /// It is not, or not all of it.
    Failed,
    /// Nothing was tried.
    NotIssued,
}

impl BufferWord {
    /// Claims the right to fill a page that is known and not there; the I/O gets its own pin.
    pub(crate) fn start_read(&self) -> StartRead {
        let started = self.update(|word| {
            let busy = Seen(word).any(flag::VALID | flag::IO_IN_PROGRESS);
            (!busy).then_some((word | flag::IO_IN_PROGRESS) + PIN)
        });
        match started {
            Ok(_) => StartRead::Claimed,
            Err(seen) if seen.has(flag::VALID) => StartRead::Valid,
            Err(_) => StartRead::InProgress,
        }
    }

    /// The read has ended: the page is there, or it is not. The I/O's pin is given back. Whoever
    /// sleeps is to be woken, if that is said.
    pub(crate) fn finish_read(&self, valid: bool) -> Unpinned {
        let gone = flag::IO_IN_PROGRESS | flag::IO_ERROR | flag::WAITERS;
        let result = if valid { flag::VALID } else { flag::IO_ERROR };
        let finished = self.update(|word| {
            Seen(word).has(flag::IO_IN_PROGRESS).then(|| ((word & !gone) | result) - PIN)
        });
        assert!(finished.is_ok(), "a read finished that was not started");
        finished.map_or(Unpinned { left: 0, wake: false }, |(old, new)| Unpinned {
            left: new.pins(),
            wake: old.has(flag::WAITERS),
        })
    }

    /// Notes that the page was changed. The caller holds the exclusive lock.
    pub(crate) fn mark_dirty(&self) {
        let marked = self.update(|word| (word & EXCLUSIVE != 0).then_some(word | flag::DIRTY));
        assert!(marked.is_ok(), "a page changed without the exclusive lock");
    }

    /// Notes that the checkpoint that begins must write the page, if there is something to write.
    pub(crate) fn mark_for_checkpoint(&self) -> bool {
        let marked = self
            .update(|word| Seen(word).has(flag::DIRTY).then_some(word | flag::CHECKPOINT_NEEDED));
        marked.is_ok()
    }

    /// Claims the right to write a page that was changed, and has all of `needed`; the I/O gets its
    /// own pin. The content is locked for oneself until [`BufferWord::begin_write`].
    pub(crate) fn start_write(&self, needed: u64) -> StartWrite {
        let needed = needed | flag::DIRTY | flag::VALID;
        let started = self.update(|word| {
            let seen = Seen(word);
            let free = seen.has(needed) && !seen.any(flag::IO_IN_PROGRESS) && !seen.is_locked();
            free.then(|| (word | flag::IO_IN_PROGRESS | EXCLUSIVE) + PIN)
        });
        match started {
            Ok(_) => StartWrite::Claimed,
            Err(seen) if seen.has(needed) => StartWrite::Busy,
            Err(_) => StartWrite::Clean,
        }
    }

    /// The same for a page that others read meanwhile: its lock becomes share-exclusive at once, so its
    /// bytes can be copied, and not completed in place.
    pub(crate) fn start_write_of_copy(&self, needed: u64) -> StartWrite {
        let needed = needed | flag::DIRTY | flag::VALID;
        let taken = EXCLUSIVE | SHARE_EXCLUSIVE;
        let started = self.update(|word| {
            let seen = Seen(word);
            let free = seen.has(needed) && !seen.any(flag::IO_IN_PROGRESS | taken);
            free.then(|| (word | flag::IO_IN_PROGRESS | SHARE_EXCLUSIVE) + PIN)
        });
        match started {
            Ok(_) => StartWrite::Claimed,
            Err(seen) if seen.has(needed) => StartWrite::Busy,
            Err(_) => StartWrite::Clean,
        }
    }

    /// From here on the page may be read while it is written, and not changed. True: somebody waits
    /// for that, wake them.
    pub(crate) fn begin_write(&self) -> bool {
        let begun = self.update(|word| {
            let mine = word & EXCLUSIVE != 0 && Seen(word).has(flag::IO_IN_PROGRESS);
            mine.then(|| (word & !flag::WAITERS) - EXCLUSIVE + SHARE_EXCLUSIVE)
        });
        assert!(begun.is_ok(), "a write begun that was not claimed");
        begun.is_ok_and(|(old, _)| old.has(flag::WAITERS))
    }

    /// The write has ended; if all of the page is written, there is nothing more to write. The lock
    /// and the I/O's pin are given back, whichever mode the lock was in.
    pub(crate) fn finish_write(&self, end: WriteEnd) -> Unpinned {
        let (always, error) = (flag::IO_IN_PROGRESS | flag::WAITERS, flag::IO_ERROR);
        let locks = EXCLUSIVE | SHARE_EXCLUSIVE;
        let (clean, result) = match end {
            WriteEnd::Written => (flag::DIRTY | flag::CHECKPOINT_NEEDED | error, 0),
            WriteEnd::Failed => (0, error),
            WriteEnd::NotIssued => (0, 0),
        };
        let gone = always | locks;
        let finished = self.update(|word| {
            let mine = Seen(word).has(flag::IO_IN_PROGRESS | flag::VALID);
            let mine = mine && word & (EXCLUSIVE | SHARE_EXCLUSIVE) != 0;
            mine.then(|| ((word & !gone & !clean) | result) - PIN)
        });
        assert!(finished.is_ok(), "a write finished that was not started");
        finished.map_or(Unpinned { left: 0, wake: false }, |(old, new)| Unpinned {
            left: new.pins(),
            wake: old.has(flag::WAITERS),
        })
    }
}
