//! The mailbox of a session: how a reaper hands a finished I/O to the one who needs it.
//!
//! Reaping is not completing. The thread that learns a raw result must give the handle to somebody
//! who verifies it: to the issuing session if that sleeps waiting for exactly this I/O (or for any
//! of its own), to the helpers otherwise. The mailbox decides with one compare-exchange:
//!
//! ```text
//!   session                          reaper
//!   post(For(h)) / post(Any)         offer(h): For(h) or Any -> Assigned(h), then signal
//!   look again, sleep                          otherwise     -> false: set the ready bit
//!   take() -> Some(h): complete h
//! ```
//! Whatever was assigned is taken out when the wait ends, for whatever reason it ends, so no
//! handle can be lost between the two.

use crate::lock_free::wait_ref::WaitRef;
use crate::sync::atomic::{AtomicU64, Ordering};

const EMPTY: u64 = 0;
const ANY: u64 = 1;
const FOR: u64 = 2;
const ASSIGNED: u64 = 3;

/// What a session waits for.
#[derive(Debug, Clone, Copy)]
pub(crate) enum Wish {
    /// This I/O.
    For(WaitRef),
    /// Any I/O that the session issued.
    Any,
}

/// See the module.
#[derive(Debug)]
pub(crate) struct Mailbox(AtomicU64);

impl Mailbox {
    pub(crate) fn new() -> Self {
        Self(AtomicU64::new(EMPTY))
    }

    /// Session: says what is waited for. Check for completion again afterwards.
    pub(crate) fn post(&self, wish: Wish) {
        let word = match wish {
            Wish::For(io) => encode(FOR, io),
            Wish::Any => ANY,
        };
        self.0.store(word, Ordering::SeqCst);
    }

    /// Session: ends the wait; what was assigned must now be completed by the session.
    pub(crate) fn take(&self) -> Option<u32> {
        let word = self.0.swap(EMPTY, Ordering::SeqCst);
        (word & 3 == ASSIGNED).then(|| index_of(word))
    }

    /// Reaper: offers a handle in COMPLETED_IO. True: the session has it, signal its event.
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

// Two bits of tag, 20 of index, the low 42 of the generation. Whoever takes an assigned handle
// looks at the handle's own word for the whole generation, so the cut costs at most an offer to a
// session that waits for a much older I/O of the same handle, which looks and sleeps again.
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

    /// The reaper's handle is either taken by the session or left to the helpers, never both,
    /// never neither.
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
