//! Errors of transaction status lookups.
//!
//! Every message says which file is affected, together with the transaction or multixact, so that
//! the user can find the damage without any other tool. The wording follows PostgreSQL's
//! `SlruReportIOError`.
//!
//! There are two kinds of damage, which callers must treat differently. If a file is missing, too
//! short or unreadable ([`TransactionError::Status`]), we can't tell whether the rows that need it
//! are visible, although nothing is wrong with the rows themselves. All other errors concern a
//! single row or multixact.

use std::fmt;
use std::io;
use std::path::PathBuf;

use thiserror::Error;
use trunkline_aio::Cancelled;
use trunkline_aio::facade::Arc;
use trunkline_format::BLOCK_SIZE;

/// Why we couldn't determine a transaction's status. Since a single damaged page can affect many
/// rows, and each of those rows gets a copy of the error, the error must be cheap to clone.
#[derive(Debug, Clone, Error)]
pub enum TransactionError {
    /// The page that records the status does not exist or cannot be read. The server keeps that
    /// page while any row may refer to it, so the file is damaged, not the row.
    #[error("could not access status of {id}: {fault}")]
    Status {
        /// The transaction or multixact.
        id: StatusId,
        /// What is wrong with the file.
        fault: Arc<SlruFault>,
    },
    /// The transaction is so old that its part of the commit log has been removed. VACUUM doesn't
    /// remove that part until it has frozen every row that refers to the transaction, so the row
    /// must be damaged or must have been restored incorrectly.
    #[error(
        "could not access status of transaction {xid}: {fault}; the oldest transaction is {oldest}"
    )]
    NotRecorded {
        /// The transaction.
        xid: u32,
        /// The oldest transaction that the commit log covers.
        oldest: u32,
        /// Why the file does not record it.
        fault: Arc<SlruFault>,
    },
    /// A multixact is not valid.
    #[error("multixact {multi} (in \"{}\"): {problem}", path.display())]
    Multixact {
        /// Its id.
        multi: u32,
        /// The file that should contain the multixact's entry.
        path: PathBuf,
        /// What is wrong with it.
        problem: MultixactProblem,
    },
    /// The page that records the status must be read first. Only a [`Lookup`](super::Lookup)
    /// returns this, because it never reads anything.
    #[error("the status of {id} has not been read yet")]
    NotLoaded {
        /// The transaction or multixact.
        id: StatusId,
    },
    /// The session was cancelled.
    #[error("{}", Cancelled)]
    Cancelled,
}

/// The transaction or multixact whose status was looked up.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Error)]
pub enum StatusId {
    /// A transaction.
    #[error("transaction {0}")]
    Transaction(u32),
    /// A multixact. In this message, PostgreSQL calls it a transaction, too.
    #[error("multixact {0}")]
    Multixact(u32),
}

/// A page of the commit log or of multixacts that is not available.
#[derive(Debug)]
pub struct SlruFault {
    /// The file.
    pub path: PathBuf,
    /// The offset of the page in the file, in bytes.
    pub offset: u64,
    /// What is wrong.
    pub problem: SlruProblem,
}

impl SlruFault {
    /// Whether the page does not exist, as opposed to being unreadable.
    pub(super) fn is_absent(&self) -> bool {
        matches!(self.problem, SlruProblem::Missing | SlruProblem::Short { .. })
    }
}

/// If the file could not be opened, the message doesn't include the offset.
impl fmt::Display for SlruFault {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { path, offset, problem } = self;
        let path = path.display();
        match problem {
            SlruProblem::Missing | SlruProblem::Open(_) => {
                write!(f, "could not open file \"{path}\": {problem}")
            }
            SlruProblem::Short { .. } | SlruProblem::Read(_) => {
                write!(f, "could not read from file \"{path}\" at offset {offset}: {problem}")
            }
        }
    }
}

/// What is wrong with a page of the commit log or of multixacts.
#[derive(Debug, Error)]
pub enum SlruProblem {
    /// The file does not exist.
    #[error("No such file or directory")]
    Missing,
    /// The file cannot be opened.
    #[error("{0}")]
    Open(io::Error),
    /// The file ends before the end of the page.
    #[error("read {found} of {BLOCK_SIZE} bytes")]
    Short {
        /// The bytes of the page that the file has.
        found: usize,
    },
    /// The page cannot be read.
    #[error("{0}")]
    Read(io::Error),
}

/// What is wrong with a multixact.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Error)]
pub enum MultixactProblem {
    /// The multixact was removed, so no row may refer to it.
    #[error("no longer exists, the oldest is {oldest}")]
    TooOld {
        /// The oldest multixact.
        oldest: u32,
    },
    /// It has not been created yet.
    #[error("does not exist yet, the next is {next}")]
    TooNew {
        /// The next multixact to be created.
        next: u32,
    },
    /// The multixact has no members, or too many.
    #[error("its members are from {first} up to {next}")]
    Members {
        /// The number of the multixact's first member, or 0 if it was never written.
        first: u64,
        /// The number of the next multixact's first member.
        next: u64,
    },
    /// A member was never written. Only member 0 may be unused.
    #[error("its member {number} was never written")]
    NoMember {
        /// The member's number.
        number: u64,
    },
    /// A member has an unknown status.
    #[error("a member with status {status}, expected 0 to 5")]
    Status {
        /// The status.
        status: u8,
    },
}

impl TransactionError {
    /// Returns the file that is missing, short or unreadable, if that is the cause of the error.
    /// Nothing may be wrong with the row that needed it.
    pub fn file_fault(&self) -> Option<&SlruFault> {
        match self {
            Self::Status { fault, .. } => Some(fault),
            _ => None,
        }
    }
}

impl From<Cancelled> for TransactionError {
    fn from(_: Cancelled) -> Self {
        Self::Cancelled
    }
}
