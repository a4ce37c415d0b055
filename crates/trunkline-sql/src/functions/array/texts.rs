//! Arrays and texts: `array_to_string`, `string_to_array`, `regexp_match`, `regexp_split_to_array`.
//!
//! For example, `string_to_array('a,b,', ',')` is `{a,b,""}`, and
//! `array_to_string(ARRAY[1,NULL,3], ',')` is `1,3`.

use arrow_array::ArrayRef;
use trunkline_format::Oid;
use trunkline_format::text_output::write_text;

use super::builder::ArrayBuilder;
use super::element_order::element_of_argument;
use super::view::{ArrayView, attribute_of};
use crate::error::SqlError;
use crate::functions::call::{Call, Kernel};
use crate::functions::printing::{damaged, into_text, resolve};
use crate::functions::regex::{Compiler, Flags, refuse_global, split};
use crate::functions::rows::{Reader, each_row};

/// The kernels of this module.
pub(in crate::functions) const TEXTS: &[(&str, Kernel)] = &[
    ("array_to_text", joined),
    ("array_to_text_null", joined),
    ("text_to_array", divided),
    ("text_to_array_null", divided),
    ("regexp_match", regexp_match),
    ("regexp_match_no_flags", regexp_match),
    ("regexp_split_to_array", regexp_split),
    ("regexp_split_to_array_no_flags", regexp_split),
];

const TEXT: Oid = Oid(25);

fn joined(call: &Call<'_>) -> Result<ArrayRef, SqlError> {
    let element = element_of_argument(call, 0)?;
    let attribute = attribute_of(element, &*call.settings.catalog)?;
    let ty = resolve(element, call.settings)?;
    let (array, separator) = (Reader::<&[u8]>::new(call, 0)?, Reader::<&str>::new(call, 1)?);
    let null = optional(call, 2)?;
    let options = call.settings.text_options();
    each_row(call.rows, |row| {
        let found = array.get(row).zip(separator.get(row));
        let Some((array, separator)) = found else { return Ok(None) };
        let null = null.as_ref().and_then(|null| null.get(row));
        let (mut out, mut is_first) = (Vec::new(), true);
        for value in ArrayView::parse(array)?.elements(attribute)? {
            if value.is_none() && null.is_none() {
                continue;
            }
            if !std::mem::take(&mut is_first) {
                out.extend_from_slice(separator.as_bytes());
            }
            match value {
                Some(value) => write_text(&ty, &value, &options, &mut out).map_err(damaged)?,
                None => out.extend_from_slice(null.unwrap_or_default().as_bytes()),
            }
        }
        into_text(out).map(Some)
    })
}

/// A text argument that may be missing.
fn optional<'a>(
    call: &'a Call<'_>,
    number: usize,
) -> Result<Option<Reader<'a, &'a str>>, SqlError> {
    (call.arguments.len() > number).then(|| Reader::new(call, number)).transpose()
}

/// An array of texts.
pub(super) fn texts<'a>(
    call: &Call<'_>,
    values: impl Iterator<Item = Option<&'a str>>,
) -> Result<Vec<u8>, SqlError> {
    let attribute = attribute_of(TEXT, &*call.settings.catalog)?;
    let mut result = ArrayBuilder::new(TEXT, attribute);
    for value in values {
        result.push(value.map(str::as_bytes))?;
    }
    result.finish_list()
}

fn divided(call: &Call<'_>) -> Result<ArrayRef, SqlError> {
    let (text, separator) = (Reader::<&str>::new(call, 0)?, Reader::<&str>::new(call, 1)?);
    let null = optional(call, 2)?;
    call.check_equality()?;
    each_row(call.rows, |row| {
        let Some(text) = text.get(row) else { return Ok(None) };
        let null = null.as_ref().and_then(|null| null.get(row));
        let or_null = |part| (Some(part) != null).then_some(part);
        let parts = parts_of(text, separator.get(row));
        texts(call, parts.into_iter().map(or_null)).map(Some)
    })
}

/// The parts of a text between separators. Without a separator, each character is a part. An empty one
/// doesn't divide at all.
pub(super) fn parts_of<'a>(text: &'a str, separator: Option<&str>) -> Vec<&'a str> {
    let letter = |(at, letter): (usize, char)| text.get(at..at + letter.len_utf8());
    match separator {
        _ if text.is_empty() => Vec::new(),
        None => text.char_indices().filter_map(letter).collect(),
        Some("") => vec![text],
        Some(separator) => text.split(separator).collect(),
    }
}

/// The flags in argument 2. The second `None` is a null.
fn flags<'a>(options: &Option<Reader<'a, &'a str>>, row: usize) -> Result<Option<Flags>, SqlError> {
    match options {
        None => Ok(Some(Flags::NONE)),
        Some(options) => options.get(row).map(Flags::parse).transpose(),
    }
}

fn regexp_match(call: &Call<'_>) -> Result<ArrayRef, SqlError> {
    let mut compiler = Compiler::new(call)?;
    let (text, pattern) = (Reader::<&str>::new(call, 0)?, Reader::<&str>::new(call, 1)?);
    let options = optional(call, 2)?;
    each_row(call.rows, |row| {
        let found = text.get(row).zip(pattern.get(row));
        let Some((text, pattern)) = found else { return Ok(None) };
        let Some(flags) = flags(&options, row)? else { return Ok(None) };
        refuse_global(flags, "regexp_match()")
            .map_err(|error| error.with_hint("Use the regexp_matches function instead."))?;
        let regex = compiler.get(pattern, flags)?;
        let Some(captures) = regex.captures(text, 0)? else { return Ok(None) };
        // Without groups, the result is the whole match.
        let groups = if captures.len() > 1 { captures.get(1..) } else { captures.get(..1) };
        let groups = groups.unwrap_or_default().iter();
        let part = |range: &Option<std::ops::Range<usize>>| text.get(range.clone()?);
        texts(call, groups.map(part)).map(Some)
    })
}

fn regexp_split(call: &Call<'_>) -> Result<ArrayRef, SqlError> {
    let mut compiler = Compiler::new(call)?;
    let (text, pattern) = (Reader::<&str>::new(call, 0)?, Reader::<&str>::new(call, 1)?);
    let options = optional(call, 2)?;
    each_row(call.rows, |row| {
        let found = text.get(row).zip(pattern.get(row));
        let Some((text, pattern)) = found else { return Ok(None) };
        let Some(flags) = flags(&options, row)? else { return Ok(None) };
        refuse_global(flags, "regexp_split_to_array()")?;
        let parts = split(compiler.get(pattern, flags)?, text)?;
        texts(call, parts.into_iter().map(Some)).map(Some)
    })
}
