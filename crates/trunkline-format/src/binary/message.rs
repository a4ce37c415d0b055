//! Reads the fields of a value in the binary format.

use crate::text_input::error::InputError;

/// What is left of a message.
#[derive(Debug, Clone, Copy)]
pub(super) struct Message<'a>(&'a [u8]);

impl<'a> Message<'a> {
    /// A message.
    pub(super) fn new(bytes: &'a [u8]) -> Self {
        Self(bytes)
    }

    /// How many bytes are left.
    pub(super) fn left(&self) -> usize {
        self.0.len()
    }

    /// The next `count` bytes.
    pub(super) fn take(&mut self, count: usize) -> Result<&'a [u8], InputError> {
        let (bytes, rest) = self
            .0
            .split_at_checked(count)
            .ok_or_else(|| InputError::new("08P01", "insufficient data left in message"))?;
        self.0 = rest;
        Ok(bytes)
    }

    /// All bytes that are left.
    pub(super) fn rest(&mut self) -> &'a [u8] {
        std::mem::take(&mut self.0)
    }

    /// The next byte.
    pub(super) fn byte(&mut self) -> Result<u8, InputError> {
        let (&byte, rest) = self
            .0
            .split_first()
            .ok_or_else(|| InputError::new("08P01", "no data left in message"))?;
        self.0 = rest;
        Ok(byte)
    }

    /// The next `N` bytes, each of which the server asks for by itself.
    pub(super) fn octets<const N: usize>(&mut self) -> Result<[u8; N], InputError> {
        let mut octets = [0; N];
        for octet in &mut octets {
            *octet = self.byte()?;
        }
        Ok(octets)
    }

    /// The next number, least significant byte first.
    pub(super) fn number<const N: usize>(&mut self) -> Result<[u8; N], InputError> {
        let mut bytes = [0; N];
        for (place, byte) in bytes.iter_mut().rev().zip(self.take(N)?) {
            *place = *byte;
        }
        Ok(bytes)
    }

    /// The next number of four bytes.
    pub(super) fn int(&mut self) -> Result<i32, InputError> {
        self.number().map(i32::from_le_bytes)
    }

    /// The next `count` numbers of eight bytes.
    pub(super) fn doubles(&mut self, count: usize) -> Result<Vec<f64>, InputError> {
        let bytes = self.take(count.saturating_mul(8))?;
        Ok(bytes.as_chunks::<8>().0.iter().map(|&bytes| f64::from_be_bytes(bytes)).collect())
    }
}
