//! Values of other types as JSON: `to_json`, `to_jsonb`, `json_build_object` and the like.
//!
//! Numbers and booleans become JSON's, arrays become arrays, and anything else becomes a string with
//! what its output function prints. For example, `to_json('2020-01-02 03:04'::timestamp)` is
//! `"2020-01-02T03:04:00"`. A row becomes an object.

use arrow_array::ArrayRef;
use trunkline_format::Oid;
use trunkline_format::text_input::{InputOptions, read_text};
use trunkline_format::text_output::{Base, StringType, Type};

use super::writing::append_json;
use crate::error::{SqlError, SqlState};
use crate::functions::call::{Argument, Call, CallSettings, Kernel};
use crate::functions::printing::{into_text, resolve};
use crate::functions::rows::each_row;
use crate::values::{Carrier, PayloadReader};

/// The kernels of this module.
pub(in crate::functions) const CONVERTING: &[(&str, Kernel)] = &[
    ("to_json", |call| converted(call, |text, _| Ok(text))),
    ("array_to_json", |call| converted(call, |text, _| Ok(text))),
    ("array_to_json_pretty", in_lines),
    ("row_to_json", |call| converted(call, |text, _| Ok(text))),
    ("row_to_json_pretty", in_lines),
    ("to_jsonb", |call| converted(call, |text, call| stored(&text, call.settings))),
    ("json_build_array", |call| built(call, array_text, |text, _| Ok(text))),
    ("json_build_array_noargs", |call| built(call, array_text, |text, _| Ok(text))),
    ("jsonb_build_array", |call| {
        built(call, array_text, |text, call| stored(&text, call.settings))
    }),
    ("jsonb_build_array_noargs", |call| {
        built(call, array_text, |text, call| stored(&text, call.settings))
    }),
    ("json_build_object", |call| {
        built(call, |all, row, call| object_text(all, row, call, false), |text, _| Ok(text))
    }),
    ("json_build_object_noargs", |call| {
        built(call, |all, row, call| object_text(all, row, call, false), |text, _| Ok(text))
    }),
    ("jsonb_build_object", |call| {
        let object =
            |all: &mut [Source<'_>], row, call: &Call<'_>| object_text(all, row, call, true);
        built(call, object, |text, call| stored(&text, call.settings))
    }),
    ("jsonb_build_object_noargs", |call| {
        let object =
            |all: &mut [Source<'_>], row, call: &Call<'_>| object_text(all, row, call, true);
        built(call, object, |text, call| stored(&text, call.settings))
    }),
];

/// An argument that becomes JSON.
struct Source<'a> {
    ty: Type,
    argument: &'a Argument,
    values: PayloadReader<'a>,
}

fn sources<'a>(call: &'a Call<'_>) -> Result<Vec<Source<'a>>, SqlError> {
    let source = |(argument, &oid): (&'a Argument, &Oid)| {
        let ty = resolve(oid, call.settings)?;
        let values = PayloadReader::new(Carrier::of(&ty), argument.array())?;
        Ok(Source { ty, argument, values })
    };
    call.arguments.iter().zip(call.argument_types).map(source).collect()
}

impl Source<'_> {
    /// Appends the value in row `row` as JSON; a null as `null`.
    fn append(&mut self, row: usize, call: &Call<'_>, out: &mut Vec<u8>) -> Result<(), SqlError> {
        match self.values.get(self.argument.row(row)) {
            Some(value) => append_json(&self.ty, value, call.settings, false, out),
            None => {
                out.extend_from_slice(b"null");
                Ok(())
            }
        }
    }
}

/// The first argument as JSON, whose parts are in lines of their own if the second one is true.
fn in_lines(call: &Call<'_>) -> Result<ArrayRef, SqlError> {
    let mut sources = sources(call)?;
    let pretty = crate::functions::rows::Reader::<bool>::new(call, 1)?;
    each_row(call.rows, |row| {
        let Some(source) = sources.first_mut() else { return Ok(None) };
        let Some(lines) = pretty.get(row) else { return Ok(None) };
        let Some(value) = source.values.get(source.argument.row(row)) else { return Ok(None) };
        let mut out = Vec::new();
        append_json(&source.ty, value, call.settings, lines, &mut out)?;
        into_text(out).map(Some)
    })
}

