//! Elements of arrays by value: `array_position`, `array_remove`, `array_replace`.
//!
//! Here, nulls are equal: `array_position(ARRAY[1,NULL], NULL)` is 2.

use std::borrow::Cow;

use arrow_array::ArrayRef;
use trunkline_format::Oid;

use super::builder::ArrayBuilder;
use super::element_order::{Element, ElementOrder, Elements, element_of_argument};
use super::values::ElementReader;
use super::view::{Dimension, attribute_of};
use crate::error::{SqlError, SqlState};
use crate::functions::call::{Call, Kernel};
use crate::functions::rows::{Reader, each_row};

/// The kernels of this module.
pub(in crate::functions) const FINDING: &[(&str, Kernel)] = &[
    ("array_position", position),
    ("array_position_start", position),
    ("array_positions", positions),
    ("array_remove", |call| replaced(call, true)),
    ("array_replace", |call| replaced(call, false)),
];

/// The first element from number `from` that is the same as `wanted`.
pub(super) fn find(
    array: &Elements<'_>,
    wanted: &Element<'_>,
    order: ElementOrder,
    from: usize,
) -> Result<Option<usize>, SqlError> {
    for (at, element) in array.values.iter().enumerate().skip(from) {
        if order.is_same(element, wanted)? {
            return Ok(Some(at));
        }
    }
    Ok(None)
}

const SEARCHING: &str = "searching for elements in";

/// The first subscript of an array.
fn lower(array: &Elements<'_>) -> i32 {
    array.view.dimensions().first().map_or(1, |dimension| dimension.lower)
}

fn position(call: &Call<'_>) -> Result<ArrayRef, SqlError> {
    let order = ElementOrder::for_equality(element_of_argument(call, 0)?, call)?;
    let array = Reader::<&[u8]>::new(call, 0)?;
    let mut wanted = ElementReader::new(call, 1)?;
    let start = (call.arguments.len() > 2).then(|| Reader::<i32>::new(call, 2)).transpose()?;
    each_row(call.rows, |row| {
        let Some(array) = array.get(row) else { return Ok(None) };
        let array = Elements::parse(array, order.attribute)?;
        array.check_one_dimension(SEARCHING)?;
        let wanted = wanted.get(row).map(Cow::Borrowed);
        // As in the server, the start is not even looked at if the result is clear before.
        if array.values.is_empty() || (wanted.is_none() && !array.view.has_nulls()) {
            return Ok(None);
        }
        let start = start.as_ref().map(|start| start.get(row));
        if start == Some(None) {
            let message = "initial position must not be null";
            return Err(SqlError::new(SqlState::NULL_VALUE_NOT_ALLOWED, message));
        }
        let lower = i64::from(lower(&array));
        let skipped = start.flatten().map_or(0, |start| i64::from(start) - lower);
        let found = find(&array, &wanted, order, usize::try_from(skipped).unwrap_or(0))?;
        Ok(found.map(|at| (lower + at as i64) as i32))
    })
}

fn positions(call: &Call<'_>) -> Result<ArrayRef, SqlError> {
    const INT4: Oid = Oid(23);
    let order = ElementOrder::for_equality(element_of_argument(call, 0)?, call)?;
    let int4 = attribute_of(INT4, &*call.settings.catalog)?;
    let array = Reader::<&[u8]>::new(call, 0)?;
    let mut wanted = ElementReader::new(call, 1)?;
    each_row(call.rows, |row| {
        let Some(array) = array.get(row) else { return Ok(None) };
        let array = Elements::parse(array, order.attribute)?;
        array.check_one_dimension(SEARCHING)?;
        let wanted = wanted.get(row).map(Cow::Borrowed);
        let (mut found, mut from) = (ArrayBuilder::new(INT4, int4), 0);
        while let Some(at) = find(&array, &wanted, order, from)? {
            found.push(Some(&(lower(&array).wrapping_add(at as i32)).to_le_bytes()))?;
            from = at + 1;
        }
        found.finish_list().map(Some)
    })
}

/// Removes an element, or replaces it by the third argument.
fn replaced(call: &Call<'_>, remove: bool) -> Result<ArrayRef, SqlError> {
    let order = ElementOrder::for_equality(element_of_argument(call, 0)?, call)?;
    let array = Reader::<&[u8]>::new(call, 0)?;
    let mut wanted = ElementReader::new(call, 1)?;
    let mut replacement = (!remove).then(|| ElementReader::new(call, 2)).transpose()?;
    each_row(call.rows, |row| {
        let Some(payload) = array.get(row) else { return Ok(None) };
        let array = Elements::parse(payload, order.attribute)?;
        if remove {
            array.check_one_dimension("removing elements from")?;
        }
        let wanted = wanted.get(row).map(Cow::Borrowed);
        if find(&array, &wanted, order, 0)?.is_none() {
            return Ok(Some(payload.to_vec()));
        }
        let mut result = ArrayBuilder::new(array.view.element(), order.attribute);
        for element in &array.values {
            if !order.is_same(element, &wanted)? {
                result.push(element.as_deref())?;
            } else if let Some(replacement) = &mut replacement {
                result.push(replacement.get(row))?;
            }
        }
        if remove {
            let (size, lower) = (result.len(), lower(&array));
            return result.finish(&[Dimension { size, lower }]).map(Some);
        }
        result.finish(array.view.dimensions()).map(Some)
    })
}
