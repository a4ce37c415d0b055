//! Why a column of a row cannot be had.
//! Texts name the column and the place; file, block and line pointer are the caller's to say.

use crate::varlena::VarlenaError;
use std::fmt;

/// A column that does not fit into its row.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct ColumnError {
    /// The column's number, from 1, dropped ones counted (`attnum`).
    pub column: u16,
    /// Where the column before it ended, in bytes from the start of the row's data.
    pub offset: usize,
    /// What is wrong with it.
    pub problem: ColumnProblem,
}

/// What is wrong with a column.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum ColumnProblem {
    /// The row ends before the value does.
    PastEnd,
    /// The value's header leads astray.
    Header(VarlenaError),
    /// The catalog's length for the column has no meaning.
    Layout,
}

impl From<VarlenaError> for ColumnProblem {
    fn from(error: VarlenaError) -> Self {
        Self::Header(error)
    }
}

impl fmt::Display for ColumnError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "column {} at byte {}: ", self.column, self.offset)?;
        match self.problem {
            ColumnProblem::PastEnd => f.write_str("the row ends before the value does"),
            ColumnProblem::Header(error) => error.fmt(f),
            ColumnProblem::Layout => f.write_str("the catalog has no sound length for it"),
        }
    }
}

impl std::error::Error for ColumnError {}
