//! Errors of transaction status lookups.
//!
//! Every message says which file is affected, together with the transaction or the offset, so that
//! the user can find the damage without any other tool.

use std::io;
use std::path::PathBuf;

use thiserror::Error;
use trunkline_aio::Cancelled;
use trunkline_aio::facade::Arc;

/// Why we couldn't determine a transaction's status. Since a single damaged page can affect many
/// rows, and each of those rows gets a copy of the error, the error must be cheap to clone.
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
    /// The transaction is so old that its part of the commit log has been removed. VACUUM doesn't
    /// remove that part until it has frozen every row that refers to the transaction, so the row
    /// must be damaged or must have been restored incorrectly.
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
        /// The file that should contain the multixact's entry.
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
    /// The multixact has no first member, or too many members.
    #[error("its members are from {first} up to {next}")]
    Members {
        /// The number of the multixact's first member, or 0 if it was never written.
        first: u64,
        /// The number of the next multixact's first member.
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
