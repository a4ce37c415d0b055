//! Buffer word: the atomic that holds a [`BufferState`], with the operations to pin, evict and
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
//! of `BufferState::assert_change` in release builds too. The content lock (`content_lock`) and the
//! right to read or write the page (`io_claim`) are also methods of this word, but in separate
//! files.
//!
//! Each I/O holds its own pin on the page, so the page can't be evicted during the I/O even if the
//! issuing session releases its pin or ends.
//!
//! # Memory ordering
//!
//! All accesses are sequentially consistent. Acquire and release order would protect the page and
//! the tag, but not the waiters. A session that waits for a victim stores its registration and then
//! loads state words. A session that unpins changes a state word and then loads the registrations.
//! With weaker ordering both could load the old value, and the wake-up would be lost. On x86-64 the
//! stronger order is free here, because every store to the word is a locked instruction anyway.
//!
//! PostgreSQL up to version 18 takes the buffer header spinlock (`LockBufHdr`) for every change
//! except pin and unpin, and a pin spins while that lock is held.

use super::state::{BufferState, PIN, PINS, USAGE, USAGE_MAX, USAGE_ONE, flag};
use trunkline_aio::facade::atomic::{AtomicU64, Ordering};

/// What a visit of the clock sweep did to a buffer.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum ClockVisit {
    /// The buffer is the caller's victim; the caller has the only pin.
    Taken,
    /// The usage count was above zero and is now one lower.
    Decremented,
    /// Pinned, dirty or under I/O: not a victim.
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
pub(crate) struct BufferWord(AtomicU64);

impl BufferWord {
    /// The word of an empty buffer.
    pub(crate) fn new() -> Self {
        Self(AtomicU64::new(0))
    }

    /// The state at this moment.
    pub(crate) fn load(&self) -> BufferState {
        BufferState(self.0.load(Ordering::SeqCst))
    }

    /// Applies `change` to the word, and returns the old and the new value. If `change` returns
    /// `None`, the word stays as it is and is returned as the error.
    ///
    /// `change` runs again whenever another thread has changed the word in between, so it must
    /// depend on its argument only. The loop is lock-free: an attempt fails only because another
    /// one succeeded.
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

    /// Pins a buffer that has a tag, and raises its usage count up to `usage_max` (PostgreSQL's
    /// `PinBuffer`). Returns `None` if the buffer has no tag.
    ///
    /// Once the pin has succeeded the tag is stable, because eviction requires the evictor's pin to
    /// be the only one. But the buffer may have been reused since the lookup, so the caller must
    /// compare the tag again after the pin.
    ///
    /// Ring buffers pass a low `usage_max`, so that a bulk scan doesn't raise its pages' usage
    /// counts too far for its own ring to reuse them. With 0 the pin doesn't count as a use, which
    /// internal visits such as the checkpoint's need.
    pub(crate) fn pin(&self, usage_max: u32) -> Option<BufferState> {
        debug_assert!(usage_max <= USAGE_MAX);
        let pinned = self.update(|word| {
            let state = BufferState(word);
            let used = if state.usage() < usage_max { USAGE_ONE } else { 0 };
            state.has(flag::TAG_VALID).then_some(word + PIN + used)
        });
        pinned.ok().map(|(_, new)| new)
    }

    /// Releases a pin. Waiters matter only once at most one pin is left: a cleanup lock waits until
    /// its own pin is the only one, and invalidation waits until there is none.
    ///
    /// This is the hottest change of the word and has no precondition, so it is a plain subtraction
    /// and not a compare-exchange loop. The rules are therefore asserted here, on the old value.
    /// Another session may pin the page before `WAITERS` is cleared. The wake-up is then spurious,
    /// and the waiter tests its condition again.
    pub(crate) fn unpin(&self) -> Unpinned {
        let old = BufferState(self.0.fetch_sub(PIN, Ordering::SeqCst));
        assert!(old.pins() > 0, "a pin released twice");
        assert!(old.pins() > 1 || !old.is_locked(), "the last pin released before the lock");
        let left = old.pins() - 1;
        let wake = left <= 1 && old.has(flag::WAITERS) && self.take_waiters();
        Unpinned { left, wake }
    }

