//! **Set-returning functions**: a call gives any number of rows.
//!
//! A function is called once for each input row and returns its rows in batches, so a series of a
//! billion numbers needs no memory.
//!
//! To add a function, list its `prosrc` in the `SETS` of its area, with a [`SetFunction`] that returns
//! a [`SetRows`]. A function that returns rows, such as `pg_get_keywords()`, gives an array for each
//! of its output parameters, in order and in the carriers of their types. `pg_proc` has their names
//! and types, so nothing else must be declared.

use std::fmt;

use arrow_array::ArrayRef;

use super::call::Call;
use crate::error::SqlError;

/// The rows of one call.
pub trait SetRows: Send + fmt::Debug {
    /// The next rows, at most `rows_max` of them: an array for each column. `None` at the end.
    ///
    /// # Errors
    /// Those of the function.
    fn next_rows(&mut self, rows_max: usize) -> Result<Option<Vec<ArrayRef>>, SqlError>;
}

/// Calls a function with the arguments of row `row`. A strict function gives no rows if an argument is
/// null.
pub type SetFunction = fn(&Call<'_>, row: usize) -> Result<Box<dyn SetRows>, SqlError>;

/// A call without rows.
#[derive(Debug)]
pub struct NoRows;

impl SetRows for NoRows {
    fn next_rows(&mut self, _: usize) -> Result<Option<Vec<ArrayRef>>, SqlError> {
        Ok(None)
    }
}

/// Rows that have all been made, returned in parts.
#[derive(Debug)]
pub(crate) struct AllRows {
    columns: Vec<ArrayRef>,
    next: usize,
}

impl AllRows {
    /// These columns.
    pub(crate) fn new(columns: Vec<ArrayRef>) -> Self {
        Self { columns, next: 0 }
    }
}

impl SetRows for AllRows {
    fn next_rows(&mut self, rows_max: usize) -> Result<Option<Vec<ArrayRef>>, SqlError> {
        let count = self.columns.first().map_or(0, |column| column.len());
        let rows = rows_max.min(count.saturating_sub(self.next));
        if rows == 0 {
            return Ok(None);
        }
        let part = self.columns.iter().map(|column| column.slice(self.next, rows)).collect();
        self.next += rows;
        Ok(Some(part))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use arrow_array::Int32Array;
    use arrow_array::cast::AsArray;
    use arrow_array::types::Int32Type;
    use std::sync::Arc;

    #[test]
    fn all_rows_are_returned_in_parts() {
        let column: ArrayRef = Arc::new(Int32Array::from_iter_values(0..5));
        let mut rows = AllRows::new(vec![column]);
        let mut parts = Vec::new();
        while let Some(part) = rows.next_rows(2).expect("no error") {
            parts.push(part[0].as_primitive::<Int32Type>().values().to_vec());
        }
        assert_eq!(parts, [vec![0, 1], vec![2, 3], vec![4]]);
    }
}
