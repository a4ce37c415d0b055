//! Set-returning functions of `jsonb` and `json`: `jsonb_array_elements`, `jsonb_object_keys`,
//! `jsonb_each`.
//!
//! For example, `jsonb_each('{"a": 1}')` gives one row with the columns `a` and `1`.

use std::sync::Arc;

use arrow_array::builder::{BinaryViewBuilder, StringViewBuilder};
use arrow_array::{Array, ArrayRef};
use trunkline_format::text_input::{JsonKind, JsonParts};

use super::access::text as text_of;
use super::container::{Container, Value};
use super::text;
use crate::error::{SqlError, SqlState};
use crate::functions::call::Call;
use crate::functions::printing::into_text;
use crate::functions::rows::Reader;
use crate::functions::set_rows::{NoRows, SetFunction, SetRows};

/// The functions of this module.
pub(in crate::functions) const SETS: &[(&str, SetFunction)] = &[
    ("jsonb_array_elements", |call, row| elements(call, row, false)),
    ("jsonb_array_elements_text", |call, row| elements(call, row, true)),
    ("jsonb_object_keys", |call, row| {
        let Some(container) = object(call, row, "jsonb_object_keys")? else {
            return Ok(Box::new(NoRows));
        };
        Ok(rows(vec![keys(&container)?]))
    }),
    ("jsonb_each", |call, row| pairs(call, row, false)),
    ("jsonb_each_text", |call, row| pairs(call, row, true)),
    ("json_array_elements", |call, row| json_elements(call, row, false)),
    ("json_array_elements_text", |call, row| json_elements(call, row, true)),
    ("json_object_keys", |call, row| {
        let Some(json) = json_argument(call, row)? else { return Ok(Box::new(NoRows)) };
        let found = JsonParts::parse(json, true)?;
        match found.whole.kind {
            JsonKind::Object => Ok(rows(vec![json_keys(&found)])),
            JsonKind::Array => Err(invalid("cannot call json_object_keys on an array".to_owned())),
            _ => Err(invalid("cannot call json_object_keys on a scalar".to_owned())),
        }
    }),
    ("json_each", |call, row| json_pairs(call, row, false)),
    ("json_each_text", |call, row| json_pairs(call, row, true)),
];

/// Rows that have been computed.
#[derive(Debug)]
struct Rows {
    columns: Vec<ArrayRef>,
    at: usize,
}

impl SetRows for Rows {
    fn next_rows(&mut self, rows_max: usize) -> Result<Option<Vec<ArrayRef>>, SqlError> {
        let total = self.columns.first().map_or(0, |column| column.len());
        let (start, count) = (self.at, rows_max.min(total - self.at));
        if count == 0 {
            return Ok(None);
        }
        self.at += count;
        Ok(Some(self.columns.iter().map(|column| column.slice(start, count)).collect()))
    }
}

pub(in crate::functions) fn rows(columns: Vec<ArrayRef>) -> Box<dyn SetRows> {
    Box::new(Rows { columns, at: 0 })
}

fn invalid(message: String) -> SqlError {
    SqlError::new(SqlState::INVALID_PARAMETER_VALUE, message)
}

fn argument<'a>(call: &'a Call<'_>, row: usize) -> Result<Option<Container<'a>>, SqlError> {
    Reader::<&[u8]>::new(call, 0)?.get(row).map(Container::parse).transpose()
}

