//! **B-tree**: inserts, splits, deduplication, and the deletion of items and pages.
//!
//! ```text
//!   SPLIT_L of block 5   block 0 = 5    the left half, packed anew, with a new high key
//!                        block 1 = 9    the right half, from scratch
//!                        block 2 = 6    its left link
//!                        block 3        a level below: the split there is complete
//! ```
//! Each block reference has a rule of its own, and none looks at another page. Where a server must
//! lock several pages at once to keep readers away, redo needn't.
//!
//! The bytes of the left half are in the order of the items, as the server packs them on a temporary
//! page. The right half is logged as it is.
//!
//! Mirrors PostgreSQL's `access/nbtree/nbtxlog.c` and `access/nbtxlog.h`.

use crate::btree::{
    ALTERNATIVE, DELETED, HALF_DEAD, INCOMPLETE_SPLIT, LEAF, MAGIC, META, ROOT, SPECIAL,
};
use crate::ids::{BlockNo, PageBytes, Tid};
use crate::little_endian::read_at;
use crate::wal::block_ref::BlockRef;
use crate::wal::fields::Fields;
use crate::wal::resource_manager::btree_operation::{
    DEDUP, DELETE, INSERT_LEAF, INSERT_META, INSERT_POST, INSERT_UPPER, MARK_PAGE_HALF_DEAD,
    META_CLEANUP, NEW_ROOT, REUSE_PAGE, SPLIT_LEFT, SPLIT_RIGHT, UNLINK_PAGE, UNLINK_PAGE_META,
    VACUUM,
};

use super::change::{Change, Redone, block_of, data_of};
use super::compaction::delete_items;
use super::error::RedoError;
use super::index_page::{HAS_FULL_XID, HAS_GARBAGE, INFO, Opaque, leaf_flag};
use super::page_editor::{PageEditor, Slot, place_of, put};
use super::posting::{deduplicate, shorten_lists, swap};
use super::split::{restore, split_left, split_right};

/// Whether an operation makes the page of a block reference from scratch.
fn is_initialised(operation: u8, id: u8) -> bool {
    matches!(
        (operation, id),
        (INSERT_META, 2)
            | (SPLIT_LEFT | SPLIT_RIGHT, 1)
            | (UNLINK_PAGE | UNLINK_PAGE_META, 0 | 3 | 4)
            | (NEW_ROOT, 0 | 2)
            | (MARK_PAGE_HALF_DEAD | META_CLEANUP, 0)
    )
}

/// Applies a B-tree record to a page.
pub(super) fn redo(
    page: &mut PageBytes,
    change: &Change<'_>,
    block: &BlockRef<'_>,
) -> Result<Redone, RedoError> {
    let operation = change.record.header().operation();
    if operation > META_CLEANUP {
        return Ok(change.unsupported());
    }
    let is_new = is_initialised(operation, block.id);
    if is_new != block.will_init {
        return Err(RedoError::Initialisation { id: block.id });
    }
    if operation == REUSE_PAGE {
        return Ok(Redone::Unchanged);
    }
    let mut page = match is_new {
        true => PageEditor::initialise(page, SPECIAL),
        false => PageEditor::open(page, SPECIAL)?,
    };
    match (operation, block.id) {
        (INSERT_LEAF | INSERT_UPPER | INSERT_META, 0) => insert(&mut page, change, block),
        (INSERT_POST, 0) => insert_into_list(&mut page, change, block),
        (INSERT_UPPER | INSERT_META | NEW_ROOT, 1) | (SPLIT_LEFT | SPLIT_RIGHT, 3) => {
            complete_split(&mut page);
            Ok(())
        }
        (INSERT_META | NEW_ROOT, 2) | (UNLINK_PAGE_META, 4) | (META_CLEANUP, 0) => {
            write_meta(&mut page, block)
        }
        (SPLIT_LEFT | SPLIT_RIGHT, 0) => {
            split_left(&mut page, change, block, operation == SPLIT_LEFT)
        }
        (SPLIT_LEFT | SPLIT_RIGHT, 1) => split_right(&mut page, change, block),
        (SPLIT_LEFT | SPLIT_RIGHT, 2) => set_left_link(&mut page, block_of(change, 1)?),
        (DEDUP, 0) => merge_items(&mut page, change, block),
        (DELETE | VACUUM, 0) => delete(&mut page, change, block, operation == VACUUM),
        (UNLINK_PAGE | UNLINK_PAGE_META, 0..=3) => unlink(&mut page, change, block.id),
        (NEW_ROOT, 0) => new_root(&mut page, change, block),
        (MARK_PAGE_HALF_DEAD, 0) => half_dead(&mut page, change),
        (MARK_PAGE_HALF_DEAD, 1) => remove_downlink(&mut page, change),
        _ => Err(RedoError::UnexpectedBlock { id: block.id }),
    }?;
    page.set_lsn(change.end);
    Ok(if is_new { Redone::Initialised } else { Redone::Applied })
}

