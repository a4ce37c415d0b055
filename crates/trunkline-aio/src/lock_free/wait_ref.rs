//! Wait references: a session uses one to refer to an I/O it wants to wait for. This is our
//! equivalent of PostgreSQL's `PgAioWaitRef`.
//!
//! While a buffer is being read in, its descriptor contains the wait reference of the read, so that
//! other sessions can wait for it. Holding a reference does not pin the handle. As soon as the I/O
//! is complete, the completing thread frees the handle, which makes the reference stale. So if a
//! waiter finds that its reference is stale, it knows that the I/O is complete.

use crate::limits::HANDLES_MAX;

/// Identifies one I/O in an instance: a handle index and a generation.
///
/// A reference can be copied as often as you like. When the I/O completes, the handle moves on to
/// its next generation, which makes all copies stale. Waiting on a stale reference returns
/// immediately. You must obtain the reference before submitting the I/O, because after that the
/// handle may already be in use for a different I/O.
///
/// Generations count from 1 to 2^48 - 1 and then wrap around, so that a reference fits into 64
/// bits. If a reference were kept until its handle had been used another 2^48 times, it would refer
/// to the wrong I/O. However, even with a million I/Os per second on that one handle, this would
/// take nine years.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct WaitRef {
    index: u32,
    generation: u64,
}

/// Number of bits of a generation.
const GENERATION_BITS: u32 = 48;
/// The last generation; generation 1 follows it.
pub(crate) const GENERATION_MAX: u64 = (1 << GENERATION_BITS) - 1;

const _: () = assert!(HANDLES_MAX <= 1 << (64 - GENERATION_BITS), "an index must fit the rest");

impl WaitRef {
    pub(crate) const fn new(index: u32, generation: u64) -> Self {
        Self { index, generation }
    }

    pub(crate) fn index(self) -> u32 {
        self.index
    }

    /// Index of the handle (`pg_aios.io_id`).
    pub fn io_id(self) -> u32 {
        self.index
    }

    /// Generation of the handle (`pg_aios.io_generation`), 1 to 2^48 - 1.
    pub fn generation(self) -> u64 {
        self.generation
    }

    /// Packs the reference into one word without losing information. The word is never 0, so an
    /// atomic can use 0 to mean that there is no reference.
    pub fn to_bits(self) -> u64 {
        u64::from(self.index) << GENERATION_BITS | self.generation
    }

    /// Unpacks a word from [`WaitRef::to_bits`]; `None` for 0.
    ///
    /// If the word didn't come from `to_bits`, the result may be stale or may refer to some
    /// unrelated I/O. Waiting for it panics if the instance doesn't have a handle with that index.
    pub fn from_bits(bits: u64) -> Option<Self> {
        let io =
            Self { index: (bits >> GENERATION_BITS) as u32, generation: bits & GENERATION_MAX };
        (io.generation != 0).then_some(io)
    }
}

#[cfg(all(test, not(loom)))]
mod tests {
    use super::*;

    #[test]
    fn a_word_is_never_zero_and_loses_nothing() {
        for index in [0, 1, HANDLES_MAX as u32 - 1] {
            for generation in [1, 2, GENERATION_MAX] {
                let io = WaitRef::new(index, generation);
                assert_ne!(io.to_bits(), 0);
                assert_eq!(WaitRef::from_bits(io.to_bits()), Some(io));
            }
        }
        assert_eq!(WaitRef::from_bits(0), None);
        assert_eq!(WaitRef::from_bits(5 << GENERATION_BITS), None, "no handle is in generation 0");
    }
}
