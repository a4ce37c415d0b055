//! Composite values and rows: `(1,"a b",)`.
//!
//! A column without any text is null; `""` is an empty text.
//!
//! Mirrors `record_in` of PostgreSQL's `utils/adt/rowtypes.c`.

use super::c_text::{first, skip_space};
use super::error::InputError;
use crate::align::Align;
use crate::deform::Attribute;
use crate::heap_tuple::{HAS_NULL, TUPLE_HEADER_SIZE};
use crate::ids::Oid;
use crate::stored_parts::PartWriter;

/// `HEAP_HASVARWIDTH`: the row has a value of variable length.
const HAS_VARIABLE: u16 = 0x0002;

/// A column's layout and its value in storage form, `None` for null.
pub(crate) type StoredColumn = (Attribute, Option<Vec<u8>>);

/// Appends the payload of a composite value of the type `oid` (`heap_form_tuple`).
pub(crate) fn store(oid: Oid, columns: &[StoredColumn], out: &mut Vec<u8>) {
    let has_nulls = columns.iter().any(|(_, value)| value.is_none());
    let variable = columns.iter().any(|(attribute, value)| attribute.len < 0 && value.is_some());
    let bitmap = if has_nulls { columns.len().div_ceil(8) } else { 0 };
    let header = Align::Double.up(usize::from(TUPLE_HEADER_SIZE) + bitmap);
    let flags = if has_nulls { HAS_NULL } else { 0 } | if variable { HAS_VARIABLE } else { 0 };
    let mut writer = PartWriter::new(out);
    // The type modifier, the type, and an invalid TID.
    writer.word(u32::MAX);
    writer.word(oid.0);
    writer.bytes(&[0xFF, 0xFF, 0xFF, 0xFF, 0, 0]);
    writer.bytes(&(columns.len() as u16).to_le_bytes());
    writer.bytes(&flags.to_le_bytes());
    writer.bytes(&[header as u8]);
    if has_nulls {
        let bit = |(at, column): (usize, &StoredColumn)| u8::from(column.1.is_some()) << at;
        let byte = |eight: &[StoredColumn]| eight.iter().enumerate().map(bit).sum();
        let bits: Vec<u8> = columns.chunks(8).map(byte).collect();
        writer.bytes(&bits);
    }
    writer.align(Align::Double);
    for (attribute, value) in columns {
        if let Some(value) = value {
            writer.part(*attribute, true, value);
        }
    }
}

/// Reads a part of a composite or range up to a byte for which `ends` is true, outside of quotes.
/// Within quotes, a doubled `"` is one; `\` takes the next character as it is. Returns the part and
/// the text after it; `None` if the text ends within it.
pub(super) fn part(text: &str, ends: impl Fn(char) -> bool) -> Option<(String, &str)> {
    let mut part = String::new();
    let mut quoted = false;
    let mut characters = text.char_indices().peekable();
    while let Some((at, c)) = characters.next() {
        match c {
            _ if !quoted && ends(c) => return Some((part, text.get(at..).unwrap_or_default())),
            '\\' => part.push(characters.next()?.1),
            '"' if !quoted => quoted = true,
            '"' if characters.peek().is_some_and(|&(_, next)| next == '"') => {
                part.push('"');
                characters.next();
            }
            '"' => quoted = false,
            _ => part.push(c),
        }
    }
    None
}

/// Splits the text of a composite value into the texts of `count` columns.
pub(super) fn split(text: &str, count: usize) -> Result<Vec<Option<String>>, InputError> {
    let malformed = |detail: &str| {
        let message = format!("malformed record literal: \"{text}\"");
        Err(InputError::new("22P02", message).with_detail(detail))
    };
    let Some(mut rest) = skip_space(text).strip_prefix('(') else {
        return malformed("Missing left parenthesis.");
    };
    let mut columns = Vec::new();
    for at in 0..count {
        if at > 0 {
            let Some(after) = rest.strip_prefix(',') else { return malformed("Too few columns.") };
            rest = after;
        }
        if matches!(first(rest), b',' | b')') {
            columns.push(None);
            continue;
        }
        let Some((column, after)) = part(rest, |c| matches!(c, ',' | ')')) else {
            return malformed("Unexpected end of input.");
        };
        columns.push(Some(column));
        rest = after;
    }
    let Some(after) = rest.strip_prefix(')') else { return malformed("Too many columns.") };
    match skip_space(after).is_empty() {
        true => Ok(columns),
        false => malformed("Junk after right parenthesis."),
    }
}
