//! **Strings and quoted identifiers**: standard strings, escape strings, dollar quotes.
//!
//! `'it''s'` has one quote. `'a'`, a newline and `'b'` are one string. `E'\x41'` is `A`, and `$x$it's$x$`
//! contains its quote as it is.

use super::source::Source;
use crate::error::{SqlError, SqlState};

/// A string between single quotes, in which only the quote itself is doubled.
pub(super) fn quoted(source: &mut Source<'_>, start: usize) -> Result<String, SqlError> {
    plain(source, start, "unterminated quoted string")
}

/// Like [`quoted`], with another message if the closing quote is missing.
pub(super) fn plain(
    source: &mut Source<'_>,
    start: usize,
    unterminated: &str,
) -> Result<String, SqlError> {
    let mut text = String::new();
    source.at += 1;
    loop {
        let from = source.at;
        source.skip_while(|byte| byte != b'\'');
        text.push_str(source.text(from..source.at));
        match (source.peek(0), source.peek(1)) {
            (Some(_), Some(b'\'')) => {
                text.push('\'');
                source.at += 2;
            }
            (Some(_), _) => {
                source.at += 1;
                if !continues(source) {
                    return Ok(text);
                }
            }
            (None, _) => return Err(source.error(unterminated, start)),
        }
    }
}

/// Whether the string continues on a later line. If so, the scanner is behind the next quote.
fn continues(source: &mut Source<'_>) -> bool {
    let end = source.at;
    let mut lines = false;
    loop {
        match (source.peek(0), source.peek(1)) {
            (Some(b'\n' | b'\r'), _) => {
                lines = true;
                source.at += 1;
            }
            (Some(b' ' | b'\t' | 0x0b | 0x0c), _) => source.at += 1,
            (Some(b'-'), Some(b'-')) => source.skip_line(),
            (Some(b'\''), _) if lines => {
                source.at += 1;
                return true;
            }
            _ => {
                source.at = end;
                return false;
            }
        }
    }
}

/// An identifier between double quotes, in which only the quote itself is doubled.
pub(super) fn quoted_identifier(source: &mut Source<'_>, start: usize) -> Result<String, SqlError> {
    let mut text = String::new();
    source.at += 1;
    loop {
        let from = source.at;
        source.skip_while(|byte| byte != b'"');
        text.push_str(source.text(from..source.at));
        match (source.peek(0), source.peek(1)) {
            (Some(_), Some(b'"')) => {
                text.push('"');
                source.at += 2;
            }
            (Some(_), _) => {
                source.at += 1;
                if text.is_empty() {
                    return Err(source.error("zero-length delimited identifier", start));
                }
                return Ok(text);
            }
            (None, _) => return Err(source.error("unterminated quoted identifier", start)),
        }
    }
}

/// A string between dollar signs, or nothing if there is no opening delimiter.
pub(super) fn dollar_quoted(source: &mut Source<'_>) -> Result<Option<String>, SqlError> {
    let start = source.at;
    source.at += 1;
    if !source.peek(0).is_some_and(|byte| byte.is_ascii_digit()) {
        source.skip_while(|byte| byte.is_ascii_alphanumeric() || byte == b'_' || byte > 127);
    }
    if source.peek(0) != Some(b'$') {
        source.at = start;
        return Ok(None);
    }
    source.at += 1;
    let delimiter = source.text(start..source.at);
    let body = source.at;
    let end = source.bytes(0).len();
    match source.text(body..end).find(delimiter) {
        Some(length) => {
            source.at = body + length + delimiter.len();
            Ok(Some(source.text(body..body + length).to_owned()))
        }
        None => {
            source.at = end;
            Err(source.error("unterminated dollar-quoted string", start))
        }
    }
}

/// A string with backslash escapes. Octal and hexadecimal escapes are bytes, so only the whole string
/// is known to be valid text.
pub(super) fn escaped(source: &mut Source<'_>, start: usize) -> Result<String, SqlError> {
    let mut bytes = Vec::new();
    source.at += 1;
    loop {
        let from = source.at;
        source.skip_while(|byte| byte != b'\'' && byte != b'\\');
        bytes.extend_from_slice(source.text(from..source.at).as_bytes());
        match (source.peek(0), source.peek(1)) {
            (Some(b'\''), Some(b'\'')) => {
                bytes.push(b'\'');
                source.at += 2;
            }
            (Some(b'\''), _) => {
                source.at += 1;
                if !continues(source) {
                    return checked(bytes);
                }
            }
            (Some(_), Some(_)) => escape(source, &mut bytes)?,
            _ => {
                source.at = source.bytes(0).len();
                return Err(source.error("unterminated quoted string", start));
            }
        }
    }
}

