//! `LIKE` and `ILIKE`.
//!
//! `%` stands for any number of characters, `_` for one, and a backslash takes the next character
//! literally. Other escape characters, and none, are rewritten to backslashes by `like_escape` first.
//! For example, `'a_b' LIKE 'a#_b' ESCAPE '#'` is a match with `a\_b`.

use arrow_array::ArrayRef;

use super::letters::lower;
use crate::error::{SqlError, SqlState};
use crate::functions::call::{Call, Kernel};
use crate::functions::rows::binary;

/// The kernels of this module.
pub(in crate::functions) const LIKE: &[(&str, Kernel)] = &[
    ("textlike", |call| like(call, true)),
    ("textnlike", |call| like(call, false)),
    ("namelike", |call| like(call, true)),
    ("namenlike", |call| like(call, false)),
    ("texticlike", |call| like_any_case(call, true)),
    ("texticnlike", |call| like_any_case(call, false)),
    ("nameiclike", |call| like_any_case(call, true)),
    ("nameicnlike", |call| like_any_case(call, false)),
    ("bytealike", |call| bytea_like(call, true)),
    ("byteanlike", |call| bytea_like(call, false)),
    ("like_escape", |call| {
        binary(call, |pattern: &str, escape: &str| {
            check_escape(escape.chars().count())?;
            let escaped = with_backslashes(pattern.as_bytes(), escape.as_bytes(), character);
            String::from_utf8(escaped).map_err(|_| SqlError::internal("a character in two parts"))
        })
    }),
    ("like_escape_bytea", |call| {
        binary(call, |pattern: &[u8], escape: &[u8]| {
            check_escape(escape.len())?;
            Ok(with_backslashes(pattern, escape, byte))
        })
    }),
];

fn like(call: &Call<'_>, wanted: bool) -> Result<ArrayRef, SqlError> {
    call.check_equality()?;
    binary(call, |text: &str, pattern: &str| {
        matches(text.as_bytes(), pattern.as_bytes(), character).map(|found| found == wanted)
    })
}

fn like_any_case(call: &Call<'_>, wanted: bool) -> Result<ArrayRef, SqlError> {
    let collation = call.collation("ILIKE")?;
    binary(call, |text: &str, pattern: &str| {
        let (text, pattern) = (lower(text, collation)?, lower(pattern, collation)?);
        matches(text.as_bytes(), pattern.as_bytes(), character).map(|found| found == wanted)
    })
}

fn bytea_like(call: &Call<'_>, wanted: bool) -> Result<ArrayRef, SqlError> {
    binary(call, |text: &[u8], pattern: &[u8]| {
        matches(text, pattern, byte).map(|found| found == wanted)
    })
}

/// The length of the character that `text` begins with, in bytes.
fn character(text: &[u8]) -> usize {
    match text.first() {
        None | Some(0..0xC0) => 1,
        Some(0xC0..0xE0) => 2,
        Some(0xE0..0xF0) => 3,
        Some(_) => 4,
    }
}

/// The length of a "character" of a bytea.
fn byte(_: &[u8]) -> usize {
    1
}

/// Whether `text` matches `pattern`. `step` returns the length of the first character.
///
/// If a character doesn't match, only the last `%` can take one character more: whatever an earlier
/// `%` took, the pattern between the two has matched as far left as possible. So no recursion is
/// needed. A backslash at the end of the pattern is an error only if matching gets that far.
fn matches(text: &[u8], pattern: &[u8], step: fn(&[u8]) -> usize) -> Result<bool, SqlError> {
    let (mut text, mut pattern) = (text, pattern);
    // What follows the last `%`, and the text at which that was tried last.
    let mut last: Option<(&[u8], &[u8])> = None;
    loop {
        let fits = match (pattern.first(), text.first()) {
            (Some(b'%'), Some(_)) => {
                while let Some(wildcard @ (b'%' | b'_')) = pattern.first() {
                    if *wildcard == b'_' {
                        if text.is_empty() {
                            return Ok(false);
                        }
                        text = text.get(step(text)..).unwrap_or_default();
                    }
                    pattern = pattern.get(1..).unwrap_or_default();
                }
                match pattern {
                    [] => return Ok(true),
                    [b'\\'] => return Err(ends_with_escape()),
                    _ => last = Some((pattern, text)),
                }
                continue;
            }
            (_, None) => return Ok(pattern.iter().all(|&byte| byte == b'%')),
            (None, Some(_)) => false,
            (Some(b'_'), Some(_)) => {
                text = text.get(step(text)..).unwrap_or_default();
                pattern = pattern.get(1..).unwrap_or_default();
                continue;
            }
            (Some(b'\\'), Some(first)) => {
                pattern = pattern.get(1..).unwrap_or_default();
                *first == *pattern.first().ok_or_else(ends_with_escape)?
            }
            (Some(wanted), Some(first)) => wanted == first,
        };
        if fits {
            (text, pattern) =
                (text.get(1..).unwrap_or_default(), pattern.get(1..).unwrap_or_default());
            continue;
        }
        let Some((after, tried)) = last else { return Ok(false) };
        text = tried.get(step(tried)..).unwrap_or_default();
        pattern = after;
        last = Some((after, text));
    }
}

fn ends_with_escape() -> SqlError {
    let message = "LIKE pattern must not end with escape character";
    SqlError::new(SqlState::INVALID_ESCAPE_SEQUENCE, message)
}

/// An escape has at most one character.
fn check_escape(characters: usize) -> Result<(), SqlError> {
    if characters <= 1 {
        return Ok(());
    }
    Err(SqlError::new(SqlState::INVALID_ESCAPE_SEQUENCE, "invalid escape string")
        .with_hint("Escape string must be empty or one character."))
}

/// Rewrites a pattern whose escape character is `escape`, or which has none, to backslashes.
fn with_backslashes(pattern: &[u8], escape: &[u8], step: fn(&[u8]) -> usize) -> Vec<u8> {
    if escape == b"\\" {
        return pattern.to_vec();
    }
    let mut escaped = Vec::with_capacity(pattern.len() + 8);
    let (mut rest, mut after_escape) = (pattern, false);
    while !rest.is_empty() {
        let (first, left) = rest.split_at(step(rest).min(rest.len()));
        rest = left;
        if first == escape && !after_escape {
            escaped.push(b'\\');
            after_escape = true;
            continue;
        }
        if first == b"\\" && !after_escape {
            escaped.push(b'\\');
        }
        escaped.extend_from_slice(first);
        after_escape = false;
    }
    escaped
}
