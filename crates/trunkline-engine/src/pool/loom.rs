//! Loom models of the pool's lock-free parts.
//!
//! This file replaces `pool.rs` if we build with `--cfg loom`. It includes the same source files
//! for the lock-free parts, but not the rest of the pool, because that does I/O.

mod descriptor {
    pub(crate) mod content_lock;
    pub(crate) mod io_claim;
    pub(crate) mod state;
    mod word;

    pub(crate) use self::word::{BufferWord, ClockVisit};
}

mod replacement {
    pub(crate) mod clean_bitmap;
    pub(crate) mod clock_sweep;
}

#[cfg(test)]
mod tests {
    use super::descriptor::content_lock::{LockMode, TryLock};
    use super::descriptor::io_claim::{ReadClaim, WriteClaim, WriteEnd};
    use super::descriptor::state::flag;
    use super::descriptor::{BufferWord, ClockVisit};
    use super::replacement::clean_bitmap::CleanBitmap;
    use super::replacement::clock_sweep::ClockSweep;
    use std::ops::ControlFlow;
    use trunkline_aio::facade::Arc;
    use trunkline_aio::facade::atomic::{AtomicBool, AtomicU64, Ordering};

    fn filled() -> Arc<BufferWord> {
        let word = BufferWord::new();
        assert_eq!(word.clock_visit(), ClockVisit::Taken);
        word.publish();
        word.finish_read(true);
        word.unpin();
        // The state after one round of the clock.
        assert_eq!(word.clock_visit(), ClockVisit::Decremented);
        Arc::new(word)
    }

    /// A page is either pinned by a lookup or evicted by the clock sweep, never both.
    #[test]
    fn loom_a_pin_and_an_eviction_exclude_each_other() {
        loom::model(|| {
            let word = filled();
            let theirs = Arc::clone(&word);
            let reader = loom::thread::spawn(move || theirs.pin(1).is_some());
            let evicted = word.clock_visit() == ClockVisit::Taken && word.evict();
            let pinned = reader.join().unwrap_or(false);
            assert!(!(evicted && pinned));
            assert!(evicted || pinned || word.load().has(flag::VALID));
        });
    }

    /// If two sessions want to read the same page, exactly one claims the read.
    #[test]
    fn loom_one_of_two_claims_the_read() {
        loom::model(|| {
            let word = BufferWord::new();
            word.clock_visit();
            word.publish();
            word.finish_read(false);
            let word = Arc::new(word);
            let theirs = Arc::clone(&word);
            let other = loom::thread::spawn(move || {
                theirs.pin(1);
                let claimed = theirs.start_read() == ReadClaim::Claimed;
                if claimed {
                    theirs.finish_read(true);
                }
                theirs.unpin();
                claimed
            });
            let mine = word.start_read() == ReadClaim::Claimed;
            if mine {
                word.finish_read(true);
            }
            let other = other.join().unwrap_or(false);
            assert!(mine || other);
            assert!(!(mine && other), "the first one made it valid");
            assert_eq!(word.load().pins(), 1);
        });
    }

    /// The exclusive lock excludes readers, whichever session locks first.
    #[test]
    fn loom_exclusive_excludes_shared() {
        loom::model(|| {
            let word = filled();
            word.pin(1);
            let inside = Arc::new(AtomicU64::new(0));
            let (theirs, shared) = (Arc::clone(&word), Arc::clone(&inside));
            let other = loom::thread::spawn(move || {
                theirs.pin(1);
                if theirs.try_lock(LockMode::Exclusive) == TryLock::Locked {
                    assert_eq!(shared.fetch_add(1, Ordering::Relaxed), 0);
                    shared.fetch_sub(1, Ordering::Relaxed);
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

    /// A reader never sets a hint while the page is being written, and a page with a new hint is
    /// dirty.
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
            let (theirs, shared) = (Arc::clone(&word), Arc::clone(&bytes));
            let reader = loom::thread::spawn(move || {
                theirs.pin(1);
                let mut set = false;
                if theirs.try_lock(LockMode::Shared) == TryLock::Locked {
                    set = theirs.try_upgrade(LockMode::Shared);
                    if set {
                        theirs.mark_dirty();
                        shared.fetch_add(1, Ordering::Relaxed);
                        theirs.downgrade(LockMode::Shared);
                    }
                    theirs.unlock(LockMode::Shared);
                }
                theirs.unpin();
                set
            });
            let mut written = None;
            if word.start_write(0) == WriteClaim::Claimed {
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

    /// A waiter that has announced itself is either woken or notices that it doesn't need to wait.
    #[test]
    fn loom_no_wake_up_is_lost() {
        loom::model(|| {
            let word = filled();
            word.pin(1);
            assert_eq!(word.try_lock(LockMode::Exclusive), TryLock::Locked);
            let theirs = Arc::clone(&word);
            let holder = loom::thread::spawn(move || theirs.unlock(LockMode::Exclusive));
            word.announce_waiter();
            let free = !word.load().is_locked();
            let woken = holder.join().unwrap_or(false);
            assert!(free || woken);
        });
    }

    /// A page that becomes clean while a search clears its bit is found by the next search.
    #[test]
    fn loom_a_page_that_becomes_clean_is_found() {
        loom::model(|| {
            let shared = Arc::new((CleanBitmap::new(1), AtomicBool::new(true)));
            let theirs = Arc::clone(&shared);
            let writer = loom::thread::spawn(move || {
                theirs.1.store(false, Ordering::SeqCst);
                theirs.0.set(0);
            });
            let (map, dirty) = &*shared;
            let found = || {
                let dirty = |_| dirty.load(Ordering::SeqCst);
                map.visit(0, dirty, |_| ControlFlow::Break(()))
            };
            found();
            assert!(writer.join().is_ok());
            assert!(found());
        });
    }

    /// Two sweeps never take the same buffer.
    #[test]
    fn loom_two_sweeps_take_different_buffers() {
        loom::model(|| {
            let shared = Arc::new((ClockSweep::new(2), [BufferWord::new(), BufferWord::new()]));
            let theirs = Arc::clone(&shared);
            let other = loom::thread::spawn(move || {
                let mut taken = 0_u32;
                let (clock, words) = &*theirs;
                clock.sweep(
                    1,
                    |buffer| &words[buffer as usize],
                    |buffer| {
                        taken |= 1 << buffer;
                        true
                    },
                );
                taken
            });
            let mut taken = 0_u32;
            let (clock, words) = &*shared;
            clock.sweep(
                1,
                |buffer| &words[buffer as usize],
                |buffer| {
                    taken |= 1 << buffer;
                    true
                },
            );
            let other = other.join().unwrap_or(0);
            assert_eq!(taken & other, 0);
            assert_eq!((taken | other).count_ones(), 2, "each sweep took one");
        });
    }
}
