//! TID bitmap: the rows that one or more index scans have found, by block (`tidbitmap.c`).
//!
//! ```text
//!   exact page     block 7: rows 1, 5, 9
//!   lossy page     block 8: all rows, each of which must be checked; one bit in a chunk of 256 blocks
//! ```
//! A bitmap has a limit in bytes. If it gets too large, pages become lossy, until about half of the
//! memory is free again. The limit holds for the bitmap's own tables, not for the sorted list of
//! blocks that the scan makes of it (4 bytes a page). If a table is so large that even the lossy chunks
//! exceed the limit, the bitmap grows beyond it, as in PostgreSQL.

use trunkline_aio::facade::hash::Map;
use trunkline_format::{BlockNo, Tid};

/// `MaxHeapTuplesPerPage`: rows have numbers up to this.
pub(super) const ROWS_MAX: u16 = 291;

const WORDS: usize = (ROWS_MAX as usize).div_ceil(64);

/// `PAGES_PER_CHUNK`: the blocks of a lossy chunk.
const CHUNK_BLOCKS: u32 = 256;

const CHUNK_WORDS: usize = CHUNK_BLOCKS as usize / 64;

/// Bytes of a page or chunk in a hash table: key, words, control byte. A table is at most 7/8 full,
/// and doubles when it grows.
const ENTRY_BYTES: usize = 2 * (8 + 8 * WORDS + 1);

/// The fewest entries that a bitmap may have, whatever its limit.
const ENTRIES_MIN: usize = 16;

/// The rows of an exact page.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
struct Rows {
    words: [u64; WORDS],
    recheck: bool,
}

/// A set of rows, in which some pages may be lossy.
#[derive(Debug, Clone)]
pub struct TidBitmap {
    exact: Map<BlockNo, Rows>,
    lossy: Map<BlockNo, [u64; CHUNK_WORDS]>,
    entries_max: usize,
}

/// A page of a bitmap.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct BitmapPage {
    /// The block.
    pub block: BlockNo,
    /// Its rows.
    pub rows: BitmapRows,
    /// The rows must be checked. Always true for a lossy page.
    pub recheck: bool,
}

/// The rows of a page.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum BitmapRows {
    /// These line pointers, in ascending order.
    Exact(Vec<u16>),
    /// Any of the page's rows.
    Lossy,
}

impl TidBitmap {
    /// An empty bitmap that may use `bytes` of memory (`work_mem`).
    pub fn new(bytes: usize) -> Self {
        let entries_max = (bytes / ENTRY_BYTES).max(ENTRIES_MIN);
        Self { exact: Map::default(), lossy: Map::default(), entries_max }
    }

    /// Adds a row. Returns false if no row can have this line pointer, in which case the index entry
    /// that it comes from is damaged.
    #[must_use]
    pub fn add(&mut self, tid: Tid, recheck: bool) -> bool {
        if !(1..=ROWS_MAX).contains(&tid.item) {
            return false;
        }
        if !self.is_lossy(tid.block) {
            let rows = self.exact.entry(tid.block).or_default();
            let bit = usize::from(tid.item - 1);
            if let Some(word) = rows.words.get_mut(bit / 64) {
                *word |= 1 << (bit % 64);
            }
            rows.recheck |= recheck;
            self.shrink();
        }
        true
    }

    /// Adds the rows of another bitmap (`OR`).
    pub fn unite(&mut self, other: &Self) {
        for (chunk, words) in &other.lossy {
            let first = chunk * CHUNK_BLOCKS;
            for block in blocks_of(words).map(|at| first + at) {
                self.make_lossy(block);
            }
        }
        for (block, rows) in &other.exact {
            if self.is_lossy(*block) {
                continue;
            }
            let mine = self.exact.entry(*block).or_default();
            for (word, other) in mine.words.iter_mut().zip(rows.words) {
                *word |= other;
            }
            mine.recheck |= rows.recheck;
            self.shrink();
        }
    }

