//! **Logged changes of pages**: a session describes a change as a WAL record, and the page becomes what redo of that
//! record makes of it.
//!
//! ```text
//!   locked pages ─▶ copies ─▶ redo of the record ─▶ mark dirty ─▶ insert the record ─▶ pages, with its LSN
//!                                  │ it doesn't fit: an error, and nothing has changed
//! ```
//! So a page that was changed and a page that was recovered can't differ, and an access method only has to build the
//! record. PostgreSQL has each change twice: in the access method and in its redo function.

use std::fmt;
use std::sync::Arc;

use trunkline_aio::Session;
use trunkline_format::page::set_lsn;
use trunkline_format::wal::redo::{Change, RedoError, Redone, redo};
use trunkline_format::wal::{
    BLOCK_ID_MAX, ImageMode, ImagePolicy, LogRecord, NewBlock, NewRecord, Record, RecordBuffer,
};
use trunkline_format::{BLOCK_SIZE, BlockNo, Lsn, PageBytes, PgVersion};

use crate::log_writer::{Inserter, LogWriter, LogWriterError, RecordLocation, Room};
use crate::pool::PageMut;
use crate::storage::Relation;

/// The LSN that the trial run of redo gives to a page: later than any.
const TRIAL: Lsn = Lsn(1 << 62);

/// Why a page was not changed.
#[derive(Debug, thiserror::Error)]
pub enum ChangeError {
    /// The record doesn't fit the page. Nothing was changed or logged.
    #[error("could not change block {block} of \"{}\": {source}", path.display())]
    Redo {
        /// The segment file of the page.
        path: std::path::PathBuf,
        /// The block.
        block: BlockNo,
        /// Why the record doesn't fit.
        source: RedoError,
    },
    /// Redo of the record leaves the page as it is.
    #[error("a change of block {block} of \"{}\" has no effect: {outcome:?}", path.display())]
    NoEffect {
        /// The segment file of the page.
        path: std::path::PathBuf,
        /// The block.
        block: BlockNo,
        /// What redo has said.
        outcome: Redone,
    },
    /// The record could not be inserted. Nothing was changed.
    #[error(transparent)]
    Log(#[from] LogWriterError),
}

/// A page that a record changes.
pub struct ChangedPage<'c, 'p> {
    /// Its relation.
    pub relation: &'c Relation,
    /// Its number.
    pub block: BlockNo,
    /// The page, locked exclusively.
    pub page: &'c mut PageMut<'p>,
    /// When the record has an image of it.
    pub image: ImageMode,
    /// The block's data, in pieces.
    pub data: &'c [&'c [u8]],
}

/// One session's right to change pages: it inserts their records into the WAL.
pub struct Changer {
    log: Arc<LogWriter>,
    inserter: Inserter,
    trial: RecordBuffer,
    /// Copies of the pages, which become the pages after the change.
    copies: Vec<Box<PageBytes>>,
}

impl Changer {
    /// A new one. `None` if all inserters of the log are in use.
    pub fn new(log: &Arc<LogWriter>) -> Option<Self> {
        let inserter = Inserter::new(log)?;
        let (trial, copies) = (RecordBuffer::default(), Vec::new());
        Some(Self { log: Arc::clone(log), inserter, trial, copies })
    }

    /// For records that change no page.
    pub fn inserter(&mut self) -> &mut Inserter {
        &mut self.inserter
    }

    /// Reserves room for `records` records that change `pages` pages in all, with `data` bytes of data. Must be called
    /// before any of the pages is locked.
    ///
    /// # Errors
    /// As for [`LogWriter::room`].
    pub fn room(
        &self,
        session: &mut Session,
        (records, pages, data): (u64, u64, u64),
    ) -> Result<Room, LogWriterError> {
        // A record's header, and a block's with an image.
        let bytes = records * 64 + pages * (BLOCK_SIZE as u64 + 64) + data;
        self.log.room(session, records, bytes)
    }

