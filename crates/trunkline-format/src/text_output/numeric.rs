//! `numeric` and `money`: decimal numbers.
//!
//! Mirrors `numeric_out` of PostgreSQL's `utils/adt/numeric.c`, and `cash_out` of
//! `utils/adt/cash.c`.

use super::digits;
use super::error::ValueError;
use crate::numeric::{Finite, Numeric};

/// Decimal digits per base-10,000 digit.
const BASE_DIGITS: i32 = 4;
/// `NBASE`: one more than the largest stored digit.
const BASE: u16 = 10_000;

const fn malformed(what: &'static str) -> ValueError {
    ValueError::Malformed { type_name: "numeric", what }
}

/// A numeric, as `numeric_out`. At most 131 072 digits before the decimal point and 16 383 after
/// it.
pub(super) fn numeric(value: &[u8], out: &mut Vec<u8>) -> Result<(), ValueError> {
    let short = || ValueError::Truncated { type_name: "numeric", found: value.len() };
    let Finite { negative, scale, weight, digits } =
        match Numeric::parse(value).ok_or_else(short)? {
            Numeric::Finite(number) => number,
            Numeric::Special(header) => {
                out.extend_from_slice(match header {
                    0xC000 => b"NaN",
                    0xD000 => b"Infinity",
                    0xF000 => b"-Infinity",
                    _ => return Err(malformed("an unknown mark")),
                });
                return Ok(());
            }
        };
    let (digits, odd) = digits.as_chunks::<2>();
    if !odd.is_empty() {
        return Err(malformed("half a digit at its end"));
    }
    let digit = |at: i32| -> Result<u16, ValueError> {
        let bytes = usize::try_from(at).ok().and_then(|at| digits.get(at));
        let digit = bytes.map_or(0, |&bytes| u16::from_le_bytes(bytes));
        if digit < BASE { Ok(digit) } else { Err(malformed("a digit above 9999")) }
    };
    if negative {
        out.push(b'-');
    }
    if weight < 0 {
        out.push(b'0');
    } else {
        digits::unsigned(u64::from(digit(0)?), out);
        for at in 1..=weight {
            out.extend_from_slice(&digits::four(u32::from(digit(at)?)));
        }
    }
    if scale > 0 {
        out.push(b'.');
        let end = out.len() + scale as usize;
        let mut at = weight + 1;
        while out.len() < end {
            out.extend_from_slice(&digits::four(u32::from(digit(at)?)));
            at += 1;
        }
        out.truncate(end);
    }
    // Digits beyond the display scale aren't printed, but must still be valid.
    let shown = weight + 1 + (scale + BASE_DIGITS - 1) / BASE_DIGITS;
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
