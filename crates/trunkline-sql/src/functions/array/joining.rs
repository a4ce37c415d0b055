//! `||` of arrays, and `array_fill`, `trim_array`.
//!
//! For example, `ARRAY[1,2] || 3` is `{1,2,3}`, and `ARRAY[[1,2]] || ARRAY[3,4]` is `{{1,2},{3,4}}`.

use std::borrow::Cow;
use std::cmp::Ordering;

use arrow_array::ArrayRef;
use trunkline_format::Oid;

use super::builder::ArrayBuilder;
use super::element_order::{Elements, element_of, element_of_argument};
use super::subscripts::slice;
use super::values::ElementReader;
use super::view::{ArrayView, DIMENSIONS_MAX, Dimension, ELEMENTS_MAX, attribute_of};
use crate::error::{SqlError, SqlState};
use crate::functions::call::{Call, Kernel};
use crate::functions::rows::{Reader, binary, each_row};

/// The kernels of this module.
pub(in crate::functions) const JOINING: &[(&str, Kernel)] = &[
    ("array_cat", concatenated),
    ("array_append", |call| extended(call, 0, 1)),
    ("array_prepend", |call| extended(call, 1, 0)),
    ("array_fill", filled),
    ("array_fill_with_lower_bounds", filled),
    ("trim_array", |call| {
        let attribute = attribute_of(element_of_argument(call, 0)?, &*call.settings.catalog)?;
        binary(call, |array: &[u8], count: i32| {
            let outer = ArrayView::parse(array)?.dimensions().first().copied();
            let outer = outer.unwrap_or(Dimension { size: 0, lower: 1 });
            if count < 0 || count as usize > outer.size {
                let size = outer.size;
                let message = format!("number of elements to trim must be between 0 and {size}");
                return Err(SqlError::new(SqlState::ARRAY_SUBSCRIPT_ERROR, message));
            }
            slice(array, attribute, &[(None, Some(outer.upper() - count))])
        })
    }),
];

/// An array, and an element before or after it.
fn extended(call: &Call<'_>, array_at: usize, element_at: usize) -> Result<ArrayRef, SqlError> {
    let oid = element_of_argument(call, array_at)?;
    let attribute = attribute_of(oid, &*call.settings.catalog)?;
    let array = Reader::<&[u8]>::new(call, array_at)?;
    let mut element = ElementReader::new(call, element_at)?;
    let is_first = element_at == 0;
    each_row(call.rows, |row| {
        let mut result = ArrayBuilder::new(oid, attribute);
        let (mut values, mut lower) = (Vec::new(), 1);
        if let Some(array) = array.get(row) {
            let array = Elements::parse(array, attribute)?;
            if array.view.dimensions().len() > 1 {
                let message = "argument must be empty or one-dimensional array";
                return Err(SqlError::new(SqlState::DATA_EXCEPTION, message));
            }
            lower = array.view.dimensions().first().map_or(1, |dimension| dimension.lower);
            values = array.values;
        }
        let new = element.get(row).map(Cow::Borrowed);
        let at = if is_first { 0 } else { values.len() };
        values.insert(at, new);
        for value in &values {
            result.push(value.as_deref())?;
        }
        let size = result.len();
        if lower.checked_add(size as i32).is_none() || (is_first && lower == i32::MIN) {
            let message = "integer out of range";
            return Err(SqlError::new(SqlState::NUMERIC_VALUE_OUT_OF_RANGE, message));
        }
        result.finish(&[Dimension { size, lower }]).map(Some)
    })
}

fn incompatible(detail: String) -> SqlError {
    SqlError::new(SqlState::ARRAY_SUBSCRIPT_ERROR, "cannot concatenate incompatible arrays")
        .with_detail(detail)
}

/// The dimensions of two arrays together. One of them may be an element of the other.
fn joined(a: &[Dimension], b: &[Dimension]) -> Result<Vec<Dimension>, SqlError> {
    let differing = || {
        let what = "Arrays with differing element dimensions are not compatible for concatenation.";
        incompatible(what.to_owned())
    };
    let inner = |dimensions: &[Dimension]| dimensions.get(1..).unwrap_or_default().to_vec();
    let (whole, part, more) = match a.len().cmp(&b.len()) {
        Ordering::Equal => (a, inner(b), b.first().map_or(0, |outer| outer.size)),
        Ordering::Less if a.len() + 1 == b.len() => (b, a.to_vec(), 1),
        Ordering::Greater if b.len() + 1 == a.len() => (a, b.to_vec(), 1),
        _ => {
            return Err(incompatible(format!(
                "Arrays of {} and {} dimensions are not compatible for concatenation.",
                a.len(),
                b.len()
            )));
        }
    };
    if inner(whole) != part {
        return Err(differing());
    }
    let mut dimensions = whole.to_vec();
    for outer in dimensions.iter_mut().take(1) {
        outer.size += more;
    }
    Ok(dimensions)
}

