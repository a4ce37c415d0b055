//! Parts of texts: lengths, positions, `substring`, `left`, `split_part`, `overlay`, `reverse`.
//!
//! Positions count characters, from 1. For example, `substring('äöü', 2, 1)` is `ö`, and
//! `substring('abc', 0, 2)` is `a`, because the part begins before the text does.

use arrow_array::ArrayRef;

use crate::error::{SqlError, SqlState};
use crate::functions::call::{Call, Kernel};
use crate::functions::rows::{Input, Reader, binary, each_row, ternary, unary};

/// The kernels of this module.
pub(in crate::functions) const PARTS: &[(&str, Kernel)] = &[
    ("textlen", |call| unary(call, |text: &str| Ok(length(text)))),
    ("bpcharlen", |call| unary(call, |text: &str| Ok(length(super::comparison::unpadded(text))))),
    ("textoctetlen", |call| unary(call, |text: &str| Ok(text.len() as i32))),
    ("bpcharoctetlen", |call| unary(call, |text: &str| Ok(text.len() as i32))),
    ("byteaoctetlen", |call| unary(call, |value: &[u8]| Ok(value.len() as i32))),
    ("text_substr", |call| {
        ternary(call, |text: &str, start: i32, length: i32| substring(text, start, Some(length)))
    }),
    ("text_substr_no_len", |call| {
        binary(call, |text: &str, start: i32| substring(text, start, None))
    }),
    ("bytea_substr", |call| {
        ternary(call, |value: &[u8], start: i32, length: i32| {
            byte_substring(value, start, Some(length))
        })
    }),
    ("bytea_substr_no_len", |call| {
        binary(call, |value: &[u8], start: i32| byte_substring(value, start, None))
    }),
    ("text_left", |call| binary(call, |text: &str, count: i32| Ok(split(text, count).0))),
    ("text_right", |call| {
        binary(call, |text: &str, count: i32| {
            Ok(match count.wrapping_neg() {
                0 => "",
                // The server negates the smallest number too, which leaves it as it is.
                i32::MIN => text,
                count => split(text, count).1,
            })
        })
    }),
    ("textpos", |call| {
        call.check_equality()?;
        binary(call, |text: &str, part: &str| {
            Ok(text.find(part).and_then(|at| text.get(..at)).map_or(0, |text| length(text) + 1))
        })
    }),
    ("byteapos", |call| {
        binary(call, |value: &[u8], part: &[u8]| {
            if part.is_empty() {
                return Ok(1);
            }
            let at = value.windows(part.len()).position(|found| found == part);
            Ok(at.map_or(0, |at| at as i32 + 1))
        })
    }),
    ("text_starts_with", |call| {
        call.check_equality()?;
        binary(call, |text: &str, part: &str| Ok(text.starts_with(part)))
    }),
    ("split_part", |call| {
        call.check_equality()?;
        ternary(call, |text: &str, separator: &str, field: i32| field_of(text, separator, field))
    }),
    ("text_reverse", |call| unary(call, |text: &str| Ok(text.chars().rev().collect::<String>()))),
    ("bytea_reverse", |call| {
        unary(call, |value: &[u8]| Ok(value.iter().rev().copied().collect::<Vec<u8>>()))
    }),
    ("textoverlay", |call| overlay(call, overlaid)),
    ("textoverlay_no_len", |call| {
        ternary(call, |text: &str, part: &str, start: i32| {
            overlaid(text, part, start, length(part))
        })
    }),
    ("byteaoverlay", |call| overlay(call, byte_overlaid)),
    ("byteaoverlay_no_len", |call| {
        ternary(call, |value: &[u8], part: &[u8], start: i32| {
            byte_overlaid(value, part, start, part.len() as i32)
        })
    }),
];

/// The number of characters. A text has at most 1 GiB, so this fits.
pub(super) fn length(text: &str) -> i32 {
    text.chars().count() as i32
}

/// Splits a text after `count` characters or, if `count` is negative, before the last `-count`.
fn split(text: &str, count: i32) -> (&str, &str) {
    let nth = |count: u32| count as usize;
    let at = if count >= 0 {
        text.char_indices().nth(nth(count.unsigned_abs())).map_or(text.len(), |(at, _)| at)
    } else {
        let before = nth(count.unsigned_abs()) - 1;
        text.char_indices().nth_back(before).map_or(0, |(at, _)| at)
    };
    text.split_at_checked(at).unwrap_or((text, ""))
}

