//! The rows of one page of a bitmap, as bits.

use crate::heap::HEAP_TUPLES_MAX;

/// Rows have numbers up to this.
pub(in crate::index_scan) const ROWS_MAX: u16 = HEAP_TUPLES_MAX;

pub(super) const WORDS: usize = (ROWS_MAX as usize).div_ceil(64);

/// `PAGES_PER_CHUNK`: the blocks of a lossy chunk.
pub(super) const CHUNK_BLOCKS: u32 = 256;

pub(super) const CHUNK_WORDS: usize = CHUNK_BLOCKS as usize / 64;

/// The rows of an exact page. The last bit, which no row has, says that they must be checked.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub(super) struct Rows([u64; WORDS]);

const RECHECK: u64 = 1 << 63;

const _: () = assert!((ROWS_MAX as usize) < 64 * WORDS);

impl Rows {
    pub(super) fn add(&mut self, item: u16) {
        let bit = usize::from(item.saturating_sub(1));
        if let Some(word) = self.0.get_mut(bit / 64) {
            *word |= 1 << (bit % 64);
        }
    }

    pub(super) fn needs_recheck(&self) -> bool {
        self.0.last().is_some_and(|word| word & RECHECK != 0)
    }

    pub(super) fn set_recheck(&mut self) {
        if let Some(word) = self.0.last_mut() {
            *word |= RECHECK;
        }
    }

    /// Rows of either set. They must be checked if those of one set must be.
    pub(super) fn unite(&mut self, other: &Self) {
        for (word, other) in self.0.iter_mut().zip(other.0) {
            *word |= other;
        }
    }

    /// Rows of both sets. They must be checked if those of one set must be.
    pub(super) fn intersect(&mut self, other: &Self) {
        let recheck = self.needs_recheck() || other.needs_recheck();
        for (word, other) in self.0.iter_mut().zip(other.0) {
            *word &= other;
        }
        if recheck {
            self.set_recheck();
        }
    }

    pub(super) fn is_empty(&self) -> bool {
        self.without_recheck() == [0; WORDS]
    }

    pub(super) fn without_recheck(&self) -> [u64; WORDS] {
        let mut words = self.0;
        if let Some(word) = words.last_mut() {
            *word &= !RECHECK;
        }
        words
    }
}
