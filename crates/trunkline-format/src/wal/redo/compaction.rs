//! **Compaction**: closes the gaps between items, and drops unused line pointers from the end.
//!
//! ```text
//!   before  1 2 3 4 5 ──────  5 │ 3 │gap│ 1 │gap│ 2 │    4 is dead, without storage
//!   after   1 2 3 4 5 ─────────────── │ 5 │ 3 │ 2 │ 1 │
//! ```
//! Items are packed in the order of their line pointers, from the special space downwards. That is
//! the order a server leaves, whichever of its two algorithms it has taken.
//!
//! Mirrors `PageRepairFragmentation`, `PageTruncateLinePointerArray` and `PageIndexMultiDelete` in
//! PostgreSQL's `storage/page/bufpage.c`.

use crate::page::{FLAG_FREE_LINES, LinePointer, LinePointerFlags};

use super::error::RedoError;
use super::page_editor::{PageEditor, align, place_of};

/// Up to this number of items, an index page deletes them one by one, and the others keep their
/// order.
const FEW: usize = 2;

/// A line pointer without an item.
const UNUSED: LinePointer = LinePointer { offset: 0, flags: LinePointerFlags::Unused, length: 0 };

/// The numbers in a list of the log, which is not aligned.
pub(super) fn numbers(list: &[u8]) -> impl DoubleEndedIterator<Item = u16> + Clone + '_ {
    list.as_chunks::<2>().0.iter().map(|bytes| u16::from_le_bytes(*bytes))
}

/// The pairs of numbers in a list of the log.
pub(super) fn pairs(list: &[u8]) -> impl Iterator<Item = (u16, u16)> + '_ {
    numbers(list).step_by(2).zip(numbers(list).skip(1).step_by(2))
}

/// Overwrites a line pointer that is in use. If it has an item, the item is lost.
pub(super) fn change_used(
    page: &mut PageEditor<'_>,
    item: u16,
    new: LinePointer,
) -> Result<(), RedoError> {
    let found = page.line_pointer(item)?.flags;
    if found == LinePointerFlags::Unused {
        let expected = LinePointerFlags::Normal;
        return Err(RedoError::LinePointerState { item, found, expected });
    }
    page.set_line_pointer(item, new);
    Ok(())
}

/// Marks line pointers as unused. Their items are lost.
pub(super) fn set_unused(page: &mut PageEditor<'_>, items: &[u8]) -> Result<(), RedoError> {
    numbers(items).try_for_each(|item| change_used(page, item, UNUSED))
}

/// Marks dead line pointers as unused. They have no storage, so no cleanup lock is needed.
pub(super) fn remove_dead(page: &mut PageEditor<'_>, items: &[u8]) -> Result<(), RedoError> {
    for item in numbers(items) {
        let LinePointer { flags: found, length, .. } = page.line_pointer(item)?;
        let expected = LinePointerFlags::Dead;
        if found != expected {
            return Err(RedoError::LinePointerState { item, found, expected });
        }
        if length != 0 {
            return Err(RedoError::ItemLength { item, found: length.into(), expected: 0 });
        }
        page.set_line_pointer(item, UNUSED);
    }
    Ok(())
}

/// Packs the items of a heap page, and removes unused line pointers from the end of the array.
pub(super) fn repair(page: &mut PageEditor<'_>) -> Result<(), RedoError> {
    for item in 1..=page.count() {
        if page.line_pointer(item)?.flags == LinePointerFlags::Unused {
            page.set_line_pointer(item, UNUSED);
        }
    }
    let (last_used, has_free) = used(page)?;
    pack(page)?;
    cut(page, last_used, has_free)
}

/// Removes unused line pointers from the end of the array, but never all of them.
pub(super) fn truncate(page: &mut PageEditor<'_>) -> Result<(), RedoError> {
    let (last_used, mut has_free) = used(page)?;
    // Index scans may still hold the number of a line pointer, so a page never becomes empty.
    has_free |= last_used == 0;
    cut(page, last_used.max(1).min(page.count()), has_free)
}

/// The last line pointer that is used, or 0, and whether there are unused ones before it.
fn used(page: &PageEditor<'_>) -> Result<(u16, bool), RedoError> {
    let (mut last_used, mut has_free) = (0, false);
    for item in 1..=page.count() {
        if page.line_pointer(item)?.flags != LinePointerFlags::Unused {
            has_free |= last_used + 1 < item;
            last_used = item;
        }
    }
    Ok((last_used, has_free))
}

/// Ends the array of line pointers behind `last`.
fn cut(page: &mut PageEditor<'_>, last: u16, has_free: bool) -> Result<(), RedoError> {
    let upper = page.upper();
    page.set_hole(place_of(last + 1)..upper)?;
    let (set, clear) = if has_free { (FLAG_FREE_LINES, 0) } else { (0, FLAG_FREE_LINES) };
    page.change_flags(set, clear);
    Ok(())
}

/// Deletes items of an index page. `items` are their numbers in ascending order.
pub(super) fn delete_items(page: &mut PageEditor<'_>, items: &[u8]) -> Result<(), RedoError> {
    if numbers(items).count() <= FEW {
        return numbers(items).rev().try_for_each(|item| page.delete(item));
    }
    let (mut deleted, mut kept, count) = (numbers(items).peekable(), 0, page.count());
    for item in 1..=count {
        let pointer = page.line_pointer(item)?;
        if deleted.next_if_eq(&item).is_none() {
            kept += 1;
            page.set_line_pointer(kept, pointer);
        }
    }
    if let Some(item) = deleted.next() {
        return Err(RedoError::NoLinePointer { item, count });
    }
    let upper = page.upper();
    page.set_hole(place_of(kept + 1)..upper)?;
    pack(page)
}

/// `compactify_tuples`: packs all items in the order of their line pointers.
fn pack(page: &mut PageEditor<'_>) -> Result<(), RedoError> {
    // Items may overlap while they are moved, in either direction.
    let old = *page.page();
    let (lower, special) = (page.lower(), page.special());
    let (mut upper, mut size) = (special, 0);
    for item in 1..=page.count() {
        let pointer = page.line_pointer(item)?;
        if pointer.length == 0 {
            continue;
        }
        let range = page.stored(item, pointer)?;
        size += align(range.len());
        let room = special - lower;
        let Some(at) = special.checked_sub(size).filter(|at| *at >= lower) else {
            return Err(RedoError::Overlap { found: size, room });
        };
        upper = at;
        // The bytes between items are copied too, as the server does.
        let end = (range.start + align(range.len())).min(special);
        page.put(at, old.get(range.start..end).unwrap_or_default());
        page.set_line_pointer(item, LinePointer { offset: at as u16, ..pointer });
    }
    page.set_hole(lower..upper)?;
    Ok(())
}
