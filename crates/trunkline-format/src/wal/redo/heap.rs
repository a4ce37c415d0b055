//! **Heap**: insert, delete, update, lock, and what `INSERT … ON CONFLICT` and catalogs need.
//!
//! ```text
//!   HOT_UPDATE of (7,3) to (7,9)    block 0 = page 7    3: xmax, infomask, ctid = (7,9)
//!                                                       9: new version, parts of it copied from 3
//!   UPDATE of (7,3) to (8,1)        block 0 = page 8    1: new version
//!                                   block 1 = page 7    3: xmax, infomask, ctid = (8,1)
//! ```
//! A new version may take its beginning and end from the old one, but only on the same page, since
//! redo of a page must not look at another one.
//!
//! Mirrors PostgreSQL's `access/heap/heapam_xlog.c` and `access/heapam_xlog.h`.

use crate::ids::{BlockNo, Fork, PageBytes, Tid};
use crate::wal::block_ref::BlockRef;
use crate::wal::fields::Fields;
use crate::wal::heap_flags::{NEW_VISIBLE_CLEARED, VISIBLE_CLEARED};

use super::change::{Change, Redone, data_of};
use super::error::RedoError;
use super::heap_page::{RowLock, change_visible, clear_visible, open, operation_of};
use super::page_editor::PageEditor;
use super::row::{Link, NewRow, Reused, Row, overwrite_attributes};
use crate::wal::resource_manager::heap_operation::{
    CONFIRM, DELETE, HOT_UPDATE, INSERT, LOCK, TRUNCATE, UPDATE,
};

/// `XLH_DELETE_IS_SUPER`: a speculative insertion is taken back.
const IS_SUPER: u8 = 0x08;
/// `XLH_DELETE_IS_PARTITION_MOVE`.
const IS_PARTITION_MOVE: u8 = 0x10;
/// `XLH_UPDATE_PREFIX_FROM_OLD` and `XLH_UPDATE_SUFFIX_FROM_OLD`.
const PREFIX_FROM_OLD: u8 = 0x20;
const SUFFIX_FROM_OLD: u8 = 0x40;

/// Applies a Heap record to a heap page.
pub(super) fn redo(
    page: &mut PageBytes,
    change: &Change<'_>,
    block: &BlockRef<'_>,
) -> Result<Redone, RedoError> {
    let operation = operation_of(change.record.header());
    if operation == TRUNCATE {
        return Ok(Redone::Unchanged);
    }
    let is_update = matches!(operation, UPDATE | HOT_UPDATE);
    if block.id > u8::from(is_update) {
        return Err(RedoError::UnexpectedBlock { id: block.id });
    }
    let mut page = open(page, block)?;
    match operation {
        INSERT => insert(&mut page, change, block),
        DELETE => delete(&mut page, change, block.block),
        UPDATE | HOT_UPDATE => update(&mut page, change, block),
        CONFIRM => confirm(&mut page, change, block.block),
        LOCK => lock(&mut page, change, block.block),
        _ => in_place(&mut page, change, block),
    }?;
    page.set_lsn(change.end);
    Ok(if block.will_init { Redone::Initialised } else { Redone::Applied })
}

fn insert(
    page: &mut PageEditor<'_>,
    change: &Change<'_>,
    block: &BlockRef<'_>,
) -> Result<(), RedoError> {
    let mut main = change.main();
    let item = main.u16().ok_or(RedoError::Short)?;
    let flags = main.u8().ok_or(RedoError::Short)?;
    let row = NewRow::take_rest(&mut Fields::of(data_of(block)?))?;
    let own = Tid { block: block.block, item };
    row.add(page, own, (change.record.header().xid, 0), Reused::default())?;
    change_visible(page, flags);
    Ok(())
}

