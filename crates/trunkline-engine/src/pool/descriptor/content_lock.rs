//! Content lock: shared, share-exclusive or exclusive access to the bytes of a page.
//!
//! | held \ wanted   | shared | share-exclusive | exclusive |
//! |-----------------|--------|-----------------|-----------|
//! | shared          | yes    | yes             | no        |
//! | share-exclusive | yes    | no              | no        |
//! | exclusive       | no     | no              | no        |
//!
//! The lock consists of bits in the buffer word, as in PostgreSQL 19, and is not an `RwLock`: when
//! a page is written to disk, the session that issues the write takes the lock, and the completion
//! releases it on another thread. A guard tied to a thread could not do that. Nothing here sleeps.
//! A session that must wait announces itself in the word, and the methods that release a lock
//! report that a waiter must be woken.
//!
//! A caller that locks several pages must have its own lock order, as in PostgreSQL. The pool
//! itself never waits for one content lock while it holds another.
//!
//! There is no wait queue. A release wakes all of the buffer's waiters, and each waiter tries
//! again, in competition with newcomers. A steady stream of readers can therefore delay an
//! exclusive lock without bound. Only a checkpoint can't accept that, so it writes a copy of the
//! page instead (`write/copy`). PostgreSQL's LWLocks do queue their waiters, but need a wait list
//! in shared memory with its own lock.

use super::state::{BufferState, EXCLUSIVE, SHARE, SHARE_EXCLUSIVE, SHARES, flag};
use super::word::BufferWord;

/// Mode of a content lock.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum LockMode {
    /// Read the page concurrently with other readers.
    Shared,
    /// Read the page concurrently with other readers, but exclude every change. Writes to disk use
    /// this mode: a page that changed while the kernel copies it would reach the disk with a wrong
    /// checksum.
    ShareExclusive,
    /// Change the page while no other session reads or writes it.
    Exclusive,
}

impl LockMode {
    /// Bits that must be clear for the lock to be granted.
    fn conflicts(self) -> u64 {
        match self {
            LockMode::Shared => EXCLUSIVE,
            LockMode::ShareExclusive => EXCLUSIVE | SHARE_EXCLUSIVE,
            LockMode::Exclusive => EXCLUSIVE | SHARE_EXCLUSIVE | SHARES,
        }
    }

    /// What one holder adds to the word.
    fn unit(self) -> u64 {
        match self {
            LockMode::Shared => SHARE,
            LockMode::ShareExclusive => SHARE_EXCLUSIVE,
            LockMode::Exclusive => EXCLUSIVE,
        }
    }

    /// Bits that show whether the lock is held: while the lock has any holder, at least one of
    /// these bits is set.
    fn held(self) -> u64 {
        match self {
            LockMode::Shared => SHARES,
            _ => self.unit(),
        }
    }
}

/// Result of an attempt to take a content lock.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum TryLock {
    /// The caller now holds the lock.
    Locked,
    /// The lock is held in a conflicting mode.
    Busy,
    /// The page is not valid: it was never read, or the read failed.
    Invalid,
}

impl BufferWord {
    /// Takes the content lock if it can be granted now. The caller must have pinned the page. The
    /// page must also be valid, because a page that is being read belongs to that read.
    pub(crate) fn try_lock(&self, mode: LockMode) -> TryLock {
        self.try_lock_if(mode, |_| true)
    }

    /// Takes the exclusive lock if the caller also has the only pin (PostgreSQL's cleanup lock).
    pub(crate) fn try_lock_for_cleanup(&self) -> TryLock {
        self.try_lock_if(LockMode::Exclusive, |state| state.pins() == 1)
    }

    fn try_lock_if(&self, mode: LockMode, allowed: impl Fn(BufferState) -> bool) -> TryLock {
        let locked = self.update(|word| {
            let state = BufferState(word);
            let free = !state.any(mode.conflicts()) && state.has(flag::VALID) && allowed(state);
            free.then_some(word + mode.unit())
        });
        match locked {
            Ok(_) => TryLock::Locked,
            Err(state) if state.has(flag::VALID) => TryLock::Busy,
            Err(_) => TryLock::Invalid,
        }
    }

    /// Whether a lock would be granted now. A session that waits for the lock tests this each time
    /// it wakes up. A cleanup lock also needs the caller's pin to be the only one. The answer may
    /// already be out of date, so the caller must still try to take the lock.
    pub(crate) fn could_lock(&self, mode: LockMode, cleanup: bool) -> bool {
        let state = self.load();
        !state.any(mode.conflicts()) && (!cleanup || state.pins() == 1)
    }

    /// Upgrades a reader's lock to exclusive, if the lock has no other holder and no I/O is in
    /// progress. It never waits, because two readers that waited for each other to release their
    /// locks would deadlock.
    pub(crate) fn try_upgrade(&self, mode: LockMode) -> bool {
        let upgraded = self.update(|word| {
            let alone = word & (SHARES | SHARE_EXCLUSIVE | EXCLUSIVE) == mode.unit();
            let free = alone && !BufferState(word).has(flag::IO_IN_PROGRESS);
            free.then(|| word - mode.unit() + EXCLUSIVE)
        });
        upgraded.is_ok()
    }

    /// Downgrades the exclusive lock to the mode it had before [`BufferWord::try_upgrade`]. Returns
    /// true if the caller must wake the waiters.
    pub(crate) fn downgrade(&self, mode: LockMode) -> bool {
        self.release_lock(LockMode::Exclusive, mode.unit())
    }

    /// Releases the lock. Returns true if the caller must wake the waiters.
    pub(crate) fn unlock(&self, mode: LockMode) -> bool {
        self.release_lock(mode, 0)
    }

    /// Releases a lock held in `mode`, and adds `keep`: the unit of the weaker lock that remains,
    /// or 0 if none does. `WAITERS` is cleared in the same step, so exactly one thread is
    /// responsible for each wake-up.
    fn release_lock(&self, mode: LockMode, keep: u64) -> bool {
        let released = self.update(|word| {
            let held = word & mode.held() != 0;
            held.then(|| (word - mode.unit() + keep) & !flag::WAITERS)
        });
        assert!(released.is_ok(), "a content lock released twice");
        released.is_ok_and(|(old, _)| old.has(flag::WAITERS))
    }
}
