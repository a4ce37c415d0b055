//! Casts between the string types.
//!
//! For example, `'abc'::varchar(2)` is `ab`, but assigning `abc` to a column of that type is an error,
//! unless only blanks are cut off.

use arrow_array::ArrayRef;

use super::comparison::unpadded;
use crate::error::{SqlError, SqlState};
use crate::functions::call::{Call, Kernel};
use crate::functions::rows::{ternary, unary};

/// The kernels of this module.
pub(in crate::functions) const CASTS: &[(&str, Kernel)] = &[
    ("varchar", |call| {
        fitted(call, "character varying", |text, _, cut| match cut {
            Some(cut) => cut.to_owned(),
            None => text.to_owned(),
        })
    }),
    ("bpchar", |call| {
        fitted(call, "character", |text, blanks, cut| match cut {
            Some(cut) => cut.to_owned(),
            None => text.to_owned() + &" ".repeat(blanks),
        })
    }),
    ("text_name", |call| unary(call, |text: &str| Ok(name(text)))),
    ("bpchar_name", |call| unary(call, |text: &str| Ok(unpadded(name(text))))),
    ("name_text", |call| unary(call, |text: &str| Ok(text))),
    ("name_bpchar", |call| unary(call, |text: &str| Ok(text))),
    ("char_text", |call| unary(call, |byte: u8| Ok(char_text(byte)))),
    ("char_bpchar", |call| unary(call, |byte: u8| Ok(char_text(byte)))),
    ("text_char", |call| unary(call, |text: &str| Ok(text_char(text.as_bytes())))),
    ("chartoi4", |call| unary(call, |byte: u8| Ok(i32::from(byte.cast_signed())))),
    ("i4tochar", |call| {
        unary(call, |number: i32| {
            let out_of_range =
                |_| SqlError::new(SqlState::NUMERIC_VALUE_OUT_OF_RANGE, "\"char\" out of range");
            i8::try_from(number).map(i8::cast_unsigned).map_err(out_of_range)
        })
    }),
    ("booltext", |call| unary(call, |value: bool| Ok(if value { "true" } else { "false" }))),
];

/// A type modifier of a string type is the length plus this.
const MODIFIER_OFFSET: i32 = 4;

/// Fits a text into the length that a type modifier allows. `build` gets the text, the number of
/// characters that are missing, and the part that fits if the text is too long.
fn fitted(
    call: &Call<'_>,
    type_name: &str,
    build: fn(&str, usize, Option<&str>) -> String,
) -> Result<ArrayRef, SqlError> {
    ternary(call, |text: &str, modifier: i32, is_explicit: bool| {
        let Some(max) =
            modifier.checked_sub(MODIFIER_OFFSET).and_then(|max| usize::try_from(max).ok())
        else {
            return Ok(build(text, 0, None));
        };
        let Some((end, _)) = text.char_indices().nth(max) else {
            // A short text has fewer characters than `max`.
            let blanks = max - text.chars().count();
            return Ok(build(text, blanks, None));
        };
        let (cut, rest) = text.split_at_checked(end).unwrap_or((text, ""));
        if !is_explicit && !rest.bytes().all(|byte| byte == b' ') {
            let message = format!("value too long for type {type_name}({max})");
            return Err(SqlError::new(SqlState::STRING_DATA_RIGHT_TRUNCATION, message));
        }
        Ok(build(text, 0, Some(cut)))
    })
}

/// The longest `name`, without its NUL.
const NAME_MAX: usize = 63;

/// Cuts a text to the length of a name, at the end of a character.
fn name(text: &str) -> &str {
    let end = (0..=NAME_MAX.min(text.len())).rev().find(|&end| text.is_char_boundary(end));
    text.get(..end.unwrap_or_default()).unwrap_or(text)
}

/// A `"char"` as its output function prints it: a byte above ASCII as a backslash and three octal
/// digits, and zero as nothing.
fn char_text(byte: u8) -> String {
    match byte {
        0 => String::new(),
        1..=0x7F => char::from(byte).to_string(),
        _ => format!("\\{byte:03o}"),
    }
}

/// The first byte of a text, or the byte that a backslash and three octal digits stand for.
fn text_char(text: &[u8]) -> u8 {
    match text {
        [b'\\', high @ b'0'..=b'7', middle @ b'0'..=b'7', low @ b'0'..=b'7'] => {
            (high - b'0') << 6 | (middle - b'0') << 3 | (low - b'0')
        }
        [first, ..] => *first,
        [] => 0,
    }
}