    /// Changes pages, which become block references 0, 1 and so on of the record `operation`; it has none itself. The new pages of a relation have
    /// [`ImageMode::WillInit`], and `info` must have the operation's INIT flag.
    ///
    /// # Errors
    /// [`ChangeError`]: the change doesn't fit. Neither the pages nor the WAL have changed.
    pub fn change(
        &mut self,
        room: &mut Room,
        operation: &NewRecord<'_>,
        pages: &mut [ChangedPage<'_, '_>],
    ) -> Result<RecordLocation, ChangeError> {
        let ids: [u8; BLOCK_ID_MAX as usize + 1] = std::array::from_fn(|id| id as u8);
        self.change_numbered(room, operation, &ids, pages)
    }

    /// The same, for operations whose block references leave out a number: page `i` becomes reference `ids[i]`. There
    /// must be a number for each page, in ascending order.
    ///
    /// # Errors
    /// As for [`Changer::change`].
    /// # Panics
    /// If a page has no number.
    pub fn change_numbered(
        &mut self,
        room: &mut Room,
        operation: &NewRecord<'_>,
        ids: &[u8],
        pages: &mut [ChangedPage<'_, '_>],
    ) -> Result<RecordLocation, ChangeError> {
        assert!(pages.len() <= ids.len(), "{} pages, {} numbers", pages.len(), ids.len());
        self.copies.resize_with(pages.len(), || Box::new([0; BLOCK_SIZE]));
        for (copy, changed) in self.copies.iter_mut().zip(&*pages) {
            copy.copy_from_slice(&changed.page[..]);
        }
        self.try_redo(operation, ids, pages)?;
        // Before the record is inserted: a checkpoint that begins between the two would overlook the page.
        pages.iter_mut().for_each(|changed| changed.page.mark_dirty());
        let blocks = blocks_of(ids, pages, &self.copies, false);
        let place = self.inserter.insert(room, &NewRecord { blocks: &blocks, ..*operation })?;
        for (changed, copy) in pages.iter_mut().zip(&mut self.copies) {
            set_lsn(copy, place.end);
            changed.page.copy_from_slice(&copy[..]);
        }
        Ok(place)
    }

    /// Applies the record to the copies, which keep their LSN: it decides whether an image is needed.
    fn try_redo(
        &mut self,
        operation: &NewRecord<'_>,
        ids: &[u8],
        pages: &[ChangedPage<'_, '_>],
    ) -> Result<(), ChangeError> {
        let blocks = blocks_of(ids, pages, &self.copies, true);
        let assembled =
            self.trial.assemble(&NewRecord { blocks: &blocks, ..*operation }, &ImagePolicy::NONE);
        assembled.map_err(LogWriterError::from)?;
        let bytes = self.trial.seal(Lsn(0));
        let Ok(record) = Record::parse(bytes) else {
            unreachable!("a record that was assembled can be parsed");
        };
        let record =
            LogRecord { start: TRIAL, end: TRIAL, version: PgVersion::V18, timeline: 1, record };
        for ((id, changed), copy) in ids.iter().zip(pages).zip(&mut self.copies) {
            let (relation, block) = (changed.relation, changed.block);
            let path = || relation.location(block).path().to_owned();
            let change = Change::of(&record, relation.storage().checksums());
            match redo(copy, &change, *id) {
                Ok(Redone::Applied | Redone::Initialised) => {}
                Ok(outcome) => return Err(ChangeError::NoEffect { path: path(), block, outcome }),
                Err(source) => return Err(ChangeError::Redo { path: path(), block, source }),
            }
            copy[..8].copy_from_slice(&changed.page[..8]);
        }
        Ok(())
    }
}

/// The block references. In a trial, they have no images.
fn blocks_of<'b>(
    ids: &[u8],
    pages: &'b [ChangedPage<'_, '_>],
    copies: &'b [Box<PageBytes>],
    is_trial: bool,
) -> Vec<NewBlock<'b>> {
    let mut blocks = Vec::with_capacity(pages.len());
    for (id, (changed, copy)) in ids.iter().zip(pages.iter().zip(copies)) {
        blocks.push(NewBlock {
            id: *id,
            relation: changed.relation.locator().into(),
            fork: changed.relation.fork(),
            block: changed.block,
            page: copy,
            image: match changed.image {
                ImageMode::WillInit => ImageMode::WillInit,
                _ if is_trial => ImageMode::Never,
                image => image,
            },
            is_standard: true,
            keeps_data: is_trial,
            data: changed.data,
        });
    }
    blocks
}

impl fmt::Debug for Changer {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Changer({:?})", self.inserter)
    }
}
