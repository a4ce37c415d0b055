//! One word per buffer: pins, usage, flags and the content lock, changed by one function.
//!
//! ```text
//!   63    54 53          52               51    34 33    22 21   18 17   0
//!  ┌────────┬───────────┬────────────────┬────────┬────────┬───────┬──────┐
//!  │ free   │ exclusive │ share-exclusive│ shares │ flags  │ usage │ pins │
//!  └────────┴───────────┴────────────────┴────────┴────────┴───────┴──────┘
//! ```
//! A page's life, as flags (PostgreSQL's names):
//!
//! ```text
//!   (none) ──publish──▶ TAG_VALID, IO_IN_PROGRESS ──finish_read──▶ TAG_VALID, VALID
//!      ▲                        ▲            └─ failed ─▶ TAG_VALID, IO_ERROR ─┐
//!      │                        └───────────── start_read ◀────────────────────┘
//!      └──────── evict: nobody but the evictor has a pin, nothing to write, no I/O
//! ```
//! The widths are those of PostgreSQL 19 (`buf_internals.h`), whose word this one follows. An I/O
//! under way has a pin of its own, so a page cannot go away under it whatever its issuer does.

use trunkline_aio::sync::atomic::{AtomicU64, Ordering};

/// Largest usage count: as often the clock passes by before a page goes (PostgreSQL's).
pub(crate) const USAGE_MAX: u32 = 5;

const PIN: u64 = 1;
const PINS: u64 = (1 << 18) - 1;
const USAGE_SHIFT: u32 = 18;
const USAGE: u64 = 0xF << USAGE_SHIFT;
const SHARE_SHIFT: u32 = 34;
const SHARE: u64 = 1 << SHARE_SHIFT;
const SHARES: u64 = PINS << SHARE_SHIFT;
const SHARE_EXCLUSIVE: u64 = 1 << 52;
const EXCLUSIVE: u64 = 1 << 53;

/// The flags.
pub(crate) mod flag {
    /// The buffer has an identity and is in the mapping table.
    pub(crate) const TAG_VALID: u64 = 1 << 22;
    /// The page may be used.
    pub(crate) const VALID: u64 = 1 << 23;
    /// The page was changed and must be written before it goes.
    pub(crate) const DIRTY: u64 = 1 << 24;
    /// An I/O has the sole right to fill or to write the page.
    pub(crate) const IO_IN_PROGRESS: u64 = 1 << 25;
    /// The last I/O failed.
    pub(crate) const IO_ERROR: u64 = 1 << 26;
    /// Somebody sleeps until this word changes.
    pub(crate) const WAITERS: u64 = 1 << 27;
    /// The checkpoint that runs must write the page.
    pub(crate) const CHECKPOINT_NEEDED: u64 = 1 << 28;
}

const _: () = assert!(USAGE_MAX <= 15, "the usage count has four bits");
const _: () = assert!(PINS & USAGE == 0 && SHARES & (SHARE_EXCLUSIVE | EXCLUSIVE) == 0);
const _: () = assert!(flag::CHECKPOINT_NEEDED < SHARE && flag::TAG_VALID > USAGE);

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

/// One reading of a [`BufferWord`].
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Seen(u64);

impl Seen {
    pub(crate) fn pins(self) -> u32 {
        (self.0 & PINS) as u32
    }

    pub(crate) fn usage(self) -> u32 {
        ((self.0 & USAGE) >> USAGE_SHIFT) as u32
    }

    /// Whether all of these flags are set.
    pub(crate) fn has(self, flags: u64) -> bool {
        self.0 & flags == flags
    }

    /// Whether any of these flags is set.
    pub(crate) fn any(self, flags: u64) -> bool {
        self.0 & flags != 0
    }

    /// Whether a write to disk keeps changes out, or is about to.
    pub(crate) fn is_being_written(self) -> bool {
        self.has(flag::IO_IN_PROGRESS | flag::VALID) && self.any(EXCLUSIVE | SHARE_EXCLUSIVE)
    }

    /// Whether somebody holds the content lock for oneself.
    pub(crate) fn is_exclusive(self) -> bool {
        self.any(EXCLUSIVE)
    }

