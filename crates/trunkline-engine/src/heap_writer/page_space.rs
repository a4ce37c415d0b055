//! Where new rows go on a page.

use trunkline_format::page::{
    HEADER_SIZE, LINE_POINTER_SIZE, LinePointerFlags, PageHeader, is_new, line_pointers,
};
use trunkline_format::page_builder::NewTuple;
use trunkline_format::{BLOCK_SIZE, PageBytes};

use super::error::{HeapWriteError, TUPLE_MAX};
use crate::heap::HEAP_TUPLES_MAX;

/// The length of a row on a page.
///
/// # Errors
/// [`HeapWriteError::TooLong`].
pub(super) fn length_of(row: &NewTuple<'_>) -> Result<u16, HeapWriteError> {
    let size = row.length();
    match u16::try_from(size) {
        Ok(length) if size <= TUPLE_MAX => Ok(length),
        _ => Err(HeapWriteError::TooLong { size }),
    }
}

/// The free space of a page, and its free line pointers.
pub(super) struct PageSpace {
    /// Unused line pointers, the first one last.
    unused: Vec<u16>,
    /// The line pointer behind the last one.
    next: u16,
    /// Bytes between line pointers and items.
    bytes: u16,
}

impl PageSpace {
    pub(super) fn of(page: &PageBytes) -> Self {
        if is_new(page) {
            return Self { unused: Vec::new(), next: 1, bytes: BLOCK_SIZE as u16 - HEADER_SIZE };
        }
        let header = PageHeader::parse(page);
        let is_unused = |flags| flags == LinePointerFlags::Unused;
        let unused = line_pointers(page).filter(|(_, pointer)| is_unused(pointer.flags));
        let mut unused: Vec<u16> = unused.map(|(item, _)| item).collect();
        unused.reverse();
        let bytes = header.upper.saturating_sub(header.lower);
        Self { unused, next: header.line_pointer_count() + 1, bytes }
    }

    /// The line pointer that a row of this length gets. `None` if there is no space.
    pub(super) fn take(&mut self, length: u16) -> Option<u16> {
        let (item, pointer) = match self.unused.last() {
            Some(item) => (*item, 0),
            None => (self.next, LINE_POINTER_SIZE),
        };
        let needed = length.checked_next_multiple_of(8)?.checked_add(pointer)?;
        let left = self.bytes.checked_sub(needed).filter(|_| item <= HEAP_TUPLES_MAX)?;
        if self.unused.pop().is_none() {
            self.next += 1;
        }
        self.bytes = left;
        Some(item)
    }
}
