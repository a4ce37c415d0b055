//! The handle's state word: its state, its generation and the claim bit, in one atomic.
//!
//! ```text
//!  IDLE -> HANDED_OUT -> DEFINED -> STAGED -> SUBMITTED -> COMPLETED_IO -> COMPLETED_SHARED
//!   ^          |                                                               |
//!   |          v release                                                       v
//!   +---- generation + 1 <------------------------------------------- COMPLETED_LOCAL
//! ```
//!
//! The states are PostgreSQL's `PgAioHandleState`. Each state has one owner, and a transition
//! passes ownership on. Because every transition is a compare-exchange from an expected word, we
//! detect a handle with two owners before they can corrupt memory.
//!
//! State and generation share one word, so readers always see a consistent pair. In PostgreSQL they
//! are separate fields, and readers need a barrier and a recheck. A wait reference is a handle
//! index and a generation; it becomes stale as soon as the word has a later generation.
//!
//! Several threads may want to complete an I/O in COMPLETED_IO: the worker that executed it,
//! helpers, and every session waiting for it. The claim bit ensures that exactly one of them does
//! so.
//!
//! ```text
//!   63                          4   3     2      0
//!  +-----------------------------+-------+--------+
//!  | generation                  | claim | state  |
//!  +-----------------------------+-------+--------+
//! ```

use crate::facade::atomic::{AtomicU64, Ordering};
use crate::lock_free::wait_ref::GENERATION_MAX;
use crate::named_enum::named_enum;

named_enum! {
    /// A handle's state. The values are in the order a handle passes through them. Each state has
    /// one owner, and only the owner may touch the handle's body.
    #[derive(PartialOrd, Ord)]
    enum State {
        /// Free. Owner: the free list.
        Idle = "IDLE",
        /// Acquired, but no I/O is defined yet. Owner: the session.
        HandedOut = "HANDED_OUT",
        /// Operation, file, offset and memory are defined. Owner: the session.
        Defined = "DEFINED",
        /// Waits to be submitted, alone or with its batch. Owner: the session.
        Staged = "STAGED",
        /// Passed to the method. Owner: the thread that executes or reaps the I/O. The kernel may
        /// read or write the I/O's memory in this state.
        Submitted = "SUBMITTED",
        /// The raw result is known. Owner: the thread that wins the claim.
        CompletedIo = "COMPLETED_IO",
        /// The completion callbacks have run and the outcome is final. Owner: the thread with the
        /// claim.
        CompletedShared = "COMPLETED_SHARED",
        /// The outcome is in the issuer's slot. Owner: the thread with the claim, about to free the
        /// handle.
        CompletedLocal = "COMPLETED_LOCAL",
    }
    /// All states in order.
    pub const STATES;
    /// The text of `pg_aios.state`.
    fn name;
}

impl State {
    /// Whether a handle may go from this state directly to `to`. A handle in DEFINED or STAGED
    /// can't go back to IDLE, because its slot is pending and its callbacks may have pins and locks
    /// to release. Only the I/O's completion returns the slot to the issuer and runs the callbacks.
    pub fn may_become(self, to: State) -> bool {
        use State::*;
        matches!(
            (self, to),
            (Idle, HandedOut)
                | (HandedOut, Defined | Idle)
                | (Defined, Staged)
                | (Staged, Submitted)
                | (Submitted, CompletedIo)
                | (CompletedIo, CompletedShared)
                | (CompletedShared, CompletedLocal)
                | (CompletedLocal, Idle)
        )
    }
}

/// One reading of a [`StateWord`].
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct StateReading {
    /// The state.
    pub(crate) state: State,
    /// The generation. It starts at 1 and wraps to 1, so 0 is never valid.
    pub(crate) generation: u64,
}

const CLAIMED: u64 = 1 << 3;
const GENERATION_SHIFT: u32 = 4;

/// State, claim and generation in one word.
#[derive(Debug)]
pub(crate) struct StateWord(AtomicU64);

impl StateWord {
    /// A word in state IDLE, generation 1.
    pub(crate) fn new() -> Self {
        Self(AtomicU64::new(encode(State::Idle, 1)))
    }

    /// Reads the word. Everything the storing thread wrote before it stored this state is visible
    /// to the caller.
    pub(crate) fn load(&self) -> StateReading {
        decode(self.0.load(Ordering::SeqCst))
    }