fn delete(page: &mut PageEditor<'_>, change: &Change<'_>, block: BlockNo) -> Result<(), RedoError> {
    let RowLock { xmax, item, info, flags } = RowLock::of(change)?;
    let mut row = Row::at(page, item)?;
    row.set_info_bits(info);
    row.set_hot_updated(false);
    if flags & IS_SUPER != 0 {
        row.set_xmin(0);
    } else {
        row.set_xmax(xmax);
    }
    row.reset_command();
    row.set_link(match flags & IS_PARTITION_MOVE {
        0 => Link::To(Tid { block, item }),
        _ => Link::OtherPartition,
    });
    page.set_prunable(change.record.header().xid);
    clear_visible(page, flags & VISIBLE_CLEARED != 0);
    Ok(())
}

fn update(
    page: &mut PageEditor<'_>,
    change: &Change<'_>,
    block: &BlockRef<'_>,
) -> Result<(), RedoError> {
    let mut main = change.main();
    let old = RowLock::take(&mut main).ok_or(RedoError::Short)?;
    let new_xmax = main.u32().ok_or(RedoError::Short)?;
    let new_item = main.u16().ok_or(RedoError::Short)?;
    let new_block = change.record.block(0).ok_or(RedoError::NoBlock { id: 0 })?.block;
    let is_same_page = change.record.block(1).is_none_or(|other| other.fork != Fork::Main);
    let new = Tid { block: new_block, item: new_item };
    if block.id == 1 || is_same_page {
        let is_hot = operation_of(change.record.header()) == HOT_UPDATE;
        let mut row = Row::at(page, old.item)?;
        row.set_info_bits(old.info);
        row.set_hot_updated(is_hot);
        row.set_xmax(old.xmax);
        row.reset_command();
        row.set_link(Link::To(new));
        page.set_prunable(change.record.header().xid);
        clear_visible(page, old.flags & VISIBLE_CLEARED != 0);
    }
    if block.id == 0 {
        let reused = (old.flags & (PREFIX_FROM_OLD | SUFFIX_FROM_OLD) != 0) && !is_same_page;
        if reused {
            return Err(RedoError::UnexpectedBlock { id: 1 });
        }
        add_version(page, change, block, (old, new, new_xmax))?;
    }
    Ok(())
}

/// The new version of an update.
fn add_version(
    page: &mut PageEditor<'_>,
    change: &Change<'_>,
    block: &BlockRef<'_>,
    (old, new, new_xmax): (RowLock, Tid, u32),
) -> Result<(), RedoError> {
    let mut fields = Fields::of(data_of(block)?);
    let mut length = |flag: u8| match old.flags & flag {
        0 => Ok(0),
        _ => fields.u16().map(usize::from).ok_or(RedoError::Short),
    };
    let (prefix, suffix) = (length(PREFIX_FROM_OLD)?, length(SUFFIX_FROM_OLD)?);
    let row = NewRow::take_rest(&mut fields)?;
    let xids = (change.record.header().xid, new_xmax);
    row.add(page, new, xids, Reused { item: old.item, prefix, suffix })?;
    clear_visible(page, old.flags & NEW_VISIBLE_CLEARED != 0);
    Ok(())
}

/// The insertion of `ON CONFLICT` is no longer speculative.
fn confirm(
    page: &mut PageEditor<'_>,
    change: &Change<'_>,
    block: BlockNo,
) -> Result<(), RedoError> {
    let item = change.first_number()?;
    Row::at(page, item)?.set_link(Link::To(Tid { block, item }));
    Ok(())
}

fn lock(page: &mut PageEditor<'_>, change: &Change<'_>, block: BlockNo) -> Result<(), RedoError> {
    let RowLock { xmax, item, info, .. } = RowLock::of(change)?;
    let mut row = Row::at(page, item)?;
    row.set_info_bits(info);
    if row.is_only_locked() {
        row.set_hot_updated(false);
        row.set_link(Link::To(Tid { block, item }));
    }
    row.set_xmax(xmax);
    row.reset_command();
    Ok(())
}

/// Catalogs change some numbers of a row without a new version.
fn in_place(
    page: &mut PageEditor<'_>,
    change: &Change<'_>,
    block: &BlockRef<'_>,
) -> Result<(), RedoError> {
    let item = change.first_number()?;
    overwrite_attributes(page, item, data_of(block)?)
}
