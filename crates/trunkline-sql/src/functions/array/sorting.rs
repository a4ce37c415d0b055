//! `array_sort` and `array_reverse`, which version 18 added.
//!
//! The elements along the first dimension are put into another order. With several dimensions, these
//! are arrays. For example, `array_sort('{{3,1},{2,5}}')` is `{{2,5},{3,1}}`.

use std::cmp::Ordering;

use arrow_array::ArrayRef;

use super::builder::ArrayBuilder;
use super::element_order::{Element, ElementOrder, element_of_argument};
use super::view::{ArrayView, attribute_of};
use crate::error::SqlError;
use crate::functions::call::{Call, Kernel};
use crate::functions::rows::{Reader, each_row, unary};

/// The kernels of this module.
pub(in crate::functions) const SORTING: &[(&str, Kernel)] = &[
    ("array_sort", |call| sorted(call)),
    ("array_sort_order", |call| sorted(call)),
    ("array_sort_order_nulls_first", |call| sorted(call)),
    ("array_reverse", |call| {
        let attribute = attribute_of(element_of_argument(call, 0)?, &*call.settings.catalog)?;
        unary(call, |array: &[u8]| {
            rearranged(array, attribute, |mut parts| {
                parts.reverse();
                Ok(parts)
            })
        })
    }),
];

/// The elements of a part of an array along its first dimension.
type Part<'a> = &'a [Element<'a>];

/// Puts the parts along the first dimension into another order.
fn rearranged(
    array: &[u8],
    attribute: trunkline_format::deform::Attribute,
    arrange: impl for<'a> FnOnce(Vec<Part<'a>>) -> Result<Vec<Part<'a>>, SqlError>,
) -> Result<Vec<u8>, SqlError> {
    let view = ArrayView::parse(array)?;
    let outer = match view.dimensions().first() {
        Some(outer) if outer.size > 1 => outer.size,
        _ => return Ok(array.to_vec()),
    };
    let elements = view.elements(attribute)?;
    let parts = elements.chunks((elements.len() / outer).max(1)).collect();
    let mut builder = ArrayBuilder::new(view.element(), attribute);
    for value in arrange(parts)?.into_iter().flatten() {
        builder.push(value.as_deref())?;
    }
    builder.finish(view.dimensions())
}

/// `array_sort(array, descending, nulls_first)`, where the last arguments may be missing. Nulls are
/// last, or first if the order is descending.
fn sorted(call: &Call<'_>) -> Result<ArrayRef, SqlError> {
    let order = ElementOrder::for_order(element_of_argument(call, 0)?, call)?;
    let arrays = Reader::<&[u8]>::new(call, 0)?;
    let count = call.arguments.len();
    let descending = if count > 1 { Some(Reader::<bool>::new(call, 1)?) } else { None };
    let nulls_first = if count > 2 { Some(Reader::<bool>::new(call, 2)?) } else { None };
    each_row(call.rows, |row| {
        let Some(array) = arrays.get(row) else { return Ok(None) };
        let flag = |reader: &Option<Reader<'_, bool>>, missing| match reader {
            Some(reader) => reader.get(row),
            None => Some(missing),
        };
        let Some(descending) = flag(&descending, false) else { return Ok(None) };
        let Some(nulls_first) = flag(&nulls_first, descending) else { return Ok(None) };
        rearranged(array, order.attribute, |parts| sort(parts, order, descending, nulls_first))
            .map(Some)
    })
}

fn sort<'a>(
    mut parts: Vec<Part<'a>>,
    order: ElementOrder,
    descending: bool,
    nulls_first: bool,
) -> Result<Vec<Part<'a>>, SqlError> {
    let mut failure = None;
    parts.sort_by(|left, right| {
        compare(left, right, order, descending, nulls_first).unwrap_or_else(|error| {
            failure = Some(error);
            Ordering::Equal
        })
    });
    failure.map_or(Ok(parts), Err)
}

/// Compares two parts. Within arrays, a null is greater than anything else.
fn compare(
    left: Part<'_>,
    right: Part<'_>,
    order: ElementOrder,
    descending: bool,
    nulls_first: bool,
) -> Result<Ordering, SqlError> {
    if let ([left], [right]) = (left, right)
        && (left.is_none() || right.is_none())
    {
        let found = left.is_none().cmp(&right.is_none());
        return Ok(if nulls_first { found.reverse() } else { found });
    }
    for (left, right) in left.iter().zip(right) {
        let found = order.compare_elements(left, right)?;
        if found.is_ne() {
            return Ok(if descending { found.reverse() } else { found });
        }
    }
    Ok(Ordering::Equal)
}
