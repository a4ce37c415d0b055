//! Errors of a copy, and damage that it finds.
//!
//! A [`PlanError`] means that the request itself is wrong; we return it before reading anything
//! from the table. A [`Finding`] means that data is damaged; it includes the location of the
//! damage, and the copy can continue after it.

use std::io;

use thiserror::Error;
use trunkline_aio::facade::Arc;
use trunkline_format::Oid;
use trunkline_format::deform::ColumnError;
use trunkline_format::text_output::{UnsupportedType, ValueError};
use trunkline_format::varlena::VarlenaError;

use crate::Location;
use crate::catalog::CatalogError;
use crate::heap::{HeapError, RowError, ToastError, ToastProblem};
use crate::job::JobError;
use crate::pool::ReadError;
use crate::storage::StorageError;
use crate::transactions::SlruFault;

/// Why a table cannot be copied as requested.
#[derive(Debug, Error)]
pub enum PlanError {
    /// The catalog is damaged, or has no such object.
    #[error(transparent)]
    Catalog(#[from] CatalogError),
    /// The table has no such column.
    #[error("column \"{column}\" of relation {table} does not exist")]
    NoColumn {
        /// The table.
        table: String,
        /// The column.
        column: String,
    },
    /// A column was requested twice.
    #[error("column \"{column}\" specified more than once")]
    ColumnTwice {
        /// The column.
        column: String,
    },
    /// The column is a virtual generated column: its values are not stored, but computed by the
    /// server when they are read.
    #[error("column \"{column}\" of relation {table} is virtual: it is not stored")]
    Virtual {
        /// The table.
        table: String,
        /// The column.
        column: String,
    },
    /// A materialized view was never populated.
    #[error("materialized view {view} has not been populated")]
    NotPopulated {
        /// The view.
        view: String,
    },
    /// The values of a column cannot be printed.
    #[error("column \"{column}\" of relation {table} cannot be printed: {source}")]
    Type {
        /// The table.
        table: String,
        /// The column.
        column: String,
        /// Why not.
        source: UnsupportedType,
    },
    /// We don't know how to print the values of a column, because we don't know whether the row of
    /// its type's output function is visible.
    #[error("column \"{column}\" of relation {table} cannot be printed: {fault}")]
    Output {
        /// The table.
        table: String,
        /// The column.
        column: String,
        /// Why we don't know.
        fault: Arc<CatalogError>,
    },
}

impl PlanError {
    /// Whether the request itself is wrong, as opposed to the cluster being damaged. If so, the
    /// command-line tool exits with the status for usage errors.
    pub fn is_usage(&self) -> bool {
        match self {
            Self::Catalog(error) => error.is_usage(),
            Self::Output { .. } => false,
            _ => true,
        }
    }

    /// Advice for the user, in lower case and without a full stop.
    pub fn hint(&self) -> Option<String> {
        match self {
            Self::Catalog(error) => error.hint(),
            Self::Type { .. } | Self::Virtual { .. } => {
                Some("name the columns that are wanted, without this one".to_owned())
            }
            Self::Output { .. } => {
                Some("restore the file, or name the other columns that are wanted".to_owned())
            }
            Self::NotPopulated { .. } => {
                Some("run REFRESH MATERIALIZED VIEW on a server first".to_owned())
            }
            _ => None,
        }
    }
}

/// Damage in the data of a table.
#[derive(Debug, Error)]
pub enum Finding {
    /// A page couldn't be read, so none of its rows are available.
    #[error(transparent)]
    Page(HeapError),
    /// A row is not available.
    #[error(transparent)]
    Row(RowError),
    /// A value of a row is not available.
    #[error(
        "{}row in {location}: {}{problem}",
        if problem.is_damage() { "invalid " } else { "" },
        column.as_ref().map(|name| format!("column \"{name}\": ")).unwrap_or_default()
    )]
    Value {
        /// The row.
        location: Location,
        /// The column; `None` if it was not requested.
        column: Option<String>,
        /// What is wrong.
        #[source]
        problem: ValueProblem,
    },
}

impl Finding {
    /// If the finding was caused by a file that could not be opened or read, returns that error.
    pub fn storage(&self) -> Option<&StorageError> {
        let heap = match self {
            Self::Page(error) => error,
            Self::Value { problem: ValueProblem::Toast(error), .. } => match &error.problem {
                ToastProblem::Page(error) => error,
                _ => return None,
            },
            _ => return None,
        };
        match heap {
            HeapError::Read(ReadError::Storage(error)) => Some(error),
            _ => None,
        }
    }
}

impl Finding {
    /// Returns the file of the commit log or of multixacts that is at fault, if it isn't the row or
    /// value.
    pub fn file_fault(&self) -> Option<&SlruFault> {
        match self {
            Self::Row(error) => error.file_fault(),
            Self::Value { problem, .. } => problem.file_fault(),
            Self::Page(_) => None,
        }
    }
}

/// Rows of a table that were left out because a file of the commit log or of multixacts is missing,
/// short or unreadable, so that we don't know whether the rows are visible.
#[derive(Debug, Error)]
#[error("rows left out because their visibility is unknown: {rows}; the first: {first}")]
pub struct UnknownRows {
    /// The table.
    pub table: String,
    /// The number of rows.
    pub rows: u64,
    /// The first row that we left out.
    #[source]
    pub first: Finding,
}

/// What is wrong with a value.
#[derive(Debug, Error)]
pub enum ValueProblem {
    /// It does not fit into its row.
    #[error("{0}")]
    Column(#[from] ColumnError),
    /// Its header or its compressed bytes are damaged.
    #[error("{0}")]
    Varlena(#[from] VarlenaError),
    /// It cannot be fetched from TOAST.
    #[error("{0}")]
    Toast(ToastError),
    /// It is in a TOAST table whose rows in the catalogs are missing.
    #[error("in TOAST, but the catalogs do not describe TOAST table {0}")]
    LostToast(Oid),
    /// Its bytes are not a valid value of its type.
    #[error("{0}")]
    Value(#[from] ValueError),
    /// With this value, the line would exceed 1 GiB, which is the limit of a server's `StringInfo`.
    #[error("a line above 1 GiB")]
    Line,
}

impl ValueProblem {
    /// Whether the row or the value itself is damaged. Otherwise, we can't read the value because
    /// something else is missing.
    fn is_damage(&self) -> bool {
        !matches!(self, Self::LostToast(_)) && self.file_fault().is_none()
    }

    /// Returns the file of the commit log or of multixacts that is at fault, if it isn't the value.
    pub fn file_fault(&self) -> Option<&SlruFault> {
        match self {
            Self::Toast(error) => error.file_fault(),
            _ => None,
        }
    }
}

/// Why a copy failed.
#[derive(Debug, Error)]
pub enum CopyError {
    /// The data is damaged, and the caller did not ask us to continue after damage.
    #[error("{table}: {finding}")]
    Finding {
        /// The table.
        table: String,
        /// The damage.
        #[source]
        finding: Box<Finding>,
    },
    /// The output could not be written.
    #[error("{table}: could not write: {source}")]
    Output {
        /// The table.
        table: String,
        /// Why not.
        source: io::Error,
    },
    /// No threads or sessions could be started, or a server has started on the cluster.
    #[error(transparent)]
    Job(#[from] JobError),
}

impl CopyError {
    /// Makes an error about the output to which the table's rows are being written.
    pub(super) fn output(table: &str, source: io::Error) -> Self {
        Self::Output { table: table.to_owned(), source }
    }
}
