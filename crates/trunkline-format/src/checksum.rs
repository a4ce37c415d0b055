//! **Page checksums**: computes the value of `pd_checksum`.
//!
//! A page is treated as 64 rows of 32 little-endian words. Each of 32 sums runs down one column
//! using FNV-1a (xor in the word, multiply by the FNV prime) with one change: the product is then
//! xored with the multiplicand shifted right by 17, so that high bits affect low bits. Two further
//! rounds over zeros mix in the last row. Finally the sums and the block number are xored together,
//! and reduced modulo 65 535. We add one, so the checksum is never 0.
//!
//! ```text
//!            word 0   word 1   word 2 …  word 31
//!   row 0      │        │     [checksum]    │      pd_checksum, the low half of word 2, counts as 0
//!   row 1      ▼        ▼        ▼          ▼
//!    ⋮       sum 0    sum 1    sum 2     sum 31    32 independent chains: four AVX2 registers
//!   row 63     └────────┴── xor ─┴──────────┘
//!                            │ xor block number
//!                            ▼ mod 65535, plus 1
//! ```
//!
//! The block number is relative to the relation, not to the segment file. Since the same bytes have
//! a different checksum in a different block, checksums also detect misdirected writes.
//!
//! A 16-bit checksum misses about one in 65 535 corruptions. That includes single-bit flips, which
//! this hash, unlike a CRC, does not guarantee to detect: a page has 65 536 bits, so on average one
//! of them can flip undetected.
//!
//! The loop is written once, in a form that the compiler can vectorise. `multiversion` compiles it
//! for each target below and picks one on the first call. We left out AVX-512, because each
//! multiplication must wait for the previous one in its chain, so wider registers gain little.
//!
//! Mirrors `pg_checksum_page` in PostgreSQL's `storage/checksum_impl.h`.

use crate::ids::{BLOCK_SIZE, BlockNo, PageBytes};

/// `N_SUMS`: the number of parallel sums; fixed by the on-disk format.
const LANES: usize = 32;
/// Bytes consumed per round.
const ROW: usize = LANES * 4;
/// The 32-bit FNV prime.
const PRIME: u32 = 16_777_619;
/// `checksumBaseOffsets`: the sums' initial values; fixed by the on-disk format.
const START: [u32; LANES] = [
    0x5B1F36E9, 0xB8525960, 0x02AB50AA, 0x1DE66D2A, 0x79FF467A, 0x9BB9F8A3, 0x217E7CD2, 0x83E13D2C,
    0xF8D4474F, 0xE39EB970, 0x42C6AE16, 0x993216FA, 0x7B093B5D, 0x98DAFF3C, 0xF718902A, 0x0B1C9CDB,
    0xE58F764B, 0x187636BC, 0x5D7B3BB1, 0xE73DE7DE, 0x92BEC979, 0xCCA6C0B2, 0x304A0979, 0x85AA43D4,
    0x783125BB, 0x6CA8EAA2, 0xE407EAC6, 0x4B5CFC3E, 0x9FBF8C76, 0x15CA20BE, 0xF2CA9FD3, 0x959BD756,
];
/// Index of the word in row 0 whose low half is `pd_checksum`.
const CHECKSUM_WORD: usize = 2;

const _: () = assert!(BLOCK_SIZE.is_multiple_of(ROW));

/// Computes the checksum, 1 to 65535, that `page` should have as block `block` of its fork.
///
/// The current `pd_checksum` is ignored; compare the result with [`crate::PageHeader::checksum`].
/// New pages (`pd_upper` 0) have no checksum, so call [`crate::page::is_new`] first.
///
/// ```
/// let page = [0xFF; trunkline_format::BLOCK_SIZE];
/// assert_eq!(trunkline_format::page_checksum(&page, 0), 3612);
/// ```
pub fn page_checksum(page: &PageBytes, block: BlockNo) -> u16 {
    reduce(sum_dispatched(page), block)
}

/// Portable [`page_checksum`]: the baseline that the vectorised versions are tested against.
pub fn page_checksum_portable(page: &PageBytes, block: BlockNo) -> u16 {
    reduce(sum(page), block)
}

/// Mixes in the block number and reduces the 32-bit sum to the stored 16 bits.
fn reduce(sum: u32, block: BlockNo) -> u16 {
    // At most 65534 + 1, so it fits.
    ((sum ^ block) % 65_535 + 1) as u16
}

#[multiversion::multiversion(targets("x86_64+avx2", "aarch64+neon"))]
fn sum_dispatched(page: &PageBytes) -> u32 {
    sum(page)
}

#[inline(always)]
fn sum(page: &PageBytes) -> u32 {
    let mut sums = START;
    let (rows, _) = page.as_chunks::<ROW>();
    let mut rows = rows.iter();
    if let Some(row) = rows.next() {
        let mut words = words(row);
        words[CHECKSUM_WORD] &= 0xFFFF_0000;
        mix(&mut sums, &words);
    }
    for row in rows {
        mix(&mut sums, &words(row));
    }
    mix(&mut sums, &[0; LANES]);
    mix(&mut sums, &[0; LANES]);
    sums.iter().fold(0, |all, sum| all ^ sum)
}

#[inline(always)]
fn words(row: &[u8; ROW]) -> [u32; LANES] {
    let mut words = [0; LANES];
    for (word, bytes) in words.iter_mut().zip(row.as_chunks::<4>().0) {
        *word = u32::from_le_bytes(*bytes);
    }
    words
}

#[inline(always)]
fn mix(sums: &mut [u32; LANES], words: &[u32; LANES]) {
    for (sum, word) in sums.iter_mut().zip(words) {
        let mixed = *sum ^ word;
        *sum = mixed.wrapping_mul(PRIME) ^ (mixed >> 17);
    }
}

#[cfg(test)]
mod tests;
