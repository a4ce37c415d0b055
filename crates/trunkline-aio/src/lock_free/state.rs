//! The handle's state word: its state, its generation and the claim bit, in one atomic.
//!
//! ```text
//!  IDLE -> HANDED_OUT -> DEFINED -> STAGED -> SUBMITTED -> COMPLETED_IO -> COMPLETED_SHARED
//!   ^          |                                                               |
//!   |          v release                                                       v
//!   +---- generation + 1 <------------------------------------------- COMPLETED_LOCAL
//! ```
//!
//! The states are those of PostgreSQL's `PgAioHandleState`. In each state, the handle has exactly
//! one owner, and a state transition passes ownership from one owner to the next. Every transition
//! is a compare-exchange that expects a specific old word, so if two threads believed they owned
//! the same handle, we would notice before they could corrupt memory.
//!
//! The state and the generation are in the same word, so a reader always sees values that belong
//! together. PostgreSQL keeps them in separate fields, so its readers need a barrier and must
//! recheck. A wait reference consists of a handle index and a generation. It is stale if the word
//! contains a later generation.
//!
//! Several threads may try to complete an I/O that is in COMPLETED_IO: the worker that executed it,
//! helpers, and all sessions that wait for it. The claim bit makes sure that only one of them
//! succeeds.
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
    /// The state of a handle, in the order in which a handle goes through the states. Each state
    /// has one owner, and no other thread may touch the handle's body.
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
        /// Passed to the method. Owner: the thread that executes or reaps the I/O. In this state,
        /// the kernel may be reading or writing the I/O's memory.
        Submitted = "SUBMITTED",
        /// The raw result is known. Owner: the thread that wins the claim.
        CompletedIo = "COMPLETED_IO",
        /// The completion callbacks have run and the outcome is final. Owner: the thread with the
        /// claim.
        CompletedShared = "COMPLETED_SHARED",
        /// The outcome is in the issuer's slot. Owner: the thread that made the claim, which is
        /// about to free the handle.
        CompletedLocal = "COMPLETED_LOCAL",
    }
    /// All states in order.
    pub const STATES;
    /// The text of `pg_aios.state`.
    fn name;
}

impl State {
    /// Returns true if a handle may change directly from this state to `to`. Once a handle is
    /// DEFINED or STAGED, it can't go back to IDLE: its slot is pending, and its callbacks may have
    /// to release pins and locks. The only way to return the slot to the issuer and to run the
    /// callbacks is to complete the I/O.
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

    /// Reads the word. The caller is guaranteed to see everything that the thread that stored this
    /// state wrote before storing it.
    pub(crate) fn load(&self) -> StateReading {
        decode(self.0.load(Ordering::SeqCst))
    }

    /// Changes the state. This is the only function that does. When changing to IDLE, the same
    /// store also starts the next generation and clears the claim.
    ///
    /// # Panics
    /// Panics if the state diagram doesn't allow this transition, or if the handle isn't in state
    /// `from` of this generation. Either would be a bug that gives the handle two owners.
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

    /// Claims the right to complete the I/O. For each generation, this returns true to exactly one
    /// caller. Most callers find that there is nothing to claim, so we do a plain load first. A
    /// compare-exchange has to acquire exclusive ownership of the cache line even if it fails.
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
