//! Pages and random numbers for this crate's tests. The generator is seeded, so that failures can
//! be reproduced.

use crate::ids::{BLOCK_SIZE, PageBytes};
use crate::tuple_builder::TupleBuilder;

/// Marsaglia's xorshift64. Its quality is sufficient for flipping bits, and a seed reproduces a
/// run.
pub(crate) struct XorShift(pub(crate) u64);

impl XorShift {
    pub(crate) fn next(&mut self) -> u64 {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        self.0
    }

    /// A random number below `bound`.
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

/// Overwrites `page` with `bytes`, starting at `at`.
pub(crate) fn put(page: &mut PageBytes, at: usize, bytes: &[u8]) {
    page[at..at + bytes.len()].copy_from_slice(bytes);
}

/// A page that contains only a header.
pub(crate) fn header(flags: u16, lower: u16, upper: u16, special: u16) -> PageBytes {
    let mut page = [0; BLOCK_SIZE];
    put(&mut page, 10, &flags.to_le_bytes());
    put(&mut page, 12, &lower.to_le_bytes());
    put(&mut page, 14, &upper.to_le_bytes());
    put(&mut page, 16, &special.to_le_bytes());
    put(&mut page, 18, &0x2004_u16.to_le_bytes());
    page
}

/// Decodes the hexadecimal digits in `text`, ignoring spaces and line breaks.
pub(crate) fn from_hex(text: &str) -> Vec<u8> {
    let digits: Vec<u8> =
        text.chars().filter_map(|c| c.to_digit(16)).map(|digit| digit as u8).collect();
    digits.chunks(2).map(|pair| pair[0] << 4 | pair[1]).collect()
}

/// A 121-byte tuple with three integers and a text; 61 of them fit on a page.
pub(crate) fn row(number: i32) -> TupleBuilder {
    let mut row = TupleBuilder::new();
    row.int4(number).int4(1).int4(-number).bpchar("", 84);
    row
}
