//! The buffer word in one thread: which steps it allows, and when waiters must be woken.
//!
//! Loom checks what happens when several threads change one word concurrently (`pool/loom.rs`).

use super::{
    BufferWord, ClockVisit, LockMode, ReadClaim, TryLock, USAGE_MAX, WriteClaim, WriteEnd,
};

/// A buffer with a page, unpinned.
fn filled() -> BufferWord {
    let word = BufferWord::new();
    assert_eq!(word.clock_visit(), ClockVisit::Taken);
    word.publish();
    word.finish_read(true);
    word.unpin();
    word
}

#[test]
fn a_page_goes_from_publish_to_evict() {
    let word = BufferWord::new();
    assert_eq!(word.clock_visit(), ClockVisit::Taken);
    word.publish();
    assert_eq!(word.load().pins(), 2, "the session's and the I/O's");
    assert_eq!(word.start_read(), ReadClaim::InProgress);
    assert_eq!(word.try_lock(LockMode::Shared), TryLock::Invalid);
    word.finish_read(false);
    assert_eq!(word.start_read(), ReadClaim::Claimed);
    word.finish_read(true);
    assert_eq!(word.start_read(), ReadClaim::Valid);
    assert!(word.evict());
    assert_eq!((word.load().pins(), word.pin(5)), (1, None));
    word.unpin();
}

#[test]
fn the_clock_sweep_takes_a_page_after_its_usage_count_is_zero() {
    let word = filled();
    for _ in 0..9 {
        word.pin(USAGE_MAX);
        word.unpin();
    }
    assert_eq!(word.load().usage(), USAGE_MAX);
    (0..USAGE_MAX).for_each(|_| assert_eq!(word.clock_visit(), ClockVisit::Decremented));
    assert_eq!(word.clock_visit(), ClockVisit::Taken);
    assert_eq!(word.clock_visit(), ClockVisit::Skipped, "it is pinned now");
}

#[test]
fn lock_modes_conflict_as_in_the_table() {
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
fn a_lock_is_upgraded_only_if_it_is_the_only_one() {
    use LockMode::*;
    for mode in [Shared, ShareExclusive] {
        let word = filled();
        word.pin(1);
        assert_eq!(word.try_lock(mode), TryLock::Locked);
        assert!(word.try_upgrade(mode), "{mode:?}, the only lock");
        assert_eq!(word.try_lock(Shared), TryLock::Busy);
        word.mark_dirty();
        word.announce_waiter();
        assert!(word.downgrade(mode), "the new waiter must be woken");
        assert_eq!(word.try_lock(Shared), TryLock::Locked);
        assert!(!word.try_upgrade(mode), "{mode:?} beside another reader");
        word.unlock(Shared);
        if mode == Shared {
            assert_eq!(word.start_write_of_copy(0), WriteClaim::Claimed);
            assert!(!word.try_upgrade(mode), "while its copy is being written");
            word.finish_write(WriteEnd::Written);
        }
        word.unlock(mode);
    }
    let word = filled();
    word.pin(1);
    word.try_lock(Exclusive);
    word.mark_dirty();
    word.unlock(Exclusive);
    assert_eq!(word.start_write(0), WriteClaim::Claimed);
    word.begin_write();
    assert_eq!(word.try_lock(Shared), TryLock::Locked);
    assert!(!word.try_upgrade(Shared), "while it is being written");
    word.finish_write(WriteEnd::Written);
    assert!(word.try_upgrade(Shared), "the write is over");
}

#[test]
fn every_release_wakes_a_waiter() {
    let word = filled();
    word.pin(1);
    word.try_lock(LockMode::Shared);
    word.announce_waiter();
    assert!(word.unlock(LockMode::Shared), "an unlock");
    word.pin(1);
    word.announce_waiter();
    assert!(word.unpin().wake, "down to the one pin that a cleanup needs");
    assert!(!word.unpin().wake, "woken once");
}

#[test]
#[should_panic(expected = "a content lock released twice")]
fn releasing_a_lock_that_is_not_held_panics() {
    let word = filled();
    word.pin(1);
    word.unlock(LockMode::Exclusive);
}
