//! **Unicode escapes** of `U&'…'` strings and `U&"…"` identifiers.
//!
//! `U&'d\0061t\+000061'` is `data`; with `UESCAPE '!'`, `U&'d!0061'` is `da`.

use crate::error::{SqlError, SqlState};

/// Whether UESCAPE accepts a character: it must not be confused with a digit, a sign, a quote or a
/// blank.
pub(super) fn is_escape_character(character: char) -> bool {
    !(character.is_ascii_hexdigit()
        || matches!(character, '+' | '\'' | '"')
        || matches!(character, ' ' | '\t' | '\n' | '\r' | '\x0b' | '\x0c'))
}

/// Replaces the escapes. `start` is the offset of the literal.
///
/// # Errors
///
/// An escape that is malformed, or half a surrogate pair.
pub(super) fn decoded(raw: &str, escape: char, start: usize) -> Result<String, SqlError> {
    let mut text = String::with_capacity(raw.len());
    let mut rest = raw;
    let mut high: Option<u32> = None;
    while let Some(character) = rest.chars().next() {
        // The three characters of `U&'`; doubled quotes before this place are not counted, which
        // PostgreSQL doesn't either.
        let position = start + 3 + (raw.len() - rest.len());
        let after = rest.get(character.len_utf8()..).unwrap_or("");
        if character != escape {
            no_half_pair(high, position)?;
            text.push(character);
            rest = after;
            continue;
        }
        if after.starts_with(escape) {
            no_half_pair(high, position)?;
            text.push(escape);
            rest = after.get(escape.len_utf8()..).unwrap_or("");
            continue;
        }
        let (digits, length) = match after.strip_prefix('+') {
            Some(long) => (long.get(..6), 7),
            None => (after.get(..4), 4),
        };
        let value = digits
            .filter(|digits| digits.bytes().all(|byte| byte.is_ascii_hexdigit()))
            .and_then(|digits| u32::from_str_radix(digits, 16).ok())
            .ok_or_else(|| {
                error("invalid Unicode escape", position)
                    .with_hint("Unicode escapes must be \\XXXX or \\+XXXXXX.")
            })?;
        rest = after.get(length..).unwrap_or("");
        match (high.take(), value) {
            (Some(high), 0xdc00..0xe000) => {
                let joined = 0x10000 + ((high & 0x3ff) << 10) + (value & 0x3ff);
                text.extend(char::from_u32(joined));
            }
            (None, 0xd800..0xdc00) => high = Some(value),
            (Some(_), _) | (None, 0xdc00..0xe000) => {
                return Err(error("invalid Unicode surrogate pair", position));
            }
            (None, _) => match char::from_u32(value).filter(|&found| found != '\0') {
                Some(found) => text.push(found),
                None => return Err(error("invalid Unicode escape value", position)),
            },
        }
    }
    no_half_pair(high, start + 3 + raw.len())?;
    Ok(text)
}

fn no_half_pair(high: Option<u32>, position: usize) -> Result<(), SqlError> {
    match high {
        Some(_) => Err(error("invalid Unicode surrogate pair", position)),
        None => Ok(()),
    }
}

fn error(message: &str, position: usize) -> SqlError {
    SqlError::new(SqlState::SYNTAX_ERROR, message).at(u32::try_from(position).unwrap_or(u32::MAX))
}
