//! Buffer word: the atomic that holds a [`BufferState`], and the operations that pin, evict and
//! publish a buffer.
//!
//! The life of a page in flags:
//!
//! ```text
//!   (none) ──publish──▶ TAG_VALID, IO_IN_PROGRESS ──finish_read──▶ TAG_VALID, VALID
//!      ▲                        ▲            └─ failed ─▶ TAG_VALID, IO_ERROR ─┐
//!      │                        └───────────── start_read ◀────────────────────┘
//!      └──────── evict: the evictor has the only pin, the page is clean, no I/O in progress
//! ```
//!
//! Every change of more than one bit goes through [`BufferWord::update`], which asserts the rules
//! of `BufferState::assert_change`, in release builds too. Locking the page's content
//! (`content_lock`) and claiming the page for I/O (`io_claim`) are also methods of this type, but
//! we keep them in separate files.
//!
//! Each I/O holds its own pin on the page. The page therefore can't be evicted during the I/O, even
//! if the session that issued the I/O releases its own pin or exits.
//!
//! # Memory ordering
//!
//! All accesses are sequentially consistent. Acquire and release ordering would be enough to
//! protect the page and the tag, but not the waiters. A session that waits for a victim first
//! stores its registration and then loads state words, while a session that unpins a buffer first
//! changes the state word and then loads the registrations. With weaker ordering, both sessions
//! could load the old value and the wake-up would be lost. On x86-64 the stronger ordering is free
//! here, because every store to the word is a locked instruction anyway.
//!
//! In PostgreSQL 18 and earlier, every change except pinning and unpinning takes the buffer header
//! spinlock (`LockBufHdr`), and a backend that wants to pin the buffer spins while that lock is
//! held.

use super::state::{BufferState, PIN, PINS, USAGE, USAGE_MAX, USAGE_ONE, flag};
use trunkline_aio::facade::atomic::{AtomicU64, Ordering};

/// What a visit of the clock sweep did to a buffer.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum ClockVisit {
    /// The buffer is the caller's victim; the caller has the only pin.
    Taken,
    /// The usage count was above zero and is now one lower.
    Decremented,
    /// The buffer is not a victim: it is pinned or dirty, or I/O is in progress.
    Skipped,
}

/// What the caller must do after a pin was released.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Unpinned {
    /// Number of remaining pins.
    pub(crate) left: u32,
    /// A session sleeps on this word, so the caller must wake it.
    pub(crate) wake: bool,
}

/// The atomic state word of one buffer.
#[derive(Debug)]
#[cfg_attr(not(loom), derive(zerocopy::FromZeros))]
pub(crate) struct BufferWord(AtomicU64);

impl BufferWord {
    /// The word of an empty buffer. The pool starts with all words zero instead.
    #[cfg(test)]
    pub(crate) fn new() -> Self {
        Self(AtomicU64::new(0))
    }

    /// The state at this moment.
    pub(crate) fn load(&self) -> BufferState {
        BufferState(self.0.load(Ordering::SeqCst))
    }

    /// Applies `change` to the word, and returns the old and the new value. If `change` returns
    /// `None`, the word is left unchanged and its value is returned as the error.
    ///
    /// If another thread has changed the word in the meantime, `change` is called again, so its
    /// result must depend only on its argument. The loop is lock-free, because an attempt can fail
    /// only if another thread's change succeeded.
    ///
    /// # Panics
    /// If the change breaks a rule of `BufferState::assert_change`.
    pub(super) fn update(
        &self,
        change: impl Fn(u64) -> Option<u64>,
    ) -> Result<(BufferState, BufferState), BufferState> {
        let mut old = self.0.load(Ordering::SeqCst);
        loop {
            let Some(new) = change(old) else { return Err(BufferState(old)) };
            BufferState::assert_change(old, new);
            match self.0.compare_exchange(old, new, Ordering::SeqCst, Ordering::SeqCst) {
                Ok(_) => return Ok((BufferState(old), BufferState(new))),
                Err(now) => old = now,
            }
        }
    }