    /// Whether anybody holds the content lock, in any mode.
    pub(crate) fn is_locked(self) -> bool {
        self.any(SHARES | SHARE_EXCLUSIVE | EXCLUSIVE)
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

/// What the clock found.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Tick {
    /// Ours: it has our pin, and nobody else's.
    Taken,
    /// Used lately; a little less so now.
    Decremented,
    /// Pinned, to be written first, or under I/O.
    Unusable,
}

/// See the module.
#[derive(Debug)]
pub(crate) struct BufferWord(AtomicU64);

impl BufferWord {
    /// An empty buffer.
    pub(crate) fn new() -> Self {
        Self(AtomicU64::new(0))
    }

    pub(crate) fn load(&self) -> Seen {
        Seen(self.0.load(Ordering::SeqCst))
    }

    /// The only assignment of the word: tries `change` until nobody came in between. `None` leaves
    /// the word as it is. Gives the word before and after.
    ///
    /// # Panics
    /// If the change breaks a rule of the word: going on would hand a page to two owners.
    fn update(&self, change: impl Fn(u64) -> Option<u64>) -> Result<(Seen, Seen), Seen> {
        let mut old = self.0.load(Ordering::SeqCst);
        loop {
            let Some(new) = change(old) else { return Err(Seen(old)) };
            check(old, new);
            match self.0.compare_exchange(old, new, Ordering::SeqCst, Ordering::SeqCst) {
                Ok(_) => return Ok((Seen(old), Seen(new))),
                Err(now) => old = now,
            }
        }
    }

    /// Pins a page that has an identity, and notes that it was used, up to `usage_max`. The tag can
    /// be trusted once this has succeeded. `None`: it has no identity.
    pub(crate) fn pin(&self, usage_max: u32) -> Option<Seen> {
        let pinned = self.update(|word| {
            let used = if Seen(word).usage() < usage_max { 1 << USAGE_SHIFT } else { 0 };
            Seen(word).has(flag::TAG_VALID).then_some(word + PIN + used)
        });
        pinned.ok().map(|(_, new)| new)
    }

    /// Gives a pin back. True: somebody waits for that, wake them.
    pub(crate) fn unpin(&self) -> Unpinned {
        let old = Seen(self.0.fetch_sub(PIN, Ordering::SeqCst));
        assert!(old.pins() > 0, "a pin given back twice");
        assert!(old.pins() > 1 || !old.is_locked(), "the last pin given back before the lock");
        let left = old.pins() - 1;
        // Who waits to be the only one, or for the page to be gone, looks again now.
        let wake = left <= 1 && old.has(flag::WAITERS) && self.take_waiters();
        Unpinned { left, wake }
    }

    /// The clock's visit: takes a page that nobody uses, makes one that was used a little less so.
    /// One that must be written first is left, though it too is forgotten by and by.
    pub(crate) fn tick(&self) -> Tick {
        let visited = self.update(|word| {
            let seen = Seen(word);
            if seen.pins() > 0 {
                return None;
            }
            if seen.usage() > 0 {
                return Some(word - (1 << USAGE_SHIFT));
            }
            (!seen.any(flag::DIRTY | flag::IO_IN_PROGRESS)).then_some(word + PIN)
        });
        match visited {
            Ok((old, _)) if old.usage() > 0 => Tick::Decremented,
            Ok(_) => Tick::Taken,
            Err(_) => Tick::Unusable,
        }
    }

    /// Takes a page of a ring again: one that nobody has pinned, and nobody but the ring has used.
    pub(crate) fn take_from_ring(&self) -> bool {
        let taken = self.update(|word| {
            let seen = Seen(word);
            let busy = seen.pins() > 0 || seen.usage() > 1;
            let busy = busy || seen.any(flag::DIRTY | flag::IO_IN_PROGRESS);
            (!busy).then_some(word + PIN)
        });
        taken.is_ok()
    }

    /// Takes the identity away; the caller has the only pin and holds the lock of the table's part.
    /// False: somebody else has come, or there is something to write.
    pub(crate) fn evict(&self) -> bool {
        let evicted = self.update(|word| {
            let seen = Seen(word);
            let free = seen.pins() == 1 && !seen.any(flag::DIRTY | flag::IO_IN_PROGRESS);
            let free = free && seen.has(flag::TAG_VALID) && !seen.is_locked();
            free.then_some(word & (PINS | flag::WAITERS))
        });
        evicted.is_ok()
    }

