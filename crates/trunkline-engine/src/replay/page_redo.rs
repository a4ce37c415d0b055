//! Builds one page: takes its base and replays the records of its chain.
//!
//! ```text
//!   chain ─▶ record bytes from the log ─┐
//!   base: nothing, zeros, or the file ──┴─▶ redo, record by record ─▶ the page, with its checksum
//! ```
//! A page that can't be built fails alone, and the error names the record.

use std::num::NonZeroU64;

use trunkline_format::wal::redo::{Change, RedoError, Redone, redo, redo_derived};
use trunkline_format::wal::{
    LOG_PAGE_SIZE, LogChunk, LogEvent, LogReader, LogRecord, ResourceManager,
};
use trunkline_format::{BlockNo, Lsn, PageBytes, PageVerdict};

use super::chain_link::{ChainLink, Part};
use crate::log_files::{LogFiles, LogFilesError, SegmentCursor};

/// How much of the log is read at once for a page: an image and the page that it may reach into. Records
/// of neighbouring pages are rarely together, so more would only be copied in vain.
const READ_BYTES: usize = 16 << 10;

/// Why a page can't be built.
#[derive(Debug, thiserror::Error)]
pub enum PageRedoError {
    /// The log has changed since it was scanned, or can't be read.
    #[error("the log at {place} can't be read again: {reason}")]
    Log {
        /// The record.
        place: Lsn,
        /// What went wrong.
        reason: String,
    },
    /// The list of the page's records was written to a scratch file, and can't be read again.
    #[error("the list of its records can't be read from the scratch file: {0}")]
    Spilled(std::io::Error),
    /// A file of the log can't be read.
    #[error(transparent)]
    Files(#[from] LogFilesError),
    /// The record doesn't fit to the page.
    #[error("the record {manager}/{operation} at {place} does not fit to the page: {source}")]
    Redo {
        /// The record.
        place: Lsn,
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
        place: Lsn,
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
    /// The page in the file has a position that the log never reaches.
    #[error(
        "the page in the file has the position {found}, but the log ends at {end}: the log and the \
         files do not belong together, or the end of the log is missing"
    )]
    Newer {
        /// The position of the page.
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
        place: Lsn,
        /// The block.
        block: BlockNo,
        /// The length of the relation without such blocks.
        blocks: BlockNo,
    },
    /// The page that the log changes was never written.
    #[error("the record at {place} changes the page, but the page is empty or missing")]
    MissingBase {
        /// The record.
        place: Lsn,
    },
}

/// What a page is built from, besides the log.
pub(super) struct Place {
    pub(super) block: BlockNo,
    pub(super) hints_are_logged: bool,
}

/// Reads records of the log at any place. Keeps the part of the log that it read last.
#[derive(Debug, Default)]
pub(super) struct RecordReader {
    cursor: SegmentCursor,
    start: Lsn,
    bytes: Vec<u8>,
}

impl RecordReader {
    /// Passes the record that begins at `place` to `use_record`.
    fn with<T>(
        &mut self,
        files: &LogFiles,
        place: Lsn,
        use_record: impl FnOnce(&LogRecord<'_>) -> Result<T, PageRedoError>,
    ) -> Result<T, PageRedoError> {
        let changed = |reason: String| PageRedoError::Log { place, reason };
        let mut reader = LogReader::at_record(files.identity(), place);
        loop {
            let wanted = reader.wanted();
            if !(LogChunk { start: self.start, bytes: &self.bytes }).has_page(wanted) {
                let read =
                    files.read_part(&mut self.cursor, wanted, READ_BYTES, &mut self.bytes)?;
                self.start = wanted;
                if read.is_none() || self.bytes.len() < LOG_PAGE_SIZE {
                    self.bytes.clear();
                    return Err(changed(files.missing(wanted).to_string()));
                }
            }
            let chunk = LogChunk { start: self.start, bytes: &self.bytes };
            match reader.next(&chunk) {
                None | Some(LogEvent::Overwritten { .. }) => {}
                Some(LogEvent::Record(record)) if record.start == place => {
                    return use_record(&record);
                }
                Some(LogEvent::Record(record)) => {
                    let found = record.start;
                    return Err(changed(format!("the next record begins at {found}")));
                }
                Some(LogEvent::End(end)) => return Err(changed(end.reason.to_string())),
            }
        }
    }
}

/// Advises the kernel that a record will be read soon.
pub(super) fn advise_record(files: &LogFiles, place: Lsn) {
    let page = place.0 - place.0 % LOG_PAGE_SIZE as u64;
    if let Some(bytes) = NonZeroU64::new(READ_BYTES as u64) {
        files.advise(Lsn(page), bytes);
    }
}

/// A page to which records are applied, from its base on: the page of the file, or zeros.
pub(super) struct PageRedo<'r> {
    files: &'r LogFiles,
    reader: &'r mut RecordReader,
    place: Place,
    page: &'r mut PageBytes,
    /// The first record that changes a page without a base.
    missing: Option<Lsn>,
}

impl<'r> PageRedo<'r> {
    /// `page` contains the base.
    pub(super) fn new(
        files: &'r LogFiles,
        reader: &'r mut RecordReader,
        place: Place,
        page: &'r mut PageBytes,
    ) -> Self {
        Self { files, reader, place, page, missing: None }
    }

    /// Applies some records of the page's chain, in order.
    pub(super) fn apply(&mut self, links: &[ChainLink]) -> Result<(), PageRedoError> {
        for link in links {
            let (place, page) = (&self.place, &mut *self.page);
            let redone = self
                .reader
                .with(self.files, link.record, |record| apply(record, *link, place, page))?;
            match redone {
                // A later record may make the page from scratch, or an image may do.
                Redone::MissingBase => self.missing = self.missing.or(Some(link.record)),
                Redone::NotSupported { manager, operation } => {
                    let place = link.record;
                    return Err(PageRedoError::NotSupported { place, manager, operation });
                }
                Redone::Restored | Redone::Initialised => self.missing = None,
                Redone::Applied | Redone::AlreadyNewer | Redone::Unchanged => {}
            }
        }
        Ok(())
    }

    /// Checks the page after the last record.
    pub(super) fn finish(self) -> Result<(), PageRedoError> {
        match self.missing {
            Some(place) => Err(PageRedoError::MissingBase { place }),
            None => Ok(()),
        }
    }
}

fn apply(
    record: &LogRecord<'_>,
    link: ChainLink,
    place: &Place,
    page: &mut PageBytes,
) -> Result<Redone, PageRedoError> {
    let change = Change::of(record, place.hints_are_logged);
    let id = match link.part {
        Part::DerivedMap => return Ok(redo_derived(page, &change, place.block)),
        Part::Block(id) => id,
    };
    redo(page, &change, id).map_err(|source| {
        let header = record.record.header();
        let name = trunkline_format::wal::resource_manager::operation_name(header, record.version);
        PageRedoError::Redo {
            place: record.start,
            manager: ResourceManager(header.manager),
            operation: name.unwrap_or("unknown").to_owned(),
            source,
        }
    })
}
