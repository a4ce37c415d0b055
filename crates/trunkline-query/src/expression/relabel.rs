//! Converts an array between types whose values are stored alike (`RelabelType`).

use arrow_array::{Array, ArrayRef};
use trunkline_sql::SqlError;
use trunkline_sql::values::{Carrier, ColumnBuilder, PayloadReader};

/// Copies the stored values into an array of another carrier.
pub(super) fn relabel(array: &ArrayRef, from: Carrier, to: Carrier) -> Result<ArrayRef, SqlError> {
    let mut values = PayloadReader::new(from, array)?;
    let mut column = ColumnBuilder::new(to, array.len());
    for row in 0..array.len() {
        match values.get(row) {
            None => column.append_null(),
            Some(payload) => {
                let appended = column.append(payload);
                appended.map_err(|error| SqlError::internal(error.to_string()))?;
            }
        }
    }
    Ok(column.finish())
}
