//! Set-returning functions that divide a value: `unnest`, `generate_subscripts`, `string_to_table`,
//! `regexp_matches`, `regexp_split_to_table`.
//!
//! For example, `unnest(ARRAY[1,2])` gives the rows 1 and 2. The rows are divided off at the first
//! call, because they take no more memory than the value itself.

use arrow_array::builder::StringViewBuilder;
use arrow_array::{Array, ArrayRef, Int32Array};
use std::sync::Arc;

use super::element_order::element_of_argument;
use super::texts::{parts_of, texts};
use super::values::carrier_of;
use super::view::{ArrayView, attribute_of};
use crate::error::SqlError;
use crate::functions::call::Call;
use crate::functions::printing::damaged;
use crate::functions::regex::{Compiler, Flags, matches, refuse_global, split};
use crate::functions::rows::Reader;
use crate::functions::set_rows::{NoRows, SetFunction, SetRows};
use crate::values::{Carrier, ColumnBuilder};

/// The functions of this module.
pub(in crate::functions) const SETS: &[(&str, SetFunction)] = &[
    ("_pg_expandarray(anyarray)", numbered),
    ("array_unnest", unnest),
    ("generate_subscripts", subscripts),
    ("generate_subscripts_nodir", subscripts),
    ("text_to_table", string_rows),
    ("text_to_table_null", string_rows),
    ("regexp_matches", regexp_rows),
    ("regexp_matches_no_flags", regexp_rows),
    ("regexp_split_to_table", split_rows),
    ("regexp_split_to_table_no_flags", split_rows),
];

/// Rows that have been computed.
#[derive(Debug)]
struct Rows {
    columns: Vec<ArrayRef>,
    at: usize,
}

impl SetRows for Rows {
    fn next_rows(&mut self, rows_max: usize) -> Result<Option<Vec<ArrayRef>>, SqlError> {
        let length = self.columns.first().map_or(0, |column| column.len());
        let count = rows_max.min(length - self.at);
        if count == 0 {
            return Ok(None);
        }
        let rows = self.columns.iter().map(|column| column.slice(self.at, count)).collect();
        self.at += count;
        Ok(Some(rows))
    }
}

fn rows(column: ArrayRef) -> Box<dyn SetRows> {
    Box::new(Rows { columns: vec![column], at: 0 })
}

fn unnest(call: &Call<'_>, row: usize) -> Result<Box<dyn SetRows>, SqlError> {
    Ok(match elements(call, row)? {
        Some(column) => rows(column),
        None => Box::new(NoRows),
    })
}

/// `information_schema._pg_expandarray`: the elements with their numbers from 1.
fn numbered(call: &Call<'_>, row: usize) -> Result<Box<dyn SetRows>, SqlError> {
    let Some(column) = elements(call, row)? else { return Ok(Box::new(NoRows)) };
    // An array has fewer than 2^31 elements.
    let numbers = Int32Array::from_iter_values((1..).take(column.len()));
    Ok(Box::new(Rows { columns: vec![column, Arc::new(numbers)], at: 0 }))
}

/// The elements of the array that is the first argument.
fn elements(call: &Call<'_>, row: usize) -> Result<Option<ArrayRef>, SqlError> {
    let Some(array) = Reader::<&[u8]>::new(call, 0)?.get(row) else { return Ok(None) };
    let element = element_of_argument(call, 0)?;
    let attribute = attribute_of(element, &*call.settings.catalog)?;
    let values = ArrayView::parse(array)?.elements(attribute)?;
    let mut column = ColumnBuilder::new(carrier_of(element, call)?, values.len());
    for value in values {
        match value {
            Some(value) => column.append(&value).map_err(damaged)?,
            None => column.append_null(),
        }
    }
    Ok(Some(column.finish()))
}

