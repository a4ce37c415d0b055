//! Unicode: `normalize`, `IS NORMALIZED`, `casefold`.
//!
//! For example, `normalize('a' || chr(769))` is `á`, one character. Later versions of Unicode don't
//! change how a character is normalized, but add characters. Text with one that some version of the
//! server doesn't know is refused.

use std::borrow::Cow;

use arrow_array::ArrayRef;
use unicode_normalization::UnicodeNormalization;
use unicode_normalization::char::{canonical_combining_class, decompose_compatible};

use super::letters::{lower, simple_lower, simple_upper};
use crate::error::{SqlError, SqlState};
use crate::functions::call::{Call, CallSettings, Kernel};
use crate::functions::collation::{Collation, Letters};
use crate::functions::rows::{Output, binary, unary};

/// The kernels of this module.
pub(in crate::functions) const UNICODE: &[(&str, Kernel)] = &[
    ("unicode_normalize_func", |call| normal(call, |_, normalized| normalized)),
    ("unicode_is_normalized", |call| normal(call, |text, normalized| text == normalized)),
    ("casefold", |call| {
        let collation = call.collation("casefold() function")?;
        let what = "Unicode case folding can only be performed if server encoding is UTF8";
        check_encoding(call.settings, what)?;
        unary(call, |text: &str| casefold(text, collation))
    }),
];

/// `PG_UTF8`.
const UTF8: i32 = 6;

fn check_encoding(settings: &CallSettings, message: &str) -> Result<(), SqlError> {
    match &settings.session {
        Some(session) if session.catalog.database().info().encoding != UTF8 => {
            Err(SqlError::new(SqlState::SYNTAX_ERROR, message))
        }
        _ => Ok(()),
    }
}

/// Normalizes texts by forms such as `NFC`.
fn normal<R: Output>(call: &Call<'_>, result: fn(&str, String) -> R) -> Result<ArrayRef, SqlError> {
    let what = "Unicode normalization can only be performed if server encoding is UTF8";
    check_encoding(call.settings, what)?;
    binary(call, |text: &str, form: &str| {
        let convert: fn(&str) -> String = match form.to_ascii_uppercase().as_str() {
            "NFC" => |text| text.nfc().collect(),
            "NFD" => |text| text.nfd().collect(),
            "NFKC" => |text| text.nfkc().collect(),
            "NFKD" => |text| text.nfkd().collect(),
            _ => {
                let message = format!("invalid normalization form: {form}");
                return Err(SqlError::new(SqlState::INVALID_PARAMETER_VALUE, message));
            }
        };
        if text.chars().any(is_new) {
            let message = "normalizing characters that Unicode added after version 14 is not \
                           supported by trunkline";
            return Err(SqlError::unsupported(message));
        }
        Ok(result(text, convert(text)))
    })
}

/// Blocks to which Unicode has added characters since version 14, the one of PostgreSQL 15.
const GROWING: &[(char, char)] = &[
    ('\u{870}', '\u{89F}'),
    ('\u{CC0}', '\u{EFF}'),
    ('\u{1AB0}', '\u{1AFF}'),
    ('\u{1C80}', '\u{1C8F}'),
    ('\u{A7C0}', '\u{A7FF}'),
    ('\u{105C0}', '\u{105FF}'),
    ('\u{10D40}', '\u{10D8F}'),
    ('\u{10EC0}', '\u{10EFF}'),
    ('\u{11200}', '\u{1124F}'),
    ('\u{11380}', '\u{113FF}'),
    ('\u{11B60}', '\u{11FFF}'),
    ('\u{16100}', '\u{1613F}'),
    ('\u{16D40}', '\u{16DFF}'),
    ('\u{16EA0}', '\u{16EDF}'),
    ('\u{1CC00}', '\u{1CEFF}'),
    ('\u{1E030}', '\u{1E08F}'),
    ('\u{1E4D0}', '\u{1E6FF}'),
];

/// Whether a character that is changed or moved by normalization may be one that a server doesn't know.
fn is_new(letter: char) -> bool {
    if !GROWING.iter().any(|&(first, last)| (first..=last).contains(&letter)) {
        return false;
    }
    let mut is_changed = canonical_combining_class(letter) != 0;
    decompose_compatible(letter, |part| is_changed |= part != letter);
    is_changed
}

/// The text with cases folded. Only the built-in locales do more than converting to lower case.
fn casefold(text: &str, collation: Collation) -> Result<Cow<'_, str>, SqlError> {
    if text.is_ascii() || collation.letters() != Letters::Simple {
        return lower(text, collation);
    }
    let folded: String = text.chars().map(folded).collect::<Result<_, _>>()?;
    Ok(Cow::Owned(folded))
}

/// Unicode's simple folding of a letter, which mostly is the lower case of its upper case.
fn folded(letter: char) -> Result<char, SqlError> {
    match letter {
        // The letters with and without dot, those of Cherokee, and those that were added later.
        '\u{130}'
        | '\u{131}'
        | '\u{13A0}'..='\u{13FF}'
        | '\u{AB70}'..='\u{ABBF}'
        | '\u{1FD3}'
        | '\u{1FE3}'
        | '\u{FB05}' => {
            let message = format!("folding the case of {letter} is not supported by trunkline");
            Err(SqlError::unsupported(message))
        }
        letter => Ok(simple_lower(simple_upper(letter))),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn letters_are_folded_to_the_lower_case() {
        let cases = [('A', 'a'), ('Ä', 'ä'), ('ß', 'ß'), ('ẞ', 'ß'), ('Ж', 'ж'), ('ς', 'σ')];
        for (letter, wanted) in cases {
            assert_eq!(folded(letter).ok(), Some(wanted), "{letter}");
        }
        assert!(folded('İ').is_err());
    }

    #[test]
    fn only_new_characters_that_change_are_refused() {
        assert!(is_new('\u{897}'));
        assert!(is_new('\u{1E030}'));
        assert!(!is_new('\u{301}'));
        assert!(!is_new('\u{CE6}'));
    }
}
