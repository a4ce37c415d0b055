//! `json`, which is kept as it was written: `->`, `->>`, `#>`, `#>>`, `json_typeof`,
//! `json_array_length`, `json_strip_nulls`.
//!
//! A part of a `json` is a part of its text. For example, `'{"a": [1,  2]}'::json -> 'a'` is `[1,  2]`,
//! with both blanks. The whole text is read, because an escape anywhere in it can be an error.

use arrow_array::ArrayRef;
use trunkline_format::text_input::{JsonKind, JsonPart, JsonParts};
use trunkline_format::text_output::write_json_string;

use super::access::path_of;
use crate::error::{SqlError, SqlState};
use crate::functions::call::{Call, Kernel};
use crate::functions::printing::into_text;
use crate::functions::rows::{Input, Output, Reader, binary, each_row, unary};

/// The kernels of this module.
pub(in crate::functions) const TEXT: &[(&str, Kernel)] = &[
    ("json_object_field", |call| part_of(call, field, raw)),
    ("json_object_field_text", |call| part_of(call, field, text)),
    ("json_array_element", |call| part_of(call, element, raw)),
    ("json_array_element_text", |call| part_of(call, element, text)),
    ("json_extract_path", |call| at_path(call, raw)),
    ("json_extract_path_text", |call| at_path(call, text)),
    ("json_typeof", |call| {
        unary(call, |json: &str| {
            Ok(match JsonParts::parse(json, false)?.whole.kind {
                JsonKind::Object => "object",
                JsonKind::Array => "array",
                JsonKind::String => "string",
                JsonKind::Number => "number",
                JsonKind::Boolean => "boolean",
                JsonKind::Null => "null",
            })
        })
    }),
    ("json_array_length", |call| {
        unary(call, |json: &str| {
            let found = JsonParts::parse(json, false)?;
            let what = match found.whole.kind {
                JsonKind::Array => {
                    let count = i32::try_from(found.parts.len());
                    return count.map_err(|_| SqlError::internal("an array of 2^31 elements"));
                }
                JsonKind::Object => "a non-array",
                _ => "a scalar",
            };
            Err(invalid(format!("cannot get array length of {what}")))
        })
    }),
    ("json_strip_nulls", |call| {
        // Version 18 has a second argument.
        let in_arrays = match call.arguments.len() {
            1 => None,
            _ => Some(Reader::<bool>::new(call, 1)?),
        };
        let json = Reader::<&str>::new(call, 0)?;
        each_row(call.rows, |row| {
            let in_arrays = in_arrays.as_ref().map_or(Some(false), |flag| flag.get(row));
            let (Some(json), Some(in_arrays)) = (json.get(row), in_arrays) else {
                return Ok(None);
            };
            let mut out = Vec::with_capacity(json.len());
            without_nulls(json, in_arrays, &mut out)?;
            into_text(out).map(Some)
        })
    }),
];

pub(super) fn invalid(message: String) -> SqlError {
    SqlError::new(SqlState::INVALID_PARAMETER_VALUE, message)
}

/// The text of a part.
pub(super) fn raw<'a>(json: &'a str, part: &JsonPart) -> Option<&'a str> {
    json.get(part.place.clone())
}

/// A part as text: a string without quotes, and a JSON null as null.
pub(super) fn text(json: &str, part: &JsonPart) -> Option<String> {
    match part.kind {
        JsonKind::Null => None,
        JsonKind::String => Some(part.string.clone()),
        _ => raw(json, part).map(str::to_owned),
    }
}

/// The value of a key. If it occurs more than once, the last one counts.
fn field(found: JsonParts, key: &str) -> Option<JsonPart> {
    let is_object = found.whole.kind == JsonKind::Object;
    found.parts.into_iter().rfind(|part| is_object && part.key == key)
}

/// The element with this number, from 0 or, if it is negative, from the end.
fn element(found: JsonParts, number: i32) -> Option<JsonPart> {
    if found.whole.kind != JsonKind::Array {
        return None;
    }
    let at = match usize::try_from(number) {
        Ok(at) => at,
        Err(_) => found.parts.len().checked_sub(number.unsigned_abs() as usize)?,
    };
    found.parts.into_iter().nth(at)
}

fn part_of<'a, K: Input<'a>, R: Output>(
    call: &'a Call<'_>,
    find: fn(JsonParts, K) -> Option<JsonPart>,
    show: fn(&'a str, &JsonPart) -> Option<R>,
) -> Result<ArrayRef, SqlError> {
    binary(call, |json: &'a str, key: K| {
        Ok(find(JsonParts::parse(json, true)?, key).and_then(|part| show(json, &part)))
    })
}

/// The value at the end of a path. An empty path leads to the whole value.
fn at_path<'a, R: Output>(
    call: &'a Call<'_>,
    show: fn(&'a str, &JsonPart) -> Option<R>,
) -> Result<ArrayRef, SqlError> {
    binary(call, |json: &'a str, path: &'a [u8]| {
        let Some(path) = path_of(path, call)? else { return Ok(None) };
        let mut json = json;
        let mut found = JsonParts::parse(json, true)?;
        let is_container = matches!(found.whole.kind, JsonKind::Object | JsonKind::Array);
        if path.is_empty() && !is_container {
            // The server keeps the blanks before a value that has no parts.
            found.whole.place.start = 0;
        }
        for step in &path {
            let part = match found.whole.kind {
                JsonKind::Object => field(found, step),
                JsonKind::Array => {
                    let step = step.trim_start_matches([' ', '\t', '\n', '\r', '\x0B', '\x0C']);
                    step.parse().ok().and_then(|number| element(found, number))
                }
                _ => None,
            };
            let Some(inner) = part.and_then(|part| raw(json, &part)) else { return Ok(None) };
            json = inner;
            found = JsonParts::parse(json, true)?;
        }
        Ok(show(json, &found.whole))
    })
}

/// Appends a value without the fields that are null, and without blanks.
fn without_nulls(json: &str, in_arrays: bool, out: &mut Vec<u8>) -> Result<(), SqlError> {
    stacker::maybe_grow(64 << 10, 1 << 20, || {
        let found = JsonParts::parse(json, true)?;
        let (open, close, is_object) = match found.whole.kind {
            JsonKind::Object => (b'{', b'}', true),
            JsonKind::Array => (b'[', b']', false),
            JsonKind::String => {
                write_json_string(found.whole.string.as_bytes(), out);
                return Ok(());
            }
            _ => {
                out.extend_from_slice(raw(json, &found.whole).unwrap_or_default().as_bytes());
                return Ok(());
            }
        };
        out.push(open);
        let is_kept = |part: &&JsonPart| part.kind != JsonKind::Null || !(is_object || in_arrays);
        for (at, part) in found.parts.iter().filter(is_kept).enumerate() {
            if at > 0 {
                out.push(b',');
            }
            if is_object {
                write_json_string(part.key.as_bytes(), out);
                out.push(b':');
            }
            without_nulls(raw(json, part).unwrap_or_default(), in_arrays, out)?;
        }
        out.push(close);
        Ok(())
    })
}
