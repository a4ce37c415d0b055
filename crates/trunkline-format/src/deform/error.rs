//! Why a column does not fit into its tuple.
//!
//! The messages state the column and the offset. The caller adds the file, block and line pointer.

use crate::varlena::VarlenaError;
use thiserror::Error;

/// A column that does not fit into its tuple.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Error)]
#[error("column {column} at byte {offset}: {problem}")]
pub struct ColumnError {
    /// `attnum`: the column's number from 1, including dropped columns.
    pub column: u16,
    /// The end of the previous column, in bytes from the start of the row's data.
    pub offset: usize,
    /// What is wrong.
    pub problem: ColumnProblem,
}

/// What is wrong with a column.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Error)]
pub enum ColumnProblem {
    /// The tuple ends before the value does.
    #[error("the row ends before the value does")]
    PastEnd,
    /// The varlena header is damaged.
    #[error(transparent)]
    Header(#[from] VarlenaError),
    /// `attlen` is neither a size, nor -1, nor -2.
    #[error("the catalog has no sound length for it")]
    Layout,
}
