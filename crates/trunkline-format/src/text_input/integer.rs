//! `int2`, `int4`, `int8`, and the unsigned `oid`, `xid`, `cid` and `xid8`.
//!
//! Since PostgreSQL 16, integers can be written in hexadecimal, octal and binary, and with
//! underscores between digits: `1_000`, `0xFF`, `0o17`, `0b101`. The unsigned types are read by C's
//! `strtoul`, which also accepts negative numbers.
//!
//! Mirrors PostgreSQL's `utils/adt/numutils.c`.

use super::c_text::{self, first, skip_space, trim_space};
use super::error::InputError;

/// The first version with hexadecimal digits and underscores.
const PREFIXES_SINCE: u32 = 16;

/// Why a text is not an integer.
enum Failure {
    Syntax,
    Range,
}

/// The base, and the text after its prefix.
fn base_of(text: &str, major: u32) -> (u64, &str) {
    let bases = [("0x", 16), ("0o", 8), ("0b", 2)];
    let prefixed = bases.into_iter().find_map(|(prefix, base)| {
        let (start, rest) = text.split_at_checked(2)?;
        start.eq_ignore_ascii_case(prefix).then_some((base, rest))
    });
    prefixed.filter(|_| major >= PREFIXES_SINCE).unwrap_or((10, text))
}

/// Parses an integer whose magnitude may be up to `end` if it is negative, otherwise one less. A
/// server notices that a number is too large while it reads the digits, before it sees what follows
/// them.
fn parse(text: &str, end: u64, major: u32) -> Result<i64, Failure> {
    let text = skip_space(text);
    let negative = first(text) == b'-';
    let (base, mut digits) = base_of(text.strip_prefix(['+', '-']).unwrap_or(text), major);
    let underscores = major >= PREFIXES_SINCE;
    let mut magnitude: u64 = 0;
    let mut any = false;
    loop {
        let byte = first(digits);
        if byte == b'_' && underscores && (any || base != 10) {
            digits = digits.get(1..).unwrap_or_default();
            if !char::from(first(digits)).is_digit(base as u32) {
                return Err(Failure::Syntax);
            }
            continue;
        }
        let Some(digit) = char::from(byte).to_digit(base as u32) else { break };
        let most = if underscores { end / base } else { (end - u64::from(digit)) / base };
        if magnitude > most {
            return Err(Failure::Range);
        }
        magnitude = magnitude.saturating_mul(base).saturating_add(u64::from(digit));
        any = true;
        digits = digits.get(1..).unwrap_or_default();
    }
    if !any || !skip_space(digits).is_empty() {
        return Err(Failure::Syntax);
    }
    match negative {
        true if magnitude <= end => Ok((magnitude as i64).wrapping_neg()),
        false if magnitude < end => Ok(magnitude as i64),
        _ => Err(Failure::Range),
    }
}

fn explain(failure: Failure, type_name: &str, text: &str) -> InputError {
    match failure {
        Failure::Syntax => InputError::syntax(type_name, text),
        Failure::Range => InputError::out_of_range(type_name, text),
    }
}

/// An `int2`.
pub(super) fn int2(text: &str, major: u32) -> Result<i16, InputError> {
    parse(text, 1 << 15, major)
        .map(|number| number as i16)
        .map_err(|failure| explain(failure, "smallint", text))
}

/// An `int4`.
pub(super) fn int4(text: &str, major: u32) -> Result<i32, InputError> {
    parse(text, 1 << 31, major)
        .map(|number| number as i32)
        .map_err(|failure| explain(failure, "integer", text))
}

/// An `int8`.
pub(super) fn int8(text: &str, major: u32) -> Result<i64, InputError> {
    parse(text, 1 << 63, major).map_err(|failure| explain(failure, "bigint", text))
}

/// An unsigned number of four bytes at the start of `text`, and the text after it.
pub(super) fn oid_prefix<'a>(
    text: &'a str,
    type_name: &str,
    major: u32,
) -> Result<(u32, &'a str), InputError> {
    let base = if major >= PREFIXES_SINCE { 0 } else { 10 };
    let number = c_text::unsigned(text, base).ok_or_else(|| InputError::syntax(type_name, text))?;
    // -1 is the same as 4294967295, because the server converts the number to 32 bits either way.
    let value = number.value as u32;
    let fits = u64::from(value) == number.value || i64::from(value as i32) as u64 == number.value;
    if number.overflow || !fits {
        return Err(InputError::out_of_range(type_name, text));
    }
    Ok((value, number.rest))
}

/// An `oid`, `xid` or `cid`. Before PostgreSQL 16, `xid` and `cid` ignored what follows the number.
pub(super) fn u32_type(text: &str, type_name: &str, major: u32) -> Result<u32, InputError> {
    if major < PREFIXES_SINCE && type_name != "oid" {
        return Ok(c_text::unsigned(text, 0).map_or(0, |number| number.value as u32));
    }
    let (value, rest) = oid_prefix(text, type_name, major)?;
    match trim_space(rest).is_empty() {
        true => Ok(value),
        false => Err(InputError::syntax(type_name, text)),
    }
}

/// An `xid8` or `oid8`.
pub(super) fn u64_type(text: &str, type_name: &str, major: u32) -> Result<u64, InputError> {
    let number = c_text::unsigned(text, 0);
    if major < PREFIXES_SINCE {
        return Ok(number.map_or(0, |number| number.value));
    }
    let number = number.ok_or_else(|| InputError::syntax(type_name, text))?;
    if number.overflow {
        return Err(InputError::out_of_range(type_name, text));
    }
    match trim_space(number.rest).is_empty() {
        true => Ok(number.value),
        false => Err(InputError::syntax(type_name, text)),
    }
}
