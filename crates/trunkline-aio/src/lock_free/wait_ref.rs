//! Wait references: how a session refers to an I/O it wants to wait for. The counterpart of
//! PostgreSQL's `PgAioWaitRef`.
//!
//! While a read fills a buffer, the buffer descriptor stores the read's wait reference, so that
//! other sessions can wait for it. A reference does not pin the handle. The completing thread frees
//! the handle as soon as the I/O is complete, which makes the reference stale. To a waiter, a stale
//! reference means that the I/O is complete.

use crate::limits::HANDLES_MAX;

/// Identifies one I/O in an instance: a handle index and a generation.
///
/// Any number of copies may exist. When the I/O completes, the handle enters its next generation
/// and every copy becomes stale; waiting on a stale reference returns immediately. A reference must
/// be obtained before the I/O is submitted, because afterwards the handle may already be in use for
/// another I/O.
///
/// Generations count from 1 to 2^48 - 1 and then start over, so that a reference fits into 64 bits.
/// If a reference were kept while its handle is used 2^48 more times, it would point to a later
/// I/O. Even at a million I/Os per second on one handle, that takes nine years.
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

    /// Packs the reference losslessly into one word, which is never 0 and can therefore be kept in
    /// an atomic.
    pub fn to_bits(self) -> u64 {
        u64::from(self.index) << GENERATION_BITS | self.generation
    }

    /// Unpacks a word from [`WaitRef::to_bits`]; `None` for 0.
    ///
    /// A word from any other source yields a stale reference or a reference to an arbitrary I/O.
    /// Waiting panics if the instance doesn't have a handle with that index.
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
