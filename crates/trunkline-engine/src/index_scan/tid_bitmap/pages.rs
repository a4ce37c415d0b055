//! The pages of a bitmap in the order of their blocks, for a scan of the table.

use trunkline_format::BlockNo;

use super::rows::{CHUNK_BLOCKS, CHUNK_WORDS, Rows, WORDS};

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
    Exact(RowNumbers),
    /// Any of the page's rows.
    Lossy,
}

/// Line pointers, in ascending order.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct RowNumbers {
    words: [u64; WORDS],
    at: usize,
}

impl Iterator for RowNumbers {
    type Item = u16;

    fn next(&mut self) -> Option<u16> {
        loop {
            let word = self.words.get_mut(self.at)?;
            if *word == 0 {
                self.at += 1;
                continue;
            }
            let bit = word.trailing_zeros();
            *word &= *word - 1;
            return Some((self.at as u32 * 64 + bit) as u16 + 1);
        }
    }

    fn size_hint(&self) -> (usize, Option<usize>) {
        let count = self.words.iter().map(|word| word.count_ones() as usize).sum();
        (count, Some(count))
    }
}

impl ExactSizeIterator for RowNumbers {}

/// Returns the pages in the order of their blocks.
#[derive(Debug)]
pub struct BitmapPages {
    pub(super) exact: Vec<(BlockNo, Rows)>,
    pub(super) lossy: Vec<(u32, [u64; CHUNK_WORDS])>,
    /// The next exact page.
    pub(super) exact_at: usize,
    /// The next lossy page: its chunk, and from which block of it to go on.
    pub(super) lossy_at: (usize, u32),
}

impl BitmapPages {
    /// Whether all pages have been returned.
    pub(crate) fn is_empty(&self) -> bool {
        self.exact_at >= self.exact.len() && self.next_lossy().is_none()
    }

    /// The block of the exact page that comes after `ahead` other exact pages, and its first row.
    pub(crate) fn upcoming_exact(&self, ahead: usize) -> Option<(BlockNo, u16)> {
        let (block, rows) = self.exact.get(self.exact_at + ahead)?;
        Some((*block, RowNumbers { words: rows.without_recheck(), at: 0 }.next().unwrap_or(0)))
    }

    /// The next lossy block: its chunk, its place there, and its number.
    fn next_lossy(&self) -> Option<(usize, u32, BlockNo)> {
        let (first, mut from) = self.lossy_at;
        for (chunk, (number, words)) in self.lossy.iter().enumerate().skip(first) {
            let first_set = |(word, bits): (u32, &u64)| {
                let bits = if word == from / 64 { bits & (u64::MAX << (from % 64)) } else { *bits };
                (bits != 0).then(|| word * 64 + bits.trailing_zeros())
            };
            let words = (0..).zip(words).skip(from as usize / 64);
            if let Some(at) = words.map(first_set).find_map(|at| at) {
                return Some((chunk, at, number * CHUNK_BLOCKS + at));
            }
            from = 0;
        }
        None
    }
}

impl Iterator for BitmapPages {
    type Item = BitmapPage;

    fn next(&mut self) -> Option<BitmapPage> {
        let lossy = self.next_lossy();
        let exact = self.exact.get(self.exact_at);
        if let Some((block, rows)) = exact
            && lossy.is_none_or(|(.., lossy)| *block < lossy)
        {
            self.exact_at += 1;
            let numbers = RowNumbers { words: rows.without_recheck(), at: 0 };
            let recheck = rows.needs_recheck();
            return Some(BitmapPage { block: *block, rows: BitmapRows::Exact(numbers), recheck });
        }
        let (chunk, at, block) = lossy?;
        self.lossy_at = (chunk, at + 1);
        Some(BitmapPage { block, rows: BitmapRows::Lossy, recheck: true })
    }
}
