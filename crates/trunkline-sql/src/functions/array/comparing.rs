//! Comparisons of arrays, and which elements they have in common.
//!
//! Arrays are ordered by their first different elements. If there are none, the array with fewer
//! elements is less, then the one with fewer dimensions, and so on: `ARRAY[1,2] < ARRAY[1,2,0]`.

use std::cmp::Ordering;

use arrow_array::ArrayRef;

use super::element_order::{ElementOrder, Elements, element_of_argument};
use crate::error::{SqlError, SqlState};
use crate::functions::call::{Call, Kernel};
use crate::functions::rows::binary;

/// The kernels of this module.
pub(in crate::functions) const COMPARING: &[(&str, Kernel)] = &[
    ("array_eq", |call| equality(call, true)),
    ("array_ne", |call| equality(call, false)),
    ("array_lt", |call| order(call, Ordering::is_lt)),
    ("array_le", |call| order(call, Ordering::is_le)),
    ("array_gt", |call| order(call, Ordering::is_gt)),
    ("array_ge", |call| order(call, Ordering::is_ge)),
    ("btarraycmp", |call| {
        compare_rows(call, ElementOrder::for_order, |a, b, order| Ok(compare(a, b, order)? as i32))
    }),
    ("array_larger", |call| choice(call, Ordering::is_gt)),
    ("array_smaller", |call| choice(call, Ordering::is_lt)),
    ("arraycontains", |call| compare_rows(call, ElementOrder::for_equality, has_all)),
    ("arraycontained", |call| {
        compare_rows(call, ElementOrder::for_equality, |a, b, order| has_all(b, a, order))
    }),
    ("arrayoverlap", |call| {
        compare_rows(call, ElementOrder::for_equality, |a, b, order| {
            for element in b.values.iter().filter(|element| element.is_some()) {
                if super::finding::find(a, element, order, 0)?.is_some() {
                    return Ok(true);
                }
            }
            Ok(false)
        })
    }),
];

/// Calls a function of two arrays.
fn compare_rows<R: crate::functions::rows::Output>(
    call: &Call<'_>,
    order: fn(trunkline_format::Oid, &Call<'_>) -> Result<ElementOrder, SqlError>,
    compute: impl Fn(&Elements<'_>, &Elements<'_>, ElementOrder) -> Result<R, SqlError>,
) -> Result<ArrayRef, SqlError> {
    let order = order(element_of_argument(call, 0)?, call)?;
    binary(call, |a: &[u8], b: &[u8]| {
        let (a, b) = (Elements::parse(a, order.attribute)?, Elements::parse(b, order.attribute)?);
        if a.view.element() != b.view.element() {
            let message = "cannot compare arrays of different element types";
            return Err(SqlError::new(SqlState::DATATYPE_MISMATCH, message));
        }
        compute(&a, &b, order)
    })
}

fn equality(call: &Call<'_>, wanted: bool) -> Result<ArrayRef, SqlError> {
    compare_rows(call, ElementOrder::for_equality, |a, b, order| {
        if a.view.dimensions() != b.view.dimensions() {
            return Ok(!wanted);
        }
        for (a, b) in a.values.iter().zip(&b.values) {
            if !order.is_same(a, b)? {
                return Ok(!wanted);
            }
        }
        Ok(wanted)
    })
}

fn order(call: &Call<'_>, test: fn(Ordering) -> bool) -> Result<ArrayRef, SqlError> {
    compare_rows(call, ElementOrder::for_order, |a, b, order| Ok(test(compare(a, b, order)?)))
}

/// Returns the first array if the test holds.
fn choice(call: &Call<'_>, test: fn(Ordering) -> bool) -> Result<ArrayRef, SqlError> {
    let order = ElementOrder::for_order(element_of_argument(call, 0)?, call)?;
    binary(call, |a: &[u8], b: &[u8]| {
        let left = Elements::parse(a, order.attribute)?;
        let right = Elements::parse(b, order.attribute)?;
        Ok(if test(compare(&left, &right, order)?) { a } else { b })
    })
}

/// `array_cmp`.
fn compare(a: &Elements<'_>, b: &Elements<'_>, order: ElementOrder) -> Result<Ordering, SqlError> {
    for (a, b) in a.values.iter().zip(&b.values) {
        let found = order.compare_elements(a, b)?;
        if found.is_ne() {
            return Ok(found);
        }
    }
    let (left, right) = (a.view.dimensions(), b.view.dimensions());
    let sizes = left.iter().map(|found| found.size).cmp(right.iter().map(|found| found.size));
    let lowers = left.iter().map(|found| found.lower).cmp(right.iter().map(|found| found.lower));
    let by_length = a.values.len().cmp(&b.values.len()).then(left.len().cmp(&right.len()));
    Ok(by_length.then(sizes).then(lowers))
}

/// Whether each element of `b` is in `a`. A null is in no array.
fn has_all(a: &Elements<'_>, b: &Elements<'_>, order: ElementOrder) -> Result<bool, SqlError> {
    for element in &b.values {
        if element.is_none() || super::finding::find(a, element, order, 0)?.is_none() {
            return Ok(false);
        }
    }
    Ok(true)
}