fn insert(
    page: &mut PageEditor<'_>,
    change: &Change<'_>,
    block: &BlockRef<'_>,
) -> Result<(), RedoError> {
    let item = change.first_number()?;
    page.insert(item, data_of(block)?)
}

/// Inserts a row whose place is inside of the posting list before it.
fn insert_into_list(
    page: &mut PageEditor<'_>,
    change: &Change<'_>,
    block: &BlockRef<'_>,
) -> Result<(), RedoError> {
    let item = change.first_number()?;
    let mut fields = Fields::of(data_of(block)?);
    let place = fields.u16().ok_or(RedoError::Short)?;
    let new = fields.rest();
    let row: [u8; Tid::SIZE] = read_at(new, 0).ok_or(RedoError::Short)?;
    let list_item = item.saturating_sub(1);
    let list = page.any_item(list_item)?;
    let pushed_out = swap(page.bytes_mut(list), list_item, place, row)?;
    let at = page.add(item, new.len(), Slot::Shift)?;
    page.put(at, new);
    page.put(at, &pushed_out);
    Ok(())
}

/// The parent has got the downlink to the right half.
fn complete_split(page: &mut PageEditor<'_>) {
    let mut opaque = Opaque::of(page);
    opaque.flags &= !INCOMPLETE_SPLIT;
    opaque.write(page);
}

fn set_left_link(page: &mut PageEditor<'_>, left: BlockNo) -> Result<(), RedoError> {
    let mut opaque = Opaque::of(page);
    opaque.left = left;
    opaque.write(page);
    Ok(())
}

/// Writes the metapage. All of it is in the record.
fn write_meta(page: &mut PageEditor<'_>, block: &BlockRef<'_>) -> Result<(), RedoError> {
    let mut fields = Fields::of(data_of(block)?);
    let all_equal_image = fields.skip_to(24).u8().ok_or(RedoError::Short)?;
    // Version, root and fast root with their levels, and the number of deleted pages.
    let numbers = fields.bytes(24).ok_or(RedoError::Short)?;
    page.put(24, &MAGIC.to_le_bytes());
    page.put(28, numbers);
    // The number of rows at the last cleanup: unknown.
    page.put(56, &(-1.0_f64).to_le_bytes());
    page.put(64, &[all_equal_image]);
    let upper = page.upper();
    page.set_hole(72..upper)?;
    Opaque { flags: META, ..Opaque::default() }.write(page);
    Ok(())
}

fn merge_items(
    page: &mut PageEditor<'_>,
    change: &Change<'_>,
    block: &BlockRef<'_>,
) -> Result<(), RedoError> {
    let count = change.first_number()?;
    let runs = Fields::of(data_of(block)?).bytes(usize::from(count) * 4);
    deduplicate(page, runs.ok_or(RedoError::Short)?)?;
    let mut opaque = Opaque::of(page);
    opaque.flags &= !HAS_GARBAGE;
    opaque.write(page);
    Ok(())
}

