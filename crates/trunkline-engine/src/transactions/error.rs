//! Why the fate of a transaction cannot be known.
//! Texts name the file, and the transaction or the offset.

use std::fmt;
use std::io;
use std::path::PathBuf;

use trunkline_aio::Cancelled;
use trunkline_aio::sync::Arc;

/// See the module. Clones are cheap: one damaged page can leave many rows undecided.
#[derive(Debug, Clone)]
pub enum TransactionError {
    /// A file cannot be opened or read.
    Io {
        /// The file.
        path: PathBuf,
        /// Where, in bytes.
        offset: u64,
        /// The system's answer.
        source: Arc<io::Error>,
    },
    /// A transaction so old that its part of the commit log was removed: no row may name it.
    NotRecorded {
        /// The transaction.
        xid: u32,
        /// The oldest one that has a record.
        oldest: u32,
        /// The file that it would be in.
        path: PathBuf,
    },
    /// A multixact that cannot be.
    Multixact {
        /// Its number.
        multi: u32,
        /// The file that its entry is in, or would be.
        path: PathBuf,
        /// What is wrong with it.
        problem: MultixactProblem,
    },
    /// The page region has no frame left for a read.
    Memory,
    /// The session was cancelled.
    Cancelled,
}

/// What is wrong with a multixact.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum MultixactProblem {
    /// It was removed: no row may name it.
    TooOld {
        /// The oldest there is.
        oldest: u32,
    },
    /// It was not made yet.
    TooNew {
        /// The next that will be made.
        next: u32,
    },
    /// Its members begin nowhere, or are more than can be.
    Members {
        /// Number of its first member; 0 if that was never written.
        first: u64,
        /// Number of the next multixact's first member.
        next: u64,
    },
    /// A member with a status that has no meaning.
    Status {
        /// The status, expected 0 to 5.
        status: u8,
    },
}

impl fmt::Display for TransactionError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Io { path, offset, source } => {
                write!(f, "could not read \"{}\" at byte {offset}: {source}", path.display())
            }
            Self::NotRecorded { xid, oldest, path } => write!(
                f,
                "transaction {xid} has no record: \"{}\" is missing, the oldest transaction is \
                 {oldest}",
                path.display()
            ),
            Self::Multixact { multi, path, problem } => {
                write!(f, "multixact {multi} (in \"{}\"): ", path.display())?;
                problem.fmt(f)
            }
            Self::Memory => f.write_str("no frame of the page region is free for a read"),
            Self::Cancelled => Cancelled.fmt(f),
        }
    }
}

impl fmt::Display for MultixactProblem {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::TooOld { oldest } => write!(f, "does no longer exist, the oldest is {oldest}"),
            Self::TooNew { next } => write!(f, "does not exist yet, the next is {next}"),
            Self::Members { first, next } => {
                write!(f, "its members are from {first} up to {next}")
            }
            Self::Status { status } => {
                write!(f, "a member with status {status}, expected 0 to 5")
            }
        }
    }
}

impl std::error::Error for TransactionError {
    fn source(&self) -> Option<&(dyn std::error::Error + 'static)> {
        match self {
            Self::Io { source, .. } => Some(&**source),
            _ => None,
        }
    }
}

impl From<Cancelled> for TransactionError {
    fn from(_: Cancelled) -> Self {
        Self::Cancelled
    }
}
