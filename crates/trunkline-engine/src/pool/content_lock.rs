//! The content lock in the word: shared, share-exclusive, exclusive.
//!
//! A raw lock, not a guard: a write takes it in one thread and its completion gives it back in another. Nothing
//! here sleeps; who must wait announces it, and who unlocks is told that somebody waits.

use super::state::{BufferWord, EXCLUSIVE, SHARE, SHARE_EXCLUSIVE, SHARES, Seen, flag};
use trunkline_aio::sync::atomic::Ordering;

/// How a content lock is held.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum LockMode {
    /// Reads the page; others read it too.
    Shared,
    /// Reads the page and keeps every change out while others read on: what a write to disk needs.
    ShareExclusive,
    /// Changes the page; nobody else looks.
    Exclusive,
}

impl LockMode {
    /// What must not be set for the lock to be granted.
    fn conflicts(self) -> u64 {
        match self {
            LockMode::Shared => EXCLUSIVE,
            LockMode::ShareExclusive => EXCLUSIVE | SHARE_EXCLUSIVE,
            LockMode::Exclusive => EXCLUSIVE | SHARE_EXCLUSIVE | SHARES,
        }
    }

    fn unit(self) -> u64 {
        match self {
            LockMode::Shared => SHARE,
            LockMode::ShareExclusive => SHARE_EXCLUSIVE,
            LockMode::Exclusive => EXCLUSIVE,
        }
    }

    fn held(self) -> u64 {
        match self {
            LockMode::Shared => SHARES,
            _ => self.unit(),
        }
    }
}

/// What became of an attempt to lock a page's content.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum TryLock {
    Locked,
    /// Somebody holds it in a mode that excludes ours.
    Busy,
    /// The page cannot be used: it was never read, or reading failed.
    Invalid,
}

impl BufferWord {
    /// Locks the content if that can be had at once.
    pub(crate) fn try_lock(&self, mode: LockMode) -> TryLock {
        let locked = self.update(|word| {
            let granted = word & mode.conflicts() == 0 && Seen(word).has(flag::VALID);
            granted.then_some(word + mode.unit())
        });
        match locked {
            Ok(_) => TryLock::Locked,
            Err(seen) if seen.has(flag::VALID) => TryLock::Busy,
            Err(_) => TryLock::Invalid,
        }
    }

    /// Locks the content for oneself alone if nobody else has even pinned the page.
    pub(crate) fn try_lock_for_cleanup(&self) -> TryLock {
        let locked = self.update(|word| {
            let alone = Seen(word).pins() == 1 && word & LockMode::Exclusive.conflicts() == 0;
            (alone && Seen(word).has(flag::VALID)).then_some(word + EXCLUSIVE)
        });
        match locked {
            Ok(_) => TryLock::Locked,
            Err(seen) if seen.has(flag::VALID) => TryLock::Busy,
            Err(_) => TryLock::Invalid,
        }
    }

    /// Whether a lock could be had now; for a cleanup, by who has the only pin.
    pub(crate) fn could_lock(&self, mode: LockMode, cleanup: bool) -> bool {
        let seen = self.load();
        !seen.any(mode.conflicts()) && (!cleanup || seen.pins() == 1)
    }

    /// Turns a reader's lock into the exclusive one if nobody else holds any and no I/O is under way:
    /// at once or not at all, so two that want it cannot wait for each other.
    pub(crate) fn try_upgrade(&self, mode: LockMode) -> bool {
        let upgraded = self.update(|word| {
            let alone = word & (SHARES | SHARE_EXCLUSIVE | EXCLUSIVE) == mode.unit();
            let free = alone && !Seen(word).any(flag::IO_IN_PROGRESS);
            free.then(|| word - mode.unit() + EXCLUSIVE)
        });
        upgraded.is_ok()
    }

    /// Gives the exclusive lock back for what it was before [`BufferWord::try_upgrade`]. True: somebody
    /// waits for that, wake them.
    pub(crate) fn downgrade(&self, mode: LockMode) -> bool {
        let downgraded = self.update(|word| {
            let held = word & EXCLUSIVE != 0;
            held.then(|| (word - EXCLUSIVE + mode.unit()) & !flag::WAITERS)
        });
        assert!(downgraded.is_ok(), "a content lock given back twice");
        downgraded.is_ok_and(|(old, _)| old.has(flag::WAITERS))
    }

    /// Unlocks. True: somebody waits for that, wake them.
    pub(crate) fn unlock(&self, mode: LockMode) -> bool {
        let unlocked = self.update(|word| {
            let held = word & mode.held() != 0;
            held.then(|| (word - mode.unit()) & !flag::WAITERS)
        });
        assert!(unlocked.is_ok(), "a content lock given back twice");
        unlocked.is_ok_and(|(old, _)| old.has(flag::WAITERS))
    }

    /// Says that somebody is about to sleep until the word changes: look again afterwards.
    pub(crate) fn announce_waiter(&self) -> Seen {
        Seen(self.0.fetch_or(flag::WAITERS, Ordering::SeqCst))
    }

    /// Takes the note away that somebody sleeps; true for the one who must wake them.
    pub(super) fn take_waiters(&self) -> bool {
        let old = self.0.fetch_and(!flag::WAITERS, Ordering::SeqCst);
        Seen(old).has(flag::WAITERS)
    }
}
