//! **Reserving WAL space** (`ReserveXLogInsertLocation`) with one compare-exchange instead of a spinlock.
//!
//! ```text
//!   word     │ exclusive: 1 bit │ position: 42 bits, in 8 bytes │ length of the previous record: 21 bits │
//!   slots    one for each inserter: a lower bound of the place it is writing to, or NONE
//! ```
//! A record contains the LSN of the record before it, so an inserter must learn two numbers at once: where its
//! record begins, and where the one before begins. Both are in one word, and one compare-exchange reserves a
//! place (decision 0046). Rejected: to add to a counter and to keep the starts of records in a table, which has to be
//! cleaned up.
//!
//! **What may be written out.** Inserters copy their records in any order, so the buffers have gaps. Before it
//! reserves, an inserter stores a lower bound of its position in its slot, and it clears the slot once its record is
//! copied (`WaitXLogInsertionsToFinish` reads the insertion locks for the same purpose). [`Reservations::complete`]
//! reads the end of what is reserved first, and then the slots. Everything before the smallest of them is complete:
//! an inserter with a reservation below that end has already announced it.
//!
//! **Exclusive insertion.** Every record after a checkpoint's redo point must know that redo point. So the inserter of
//! `CHECKPOINT_REDO` sets a bit in the word, and waits until all slots are clear (`WALInsertLockAcquireExclusive`).
//! Meanwhile, others wait too.

use trunkline_aio::facade::atomic::{AtomicU64, Ordering};
use trunkline_aio::facade::thread::yield_now;

/// The position of a slot whose inserter isn't writing.
const NONE: u64 = u64::MAX;

/// Positions and lengths are multiples of this many bytes (`MAXALIGN`).
pub(super) const ALIGNMENT: u64 = 8;

const LENGTH_BITS: u32 = 21;
const POSITION_BITS: u32 = 42;
const EXCLUSIVE: u64 = 1 << 63;

/// The longest record that a word can say, in bytes: just below 16 MB.
pub(super) const LENGTH_MAX: u64 = ((1 << LENGTH_BITS) - 1) * ALIGNMENT;

/// A slot on a cache line of its own. Each is written twice for each record.
#[derive(Debug)]
#[repr(align(64))]
struct Slot(AtomicU64);

/// A place in the log, in usable positions.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Reserved {
    /// Where the record begins.
    pub(super) start: u64,
    /// Where the next one will begin.
    pub(super) end: u64,
    /// Where the record before it begins. `None` for the first one after the start.
    pub(super) previous: Option<u64>,
}

/// The insert position, and one slot per inserter.
#[derive(Debug)]
pub(super) struct Reservations {
    /// The usable position from which the word counts. A run of the engine can write 32 TB.
    base: u64,
    word: AtomicU64,
    slots: Box<[Slot]>,
}

impl Reservations {
    /// A log that goes on at the usable position `base`, with this many inserters.
    pub(super) fn new(base: u64, inserters: usize) -> Self {
        let slots = (0..inserters).map(|_| Slot(AtomicU64::new(NONE))).collect();
        Self { base, word: AtomicU64::new(0), slots }
    }

    /// The end of what has been reserved.
    pub(super) fn end(&self) -> u64 {
        self.position_of(self.word.load(Ordering::SeqCst))
    }

    /// Whether the word is nearly full: this run has written almost 32 TB. No more room is given then, and what
    /// has room fits into what is left.
    pub(super) fn is_exhausted(&self) -> bool {
        const LIMIT: u64 = (1 << POSITION_BITS) * ALIGNMENT - (1 << 31);
        self.end() - self.base > LIMIT
    }

    /// Reserves a place of `length` bytes, which is announced in `slot` until [`Reservations::finish`].
    /// `None` if `is_current` returns false. No exclusive insertion can happen between `is_current` and the
    /// reservation, so its answer still holds at the reserved position.
    pub(super) fn reserve(
        &self,
        slot: usize,
        length: u64,
        is_current: impl Fn() -> bool,
    ) -> Option<Reserved> {
        let announced = &self.slots[slot].0;
        loop {
            let word = self.word.load(Ordering::SeqCst);
            if word & EXCLUSIVE != 0 {
                announced.store(NONE, Ordering::SeqCst);
                yield_now();
                continue;
            }
            announced.store(self.position_of(word), Ordering::SeqCst);
            if !is_current() {
                announced.store(NONE, Ordering::SeqCst);
                return None;
            }
            let next = next_word(word, length);
            if self.exchange(word, next) {
                return Some(self.reserved(word, next));
            }
        }
    }