/// The values as `jsonb`, or as text.
fn values(values: &[Value<'_>], call: &Call<'_>, as_text: bool) -> Result<ArrayRef, SqlError> {
    if as_text {
        let mut column = StringViewBuilder::with_capacity(values.len());
        for value in values {
            column.append_option(text_of(*value, call)?);
        }
        return Ok(Arc::new(column.finish()));
    }
    let mut column = BinaryViewBuilder::with_capacity(values.len());
    for value in values {
        column.append_value(value.to_jsonb()?);
    }
    Ok(Arc::new(column.finish()))
}

fn elements(call: &Call<'_>, row: usize, as_text: bool) -> Result<Box<dyn SetRows>, SqlError> {
    let Some(container) = argument(call, row)? else { return Ok(Box::new(NoRows)) };
    match (container.is_scalar, container.is_object) {
        (true, _) => Err(invalid("cannot extract elements from a scalar".to_owned())),
        (_, true) => Err(invalid("cannot extract elements from an object".to_owned())),
        _ => Ok(rows(vec![values(&container.values, call, as_text)?])),
    }
}

/// The argument, which must be an object.
fn object<'a>(
    call: &'a Call<'_>,
    row: usize,
    function: &str,
) -> Result<Option<Container<'a>>, SqlError> {
    let Some(container) = argument(call, row)? else { return Ok(None) };
    if container.is_object {
        return Ok(Some(container));
    }
    Err(invalid(match function {
        "jsonb_object_keys" if container.is_scalar => {
            format!("cannot call {function} on a scalar")
        }
        "jsonb_object_keys" => format!("cannot call {function} on an array"),
        _ => format!("cannot call {function} on a non-object"),
    }))
}

fn keys(container: &Container<'_>) -> Result<ArrayRef, SqlError> {
    let mut column = StringViewBuilder::with_capacity(container.keys.len());
    for key in &container.keys {
        column.append_value(into_text(key.to_vec())?);
    }
    Ok(Arc::new(column.finish()))
}

fn pairs(call: &Call<'_>, row: usize, as_text: bool) -> Result<Box<dyn SetRows>, SqlError> {
    let function = if as_text { "jsonb_each_text" } else { "jsonb_each" };
    let Some(container) = object(call, row, function)? else { return Ok(Box::new(NoRows)) };
    Ok(rows(vec![keys(&container)?, values(&container.values, call, as_text)?]))
}

fn json_argument<'a>(call: &'a Call<'_>, row: usize) -> Result<Option<&'a str>, SqlError> {
    Ok(Reader::<&str>::new(call, 0)?.get(row))
}

/// The parts of a `json` as `json`, or as text.
fn json_values(json: &str, found: &JsonParts, as_text: bool) -> ArrayRef {
    let mut column = StringViewBuilder::with_capacity(found.parts.len());
    for part in &found.parts {
        match as_text {
            true => column.append_option(text::text(json, part)),
            false => column.append_option(text::raw(json, part)),
        }
    }
    Arc::new(column.finish())
}

fn json_keys(found: &JsonParts) -> ArrayRef {
    let mut column = StringViewBuilder::with_capacity(found.parts.len());
    found.parts.iter().for_each(|part| column.append_value(&part.key));
    Arc::new(column.finish())
}

fn json_elements(call: &Call<'_>, row: usize, as_text: bool) -> Result<Box<dyn SetRows>, SqlError> {
    let function = if as_text { "json_array_elements_text" } else { "json_array_elements" };
    let Some(json) = json_argument(call, row)? else { return Ok(Box::new(NoRows)) };
    // Only texts need their escapes replaced.
    let found = JsonParts::parse(json, as_text)?;
    match found.whole.kind {
        JsonKind::Array => Ok(rows(vec![json_values(json, &found, as_text)])),
        JsonKind::Object => Err(invalid(format!("cannot call {function} on a non-array"))),
        _ => Err(invalid(format!("cannot call {function} on a scalar"))),
    }
}

fn json_pairs(call: &Call<'_>, row: usize, as_text: bool) -> Result<Box<dyn SetRows>, SqlError> {
    let Some(json) = json_argument(call, row)? else { return Ok(Box::new(NoRows)) };
    let found = JsonParts::parse(json, true)?;
    match found.whole.kind {
        JsonKind::Object => Ok(rows(vec![json_keys(&found), json_values(json, &found, as_text)])),
        JsonKind::Array => Err(invalid("cannot deconstruct an array as an object".to_owned())),
        _ => Err(invalid("cannot deconstruct a scalar".to_owned())),
    }
}