/// Deletes items: those that `VACUUM` has found dead, or an insert that needs room.
fn delete(
    page: &mut PageEditor<'_>,
    change: &Change<'_>,
    block: &BlockRef<'_>,
    is_vacuum: bool,
) -> Result<(), RedoError> {
    let start = if is_vacuum { 0 } else { 4 };
    let mut main = change.main().skip_to(start);
    let deleted = usize::from(main.u16().ok_or(RedoError::Short)?);
    let updated = usize::from(main.u16().ok_or(RedoError::Short)?);
    let mut fields = Fields::of(data_of(block)?);
    let deleted = fields.bytes(deleted * 2).ok_or(RedoError::Short)?;
    let updated = fields.bytes(updated * 2).ok_or(RedoError::Short)?;
    shorten_lists(page, updated, &mut fields)?;
    delete_items(page, deleted)?;
    let mut opaque = Opaque::of(page);
    opaque.flags &= !HAS_GARBAGE;
    if is_vacuum {
        opaque.cycle = 0;
    }
    opaque.write(page);
    Ok(())
}

/// The dummy high key of a half-dead page: the top parent of the subtree that is being deleted.
fn write_half_dead(
    page: &mut PageEditor<'_>,
    [left, right, top_parent]: [BlockNo; 3],
) -> Result<(), RedoError> {
    Opaque { left, right, flags: HALF_DEAD | LEAF, ..Opaque::default() }.write(page);
    let mut item = [0; 8];
    put(&mut item, 0, &Tid { block: top_parent, item: 0 }.to_bytes());
    put(&mut item, INFO, &(ALTERNATIVE | 8).to_le_bytes());
    page.insert(1, &item)
}

/// The first step of the deletion of a page: the leaf.
fn half_dead(page: &mut PageEditor<'_>, change: &Change<'_>) -> Result<(), RedoError> {
    let mut main = change.main().skip_to(8);
    let mut block = || main.u32().ok_or(RedoError::Short);
    write_half_dead(page, [block()?, block()?, block()?])
}

/// The first step of the deletion of a page: its parent. The downlink to the page becomes that to its
/// right sibling, and the sibling's goes.
fn remove_downlink(page: &mut PageEditor<'_>, change: &Change<'_>) -> Result<(), RedoError> {
    let item = change.first_number()?;
    let next = item.saturating_add(1);
    let sibling = page.item(next)?;
    let downlink = page.item(item)?;
    // A block number without the line pointer number, which counts the columns of the key.
    let block: [u8; 4] = read_at(page.bytes(sibling), 0).ok_or(RedoError::Short)?;
    if downlink.len() < 8 {
        return Err(RedoError::ItemLength { item, found: downlink.len(), expected: 8 });
    }
    page.put(downlink.start, &block);
    page.delete(next)
}

/// The second step of the deletion of a page.
fn unlink(page: &mut PageEditor<'_>, change: &Change<'_>, id: u8) -> Result<(), RedoError> {
    let mut main = change.main();
    let mut word = || main.u32().ok_or(RedoError::Short);
    let (left, right, level) = (word()?, word()?, word()?);
    let safe_xid: u64 = main.skip_to(16).take().ok_or(RedoError::Short)?;
    let mut opaque = Opaque::of(page);
    match id {
        0 => {
            let flags = DELETED | HAS_FULL_XID | leaf_flag(level);
            Opaque { left, right, level, flags, cycle: 0 }.write(page);
            page.put(place_of(1), &safe_xid.to_le_bytes());
            let upper = page.upper();
            page.set_hole(32..upper)?;
            return Ok(());
        }
        1 => opaque.right = right,
        2 => opaque.left = left,
        _ => {
            let mut leaf = change.main().skip_to(24);
            let mut block = || leaf.u32().ok_or(RedoError::Short);
            return write_half_dead(page, [block()?, block()?, block()?]);
        }
    }
    opaque.write(page);
    Ok(())
}

fn new_root(
    page: &mut PageEditor<'_>,
    change: &Change<'_>,
    block: &BlockRef<'_>,
) -> Result<(), RedoError> {
    let level = change.main().skip_to(4).u32().ok_or(RedoError::Short)?;
    Opaque { level, flags: ROOT | leaf_flag(level), ..Opaque::default() }.write(page);
    if level > 0 {
        restore(page, data_of(block)?)?;
    }
    Ok(())
}
