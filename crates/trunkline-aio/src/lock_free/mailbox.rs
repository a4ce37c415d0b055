//! Mailboxes: how a ring driver hands a reaped I/O to the session that waits for it.
//!
//! Reaping and completing are separate steps. The driver that reaps a raw result does not run
//! expensive callbacks itself. It hands the I/O to the issuing session if that session sleeps
//! waiting for this I/O, or for any I/O it issued. Otherwise the I/O goes to the helpers. The
//! mailbox makes this decision with one compare-exchange:
//!
//! ```text
//!   session                          reaper
//!   post(For(h)) / post(Any)         offer(h): For(h) or Any -> Assigned(h), then signal
//!   check again, sleep                         otherwise     -> false: set the ready bit
//!   take() -> Some(h): complete h
//! ```
//!
//! The session takes an assigned handle out of the mailbox when its wait ends, even if the wait
//! ends for another reason, such as a cancel. So an I/O is never lost between the two threads.
//!
//! PostgreSQL does not need this: with io_uring a waiting backend reaps the completion from the
//! ring itself, and then runs the callbacks.

use crate::lock_free::wait_ref::WaitRef;
use crate::sync::atomic::{AtomicU64, Ordering};

/// The tags in the two low bits of the word. The session does not wait.
const EMPTY: u64 = 0;
/// The session waits for any I/O it issued.
const ANY: u64 = 1;
/// The session waits for the I/O in the rest of the word.
const FOR: u64 = 2;
/// A driver has assigned the I/O in the rest of the word to the session.
const ASSIGNED: u64 = 3;

/// Which I/O a session offers to complete while it waits.
#[derive(Debug, Clone, Copy)]
pub(crate) enum Wish {
    /// This I/O.
    For(WaitRef),
    /// Any I/O the session issued.
    Any,
}

/// The mailbox of one session.
#[derive(Debug)]
pub(crate) struct Mailbox(AtomicU64);

impl Mailbox {
    pub(crate) fn new() -> Self {
        Self(AtomicU64::new(EMPTY))
    }

    /// Session: announces the I/O it is about to wait for. The session must check for completion
    /// again afterwards, because a driver that reaped the I/O before this store did not see the
    /// announcement.
    pub(crate) fn post(&self, wish: Wish) {
        let word = match wish {
            Wish::For(io) => encode(FOR, io),
            Wish::Any => ANY,
        };
        self.0.store(word, Ordering::SeqCst);
    }

    /// Session: ends the wait. If this returns a handle, the session must complete it, because no
    /// other thread will.
    pub(crate) fn take(&self) -> Option<u32> {
        let word = self.0.swap(EMPTY, Ordering::SeqCst);
        (word & 3 == ASSIGNED).then(|| index_of(word))
    }

    /// Driver: offers a handle in COMPLETED_IO. If this returns true, the session owns the
    /// completion and must be signalled.
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

// The word has two bits of tag, 20 bits of handle index, and the low 42 bits of the generation. The
// session that takes an assigned handle reads the full generation from the state word. So the
// missing bits can at most cause an offer to a session that waits for a much older I/O of the same
// handle. That session completes the offered I/O, finds that its own is complete, and continues.
fn encode(tag: u64, io: WaitRef) -> u64 {
    tag | u64::from(io.index()) << 2 | io.generation() << 22
}

fn index_of(word: u64) -> u32 {
    (word >> 2) as u32 & 0xF_FFFF
}

#[cfg(all(test, loom))]
mod loom_tests {
    use super::*;
    use crate::sync::Arc;

    /// The handle is either taken by the session or left to the helpers: never both, never neither.
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
