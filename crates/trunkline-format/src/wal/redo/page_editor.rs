//! **Page editing**: adds, overwrites and removes items as the server does, to the byte.
//!
//! ```text
//!   24        lower          upper                  special
//!   ├─ 1 2 3 ──┼──── hole ────┼─ 3 ─┼─ 2 ─┼─ 1 ──────┼─────────┤
//!              add: 4 ──▶  ◀── 4
//! ```
//! Consistency images compare the bytes of items, so their order on a page matters: a new item goes
//! below `pd_upper`, and its size is rounded up to 8.
//!
//! **Invariant.** From [`PageEditor::open`] on, 24 ≤ lower ≤ upper ≤ special ≤ 8192. A page that
//! doesn't satisfy this is refused. Where items are is checked when they are used.
//!
//! Mirrors `PageAddItemExtended`, `PageIndexTupleDelete` and `PageIndexTupleOverwrite` in
//! PostgreSQL's `storage/page/bufpage.c`.

use std::ops::Range;

use crate::ids::{BLOCK_SIZE, Lsn, PageBytes};
use crate::page::{
    HEADER_SIZE, LINE_POINTER_SIZE, LinePointer, LinePointerFlags, PageHeader, line_pointer,
    set_lsn,
};
use crate::page_check::SIZE_VERSION;

use super::error::RedoError;

/// Offsets of header fields.
const FLAGS: usize = 10;
const LOWER: usize = 12;
const UPPER: usize = 14;
const SPECIAL: usize = 16;
const SIZE_AND_VERSION: usize = 18;
const PRUNE_XID: usize = 20;

/// Rounds a size up to the alignment of items.
pub(super) fn align(size: usize) -> usize {
    size.next_multiple_of(8)
}

/// Which line pointers a new item may take.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum Slot {
    /// An unused one, or the next one behind the last: heap pages.
    Free,
    /// Any; those from there on move up by one: index pages.
    Shift,
}

/// Overwrites bytes of a page. Callers have checked that they fit. If they don't, a release build writes nothing, because
/// redo must not panic. A debug build asserts, so that tests find the caller.
pub(super) fn put(page: &mut [u8], at: usize, bytes: &[u8]) {
    let (size, length) = (page.len(), bytes.len());
    let place = page.get_mut(at..at + length);
    debug_assert!(place.is_some(), "{length} bytes at {at} don't fit into {size}");
    if let Some(place) = place {
        place.copy_from_slice(bytes);
    }
}

/// `PageInit`: an empty page whose special space begins at `special`.
pub(super) fn initialise(page: &mut PageBytes, special: u16) {
    page.fill(0);
    put(page, LOWER, &HEADER_SIZE.to_le_bytes());
    put(page, UPPER, &special.to_le_bytes());
    put(page, SPECIAL, &special.to_le_bytes());
    put(page, SIZE_AND_VERSION, &SIZE_VERSION.to_le_bytes());
}

/// A page with items that is being changed.
pub(super) struct PageEditor<'p> {
    page: &'p mut PageBytes,
}

impl<'p> PageEditor<'p> {
    /// Opens a page whose special space begins at `special`.
    pub(super) fn open(page: &'p mut PageBytes, special: u16) -> Result<Self, RedoError> {
        let header = PageHeader::parse(page);
        let is_sound = HEADER_SIZE <= header.lower
            && header.lower <= header.upper
            && header.upper <= header.special
            && header.special == special;
        if !is_sound {
            let PageHeader { lower, upper, special: found, .. } = header;
            return Err(RedoError::Header { lower, upper, special: found, expected: special });
        }
        Ok(Self { page })
    }

    /// Makes an empty page.
    pub(super) fn initialise(page: &'p mut PageBytes, special: u16) -> Self {
        initialise(page, special);
        Self { page }
    }

    /// Removes everything, and keeps only the size of the special space.
    pub(super) fn clear(&mut self) {
        let special = self.word(SPECIAL);
        initialise(self.page, special);
    }

    pub(super) fn page(&self) -> &PageBytes {
        self.page
    }

    /// The bytes at a range that [`Self::item`] or [`Self::add`] has returned.
    pub(super) fn bytes_mut(&mut self, range: Range<usize>) -> &mut [u8] {
        debug_assert!(range.start <= range.end && range.end <= BLOCK_SIZE, "range {range:?}");
        self.page.get_mut(range).unwrap_or_default()
    }

