//! Why a TOASTed value cannot be had.
//! Texts name the TOAST table, the value and, where there is one, the chunk.

use std::fmt;

use trunkline_aio::sync::Arc;
use trunkline_format::deform::ColumnError;
use trunkline_format::varlena::VarlenaError;
use trunkline_format::{Oid, Tid};

use super::error::HeapError;
use crate::btree::BtreeError;
use crate::transactions::TransactionError;

/// See the module. Clones are cheap.
#[derive(Debug, Clone)]
pub struct ToastError {
    /// The OID of the TOAST table that the pointer names.
    pub relation: Oid,
    /// The value's number in it.
    pub value_id: u32,
    /// What is wrong.
    pub problem: ToastProblem,
}

/// What is wrong with a TOASTed value.
#[derive(Debug, Clone)]
pub enum ToastProblem {
    /// The pointer is into the TOAST table of another table.
    OtherTable {
        /// The TOAST table of the table that the row is in; 0 if it has none.
        expected: Oid,
    },
    /// The index cannot be followed to it.
    Index(Arc<BtreeError>),
    /// The index leads to more row versions than the value can have.
    TooMany {
        /// Row versions, at least.
        found: usize,
        /// Chunks that the value has.
        chunks: u32,
    },
    /// A page with chunks of it cannot be had.
    Page(Arc<HeapError>),
    /// A chunk is not there.
    Missing {
        /// Its number, from 0.
        chunk: u32,
        /// Chunks that the value has.
        chunks: u32,
    },
    /// A chunk is there twice.
    Twice {
        /// Its number, from 0.
        chunk: u32,
        /// Where it was found again.
        tid: Tid,
    },
    /// A chunk has another number than any of the value's.
    Number {
        /// Its number.
        chunk: i32,
        /// Where it is.
        tid: Tid,
        /// Chunks that the value has.
        chunks: u32,
    },
    /// A chunk is longer or shorter than it must be.
    Size {
        /// Its number, from 0.
        chunk: u32,
        /// Where it is.
        tid: Tid,
        /// Its bytes.
        found: usize,
        /// The bytes that it should have.
        expected: usize,
    },
    /// The row of a chunk does not fit into its item or page.
    Row {
        /// Where it is.
        tid: Tid,
    },
    /// A column of a chunk's row is not sound.
    Column {
        /// Where the row is.
        tid: Tid,
        /// What is wrong with it; `None` if it is null or missing.
        error: Option<ColumnError>,
    },
    /// The bytes of a chunk are themselves compressed or elsewhere.
    Stored {
        /// Where the row is.
        tid: Tid,
    },
    /// Whether a chunk's row was ever inserted cannot be found out.
    Transaction {
        /// Where the row is.
        tid: Tid,
        /// Why not.
        error: TransactionError,
    },
    /// The chunks together are no compressed value.
    Value(VarlenaError),
    /// They are one, but another than the pointer says.
    Mismatch {
        /// Bytes that it says to have uncompressed.
        found: u32,
        /// Bytes that the pointer says.
        expected: u32,
    },
}

impl fmt::Display for ToastError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "TOAST value {} of TOAST table {}: ", self.value_id, self.relation)?;
        self.problem.fmt(f)
    }
}

impl fmt::Display for ToastProblem {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::OtherTable { expected: Oid(0) } => f.write_str("the table has no TOAST table"),
            Self::OtherTable { expected } => {
                write!(f, "the table's TOAST table is {expected}")
            }
            Self::Index(error) => error.fmt(f),
            Self::TooMany { found, chunks } => {
                write!(f, "the index leads to {found} rows or more, expected {chunks} chunks")
            }
            Self::Page(error) => error.fmt(f),
            Self::Missing { chunk, chunks } => {
                write!(f, "chunk {chunk} of {chunks} is missing")
            }
            Self::Twice { chunk, tid } => write!(f, "chunk {chunk} is there twice, again at {tid}"),
            Self::Number { chunk, tid, chunks } => {
                write!(
                    f,
                    "chunk {chunk} found at {tid}, expected 0 to {}",
                    chunks.saturating_sub(1)
                )
            }
            Self::Size { chunk, tid, found, expected } => {
                write!(f, "chunk {chunk} at {tid} has {found} bytes, expected {expected}")
            }
            Self::Row { tid } => {
                write!(f, "the row of a chunk at {tid} does not fit into its item or page")
            }
            Self::Column { tid, error: Some(error) } => {
                write!(f, "the row of a chunk at {tid}: {error}")
            }
            Self::Column { tid, error: None } => {
                write!(f, "the row of a chunk at {tid} has a column that is null")
            }
            Self::Stored { tid } => {
                write!(f, "the chunk at {tid} is itself compressed or stored elsewhere")
            }
            Self::Transaction { tid, error } => {
                write!(f, "the row of a chunk at {tid}: {error}")
            }
            Self::Value(error) => error.fmt(f),
            Self::Mismatch { found, expected } => {
                write!(f, "it has {found} bytes uncompressed, expected {expected}")
            }
        }
    }
}

impl std::error::Error for ToastError {
    fn source(&self) -> Option<&(dyn std::error::Error + 'static)> {
        match &self.problem {
            ToastProblem::Index(error) => Some(&**error),
            ToastProblem::Page(error) => Some(&**error),
            ToastProblem::Transaction { error, .. } => Some(error),
            ToastProblem::Value(error) => Some(error),
            _ => None,
        }
    }
}