    /// Announces that a record has been copied.
    pub(super) fn finish(&self, slot: usize) {
        // A thread that loads NONE also sees the copied bytes.
        self.slots[slot].0.store(NONE, Ordering::SeqCst);
    }

    /// Reserves a place after all other insertions have ended, and blocks new ones until
    /// [`Reservations::end_exclusive`].
    pub(super) fn reserve_exclusive(&self, length: u64) -> Reserved {
        let word = loop {
            let word = self.word.load(Ordering::SeqCst);
            if word & EXCLUSIVE == 0 && self.exchange(word, word | EXCLUSIVE) {
                break word;
            }
            yield_now();
        };
        while self.slots.iter().any(|slot| slot.0.load(Ordering::SeqCst) != NONE) {
            yield_now();
        }
        self.reserved(word, next_word(word, length))
    }

    /// Ends an exclusive insertion: the record has been copied, and others may go on behind it.
    pub(super) fn end_exclusive(&self, reserved: &Reserved) {
        let position = (reserved.end - self.base) / ALIGNMENT;
        let length = (reserved.end - reserved.start) / ALIGNMENT;
        self.word.store(position << LENGTH_BITS | length, Ordering::SeqCst);
    }

    /// Up to where all records are complete.
    pub(super) fn complete(&self) -> u64 {
        let end = self.end();
        let slots = self.slots.iter().map(|slot| slot.0.load(Ordering::SeqCst));
        slots.fold(end, u64::min)
    }

    fn exchange(&self, word: u64, next: u64) -> bool {
        self.word.compare_exchange(word, next, Ordering::SeqCst, Ordering::SeqCst).is_ok()
    }

    fn position_of(&self, word: u64) -> u64 {
        self.base + (word & !EXCLUSIVE) / (1 << LENGTH_BITS) * ALIGNMENT
    }

    fn reserved(&self, word: u64, next: u64) -> Reserved {
        let start = self.position_of(word);
        let previous = word & ((1 << LENGTH_BITS) - 1);
        let previous = (previous > 0).then(|| start - previous * ALIGNMENT);
        Reserved { start, end: self.position_of(next), previous }
    }
}

/// The word after a record of `length` bytes.
fn next_word(word: u64, length: u64) -> u64 {
    debug_assert!(length > 0 && length <= LENGTH_MAX, "a record of {length} bytes");
    let length = length.div_ceil(ALIGNMENT);
    ((word >> LENGTH_BITS) + length) << LENGTH_BITS | length
}

#[cfg(all(test, not(loom)))]
mod tests {
    use super::*;

    #[test]
    fn places_follow_each_other() {
        let log = Reservations::new(1 << 50, 2);
        let base = 1 << 50;
        let first = log.reserve(0, 25, || true).expect("current");
        assert_eq!(first, Reserved { start: base, end: base + 32, previous: None });
        let second = log.reserve(1, 24, || true).expect("current");
        assert_eq!(second, Reserved { start: base + 32, end: base + 56, previous: Some(base) });
        // The first one is still being written, and then the second one.
        assert_eq!(log.complete(), base);
        log.finish(0);
        assert_eq!(log.complete(), base + 32);
        log.finish(1);
        assert_eq!((log.complete(), log.end()), (base + 56, base + 56));
    }

    #[test]
    fn a_condition_that_fails_reserves_nothing() {
        let log = Reservations::new(0, 1);
        assert_eq!(log.reserve(0, 24, || false), None);
        assert_eq!((log.complete(), log.end()), (0, 0));
    }

    #[test]
    fn the_longest_record_fits_into_the_word() {
        let log = Reservations::new(0, 1);
        log.reserve(0, LENGTH_MAX, || true).expect("current");
        log.finish(0);
        let next = log.reserve(0, 8, || true).expect("current");
        assert_eq!((next.start, next.previous), (LENGTH_MAX, Some(0)));
    }

    #[test]
    fn an_exclusive_record_is_followed_by_others() {
        let log = Reservations::new(80, 1);
        let alone = log.reserve_exclusive(30);
        assert_eq!(alone, Reserved { start: 80, end: 112, previous: None });
        assert_eq!(log.end(), 80);
        log.end_exclusive(&alone);
        let next = log.reserve(0, 24, || true).expect("current");
        assert_eq!((next.start, next.previous), (112, Some(80)));
    }
}