    pub(super) fn bytes(&self, range: Range<usize>) -> &[u8] {
        self.page.get(range).unwrap_or_default()
    }

    /// Copies bytes from one place of the page to another; both may overlap.
    pub(super) fn copy(&mut self, from: Range<usize>, to: usize) {
        let fits = from.start <= from.end
            && from.end <= BLOCK_SIZE
            && to.saturating_add(from.len()) <= BLOCK_SIZE;
        debug_assert!(fits, "{from:?} doesn't fit at {to}");
        if fits {
            self.page.copy_within(from, to);
        }
    }

    pub(super) fn put(&mut self, at: usize, bytes: &[u8]) {
        put(self.page, at, bytes);
    }

    fn word(&self, at: usize) -> u16 {
        crate::little_endian::read_at(self.page, at).unwrap_or_default()
    }

    pub(super) fn lower(&self) -> usize {
        usize::from(self.word(LOWER))
    }

    pub(super) fn upper(&self) -> usize {
        usize::from(self.word(UPPER))
    }

    pub(super) fn special(&self) -> usize {
        usize::from(self.word(SPECIAL))
    }

    /// Sets both borders of the hole, if the page has room for it. All callers keep that invariant; see [`put`].
    pub(super) fn set_hole(&mut self, hole: Range<usize>) -> Result<(), RedoError> {
        let special = self.special();
        let is_sound =
            usize::from(HEADER_SIZE) <= hole.start && hole.start <= hole.end && hole.end <= special;
        debug_assert!(is_sound, "hole {hole:?} of a page with special space at {special}");
        let (lower, upper, special) = (hole.start as u16, hole.end as u16, special as u16);
        if !is_sound {
            return Err(RedoError::Header { lower, upper, special, expected: special });
        }
        self.put(LOWER, &lower.to_le_bytes());
        self.put(UPPER, &upper.to_le_bytes());
        Ok(())
    }

    /// Sets and clears bits of `pd_flags`.
    pub(super) fn change_flags(&mut self, set: u16, clear: u16) {
        let flags = self.word(FLAGS) & !clear | set;
        self.put(FLAGS, &flags.to_le_bytes());
    }

    pub(super) fn set_lsn(&mut self, lsn: Lsn) {
        set_lsn(self.page, lsn);
    }

    /// `PageSetPrunable`: remembers the oldest transaction that has left something to prune.
    pub(super) fn set_prunable(&mut self, xid: u32) {
        let oldest = PageHeader::parse(self.page).prune_xid;
        // Transaction ids wrap around, so only their difference has a sign.
        if oldest == 0 || (xid.wrapping_sub(oldest) as i32) < 0 {
            self.put(PRUNE_XID, &xid.to_le_bytes());
        }
    }

    /// The number of line pointers.
    pub(super) fn count(&self) -> u16 {
        PageHeader::parse(self.page).line_pointer_count()
    }

    pub(super) fn line_pointer(&self, item: u16) -> Result<LinePointer, RedoError> {
        let count = self.count();
        let found = line_pointer(self.page, item).filter(|_| item <= count);
        found.ok_or(RedoError::NoLinePointer { item, count })
    }

    /// Overwrites a line pointer that exists.
    pub(super) fn set_line_pointer(&mut self, item: u16, pointer: LinePointer) {
        self.put(place_of(item), &pointer.to_bits().to_le_bytes());
    }

    /// Where an item with storage is, whatever its line pointer's state.
    pub(super) fn any_item(&self, item: u16) -> Result<Range<usize>, RedoError> {
        self.stored(item, self.line_pointer(item)?)
    }

    /// The same, if the caller has the line pointer.
    pub(super) fn stored(
        &self,
        item: u16,
        pointer: LinePointer,
    ) -> Result<Range<usize>, RedoError> {
        let LinePointer { offset, length, .. } = pointer;
        let range = usize::from(offset)..usize::from(offset) + usize::from(length);
        if range.start < self.upper() || range.end > self.special() {
            return Err(RedoError::ItemOutside { item, offset, length });
        }
        Ok(range)
    }

    /// Where a normal item is.
    pub(super) fn item(&self, item: u16) -> Result<Range<usize>, RedoError> {
        let pointer = self.line_pointer(item)?;
        if pointer.flags != LinePointerFlags::Normal {
            let (found, expected) = (pointer.flags, LinePointerFlags::Normal);
            return Err(RedoError::LinePointerState { item, found, expected });
        }
        self.stored(item, pointer)
    }

