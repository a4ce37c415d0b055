//! Why a page of a table was not changed.

use std::error::Error;

use trunkline_format::BLOCK_SIZE;
use trunkline_format::page::{HEADER_SIZE, LINE_POINTER_SIZE};
use trunkline_format::transam::XidStatus;

use crate::location::Location;
use crate::log_writer::LogWriterError;
use crate::page_change::ChangeError;
use crate::pool::{ReadError, WriteError};
use crate::storage::StorageError;

/// `MaxHeapTupleSize`: the longest tuple that fits on an empty page.
pub(super) const TUPLE_MAX: usize =
    BLOCK_SIZE - (HEADER_SIZE as usize + LINE_POINTER_SIZE as usize).next_multiple_of(8);

/// Why the status of a transaction, or a multixact, could not be read or created.
pub type StatusError = Box<dyn Error + Send + Sync>;

/// Why a page of a table was not changed.
#[derive(Debug, thiserror::Error)]
pub enum HeapWriteError {
    /// The row is too long for a page.
    #[error("row is too big: size {size}, maximum size {TUPLE_MAX}")]
    TooLong {
        /// Its length in bytes.
        size: usize,
    },
    /// There is no row version at that TID.
    #[error("{location} has no tuple")]
    NoRow {
        /// The line pointer.
        location: Location,
    },
    /// Another transaction has locked or changed a row that should be locked or changed, and may not have ended.
    #[error("{location} was locked or changed by transaction {xmax}, which may not have ended")]
    LockedBy {
        /// The line pointer.
        location: Location,
        /// The transaction.
        xmax: u32,
    },
    /// A row that should be locked or changed was changed by the same transaction, or by one that has committed.
    #[error(
        "{location} was changed by transaction {xmax}, and its old version cannot be locked or changed"
    )]
    ChangedBy {
        /// The line pointer.
        location: Location,
        /// The transaction.
        xmax: u32,
    },
    /// The tuple has a multixact with a member that has updated it, which only servers create.
    #[error(
        "{location} was updated by a member of multixact {multixact}, and changing such tuples is not supported"
    )]
    Multixact {
        /// The line pointer.
        location: Location,
        /// The multixact.
        multixact: u32,
    },
    /// The tuple is damaged.
    #[error("{location} has a damaged tuple")]
    Damaged {
        /// The line pointer.
        location: Location,
    },
    /// A heap-only tuple is dead, but no HOT chain leads to it.
    #[error("{location} has a dead heap-only tuple that is not linked to from any HOT chain")]
    NotInChain {
        /// The line pointer.
        location: Location,
    },
    /// A tuple must be frozen, but its inserter has not committed, or its deleter or updater has.
    #[error("{location} cannot be frozen: transaction {xid} is {status:?}")]
    NotFrozen {
        /// The line pointer.
        location: Location,
        /// The transaction.
        xid: u32,
        /// How it has ended.
        status: XidStatus,
    },
    /// A line pointer that should become unused is not dead.
    #[error("{location} is not dead")]
    NotDead {
        /// The line pointer.
        location: Location,
    },
    /// The status of a transaction could not be read.
    #[error("could not read the status of transaction {xid}: {source}")]
    Status {
        /// The transaction.
        xid: u32,
        /// Why.
        source: StatusError,
    },
    /// The members of a multixact could not be read.
    #[error("could not read the members of multixact {multixact}: {source}")]
    Members {
        /// The multixact.
        multixact: u32,
        /// Why.
        source: StatusError,
    },
    /// A multixact could not be created.
    #[error("could not create a multixact: {source}")]
    NewMultixact {
        /// Why.
        source: StatusError,
    },
    /// The page could not be changed.
    #[error(transparent)]
    Change(#[from] ChangeError),
    /// The page could not be read.
    #[error(transparent)]
    Read(#[from] ReadError),
    /// The table could not be extended.
    #[error(transparent)]
    Extend(#[from] WriteError),
    /// The table's length is unknown.
    #[error(transparent)]
    Storage(#[from] StorageError),
    /// The log could not be written, or the session was cancelled.
    #[error(transparent)]
    Log(#[from] LogWriterError),
}
