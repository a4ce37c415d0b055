//! Checks line pointers, the items they point to, and the headers of heap tuples.
//!
//! Every offset and length comes from the page itself, so we check it before we use it.

use super::finding::Finding;
use crate::heap_tuple::{HAS_NULL, MAX_HEAP_ATTRIBUTES, MIN_TUPLE_SIZE, NATTS, TUPLE_HEADER_SIZE};
use crate::ids::{BLOCK_SIZE, PageBytes};
use crate::page::{
    HEADER_SIZE, LINE_POINTER_SIZE, LinePointer, LinePointerFlags, PageHeader, line_pointer,
    line_pointers,
};
use crate::page_kind::PageKind;

/// The smallest index tuple (`IndexTupleData`): a TID and a length word.
const MIN_INDEX_TUPLE_SIZE: u16 = 8;
/// `MaxHeapTuplesPerPage`: how many minimal tuples fit in a page along with their line pointers.
const MAX_HEAP_TUPLES_PER_PAGE: u16 =
    (BLOCK_SIZE as u16 - HEADER_SIZE) / (MIN_TUPLE_SIZE + LINE_POINTER_SIZE);

const _: () = assert!(MAX_HEAP_TUPLES_PER_PAGE == 291);

/// Checks the line pointers and items of a page whose `header` is valid.
pub(super) fn check_line_pointers(
    page: &PageBytes,
    header: &PageHeader,
    kind: PageKind,
) -> Result<(), Finding> {
    let lower = header.lower;
    if !(lower - HEADER_SIZE).is_multiple_of(LINE_POINTER_SIZE) {
        return Err(Finding::LowerCutsLinePointer { lower });
    }
    let heap = kind == PageKind::Heap;
    let count = header.line_pointer_count();
    if heap && count > MAX_HEAP_TUPLES_PER_PAGE {
        return Err(Finding::TooManyLinePointers { count });
    }
    let mut room = Room::new(header.special);
    for (item, pointer) in line_pointers(page) {
        // Almost all line pointers are normal, so we test for that before the other states.
        if pointer.flags != LinePointerFlags::Normal {
            match pointer.flags {
                LinePointerFlags::Unused if pointer.length != 0 => {
                    return Err(Finding::UnusedWithLength { item, length: pointer.length });
                }
                LinePointerFlags::Unused => continue,
                LinePointerFlags::Redirect if heap => {
                    check_redirect(page, item, pointer.offset, count)?;
                    continue;
                }
                LinePointerFlags::Redirect => return Err(Finding::RedirectInIndex { item }),
                LinePointerFlags::Dead if pointer.length == 0 => continue,
                LinePointerFlags::Dead | LinePointerFlags::Normal => {}
            }
        }
        check_place(header, item, pointer, least_length(kind))?;
        if !room.take(page, item, pointer) {
            let LinePointer { offset: start, .. } = pointer;
            return Err(Finding::ItemsOverlap { item, start, end: pointer.end() });
        }
        if heap && pointer.flags == LinePointerFlags::Normal {
            check_tuple(page, item, pointer)?;
        }
    }
    Ok(())
}

fn least_length(kind: PageKind) -> u16 {
    match kind {
        PageKind::Heap => MIN_TUPLE_SIZE,
        PageKind::Btree | PageKind::Hash | PageKind::Gist => MIN_INDEX_TUPLE_SIZE,
        _ => 1,
    }
}

/// A redirect must point to the first remaining tuple of a HOT chain. Pruning always redirects the
/// root line pointer directly to a tuple, so if we find a redirect that points to another redirect,
/// the page is damaged.
fn check_redirect(page: &PageBytes, item: u16, target: u16, count: u16) -> Result<(), Finding> {
    let normal =
        line_pointer(page, target).is_some_and(|pointer| pointer.flags == LinePointerFlags::Normal);
    if target > count || !normal {
        return Err(Finding::RedirectTarget { item, target, count });
    }
    Ok(())
}

fn check_place(
    header: &PageHeader,
    item: u16,
    pointer: LinePointer,
    least: u16,
) -> Result<(), Finding> {
    let LinePointer { offset: start, length, .. } = pointer;
    let PageHeader { upper, special, .. } = *header;
    let end = pointer.end();
    if !start.is_multiple_of(8) {
        return Err(Finding::ItemUnaligned { item, start });
    }
    if start < upper {
        return Err(Finding::ItemBelowUpper { item, start, upper });
    }
    if end > special {
        return Err(Finding::ItemAboveSpecial { item, start, end, special });
    }
    if length < least {
        return Err(Finding::ItemTooShort { item, length, least });
    }
    Ok(())
}