/// The only argument as JSON, and a null as null.
fn converted<R: crate::functions::rows::Output>(
    call: &Call<'_>,
    finish: fn(String, &Call<'_>) -> Result<R, SqlError>,
) -> Result<ArrayRef, SqlError> {
    let mut sources = sources(call)?;
    each_row(call.rows, |row| {
        let [source] = sources.as_mut_slice() else {
            return Err(SqlError::internal("a conversion of several arguments"));
        };
        if source.argument.is_null(row) {
            return Ok(None);
        }
        let mut out = Vec::new();
        source.append(row, call, &mut out)?;
        finish(into_text(out)?, call).map(Some)
    })
}

fn built<R: crate::functions::rows::Output>(
    call: &Call<'_>,
    build: impl Fn(&mut [Source<'_>], usize, &Call<'_>) -> Result<Vec<u8>, SqlError>,
    finish: fn(String, &Call<'_>) -> Result<R, SqlError>,
) -> Result<ArrayRef, SqlError> {
    let mut sources = sources(call)?;
    each_row(call.rows, |row| finish(into_text(build(&mut sources, row, call)?)?, call).map(Some))
}

/// The stored form of a JSON text.
pub(super) fn stored(text: &str, settings: &CallSettings) -> Result<Vec<u8>, SqlError> {
    let options = InputOptions::new(settings.major, &*settings.catalog, 0);
    let mut stored = Vec::new();
    let read = read_text(&Type::Base(Base::Jsonb), text.as_bytes(), -1, &options, &mut stored);
    // What we wrote is valid, so only its size can be wrong.
    read.map_err(|error| SqlError::new(SqlState::PROGRAM_LIMIT_EXCEEDED, error.to_string()))?;
    Ok(stored)
}

fn array_text(
    sources: &mut [Source<'_>],
    row: usize,
    call: &Call<'_>,
) -> Result<Vec<u8>, SqlError> {
    let mut out = b"[".to_vec();
    for (at, source) in sources.iter_mut().enumerate() {
        if at > 0 {
            out.extend_from_slice(b", ");
        }
        source.append(row, call, &mut out)?;
    }
    out.push(b']');
    Ok(out)
}

fn invalid(message: String) -> SqlError {
    SqlError::new(SqlState::INVALID_PARAMETER_VALUE, message)
}

/// Pairs of keys and values.
fn object_text(
    sources: &mut [Source<'_>],
    row: usize,
    call: &Call<'_>,
    is_jsonb: bool,
) -> Result<Vec<u8>, SqlError> {
    if !sources.len().is_multiple_of(2) {
        let name = if is_jsonb { "jsonb_build_object()" } else { "json_build_object()" };
        let hint = format!("The arguments of {name} must consist of alternating keys and values.");
        let message = "argument list must have even number of elements".to_owned();
        return Err(invalid(message).with_hint(hint));
    }
    let mut out = b"{".to_vec();
    for (at, pair) in sources.chunks_exact_mut(2).enumerate() {
        let [key, value] = pair else { continue };
        if at > 0 {
            out.extend_from_slice(b", ");
        }
        if key.argument.is_null(row) {
            return Err(null_key(at * 2 + 1, call.settings.major, is_jsonb));
        }
        let start = out.len();
        key.append(row, call, &mut out)?;
        match key.ty {
            Type::Array(_)
            | Type::Composite(_)
            | Type::Base(Base::Record | Base::Jsonb | Base::Text(StringType::Json)) => {
                let message = "key value must be scalar, not array, composite, or json";
                return Err(invalid(message.to_owned()));
            }
            _ if out.get(start) == Some(&b'"') => {}
            _ => {
                out.insert(start, b'"');
                out.push(b'"');
            }
        }
        out.extend_from_slice(b" : ");
        value.append(row, call, &mut out)?;
    }
    out.push(b'}');
    Ok(out)
}

fn null_key(number: usize, major: u32, is_jsonb: bool) -> SqlError {
    match (is_jsonb, major) {
        (true, _) => invalid(format!("argument {number}: key must not be null")),
        (false, ..16) => invalid(format!("argument {number} cannot be null"))
            .with_hint("Object keys should be text."),
        (false, _) => {
            let message = "null value not allowed for object key";
            SqlError::new(SqlState::NULL_VALUE_NOT_ALLOWED, message)
        }
    }
}
