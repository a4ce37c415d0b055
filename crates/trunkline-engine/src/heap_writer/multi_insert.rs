//! Inserts many rows, with one record for each page (PostgreSQL's `heap_multi_insert`).

use trunkline_format::page::is_new;
use trunkline_format::page_builder::{NewTuple, Origin};
use trunkline_format::wal::heap_flags::{LAST_IN_MULTI, VISIBLE_CLEARED};
use trunkline_format::wal::resource_manager::heap_operation::INITIALISE;
use trunkline_format::wal::resource_manager::heap2_operation::MULTI_INSERT;
use trunkline_format::wal::resource_manager::number;
use trunkline_format::wal::{ImageMode, NewRecord};
use trunkline_format::{BLOCK_SIZE, BlockNo, Tid};

use super::error::HeapWriteError;
use super::page_space::{PageSpace, length_of};
use super::session::HeapSession;
use super::writer::{Attempt, HeapWriter, WrittenRow, visible_flag};
use crate::page_change::ChangedPage;

impl HeapWriter {
    /// Inserts rows, in this order, and fills page after page.
    ///
    /// # Errors
    /// [`HeapWriteError`]. If a row is too long, none was inserted. Otherwise, those on pages that were full are in the
    /// table: the transaction must be aborted.
    pub fn insert_many(
        &mut self,
        session: &mut HeapSession<'_>,
        rows: &[NewTuple<'_>],
    ) -> Result<Vec<WrittenRow>, HeapWriteError> {
        let mut lengths = Vec::with_capacity(rows.len());
        for row in rows {
            lengths.push(length_of(row)?);
        }
        let mut written = Vec::with_capacity(rows.len());
        while let Some(left) = rows.get(written.len()..).filter(|left| !left.is_empty()) {
            let block = self.target_page(session)?;
            let lengths = lengths.get(written.len()..).unwrap_or_default();
            match self.insert_into(session, block, (left, lengths))? {
                Attempt::Done(page) => written.extend(page),
                Attempt::Full => self.target = None,
                Attempt::Again => {}
            }
        }
        Ok(written)
    }

    /// Inserts as many of the rows as fit on the page.
    fn insert_into(
        &self,
        session: &mut HeapSession<'_>,
        block: BlockNo,
        (rows, lengths): (&[NewTuple<'_>], &[u16]),
    ) -> Result<Attempt<Vec<WrittenRow>>, HeapWriteError> {
        let pin = session.pin(&self.relation, block)?;
        // No more rows than fit on a page, and each takes 28 bytes of it.
        let mut room = session.room(&[&pin], BLOCK_SIZE)?;
        let Some(mut page) = session.lock(&pin)? else { return Ok(Attempt::Again) };
        let mut space = PageSpace::of(&page);
        let items: Vec<u16> = lengths.iter().map_while(|length| space.take(*length)).collect();
        if items.is_empty() {
            return Ok(Attempt::Full);
        }
        let is_first = is_new(&page);
        let is_last = items.len() == rows.len();
        let flags = visible_flag(&page, VISIBLE_CLEARED) | if is_last { LAST_IN_MULTI } else { 0 };
        let mut maps = session.lock_maps(&self.relation, &[(&pin, &page)])?;
        let main = main_data(flags, &items, is_first);
        let main_data: &[&[u8]] = &[&main];
        let info = if is_first { MULTI_INSERT | INITIALISE } else { MULTI_INSERT };
        let operation = NewRecord::plain(number::HEAP2, info, session.xid, main_data);
        let image = if is_first { ImageMode::WillInit } else { ImageMode::IfNeeded };
        let data = block_data(rows.get(..items.len()).unwrap_or_default());
        let data: &[&[u8]] = &[&data];
        let changed = ChangedPage { relation: &self.relation, block, page: &mut page, image, data };
        let changer = &mut *session.changer;
        let place = changer.change_with_maps(&mut room, &operation, &mut [changed], &mut maps)?;
        let written = |item| WrittenRow { tid: Tid { block, item }, lsn: place.end };
        Ok(Attempt::Done(items.into_iter().map(written).collect()))
    }
}

/// `xl_heap_multi_insert`. The line pointers of a new page are 1, 2 and so on, and are left out.
fn main_data(flags: u8, items: &[u16], is_first: bool) -> Vec<u8> {
    let mut bytes = vec![flags, 0];
    bytes.extend_from_slice(&(items.len() as u16).to_le_bytes());
    if !is_first {
        bytes.extend(items.iter().flat_map(|item| item.to_le_bytes()));
    }
    bytes
}

/// The rows, each as `xl_multi_insert_tuple` at a multiple of 2.
fn block_data(rows: &[NewTuple<'_>]) -> Vec<u8> {
    let mut bytes: Vec<u8> = Vec::with_capacity(BLOCK_SIZE);
    for row in rows {
        let record = row.to_record(Origin::Insert);
        bytes.resize(bytes.len().next_multiple_of(2), 0);
        // The length doesn't include the header, of 5 bytes.
        bytes.extend_from_slice(&((record.len() - 5) as u16).to_le_bytes());
        bytes.extend_from_slice(&record);
    }
    bytes
}