    /// Gives an empty buffer its identity, the right to fill it, and the I/O's own pin. The caller
    /// has pinned it and holds the lock of the table's part; a reader that follows an old chain may
    /// pin it too for a moment.
    pub(crate) fn publish(&self) {
        let published = self.update(|word| {
            let empty = !Seen(word).any(flag::TAG_VALID | flag::VALID | flag::IO_IN_PROGRESS);
            let fresh = (word & !USAGE) | flag::TAG_VALID | flag::IO_IN_PROGRESS | 1 << USAGE_SHIFT;
            empty.then_some(fresh + PIN)
        });
        assert!(published.is_ok(), "a buffer published that has a page");
    }

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

    /// Takes the identity away although there is something to write: the relation is gone, or this
    /// part of it. The caller has the only pin and holds the lock of the table's part.
    pub(crate) fn discard(&self) -> bool {
        let discarded = self.update(|word| {
            let seen = Seen(word);
            let free = seen.pins() == 1 && !seen.any(flag::IO_IN_PROGRESS) && !seen.is_locked();
            (free && seen.has(flag::TAG_VALID)).then_some(word & (PINS | flag::WAITERS))
        });
        discarded.is_ok()
    }

    /// Gives an empty buffer, whose frame the caller has filled, its identity: a page that needs no
    /// read. Otherwise as [`BufferWord::publish`].
    pub(crate) fn publish_valid(&self, dirty: bool) {
        let flags = flag::TAG_VALID | flag::VALID | if dirty { flag::DIRTY } else { 0 };
        let published = self.update(|word| {
            let empty = !Seen(word).any(flag::TAG_VALID | flag::VALID | flag::IO_IN_PROGRESS);
            empty.then_some((word & !USAGE) | flags | 1 << USAGE_SHIFT)
        });
        assert!(published.is_ok(), "a buffer published that has a page");
    }

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
    fn take_waiters(&self) -> bool {
        let old = self.0.fetch_and(!flag::WAITERS, Ordering::SeqCst);
        Seen(old).has(flag::WAITERS)
    }
}

/// What is to be done after a pin was given back.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Unpinned {
    /// Pins that are left.
    pub(crate) left: u32,
    /// Somebody sleeps on the word: wake them.
    pub(crate) wake: bool,
}

/// The rules that hold between any two values of a word.
fn check(old: u64, new: u64) {
    let (before, after) = (Seen(old), Seen(new));
    let pins = (before.pins(), after.pins());
    assert!(pins.1.abs_diff(pins.0) <= 1 && new >> 54 == 0, "pins {pins:?}");
    // A page under a read is never one that can be used, and one under a write does not change.
    let writing = after.has(flag::IO_IN_PROGRESS | flag::VALID);
    assert!(!writing || (before.has(flag::VALID) && after.any(EXCLUSIVE | SHARE_EXCLUSIVE)));
    assert!(!after.has(flag::VALID) || after.has(flag::TAG_VALID));
    assert!(!after.has(flag::DIRTY) || after.has(flag::VALID));
    assert!(!after.is_locked() || after.pins() > 0, "a lock without a pin");
    // What is to be written was changed by who had it for himself, or is a page that is new.
    let made_dirty = after.has(flag::DIRTY) && !before.has(flag::DIRTY);
    let by_right = before.is_exclusive() || !before.has(flag::VALID);
    assert!(!made_dirty || by_right, "a page changed without the exclusive lock");
    assert!(!after.has(flag::CHECKPOINT_NEEDED) || after.has(flag::DIRTY));
}

#[cfg(all(test, not(loom)))]
mod tests {
    use super::*;

    /// A buffer with a page, unpinned.
    fn filled() -> BufferWord {
        let word = BufferWord::new();
        assert_eq!(word.tick(), Tick::Taken);
        word.publish();
        word.finish_read(true);
        word.unpin();
        word
    }

    #[test]
    fn a_page_lives_from_publish_to_evict() {
        let word = BufferWord::new();
        assert_eq!(word.tick(), Tick::Taken);
        word.publish();
        assert_eq!(word.load().pins(), 2, "the session's and the I/O's");
        assert_eq!(word.start_read(), StartRead::InProgress);
        assert_eq!(word.try_lock(LockMode::Shared), TryLock::Invalid);
        word.finish_read(false);
        assert_eq!(word.start_read(), StartRead::Claimed);
        word.finish_read(true);
        assert_eq!(word.start_read(), StartRead::Valid);
        assert!(word.evict());
        assert_eq!((word.load().pins(), word.pin(5)), (1, None));
        word.unpin();
    }

