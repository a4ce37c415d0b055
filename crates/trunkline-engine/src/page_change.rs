//! **Logged changes of pages**: a session describes a change as a WAL record, and the page becomes what redo of that
//! record makes of it.
//!
//! ```text
//!   locked pages ─▶ copies ─▶ redo of the record ─▶ mark dirty ─▶ insert the record ─▶ pages, with its LSN
//!                                  │ it doesn't fit: an error, and nothing has changed
//! ```
//! So a page that was changed and a page that was recovered can't differ, and an access method only has to build the
//! record. PostgreSQL has each change twice: in the access method and in its redo function.
//!
//! **Visibility maps.** Some records clear bits in a map page that they don't name ([`derived_pages`]): all releases of 18
//! redo such records alike, but only those from 18.6 on redo a record that names the map page. The map page keeps its LSN,
//! and the record has no image of it. If it needs one, a record of its own follows (`FPI_FOR_HINT`). Otherwise, redo
//! could not repair the page after a torn write. The image comes second, so that a checkpoint between the two
//! records writes the page as it is after both.

use std::fmt;
use std::sync::Arc;

use trunkline_aio::Session;
use trunkline_format::page::{PageHeader, set_lsn};
use trunkline_format::wal::redo::{Change, RedoError, Redone, derived_pages, redo, redo_derived};
use trunkline_format::wal::resource_manager::number;
use trunkline_format::wal::resource_manager::xlog_operation::FPI_FOR_HINT;
use trunkline_format::wal::{
    BLOCK_ID_MAX, ImageMode, ImagePolicy, LogRecord, NewBlock, NewRecord, Record, RecordBuffer,
};
use trunkline_format::{BLOCK_SIZE, BlockNo, Fork, Lsn, PageBytes, PgVersion};

use crate::log::Log;
use crate::log_writer::{Inserter, LogWriter, LogWriterError, RecordLocation, Room};
use crate::pool::PageMut;
use crate::storage::Relation;

/// The LSN that the trial run of redo gives to a page: later than any.
const TRIAL: Lsn = Lsn(1 << 62);

/// The IDs of block references without gaps: 0, 1, 2 and so on.
const COUNTED: [u8; BLOCK_ID_MAX as usize + 1] = {
    let mut ids = [0; BLOCK_ID_MAX as usize + 1];
    let mut id = 0;
    while id < BLOCK_ID_MAX {
        id += 1;
        ids[id as usize] = id;
    }
    ids
};

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
    /// The record changes a page of the visibility map that the caller has not locked. Nothing was changed or logged.
    #[error("a change clears bits in block {block} of a visibility map, which is not locked")]
    MapNotLocked {
        /// The block of the map.
        block: BlockNo,
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

/// A page of a visibility map in which a record clears bits without naming it.
pub struct MapPage<'p> {
    /// The map.
    pub relation: Relation,
    /// The block of the map.
    pub block: BlockNo,
    /// The page, locked exclusively, after all pages of the table.
    pub page: PageMut<'p>,
}

/// A copy of a page, which becomes the page after the change.
struct PageCopy {
    bytes: Box<PageBytes>,
    /// Whether the change moves its LSN.
    moves_lsn: bool,
}

/// One session's right to change pages: it inserts their records into the WAL.
pub struct Changer {
    log: Arc<LogWriter>,
    inserter: Inserter,
    trial: RecordBuffer,
    /// Copies of the pages that a record names, and then of map pages.
    copies: Vec<PageCopy>,
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

    /// Makes all of the WAL durable. The session must not have room.
    pub(crate) fn flush_all(&self, session: &mut Session) -> Result<(), LogWriterError> {
        self.log.flush(session, self.log.end()).map_err(LogWriterError::flush)
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
        self.change_all(room, operation, &COUNTED, pages, &mut [])
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
        self.change_all(room, operation, ids, pages, &mut [])
    }

