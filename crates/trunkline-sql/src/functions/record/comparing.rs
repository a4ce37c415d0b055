//! Comparisons of rows as values: `record_eq` and its like.
//!
//! Columns are compared from the left, and the first difference decides. Two nulls are equal, and a
//! null is greater than anything else. For example, `ROW(1, NULL) = ROW(1, NULL)` between values of the
//! type `record` is true.

use std::cmp::Ordering;

use arrow_array::ArrayRef;
use trunkline_format::text_output::{RowTypes, record_columns, row_fields};

use super::key::ValueKeys;
use crate::error::{SqlError, SqlState};
use crate::functions::call::{Call, Kernel};
use crate::functions::printing::damaged;
use crate::functions::rows::{Output, binary};

/// The kernels of this module.
pub(in crate::functions) const COMPARING: &[(&str, Kernel)] = &[
    ("record_eq", |call| compared(call, false, |_, _, order| order.is_eq())),
    ("record_ne", |call| compared(call, false, |_, _, order| order.is_ne())),
    ("record_lt", |call| compared(call, true, |_, _, order| order.is_lt())),
    ("record_le", |call| compared(call, true, |_, _, order| order.is_le())),
    ("record_gt", |call| compared(call, true, |_, _, order| order.is_gt())),
    ("record_ge", |call| compared(call, true, |_, _, order| order.is_ge())),
    ("btrecordcmp", |call| compared(call, true, |_, _, order| order as i32)),
    ("record_larger", |call| {
        compared(call, true, |a, b, order| if order.is_gt() { a.to_vec() } else { b.to_vec() })
    }),
    ("record_smaller", |call| {
        compared(call, true, |a, b, order| if order.is_lt() { a.to_vec() } else { b.to_vec() })
    }),
];

fn compared<R: Output>(
    call: &Call<'_>,
    order: bool,
    result: impl Fn(&[u8], &[u8], Ordering) -> R,
) -> Result<ArrayRef, SqlError> {
    let mut types = (RowTypes::default(), RowTypes::default());
    let mut keys = ValueKeys::new(call.settings, order);
    binary(call, |a: &[u8], b: &[u8]| {
        let found = compare(call, &mut types, &mut keys, (a, b))?;
        Ok(result(a, b, found))
    })
}

/// Compares two rows. Columns of different types are an error, but only if no column before them
/// differs.
fn compare(
    call: &Call<'_>,
    types: &mut (RowTypes, RowTypes),
    keys: &mut ValueKeys<'_>,
    (left, right): (&[u8], &[u8]),
) -> Result<Ordering, SqlError> {
    let catalog = &*call.settings.catalog;
    let records = (types.0.of(left, catalog), types.1.of(right, catalog));
    let records = (records.0.map_err(damaged)?, records.1.map_err(damaged)?);
    keys.check_columns(&records.0, &record_columns(left).map_err(damaged)?)?;
    keys.check_columns(&records.1, &record_columns(right).map_err(damaged)?)?;
    let lefts = row_fields(left, &records.0).map_err(damaged)?;
    let rights = row_fields(right, &records.1).map_err(damaged)?;
    let (mut a, mut b) = (Vec::new(), Vec::new());
    for (number, (left, right)) in (1..).zip(lefts.iter().zip(&rights)) {
        if left.oid != right.oid {
            let names = [left.oid, right.oid].map(|oid| type_name(call, oid));
            let [left, right] = names;
            let message = format!(
                "cannot compare dissimilar column types {left} and {right} at record column {number}"
            );
            return Err(SqlError::new(SqlState::DATATYPE_MISMATCH, message));
        }
        keys.check_known(left.oid)?;
        let found = match (&left.value, &right.value) {
            (Some(one), Some(other)) => {
                a.clear();
                b.clear();
                keys.append(left.ty, one, trunkline_format::Oid(100), &mut a)?;
                keys.append(right.ty, other, trunkline_format::Oid(100), &mut b)?;
                a.cmp(&b)
            }
            (one, other) => one.is_none().cmp(&other.is_none()),
        };
        if found.is_ne() {
            return Ok(found);
        }
    }
    if lefts.len() != rights.len() {
        let message = "cannot compare record types with different numbers of columns";
        return Err(SqlError::new(SqlState::DATATYPE_MISMATCH, message));
    }
    Ok(Ordering::Equal)
}

/// A type's name in SQL.
fn type_name(call: &Call<'_>, oid: trunkline_format::Oid) -> String {
    match call.settings.session() {
        Ok(session) => session.names().type_name(oid),
        Err(_) => oid.to_string(),
    }
}
