//! **Page splits** of B-trees: both halves.

use crate::btree::{INCOMPLETE_SPLIT, SPECIAL};
use crate::ids::Tid;
use crate::little_endian::read_at;
use crate::page::{LinePointer, LinePointerFlags};
use crate::wal::block_ref::BlockRef;
use crate::wal::fields::Fields;

use super::change::{Change, block_of, data_of};
use super::error::RedoError;
use super::index_page::{Opaque, item_size, leaf_flag};
use super::page_editor::{PageEditor, align, place_of};
use super::posting::swap;

/// `xl_btree_split`.
struct Split {
    level: u32,
    /// The first item that goes to the right page.
    first_right: u16,
    /// Where the new item goes.
    new_item: u16,
    /// The place in the posting list before the new item, or 0.
    place: u16,
}

impl Split {
    fn of(change: &Change<'_>) -> Option<Self> {
        let mut main = change.main();
        let (level, first_right) = (main.u32()?, main.u16()?);
        Some(Self { level, first_right, new_item: main.u16()?, place: main.u16()? })
    }

    /// Checks that the new item (if it goes to the left page) and the posting list that it splits are within the left
    /// page. Otherwise they would be lost. `first` is the first item of the page that is not its high key.
    fn check_places(&self, first: u16, has_new_item: bool) -> Result<(), RedoError> {
        let last = self.first_right;
        let is_between = |item: u16, first| (first..=last).contains(&item);
        if has_new_item && !is_between(self.new_item, first) {
            return Err(RedoError::SplitItem { item: self.new_item, first, last });
        }
        // The new item comes right behind the list, if it isn't the first one of the right half.
        if self.place != 0 && !is_between(self.new_item, first.saturating_add(1)) {
            let (item, last) = (self.new_item.saturating_sub(1), last.saturating_sub(1));
            return Err(RedoError::SplitItem { item, first, last });
        }
        Ok(())
    }
}

/// Takes an index tuple from the data of a block. Its size is rounded up, as it is on a page.
fn take_item<'b>(fields: &mut Fields<'b>) -> Result<&'b [u8], RedoError> {
    let size = align(item_size(fields.rest()));
    if size == 0 {
        return Err(RedoError::Short);
    }
    fields.bytes(size).ok_or(RedoError::Short)
}

/// Makes the right half, which is logged as a whole.
pub(super) fn split_right(
    page: &mut PageEditor<'_>,
    change: &Change<'_>,
    block: &BlockRef<'_>,
) -> Result<(), RedoError> {
    let split = Split::of(change).ok_or(RedoError::Short)?;
    let left = block_of(change, 0)?;
    let right = change.record.block(2).map_or(0, |block| block.block);
    let Split { level, .. } = split;
    Opaque { left, right, level, flags: leaf_flag(level), cycle: 0 }.write(page);
    restore(page, data_of(block)?)
}

/// Puts items onto an empty page. They are logged as they were between `pd_upper` and `pd_special`,
/// so the item with the highest number comes first.
pub(super) fn restore(page: &mut PageEditor<'_>, items: &[u8]) -> Result<(), RedoError> {
    let mut fields = Fields::of(items);
    let mut count = 0;
    while !fields.rest().is_empty() {
        take_item(&mut fields)?;
        count += 1;
    }
    let special = usize::from(SPECIAL);
    let lower = place_of(count + 1);
    let upper = special.checked_sub(items.len()).filter(|upper| lower <= *upper);
    let no_room = RedoError::NoRoom { item: count, size: items.len(), room: special - 24 };
    let upper = upper.ok_or(no_room)?;
    page.set_hole(lower..upper)?;
    page.put(upper, items);
    let (mut fields, mut offset) = (Fields::of(items), upper);
    for item in (1..=count).rev() {
        let length = take_item(&mut fields)?.len();
        let flags = LinePointerFlags::Normal;
        let pointer = LinePointer { offset: offset as u16, flags, length: length as u16 };
        page.set_line_pointer(item, pointer);
        offset += length;
    }
    Ok(())
}

/// Makes the left half: the items before `first_right`, perhaps with the new item among them, and a
/// new high key.
pub(super) fn split_left(
    page: &mut PageEditor<'_>,
    change: &Change<'_>,
    block: &BlockRef<'_>,
    has_new_item: bool,
) -> Result<(), RedoError> {
    let split = Split::of(change).ok_or(RedoError::Short)?;
    let mut fields = Fields::of(data_of(block)?);
    let is_list_split = split.place != 0;
    let new = match has_new_item || is_list_split {
        true => take_item(&mut fields)?,
        false => &[],
    };
    let high_key = take_item(&mut fields)?;
    if !fields.rest().is_empty() {
        return Err(RedoError::Long { found: fields.rest().len() });
    }
    let before = Opaque::of(page);
    let first = if before.is_rightmost() { 1 } else { 2 };
    split.check_places(first, has_new_item)?;
    let mut copy = *page.page();
    let mut old = PageEditor::open(&mut copy, SPECIAL)?;
    let mut new_row = read_at(new, 0).unwrap_or_default();
    if is_list_split {
        let item = split.new_item.saturating_sub(1);
        let list = old.any_item(item)?;
        new_row = swap(old.bytes_mut(list), item, split.place, new_row)?;
    }
    let right = block_of(change, 1)?;
    let flags = INCOMPLETE_SPLIT | leaf_flag(split.level);
    Opaque { right, flags, cycle: 0, ..before }.restart(page);
    page.insert(1, high_key)?;
    let add_new = |page: &mut PageEditor<'_>| insert_new(page, new, new_row);
    for item in first..split.first_right {
        if has_new_item && item == split.new_item {
            add_new(page)?;
        }
        page.insert(page.count() + 1, old.bytes(old.any_item(item)?))?;
    }
    if has_new_item && split.new_item == split.first_right {
        add_new(page)?;
    }
    Ok(())
}

fn insert_new(
    page: &mut PageEditor<'_>,
    new: &[u8],
    row: [u8; Tid::SIZE],
) -> Result<(), RedoError> {
    let item = page.count() + 1;
    page.insert(item, new)?;
    let at = page.item(item)?;
    page.put(at.start, &row);
    Ok(())
}
