//! References to an I/O that never keep its handle from being reused.
//! The handle is freed by whoever completes it; a reference only notices that it is gone.

use crate::limits::HANDLES_MAX;

/// A handle index and a generation: names one I/O of one instance, for ever.
///
/// Any number of copies may exist. When the I/O is complete the handle goes into its next
/// generation, and every copy of the old reference is simply stale. It can be taken only before
/// the I/O is submitted: afterwards the handle may already serve somebody else.
///
/// Generations count from 1 to 2^48 - 1 and then start again, so that a reference packs into 64
/// bits without loss. One that is kept while its handle carries 2^48 more I/Os would name a later
/// one; at a million a second on one and the same handle that takes nine years.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct WaitRef {
    pub(crate) index: u32,
    pub(crate) generation: u64,
}

/// Bits of a generation.
const GENERATION_BITS: u32 = 48;
/// The last generation of a handle before it starts again at 1.
pub(crate) const GENERATION_MAX: u64 = (1 << GENERATION_BITS) - 1;

const _: () = assert!(HANDLES_MAX <= 1 << (64 - GENERATION_BITS), "an index must fit the rest");

impl WaitRef {
    /// Index of the handle (`pg_aios.io_id`).
    pub fn io_id(self) -> u32 {
        self.index
    }

    /// Generation of the handle (`pg_aios.io_generation`), 1 to 2^48 - 1.
    pub fn generation(self) -> u64 {
        self.generation
    }

    /// The reference as one word, never 0, for whoever keeps it in an atomic. What wraps is the
    /// generation, see above; the packing itself loses nothing.
    pub fn to_bits(self) -> u64 {
        u64::from(self.index) << GENERATION_BITS | self.generation
    }

    /// The reference that [`WaitRef::to_bits`] made the word of; `None` for 0.
    ///
    /// Words of another origin give references that are stale, or to an I/O that nobody meant, or
    /// to a handle that the instance does not have: waiting for such a one panics.
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
                let io = WaitRef { index, generation };
                assert_ne!(io.to_bits(), 0);
                assert_eq!(WaitRef::from_bits(io.to_bits()), Some(io));
            }
        }
        assert_eq!(WaitRef::from_bits(0), None);
        assert_eq!(WaitRef::from_bits(5 << GENERATION_BITS), None, "no handle is in generation 0");
    }
}
