//! Stores values within other values: the elements of arrays, the columns of composites and the
//! bounds of ranges, each with its header and alignment.
//!
//! Offsets count from the start of the value, as if a varlena header of four bytes preceded it, which
//! is what the readers of such values assume. For example, an `int8` at the start of an array's
//! elements is at offset 24, which is a multiple of 8.

use crate::align::Align;
use crate::deform::Attribute;
use crate::varlena::HEADER;

/// The longest payload that gets a header of one byte where short headers are used: 127 bytes
/// together.
const SHORT_MAX: usize = 126;

/// A value that is being built at the end of a buffer.
pub(crate) struct PartWriter<'a> {
    out: &'a mut Vec<u8>,
    start: usize,
}

impl<'a> PartWriter<'a> {
    /// Starts a value at the end of `out`.
    pub(crate) fn new(out: &'a mut Vec<u8>) -> Self {
        let start = out.len();
        Self { out, start }
    }

    /// The offset of the next byte, header included.
    fn offset(&self) -> usize {
        self.out.len() - self.start + HEADER
    }

    /// Pads with zeros to the next multiple of `align`.
    pub(crate) fn align(&mut self, align: Align) {
        let missing = align.up(self.offset()) - self.offset();
        self.out.resize(self.out.len() + missing, 0);
    }

    /// Appends bytes.
    pub(crate) fn bytes(&mut self, bytes: &[u8]) {
        self.out.extend_from_slice(bytes);
    }

    /// Appends a number.
    pub(crate) fn word(&mut self, word: u32) {
        self.bytes(&word.to_le_bytes());
    }

    /// Appends a part with its header and alignment. A varlena gets a four-byte header, unless
    /// `short` is set and it fits into a one-byte header, which isn't aligned.
    pub(crate) fn part(&mut self, attribute: Attribute, short: bool, payload: &[u8]) {
        match attribute.len {
            -1 if short && payload.len() <= SHORT_MAX => {
                self.bytes(&[(payload.len() as u8 + 1) << 1 | 1]);
                self.bytes(payload);
            }
            -1 => {
                self.align(attribute.align);
                self.word(((payload.len() + HEADER) as u32) << 2);
                self.bytes(payload);
            }
            -2 => {
                self.bytes(payload);
                self.bytes(&[0]);
            }
            _ => {
                self.align(attribute.align);
                self.bytes(payload);
            }
        }
    }
}