    /// [`Changer::change`] with a record that clears bits in map pages without naming them. The room must include an image
    /// of each, in a record of its own.
    ///
    /// # Errors
    /// As for [`Changer::change`].
    pub fn change_with_maps(
        &mut self,
        room: &mut Room,
        operation: &NewRecord<'_>,
        pages: &mut [ChangedPage<'_, '_>],
        maps: &mut [MapPage<'_>],
    ) -> Result<RecordLocation, ChangeError> {
        self.change_all(room, operation, &COUNTED, pages, maps)
    }

    fn change_all(
        &mut self,
        room: &mut Room,
        operation: &NewRecord<'_>,
        ids: &[u8],
        pages: &mut [ChangedPage<'_, '_>],
        maps: &mut [MapPage<'_>],
    ) -> Result<RecordLocation, ChangeError> {
        assert!(pages.len() <= ids.len(), "{} pages, {} numbers", pages.len(), ids.len());
        let new = || PageCopy { bytes: Box::new([0; BLOCK_SIZE]), moves_lsn: false };
        self.copies.resize_with(pages.len() + maps.len(), new);
        let named = pages.iter().map(|changed| &*changed.page);
        let before = named.chain(maps.iter().map(|map| &map.page));
        for (copy, page) in self.copies.iter_mut().zip(before) {
            copy.bytes.copy_from_slice(&page[..]);
        }
        self.try_redo(operation, ids, pages, maps)?;
        // Before the record is inserted: a checkpoint that begins between the two would overlook the page.
        pages.iter_mut().for_each(|changed| changed.page.mark_dirty());
        let copies = self.copies.iter().zip(0..).skip(pages.len());
        let mut changed_maps: Vec<(&mut MapPage<'_>, usize)> = Vec::new();
        for (map, (copy, at)) in maps.iter_mut().zip(copies) {
            if copy.bytes[..] != map.page[..] {
                map.page.mark_dirty();
                changed_maps.push((map, at));
            }
        }
        let blocks = blocks_of(ids, pages, &self.copies, false);
        let place = self.inserter.insert(room, &NewRecord { blocks: &blocks, ..*operation })?;
        for (changed, copy) in pages.iter_mut().zip(&mut self.copies) {
            if copy.moves_lsn {
                set_lsn(&mut copy.bytes, place.end);
            }
            changed.page.copy_from_slice(&copy.bytes[..]);
        }
        // All of them before the first image: the record is in the WAL, even if an image can't be logged.
        for (map, at) in &mut changed_maps {
            if let Some(copy) = self.copies.get(*at) {
                map.page.copy_from_slice(&copy.bytes[..]);
            }
        }
        for (map, _) in changed_maps {
            self.log_map_image(room, map)?;
        }
        Ok(place)
    }

    /// Logs an image of a map page that was changed, if it needs one.
    fn log_map_image(
        &mut self,
        room: &mut Room,
        map: &mut MapPage<'_>,
    ) -> Result<(), LogWriterError> {
        let lsn = PageHeader::parse(&map.page).lsn;
        if !self.log.options().full_page_writes || lsn > self.log.redo() {
            return Ok(());
        }
        let image = NewBlock {
            id: 0,
            relation: map.relation.locator().into(),
            fork: Fork::Vm,
            block: map.block,
            page: &map.page,
            image: ImageMode::IfNeeded,
            is_standard: false,
            keeps_data: false,
            data: &[],
        };
        let plain = NewRecord::plain(number::XLOG, FPI_FOR_HINT, 0, &[]);
        let place = self.inserter.insert(room, &NewRecord { blocks: &[image], ..plain })?;
        set_lsn(&mut map.page, place.end);
        Ok(())
    }

    /// Applies the record to the copies, which keep their LSN: it decides whether an image is needed.
    fn try_redo(
        &mut self,
        operation: &NewRecord<'_>,
        ids: &[u8],
        pages: &[ChangedPage<'_, '_>],
        maps: &[MapPage<'_>],
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
            match redo(&mut copy.bytes, &change, *id) {
                Ok(Redone::Applied | Redone::Initialised) => {}
                Ok(outcome) => return Err(ChangeError::NoEffect { path: path(), block, outcome }),
                Err(source) => return Err(ChangeError::Redo { path: path(), block, source }),
            }
            copy.moves_lsn = PageHeader::parse(&copy.bytes).lsn == TRIAL;
            copy.bytes[..8].copy_from_slice(&changed.page[..8]);
        }
        let change = Change::of(&record, false);
        for derived in derived_pages(&record.record, record.version) {
            let is_it = |map: &MapPage<'_>| {
                map.block == derived.block && derived.relation == map.relation.locator().into()
            };
            let at = maps.iter().position(is_it).map(|at| pages.len() + at);
            let Some(copy) = at.and_then(|at| self.copies.get_mut(at)) else {
                return Err(ChangeError::MapNotLocked { block: derived.block });
            };
            redo_derived(&mut copy.bytes, &change, derived.block);
        }
        Ok(())
    }
}

/// The block references. In a trial, they have no images.
fn blocks_of<'b>(
    ids: &[u8],
    pages: &'b [ChangedPage<'_, '_>],
    copies: &'b [PageCopy],
    is_trial: bool,
) -> Vec<NewBlock<'b>> {
    let mut blocks = Vec::with_capacity(pages.len());
    for (id, (changed, copy)) in ids.iter().zip(pages.iter().zip(copies)) {
        blocks.push(NewBlock {
            id: *id,
            relation: changed.relation.locator().into(),
            fork: changed.relation.fork(),
            block: changed.block,
            page: &copy.bytes,
            image: match changed.image {
                ImageMode::WillInit => ImageMode::WillInit,
                _ if is_trial => ImageMode::Never,
                image => image,
            },
            // The bits of a map are where other pages have their hole.
            is_standard: changed.relation.fork() == Fork::Main,
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
