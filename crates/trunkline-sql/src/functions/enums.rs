//! Enums: their comparisons, `enum_first`, `enum_last` and `enum_range`.
//!
//! A value is the OID of its label. Labels sort by `pg_enum.enumsortorder`, in which order the catalog
//! lists them. For example, `'small' < 'large'` if the type was created with the labels in this order.

use std::cmp::Ordering;

use arrow_array::ArrayRef;
use trunkline_aio::facade::hash::Map;
use trunkline_format::Oid;

use super::array::{ArrayBuilder, attribute_of};
use super::call::{Call, Kernel};
use super::rows::{Output, Reader, binary, each_row};
use crate::error::{SqlError, SqlState};

/// The kernels of this module.
pub(super) const ENUMS: &[(&str, Kernel)] = &[
    ("enum_eq", |call| binary(call, |a: u32, b: u32| Ok(a == b))),
    ("enum_ne", |call| binary(call, |a: u32, b: u32| Ok(a != b))),
    ("enum_lt", |call| ordered(call, |_, _, order| order.is_lt())),
    ("enum_le", |call| ordered(call, |_, _, order| order.is_le())),
    ("enum_gt", |call| ordered(call, |_, _, order| order.is_gt())),
    ("enum_ge", |call| ordered(call, |_, _, order| order.is_ge())),
    ("enum_cmp", |call| ordered(call, |_, _, order| order as i32)),
    ("enum_larger", |call| ordered(call, |a, b, order| if order.is_gt() { a } else { b })),
    ("enum_smaller", |call| ordered(call, |a, b, order| if order.is_lt() { a } else { b })),
    ("enum_first", |call| end(call, |labels| labels.first())),
    ("enum_last", |call| end(call, |labels| labels.last())),
    ("enum_range_all", |call| range(call, |_| (None, None))),
    ("enum_range_bounds", |call| {
        let (low, high) = (Reader::<u32>::new(call, 0)?, Reader::<u32>::new(call, 1)?);
        range(call, |row| (low.get(row), high.get(row)))
    }),
];

/// A label and its OID.
type Label = (Oid, Vec<u8>);

/// The labels of the first argument's type, in their order.
fn labels(call: &Call<'_>) -> Result<Vec<Label>, SqlError> {
    let ty = call.argument_types.first().copied().unwrap_or_default();
    let labels = call.settings.catalog.enum_labels(ty);
    match labels.is_empty() {
        true => Err(SqlError::unsupported(format!(
            "comparing values of the type with OID {ty} is not supported by trunkline"
        ))),
        false => Ok(labels),
    }
}

fn ordered<R: Output>(
    call: &Call<'_>,
    result: impl Fn(u32, u32, Ordering) -> R,
) -> Result<ArrayRef, SqlError> {
    let ranks: Map<u32, usize> =
        labels(call)?.iter().enumerate().map(|(rank, (oid, _))| (oid.0, rank)).collect();
    let rank = |label: u32| {
        ranks.get(&label).copied().ok_or_else(|| {
            let message = format!("enum: there is no label with OID {label}");
            SqlError::new(SqlState::DATA_CORRUPTED, message)
        })
    };
    binary(call, |a: u32, b: u32| Ok(result(a, b, rank(a)?.cmp(&rank(b)?))))
}

/// The first or the last label, whatever the argument is.
fn end(call: &Call<'_>, find: fn(&[Label]) -> Option<&Label>) -> Result<ArrayRef, SqlError> {
    let labels = labels(call)?;
    let found = find(&labels).map(|(oid, _)| oid.0);
    each_row(call.rows, |_| Ok(found))
}

/// An array of the labels between two, which are included. A bound that is null is the first or the last
/// label.
fn range(
    call: &Call<'_>,
    bounds: impl Fn(usize) -> (Option<u32>, Option<u32>),
) -> Result<ArrayRef, SqlError> {
    let labels = labels(call)?;
    let ty = call.argument_types.first().copied().unwrap_or_default();
    let attribute = attribute_of(ty, &*call.settings.catalog)?;
    each_row(call.rows, |row| {
        let (low, high) = bounds(row);
        let place = |label: u32| labels.iter().position(|(oid, _)| oid.0 == label);
        let first = low.map_or(Some(0), place).unwrap_or(labels.len());
        let last = high.map_or(labels.len().checked_sub(1), place);
        let mut array = ArrayBuilder::new(ty, attribute);
        let count = last.map_or(0, |last| (last + 1).saturating_sub(first));
        for (oid, _) in labels.iter().skip(first).take(count) {
            array.push(Some(&oid.0.to_le_bytes()))?;
        }
        array.finish_list().map(Some)
    })
}
