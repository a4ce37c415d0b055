//! Padding and trimming: `lpad`, `rpad`, `btrim`, `repeat`.
//!
//! For example, `lpad('hi', 5, 'xy')` is `xyxhi`, and `btrim('xyhix', 'xy')` is `hi`.

use crate::error::{SqlError, SqlState};
use crate::functions::call::Kernel;
use crate::functions::rows::{binary, ternary, unary};

use super::parts::{length, substring};

/// The kernels of this module.
pub(in crate::functions) const PADDING: &[(&str, Kernel)] = &[
    ("lpad", |call| {
        ternary(call, |text: &str, width: i32, fill: &str| {
            let (text, padding) = padded(text, width, fill)?;
            Ok(padding + text)
        })
    }),
    ("rpad", |call| {
        ternary(call, |text: &str, width: i32, fill: &str| {
            let (text, padding) = padded(text, width, fill)?;
            Ok(text.to_owned() + &padding)
        })
    }),
    ("btrim", |call| {
        binary(call, |text: &str, set: &str| Ok(text.trim_matches(|letter| set.contains(letter))))
    }),
    ("ltrim", |call| {
        binary(call, |text: &str, set: &str| {
            Ok(text.trim_start_matches(|letter| set.contains(letter)))
        })
    }),
    ("rtrim", |call| {
        binary(call, |text: &str, set: &str| {
            Ok(text.trim_end_matches(|letter| set.contains(letter)))
        })
    }),
    ("btrim1", |call| unary(call, |text: &str| Ok(text.trim_matches(' ')))),
    ("ltrim1", |call| unary(call, |text: &str| Ok(text.trim_start_matches(' ')))),
    ("rtrim1", |call| unary(call, |text: &str| Ok(text.trim_end_matches(' ')))),
    ("byteatrim", |call| {
        binary(call, |value: &[u8], set: &[u8]| Ok(trimmed(value, set, true, true)))
    }),
    ("bytealtrim", |call| {
        binary(call, |value: &[u8], set: &[u8]| Ok(trimmed(value, set, true, false)))
    }),
    ("byteartrim", |call| {
        binary(call, |value: &[u8], set: &[u8]| Ok(trimmed(value, set, false, true)))
    }),
    ("repeat", |call| binary(call, repeated)),
];

/// `MaxAllocSize`: the most bytes that a value may have, with its header.
const VALUE_MAX: usize = 0x3FFF_FFFF;
/// The most bytes of a character.
const CHARACTER_MAX: usize = 4;
const HEADER: usize = 4;

fn too_large() -> SqlError {
    SqlError::new(SqlState::PROGRAM_LIMIT_EXCEEDED, "requested length too large")
}

/// The part of `text` that fits into `width` characters, and what fills the rest.
pub(super) fn padded<'a>(
    text: &'a str,
    width: i32,
    fill: &str,
) -> Result<(&'a str, String), SqlError> {
    let width = width.max(0);
    let shown = length(text).min(width);
    // Without a filling, the text is not padded.
    let width = if fill.is_empty() { shown } else { width };
    if width as usize * CHARACTER_MAX + HEADER > VALUE_MAX {
        return Err(too_large());
    }
    let padding = fill.chars().cycle().take((width - shown) as usize).collect();
    Ok((substring(text, 1, Some(shown))?, padding))
}

fn repeated(text: &str, count: i32) -> Result<String, SqlError> {
    let count = count.max(0) as usize;
    match text.len().checked_mul(count) {
        Some(bytes) if bytes + HEADER <= VALUE_MAX => Ok(text.repeat(count)),
        _ => Err(too_large()),
    }
}

/// Removes bytes of a set from the ends.
fn trimmed<'a>(value: &'a [u8], set: &[u8], left: bool, right: bool) -> &'a [u8] {
    let mut rest = value;
    while let [first, inner @ ..] = rest {
        if !left || !set.contains(first) {
            break;
        }
        rest = inner;
    }
    while let [inner @ .., last] = rest {
        if !right || !set.contains(last) {
            break;
        }
        rest = inner;
    }
    rest
}