    /// Removes the rows that another bitmap doesn't have (`AND`). Where one of the bitmaps is lossy,
    /// the rows of the other one remain, and must be checked.
    pub fn intersect(&mut self, other: &Self) {
        self.exact.retain(|block, rows| {
            if other.is_lossy(*block) {
                rows.recheck = true;
                return true;
            }
            let Some(theirs) = other.exact.get(block) else { return false };
            for (word, other) in rows.words.iter_mut().zip(theirs.words) {
                *word &= other;
            }
            rows.recheck |= theirs.recheck;
            rows.words != [0; WORDS]
        });
        let mut exact = Vec::new();
        self.lossy.retain(|chunk, words| {
            let first = chunk * CHUNK_BLOCKS;
            for at in blocks_of(&words.clone()) {
                let block = first + at;
                if other.is_lossy(block) {
                    continue;
                }
                if let Some(word) = words.get_mut(at as usize / 64) {
                    *word &= !(1 << (at % 64));
                }
                if let Some(rows) = other.exact.get(&block) {
                    exact.push((block, Rows { recheck: true, ..*rows }));
                }
            }
            *words != [0; CHUNK_WORDS]
        });
        self.exact.extend(exact);
        self.shrink();
    }

    /// Whether there are no rows.
    pub fn is_empty(&self) -> bool {
        self.exact.is_empty() && self.lossy.is_empty()
    }

    /// The numbers of exact and lossy pages.
    pub fn pages(&self) -> (u64, u64) {
        let lossy = self.lossy.values().flatten().map(|word| u64::from(word.count_ones())).sum();
        (self.exact.len() as u64, lossy)
    }

    /// The pages in the order of their blocks.
    pub fn into_pages(self) -> impl Iterator<Item = BitmapPage> + Send {
        let lossy = self.lossy.iter().flat_map(|(chunk, words)| {
            let first = chunk * CHUNK_BLOCKS;
            blocks_of(words).map(move |at| first + at)
        });
        let mut blocks: Vec<BlockNo> = self.exact.keys().copied().chain(lossy).collect();
        blocks.sort_unstable();
        blocks.into_iter().map(move |block| match self.exact.get(&block) {
            Some(rows) => {
                let items = (1..=ROWS_MAX).filter(|item| {
                    let bit = usize::from(item - 1);
                    rows.words.get(bit / 64).is_some_and(|word| word >> (bit % 64) & 1 == 1)
                });
                let rows_of_page = BitmapRows::Exact(items.collect());
                BitmapPage { block, rows: rows_of_page, recheck: rows.recheck }
            }
            None => BitmapPage { block, rows: BitmapRows::Lossy, recheck: true },
        })
    }

    fn is_lossy(&self, block: BlockNo) -> bool {
        let Some(words) = self.lossy.get(&(block / CHUNK_BLOCKS)) else { return false };
        let at = block % CHUNK_BLOCKS;
        words.get(at as usize / 64).is_some_and(|word| word >> (at % 64) & 1 == 1)
    }

    fn make_lossy(&mut self, block: BlockNo) {
        self.exact.remove(&block);
        let words = self.lossy.entry(block / CHUNK_BLOCKS).or_default();
        let at = block % CHUNK_BLOCKS;
        if let Some(word) = words.get_mut(at as usize / 64) {
            *word |= 1 << (at % 64);
        }
    }

    /// Makes pages lossy if there are too many entries. Pages that share a chunk go first, since a
    /// chunk needs as much memory as a page.
    fn shrink(&mut self) {
        if self.exact.len() + self.lossy.len() <= self.entries_max {
            return;
        }
        let mut blocks: Vec<BlockNo> = self.exact.keys().copied().collect();
        blocks.sort_unstable();
        let mut chunks: Vec<&[BlockNo]> =
            blocks.chunk_by(|one, other| one / CHUNK_BLOCKS == other / CHUNK_BLOCKS).collect();
        chunks.sort_by_key(|chunk| std::cmp::Reverse(chunk.len()));
        for chunk in chunks {
            if self.exact.len() + self.lossy.len() <= self.entries_max / 2 {
                return;
            }
            for &block in chunk {
                self.make_lossy(block);
            }
        }
        // Everything is lossy. Don't try again for every row.
        let entries = self.exact.len() + self.lossy.len();
        if entries > self.entries_max / 2 {
            self.entries_max = entries.saturating_mul(2);
        }
    }
}

/// The blocks of a chunk, counted from its first one.
fn blocks_of(words: &[u64; CHUNK_WORDS]) -> impl Iterator<Item = u32> + use<> {
    let words = *words;
    (0..CHUNK_BLOCKS).filter(move |at| {
        words.get(*at as usize / 64).is_some_and(|word| word >> (at % 64) & 1 == 1)
    })
}

#[cfg(test)]
mod tests;
