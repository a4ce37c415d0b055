//! **Posting lists** in redo: split by an insert, shortened by `VACUUM`, made by deduplication.
//!
//! ```text
//!   0     6      8                 key end
//!   ├─tid─┼ info ┼ key, padding ────┼ row │ row │ row │ … ┤ padding to 8
//!    block = key end, item = 0x2000 | number of rows
//! ```
//! **Swap.** A new row whose place is in the middle of a list takes the list's last place; the last
//! row of the list becomes an item of its own behind it. So the list keeps its size, and is
//! overwritten where it is.
//!
//! Mirrors PostgreSQL's `access/nbtree/nbtdedup.c`.

use crate::btree::{ALTERNATIVE, COUNT, INDEX_SIZE_MASK, IS_POSTING, SPECIAL};
use crate::ids::{BLOCK_SIZE, Tid};
use crate::little_endian::read_at;
use crate::wal::fields::Fields;

use super::compaction::{numbers, pairs};
use super::error::RedoError;
use super::index_page::{INFO, Opaque, item_size};
use super::page_editor::{PageEditor, Slot, align, put};

/// Where the parts of a posting list are.
#[derive(Clone, Copy, Debug)]
struct Posting {
    /// The size of header and key.
    key: usize,
    /// The number of rows.
    count: usize,
}

impl Posting {
    /// The parts of an item, if it is a posting list that lies in its bytes.
    fn parse(bytes: &[u8]) -> Option<Self> {
        let info: u16 = read_at(bytes, INFO)?;
        let tid = Tid::from_bytes(read_at(bytes, 0)?);
        let is_posting = info & ALTERNATIVE != 0 && tid.item & IS_POSTING != 0;
        let (key, count) = (usize::try_from(tid.block).ok()?, usize::from(tid.item & COUNT));
        let end = key.checked_add(count * Tid::SIZE)?;
        let is_inside = key >= 8 && count > 0 && end <= bytes.len();
        (is_posting && is_inside).then_some(Self { key, count })
    }

    /// Where a row is.
    fn place(self, number: usize) -> usize {
        self.key + number * Tid::SIZE
    }
}

/// Gives a new row its place in a list, and returns the row that is the new item's from now on.
/// `item` is the list's line pointer, for the error.
pub(super) fn swap(
    list: &mut [u8],
    item: u16,
    place: u16,
    new: [u8; Tid::SIZE],
) -> Result<[u8; Tid::SIZE], RedoError> {
    let wrong = RedoError::PostingList { item, expected: place };
    let posting = Posting::parse(list).ok_or(wrong)?;
    if place == 0 || usize::from(place) >= posting.count {
        return Err(wrong);
    }
    let last = posting.place(posting.count - 1);
    let at = posting.place(place.into());
    let pushed_out = read_at(list, last).ok_or(wrong)?;
    list.copy_within(at..last, at + Tid::SIZE);
    put(list, at, &new);
    Ok(pushed_out)
}

/// Turns the first `key` bytes of an item into the start of a posting list of `size` bytes.
fn begin_list(bytes: &mut [u8], key: usize, count: usize, size: usize) {
    let info = read_at::<u16>(bytes, INFO).unwrap_or_default() & !INDEX_SIZE_MASK;
    put(bytes, INFO, &(info | size as u16 | ALTERNATIVE).to_le_bytes());
    let tid = Tid { block: key as u32, item: count as u16 | IS_POSTING };
    put(bytes, 0, &tid.to_bytes());
}

/// Removes rows from posting lists. `updates` contains, for each of the `items`, the number of rows
/// and then their places.
pub(super) fn shorten_lists(
    page: &mut PageEditor<'_>,
    items: &[u8],
    updates: &mut Fields<'_>,
) -> Result<(), RedoError> {
    for item in numbers(items) {
        let count = usize::from(updates.u16().ok_or(RedoError::Short)?);
        let removed = updates.bytes(count * 2).ok_or(RedoError::Short)?;
        let old = page.bytes(page.any_item(item)?);
        let wrong = RedoError::PostingList { item, expected: count as u16 };
        let posting = Posting::parse(old).ok_or(wrong)?;
        let left = posting.count.checked_sub(count).filter(|left| *left > 0).ok_or(wrong)?;
        let size = match left {
            1 => posting.key,
            _ => align(posting.key + left * Tid::SIZE),
        };
        let mut new = [0; BLOCK_SIZE];
        let new = new.get_mut(..size).ok_or(wrong)?;
        put(new, 0, old.get(..posting.key).unwrap_or_default());
        begin_list(new, posting.key, left, size);
        if left == 1 {
            let info = read_at::<u16>(new, INFO).unwrap_or_default();
            put(new, INFO, &(info & !ALTERNATIVE).to_le_bytes());
        }
        let (mut removed, mut kept) = (numbers(removed).map(usize::from).peekable(), 0);
        for number in 0..posting.count {
            if removed.next_if_eq(&number).is_some() {
                continue;
            }
            if kept == left {
                return Err(wrong);
            }
            let row: [u8; Tid::SIZE] = read_at(old, posting.place(number)).ok_or(wrong)?;
            let at = if left == 1 { 0 } else { posting.place(kept) };
            put(new, at, &row);
            kept += 1;
        }
        if kept != left {
            return Err(wrong);
        }
        page.overwrite(item, new)?;
    }
    Ok(())
}

