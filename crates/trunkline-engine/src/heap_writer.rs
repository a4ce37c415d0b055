//! Inserts, updates and deletes rows of a heap table: builds their WAL records, from which [`page_change`] makes the
//! pages (PostgreSQL's `heap_insert`, `heap_update` and `heap_delete`).
//!
//! ```text
//!   insert   the writer's page, or a new one ─▶ Heap/INSERT
//!   update   fits on the page of the old version ─▶ Heap/HOT_UPDATE or Heap/UPDATE of one page
//!            otherwise ───────────────────────────▶ Heap/UPDATE of two pages, locked in ascending order
//!   delete   Heap/DELETE
//! ```
//! Each writer extends the table by a page of its own, so that writers of one table don't wait for each other. There is
//! no free space map yet: free space on any page but a writer's own is used only by updates of tuples on that page.
//!
//! **Not here:** row locks and visibility. The caller makes sure that no other session changes the row. Pages that are marked
//! all-visible are refused, since their bits in the visibility map would have to be cleared.
//!
//! [`page_change`]: crate::page_change

use trunkline_format::heap_tuple::is_all_visible;
use trunkline_format::page::{
    HEADER_SIZE, LINE_POINTER_SIZE, LinePointerFlags, PageHeader, is_new, line_pointer,
    line_pointers,
};
use trunkline_format::page_builder::{NewTuple, Origin};
use trunkline_format::wal::resource_manager::heap_operation::{
    DELETE, HOT_UPDATE, INITIALISE, INSERT, UPDATE,
};
use trunkline_format::wal::resource_manager::number;
use trunkline_format::wal::{ImageMode, NewRecord};
use trunkline_format::{BLOCK_SIZE, BlockNo, Lsn, PageBytes, Tid};

use crate::heap::HEAP_TUPLES_MAX;
use crate::location::Location;
use crate::log_writer::{LogWriterError, Room};
use crate::page_change::{ChangeError, ChangedPage, Changer};
use crate::pool::{Backend, PageMut, Pin, ReadError, WriteError};
use crate::settings::ExtendMethod;
use crate::storage::{Relation, StorageError};

/// `XLHL_KEYS_UPDATED`: the row was deleted, or its key changed.
const KEYS_UPDATED: u8 = 0x10;

/// `MaxHeapTupleSize`: the longest tuple that fits on an empty page.
const TUPLE_MAX: usize =
    BLOCK_SIZE - (HEADER_SIZE as usize + LINE_POINTER_SIZE as usize).next_multiple_of(8);

/// Why a row was not written.
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
    /// The page is marked all-visible.
    #[error("{location} is marked all-visible, and changing such pages is not supported")]
    AllVisible {
        /// The page.
        location: Location,
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

/// A row that was written.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct WrittenRow {
    /// Where it is.
    pub tid: Tid,
    /// The end of its record.
    pub lsn: Lsn,
}

/// Writes rows of one table. Each session has its own.
#[derive(Debug)]
pub struct HeapWriter {
    relation: Relation,
    /// The page that rows are inserted into.
    target: Option<BlockNo>,
}

/// A session with the right to change pages.
#[derive(Debug)]
pub struct HeapSession<'s> {
    /// Reads and locks pages.
    pub backend: &'s mut Backend,
    /// Changes them.
    pub changer: &'s mut Changer,
    /// The transaction.
    pub xid: u32,
}

impl HeapWriter {
    /// A writer for the main fork of a table.
    pub fn new(relation: Relation) -> Self {
        Self { relation, target: None }
    }

    /// Inserts a row.
    ///
    /// # Errors
    /// [`HeapWriteError`]; no row was inserted.
    pub fn insert(
        &mut self,
        session: &mut HeapSession<'_>,
        row: &NewTuple<'_>,
    ) -> Result<WrittenRow, HeapWriteError> {
        let length = check_length(row)?;
        let data = row.to_record(Origin::Insert);
        loop {
            let block = match self.target {
                Some(block) => block,
                None => self.extend(session)?,
            };
            if let Some(written) = self.try_insert(session, block, (length, &data))? {
                return Ok(written);
            }
            self.target = None;
        }
    }

    /// Inserts a row on this page. `None` if it is full.
    fn try_insert(
        &mut self,
        session: &mut HeapSession<'_>,
        block: BlockNo,
        (length, data): (u16, &[u8]),
    ) -> Result<Option<WrittenRow>, HeapWriteError> {
        // Room comes after the page is in the pool, since a read may have to wait for the WAL.
        let pin = session.backend.read(&self.relation, block)?;
        let mut room = session.room(1, data.len())?;
        let mut page = session.lock(&pin)?;
        self.refuse_all_visible(block, &page)?;
        let Some(item) = free_item(&page, length) else { return Ok(None) };
        let is_first = is_new(&page);
        let main: &[&[u8]] = &[&item.to_le_bytes(), &[0]];
        let info = if is_first { INSERT | INITIALISE } else { INSERT };
        let operation = NewRecord::plain(number::HEAP, info, session.xid, main);
        let image = if is_first { ImageMode::WillInit } else { ImageMode::IfNeeded };
        let data: &[&[u8]] = &[data];
        let changed = ChangedPage { relation: &self.relation, block, page: &mut page, image, data };
        let place = session.changer.change(&mut room, &operation, &mut [changed])?;
        Ok(Some(WrittenRow { tid: Tid { block, item }, lsn: place.end }))
    }

