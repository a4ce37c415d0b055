//! **Page checksums**: computes the value of `pd_checksum`.
//!
//! The page is treated as 64 rows of 32 little-endian words, and there is one sum for each of the
//! 32 columns. Each sum is computed with FNV-1a (xor in the next word, then multiply by the FNV
//! prime), with one change: the product is then xored with the multiplicand shifted right by 17, so
//! that high bits also affect low bits. After that, we do two more rounds with zeros, so that the
//! last row is mixed in properly. Finally, all sums and the block number are xored together, and
//! the result is reduced modulo 65535. We add one, so that the checksum is never 0.
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
//! The block number is counted from the start of the relation, not from the start of the segment
//! file. Since it is included in the checksum, the same page has a different checksum in a
//! different block. Checksums therefore also detect pages that were written to the wrong block.
//!
//! A 16-bit checksum fails to detect about one in 65535 corruptions. Unlike a CRC, this algorithm
//! does not even guarantee that it will detect a single flipped bit. Since a page has 65536 bits,
//! there is on average one bit in each page that could flip without being detected.
//!
//! The loop is written in a form that the compiler can vectorise. `multiversion` compiles it once
//! for each of the targets listed below, and chooses the best version for the CPU on the first
//! call. We left out AVX-512, because each multiplication depends on the result of the previous
//! one, so wider registers would gain us little.
//!
//! Mirrors `pg_checksum_page` in PostgreSQL's `storage/checksum_impl.h`.

use crate::ids::{BLOCK_SIZE, BlockNo, PageBytes};
use crate::page::is_new;

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

/// Computes the checksum that `page` should have if it is block `block` of its fork. The result is
/// between 1 and 65535.
///
/// The checksum currently stored in `pd_checksum` is ignored. To verify a page, compare the result
/// with [`crate::PageHeader::checksum`]. A new page (with a `pd_upper` of 0) doesn't have a
/// checksum, so the caller should check [`crate::page::is_new`] first.
///
/// ```
/// let page = [0xFF; trunkline_format::BLOCK_SIZE];
/// assert_eq!(trunkline_format::page_checksum(&page, 0), 3612);
/// ```
pub fn page_checksum(page: &PageBytes, block: BlockNo) -> u16 {
    reduce(sum_dispatched(page), block)
}

/// Sets the checksum of a page that is about to be written (`PageSetChecksumInplace`). A new page has no
/// header yet, so it isn't changed. If data checksums are disabled, the field is set to 0, so that no stale
/// checksum is ever written.
pub fn set_checksum(page: &mut PageBytes, block: BlockNo, checksums: bool) {
    if is_new(page) {
        return;
    }
    let checksum = if checksums { page_checksum(page, block) } else { 0 };
    page[8..10].copy_from_slice(&checksum.to_le_bytes());
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
