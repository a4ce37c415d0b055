//! What redo is given, and what it returns.

use crate::control::PgVersion;
use crate::ids::{BlockNo, Lsn};
use crate::wal::block_ref::BlockRef;
use crate::wal::fields::Fields;
use crate::wal::reader::LogRecord;
use crate::wal::record::Record;
use crate::wal::resource_manager::{ResourceManager, operation_name};

use super::error::RedoError;

/// A record that is to be applied.
#[derive(Clone, Copy, Debug)]
pub struct Change<'r> {
    /// The record.
    pub record: &'r Record<'r>,
    /// Where the record ends: the position of the pages that it changes.
    pub end: Lsn,
    /// The version of the server that wrote it.
    pub version: PgVersion,
    /// Whether the cluster has checksums or `wal_log_hints`. If it has neither, records that only set
    /// the all-visible flag of a heap page don't change its position.
    pub hints_are_logged: bool,
}

impl<'r> Change<'r> {
    /// The change that a record of the log makes.
    pub fn of(log: &'r LogRecord<'r>, hints_are_logged: bool) -> Self {
        let LogRecord { record, end, version, .. } = log;
        Self { record, end: *end, version: *version, hints_are_logged }
    }

    /// The main data of the record.
    pub(super) fn main(&self) -> Fields<'r> {
        Fields::of(self.record.main_data())
    }

    /// The number at the start of the main data: for many operations, that of a line pointer.
    pub(super) fn first_number(&self) -> Result<u16, RedoError> {
        self.main().u16().ok_or(RedoError::Short)
    }

    pub(super) fn unsupported(&self) -> Redone {
        let header = self.record.header();
        Redone::NotSupported {
            manager: ResourceManager(header.manager),
            operation: operation_name(header, self.version).unwrap_or(UNKNOWN_OPERATION),
        }
    }
}

/// The name of an operation that the version doesn't have.
pub const UNKNOWN_OPERATION: &str = "unknown";

/// What has become of a page.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Redone {
    /// It is the image in the record.
    Restored,
    /// It was made from scratch.
    Initialised,
    /// It was changed.
    Applied,
    /// It contains the change already, since its position is behind the record.
    AlreadyNewer,
    /// The record names the page, but doesn't change it.
    Unchanged,
    /// The page was all zeros or never initialised, and the record only says how to change it. That
    /// is normal if the relation is dropped or truncated later in the log.
    MissingBase,
    /// We have no rule for this operation, so the contents of the page are unknown from here on,
    /// until a later record makes it from scratch. The page is as it was.
    NotSupported {
        /// The resource manager.
        manager: ResourceManager,
        /// The name of its operation.
        operation: &'static str,
    },
}

/// The data of a block.
pub(super) fn data_of<'b>(block: &BlockRef<'b>) -> Result<&'b [u8], RedoError> {
    block.data.ok_or(RedoError::Short)
}

/// The block of another reference of the record.
pub(super) fn block_of(change: &Change<'_>, id: u8) -> Result<BlockNo, RedoError> {
    change.record.block(id).map(|block| block.block).ok_or(RedoError::NoBlock { id })
}
