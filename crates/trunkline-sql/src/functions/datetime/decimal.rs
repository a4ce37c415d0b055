//! Numeric results of `extract`: integers with a decimal point.
//!
//! For example, 1234567 microseconds with a scale of 6 is the numeric 1.234567.

/// The decimal digits of a digit of a stored numeric.
const DIGITS: u32 = 4;
/// `NBASE`: one more than the largest digit of a stored numeric.
const BASE: u128 = 10_000;
/// Header of a numeric with a short header; the sign is the next bit.
const SHORT: u16 = 0x8000;
const NEGATIVE: u16 = 0x2000;
/// The payload of `Infinity`.
pub(super) const INFINITY: [u8; 2] = 0xD000_u16.to_le_bytes();
/// The payload of `-Infinity`.
pub(super) const MINUS_INFINITY: [u8; 2] = 0xF000_u16.to_le_bytes();

/// The payload of `number` divided by ten to the power of `scale`.
///
/// # Panics
/// If the scale is above 63, which a short header has no room for.
pub(super) fn decimal(number: i128, scale: u16) -> Vec<u8> {
    assert!(scale < 64, "scale {scale} doesn't fit into a short header");
    let scale_digits = u32::from(scale).div_ceil(DIGITS);
    let filled = scale_digits * DIGITS - u32::from(scale);
    // Digits of base 10,000 start at the decimal point.
    let (mut rest, mut first) = (number.unsigned_abs(), 10_u128.pow(filled));
    let mut digits = Vec::new();
    while rest > 0 {
        let lowest = rest % (BASE / first);
        digits.push((lowest * first) as u16);
        rest /= BASE / first;
        first = 1;
    }
    let weight = digits.len() as i32 - scale_digits as i32 - 1;
    let significant = digits.iter().position(|&digit| digit != 0).unwrap_or(digits.len());
    let digits = digits.split_off(significant);
    let weight = if digits.is_empty() { 0 } else { weight };
    let sign = if number < 0 { NEGATIVE } else { 0 };
    let header = SHORT | sign | scale << 7 | (weight as u16 & 0x7F);
    let digits = digits.iter().rev().flat_map(|digit| digit.to_le_bytes());
    header.to_le_bytes().into_iter().chain(digits).collect()
}
