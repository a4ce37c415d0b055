//! Reads the fields of a record's data one after the other, as C structs have them.

use crate::ids::Lsn;
use crate::little_endian::{Number, read_at};

use super::locator::RelFileLocator;

/// A place in some bytes. Every method returns `None` if the bytes end before the field does.
#[derive(Clone, Copy, Debug)]
pub(super) struct Fields<'b> {
    bytes: &'b [u8],
    at: usize,
}

impl<'b> Fields<'b> {
    pub(super) fn of(bytes: &'b [u8]) -> Self {
        Self { bytes, at: 0 }
    }

    /// The next number, wherever it is.
    pub(super) fn take<T: Number>(&mut self) -> Option<T> {
        let value = read_at(self.bytes, self.at)?;
        self.at += size_of::<T>();
        Some(value)
    }

    pub(super) fn u8(&mut self) -> Option<u8> {
        self.take()
    }

    pub(super) fn u16(&mut self) -> Option<u16> {
        self.take()
    }

    pub(super) fn u32(&mut self) -> Option<u32> {
        self.take()
    }

    pub(super) fn i32(&mut self) -> Option<i32> {
        self.take()
    }

    pub(super) fn i64(&mut self) -> Option<i64> {
        self.take()
    }

    pub(super) fn lsn(&mut self) -> Option<Lsn> {
        self.take().map(Lsn)
    }

    pub(super) fn relation(&mut self) -> Option<RelFileLocator> {
        let relation = RelFileLocator::read(self.bytes, self.at)?;
        self.at += RelFileLocator::SIZE;
        Some(relation)
    }

    /// A count that the server stores as a signed number.
    pub(super) fn count(&mut self) -> Option<usize> {
        self.i32().and_then(|count| usize::try_from(count).ok())
    }

    /// Skips to an offset from the start.
    pub(super) fn skip_to(mut self, at: usize) -> Self {
        self.at = at;
        self
    }

    /// Skips the padding before a field with this alignment.
    pub(super) fn align(&mut self, alignment: usize) {
        self.at = self.at.next_multiple_of(alignment);
    }

    /// The next `length` bytes.
    pub(super) fn bytes(&mut self, length: usize) -> Option<&'b [u8]> {
        let end = self.at.checked_add(length)?;
        let bytes = self.bytes.get(self.at..end)?;
        self.at = end;
        Some(bytes)
    }

    /// `count` elements. Their number is bounded by the bytes that are left.
    pub(super) fn list<T>(
        &mut self,
        count: usize,
        mut element: impl FnMut(&mut Self) -> Option<T>,
    ) -> Option<Vec<T>> {
        // Every element takes at least one byte.
        if count > self.rest().len() {
            return None;
        }
        (0..count).map(|_| element(self)).collect()
    }

    /// The text before the next NUL, which is skipped.
    pub(super) fn c_text(&mut self) -> Option<&'b [u8]> {
        let rest = self.rest();
        let length = rest.iter().position(|&byte| byte == 0)?;
        self.at += length + 1;
        rest.get(..length)
    }

    /// All bytes that are left.
    pub(super) fn rest(&self) -> &'b [u8] {
        self.bytes.get(self.at..).unwrap_or_default()
    }
}