    /// Changes the state; no other function does. A change to IDLE starts the next generation and
    /// clears the claim in the same store.
    ///
    /// # Panics
    /// If the state diagram has no such edge, or the handle isn't in state `from` of this
    /// generation. Both are bugs that would give the handle two owners.
    pub(crate) fn advance(&self, generation: u64, from: State, to: State) {
        assert!(from.may_become(to), "handle cannot go from {} to {}", from.name(), to.name());
        // Only the claiming thread may leave COMPLETED_IO and later states.
        let claimed = from >= State::CompletedIo;
        let old = encode(from, generation) | if claimed { CLAIMED } else { 0 };
        let new = match to {
            State::Idle => encode(State::Idle, next_generation(generation)),
            State::CompletedShared | State::CompletedLocal => encode(to, generation) | CLAIMED,
            _ => encode(to, generation),
        };
        if let Err(found) = self.0.compare_exchange(old, new, Ordering::SeqCst, Ordering::SeqCst) {
            let found = decode(found);
            panic_state(found, generation, from);
        }
    }

    /// Claims the right to complete the I/O. Returns true for exactly one caller per generation.
    /// Most callers find nothing to claim, so we do a plain load first: even a failed
    /// compare-exchange would acquire exclusive ownership of the cache line.
    pub(crate) fn claim(&self, generation: u64) -> bool {
        let free = encode(State::CompletedIo, generation);
        let claimed = free | CLAIMED;
        self.0.load(Ordering::SeqCst) == free
            && self.0.compare_exchange(free, claimed, Ordering::SeqCst, Ordering::SeqCst).is_ok()
    }
}

#[cold]
#[expect(clippy::panic, reason = "two owners of one handle: continuing would corrupt memory")]
fn panic_state(found: StateReading, generation: u64, from: State) -> ! {
    panic!(
        "handle found {} in generation {}, expected {} in generation {generation}",
        found.state.name(),
        found.generation,
        from.name(),
    );
}

/// The next generation. Skips 0 when it wraps, because a reference with generation 0 is invalid
/// ([`crate::WaitRef`]).
fn next_generation(generation: u64) -> u64 {
    if generation >= GENERATION_MAX { 1 } else { generation + 1 }
}

fn encode(state: State, generation: u64) -> u64 {
    generation << GENERATION_SHIFT | state as u64
}

fn decode(word: u64) -> StateReading {
    StateReading {
        state: State::from_number((word & 7) as u8),
        generation: word >> GENERATION_SHIFT,
    }
}

#[cfg(all(test, not(loom)))]
mod tests {
    use super::*;

    #[test]
    fn only_the_edges_of_the_diagram_are_legal() {
        let mut legal = 0;
        for from in STATES {
            for to in STATES {
                legal += usize::from(from.may_become(to));
            }
        }
        assert_eq!(legal, 9);
        assert!(!State::Staged.may_become(State::Idle), "a staged handle must be executed");
    }

    #[test]
    fn the_generation_after_the_last_is_the_first() {
        let word = StateWord(AtomicU64::new(encode(State::HandedOut, GENERATION_MAX)));
        word.advance(GENERATION_MAX, State::HandedOut, State::Idle);
        let seen = word.load();
        assert_eq!((seen.state, seen.generation), (State::Idle, 1));
    }

    #[test]
    #[should_panic(expected = "expected STAGED in generation 1")]
    fn advancing_from_the_wrong_state_is_caught() {
        StateWord::new().advance(1, State::Staged, State::Submitted);
    }

    #[test]
    #[should_panic(expected = "expected IDLE in generation 7")]
    fn advancing_a_stale_generation_is_caught() {
        StateWord::new().advance(7, State::Idle, State::HandedOut);
    }
}

#[cfg(all(test, loom))]
mod loom_tests {
    use super::*;
    use crate::facade::Arc;

    #[test]
    fn loom_exactly_one_thread_claims() {
        loom::model(|| {
            let word = Arc::new(StateWord(AtomicU64::new(encode(State::CompletedIo, 3))));
            let other = Arc::clone(&word);
            let thread = loom::thread::spawn(move || usize::from(other.claim(3)));
            let mine = usize::from(word.claim(3));
            let theirs = thread.join().unwrap_or(9);
            assert_eq!(mine + theirs, 1);
        });
    }

    #[test]
    fn loom_a_stale_claim_never_succeeds() {
        loom::model(|| {
            let word = Arc::new(StateWord(AtomicU64::new(encode(State::CompletedIo, 3))));
            let other = Arc::clone(&word);
            let thread = loom::thread::spawn(move || {
                if other.claim(3) {
                    other.advance(3, State::CompletedIo, State::CompletedShared);
                    other.advance(3, State::CompletedShared, State::CompletedLocal);
                    other.advance(3, State::CompletedLocal, State::Idle);
                }
            });
            assert!(!word.claim(4), "generation 4 has not completed");
            drop(thread.join());
            assert_eq!(word.load().generation, 4);
        });
    }
}
