//! One page to which the records of its chain are applied.
//!
//! ```text
//!   base: nothing, zeros, or the page of the file ─▶ redo, record by record ─▶ the page
//! ```
//! A page that can't be built fails alone, and the error names the record.

use std::fmt;

use trunkline_format::wal::redo::{
    Change, RedoError, Redone, UNKNOWN_OPERATION, redo, redo_derived,
};
use trunkline_format::wal::{LogRecord, ResourceManager, SegmentName};
use trunkline_format::{BlockNo, Lsn, PageBytes, PageVerdict, set_checksum};

use super::chain_link::Part;
use crate::log_files::{LogFiles, LogFilesError};

/// Where a record is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct RecordPlace {
    /// The start of the record.
    pub lsn: Lsn,
    /// The segment that contains it.
    pub segment: SegmentName,
}

impl RecordPlace {
    /// The record that begins at `lsn`.
    pub(super) fn new(files: &LogFiles, lsn: Lsn) -> Self {
        Self { lsn, segment: files.name(lsn) }
    }
}

impl fmt::Display for RecordPlace {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} in segment {}", self.lsn, self.segment)
    }
}

/// Why a page can't be built.
#[derive(Debug, thiserror::Error)]
pub enum PageRedoError {
    /// The log has changed since it was scanned, or can't be read.
    #[error("the log at {place} can't be read again: {reason}")]
    Log {
        /// The record.
        place: RecordPlace,
        /// What went wrong.
        reason: String,
    },
    /// The list of the page's records was written to a scratch file, and can't be read again.
    #[error("the list of its records can't be read from the scratch file: {0}")]
    Spilled(std::io::Error),
    /// A file of the log can't be read.
    #[error(transparent)]
    Files(#[from] LogFilesError),
    /// The record doesn't match the page.
    #[error("the record {manager}/{operation} at {place} does not fit to the page: {source}")]
    Redo {
        /// The record.
        place: RecordPlace,
        /// Its resource manager.
        manager: ResourceManager,
        /// Its operation.
        operation: String,
        /// What is wrong.
        source: RedoError,
    },
    /// We can't replay such records.
    #[error(
        "not replayed: the record at {place} is {manager}/{operation}, for which we have no rule"
    )]
    NotSupported {
        /// The record.
        place: RecordPlace,
        /// Its resource manager.
        manager: ResourceManager,
        /// Its operation.
        operation: &'static str,
    },
    /// The page in the file is damaged, so that nothing can be applied to it.
    #[error("the page in the file, to which the log would be applied, is damaged: {verdict:?}")]
    Base {
        /// What is wrong with it.
        verdict: PageVerdict,
    },
    /// The LSN of the page in the file is past the end of the log.
    #[error(
        "the page in the file has the position {found}, but the log ends at {end}: the log and the \
         files do not belong together, or the end of the log is missing"
    )]
    Newer {
        /// The LSN of the page.
        found: Lsn,
        /// The end of the log.
        end: Lsn,
    },
    /// A record names a block that the relation can't have.
    #[error(
        "the record at {place} names block {block} of a relation of {blocks} blocks, which is \
         impossible"
    )]
    ImpossibleBlock {
        /// The first record of that block.
        place: RecordPlace,
        /// The block.
        block: BlockNo,
        /// The length of the relation without such blocks.
        blocks: BlockNo,
    },
    /// The page that the log changes was never written.
    #[error("the record at {place} changes the page, but the page is empty or missing")]
    MissingBase {
        /// The record.
        place: RecordPlace,
    },
}

impl PageRedoError {
    /// Whether nothing is known to be wrong: the record is of an index method, and a server may have a rule for
    /// it. An operation that the method doesn't have is wrong.
    pub fn lacks_rule(&self) -> bool {
        let Self::NotSupported { manager, operation, .. } = self else { return false };
        let is_known = manager.is_custom() || *operation != UNKNOWN_OPERATION;
        manager.is_of_index_method() && is_known
    }
}

/// A page to which records are applied, from its base on.
pub(super) struct PageRedo<'r> {
    /// For messages.
    files: &'r LogFiles,
    block: BlockNo,
    /// At first the page of the file, or zeros.
    page: Box<PageBytes>,
    /// Whether a record was applied to it.
    is_changed: bool,
    /// The first record that changes a page without a base.
    missing: Option<Lsn>,
}

impl<'r> PageRedo<'r> {
    /// `page` contains the base.
    pub(super) fn new(files: &'r LogFiles, block: BlockNo, page: Box<PageBytes>) -> Self {
        Self { files, block, page, is_changed: false, missing: None }
    }

    /// Applies a part of a record, the next one of the page's chain.
    pub(super) fn apply(
        &mut self,
        record: &LogRecord<'_>,
        part: Part,
        hints_are_logged: bool,
    ) -> Result<(), PageRedoError> {
        self.is_changed = true;
        match self.redo(record, part, hints_are_logged)? {
            // A later record may make the page from scratch, or an image may do.
            Redone::MissingBase => self.missing = self.missing.or(Some(record.start)),
            Redone::NotSupported { manager, operation } => {
                let place = RecordPlace::new(self.files, record.start);
                return Err(PageRedoError::NotSupported { place, manager, operation });
            }
            Redone::Restored | Redone::Initialised => self.missing = None,
            Redone::Applied | Redone::AlreadyNewer | Redone::Unchanged => {}
        }
        Ok(())
    }

    fn redo(
        &mut self,
        record: &LogRecord<'_>,
        part: Part,
        hints_are_logged: bool,
    ) -> Result<Redone, PageRedoError> {
        let change = Change::of(record, hints_are_logged);
        let id = match part {
            Part::DerivedMap | Part::TruncatedMap => {
                return Ok(redo_derived(&mut self.page, &change, self.block));
            }
            Part::Block(id) => id,
        };
        redo(&mut self.page, &change, id).map_err(|source| {
            let header = record.record.header();
            let name =
                trunkline_format::wal::resource_manager::operation_name(header, record.version);
            PageRedoError::Redo {
                place: RecordPlace::new(self.files, record.start),
                manager: ResourceManager(header.manager),
                operation: name.unwrap_or(UNKNOWN_OPERATION).to_owned(),
                source,
            }
        })
    }

    /// The page after the last record, with its checksum. A page without records stays as it is.
    pub(super) fn finish(mut self, checksums: bool) -> Result<Box<PageBytes>, PageRedoError> {
        if let Some(record) = self.missing {
            let place = RecordPlace::new(self.files, record);
            return Err(PageRedoError::MissingBase { place });
        }
        if self.is_changed {
            set_checksum(&mut self.page, self.block, checksums);
        }
        Ok(self.page)
    }
}
