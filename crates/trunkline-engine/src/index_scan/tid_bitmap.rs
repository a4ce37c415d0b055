//! TID bitmap: the rows that one or more index scans have found, by block (`tidbitmap.c`).
//!
//! ```text
//!   exact page     block 7: rows 1, 5, 9
//!   lossy page     block 8: all rows, each of which must be checked; one bit in a chunk of 256 blocks
//! ```
//! A bitmap has a limit in bytes. If it gets too large, pages become lossy, until about half of the
//! memory is free again.
//!
//! **What the limit covers**: the two hash tables, whatever their fill level. Not covered are the lists
//! of exact pages that the choice of lossy pages sorts (at most 20 bytes for each exact page, so a fifth
//! of the limit), the sorted list of all pages that a scan makes of the tables (up to twice the
//! limit while both exist), and the old half of a table while it is copied to one of twice its size.
//! If a table is so large that even the lossy chunks exceed
//! the limit, the bitmap grows beyond it, as in PostgreSQL.

mod pages;
mod rows;

pub use pages::{BitmapPage, BitmapPages, BitmapRows};
pub(super) use rows::ROWS_MAX;

use trunkline_aio::facade::hash::Map;
use trunkline_format::{BlockNo, Tid};

use rows::{CHUNK_BLOCKS, CHUNK_WORDS, Rows};

/// Bytes of an exact page in a hash table, with its control byte. A chunk needs less.
const BUCKET_BYTES: usize = size_of::<(BlockNo, Rows)>() + 1;

/// The most bytes per entry: a table is at most 7/8 full, and doubles when it grows.
const ENTRY_BYTES: usize = BUCKET_BYTES * 2 * 8 / 7;

const _: () = assert!(size_of::<(BlockNo, [u64; CHUNK_WORDS])>() < BUCKET_BYTES);

/// The fewest entries that a bitmap may have, whatever its limit.
const ENTRIES_MIN: usize = 16;

/// A set of rows, in which some pages may be lossy.
#[derive(Debug, Clone)]
pub struct TidBitmap {
    exact: Map<BlockNo, Rows>,
    lossy: Map<BlockNo, [u64; CHUNK_WORDS]>,
    entries_max: usize,
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
            rows.add(tid.item);
            if recheck {
                rows.set_recheck();
            }
            self.shrink();
        }
        true
    }

    /// Adds the rows of another bitmap (`OR`).
    pub fn unite(&mut self, other: &Self) {
        for (chunk, words) in &other.lossy {
            for block in blocks_of(*chunk, *words) {
                self.make_lossy(block);
            }
            self.shrink();
        }
        for (block, rows) in &other.exact {
            if self.is_lossy(*block) {
                continue;
            }
            self.exact.entry(*block).or_default().unite(rows);
            self.shrink();
        }
    }

    /// Removes the rows that another bitmap doesn't have (`AND`). Where one of the bitmaps is lossy,
    /// the rows of the other one remain, and must be checked.
    pub fn intersect(&mut self, other: &Self) {
        self.exact.retain(|block, rows| {
            if other.is_lossy(*block) {
                rows.set_recheck();
                return true;
            }
            let Some(theirs) = other.exact.get(block) else { return false };
            rows.intersect(theirs);
            !rows.is_empty()
        });
        let Self { exact, lossy, .. } = self;
        lossy.retain(|chunk, words| {
            for block in blocks_of(*chunk, *words) {
                let at = block % CHUNK_BLOCKS;
                if other.is_lossy(block) {
                    continue;
                }
                if let Some(word) = words.get_mut(at as usize / 64) {
                    *word &= !(1 << (at % 64));
                }
                if let Some(rows) = other.exact.get(&block) {
                    let mut rows = *rows;
                    rows.set_recheck();
                    exact.insert(block, rows);
                }
            }
            *words != [0; CHUNK_WORDS]
        });
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
    pub fn into_pages(self) -> BitmapPages {
        let mut exact: Vec<(BlockNo, Rows)> = self.exact.into_iter().collect();
        exact.sort_unstable_by_key(|(block, _)| *block);
        let mut lossy: Vec<(u32, [u64; CHUNK_WORDS])> = self.lossy.into_iter().collect();
        lossy.sort_unstable_by_key(|(chunk, _)| *chunk);
        BitmapPages { exact, lossy, exact_at: 0, lossy_at: (0, 0) }
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
        self.make_pages_lossy();
        // A table keeps its memory when entries are removed, but the other one may need it.
        self.exact.shrink_to_fit();
    }

    fn make_pages_lossy(&mut self) {
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

/// The blocks of a chunk.
fn blocks_of(chunk: u32, words: [u64; CHUNK_WORDS]) -> impl Iterator<Item = BlockNo> {
    let is_set =
        move |at: &u32| words.get(*at as usize / 64).is_some_and(|word| word >> (at % 64) & 1 == 1);
    (0..CHUNK_BLOCKS).filter(is_set).map(move |at| chunk * CHUNK_BLOCKS + at)
}

#[cfg(test)]
mod tests;