    /// Pins the buffer if it has a tag, and increments its usage count unless that has already
    /// reached `usage_max` (PostgreSQL's `PinBuffer`). Returns `None` if the buffer has no tag.
    ///
    /// Once we have the pin, the tag can't change, because a page is evicted only if the evicting
    /// session's pin is the only one. But the buffer might have been reused between the lookup and
    /// the pin, so the caller must compare the tag again after pinning.
    ///
    /// Ring buffers pass a low `usage_max`. Otherwise a bulk scan would raise the usage counts of
    /// its own pages so far that its ring could no longer reuse them. Internal visits, such as the
    /// checkpointer's, pass 0 so that they don't count as a use of the page.
    pub(crate) fn pin(&self, usage_max: u32) -> Option<BufferState> {
        debug_assert!(usage_max <= USAGE_MAX);
        let pinned = self.update(|word| {
            let state = BufferState(word);
            let used = if state.usage() < usage_max { USAGE_ONE } else { 0 };
            state.has(flag::TAG_VALID).then_some(word + PIN + used)
        });
        pinned.ok().map(|(_, new)| new)
    }

    /// Releases a pin. We only need to wake waiters if at most one pin is left. A session waiting
    /// for a cleanup lock needs its own pin to be the only one, and a session waiting to invalidate
    /// the page needs all pins to be gone.
    ///
    /// This is the most frequent change of the word, and it has no precondition, so we use a plain
    /// subtraction rather than a compare-exchange loop. That means that we have to assert the rules
    /// here, using the old value. Another session might pin the page before we clear `WAITERS`. The
    /// wake-up is spurious in that case, and the waiter will test its condition again.
    pub(crate) fn unpin(&self) -> Unpinned {
        let old = BufferState(self.0.fetch_sub(PIN, Ordering::SeqCst));
        assert!(old.pins() > 0, "a pin released twice");
        assert!(old.pins() > 1 || !old.is_locked(), "the last pin released before the lock");
        let left = old.pins() - 1;
        let wake = left <= 1 && old.has(flag::WAITERS) && self.take_waiters();
        Unpinned { left, wake }
    }

    /// Visits the buffer during the clock sweep. If the buffer is pinned, nothing happens.
    /// Otherwise, if its usage count is above 0, we decrement it, and if it is 0 and the buffer is
    /// clean, we take the buffer. We decrement the usage counts of dirty buffers too, although they
    /// can't be victims yet, because otherwise they would outlive pages that are used more often.
    ///
    /// An empty buffer is also clean and has usage count 0, so the sweep finds it without a free
    /// list. A victim still has its tag when this function returns. The caller must remove the tag
    /// in a second step, while holding the partition lock. Until then, other sessions can still
    /// find and pin the page.
    pub(crate) fn clock_visit(&self) -> ClockVisit {
        let visited = self.update(|word| {
            let state = BufferState(word);
            if state.pins() > 0 {
                return None;
            }
            if state.usage() > 0 {
                return Some(word - USAGE_ONE);
            }
            state.is_clean().then_some(word + PIN)
        });
        match visited {
            Ok((old, _)) if old.usage() > 0 => ClockVisit::Decremented,
            Ok(_) => ClockVisit::Taken,
            Err(_) => ClockVisit::Skipped,
        }
    }

    /// Pins a ring's buffer so that the ring can reuse it, provided that the buffer is clean and
    /// unpinned and that no other session has used it since. If the usage count is above 1, some
    /// other session must have used the page, and we leave it in the pool. (PostgreSQL's
    /// `GetBufferFromRing` does the same test.)
    pub(crate) fn reuse(&self) -> bool {
        let taken = self.update(|word| {
            let state = BufferState(word);
            let free = state.pins() == 0 && state.usage() <= 1 && state.is_clean();
            free.then_some(word + PIN)
        });
        taken.is_ok()
    }