fn concatenated(call: &Call<'_>) -> Result<ArrayRef, SqlError> {
    let oid = element_of(call.result_type, call)?;
    let attribute = attribute_of(oid, &*call.settings.catalog)?;
    let (a, b) = (Reader::<&[u8]>::new(call, 0)?, Reader::<&[u8]>::new(call, 1)?);
    each_row(call.rows, |row| {
        let (a, b) = match (a.get(row), b.get(row)) {
            (Some(a), Some(b)) => (a, b),
            (a, b) => return Ok(a.or(b).map(<[u8]>::to_vec)),
        };
        let (left, right) = (Elements::parse(a, attribute)?, Elements::parse(b, attribute)?);
        if left.values.is_empty() || right.values.is_empty() {
            return Ok(Some(if right.values.is_empty() { a } else { b }.to_vec()));
        }
        let dimensions = joined(left.view.dimensions(), right.view.dimensions())?;
        let mut result = ArrayBuilder::new(oid, attribute);
        for value in left.values.iter().chain(&right.values) {
            result.push(value.as_deref())?;
        }
        result.finish(&dimensions).map(Some)
    })
}

/// The numbers in an array that states dimensions or lower bounds.
fn numbers(array: &[u8], call: &Call<'_>) -> Result<Vec<i32>, SqlError> {
    let elements = Elements::parse(array, attribute_of(Oid(23), &*call.settings.catalog)?)?;
    if elements.view.dimensions().len() > 1 {
        return Err(wrong_subscripts("Dimension array must be one dimensional."));
    }
    let number = |value: &Option<Cow<'_, [u8]>>| {
        let bytes = value.as_deref().and_then(<[u8]>::first_chunk);
        bytes.map(|bytes| i32::from_le_bytes(*bytes)).ok_or_else(|| {
            let message = "dimension values cannot be null";
            SqlError::new(SqlState::NULL_VALUE_NOT_ALLOWED, message)
        })
    };
    elements.values.iter().map(number).collect()
}

fn wrong_subscripts(detail: &str) -> SqlError {
    SqlError::new(SqlState::ARRAY_SUBSCRIPT_ERROR, "wrong number of array subscripts")
        .with_detail(detail)
}

fn limit(message: String) -> SqlError {
    SqlError::new(SqlState::PROGRAM_LIMIT_EXCEEDED, message)
}

fn filled(call: &Call<'_>) -> Result<ArrayRef, SqlError> {
    let oid = element_of(call.result_type, call)?;
    let attribute = attribute_of(oid, &*call.settings.catalog)?;
    let mut value = ElementReader::new(call, 0)?;
    let sizes = Reader::<&[u8]>::new(call, 1)?;
    let lowers = (call.arguments.len() > 2).then(|| Reader::<&[u8]>::new(call, 2)).transpose()?;
    each_row(call.rows, |row| {
        let lower = lowers.as_ref().map(|lowers| lowers.get(row));
        let (Some(sizes), Some(lower)) = (sizes.get(row), lower.unwrap_or(Some(&[]))) else {
            let message = "dimension array or low bound array cannot be null";
            return Err(SqlError::new(SqlState::NULL_VALUE_NOT_ALLOWED, message));
        };
        let sizes = numbers(sizes, call)?;
        check_rank(sizes.len())?;
        let lower = if lowers.is_some() { numbers(lower, call)? } else { vec![1; sizes.len()] };
        let dimensions = shape(&sizes, &lower)?;
        let mut result = ArrayBuilder::new(oid, attribute);
        let count = match dimensions.as_slice() {
            [] => 0,
            dimensions => dimensions.iter().map(|dimension| dimension.size).product(),
        };
        let value = value.get(row);
        for _ in 0..count {
            result.push(value)?;
        }
        result.finish(&dimensions).map(Some)
    })
}

fn check_rank(rank: usize) -> Result<(), SqlError> {
    if rank <= DIMENSIONS_MAX {
        return Ok(());
    }
    Err(limit(format!(
        "number of array dimensions ({rank}) exceeds the maximum allowed ({DIMENSIONS_MAX})"
    )))
}

/// The dimensions of an array to be filled.
fn shape(sizes: &[i32], lowers: &[i32]) -> Result<Vec<Dimension>, SqlError> {
    if sizes.len() != lowers.len() {
        return Err(wrong_subscripts("Low bound array has different size than dimensions array."));
    }
    let too_large = || limit(format!("array size exceeds the maximum allowed ({ELEMENTS_MAX})"));
    let mut count = 1_usize;
    let mut dimensions = Vec::with_capacity(sizes.len());
    for (&size, &lower) in sizes.iter().zip(lowers) {
        let size = usize::try_from(size).map_err(|_| too_large())?;
        count = count.saturating_mul(size);
        dimensions.push(Dimension { size, lower });
    }
    if count > ELEMENTS_MAX { Err(too_large()) } else { Ok(dimensions) }
}
