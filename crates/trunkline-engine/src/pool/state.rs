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
//!
//! Who may look at the page or change it is in `content_lock`, who fills and writes it in `io_claim`: more
//! methods of the same word, through the same `update`.

#[cfg(all(test, not(loom)))]
mod tests;

use trunkline_aio::sync::atomic::{AtomicU64, Ordering};

/// Largest usage count: as often the clock passes by before a page goes (PostgreSQL's).
pub(crate) const USAGE_MAX: u32 = 5;

pub(super) const PIN: u64 = 1;
pub(super) const PINS: u64 = (1 << 18) - 1;
const USAGE_SHIFT: u32 = 18;
const USAGE: u64 = 0xF << USAGE_SHIFT;
const SHARE_SHIFT: u32 = 34;
pub(super) const SHARE: u64 = 1 << SHARE_SHIFT;
pub(super) const SHARES: u64 = PINS << SHARE_SHIFT;
pub(super) const SHARE_EXCLUSIVE: u64 = 1 << 52;
pub(super) const EXCLUSIVE: u64 = 1 << 53;

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

/// One reading of a [`BufferWord`].
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Seen(pub(super) u64);

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
pub(crate) struct BufferWord(pub(super) AtomicU64);

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
    pub(super) fn update(&self, change: impl Fn(u64) -> Option<u64>) -> Result<(Seen, Seen), Seen> {
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

    /// The same for who holds the exclusive lock, and has looked at the page under it: the lock goes with
    /// the identity.
    pub(crate) fn discard_locked(&self) -> bool {
        let discarded = self.update(|word| {
            let seen = Seen(word);
            let alone = seen.pins() == 1 && seen.is_exclusive();
            let free = alone && !seen.any(flag::IO_IN_PROGRESS);
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

#[cfg(all(test, loom))]
mod loom_tests {
    use super::super::content_lock::{LockMode, TryLock};
    use super::super::io_claim::{StartRead, StartWrite, WriteEnd};
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
