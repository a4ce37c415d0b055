//! What a session answers: results, notices, descriptions.

use std::sync::Arc;

use trunkline_format::Oid;
use trunkline_sql::SqlError;

use crate::encode::CopyOptions;
use crate::statement::{ResultColumn, Rows};

/// The result of a statement.
#[derive(Debug)]
pub enum Outcome {
    /// The text contained no statement.
    Empty,
    /// The statement is complete. The text is the command tag.
    Command(String),
    /// The statement returns rows.
    Rows {
        /// The rows. While they exist, the statement runs.
        rows: Rows,
        /// The command tag, to which the sender appends a blank and the number of rows, unless it is
        /// complete: `SELECT` and `FETCH` are counted.
        tag: &'static str,
    },
    /// `COPY … TO STDOUT`. The tag is `COPY` and the number of rows.
    CopyOut {
        /// The rows.
        rows: Rows,
        /// How they are sent.
        options: CopyOptions,
    },
}

impl Outcome {
    /// Whether the number of rows follows the tag of [`Outcome::Rows`].
    pub fn is_counted(tag: &str) -> bool {
        matches!(tag, "SELECT" | "FETCH")
    }
}

/// How severe a message is that isn't an error.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[expect(missing_docs, reason = "the variants are PostgreSQL's words")]
pub enum Severity {
    Notice,
    Warning,
}

impl Severity {
    /// The word that clients show.
    pub fn name(self) -> &'static str {
        match self {
            Self::Notice => "NOTICE",
            Self::Warning => "WARNING",
        }
    }
}

/// A message that isn't an error.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Notice {
    /// How severe it is.
    pub severity: Severity,
    /// Code, message, detail, hint and position.
    pub fields: SqlError,
}

/// The state of a session between two statements.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum TransactionStatus {
    /// Not in a transaction block.
    #[default]
    Idle,
    /// In a transaction block.
    InTransaction,
    /// In a transaction block of which a statement has failed.
    Failed,
}

/// What a prepared statement takes and returns.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct StatementDescription {
    /// The types of its parameters.
    pub parameters: Vec<Oid>,
    /// The columns of its rows; `None` if it returns none.
    pub columns: Option<Arc<[ResultColumn]>>,
}
