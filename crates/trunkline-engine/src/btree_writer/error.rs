//! Why an entry was not inserted.

use std::path::PathBuf;

use trunkline_format::Tid;
use trunkline_format::btree::Fault;
use trunkline_format::index_tuple::IndexTupleError;

use crate::btree::BtreeError;
use crate::location::Location;
use crate::log_writer::LogWriterError;
use crate::page_change::ChangeError;
use crate::pool::{GuaranteeError, ReadError, WriteError};

/// Why an entry was not inserted, or an index not created.
#[derive(Debug, thiserror::Error)]
pub enum BtreeWriteError {
    /// We don't know the sort order of a column (its operator class or collation).
    #[error("the order of index column {column} is known to the server only")]
    UnknownOrder {
        /// The column, from 1.
        column: u16,
    },
    /// The entry doesn't have the columns of the index.
    #[error("{found} index columns found, {expected} expected")]
    Columns {
        /// The number of its columns.
        found: u16,
        /// The number of the index's columns.
        expected: usize,
    },
    /// No row has such a TID.
    #[error("{row} is not the TID of a row")]
    InvalidRow {
        /// The TID.
        row: Tid,
    },
    /// The entry can't be formed.
    #[error("{source} for index \"{}\", row {row}", index.display())]
    Entry {
        /// The row.
        row: Tid,
        /// The file of the index.
        index: PathBuf,
        /// Why.
        source: IndexTupleError,
    },
    /// The values of the entry are not what its columns say.
    #[error("the index entry of row {row} is invalid: {fault}")]
    Value {
        /// The row.
        row: Tid,
        /// What is wrong.
        fault: Fault,
    },
    /// The index was made by a server before version 12.
    #[error("{location}: B-tree version {found} found, and only version 4 can be written")]
    Version {
        /// The metapage.
        location: Location,
        /// Its version.
        found: u32,
    },
    /// The fast root is below the true root, because pages were deleted.
    #[error(
        "{location}: the fast root is block {fast_root} and the root block {root}, and writing such an index is not supported"
    )]
    FastRoot {
        /// The metapage.
        location: Location,
        /// Where searches begin.
        fast_root: u32,
        /// The root.
        root: u32,
    },
    /// The relation that is to become an index has pages.
    #[error("{location}: a new index must be empty")]
    NotEmpty {
        /// The relation.
        location: Location,
    },
    /// The row's TID falls within the range of a posting list.
    #[error("{location}: row {row} belongs into a posting list, which cannot be written yet")]
    PostingList {
        /// The posting list.
        location: Location,
        /// The row.
        row: Tid,
    },
    /// The index already has the entry.
    #[error("{location}: the entry of row {row} exists already")]
    Exists {
        /// The entry that exists.
        location: Location,
        /// The row.
        row: Tid,
    },
    /// The downlink to a page that was split is not where it must be.
    #[error("{location}: no downlink to block {child}, which was split")]
    LostParent {
        /// The page that should have the downlink.
        location: Location,
        /// The page without a downlink.
        child: u32,
    },
    /// The page has no valid split point, because some entries are over the size limit.
    #[error("{location}: no point to split the page for an entry of {size} bytes")]
    NoSplit {
        /// The page.
        location: Location,
        /// The size of the new entry in bytes.
        size: usize,
    },
    /// The last page of a level is deleted.
    #[error("{location}: the level has no page for the key")]
    EndOfLevel {
        /// The last page.
        location: Location,
    },
    /// A page can't be read, or is damaged.
    #[error(transparent)]
    Index(#[from] BtreeError),
    /// A page can't be changed.
    #[error(transparent)]
    Change(#[from] ChangeError),
    /// The index can't be extended.
    #[error(transparent)]
    Extend(#[from] WriteError),
    /// More pages have the key than can be pinned together.
    #[error(transparent)]
    Pins(#[from] GuaranteeError),
    /// The log can't be written, or the session was cancelled.
    #[error(transparent)]
    Log(#[from] LogWriterError),
}

impl From<ReadError> for BtreeWriteError {
    fn from(error: ReadError) -> Self {
        Self::Index(error.into())
    }
}
