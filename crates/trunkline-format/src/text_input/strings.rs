//! `text`, `varchar`, `character`, `name`, `"char"` and `bytea`.
//!
//! A text that is too long for `varchar(n)` or `character(n)` is an error, unless only blanks are cut
//! off. (A cast to these types cuts off anything, but that is not done by an input function.) The
//! length is counted in characters.

use super::error::InputError;

/// Size of a varlena header, which type modifiers include.
const HEADER: i32 = 4;
/// `NAMEDATALEN`: the size of a `name`, including at least one NUL.
const NAME_SIZE: usize = 64;

/// The first `count` characters and the rest.
fn split_characters(text: &str, count: usize) -> (&str, &str) {
    let end = text.char_indices().nth(count).map_or(text.len(), |(at, _)| at);
    text.split_at_checked(end).unwrap_or((text, ""))
}

/// Cuts `text` to the characters that `typmod` allows. Returns the number of missing characters too.
fn fit<'a>(text: &'a str, typmod: i32, type_name: &str) -> Result<(&'a str, usize), InputError> {
    let Some(most) = typmod.checked_sub(HEADER).and_then(|most| usize::try_from(most).ok()) else {
        return Ok((text, 0));
    };
    let (kept, excess) = split_characters(text, most);
    if excess.bytes().any(|byte| byte != b' ') {
        let message = format!("value too long for type {type_name}({most})");
        return Err(InputError::new("22001", message));
    }
    Ok((kept, most - kept.chars().count()))
}

/// A `varchar`.
pub(crate) fn varchar(text: &str, typmod: i32, out: &mut Vec<u8>) -> Result<(), InputError> {
    let (kept, _) = fit(text, typmod, "character varying")?;
    out.extend_from_slice(kept.as_bytes());
    Ok(())
}

/// A `character`, padded with blanks.
pub(crate) fn bpchar(text: &str, typmod: i32, out: &mut Vec<u8>) -> Result<(), InputError> {
    let (kept, missing) = fit(text, typmod, "character")?;
    out.extend_from_slice(kept.as_bytes());
    out.extend(std::iter::repeat_n(b' ', missing));
    Ok(())
}

/// A `name`: cut to 63 bytes, but not in the middle of a character, and padded with NULs.
pub(crate) fn name(text: &str, out: &mut Vec<u8>) {
    let end = out.len() + NAME_SIZE;
    let most = text.floor_char_boundary(NAME_SIZE - 1);
    out.extend_from_slice(text.get(..most).unwrap_or_default().as_bytes());
    out.resize(end, 0);
}

/// A `"char"`: the byte of `\` and three octal digits, or else the first byte of the text.
pub(super) fn char(text: &str) -> u8 {
    match text.as_bytes() {
        &[b'\\', a @ b'0'..=b'7', b @ b'0'..=b'7', c @ b'0'..=b'7'] => octal([a, b, c]),
        bytes => bytes.first().copied().unwrap_or(0),
    }
}

/// The byte of three octal digits. Only the lowest two bits of the first digit fit.
fn octal([a, b, c]: [u8; 3]) -> u8 {
    ((a - b'0') & 3) << 6 | (b - b'0') << 3 | (c - b'0')
}

/// A `bytea`, in hexadecimal after `\x`, otherwise with escapes.
pub(super) fn bytea(text: &str, out: &mut Vec<u8>) -> Result<(), InputError> {
    if let Some(digits) = text.strip_prefix("\\x") {
        return hex(digits, out);
    }
    let mut rest = text.as_bytes();
    loop {
        rest = match rest {
            [] => return Ok(()),
            [b'\\', b'\\', rest @ ..] => {
                out.push(b'\\');
                rest
            }
            &[b'\\', a @ b'0'..=b'3', b @ b'0'..=b'7', c @ b'0'..=b'7', ref rest @ ..] => {
                out.push(octal([a, b, c]));
                rest
            }
            // The server doesn't quote the text here.
            [b'\\', ..] => {
                return Err(InputError::new("22P02", "invalid input syntax for type bytea"));
            }
            [byte, rest @ ..] => {
                out.push(*byte);
                rest
            }
        };
    }
}

/// Pairs of hexadecimal digits, with blanks between pairs.
fn hex(text: &str, out: &mut Vec<u8>) -> Result<(), InputError> {
    let digit = |c: char| {
        let message = || format!("invalid hexadecimal digit: \"{c}\"");
        c.to_digit(16).ok_or_else(|| InputError::new("22023", message()))
    };
    let mut characters = text.chars();
    while let Some(high) = characters.next() {
        if matches!(high, ' ' | '\n' | '\t' | '\r') {
            continue;
        }
        let high = digit(high)?;
        let odd = || InputError::new("22023", "invalid hexadecimal data: odd number of digits");
        let low = digit(characters.next().ok_or_else(odd)?)?;
        out.push((high << 4 | low) as u8);
    }
    Ok(())
}