/// The text that the bytes of an escape string are.
fn checked(bytes: Vec<u8>) -> Result<String, SqlError> {
    let valid = match std::str::from_utf8(&bytes) {
        Ok(_) => bytes.len(),
        Err(error) => error.valid_up_to(),
    };
    let zero = bytes.iter().position(|&byte| byte == 0).unwrap_or(bytes.len());
    let invalid = valid.min(zero);
    if invalid < bytes.len() {
        let bad = bytes.get(invalid..).unwrap_or_default();
        // PostgreSQL prints as many bytes as the first one announces.
        let length = match bad.first() {
            Some(0xc0..=0xdf) => 2,
            Some(0xe0..=0xef) => 3,
            Some(0xf0..=0xf7) => 4,
            _ => 1,
        };
        let shown: Vec<String> =
            bad.iter().take(length).map(|byte| format!("0x{byte:02x}")).collect();
        let message = format!("invalid byte sequence for encoding \"UTF8\": {}", shown.join(" "));
        return Err(SqlError::new(SqlState::CHARACTER_NOT_IN_REPERTOIRE, message));
    }
    String::from_utf8(bytes).map_err(|error| SqlError::internal(error.to_string()))
}

/// Appends what one escape stands for.
fn escape(source: &mut Source<'_>, bytes: &mut Vec<u8>) -> Result<(), SqlError> {
    let start = source.at;
    source.at += 1;
    let byte = match source.peek(0) {
        Some(b'b') => 0x08,
        Some(b'f') => 0x0c,
        Some(b'n') => b'\n',
        Some(b'r') => b'\r',
        Some(b't') => b'\t',
        Some(b'v') => 0x0b,
        Some(b'0'..=b'7') => {
            let value = digits(source, 8, 3);
            // More than a byte loses its upper bits, as in PostgreSQL.
            bytes.push(u8::try_from(value & 0xff).unwrap_or(0));
            return Ok(());
        }
        Some(b'x') if source.peek(1).is_some_and(|byte| byte.is_ascii_hexdigit()) => {
            source.at += 1;
            bytes.push(u8::try_from(digits(source, 16, 2)).unwrap_or(0));
            return Ok(());
        }
        Some(b'u' | b'U') => {
            let character = unicode_escape(source, start)?;
            bytes.extend_from_slice(character.encode_utf8(&mut [0; 4]).as_bytes());
            return Ok(());
        }
        _ => {
            if let Some(character) = source.character() {
                bytes.extend_from_slice(character.encode_utf8(&mut [0; 4]).as_bytes());
            }
            return Ok(());
        }
    };
    bytes.push(byte);
    source.at += 1;
    Ok(())
}

/// The value of up to `count_max` digits.
fn digits(source: &mut Source<'_>, radix: u32, count_max: usize) -> u32 {
    let mut value = 0;
    for _ in 0..count_max {
        let Some(digit) = source.peek(0).and_then(|byte| char::from(byte).to_digit(radix)) else {
            break;
        };
        value = value * radix + digit;
        source.at += 1;
    }
    value
}

/// The character of `\uXXXX` or `\UXXXXXXXX`; two of them may be a surrogate pair.
fn unicode_escape(source: &mut Source<'_>, start: usize) -> Result<char, SqlError> {
    let value = code_unit(source, start)?;
    if !(0xd800..0xdc00).contains(&value) {
        if (0xdc00..0xe000).contains(&value) {
            return Err(source.error("invalid Unicode surrogate pair", start));
        }
        return char::from_u32(value)
            .filter(|&character| character != '\0')
            .ok_or_else(|| source.error("invalid Unicode escape value", start));
    }
    let second = source.at;
    if !(source.peek(0) == Some(b'\\') && matches!(source.peek(1), Some(b'u' | b'U'))) {
        source.character();
        return Err(source.error("invalid Unicode surrogate pair", second));
    }
    source.at += 1;
    let low = code_unit(source, second)?;
    if !(0xdc00..0xe000).contains(&low) {
        return Err(source.error("invalid Unicode surrogate pair", second));
    }
    char::from_u32(0x10000 + ((value & 0x3ff) << 10) + (low & 0x3ff))
        .ok_or_else(|| source.error("invalid Unicode escape value", second))
}

/// The number of `uXXXX` or `UXXXXXXXX`.
fn code_unit(source: &mut Source<'_>, start: usize) -> Result<u32, SqlError> {
    let count = if source.peek(0) == Some(b'u') { 4 } else { 8 };
    source.at += 1;
    let from = source.at;
    let value = digits(source, 16, count);
    if source.at - from == count {
        return Ok(value);
    }
    Err(SqlError::new(SqlState::INVALID_ESCAPE_SEQUENCE, "invalid Unicode escape")
        .with_hint("Unicode escapes must be \\uXXXX or \\UXXXXXXXX.")
        .at(u32::try_from(start).unwrap_or(u32::MAX)))
}
