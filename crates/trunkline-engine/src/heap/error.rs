//! Errors about a table's pages and rows.
//!
//! Both kinds of errors include the location. After a page error, the scan can continue with the
//! next page. After a row error, it can continue with the next row.

use thiserror::Error;
use trunkline_aio::Cancelled;
use trunkline_format::{BLOCK_SIZE, Tid};

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
#[error("{}{location}: {problem}", place(problem))]
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
        RowProblem::Outside | RowProblem::Entry(_) => None,
    }
}

fn place(problem: &RowProblem) -> &'static str {
    match problem {
        RowProblem::Entry(_) => "",
        problem if file_fault(problem).is_none() => "invalid row in ",
        _ => "row in ",
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
    /// An index entry points to something that isn't a row. The location is the entry's, if it is
    /// known, and otherwise the line pointer that it points to.
    #[error(transparent)]
    Entry(#[from] EntryProblem),
}

/// `MaxHeapTuplesPerPage`: no chain has more tuples than a page has.
pub(super) const CHAIN_MAX: usize = 291;

/// Why an index entry can't be right.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Error)]
pub enum EntryProblem {
    /// The page has fewer line pointers.
    #[error("an index entry points to row ({},{}), but the page has {count} line pointers", tid.block, tid.item)]
    Beyond {
        /// Where the entry points to.
        tid: Tid,
        /// The page's number of line pointers.
        count: u16,
    },
    /// The line pointer isn't used. VACUUM removes the entries of a row before it frees the row's line
    /// pointer.
    #[error("an index entry points to row ({},{}), which is an unused line pointer", tid.block, tid.item)]
    Unused {
        /// Where the entry points to.
        tid: Tid,
    },
    /// Heap-only tuples have no index entries.
    #[error("an index entry points to row ({},{}), which is a heap-only tuple", tid.block, tid.item)]
    HeapOnly {
        /// Where the entry points to.
        tid: Tid,
    },
    /// The chain doesn't end.
    #[error("the HOT chain of row ({},{}) has more than {CHAIN_MAX} tuples", tid.block, tid.item)]
    Endless {
        /// Where the entry points to.
        tid: Tid,
    },
}
