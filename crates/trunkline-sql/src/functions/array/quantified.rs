//! `= ANY (array)`, `<> ALL (array)` and the like.
//!
//! The elements of all rows are compared in one call of the operator's kernel. Then each row's results
//! are combined, as by `OR` or `AND` of three values: `1 = ANY (ARRAY[2,NULL])` is null.

use arrow_array::builder::BooleanBuilder;
use arrow_array::cast::AsArray;
use arrow_array::{Array, ArrayRef};
use std::sync::Arc;

use super::values::{ElementReader, carrier_of};
use super::view::{ArrayView, attribute_of};
use crate::error::SqlError;
use crate::functions::call::{Argument, Call, Kernel};
use crate::functions::printing::damaged;
use crate::functions::rows::Reader;
use crate::values::ColumnBuilder;

/// Compares a value with the elements of an array, for each row. `kernel` is that of the operator's
/// function. The call is as if the function were called with the value and the array, but its argument
/// types are those of the operator: the value's and the element's. With `all`, every element must
/// satisfy the operator, otherwise at least one.
///
/// # Errors
/// Those of the operator, and if an array is damaged.
pub fn compare_with_elements(
    kernel: Kernel,
    call: &Call<'_>,
    all: bool,
) -> Result<ArrayRef, SqlError> {
    let [left_type, element_type] = call.argument_types else {
        return Err(SqlError::internal("an operator without two arguments"));
    };
    let attribute = attribute_of(*element_type, &*call.settings.catalog)?;
    let arrays = Reader::<&[u8]>::new(call, 1)?;
    let mut left = ElementReader::new(call, 0)?;
    let mut lefts = ColumnBuilder::new(carrier_of(*left_type, call)?, call.rows);
    let mut rights = ColumnBuilder::new(carrier_of(*element_type, call)?, call.rows);
    let append = |column: &mut ColumnBuilder, value: Option<&[u8]>| match value {
        Some(value) => column.append(value).map_err(damaged),
        None => {
            column.append_null();
            Ok(())
        }
    };
    // The number of elements in each row; `None` if its array is null.
    let mut counts = Vec::with_capacity(call.rows);
    for row in 0..call.rows {
        let Some(array) = arrays.get(row) else {
            counts.push(None);
            continue;
        };
        let elements = ArrayView::parse(array)?.elements(attribute)?;
        counts.push(Some(elements.len()));
        for element in &elements {
            append(&mut lefts, left.get(row))?;
            append(&mut rights, element.as_deref())?;
        }
    }
    let rows = lefts.len();
    let arguments = [Argument::column(lefts.finish()), Argument::column(rights.finish())];
    let results = kernel(&Call { arguments: &arguments, rows, ..*call })?;
    combine(&results, &counts, all)
}

/// Combines the results of each row.
fn combine(results: &ArrayRef, counts: &[Option<usize>], all: bool) -> Result<ArrayRef, SqlError> {
    let results = results.as_boolean_opt();
    let results = results.ok_or_else(|| SqlError::internal("an operator that is no condition"))?;
    let mut combined = BooleanBuilder::with_capacity(counts.len());
    let mut at = 0;
    for count in counts {
        let Some(count) = count else {
            combined.append_null();
            continue;
        };
        let (mut is_decided, mut has_null) = (false, false);
        for place in at..at + count {
            match results.is_null(place) {
                true => has_null = true,
                false => is_decided |= results.value(place) != all,
            }
        }
        at += count;
        combined.append_option(match (is_decided, has_null) {
            (true, _) => Some(!all),
            (false, true) => None,
            (false, false) => Some(all),
        });
    }
    Ok(Arc::new(combined.finish()))
}
