//! `numeric` and `money`: decimal numbers.
//!
//! A numeric is a sequence of base-10,000 digits (`NBASE`), the weight of the first digit, and a
//! display scale. 123456.789 with scale 3 has the digits 12, 3456, 7890 and weight 1. Leading and
//! trailing zero digits aren't stored, so only the scale distinguishes `1.00` from `1`.
//!
//! The short header (PostgreSQL 9.1) packs scale and weight into two bytes, which is enough for
//! most values.
//!
//! Mirrors `NumericData` of PostgreSQL's `utils/adt/numeric.c`, and `cash_out` of
//! `utils/adt/cash.c`.

use super::digits;
use super::error::ValueError;
use crate::little_endian::u16_at;

const TYPE: &str = "numeric";
/// Decimal digits per base-10,000 digit.
const BASE_DIGITS: i32 = 4;
/// `NBASE`: one more than the largest stored digit.
const BASE: u16 = 10_000;

/// The decoded header, short or long.
struct Header {
    negative: bool,
    /// `dscale`: the number of decimals to print.
    scale: i32,
    /// The power of [`BASE`] that the first digit is multiplied by.
    weight: i32,
    /// Header length in bytes.
    size: usize,
}

impl Header {
    fn parse(first: u16, value: &[u8]) -> Option<Self> {
        if first & 0x8000 == 0 {
            let weight = i32::from(u16_at(value, 2)? as i16);
            let negative = first & 0x4000 != 0;
            return Some(Self { negative, scale: i32::from(first & 0x3FFF), weight, size: 4 });
        }
        let magnitude = i32::from(first & 0x3F);
        let weight = if first & 0x40 == 0 { magnitude } else { magnitude - 64 };
        let scale = i32::from(first >> 7 & 0x3F);
        Some(Self { negative: first & 0x2000 != 0, scale, weight, size: 2 })
    }
}

/// A numeric, as `numeric_out`. At most 131 072 digits before the decimal point and 16 383 after
/// it.
pub(super) fn numeric(value: &[u8], out: &mut Vec<u8>) -> Result<(), ValueError> {
    let short = || ValueError::Truncated { type_name: TYPE, found: value.len() };
    let first = u16_at(value, 0).ok_or_else(short)?;
    if first & 0xC000 == 0xC000 {
        out.extend_from_slice(match first {
            0xC000 => b"NaN",
            0xD000 => b"Infinity",
            0xF000 => b"-Infinity",
            _ => return Err(ValueError::Malformed { type_name: TYPE, what: "an unknown mark" }),
        });
        return Ok(());
    }
    let header = Header::parse(first, value).ok_or_else(short)?;
    let (digits, odd) = value.get(header.size..).unwrap_or_default().as_chunks::<2>();
    if !odd.is_empty() {
        return Err(ValueError::Malformed { type_name: TYPE, what: "half a digit at its end" });
    }
    let digit = |at: i32| -> Result<u16, ValueError> {
        let bytes = usize::try_from(at).ok().and_then(|at| digits.get(at));
        let digit = bytes.map_or(0, |&bytes| u16::from_le_bytes(bytes));
        let what = "a digit above 9999";
        if digit < BASE { Ok(digit) } else { Err(ValueError::Malformed { type_name: TYPE, what }) }
    };
    if header.negative {
        out.push(b'-');
    }
    if header.weight < 0 {
        out.push(b'0');
    } else {
        digits::unsigned(u64::from(digit(0)?), out);
        for at in 1..=header.weight {
            out.extend_from_slice(&digits::four(u32::from(digit(at)?)));
        }
    }
    if header.scale > 0 {
        out.push(b'.');
        let end = out.len() + header.scale as usize;
        let mut at = header.weight + 1;
        while out.len() < end {
            out.extend_from_slice(&digits::four(u32::from(digit(at)?)));
            at += 1;
        }
        out.truncate(end);
    }
    // Digits beyond the display scale aren't printed, but must still be valid.
    let shown = header.weight + 1 + (header.scale + BASE_DIGITS - 1) / BASE_DIGITS;
    for at in shown..i32::try_from(digits.len()).unwrap_or(i32::MAX) {
        digit(at)?;
    }
    Ok(())
}

/// An amount of cents as `cash_out` prints it in the locales C and en_US.
pub(super) fn money(cents: i64, out: &mut Vec<u8>) {
    let amount = cents.unsigned_abs();
    out.extend_from_slice(if cents < 0 { b"-$" } else { b"$" });
    let start = out.len();
    digits::unsigned(amount / 100, out);
    let mut comma = out.len();
    while comma > start + 3 {
        comma -= 3;
        out.insert(comma, b',');
    }
    out.push(b'.');
    digits::two((amount % 100) as u32, out);
}
