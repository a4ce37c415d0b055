//! Mailboxes: how a ring driver hands a reaped I/O to the session waiting for it.
//!
//! The driver that reaps a raw result doesn't run expensive callbacks itself, so another thread has
//! to complete the I/O. If the issuing session is asleep, waiting for this I/O or for any of its
//! I/Os, the driver hands the I/O to that session. If not, it leaves the I/O to the helpers. The
//! mailbox uses a single compare-exchange to decide between the two:
//!
//! ```text
//!   session                          reaper
//!   post(For(h)) / post(Any)         offer(h): For(h) or Any -> Assigned(h), then signal
//!   check again, sleep                         otherwise     -> false: set the ready bit
//!   take() -> Some(h): complete h
//! ```
//!
//! When its wait ends, the session removes any handle assigned to it from the mailbox. It must do
//! this even if the wait ended for a different reason, for example because it was cancelled. That
//! way, an I/O can't get lost between the two threads.
//!
//! PostgreSQL doesn't need this. When it uses io_uring, a waiting backend reaps the completion from
//! the ring itself and then runs the callbacks.

use crate::facade::atomic::{AtomicU64, Ordering};
use crate::lock_free::wait_ref::WaitRef;

/// The tags in the word's two low bits. EMPTY: the session isn't waiting.
const EMPTY: u64 = 0;
/// The session is waiting for any of its I/Os.
const ANY: u64 = 1;
/// The session is waiting for the I/O in the rest of the word.
const FOR: u64 = 2;
/// A driver has assigned the I/O in the rest of the word to the session.
const ASSIGNED: u64 = 3;

/// Which I/O a session offers to complete while it waits.
#[derive(Debug, Clone, Copy)]
pub(crate) enum Wish {
    /// This I/O.
    For(WaitRef),
    /// Any I/O this session issued.
    Any,
}

/// The mailbox of one session.
#[derive(Debug)]
pub(crate) struct Mailbox(AtomicU64);

impl Mailbox {
    pub(crate) fn new() -> Self {
        Self(AtomicU64::new(EMPTY))
    }

    /// Called by the session to announce which I/O it is going to wait for. After that, the session
    /// must check once more whether the I/O is complete, because a driver may have reaped it just
    /// before the announcement.
    pub(crate) fn post(&self, wish: Wish) {
        let word = match wish {
            Wish::For(io) => encode(FOR, io),
            Wish::Any => ANY,
        };
        self.0.store(word, Ordering::SeqCst);
    }

    /// Called by the session at the end of its wait. If this returns a handle, the session has to
    /// complete that I/O, because no other thread is going to do it.
    pub(crate) fn take(&self) -> Option<u32> {
        let word = self.0.swap(EMPTY, Ordering::SeqCst);
        (word & 3 == ASSIGNED).then(|| index_of(word))
    }

    /// Called by the driver to offer a handle in COMPLETED_IO. Returns true if the session has
    /// accepted it. In that case the driver must signal the session, which will complete the I/O.
    pub(crate) fn offer(&self, io: WaitRef) -> bool {
        let word = self.0.load(Ordering::SeqCst);
        if word != ANY && word != encode(FOR, io) {
            return false;
        }
        self.0
            .compare_exchange(word, encode(ASSIGNED, io), Ordering::SeqCst, Ordering::SeqCst)
            .is_ok()
    }
}

// The word consists of two tag bits, 20 bits for the handle index, and the low 42 bits of the
// generation. It's OK to truncate the generation, because a session that takes an assigned handle
// reads the full generation from the handle's state word. In the worst case, an I/O is offered to a
// session that is waiting for a much older I/O on the same handle. That session completes the
// offered I/O, sees that the I/O it was waiting for is complete too, and continues.
fn encode(tag: u64, io: WaitRef) -> u64 {
    tag | u64::from(io.index()) << 2 | io.generation() << 22
}

fn index_of(word: u64) -> u32 {
    (word >> 2) as u32 & 0xF_FFFF
}

#[cfg(all(test, loom))]
mod loom_tests {
    use super::*;
    use crate::facade::Arc;

    /// Either the session takes the handle or it is left to the helpers. It must never be both or
    /// neither.
    #[test]
    fn loom_a_handle_is_handed_over_exactly_once() {
        loom::model(|| {
            let mailbox = Arc::new(Mailbox::new());
            let io = WaitRef::new(5, 9);
            let theirs = Arc::clone(&mailbox);
            let reaper = loom::thread::spawn(move || theirs.offer(io));
            mailbox.post(Wish::For(io));
            let taken = mailbox.take();
            let handed = reaper.join().unwrap_or(false);
            assert_eq!(taken.is_some(), handed);
            assert!(taken.is_none_or(|t| t == io.index()));
        });
    }

    #[test]
    fn loom_any_takes_one_of_two() {
        loom::model(|| {
            let mailbox = Arc::new(Mailbox::new());
            mailbox.post(Wish::Any);
            let theirs = Arc::clone(&mailbox);
            let reaper = loom::thread::spawn(move || {
                let first = theirs.offer(WaitRef::new(1, 1));
                let second = theirs.offer(WaitRef::new(2, 1));
                usize::from(first) + usize::from(second)
            });
            let taken = usize::from(mailbox.take().is_some());
            let handed = reaper.join().unwrap_or(9);
            assert_eq!(taken, handed);
        });
    }
}
