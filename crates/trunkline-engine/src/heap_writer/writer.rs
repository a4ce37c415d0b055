//! Inserts, updates and deletes rows (PostgreSQL's `heap_insert`, `heap_update` and `heap_delete`).
//!
//! Each operation pins its pages, gets room for its record, locks the pages, and gives up if a page has become
//! all-visible meanwhile: then it begins again, with the map page.

use trunkline_format::heap_tuple::is_all_visible;
use trunkline_format::page::{LinePointerFlags, PageHeader, is_new, line_pointer};
use trunkline_format::page_builder::{NewTuple, Origin};
use trunkline_format::wal::heap_flags::{NEW_VISIBLE_CLEARED, VISIBLE_CLEARED, info_bits};
use trunkline_format::wal::resource_manager::heap_operation::{
    DELETE, HOT_UPDATE, INITIALISE, INSERT, UPDATE,
};
use trunkline_format::wal::resource_manager::number;
use trunkline_format::wal::{ImageMode, NewRecord};
use trunkline_format::{BlockNo, Lsn, PageBytes, Tid};

use super::error::HeapWriteError;
use super::page_space::{PageSpace, length_of};
use super::session::HeapSession;
use crate::location::Location;
use crate::page_change::ChangedPage;
use crate::settings::ExtendMethod;
use crate::storage::Relation;

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
    pub(super) relation: Relation,
    /// The page that rows are inserted into.
    pub(super) target: Option<BlockNo>,
}

