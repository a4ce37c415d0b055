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
#[derive(Debug, Clone, Copy)]
pub enum Numeric<'a> {
    /// NaN or an infinity. We keep the whole header word here, because only its first two bits are
    /// known to be 11. In a damaged value, the remaining bits can be anything.
    Special(u16),
    /// A number.
    Finite(Finite<'a>),
}

/// A number, neither NaN nor infinite.
#[derive(Debug, Clone, Copy)]
pub struct Finite<'a> {
    /// Whether there is a minus sign.
    pub negative: bool,
    /// `dscale`: the number of decimals to print.
    pub scale: i32,
    /// The power of 10,000 that the first digit is multiplied by.
    pub weight: i32,
    /// The digits, two bytes each. A damaged value may end in the middle of a digit.
    pub digits: &'a [u8],
}

impl<'a> Numeric<'a> {
    /// Decodes the header of a payload; `None` if the payload is too short for it.
    pub fn parse(payload: &'a [u8]) -> Option<Self> {
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

/// `NUMERIC_DSCALE_MAX`: the most decimals that a stored number can have.
const SCALE_MAX: i32 = 0x3FFF;
/// The most decimals, and the weights, that the short header has room for.
const SHORT_SCALE_MAX: i32 = 0x3F;
const SHORT_WEIGHTS: std::ops::RangeInclusive<i32> = -64..=63;

/// A number that doesn't fit into the stored format.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct NumericOverflow;

/// Appends the payload of a finite number, like `make_result`. `digits` are of base 10,000, and the
/// first of them is multiplied by 10,000 to the power of `weight`. Zeros at either end are dropped.
///
/// # Errors
/// The number is too large, or has too many decimals.
pub fn encode(
    negative: bool,
    weight: i32,
    scale: i32,
    digits: &[u16],
    out: &mut Vec<u8>,
) -> Result<(), NumericOverflow> {
    let leading = digits.iter().take_while(|&&digit| digit == 0).count();
    let digits = digits.get(leading..).unwrap_or_default();
    let trailing = digits.iter().rev().take_while(|&&digit| digit == 0).count();
    let digits = digits.get(..digits.len() - trailing).unwrap_or_default();
    let weight = match digits.is_empty() {
        true => 0,
        false => i32::try_from(leading)
            .ok()
            .and_then(|leading| weight.checked_sub(leading))
            .ok_or(NumericOverflow)?,
    };
    let negative = negative && !digits.is_empty();
    if scale <= SHORT_SCALE_MAX && SHORT_WEIGHTS.contains(&weight) {
        let sign = if negative { 0x2000 } else { 0 };
        let header = 0x8000 | sign | (scale as u16) << 7 | (weight as u16 & 0x7F);
        out.extend_from_slice(&header.to_le_bytes());
    } else {
        let weight = i16::try_from(weight).map_err(|_| NumericOverflow)?;
        if scale > SCALE_MAX {
            return Err(NumericOverflow);
        }
        let sign = if negative { 0x4000 } else { 0 };
        out.extend_from_slice(&(sign | scale as u16).to_le_bytes());
        out.extend_from_slice(&weight.to_le_bytes());
    }
    out.extend(digits.iter().flat_map(|digit| digit.to_le_bytes()));
    Ok(())
}

/// The header of NaN.
pub const NAN: u16 = 0xC000;
/// The header of infinity.
pub const INFINITY: u16 = 0xD000;
/// The header of minus infinity.
pub const MINUS_INFINITY: u16 = 0xF000;
