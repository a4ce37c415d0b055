//! The hash in `pd_checksum`.
//!
//! A page is 64 rows of 32 little-endian words. 32 sums run down the columns, each in the manner
//! of FNV-1a (xor the word in, multiply by the FNV prime) with one change: the product is xored
//! with the sum shifted right by 17, so that high bits reach low ones. Two further rounds over
//! zeros let the last row spread. The sums are xored into one, the block number is xored in, and
//! the remainder by 65 535 plus one is the checksum: never 0.
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
//! The block number is the relation's, not the segment file's: the same bytes at another place
//! have another checksum, so a misdirected write is found.
//!
//! With 16 bits, about one in 65 535 of all damages goes unseen. That holds for single flipped bits
//! too, which this hash does not promise to find as a CRC does: a page of 65 536 bits has, on
//! average, one that can flip unseen.
//!
//! The loop is written once, for the compiler to vectorise; `multiversion` compiles it for each
//! target below and picks one at the first call. AVX-512 is not among them: the chains bound the
//! loop (each multiplication waits for the one before), so wider registers have little to give.
//!
//! Mirrors `pg_checksum_page` of PostgreSQL's `storage/checksum_impl.h`.

use crate::ids::{BLOCK_SIZE, BlockNo, PageBytes};

/// Sums that run side by side; fixed by the format.
const LANES: usize = 32;
/// Bytes that one round takes in.
const ROW: usize = LANES * 4;
/// The 32-bit FNV prime.
const PRIME: u32 = 16_777_619;
/// Where the sums start; fixed by the format.
const START: [u32; LANES] = [
    0x5B1F36E9, 0xB8525960, 0x02AB50AA, 0x1DE66D2A, 0x79FF467A, 0x9BB9F8A3, 0x217E7CD2, 0x83E13D2C,
    0xF8D4474F, 0xE39EB970, 0x42C6AE16, 0x993216FA, 0x7B093B5D, 0x98DAFF3C, 0xF718902A, 0x0B1C9CDB,
    0xE58F764B, 0x187636BC, 0x5D7B3BB1, 0xE73DE7DE, 0x92BEC979, 0xCCA6C0B2, 0x304A0979, 0x85AA43D4,
    0x783125BB, 0x6CA8EAA2, 0xE407EAC6, 0x4B5CFC3E, 0x9FBF8C76, 0x15CA20BE, 0xF2CA9FD3, 0x959BD756,
];
/// The word of row 0 that holds `pd_checksum` in its low half.
const CHECKSUM_WORD: usize = 2;

const _: () = assert!(BLOCK_SIZE.is_multiple_of(ROW));

/// The checksum that `page` ought to carry as block `block` of its fork: 1 to 65535.
///
/// What `pd_checksum` holds does not matter; compare with [`crate::PageHeader::checksum`].
/// Pages with `pd_upper` 0 carry none: ask [`crate::page::is_new`] first.
///
/// ```
/// let page = [0xFF; trunkline_format::BLOCK_SIZE];
/// assert_eq!(trunkline_format::page_checksum(&page, 0), 3612);
/// ```
pub fn page_checksum(page: &PageBytes, block: BlockNo) -> u16 {
    reduce(sum_dispatched(page), block)
}

/// [`page_checksum`] as any machine can run it: what the fast ones are tested against.
pub fn page_checksum_portable(page: &PageBytes, block: BlockNo) -> u16 {
    reduce(sum(page), block)
}

/// Mixes the block number in and folds the 32 bits to the 16 that are stored.
fn reduce(sum: u32, block: BlockNo) -> u16 {
    // At most 65534 + 1.
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
