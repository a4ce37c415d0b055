//! Why a table cannot be copied, or a row of it not.
//!
//! What a person asked for in vain is a [`PlanError`], and nothing was read then. What is wrong with
//! the data is a [`Finding`] with its place; a copy may go on behind it.

use std::fmt;
use std::path::PathBuf;

use trunkline_format::Tid;
use trunkline_format::deform::ColumnError;
use trunkline_format::text_output::{UnsupportedType, ValueError};
use trunkline_format::varlena::VarlenaError;

use crate::catalog::CatalogError;
use crate::heap::{HeapError, RowError, ToastError, ToastProblem};
use crate::job::JobError;
use crate::pool::ReadError;
use crate::storage::StorageError;

/// Why a table cannot be copied as it was asked for.
#[derive(Debug)]
pub enum PlanError {
    /// The catalog cannot say.
    Catalog(CatalogError),
    /// The table has no such column.
    NoColumn {
        /// The table.
        table: String,
        /// The column.
        column: String,
    },
    /// A column was asked for twice.
    ColumnTwice {
        /// The column.
        column: String,
    },
    /// The values of a column are computed when a server is asked for them, and not stored.
    Virtual {
        /// The table.
        table: String,
        /// The column.
        column: String,
    },
    /// A materialized view was never filled.
    NotPopulated {
        /// The view.
        view: String,
    },
    /// The values of a column cannot be printed.
    Type {
        /// The table.
        table: String,
        /// The column.
        column: String,
        /// Why not.
        source: UnsupportedType,
    },
}

impl PlanError {
    /// Whether the question was wrong, and not the cluster.
    pub fn is_usage(&self) -> bool {
        match self {
            Self::Catalog(error) => error.is_usage(),
            _ => true,
        }
    }

    /// What to do about it, without full stop.
    pub fn hint(&self) -> Option<String> {
        match self {
            Self::Catalog(error) => error.hint(),
            Self::Type { .. } | Self::Virtual { .. } => {
                Some("name the columns that are wanted, without this one".to_owned())
            }
            Self::NotPopulated { .. } => {
                Some("it has rows once a server was told REFRESH MATERIALIZED VIEW".to_owned())
            }
            _ => None,
        }
    }
}

impl fmt::Display for PlanError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Catalog(error) => error.fmt(f),
            Self::NoColumn { table, column } => {
                write!(f, "column \"{column}\" of relation {table} does not exist")
            }
            Self::ColumnTwice { column } => {
                write!(f, "column \"{column}\" specified more than once")
            }
            Self::Virtual { table, column } => {
                write!(f, "column \"{column}\" of relation {table} is virtual: it is not stored")
            }
            Self::NotPopulated { view } => {
                write!(f, "materialized view {view} has not been populated")
            }
            Self::Type { table, column, source } => {
                write!(f, "column \"{column}\" of relation {table} cannot be printed: {source}")
            }
        }
    }
}

impl std::error::Error for PlanError {
    fn source(&self) -> Option<&(dyn std::error::Error + 'static)> {
        match self {
            Self::Catalog(error) => Some(error),
            Self::Type { source, .. } => Some(source),
            _ => None,
        }
    }
}

impl From<CatalogError> for PlanError {
    fn from(error: CatalogError) -> Self {
        Self::Catalog(error)
    }
}

/// Something that is wrong with a table's data.
#[derive(Debug)]
pub enum Finding {
    /// A page could not be had, so none of its rows.
    Page(HeapError),
    /// A row could not be had.
    Row(RowError),
    /// A value of a row could not be had.
    Value {
        /// The file.
        path: PathBuf,
        /// The row.
        tid: Tid,
        /// The column; `None` if it is none that was asked for.
        column: Option<String>,
        /// What is wrong.
        problem: ValueProblem,
    },
}

impl Finding {
    /// The file that could not be opened or read, if that is what is wrong.
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

/// What is wrong with a value.
#[derive(Debug)]
pub enum ValueProblem {
    /// It does not fit into its row.
    Column(ColumnError),
    /// Its header or its compressed bytes are damaged.
    Varlena(VarlenaError),
    /// It cannot be fetched from TOAST.
    Toast(ToastError),
    /// Its bytes are no value of its type.
    Value(ValueError),
    /// With it, the line is longer than any that a server makes: 1 GiB.
    Line,
}

impl fmt::Display for Finding {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Page(error) => error.fmt(f),
            Self::Row(error) => error.fmt(f),
            Self::Value { path, tid: Tid { block, item }, column, problem } => {
                write!(
                    f,
                    "invalid row in block {block}, line pointer {item} of file \"{}\": ",
                    path.display()
                )?;
                if let Some(column) = column {
                    write!(f, "column \"{column}\": ")?;
                }
                problem.fmt(f)
            }
        }
    }
}

impl fmt::Display for ValueProblem {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Column(error) => error.fmt(f),
            Self::Varlena(error) => error.fmt(f),
            Self::Toast(error) => error.fmt(f),
            Self::Value(error) => error.fmt(f),
            Self::Line => f.write_str("a line above 1 GiB"),
        }
    }
}

impl std::error::Error for Finding {}
impl std::error::Error for ValueProblem {}

impl From<ColumnError> for ValueProblem {
    fn from(error: ColumnError) -> Self {
        Self::Column(error)
    }
}

impl From<VarlenaError> for ValueProblem {
    fn from(error: VarlenaError) -> Self {
        Self::Varlena(error)
    }
}

impl From<ValueError> for ValueProblem {
    fn from(error: ValueError) -> Self {
        Self::Value(error)
    }
}

/// Why a copy ended before its end.
#[derive(Debug)]
pub enum CopyError {
    /// The data is damaged, and nobody said to go on.
    Finding {
        /// The table.
        table: String,
        /// What was found.
        finding: Box<Finding>,
    },
    /// The output could not be written.
    Output {
        /// The table.
        table: String,
        /// Why not.
        source: std::io::Error,
    },
    /// There are no threads or sessions for it.
    Job(JobError),
}

impl fmt::Display for CopyError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Finding { table, finding } => write!(f, "{table}: {finding}"),
            Self::Output { table, source } => write!(f, "{table}: could not write: {source}"),
            Self::Job(error) => error.fmt(f),
        }
    }
}

impl std::error::Error for CopyError {
    fn source(&self) -> Option<&(dyn std::error::Error + 'static)> {
        match self {
            Self::Finding { finding, .. } => Some(&**finding),
            Self::Output { source, .. } => Some(source),
            Self::Job(error) => Some(error),
        }
    }
}

impl From<JobError> for CopyError {
    fn from(error: JobError) -> Self {
        Self::Job(error)
    }
}
