//! The word in one thread: who may do what, and who is told.
//!
//! What several threads do to it at once is in `loom_tests`.

use super::super::content_lock::{LockMode, TryLock};
use super::super::io_claim::{StartRead, StartWrite, WriteEnd};
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