/// What became of an attempt to change a page.
pub(super) enum Attempt<T> {
    Done(T),
    /// The page has no space.
    Full,
    /// The page has become all-visible, or the row has another xmax.
    Again,
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
        let length = length_of(row)?;
        let data = row.to_record(Origin::Insert);
        loop {
            let block = self.target_page(session)?;
            match self.try_insert(session, block, (length, &data))? {
                Attempt::Done(written) => return Ok(written),
                Attempt::Full => self.target = None,
                Attempt::Again => {}
            }
        }
    }

    /// Inserts a row on this page.
    fn try_insert(
        &self,
        session: &mut HeapSession<'_>,
        block: BlockNo,
        (length, data): (u16, &[u8]),
    ) -> Result<Attempt<WrittenRow>, HeapWriteError> {
        // Room comes after the page is in the pool, since a read may have to wait for the WAL.
        let pin = session.pin(&self.relation, block)?;
        let mut room = session.room(&[&pin], data.len())?;
        let Some(mut page) = session.lock(&pin)? else { return Ok(Attempt::Again) };
        let Some(item) = PageSpace::of(&page).take(length) else { return Ok(Attempt::Full) };
        let is_first = is_new(&page);
        let flags = visible_flag(&page, VISIBLE_CLEARED);
        let mut maps = session.lock_maps(&self.relation, &[(&pin, &page)])?;
        let main: &[&[u8]] = &[&item.to_le_bytes(), &[flags]];
        let info = if is_first { INSERT | INITIALISE } else { INSERT };
        let operation = NewRecord::plain(number::HEAP, info, session.xid, main);
        let image = if is_first { ImageMode::WillInit } else { ImageMode::IfNeeded };
        let data: &[&[u8]] = &[data];
        let changed = ChangedPage { relation: &self.relation, block, page: &mut page, image, data };
        let changer = &mut *session.changer;
        let place = changer.change_with_maps(&mut room, &operation, &mut [changed], &mut maps)?;
        Ok(Attempt::Done(WrittenRow { tid: Tid { block, item }, lsn: place.end }))
    }

    /// Deletes a row version. `ended` is a transaction that the caller knows to have ended; other transactions that only have
    /// locked the row have ended if the commit log says so.
    ///
    /// # Errors
    /// [`HeapWriteError`]; the row was not deleted. [`HeapWriteError::LockedBy`] if another transaction has locked or
    /// changed it, and [`HeapWriteError::ChangedBy`] if this transaction has changed it, or `ended` has and has committed.
    pub fn delete(
        &mut self,
        session: &mut HeapSession<'_>,
        tid: Tid,
        ended: Option<u32>,
    ) -> Result<Lsn, HeapWriteError> {
        let Tid { block, item } = tid;
        loop {
            let (pin, seen) = self.pin_row(session, tid)?;
            self.refuse_others(session, (tid, seen), ended)?;
            let mut room = session.room(&[&pin], 0)?;
            let Some(mut page) = session.lock(&pin)? else { continue };
            if self.xmax_of(tid, &page)? != seen {
                continue;
            }
            let xid = session.xid;
            let flags = visible_flag(&page, VISIBLE_CLEARED);
            let mut maps = session.lock_maps(&self.relation, &[(&pin, &page)])?;
            let bits = [info_bits::KEYS_UPDATED, flags];
            let main: &[&[u8]] = &[&xid.to_le_bytes(), &item.to_le_bytes(), &bits];
            let operation = NewRecord::plain(number::HEAP, DELETE, xid, main);
            let (relation, image) = (&self.relation, ImageMode::IfNeeded);
            let pages = &mut [ChangedPage { relation, block, page: &mut page, image, data: &[] }];
            let changer = &mut *session.changer;
            return Ok(changer.change_with_maps(&mut room, &operation, pages, &mut maps)?.end);
        }
    }

    /// Replaces a row version by a new one, on the same page if it fits there. `keeps_keys` says that no indexed
    /// column changes, so that a new version on the same page needs no index entries (HOT). A lock of the key
    /// (`FOR KEY SHARE`) by a transaction that has not ended excludes even such an update, since only lockers share a row.
    /// `ended` is as for [`HeapWriter::delete`].
    ///
    /// # Errors
    /// [`HeapWriteError`]; the row was not updated. The same as for [`HeapWriter::delete`].
    pub fn update(
        &mut self,
        session: &mut HeapSession<'_>,
        tid: Tid,
        row: &NewTuple<'_>,
        keeps_keys: bool,
        ended: Option<u32>,
    ) -> Result<WrittenRow, HeapWriteError> {
        let length = length_of(row)?;
        let origin = if keeps_keys { Origin::HotUpdate } else { Origin::Update };
        let data = row.to_record(origin);
        loop {
            match self.update_in_place(session, (tid, ended), length, (origin, &data))? {
                Attempt::Done(written) => return Ok(written),
                Attempt::Full => break,
                Attempt::Again => {}
            }
        }
        let data = row.to_record(Origin::Update);
        loop {
            let block = match self.target.filter(|target| *target != tid.block) {
                Some(block) => block,
                None => self.extend(session)?,
            };
            match self.update_to(session, (tid, ended, block), keeps_keys, (length, &data))? {
                Attempt::Done(written) => return Ok(written),
                Attempt::Full => self.target = None,
                Attempt::Again => {}
            }
        }
    }

    /// Adds the new version to the page of the old one.
    fn update_in_place(
        &self,
        session: &mut HeapSession<'_>,
        (tid, ended): (Tid, Option<u32>),
        length: u16,
        (origin, data): (Origin, &[u8]),
    ) -> Result<Attempt<WrittenRow>, HeapWriteError> {
        let block = tid.block;
        let (pin, seen) = self.pin_row(session, tid)?;
        self.refuse_others(session, (tid, seen), ended)?;
        let mut room = session.room(&[&pin], data.len())?;
        let Some(mut page) = session.lock(&pin)? else { return Ok(Attempt::Again) };
        if self.xmax_of(tid, &page)? != seen {
            return Ok(Attempt::Again);
        }
        let Some(item) = PageSpace::of(&page).take(length) else { return Ok(Attempt::Full) };
        let is_hot = origin == Origin::HotUpdate;
        let info = if is_hot { HOT_UPDATE } else { UPDATE };
        let flags = visible_flag(&page, VISIBLE_CLEARED);
        let mut maps = session.lock_maps(&self.relation, &[(&pin, &page)])?;
        let main = update_data(session.xid, (tid.item, is_hot), item, flags);
        let main_data: &[&[u8]] = &[&main];
        let operation = NewRecord::plain(number::HEAP, info, session.xid, main_data);
        let data: &[&[u8]] = &[data];
        let image = ImageMode::IfNeeded;
        let changed = ChangedPage { relation: &self.relation, block, page: &mut page, image, data };
        let changer = &mut *session.changer;
        let place = changer.change_with_maps(&mut room, &operation, &mut [changed], &mut maps)?;
        Ok(Attempt::Done(WrittenRow { tid: Tid { block, item }, lsn: place.end }))
    }

    /// Adds the new version to another page.
    fn update_to(
        &self,
        session: &mut HeapSession<'_>,
        (tid, ended, block): (Tid, Option<u32>, BlockNo),
        keeps_keys: bool,
        (length, data): (u16, &[u8]),
    ) -> Result<Attempt<WrittenRow>, HeapWriteError> {
        let relation = &self.relation;
        let (old_pin, seen) = self.pin_row(session, tid)?;
        self.refuse_others(session, (tid, seen), ended)?;
        let new_pin = session.pin(relation, block)?;
        let mut room = session.room(&[&new_pin, &old_pin], data.len())?;
        // In ascending block order, so that two sessions cannot deadlock.
        let is_old_first = tid.block < block;
        let (first, second) =
            if is_old_first { (&old_pin, &new_pin) } else { (&new_pin, &old_pin) };
        let Some(first) = session.lock(first)? else { return Ok(Attempt::Again) };
        let Some(second) = session.lock(second)? else { return Ok(Attempt::Again) };
        let (mut old, mut new) = if is_old_first { (first, second) } else { (second, first) };
        if self.xmax_of(tid, &old)? != seen {
            return Ok(Attempt::Again);
        }
        let Some(item) = PageSpace::of(&new).take(length) else { return Ok(Attempt::Full) };
        let is_first = is_new(&new);
        let info = if is_first { UPDATE | INITIALISE } else { UPDATE };
        let flags = visible_flag(&old, VISIBLE_CLEARED) | visible_flag(&new, NEW_VISIBLE_CLEARED);
        let mut maps = session.lock_maps(relation, &[(&old_pin, &old), (&new_pin, &new)])?;
        let main = update_data(session.xid, (tid.item, keeps_keys), item, flags);
        let main_data: &[&[u8]] = &[&main];
        let operation = NewRecord::plain(number::HEAP, info, session.xid, main_data);
        let data: &[&[u8]] = &[data];
        let image = if is_first { ImageMode::WillInit } else { ImageMode::IfNeeded };
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
        let changer = &mut *session.changer;
        let place = changer.change_with_maps(&mut room, &operation, &mut pages, &mut maps)?;
        Ok(Attempt::Done(WrittenRow { tid: Tid { block, item }, lsn: place.end }))
    }

    /// The page that rows are inserted into.
    pub(super) fn target_page(
        &mut self,
        session: &mut HeapSession<'_>,
    ) -> Result<BlockNo, HeapWriteError> {
        match self.target {
            Some(block) => Ok(block),
            None => self.extend(session),
        }
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
    pub(super) fn check_row(&self, tid: Tid, page: &PageBytes) -> Result<(), HeapWriteError> {
        let count = PageHeader::parse(page).line_pointer_count();
        let pointer = line_pointer(page, tid.item).filter(|_| tid.item <= count);
        match pointer.is_some_and(|pointer| pointer.flags == LinePointerFlags::Normal) {
            true => Ok(()),
            false => Err(HeapWriteError::NoRow { location: self.at(tid) }),
        }
    }

    /// The place of a row, for a message.
    pub(super) fn at(&self, tid: Tid) -> Location {
        self.relation.location(tid.block).at_item(tid.item)
    }
}

/// `flag` if the page is all-visible, which the change ends.
pub(super) fn visible_flag(page: &PageBytes, flag: u8) -> u8 {
    if is_all_visible(page) { flag } else { 0 }
}

/// `xl_heap_update`. The old version's xmax is the transaction, and the new one has none.
fn update_data(xid: u32, (old_item, keeps_keys): (u16, bool), new_item: u16, flags: u8) -> Vec<u8> {
    let mut bytes = Vec::with_capacity(14);
    bytes.extend_from_slice(&xid.to_le_bytes());
    bytes.extend_from_slice(&old_item.to_le_bytes());
    bytes.push(if keeps_keys { 0 } else { info_bits::KEYS_UPDATED });
    bytes.push(flags);
    bytes.extend_from_slice(&[0; 4]);
    bytes.extend_from_slice(&new_item.to_le_bytes());
    bytes
}
