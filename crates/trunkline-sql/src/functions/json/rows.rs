//! Set-returning functions of `jsonb`: `jsonb_array_elements`, `jsonb_object_keys`, `jsonb_each`.
//!
//! For example, `jsonb_each('{"a": 1}')` gives one row with the columns `a` and `1`.

use std::sync::Arc;

use arrow_array::builder::{BinaryViewBuilder, StringViewBuilder};
use arrow_array::{Array, ArrayRef};

use super::access::text;
use super::container::{Container, Value};
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

fn rows(columns: Vec<ArrayRef>) -> Box<dyn SetRows> {
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
            column.append_option(text(*value, call)?);
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
