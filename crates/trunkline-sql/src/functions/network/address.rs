//! An `inet` or `cidr`: its family, the bits of its mask, and its 4 or 16 bytes.

use crate::error::{SqlError, SqlState};

/// The families' numbers in storage (`PGSQL_AF_INET`, `PGSQL_AF_INET6`).
const V4: u8 = 2;
const V6: u8 = 3;

/// An address.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Address {
    pub(super) is_v6: bool,
    /// The bits of the mask.
    pub(super) bits: u8,
    pub(super) bytes: Vec<u8>,
}

impl Address {
    pub(super) fn parse(value: &[u8]) -> Result<Self, SqlError> {
        let damaged = |what| Err(SqlError::new(SqlState::DATA_CORRUPTED, what));
        let (is_v6, bits, bytes) = match value {
            [V4, bits, bytes @ ..] if bytes.len() == 4 => (false, *bits, bytes),
            [V6, bits, bytes @ ..] if bytes.len() == 16 => (true, *bits, bytes),
            _ => return damaged("inet: neither IPv4 nor IPv6"),
        };
        if usize::from(bits) > bytes.len() * 8 {
            return damaged("inet: more bits than the address has");
        }
        Ok(Self { is_v6, bits, bytes: bytes.to_vec() })
    }

    pub(super) fn store(&self) -> Vec<u8> {
        let mut out = vec![if self.is_v6 { V6 } else { V4 }, self.bits];
        out.extend_from_slice(&self.bytes);
        out
    }

    /// 4 or 6.
    pub(super) fn family(&self) -> i32 {
        if self.is_v6 { 6 } else { 4 }
    }

    /// The number of bits that the address has.
    pub(super) fn bits_max(&self) -> u8 {
        if self.is_v6 { 128 } else { 32 }
    }

    /// The byte of a mask of this many bits at a place.
    fn mask(bits: u8, place: usize) -> u8 {
        match usize::from(bits).saturating_sub(place * 8) {
            0 => 0,
            count @ 1..8 => 0xFF_u8 << (8 - count),
            _ => 0xFF,
        }
    }

    /// The address whose bytes are computed from those of this one and of its mask.
    pub(super) fn masked(&self, compute: fn(u8, u8) -> u8) -> Self {
        let mask = |place| Self::mask(self.bits, place);
        let bytes = self.bytes.iter().enumerate();
        let bytes = bytes.map(|(place, &byte)| compute(byte, mask(place))).collect();
        Self { bytes, ..*self }
    }

    /// The network of this many bits that the address is in.
    pub(super) fn network(&self, bits: u8) -> Self {
        Self { bits, ..self.clone() }.masked(|byte, mask| byte & mask)
    }

    /// How many of the first `most` bits are those of another address of the same family.
    pub(super) fn common_bits(&self, other: &Self, most: u8) -> u8 {
        let mut common = 0;
        for (one, other) in self.bytes.iter().zip(&other.bytes) {
            let same = (one ^ other).leading_zeros() as u8;
            common += same;
            if same < 8 {
                break;
            }
        }
        common.min(most)
    }

    /// Whether the first `bits` bits are those of another address of the same family.
    pub(super) fn agrees(&self, other: &Self, bits: u8) -> bool {
        self.common_bits(other, bits) == bits
    }
}