/// The start of a part, from 0, and its length if that is limited. Both are at least 0.
fn range(start: i32, length: Option<i32>) -> Result<(i32, Option<i32>), SqlError> {
    let first = start.max(1) - 1;
    let Some(length) = length else { return Ok((first, None)) };
    if length < 0 {
        return Err(negative_length());
    }
    // If the end is not a number of 32 bits, it is beyond the end of any text.
    let end = start.checked_add(length);
    Ok((first, end.map(|end| end.saturating_sub(first).saturating_sub(1).max(0))))
}

fn negative_length() -> SqlError {
    SqlError::new(SqlState::SUBSTRING_ERROR, "negative substring length not allowed")
}

/// The part that begins at character `start`.
pub(super) fn substring(text: &str, start: i32, length: Option<i32>) -> Result<&str, SqlError> {
    let (first, length) = range(start, length)?;
    let (_, rest) = split(text, first);
    Ok(length.map_or(rest, |length| split(rest, length).0))
}

fn byte_substring(value: &[u8], start: i32, length: Option<i32>) -> Result<&[u8], SqlError> {
    let (first, length) = range(start, length)?;
    let rest = value.get(first as usize..).unwrap_or_default();
    let length = length.map_or(rest.len(), |length| rest.len().min(length as usize));
    Ok(rest.get(..length).unwrap_or_default())
}

/// Field `field` of the text, counted from 1 or, if it is negative, from the end.
fn field_of<'a>(text: &'a str, separator: &str, field: i32) -> Result<&'a str, SqlError> {
    if field == 0 {
        let message = "field position must not be zero";
        return Err(SqlError::new(SqlState::INVALID_PARAMETER_VALUE, message));
    }
    if separator.is_empty() {
        return Ok(if field.unsigned_abs() == 1 { text } else { "" });
    }
    let place = field.unsigned_abs() as usize - 1;
    let found = match field {
        1.. => text.split(separator).nth(place),
        // Separators don't overlap, and are found from the left.
        _ => {
            let count = text.split(separator).count();
            count.checked_sub(place + 1).and_then(|place| text.split(separator).nth(place))
        }
    };
    Ok(found.unwrap_or_default())
}

/// Calls `compute` with four arguments.
fn overlay<'a, T: Input<'a>, R: crate::functions::rows::Output>(
    call: &'a Call<'_>,
    compute: fn(T, T, i32, i32) -> Result<R, SqlError>,
) -> Result<ArrayRef, SqlError> {
    let (value, part) = (Reader::<T>::new(call, 0)?, Reader::<T>::new(call, 1)?);
    let (start, length) = (Reader::<i32>::new(call, 2)?, Reader::<i32>::new(call, 3)?);
    each_row(call.rows, |row| {
        match (value.get(row), part.get(row), start.get(row), length.get(row)) {
            (Some(value), Some(part), Some(start), Some(length)) => {
                compute(value, part, start, length).map(Some)
            }
            _ => Ok(None),
        }
    })
}

/// The first character after the part that an overlay replaces.
fn overlay_end(start: i32, length: i32) -> Result<i32, SqlError> {
    if start <= 0 {
        return Err(negative_length());
    }
    let overflow = SqlError::new(SqlState::NUMERIC_VALUE_OUT_OF_RANGE, "integer out of range");
    start.checked_add(length).ok_or(overflow)
}

fn overlaid(text: &str, part: &str, start: i32, length: i32) -> Result<String, SqlError> {
    let end = overlay_end(start, length)?;
    Ok([substring(text, 1, Some(start - 1))?, part, substring(text, end, None)?].concat())
}

fn byte_overlaid(value: &[u8], part: &[u8], start: i32, length: i32) -> Result<Vec<u8>, SqlError> {
    let end = overlay_end(start, length)?;
    let before = byte_substring(value, 1, Some(start - 1))?;
    Ok([before, part, byte_substring(value, end, None)?].concat())
}
