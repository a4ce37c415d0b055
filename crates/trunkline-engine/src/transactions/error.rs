//! Errors of transaction status lookups.
//!
//! Each message includes the file, and either the transaction or an offset, so that the damage can
//! be located without another tool.

use std::io;
use std::path::PathBuf;

use thiserror::Error;
use trunkline_aio::Cancelled;
use trunkline_aio::facade::Arc;

/// Why a transaction's status is unknown. A single damaged page can affect many rows, each of which
/// gets a clone of the error, so clones must be cheap.
#[derive(Debug, Clone, Error)]
pub enum TransactionError {
    /// A file cannot be opened or read.
    #[error("could not read \"{}\" at byte {offset}: {source}", path.display())]
    Io {
        /// The file.
        path: PathBuf,
        /// The offset in bytes.
        offset: u64,
        /// The system's error.
        source: Arc<io::Error>,
    },
    /// The transaction is so old that its part of the commit log was removed. VACUUM only removes
    /// that part after freezing all rows that refer to the transaction, so the row is damaged or
    /// was restored wrongly.
    #[error(
        "transaction {xid} has no record: \"{}\" is missing, the oldest transaction is {oldest}",
        path.display()
    )]
    NotRecorded {
        /// The transaction.
        xid: u32,
        /// The oldest transaction that the commit log covers.
        oldest: u32,
        /// The file that would record it.
        path: PathBuf,
    },
    /// A multixact is not valid.
    #[error("multixact {multi} (in \"{}\"): {problem}", path.display())]
    Multixact {
        /// Its id.
        multi: u32,
        /// The file that contains its entry, or would contain it.
        path: PathBuf,
        /// What is wrong with it.
        problem: MultixactProblem,
    },
    /// The page region has no free frame for a read.
    #[error("no frame of the page region is free for a read")]
    Memory,
    /// The session was cancelled.
    #[error("{}", Cancelled)]
    Cancelled,
}

/// What is wrong with a multixact.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Error)]
pub enum MultixactProblem {
    /// It was removed, so no row may refer to it.
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
    /// It has no first member, or too many members.
    #[error("its members are from {first} up to {next}")]
    Members {
        /// The number of its first member; 0 if that number was never written.
        first: u64,
        /// The number of the first member of the next multixact.
        next: u64,
    },
    /// A member has an unknown status.
    #[error("a member with status {status}, expected 0 to 5")]
    Status {
        /// The status.
        status: u8,
    },
}

impl From<Cancelled> for TransactionError {
    fn from(_: Cancelled) -> Self {
        Self::Cancelled
    }
}
