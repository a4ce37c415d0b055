//! Content lock: shared, share-exclusive or exclusive access to the bytes of a page.
//!
//! | held \ wanted   | shared | share-exclusive | exclusive |
//! |-----------------|--------|-----------------|-----------|
//! | shared          | yes    | yes             | no        |
//! | share-exclusive | yes    | no              | no        |
//! | exclusive       | no     | no              | no        |
//!
//! As in PostgreSQL 19, the lock is a few bits in the buffer word. We can't use an `RwLock`,
//! because its guard must be released by the thread that acquired it. When a page is written to
//! disk, the lock is acquired by the session that issues the write, but it's released by the
//! completion, which may run on a different thread. The functions in this file never sleep. If a
//! session has to wait, it sets a flag in the word. The methods that release a lock then tell their
//! caller that there is a waiter to wake up.
//!
//! As in PostgreSQL, callers that lock several pages must make sure that they always do so in the
//! same order. The pool itself never waits for a content lock while holding another one.
//!
//! There is no wait queue. When a lock is released, we wake all sessions that are waiting for the
//! buffer, and each of them tries again, competing with any session that comes along in the
//! meantime. If there is a steady stream of readers, a session that wants an exclusive lock may
//! therefore have to wait indefinitely. Most sessions can live with that, but a checkpoint can't,
//! so it writes a copy of the page instead (`write/copy`). PostgreSQL's LWLocks do have a wait
//! queue, but they need a wait list in shared memory with its own lock for that.

use super::state::{BufferState, EXCLUSIVE, SHARE, SHARE_EXCLUSIVE, SHARES, flag};
use super::word::BufferWord;

/// Mode of a content lock.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum LockMode {
    /// Read the page concurrently with other readers.
    Shared,
    /// Read the page. Other sessions may read it too, but no session may change it. We hold this
    /// lock while writing a page to disk: if the page could change while the kernel is copying it,
    /// it would end up on disk with an incorrect checksum.
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

    /// Bits that tell us whether the lock is held in this mode. If it is, at least one of them is
    /// set.
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
    /// The page is not valid, either because it was never read, or because the read failed.
    Invalid,
}

impl BufferWord {
    /// Acquires the content lock, but only if that's possible without waiting. The caller must have
    /// pinned the page. If the page isn't valid we return `Invalid`, because while a page is being
    /// read, only the read may access it.
    pub(crate) fn try_lock(&self, mode: LockMode) -> TryLock {
        self.try_lock_if(mode, |_| true)
    }

    /// Acquires the exclusive lock, but only if the caller has the only pin on the page
    /// (PostgreSQL's cleanup lock).
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

    /// Whether the lock could be acquired at this moment. For a cleanup lock, this also requires
    /// that there is just one pin. Sessions that are waiting for the lock test this whenever they
    /// wake up. The answer may be out of date immediately, so the caller still has to try.
    pub(crate) fn could_lock(&self, mode: LockMode, cleanup: bool) -> bool {
        let state = self.load();
        !state.any(mode.conflicts()) && (!cleanup || state.pins() == 1)
    }

    /// Upgrades a reader's lock to an exclusive lock, if there are no other holders of the lock and
    /// there is no I/O in progress. We must not wait here: if two readers both tried to upgrade,
    /// each would wait for the other to release its lock, and neither ever would.
    pub(crate) fn try_upgrade(&self, mode: LockMode) -> bool {
        let upgraded = self.update(|word| {
            let alone = word & (SHARES | SHARE_EXCLUSIVE | EXCLUSIVE) == mode.unit();
            let free = alone && !BufferState(word).has(flag::IO_IN_PROGRESS);
            free.then(|| word - mode.unit() + EXCLUSIVE)
        });
        upgraded.is_ok()
    }

    /// Changes the exclusive lock back to the mode it had before [`BufferWord::try_upgrade`].
    /// Returns true if the caller must wake the waiters.
    pub(crate) fn downgrade(&self, mode: LockMode) -> bool {
        self.release_lock(LockMode::Exclusive, mode.unit())
    }

    /// Releases the lock. Returns true if the caller must wake the waiters.
    pub(crate) fn unlock(&self, mode: LockMode) -> bool {
        self.release_lock(mode, 0)
    }

    /// Releases a lock that is held in `mode`. When downgrading, `keep` is the unit of the weaker
    /// lock that the caller still holds afterwards; otherwise it is 0. We clear `WAITERS` in the
    /// same atomic operation, so that exactly one thread is responsible for waking the waiters.
    fn release_lock(&self, mode: LockMode, keep: u64) -> bool {
        let released = self.update(|word| {
            let held = word & mode.held() != 0;
            held.then(|| (word - mode.unit() + keep) & !flag::WAITERS)
        });
        assert!(released.is_ok(), "a content lock released twice");
        released.is_ok_and(|(old, _)| old.has(flag::WAITERS))
    }
}