/// The subscripts of a dimension, or the same in reverse.
fn subscripts(call: &Call<'_>, row: usize) -> Result<Box<dyn SetRows>, SqlError> {
    let array = Reader::<&[u8]>::new(call, 0)?.get(row);
    let number = Reader::<i32>::new(call, 1)?.get(row);
    let reverse = match call.arguments.len() {
        3 => Reader::<bool>::new(call, 2)?.get(row),
        _ => Some(false),
    };
    let (Some(array), Some(number), Some(reverse)) = (array, number, reverse) else {
        return Ok(Box::new(NoRows));
    };
    let view = ArrayView::parse(array)?;
    let at = usize::try_from(number).ok().and_then(|number| number.checked_sub(1));
    let Some(dimension) = at.and_then(|at| view.dimensions().get(at)) else {
        return Ok(Box::new(NoRows));
    };
    let range = dimension.lower..=dimension.upper();
    let numbers: Vec<i32> = if reverse { range.rev().collect() } else { range.collect() };
    Ok(rows(Arc::new(Int32Array::from(numbers))))
}

/// A column of texts.
fn text_rows<'a>(values: impl Iterator<Item = Option<&'a str>>) -> Box<dyn SetRows> {
    let mut column = StringViewBuilder::new();
    values.for_each(|value| column.append_option(value));
    rows(Arc::new(column.finish()))
}

fn string_rows(call: &Call<'_>, row: usize) -> Result<Box<dyn SetRows>, SqlError> {
    let text = |number| -> Result<Option<&str>, SqlError> {
        Ok(match call.arguments.len() > number {
            true => Reader::<&str>::new(call, number)?.get(row),
            false => None,
        })
    };
    call.check_equality()?;
    let Some(subject) = text(0)? else { return Ok(Box::new(NoRows)) };
    let null = text(2)?;
    let parts = parts_of(subject, text(1)?);
    Ok(text_rows(parts.into_iter().map(|part| (Some(part) != null).then_some(part))))
}

/// The text, the pattern and the flags; `None` if any is null.
fn regexp_arguments<'a>(
    call: &'a Call<'_>,
    row: usize,
) -> Result<Option<(&'a str, &'a str, Flags)>, SqlError> {
    let text = |number| Ok::<_, SqlError>(Reader::<&str>::new(call, number)?.get(row));
    let (Some(subject), Some(pattern)) = (text(0)?, text(1)?) else { return Ok(None) };
    let flags = match call.arguments.len() {
        3 => text(2)?.map(Flags::parse).transpose()?,
        _ => Some(Flags::NONE),
    };
    Ok(flags.map(|flags| (subject, pattern, flags)))
}

/// A row for each match: an array of its groups.
fn regexp_rows(call: &Call<'_>, row: usize) -> Result<Box<dyn SetRows>, SqlError> {
    let Some((text, pattern, flags)) = regexp_arguments(call, row)? else {
        return Ok(Box::new(NoRows));
    };
    let mut compiler = Compiler::new(call)?;
    let regex = compiler.get(pattern, flags.once())?;
    let mut column = ColumnBuilder::new(Carrier::Bytes, 0);
    for captures in matches(regex, text, flags.global)? {
        let groups = if captures.len() > 1 { captures.get(1..) } else { captures.get(..1) };
        let groups = groups.unwrap_or_default().iter();
        let array = texts(call, groups.map(|range| text.get(range.clone()?)))?;
        column.append(&array).map_err(damaged)?;
    }
    Ok(rows(column.finish()))
}

fn split_rows(call: &Call<'_>, row: usize) -> Result<Box<dyn SetRows>, SqlError> {
    let Some((text, pattern, flags)) = regexp_arguments(call, row)? else {
        return Ok(Box::new(NoRows));
    };
    refuse_global(flags, "regexp_split_to_table()")?;
    let mut compiler = Compiler::new(call)?;
    let parts = split(compiler.get(pattern, flags)?, text)?;
    Ok(text_rows(parts.into_iter().map(Some)))
}
