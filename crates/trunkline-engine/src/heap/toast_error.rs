//! Errors of TOAST values.
//!
//! The messages name the TOAST table and the value, and if possible also the chunk.

use std::path::Path;

use thiserror::Error;
use trunkline_aio::facade::Arc;
use trunkline_format::deform::ColumnError;
use trunkline_format::varlena::VarlenaError;
use trunkline_format::{Oid, Tid};

use super::error::HeapError;
use crate::btree::BtreeError;
use crate::pool::ReadError;
use crate::transactions::{SlruFault, TransactionError};

/// A TOAST value that is not available. Clones are cheap.
#[derive(Debug, Clone, Error)]
#[error("TOAST value {value_id} of TOAST table {relation}: {problem}")]
pub struct ToastError {
    /// The OID of the TOAST table, from the TOAST pointer.
    pub relation: Oid,
    /// The value id (`chunk_id`).
    pub value_id: u32,
    /// What is wrong.
    #[source]
    pub problem: ToastProblem,
}

impl ToastError {
    /// Returns the file of the TOAST table or its index that can't be used as a whole, so that other
    /// values have the same problem.
    pub fn file(&self) -> Option<&Path> {
        let error = match &self.problem {
            ToastProblem::Page(error) => match &**error {
                HeapError::Read(error) => error,
                _ => return None,
            },
            ToastProblem::Index(error) => match &**error {
                BtreeError::Read(error) => error,
                BtreeError::Corrupt { .. } => return None,
            },
            _ => return None,
        };
        match error {
            ReadError::Storage(error) => Some(error.path()),
            _ => None,
        }
    }

    /// Returns the file of the commit log or of multixacts that is at fault, if it isn't the value.
    pub fn file_fault(&self) -> Option<&SlruFault> {
        match &self.problem {
            ToastProblem::Transaction { error, .. } => error.file_fault(),
            _ => None,
        }
    }
}

/// What is wrong with a TOAST value.
#[derive(Debug, Clone, Error)]
pub enum ToastProblem {
    /// The row has a TOAST pointer, but the table it belongs to has no TOAST table.
    #[error("the table has no TOAST table")]
    NoToastTable,
    /// The pointer refers to a TOAST table that belongs to another table.
    #[error("the table's TOAST table is {expected}")]
    OtherTable {
        /// The TOAST table of the row's table.
        expected: Oid,
    },
    /// The index could not be searched.
    #[error(transparent)]
    Index(Arc<BtreeError>),
    /// The index has more entries for this value than a valid index could have. If we didn't limit
    /// their number, a damaged index could make us use up all memory.
    #[error("the index leads to {found} rows or more, expected {chunks} chunks")]
    TooMany {
        /// The number of row versions, at least.
        found: usize,
        /// The number of chunks of the value.
        chunks: u32,
    },
    /// A page with chunks of the value could not be read.
    #[error(transparent)]
    Page(Arc<HeapError>),
    /// A chunk is missing.
    #[error("chunk {chunk} of {chunks} is missing")]
    Missing {
        /// Its number, from 0.
        chunk: u32,
        /// The number of chunks of the value.
        chunks: u32,
    },
    /// A chunk exists twice.
    #[error("chunk {chunk} exists twice, again at {tid}")]
    Twice {
        /// Its number, from 0.
        chunk: u32,
        /// Its second row.
        tid: Tid,
    },
    /// The chunk number is higher than the value's size allows.
    #[error("chunk {chunk} found at {tid}, expected 0 to {}", chunks.saturating_sub(1))]
    Number {
        /// Its number.
        chunk: i32,
        /// Its row.
        tid: Tid,
        /// The number of chunks of the value.
        chunks: u32,
    },
    /// A chunk has the wrong length.
    #[error("chunk {chunk} at {tid} has {found} bytes, expected {expected}")]
    Size {
        /// Its number, from 0.
        chunk: u32,
        /// Its row.
        tid: Tid,
        /// Its bytes.
        found: usize,
        /// The expected number of bytes.
        expected: usize,
    },
    /// The row that contains the chunk does not fit into its item or into the page.
    #[error("the row of a chunk at {tid} does not fit into its item or page")]
    Row {
        /// The row.
        tid: Tid,
    },
    /// A column of a chunk's row is invalid.
    #[error("the row of a chunk at {tid}: {error}")]
    Column {
        /// The row.
        tid: Tid,
        /// What is wrong with the column.
        error: ColumnError,
    },
    /// A column of a chunk's row is null or missing.
    #[error("the row of a chunk at {tid} has a column that is null")]
    NullColumn {
        /// The row.
        tid: Tid,
    },
    /// The bytes of a chunk are themselves compressed or stored externally, which PostgreSQL never
    /// does.
    #[error("the chunk at {tid} is itself compressed or stored elsewhere")]
    Stored {
        /// The row.
        tid: Tid,
    },
    /// The visibility of a chunk's row cannot be determined.
    #[error("the row of a chunk at {tid}: {error}")]
    Transaction {
        /// The row.
        tid: Tid,
        /// Why not.
        #[source]
        error: TransactionError,
    },
    /// The chunks together are not a valid compressed value.
    #[error(transparent)]
    Value(VarlenaError),
    /// The size of the uncompressed value is different in the compressed data and in the TOAST
    /// pointer.
    #[error("it has {found} bytes uncompressed, expected {expected}")]
    Mismatch {
        /// The size in the compressed value.
        found: u32,
        /// The size in the TOAST pointer.
        expected: u32,
    },
}
