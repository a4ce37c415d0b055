//! Letters and single characters: `lower`, `upper`, `initcap`, `translate`, `ascii`, `chr`.
//!
//! For example, `initcap('hi THOMAS')` is `Hi Thomas`. What is a letter depends on the collation. If
//! we don't know that for a character of the text, the function fails.

use std::borrow::Cow;

use crate::error::{SqlError, SqlState};
use crate::functions::call::Kernel;
use crate::functions::collation::{Collation, Letters};
use crate::functions::rows::{ternary, unary};

/// The kernels of this module.
pub(in crate::functions) const LETTERS: &[(&str, Kernel)] = &[
    ("lower", |call| {
        let collation = call.collation("lower() function")?;
        unary(call, |text: &str| lower(text, collation))
    }),
    ("upper", |call| {
        let collation = call.collation("upper() function")?;
        unary(call, |text: &str| upper(text, collation))
    }),
    ("initcap", |call| {
        let collation = call.collation("initcap() function")?;
        unary(call, |text: &str| capitalized(text, collation))
    }),
    ("translate", |call| {
        ternary(call, |text: &str, from: &str, to: &str| Ok(translated(text, from, to)))
    }),
    ("replace_text", |call| {
        ternary(call, |text: &str, from: &str, to: &str| {
            if from.is_empty() {
                return Ok(Cow::Borrowed(text));
            }
            Ok(Cow::Owned(text.replace(from, to)))
        })
    }),
    ("ascii", |call| {
        unary(call, |text: &str| Ok(text.chars().next().map_or(0, |first| first as i32)))
    }),
    ("chr", |call| unary(call, character)),
];

/// The text in lower case.
pub(in crate::functions) fn lower(
    text: &str,
    collation: Collation,
) -> Result<Cow<'_, str>, SqlError> {
    convert(text, collation, |byte| byte.to_ascii_lowercase(), simple_lower)
}

fn upper(text: &str, collation: Collation) -> Result<Cow<'_, str>, SqlError> {
    convert(text, collation, |byte| byte.to_ascii_uppercase(), simple_upper)
}

/// Converts every letter.
fn convert(
    text: &str,
    collation: Collation,
    ascii: fn(&u8) -> u8,
    simple: fn(char) -> char,
) -> Result<Cow<'_, str>, SqlError> {
    let letters = known_letters(text, collation)?;
    if text.is_ascii() || letters == Letters::Ascii {
        if text.bytes().all(|byte| ascii(&byte) == byte) {
            return Ok(Cow::Borrowed(text));
        }
        let convert = |letter: char| {
            u8::try_from(letter).map_or(letter, |byte| match byte {
                0..0x80 => char::from(ascii(&byte)),
                _ => letter,
            })
        };
        return Ok(Cow::Owned(text.chars().map(convert).collect()));
    }
    Ok(Cow::Owned(text.chars().map(simple).collect()))
}

/// What is a letter in `text`. Fails if we don't know.
fn known_letters(text: &str, collation: Collation) -> Result<Letters, SqlError> {
    let letters = collation.letters();
    let known = match letters {
        Letters::Ascii | Letters::Simple => true,
        Letters::AsciiKnown => text.is_ascii(),
        Letters::LibcKnown => text.chars().all(is_the_same_in_all_versions),
        Letters::Unknown => false,
    };
    if known {
        return Ok(letters);
    }
    let message = "changing the case of a text in this collation is not supported by trunkline";
    Err(SqlError::unsupported(message)
        .with_hint("Add COLLATE \"C\" to change the case of ASCII letters only."))
}

/// Whether all versions of the C library agree about a letter's case. Unicode doesn't change the case
/// of a letter, but adds letters, some of which are the other case of older ones.
fn is_the_same_in_all_versions(letter: char) -> bool {
    match letter {
        '\u{19B}' | '\u{264}' => false,
        '\0'..='\u{58F}'
        | '\u{1E00}'..='\u{1FFF}'
        | '\u{2160}'..='\u{217F}'
        | '\u{24B6}'..='\u{24E9}'
        | '\u{FF21}'..='\u{FF5A}' => true,
        _ => simple_lower(letter) == letter && simple_upper(letter) == letter,
    }
}

/// Unicode's simple lower case. Where it differs from the full one, the latter has two characters.
pub(super) fn simple_lower(letter: char) -> char {
    let mut lower = letter.to_lowercase();
    match (lower.next(), lower.next()) {
        (Some(lower), None) => lower,
        _ if letter == '\u{130}' => 'i',
        _ => letter,
    }
}

/// Unicode's simple upper case. Where it differs from the full one, the latter has several
/// characters. These are Greek letters with a iota below, whose simple upper case has the iota, too.
pub(super) fn simple_upper(letter: char) -> char {
    let mut upper = letter.to_uppercase();
    match (upper.next(), upper.next()) {
        (Some(upper), None) => upper,
        _ => {
            let code = u32::from(letter);
            let code = match code {
                0x1F80..=0x1F87 | 0x1F90..=0x1F97 | 0x1FA0..=0x1FA7 => code + 8,
                0x1FB3 | 0x1FC3 | 0x1FF3 => code + 9,
                _ => code,
            };
            char::from_u32(code).unwrap_or(letter)
        }
    }
}

/// Every word with an upper-case first letter and lower-case others.
fn capitalized(text: &str, collation: Collation) -> Result<String, SqlError> {
    let letters = collation.letters();
    if letters != Letters::Ascii && (letters == Letters::Unknown || !text.is_ascii()) {
        let message = "initcap of a text in this collation is not supported by trunkline";
        return Err(SqlError::unsupported(message)
            .with_hint("Add COLLATE \"C\" to change the case of ASCII letters only."));
    }
    let mut in_word = false;
    let convert = |letter: char| {
        let converted =
            if in_word { letter.to_ascii_lowercase() } else { letter.to_ascii_uppercase() };
        in_word = letter.is_ascii_alphanumeric();
        converted
    };
    Ok(text.chars().map(convert).collect())
}

/// Replaces each character that is in `from` with the one at the same place in `to`, or removes it if
/// `to` is shorter.
fn translated(text: &str, from: &str, to: &str) -> String {
    let convert = |letter: char| match from.chars().position(|found| found == letter) {
        Some(at) => to.chars().nth(at),
        None => Some(letter),
    };
    text.chars().filter_map(convert).collect()
}

/// The character with this code point.
fn character(code: i32) -> Result<String, SqlError> {
    let limit = |message: String| Err(SqlError::new(SqlState::PROGRAM_LIMIT_EXCEEDED, message));
    let Ok(code) = u32::try_from(code) else {
        let message = "character number must be positive";
        return Err(SqlError::new(SqlState::INVALID_PARAMETER_VALUE, message));
    };
    match char::from_u32(code) {
        Some('\0') => limit("null character not permitted".to_owned()),
        Some(character) => Ok(character.to_string()),
        None if code > 0x0010_FFFF => {
            limit(format!("requested character too large for encoding: {code}"))
        }
        None => limit(format!("requested character not valid for encoding: {code}")),
    }
}