    /// Deletes a row version.
    ///
    /// # Errors
    /// [`HeapWriteError`]; the row was not deleted.
    pub fn delete(
        &mut self,
        session: &mut HeapSession<'_>,
        tid: Tid,
    ) -> Result<Lsn, HeapWriteError> {
        let Tid { block, item } = tid;
        let pin = session.backend.read(&self.relation, block)?;
        let mut room = session.room(1, 0)?;
        let mut page = session.lock(&pin)?;
        self.check_row(tid, &page)?;
        let xid = session.xid;
        let main: &[&[u8]] = &[&xid.to_le_bytes(), &item.to_le_bytes(), &[KEYS_UPDATED, 0]];
        let operation = NewRecord::plain(number::HEAP, DELETE, xid, main);
        let changed = ChangedPage {
            relation: &self.relation,
            block,
            page: &mut page,
            image: ImageMode::IfNeeded,
            data: &[],
        };
        Ok(session.changer.change(&mut room, &operation, &mut [changed])?.end)
    }

    /// Replaces a row version by a new one, on the same page if it fits there. `keeps_keys` says that no indexed
    /// column changes, so that a new version on the same page needs no index entries (HOT), and that locks of the key
    /// (`FOR KEY SHARE`) don't exclude the update.
    ///
    /// # Errors
    /// [`HeapWriteError`]; the row was not updated.
    pub fn update(
        &mut self,
        session: &mut HeapSession<'_>,
        tid: Tid,
        row: &NewTuple<'_>,
        keeps_keys: bool,
    ) -> Result<WrittenRow, HeapWriteError> {
        let length = check_length(row)?;
        let origin = if keeps_keys { Origin::HotUpdate } else { Origin::Update };
        let data = row.to_record(origin);
        if let Some(written) = self.update_in_place(session, tid, length, (origin, &data))? {
            return Ok(written);
        }
        let data = row.to_record(Origin::Update);
        loop {
            let block = match self.target.filter(|target| *target != tid.block) {
                Some(block) => block,
                None => self.extend(session)?,
            };
            let moved = self.update_to(session, (tid, block), keeps_keys, (length, &data))?;
            if let Some(written) = moved {
                return Ok(written);
            }
            self.target = None;
        }
    }

    /// Adds the new version to the page of the old one. `None` if that is full.
    fn update_in_place(
        &mut self,
        session: &mut HeapSession<'_>,
        tid: Tid,
        length: u16,
        (origin, data): (Origin, &[u8]),
    ) -> Result<Option<WrittenRow>, HeapWriteError> {
        let block = tid.block;
        let pin = session.backend.read(&self.relation, block)?;
        let mut room = session.room(1, data.len())?;
        let mut page = session.lock(&pin)?;
        self.check_row(tid, &page)?;
        let Some(item) = free_item(&page, length) else { return Ok(None) };
        let is_hot = origin == Origin::HotUpdate;
        let info = if is_hot { HOT_UPDATE } else { UPDATE };
        let main = update_data(session.xid, (tid.item, is_hot), item);
        let main_data: &[&[u8]] = &[&main];
        let operation = NewRecord::plain(number::HEAP, info, session.xid, main_data);
        let data: &[&[u8]] = &[data];
        let image = ImageMode::IfNeeded;
        let changed = ChangedPage { relation: &self.relation, block, page: &mut page, image, data };
        let place = session.changer.change(&mut room, &operation, &mut [changed])?;
        Ok(Some(WrittenRow { tid: Tid { block, item }, lsn: place.end }))
    }

