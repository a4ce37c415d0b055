//! Pages and random numbers for this crate's tests.
//! Seeded, so that a failure can be repeated.

use crate::ids::{BLOCK_SIZE, PageBytes};
use crate::tuple_builder::TupleBuilder;

/// Marsaglia's xorshift64: enough to shuffle bits, and a seed repeats it.
pub(crate) struct XorShift(pub(crate) u64);

impl XorShift {
    pub(crate) fn next(&mut self) -> u64 {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        self.0
    }

    /// Below `bound`.
    pub(crate) fn below(&mut self, bound: usize) -> usize {
        (self.next() % bound as u64) as usize
    }

    pub(crate) fn fill(&mut self, bytes: &mut [u8]) {
        for chunk in bytes.chunks_mut(8) {
            let random = self.next().to_le_bytes();
            chunk.copy_from_slice(&random[..chunk.len()]);
        }
    }
}

/// `bytes` over `page` from `at`.
pub(crate) fn put(page: &mut PageBytes, at: usize, bytes: &[u8]) {
    page[at..at + bytes.len()].copy_from_slice(bytes);
}

/// A page with nothing but a header.
pub(crate) fn header(flags: u16, lower: u16, upper: u16, special: u16) -> PageBytes {
    let mut page = [0; BLOCK_SIZE];
    put(&mut page, 10, &flags.to_le_bytes());
    put(&mut page, 12, &lower.to_le_bytes());
    put(&mut page, 14, &upper.to_le_bytes());
    put(&mut page, 16, &special.to_le_bytes());
    put(&mut page, 18, &0x2004_u16.to_le_bytes());
    page
}

/// The hexadecimal digits in `text`, spaces and line ends between them ignored.
pub(crate) fn from_hex(text: &str) -> Vec<u8> {
    let digits: Vec<u8> =
        text.chars().filter_map(|c| c.to_digit(16)).map(|digit| digit as u8).collect();
    digits.chunks(2).map(|pair| pair[0] << 4 | pair[1]).collect()
}

/// A row of 121 bytes with three integers and a text, of which 61 fit into a page.
pub(crate) fn row(number: i32) -> TupleBuilder {
    let mut row = TupleBuilder::new();
    row.int4(number).int4(1).int4(-number).bpchar("", 84);
    row
}