    /// Removes the tag of a clean page. The caller must have pinned the buffer, and must hold the
    /// mapping table's partition lock. Returns false if another session also has the buffer pinned,
    /// if the page is dirty or locked, or if I/O on it is in progress.
    ///
    /// Because of the partition lock, a session that inserts the same page sees the tag and the
    /// chain link disappear together. Lookups don't take that lock, so we rely on the word to
    /// exclude them: if another session pins the buffer before this change, the eviction fails, and
    /// if it tries afterwards, its pin fails. This is PostgreSQL's `InvalidateVictimBuffer`.
    pub(crate) fn evict(&self) -> bool {
        self.remove_tag(|state| state.is_clean() && !state.is_locked())
    }

    /// Removes a page's tag even if the page is dirty, because its relation has been dropped or
    /// truncated. The caller must have pinned the buffer, and must hold the mapping table's
    /// partition lock. Returns false if another session also has the buffer pinned, if the page is
    /// locked, or if I/O on it is in progress.
    pub(crate) fn discard(&self) -> bool {
        self.remove_tag(|state| !state.is_locked())
    }

    /// Like [`BufferWord::discard`], but the caller must hold the exclusive content lock, under
    /// which it has examined the page. We release the lock together with the tag. No other session
    /// can be waiting for the lock, because it would have to hold a pin, and we've checked that the
    /// caller's pin is the only one.
    pub(crate) fn discard_locked(&self) -> bool {
        self.remove_tag(BufferState::is_exclusive)
    }

    /// Empties the buffer if only one pin is left, no I/O is in progress and `allowed` returns
    /// true. The pin and the `WAITERS` flag remain.
    fn remove_tag(&self, allowed: impl Fn(BufferState) -> bool) -> bool {
        let removed = self.update(|word| {
            let state = BufferState(word);
            let free = state.pins() == 1 && !state.has(flag::IO_IN_PROGRESS);
            let free = free && state.has(flag::TAG_VALID) && allowed(state);
            free.then_some(word & (PINS | flag::WAITERS))
        });
        removed.is_ok()
    }

    /// Makes the tag of an empty buffer valid, claims the page for a read, and adds a pin for the
    /// read itself. The caller must have pinned the buffer and stored the tag, and must hold the
    /// partition lock. We don't check the pin count, because a session that followed a stale chain
    /// may still have the buffer pinned for the page it contained before.
    ///
    /// The tag and the claim must become visible in one step. Otherwise a second session could find
    /// the page after the tag is set but before the read is claimed, and start another read into
    /// the same frame.
    pub(crate) fn publish(&self) {
        self.publish_with(flag::TAG_VALID | flag::IO_IN_PROGRESS, PIN);
    }

    /// Gives a tag to an empty buffer. The caller must already have filled the frame, so the page
    /// doesn't have to be read.
    pub(crate) fn publish_valid(&self, dirty: bool) {
        let dirty = if dirty { flag::DIRTY } else { 0 };
        self.publish_with(flag::TAG_VALID | flag::VALID | dirty, 0);
    }

    fn publish_with(&self, flags: u64, pin: u64) {
        let published = self.update(|word| {
            let new = (word & !USAGE) | flags | USAGE_ONE;
            BufferState(word).is_empty().then_some(new + pin)
        });
        assert!(published.is_ok(), "a buffer published that has a page");
    }

    /// Announces that a session is about to sleep until the word changes. After calling this, the
    /// session must test its condition again, because a change made before the announcement doesn't
    /// wake the session.
    pub(crate) fn announce_waiter(&self) -> BufferState {
        BufferState(self.0.fetch_or(flag::WAITERS, Ordering::SeqCst))
    }

    /// Clears the announcement. If several sessions call this concurrently, exactly one of them
    /// gets true, and that session must wake the waiters. If a waiter wakes up and finds that its
    /// condition still doesn't hold, it announces itself again before it goes back to sleep.
    fn take_waiters(&self) -> bool {
        let old = self.0.fetch_and(!flag::WAITERS, Ordering::SeqCst);
        BufferState(old).has(flag::WAITERS)
    }
}