    /// Adds the new version to another page. `None` if that is full.
    fn update_to(
        &mut self,
        session: &mut HeapSession<'_>,
        (tid, block): (Tid, BlockNo),
        keeps_keys: bool,
        (length, data): (u16, &[u8]),
    ) -> Result<Option<WrittenRow>, HeapWriteError> {
        let old_pin = session.backend.read(&self.relation, tid.block)?;
        let new_pin = session.backend.read(&self.relation, block)?;
        let mut room = session.room(2, data.len())?;
        // In ascending block order, so that two sessions cannot deadlock.
        let (mut old, mut new);
        if tid.block < block {
            old = session.lock(&old_pin)?;
            new = session.lock(&new_pin)?;
        } else {
            new = session.lock(&new_pin)?;
            old = session.lock(&old_pin)?;
        }
        self.check_row(tid, &old)?;
        self.refuse_all_visible(block, &new)?;
        let Some(item) = free_item(&new, length) else { return Ok(None) };
        let is_first = is_new(&new);
        let info = if is_first { UPDATE | INITIALISE } else { UPDATE };
        let main = update_data(session.xid, (tid.item, keeps_keys), item);
        let main_data: &[&[u8]] = &[&main];
        let operation = NewRecord::plain(number::HEAP, info, session.xid, main_data);
        let data: &[&[u8]] = &[data];
        let image = if is_first { ImageMode::WillInit } else { ImageMode::IfNeeded };
        let relation = &self.relation;
        let mut pages = [
            ChangedPage { relation, block, page: &mut new, image, data },
            ChangedPage {
                relation,
                block: tid.block,
                page: &mut old,
                image: ImageMode::IfNeeded,
                data: &[],
            },
        ];
        let place = session.changer.change(&mut room, &operation, &mut pages)?;
        Ok(Some(WrittenRow { tid: Tid { block, item }, lsn: place.end }))
    }

    /// Extends the table by a page, into which this writer inserts from now on.
    fn extend(&mut self, session: &mut HeapSession<'_>) -> Result<BlockNo, HeapWriteError> {
        let pins = session.backend.extend(&self.relation, 1, ExtendMethod::default())?;
        let Some(block) = pins.first().map(|pin| pin.page().block()) else {
            unreachable!("an extension adds at least one block");
        };
        self.target = Some(block);
        Ok(block)
    }

    /// Refuses a TID without a row version.
    fn check_row(&self, tid: Tid, page: &PageBytes) -> Result<(), HeapWriteError> {
        self.refuse_all_visible(tid.block, page)?;
        let pointer = line_pointer(page, tid.item);
        match pointer.is_some_and(|pointer| pointer.flags == LinePointerFlags::Normal) {
            true => Ok(()),
            false => {
                let location = self.relation.location(tid.block).at_item(tid.item);
                Err(HeapWriteError::NoRow { location })
            }
        }
    }

    fn refuse_all_visible(&self, block: BlockNo, page: &PageBytes) -> Result<(), HeapWriteError> {
        match is_all_visible(page) {
            false => Ok(()),
            true => Err(HeapWriteError::AllVisible { location: self.relation.location(block) }),
        }
    }
}

impl HeapSession<'_> {
    /// Room for a record that changes this many pages, with this many bytes of data.
    pub(crate) fn room(&mut self, pages: u64, data: usize) -> Result<Room, LogWriterError> {
        self.changer.room(self.backend.session(), (1, pages, data as u64 + 64))
    }

    /// Locks a page for changing.
    pub(crate) fn lock<'p>(&mut self, pin: &'p Pin) -> Result<PageMut<'p>, LogWriterError> {
        Ok(self.backend.write_lock(pin.page())?)
    }
}

/// `xl_heap_update`. The old version's xmax is the transaction, and the new one has none.
fn update_data(xid: u32, (old_item, keeps_keys): (u16, bool), new_item: u16) -> Vec<u8> {
    let mut bytes = Vec::with_capacity(14);
    bytes.extend_from_slice(&xid.to_le_bytes());
    bytes.extend_from_slice(&old_item.to_le_bytes());
    bytes.push(if keeps_keys { 0 } else { KEYS_UPDATED });
    bytes.extend_from_slice(&[0; 5]);
    bytes.extend_from_slice(&new_item.to_le_bytes());
    bytes
}

/// The length of the row on a page.
fn check_length(row: &NewTuple<'_>) -> Result<u16, HeapWriteError> {
    let size = row.length();
    match u16::try_from(size) {
        Ok(length) if size <= TUPLE_MAX => Ok(length),
        _ => Err(HeapWriteError::TooLong { size }),
    }
}

/// The line pointer that a row of this length gets on a page. `None` if there is no space.
fn free_item(page: &PageBytes, length: u16) -> Option<u16> {
    if is_new(page) {
        return Some(1);
    }
    let header = PageHeader::parse(page);
    let unused = line_pointers(page)
        .find(|(_, pointer)| pointer.flags == LinePointerFlags::Unused)
        .map(|(item, _)| item);
    let item = unused.unwrap_or(header.line_pointer_count() + 1);
    let pointer = if unused.is_some() { 0 } else { LINE_POINTER_SIZE };
    let space = header.upper.checked_sub(header.lower)?;
    let needed = length.checked_next_multiple_of(8)?.checked_add(pointer)?;
    (needed <= space && item <= HEAP_TUPLES_MAX).then_some(item)
}