    #[test]
    fn the_clock_takes_a_page_after_as_many_visits_as_it_was_used() {
        let word = filled();
        for _ in 0..9 {
            word.pin(USAGE_MAX);
            word.unpin();
        }
        assert_eq!(word.load().usage(), USAGE_MAX);
        (0..USAGE_MAX).for_each(|_| assert_eq!(word.tick(), Tick::Decremented));
        assert_eq!(word.tick(), Tick::Taken);
        assert_eq!(word.tick(), Tick::Unusable, "it is pinned now");
    }

    #[test]
    fn the_three_modes_exclude_what_they_should() {
        use LockMode::*;
        for (held, wanted, granted) in [
            (Shared, Shared, true),
            (Shared, ShareExclusive, true),
            (Shared, Exclusive, false),
            (ShareExclusive, Shared, true),
            (ShareExclusive, ShareExclusive, false),
            (ShareExclusive, Exclusive, false),
            (Exclusive, Shared, false),
            (Exclusive, ShareExclusive, false),
            (Exclusive, Exclusive, false),
        ] {
            let word = filled();
            word.pin(1);
            assert_eq!(word.try_lock(held), TryLock::Locked);
            let expected = if granted { TryLock::Locked } else { TryLock::Busy };
            assert_eq!(word.try_lock(wanted), expected, "{wanted:?} beside {held:?}");
            if granted {
                word.unlock(wanted);
            }
            word.unlock(held);
            assert!(!word.load().is_locked());
        }
    }

    #[test]
    fn a_reader_gets_the_page_for_itself_only_when_it_is_alone() {
        use LockMode::*;
        for mode in [Shared, ShareExclusive] {
            let word = filled();
            word.pin(1);
            assert_eq!(word.try_lock(mode), TryLock::Locked);
            assert!(word.try_upgrade(mode), "{mode:?}, alone");
            assert_eq!(word.try_lock(Shared), TryLock::Busy);
            word.mark_dirty();
            word.announce_waiter();
            assert!(word.downgrade(mode), "who came meanwhile is told");
            assert_eq!(word.try_lock(Shared), TryLock::Locked);
            assert!(!word.try_upgrade(mode), "{mode:?} beside another reader");
            word.unlock(Shared);
            if mode == Shared {
                assert_eq!(word.start_write_of_copy(0), StartWrite::Claimed);
                assert!(!word.try_upgrade(mode), "while its copy is made and written");
                word.finish_write(WriteEnd::Written);
            }
            word.unlock(mode);
        }
        let word = filled();
        word.pin(1);
        word.try_lock(Exclusive);
        word.mark_dirty();
        word.unlock(Exclusive);
        assert_eq!(word.start_write(0), StartWrite::Claimed);
        word.begin_write();
        assert_eq!(word.try_lock(Shared), TryLock::Locked);
        assert!(!word.try_upgrade(Shared), "while it is being written");
        word.finish_write(WriteEnd::Written);
        assert!(word.try_upgrade(Shared), "the write is over");
    }

    #[test]
    fn a_waiter_is_told_of_every_way_out() {
        let word = filled();
        word.pin(1);
        word.try_lock(LockMode::Shared);
        word.announce_waiter();
        assert!(word.unlock(LockMode::Shared), "an unlock");
        word.pin(1);
        word.announce_waiter();
        assert!(word.unpin().wake, "down to the one pin that a cleanup needs");
        assert!(!word.unpin().wake, "told once");
    }

    #[test]
    #[should_panic(expected = "a content lock given back twice")]
    fn unlocking_what_is_not_locked_is_caught() {
        let word = filled();
        word.pin(1);
        word.unlock(LockMode::Exclusive);
    }
}

#[cfg(all(test, loom))]
mod loom_tests {
    use super::*;
    use trunkline_aio::sync::Arc;

    fn filled() -> Arc<BufferWord> {
        let word = BufferWord::new();
        assert_eq!(word.tick(), Tick::Taken);
        word.publish();
        word.finish_read(true);
        word.unpin();
        // As after one lap of the clock.
        assert_eq!(word.tick(), Tick::Decremented);
        Arc::new(word)
    }

    /// A page is either pinned by who looked it up, or evicted by who took it: never both.
    #[test]
    fn loom_a_pin_and_an_eviction_exclude_each_other() {
        loom::model(|| {
            let word = filled();
            let theirs = Arc::clone(&word);
            let reader = loom::thread::spawn(move || theirs.pin(1).is_some());
            let evicted = word.tick() == Tick::Taken && word.evict();
            let pinned = reader.join().unwrap_or(false);
            assert!(!(evicted && pinned));
            assert!(evicted || pinned || word.load().has(flag::VALID));
        });
    }