    /// Visits the buffer for the clock sweep: takes it if it is unpinned, clean and has usage count
    /// 0, and otherwise lowers its usage count unless it is pinned. Dirty buffers age too, although
    /// they can't be victims yet. Otherwise they would outlive pages that are used more often.
    ///
    /// An empty buffer also counts as clean with usage count 0, so the sweep finds it without a
    /// free list. The victim keeps its tag for now. The caller removes the tag in a second step,
    /// under the partition lock. Until then, other sessions can still find and pin the page.
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

    /// Pins a buffer of a ring for reuse, if only the ring has used it since. A usage count above 1
    /// shows that another session has used the page, which then stays in the pool (PostgreSQL's
    /// `GetBufferFromRing` has the same test).
    pub(crate) fn reuse(&self) -> bool {
        let taken = self.update(|word| {
            let state = BufferState(word);
            let free = state.pins() == 0 && state.usage() <= 1 && state.is_clean();
            free.then_some(word + PIN)
        });
        taken.is_ok()
    }

    /// Removes the tag of a clean page. The caller must have pinned the buffer and must hold the
    /// mapping table's partition lock. Returns false if the caller's pin is not the only one, or if
    /// the page is dirty, locked or under I/O.
    ///
    /// The partition lock makes the removal of the tag and of the chain link one step for
    /// insertions of the same page. Lookups take no lock, so only the word excludes them: if a pin
    /// comes before this change, eviction fails, and if it comes after, the pin fails. This is
    /// PostgreSQL's `InvalidateVictimBuffer`.
    pub(crate) fn evict(&self) -> bool {
        self.remove_tag(|state| state.is_clean() && !state.is_locked())
    }

    /// Removes a page's tag even if the page is dirty, because its relation was dropped or
    /// truncated. The caller must have pinned the buffer and must hold the mapping table's
    /// partition lock. Returns false if the caller's pin is not the only one, or if the page is
    /// locked or under I/O.
    pub(crate) fn discard(&self) -> bool {
        self.remove_tag(|state| !state.is_locked())
    }

    /// Like [`BufferWord::discard`], for a caller that holds the exclusive content lock and has
    /// examined the page under it. The lock is released together with the tag. No waiter for the
    /// lock can be left behind, because a waiter holds a pin and the caller's is the only one.
    pub(crate) fn discard_locked(&self) -> bool {
        self.remove_tag(BufferState::is_exclusive)
    }

    /// Empties the buffer, apart from its pin and its waiters, if only one pin is left, no I/O is
    /// in progress and `allowed` returns true.
    fn remove_tag(&self, allowed: impl Fn(BufferState) -> bool) -> bool {
        let removed = self.update(|word| {
            let state = BufferState(word);
            let free = state.pins() == 1 && !state.has(flag::IO_IN_PROGRESS);
            let free = free && state.has(flag::TAG_VALID) && allowed(state);
            free.then_some(word & (PINS | flag::WAITERS))
        });
        removed.is_ok()
    }

    /// Makes the tag of an empty buffer valid, claims the page for a read, and adds the read's own
    /// pin. The caller must have pinned the buffer and stored the tag, and must hold the partition
    /// lock. The pin count is not tested, because a lookup that followed a stale chain may still
    /// have the buffer pinned for its old page.
    ///
    /// Tag and claim appear in one step. Otherwise a second session could find the page between the
    /// two steps, when it is neither valid nor being read, and start another read into the same
    /// frame.
    pub(crate) fn publish(&self) {
        self.publish_with(flag::TAG_VALID | flag::IO_IN_PROGRESS, PIN);
    }

    /// Gives a tag to an empty buffer whose frame the caller has already filled, so that the page
    /// needs no read.
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

    /// Announces that a session is about to sleep until the word changes. The session must test its
    /// condition again afterwards: a change made before the announcement doesn't wake any session.
    pub(crate) fn announce_waiter(&self) -> BufferState {
        BufferState(self.0.fetch_or(flag::WAITERS, Ordering::SeqCst))
    }

    /// Clears the announcement. Exactly one of several concurrent callers gets true, and must wake
    /// the waiters. A waiter whose condition still does not hold announces itself again before it
    /// sleeps.
    fn take_waiters(&self) -> bool {
        let old = self.0.fetch_and(!flag::WAITERS, Ordering::SeqCst);
        BufferState(old).has(flag::WAITERS)
    }
}