    /// Makes room for an item of `size` bytes, and returns its offset.
    pub(super) fn add(&mut self, item: u16, size: usize, slot: Slot) -> Result<usize, RedoError> {
        let count = self.count();
        if item == 0 || item > count + 1 {
            return Err(RedoError::NoLinePointer { item, count });
        }
        let is_new = item > count || slot == Slot::Shift;
        if !is_new {
            let found = self.line_pointer(item)?;
            if found.flags != LinePointerFlags::Unused || found.length != 0 {
                let (found, expected) = (found.flags, LinePointerFlags::Unused);
                return Err(RedoError::LinePointerState { item, found, expected });
            }
        }
        let lower = self.lower() + if is_new { usize::from(LINE_POINTER_SIZE) } else { 0 };
        let size_aligned = align(size);
        let upper = self.upper().checked_sub(size_aligned).filter(|upper| lower <= *upper);
        let Some(upper) = upper else {
            let room = self.upper() - self.lower();
            return Err(RedoError::NoRoom { item, size: size_aligned, room });
        };
        if item <= count && is_new {
            self.copy(place_of(item)..place_of(count + 1), place_of(item + 1));
        }
        let flags = LinePointerFlags::Normal;
        let pointer = LinePointer { offset: upper as u16, flags, length: size as u16 };
        self.set_hole(lower..upper)?;
        self.set_line_pointer(item, pointer);
        Ok(upper)
    }

    /// Adds an item to an index page.
    pub(super) fn insert(&mut self, item: u16, bytes: &[u8]) -> Result<(), RedoError> {
        let at = self.add(item, bytes.len(), Slot::Shift)?;
        self.put(at, bytes);
        Ok(())
    }

    /// `PageIndexTupleOverwrite`: replaces an item by one of another size, where it is.
    pub(super) fn overwrite(&mut self, item: u16, bytes: &[u8]) -> Result<(), RedoError> {
        let pointer = self.line_pointer(item)?;
        let old = self.stored(item, pointer)?;
        let (old_size, new_size) = (align(old.len()), align(bytes.len()));
        let room = old_size + self.upper() - self.lower();
        if new_size > room || old.start + old_size > self.special() {
            return Err(RedoError::NoRoom { item, size: new_size, room });
        }
        // Line pointers of a damaged page may point anywhere.
        let moved = |offset: usize| (offset + old_size).saturating_sub(new_size);
        if old_size != new_size {
            let upper = self.upper();
            self.copy(upper..old.start, moved(upper));
            self.set_hole(self.lower()..moved(upper))?;
            self.move_items(old.start, moved);
        }
        let offset = moved(old.start) as u16;
        self.set_line_pointer(item, LinePointer { offset, length: bytes.len() as u16, ..pointer });
        self.put(moved(old.start), bytes);
        Ok(())
    }

    /// `PageIndexTupleDelete`: removes an item and closes the gap that it leaves.
    pub(super) fn delete(&mut self, item: u16) -> Result<(), RedoError> {
        let pointer = self.line_pointer(item)?;
        let old = self.stored(item, pointer)?;
        let size = align(old.len());
        if old.start + size > self.special() {
            let LinePointer { offset, length, .. } = pointer;
            return Err(RedoError::ItemOutside { item, offset, length });
        }
        let (lower, upper) = (self.lower(), self.upper());
        self.copy(place_of(item + 1)..lower, place_of(item));
        self.copy(upper..old.start, upper + size);
        self.set_hole(lower - usize::from(LINE_POINTER_SIZE)..upper + size)?;
        self.move_items(old.start, |offset| offset + size);
        Ok(())
    }

    /// Moves the line pointers of all items up to an offset.
    fn move_items(&mut self, up_to: usize, moved: impl Fn(usize) -> usize) {
        for item in 1..=self.count() {
            let Some(pointer) = line_pointer(self.page, item) else { continue };
            let offset = usize::from(pointer.offset);
            if pointer.length > 0 && offset <= up_to {
                let offset = moved(offset) as u16;
                self.set_line_pointer(item, LinePointer { offset, ..pointer });
            }
        }
    }
}

/// Where a line pointer is on a page.
pub(super) fn place_of(item: u16) -> usize {
    let before = usize::from(item.saturating_sub(1));
    usize::from(HEADER_SIZE) + before * usize::from(LINE_POINTER_SIZE)
}
