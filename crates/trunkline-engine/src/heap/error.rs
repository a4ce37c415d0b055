//! What is damaged in a table, and where.
//! Texts name file, block and line pointer.

use std::fmt;
use std::path::PathBuf;

use trunkline_aio::Cancelled;
use trunkline_format::{BLOCK_SIZE, BlockNo, Tid};

use crate::pool::ReadError;
use crate::transactions::TransactionError;

/// A page whose rows cannot be had.
#[derive(Debug)]
pub enum HeapError {
    /// The page cannot be read.
    Read(ReadError),
    /// The page is sound, but no table's: it has a special space.
    NotATable {
        /// The file.
        path: PathBuf,
        /// The block, counted over all segments.
        block: BlockNo,
        /// Where its special space begins.
        special: u16,
    },
}

impl HeapError {
    /// Whether the session was cancelled, rather than something damaged.
    pub fn is_cancelled(&self) -> bool {
        matches!(self, Self::Read(ReadError::Cancelled))
    }
}

impl From<ReadError> for HeapError {
    fn from(error: ReadError) -> Self {
        Self::Read(error)
    }
}

impl From<Cancelled> for HeapError {
    fn from(_: Cancelled) -> Self {
        Self::Read(ReadError::Cancelled)
    }
}

impl fmt::Display for HeapError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Read(error) => error.fmt(f),
            Self::NotATable { path, block, special } => write!(
                f,
                "block {block} of file \"{}\" is no page of a table: its special space begins at \
                 {special}, expected {BLOCK_SIZE}",
                path.display()
            ),
        }
    }
}

impl std::error::Error for HeapError {
    fn source(&self) -> Option<&(dyn std::error::Error + 'static)> {
        match self {
            Self::Read(error) => Some(error),
            Self::NotATable { .. } => None,
        }
    }
}

/// A row that cannot be had.
#[derive(Debug, Clone)]
pub struct RowError {
    /// The file.
    pub path: PathBuf,
    /// The block, counted over all segments, and the line pointer.
    pub tid: Tid,
    /// What is wrong.
    pub problem: RowProblem,
}

/// What is wrong with a row.
#[derive(Debug, Clone)]
pub enum RowProblem {
    /// Its bytes lie outside of the page, or its header leads outside of its bytes.
    Outside,
    /// Whether it is visible cannot be found out.
    Transaction(TransactionError),
}

impl fmt::Display for RowError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Tid { block, item } = self.tid;
        write!(
            f,
            "invalid row in block {block}, line pointer {item} of file \"{}\": ",
            self.path.display()
        )?;
        match &self.problem {
            RowProblem::Outside => f.write_str("it does not fit into its item or page"),
            RowProblem::Transaction(error) => error.fmt(f),
        }
    }
}

impl std::error::Error for RowError {
    fn source(&self) -> Option<&(dyn std::error::Error + 'static)> {
        match &self.problem {
            RowProblem::Outside => None,
            RowProblem::Transaction(error) => Some(error),
        }
    }
}
