//! Errors about a table's pages and rows.
//!
//! Both kinds of errors include the location. After a page error, the scan can continue with the
//! next page. After a row error, it can continue with the next row.

use thiserror::Error;
use trunkline_aio::Cancelled;
use trunkline_format::BLOCK_SIZE;

use crate::Location;
use crate::pool::ReadError;
use crate::transactions::{SlruFault, TransactionError};

/// A page whose rows are not available.
#[derive(Debug, Error)]
pub enum HeapError {
    /// The page cannot be read.
    #[error(transparent)]
    Read(#[from] ReadError),
    /// The page is valid, but it can't belong to a table: it has a special space, like an index
    /// page, and heap pages never have one.
    #[error(
        "{location} is not a page of a table: its special space begins at {special}, expected \
         {BLOCK_SIZE}"
    )]
    NotATable {
        /// The page.
        location: Location,
        /// The start of its special space.
        special: u16,
    },
}

impl HeapError {
    /// Whether the session was cancelled. In this case nothing is damaged.
    pub fn is_cancelled(&self) -> bool {
        matches!(self, Self::Read(ReadError::Cancelled))
    }
}

impl From<Cancelled> for HeapError {
    fn from(_: Cancelled) -> Self {
        Self::Read(ReadError::Cancelled)
    }
}

/// A row that is not available. If a file is missing that records whether the row is visible, the
/// row itself may be fine, so the message doesn't call it invalid.
#[derive(Debug, Clone, Error)]
#[error("{}row in {location}: {problem}", if file_fault(problem).is_none() { "invalid " } else { "" })]
pub struct RowError {
    /// The row.
    pub location: Location,
    /// What is wrong.
    #[source]
    pub problem: RowProblem,
}

impl RowError {
    /// The file of the commit log or of multixacts that is at fault, rather than the row.
    pub fn file_fault(&self) -> Option<&SlruFault> {
        file_fault(&self.problem)
    }
}

fn file_fault(problem: &RowProblem) -> Option<&SlruFault> {
    match problem {
        RowProblem::Transaction(error) => error.file_fault(),
        RowProblem::Outside => None,
    }
}

/// What is wrong with a row.
#[derive(Debug, Clone, Error)]
pub enum RowProblem {
    /// The tuple extends beyond the end of the page, or its header contains an offset beyond the
    /// end of the tuple.
    #[error("it does not fit into its item or page")]
    Outside,
    /// Its visibility cannot be determined.
    #[error(transparent)]
    Transaction(#[from] TransactionError),
}
