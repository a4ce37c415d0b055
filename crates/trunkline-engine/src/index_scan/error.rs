//! Why an index scan can't continue.

use thiserror::Error;

use crate::btree::BtreeError;
use crate::heap::{HeapError, RowError};

/// An error of an index scan. After a cancel, the scan can continue where it was, whichever kind of error
/// has reported it.
#[derive(Debug, Error)]
pub enum IndexScanError {
    /// A page of the table isn't available. The scan can continue behind it.
    #[error(transparent)]
    Heap(#[from] HeapError),
    /// A page of the index isn't available, or is damaged. This comes after the rows of all entries
    /// before the damage, and the scan has ended.
    #[error(transparent)]
    Index(#[from] BtreeError),
    /// A row isn't available. Only an index-only scan returns this, and can continue behind the row's
    /// page. The others return it as a row.
    #[error(transparent)]
    Row(#[from] RowError),
}

impl IndexScanError {
    /// Whether the session was cancelled. In this case nothing is damaged.
    pub fn is_cancelled(&self) -> bool {
        match self {
            Self::Heap(error) => error.is_cancelled(),
            Self::Index(error) => error.is_cancelled(),
            Self::Row(_) => false,
        }
    }
}