    /// Of two that want to fill a page, one does.
    #[test]
    fn loom_one_of_two_claims_the_read() {
        loom::model(|| {
            let word = BufferWord::new();
            word.tick();
            word.publish();
            word.finish_read(false);
            let word = Arc::new(word);
            let theirs = Arc::clone(&word);
            let other = loom::thread::spawn(move || {
                theirs.pin(1);
                let claimed = theirs.start_read() == StartRead::Claimed;
                if claimed {
                    theirs.finish_read(true);
                }
                theirs.unpin();
                claimed
            });
            let mine = word.start_read() == StartRead::Claimed;
            if mine {
                word.finish_read(true);
            }
            let other = other.join().unwrap_or(false);
            assert!(mine || other);
            assert!(!(mine && other), "the first one made it valid");
            assert_eq!(word.load().pins(), 1);
        });
    }

    /// Nobody writes while somebody reads, whatever the order.
    #[test]
    fn loom_exclusive_excludes_shared() {
        loom::model(|| {
            let word = filled();
            word.pin(1);
            let inside = Arc::new(AtomicU64::new(0));
            let (theirs, seen) = (Arc::clone(&word), Arc::clone(&inside));
            let other = loom::thread::spawn(move || {
                theirs.pin(1);
                if theirs.try_lock(LockMode::Exclusive) == TryLock::Locked {
                    assert_eq!(seen.fetch_add(1, Ordering::Relaxed), 0);
                    seen.fetch_sub(1, Ordering::Relaxed);
                    theirs.unlock(LockMode::Exclusive);
                }
                theirs.unpin();
            });
            if word.try_lock(LockMode::Shared) == TryLock::Locked {
                assert_eq!(inside.fetch_add(1, Ordering::Relaxed), 0);
                inside.fetch_sub(1, Ordering::Relaxed);
                word.unlock(LockMode::Shared);
            }
            drop(other.join());
            assert!(!word.load().is_locked());
        });
    }

    /// A reader that changes a hint never does so while the page is being written, and what it has
    /// changed is to be written.
    #[test]
    fn loom_a_hint_is_not_set_under_a_write() {
        loom::model(|| {
            let word = filled();
            word.pin(1);
            assert_eq!(word.try_lock(LockMode::Exclusive), TryLock::Locked);
            word.mark_dirty();
            word.unlock(LockMode::Exclusive);
            word.unpin();
            let bytes = Arc::new(AtomicU64::new(0));
            let (theirs, seen) = (Arc::clone(&word), Arc::clone(&bytes));
            let reader = loom::thread::spawn(move || {
                theirs.pin(1);
                let mut set = false;
                if theirs.try_lock(LockMode::Shared) == TryLock::Locked {
                    set = theirs.try_upgrade(LockMode::Shared);
                    if set {
                        theirs.mark_dirty();
                        seen.fetch_add(1, Ordering::Relaxed);
                        theirs.downgrade(LockMode::Shared);
                    }
                    theirs.unlock(LockMode::Shared);
                }
                theirs.unpin();
                set
            });
            let mut written = None;
            if word.start_write(0) == StartWrite::Claimed {
                let begun = bytes.load(Ordering::Relaxed);
                word.begin_write();
                assert_eq!(bytes.load(Ordering::Relaxed), begun);
                word.finish_write(WriteEnd::Written);
                written = Some(begun);
            }
            let set = reader.join().unwrap_or(false);
            let expected = set && written != Some(1) || written.is_none();
            assert_eq!(word.load().has(flag::DIRTY), expected);
            assert!(!word.load().is_locked());
        });
    }

    /// A waiter that announced itself is told, or sees for itself that it need not wait.
    #[test]
    fn loom_no_waiter_is_forgotten() {
        loom::model(|| {
            let word = filled();
            word.pin(1);
            assert_eq!(word.try_lock(LockMode::Exclusive), TryLock::Locked);
            let theirs = Arc::clone(&word);
            let holder = loom::thread::spawn(move || theirs.unlock(LockMode::Exclusive));
            word.announce_waiter();
            let free = !word.load().is_locked();
            let told = holder.join().unwrap_or(false);
            assert!(free || told);
        });
    }
}