fn check_tuple(page: &PageBytes, item: u16, pointer: LinePointer) -> Result<(), Finding> {
    // This can't fail, because we have already checked that the item is inside the page and is large
    // enough to contain a tuple header.
    let tuple = page.get(usize::from(pointer.offset)..);
    let Some(header) =
        tuple.and_then(|tuple| tuple.first_chunk::<{ TUPLE_HEADER_SIZE as usize }>())
    else {
        return Ok(());
    };
    let infomask2 = u16::from_le_bytes([header[18], header[19]]);
    let infomask = u16::from_le_bytes([header[20], header[21]]);
    let length = header[22];
    let natts = infomask2 & NATTS;
    if natts > MAX_HEAP_ATTRIBUTES {
        return Err(Finding::TupleAttributes { item, natts });
    }
    let bitmap = if infomask & HAS_NULL != 0 { natts.div_ceil(8) } else { 0 };
    let (least, most) = (TUPLE_HEADER_SIZE + bitmap, pointer.length);
    if !length.is_multiple_of(8) || !(least..=most).contains(&u16::from(length)) {
        return Err(Finding::TupleHeaderLength { item, length, least, most });
    }
    Ok(())
}

/// Detects items that overlap each other. A server adds items to a page from the end towards the
/// beginning, so on most heap pages each item ends where the previous item starts, or before it. As
/// long as this is the case, it is enough to remember the lowest offset so far. However, the items
/// can be in a different order after the page has been pruned and defragmented, and the high key of
/// a B-tree page is its first item, but often the last one that was added. When we find an item out
/// of order, we switch to a bitmap.
struct Room {
    lowest: u16,
    taken: Option<Granules>,
}

impl Room {
    fn new(special: u16) -> Self {
        Self { lowest: special, taken: None }
    }

    /// Claims the bytes of `item`. Returns false if an earlier item overlaps them.
    fn take(&mut self, page: &PageBytes, item: u16, pointer: LinePointer) -> bool {
        if let Some(taken) = &mut self.taken {
            return taken.take(pointer);
        }
        // Items start at multiples of 8, so this gives the same answer as the bitmap.
        if pointer.end() <= self.lowest {
            self.lowest = pointer.offset;
            return true;
        }
        self.take_from_bitmap(page, item, pointer)
    }

    /// Switches to a bitmap, in which all earlier items are already marked.
    #[cold]
    fn take_from_bitmap(&mut self, page: &PageBytes, item: u16, pointer: LinePointer) -> bool {
        let earlier = line_pointers(page).take(usize::from(item) - 1);
        let placed = earlier.filter(|(_, earlier)| has_bytes(*earlier));
        let taken = self.taken.insert(Granules::default());
        placed.for_each(|(_, earlier)| {
            taken.take(earlier);
        });
        taken.take(pointer)
    }
}

fn has_bytes(pointer: LinePointer) -> bool {
    match pointer.flags {
        LinePointerFlags::Normal => true,
        LinePointerFlags::Dead => pointer.length > 0,
        LinePointerFlags::Unused | LinePointerFlags::Redirect => false,
    }
}

/// A bitmap with one bit for every 8 bytes of the page. Since items are aligned to 8 bytes
/// (`MAXALIGN`), two items overlap if and only if they have a bit in common.
#[derive(Default)]
struct Granules([u64; BLOCK_SIZE / 8 / 64]);

impl Granules {
    /// Sets the bits of the item that `pointer` points to. Returns false if any of these bits was
    /// already set. The caller must make sure that the item is within the page and is not empty.
    fn take(&mut self, pointer: LinePointer) -> bool {
        let first = usize::from(pointer.offset) / 8;
        let last = usize::from(pointer.end().saturating_sub(1)) / 8;
        let (first_word, last_word) = (first / 64, last / 64);
        let Some(words) = self.0.get_mut(first_word..=last_word) else { return false };
        let (from, to) = (u64::MAX << (first % 64), u64::MAX >> (63 - last % 64));
        // Most items are small, so most of them have all of their bits in one word.
        if let [word] = words {
            let mask = from & to;
            let free = *word & mask == 0;
            *word |= mask;
            return free;
        }
        let mut free = true;
        let count = words.len();
        for (index, word) in words.iter_mut().enumerate() {
            let from = if index == 0 { from } else { u64::MAX };
            let to = if index + 1 == count { to } else { u64::MAX };
            free &= *word & from & to == 0;
            *word |= from & to;
        }
        free
    }
}
