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
