//! Subscripts and slices: `array[i]`, `array[i:j]`.

use std::borrow::Cow;

use trunkline_format::deform::Attribute;

use super::builder::ArrayBuilder;
use super::view::{ArrayView, Dimension};
use crate::error::SqlError;

/// The element with these subscripts, as stored without a varlena header. `None` if it is null, if
/// there is no such element, or if the array has another number of dimensions. `attribute` are the
/// element type's length and alignment.
///
/// # Errors
/// The array is damaged.
pub fn subscript<'a>(
    payload: &'a [u8],
    attribute: Attribute,
    subscripts: &[i32],
) -> Result<Option<Cow<'a, [u8]>>, SqlError> {
    let view = ArrayView::parse(payload)?;
    if view.dimensions().len() != subscripts.len() || subscripts.is_empty() {
        return Ok(None);
    }
    let mut place = 0;
    for (dimension, &subscript) in view.dimensions().iter().zip(subscripts) {
        let at = i64::from(subscript) - i64::from(dimension.lower);
        match usize::try_from(at) {
            Ok(at) if at < dimension.size => place = place * dimension.size + at,
            _ => return Ok(None),
        }
    }
    Ok(view.elements(attribute)?.into_iter().nth(place).flatten())
}

/// A part of an array: for each dimension, the first and last subscript, where `None` is that of the
/// array. Dimensions that are not mentioned are taken whole. The result's subscripts begin at 1.
///
/// # Errors
/// The array is damaged.
pub fn slice(
    payload: &[u8],
    attribute: Attribute,
    bounds: &[(Option<i32>, Option<i32>)],
) -> Result<Vec<u8>, SqlError> {
    let view = ArrayView::parse(payload)?;
    let mut result = ArrayBuilder::new(view.element(), attribute);
    if view.is_empty() || view.dimensions().len() < bounds.len() {
        return result.finish(&[]);
    }
    // For each dimension, the places that are taken, from 0.
    let mut taken = Vec::with_capacity(view.dimensions().len());
    for (at, dimension) in view.dimensions().iter().enumerate() {
        let (first, last) = bounds.get(at).copied().unwrap_or_default();
        let first = first.map_or(dimension.lower, |first| first.max(dimension.lower));
        let last = last.map_or(dimension.upper(), |last| last.min(dimension.upper()));
        if first > last {
            return result.finish(&[]);
        }
        let place = |subscript: i32| (i64::from(subscript) - i64::from(dimension.lower)) as usize;
        taken.push((dimension.size, place(first)..=place(last)));
    }
    for (place, value) in view.elements(attribute)?.iter().enumerate() {
        let mut rest = place;
        let is_taken = taken.iter().rev().all(|(size, range)| {
            let at = rest % size;
            rest /= size;
            range.contains(&at)
        });
        if is_taken {
            result.push(value.as_deref())?;
        }
    }
    let dimension = |(_, range): &(usize, std::ops::RangeInclusive<usize>)| Dimension {
        size: range.end() - range.start() + 1,
        lower: 1,
    };
    let dimensions: Vec<_> = taken.iter().map(dimension).collect();
    result.finish(&dimensions)
}
