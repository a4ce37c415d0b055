//! **Numerics** as they are stored: a header, then digits of base 10,000 (`NBASE`).
//!
//! ```text
//!   u16  0xC000 NaN, 0xD000 infinity, 0xF000 minus infinity
//!        10.. ....: short   sign 0x2000, scale << 7, weight in the lower 7 bits, signed
//!        0?.. ....: long    sign 0x4000, scale; then an i16 weight
//!   then digits of base 10 000, the first worth 10 000 to the power of the weight
//! ```
//! For example, the number 123456.789 has the digits 12, 3456 and 7890, and is stored with a scale
//! of 3 and a weight of 1. Leading and trailing zeros are not stored, so `1.00` and `1` differ only
//! in their scale. Since PostgreSQL 9.1, there is also a short header, which packs the scale and
//! the weight into two bytes. This is enough for most values.
//!
//! Mirrors `NumericData` of PostgreSQL's `utils/adt/numeric.c`.

use crate::little_endian::read_at;

/// A numeric with its header decoded.
pub(crate) enum Numeric<'a> {
    /// NaN or an infinity. We keep the whole header word here, because only its first two bits are
    /// known to be 11. In a damaged value, the remaining bits can be anything.
    Special(u16),
    /// A number.
    Finite(Finite<'a>),
}

/// A number, neither NaN nor infinite.
pub(crate) struct Finite<'a> {
    pub(crate) negative: bool,
    /// `dscale`: the number of decimals to print.
    pub(crate) scale: i32,
    /// The power of 10,000 that the first digit is multiplied by.
    pub(crate) weight: i32,
    /// The digits, two bytes each. A damaged value may end in the middle of a digit.
    pub(crate) digits: &'a [u8],
}

impl<'a> Numeric<'a> {
    /// Decodes the header of a payload; `None` if the payload is too short for it.
    pub(crate) fn parse(payload: &'a [u8]) -> Option<Self> {
        let header = read_at::<u16>(payload, 0)?;
        Some(Self::Finite(match header & 0xC000 {
            0xC000 => return Some(Self::Special(header)),
            0x8000 => Finite {
                negative: header & 0x2000 != 0,
                scale: i32::from(header >> 7 & 0x3F),
                weight: i32::from(header & 0x3F) - i32::from(header & 0x40),
                digits: payload.get(2..)?,
            },
            sign => Finite {
                negative: sign != 0,
                scale: i32::from(header & 0x3FFF),
                weight: read_at::<i16>(payload, 2)?.into(),
                digits: payload.get(4..)?,
            },
        }))
    }
}