/// Merges runs of items into posting lists. `runs` contains the number of the first item and the
/// number of items of each.
pub(super) fn deduplicate(page: &mut PageEditor<'_>, runs: &[u8]) -> Result<(), RedoError> {
    let mut copy = *page.page();
    let old = PageEditor::open(&mut copy, SPECIAL)?;
    let opaque = Opaque::of(page);
    opaque.restart(page);
    let count = old.count();
    let mut item = 1;
    if !opaque.is_rightmost() {
        page.insert(1, old.bytes(old.item(1)?))?;
        item = 2;
    }
    let mut runs = pairs(runs);
    let mut run = runs.next();
    while item <= count {
        let length = match run {
            Some((first, length)) if first == item => {
                run = runs.next();
                if length < 2 {
                    return Err(RedoError::PostingList { item, expected: 1 });
                }
                if length > count - item + 1 {
                    return Err(RedoError::NoLinePointer {
                        item: item.saturating_add(length - 1),
                        count,
                    });
                }
                length
            }
            _ => 1,
        };
        merge(page, &old, item, length)?;
        item += length;
    }
    match run {
        Some((item, _)) => Err(RedoError::NoLinePointer { item, count }),
        None => Ok(()),
    }
}

/// An item's key and rows.
struct KeyAndRows<'p> {
    key: usize,
    bytes: &'p [u8],
    rows: &'p [u8],
}

impl<'p> KeyAndRows<'p> {
    fn of(page: &'p PageEditor<'_>, item: u16) -> Result<Self, RedoError> {
        let bytes = page.bytes(page.any_item(item)?);
        let (found, expected) = (bytes.len(), item_size(bytes));
        if found < 8 || expected < 8 || found < expected {
            return Err(RedoError::ItemLength { item, found, expected: expected.max(8) });
        }
        if let Some(posting) = Posting::parse(bytes) {
            let rows = bytes.get(posting.key..posting.place(posting.count)).unwrap_or_default();
            return Ok(Self { key: posting.key, bytes, rows });
        }
        // On a leaf page, only posting lists and the high key have this flag, and the high key is never merged.
        if read_at::<u16>(bytes, INFO).unwrap_or_default() & ALTERNATIVE != 0 {
            return Err(RedoError::PostingList { item, expected: 0 });
        }
        let rows = bytes.get(..Tid::SIZE).unwrap_or_default();
        Ok(Self { key: expected, bytes, rows })
    }
}

/// Adds `count` items of the old page to the new one, as one.
fn merge(
    page: &mut PageEditor<'_>,
    old: &PageEditor<'_>,
    item: u16,
    count: u16,
) -> Result<(), RedoError> {
    let base = KeyAndRows::of(old, item)?;
    let next = page.count() + 1;
    if count == 1 {
        let size = item_size(base.bytes);
        return page.insert(next, base.bytes.get(..size).unwrap_or_default());
    }
    let mut rows = 0;
    for item in item..item + count {
        rows += KeyAndRows::of(old, item)?.rows.len() / Tid::SIZE;
    }
    let size = align(base.key + rows * Tid::SIZE);
    let at = page.add(next, size, Slot::Shift)?;
    page.put(at, base.bytes.get(..base.key).unwrap_or_default());
    begin_list(page.bytes_mut(at..at + size), base.key, rows, size);
    let mut place = at + base.key;
    for item in item..item + count {
        let part = KeyAndRows::of(old, item)?.rows;
        page.put(place, part);
        place += part.len();
    }
    Ok(())
}
