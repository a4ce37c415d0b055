//! A cursor for reading a value that consists of several fields.
//!
//! The fields are aligned relative to the start of the value, including a four-byte varlena header.
//! The header stored on disk may be only one byte long, but the offsets that we use for alignment
//! are always computed as if it had four bytes. If a field extends past the end of the value, we
//! return an error that contains the name of the type.

use super::error::ValueError;
use crate::align::Align;
use crate::deform::Attribute;
use crate::little_endian::Number;
use crate::varlena::{HEADER, Varlena, stored_length};

/// The value's bytes and the current position.
#[derive(Debug, Clone)]
pub(crate) struct Reader<'a> {
    type_name: &'static str,
    bytes: &'a [u8],
    at: usize,
    /// Size of the header before `bytes`. We need it because alignment is relative to the start of
    /// the header.
    before: usize,
}

impl<'a> Reader<'a> {
    /// Reads the payload of a varlena.
    pub(crate) fn new(type_name: &'static str, payload: &'a [u8]) -> Self {
        Self { type_name, bytes: payload, at: 0, before: HEADER }
    }

    /// Reads bytes that have no header, so alignment is relative to their own start.
    pub(crate) fn aligned(type_name: &'static str, bytes: &'a [u8]) -> Self {
        Self { type_name, bytes, at: 0, before: 0 }
    }

    /// An error that states the type and `what` is wrong.
    pub(crate) fn error(&self, what: &'static str) -> ValueError {
        ValueError::Malformed { type_name: self.type_name, what }
    }

    fn short(&self) -> ValueError {
        ValueError::Truncated { type_name: self.type_name, found: self.bytes.len() }
    }

    /// Moves to `offset`, which includes the header.
    pub(crate) fn seek(&mut self, offset: usize) -> Result<(), ValueError> {
        let at = offset.checked_sub(self.before).filter(|&at| at <= self.bytes.len());
        self.at = at.ok_or_else(|| self.short())?;
        Ok(())
    }

    /// The current offset, header included.
    pub(crate) fn offset(&self) -> usize {
        self.at + self.before
    }

    /// Skips to the next multiple of `align`.
    pub(crate) fn align(&mut self, align: Align) {
        self.at = align.up(self.at + self.before) - self.before;
    }

    /// The bytes not yet read.
    pub(crate) fn rest(&self) -> &'a [u8] {
        self.bytes.get(self.at..).unwrap_or_default()
    }

    /// The next `count` bytes.
    pub(crate) fn take(&mut self, count: usize) -> Result<&'a [u8], ValueError> {
        let bytes = self.rest().get(..count).ok_or_else(|| self.short())?;
        self.at += count;
        Ok(bytes)
    }

    /// The next number.
    pub(crate) fn read<T: Number>(&mut self) -> Result<T, ValueError> {
        let number = T::first_of(self.rest()).ok_or_else(|| self.short())?;
        self.at += size_of::<T>();
        Ok(number)
    }

    /// Reads the next element and returns its payload. If the element is compressed, it is
    /// decompressed into `room`. If `always` is true, every element is aligned
    /// (`att_align_nominal`). Otherwise, a varlena with a one-byte header is not aligned, as in a
    /// heap tuple (`att_align_pointer`).
    pub(crate) fn part<'r>(
        &mut self,
        attribute: Attribute,
        always: bool,
        room: &'r mut Vec<u8>,
    ) -> Result<&'r [u8], ValueError>
    where
        'a: 'r,
    {
        if always || attribute.len != -1 || self.rest().first() == Some(&0) {
            self.align(attribute.align);
        }
        match attribute.len {
            -1 => {
                let length = stored_length(self.rest())?;
                Ok(Varlena::parse(self.take(length)?)?.payload(room)?)
            }
            -2 => {
                let length = self.rest().iter().position(|&byte| byte == 0);
                let text = self.take(length.ok_or_else(|| self.short())?)?;
                self.at += 1;
                Ok(text)
            }
            len => self.take(usize::try_from(len).map_err(|_| self.error("a negative length"))?),
        }
    }

    /// Fails if any bytes are left.
    pub(crate) fn end(&self) -> Result<(), ValueError> {
        let rest = self.rest();
        if rest.is_empty() { Ok(()) } else { Err(self.error("bytes after its end")) }
    }
}
