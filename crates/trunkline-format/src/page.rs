//! **Pages**: the page header and the line pointer array that follows it.
//!
//! ```text
//!   0     8         10     12     14     16       18            20         24       lower
//!   ├─────┼─────────┼──────┼──────┼──────┼────────┼─────────────┼──────────┼────────┤
//!   │ lsn │checksum │flags │lower │upper │special │size|version │prune xid │pointers│ ─▶
//!   └─────┴─────────┴──────┴──────┴──────┴────────┴─────────────┴──────────┴────────┘
//!     lower       upper                     special          8192
//!      ├─────────────┼─────────────────────────┼───────────────┤
//!  ─▶  │    hole     │  ◀─ items, last first   │ access method │
//!      └─────────────┴─────────────────────────┴───────────────┘
//! ```
//!
//! The line pointer array starts at byte 24 and grows upwards, while items are added downwards from
//! `special`. Indexes refer to an item by its line pointer number, counted from 1, so the item
//! itself can be moved within the page. Free space map and visibility map pages have no items, and
//! store their data in the space between `lower` and `upper`.
//!
//! The functions in this module don't check whether the page is valid; [`crate::page_check`] does
//! that. Mirrors `PageHeaderData` and `ItemIdData` in PostgreSQL's `storage/bufpage.h` and
//! `itemid.h`.

use crate::ids::{Lsn, PageBytes};
use crate::little_endian::read_at;

/// Size of the page header in bytes.
pub const HEADER_SIZE: u16 = 24;

/// Size of a line pointer in bytes.
pub const LINE_POINTER_SIZE: u16 = 4;

/// The bits of [`PageHeader::flags`] that PostgreSQL defines. All others must be 0.
pub const FLAGS_KNOWN: u16 = 0x0007;

/// `PD_HAS_FREE_LINES`, a hint: the page has unused line pointers.
pub const FLAG_FREE_LINES: u16 = 0x0001;
/// `PD_PAGE_FULL`. This is a hint that an update did not find enough room on this page, so it may
/// be worthwhile to prune the page.
pub const FLAG_FULL: u16 = 0x0002;
/// `PD_ALL_VISIBLE`: every tuple is visible to all transactions.
pub const FLAG_ALL_VISIBLE: u16 = 0x0004;

/// `PageHeaderData`: the first 24 bytes of a page. Parsing does not validate them.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct PageHeader {
    /// `pd_lsn`: the end of the WAL record for the last change to this page. Before the page can be
    /// written out, WAL must have been flushed at least up to this point.
    pub lsn: Lsn,
    /// `pd_checksum`: only meaningful in clusters with checksums.
    pub checksum: u16,
    /// `FLAG_…` bits.
    pub flags: u16,
    /// `pd_lower`: the end of the line pointer array, as a byte offset in the page.
    pub lower: u16,
    /// `pd_upper`: the start of the items; 0 on a page that was never initialised.
    pub upper: u16,
    /// `pd_special`: the start of the access method's special space, which extends to the end of
    /// the page. Heap pages have no special space, so it is 8192 there.
    pub special: u16,
    /// The page size in bytes, a multiple of 256. It must be 8192.
    pub page_size: u16,
    /// The page layout version: 4 since PostgreSQL 8.3.
    pub version: u8,
    /// A hint: the oldest xmax that pruning could remove; 0 if there is nothing to prune.
    pub prune_xid: u32,
}

impl PageHeader {
    /// Parses the header of `page`.
    pub fn parse(page: &PageBytes) -> Self {
        let word = |at: usize| u16::from_le_bytes([page[at], page[at + 1]]);
        let double = |at: usize| (u64::from(word(at + 2)) << 16) | u64::from(word(at));
        Self {
            // PageXLogRecPtr: two little-endian 32-bit halves, the upper half first.
            lsn: Lsn(double(0) << 32 | double(4)),
            checksum: word(8),
            flags: word(10),
            lower: word(12),
            upper: word(14),
            special: word(16),
            page_size: word(18) & 0xFF00,
            version: page[18],
            prune_xid: double(20) as u32,
        }
    }

    /// The number of complete line pointers before [`Self::lower`], from 0 to 16377. Note that if
    /// `lower` is damaged, the result can be more than the number of line pointers that fit on a
    /// page.
    pub fn line_pointer_count(&self) -> u16 {
        self.lower.saturating_sub(HEADER_SIZE) / LINE_POINTER_SIZE
    }
}

/// Sets the LSN of a page (`PageSetLSN`).
pub fn set_lsn(page: &mut PageBytes, lsn: Lsn) {
    page[..4].copy_from_slice(&lsn.high().to_le_bytes());
    page[4..8].copy_from_slice(&lsn.low().to_le_bytes());
}

/// `PageIsNew`: `pd_upper` is 0. New pages have no checksum.
pub fn is_new(page: &PageBytes) -> bool {
    page[14] == 0 && page[15] == 0
}

/// Whether every byte is 0, as in a block added by relation extension.
pub fn is_all_zero(page: &PageBytes) -> bool {
    // The compiler vectorises each chunk; between chunks we can exit early.
    page.as_chunks::<256>()
        .0
        .iter()
        .all(|stride| stride.iter().fold(0, |all, byte| all | byte) == 0)
}

/// The length of a line of the CPU's cache, in bytes.
const CACHE_LINE: usize = 64;

/// Loads the page into the CPU cache. Do this before a loop over all rows: these loads don't depend
/// on one another, so the CPU has as many cache misses in flight as it can. In the loop it has only
/// a few, because it must get through all instructions of a row before it reaches the next row.
pub fn load_into_cache(page: &PageBytes) {
    let bytes = page.iter().step_by(CACHE_LINE).fold(0, |all, byte| all | byte);
    std::hint::black_box(bytes);
}

/// Loads the header, the line pointers and the first `bytes` of every item into the CPU cache, for a
/// loop that reads no more of the rows. If that is most of the page, loads the whole page.
pub fn load_item_starts(page: &PageBytes, bytes: u16) {
    let (bytes, items) = (usize::from(bytes), PageHeader::parse(page).line_pointer_count());
    // An item rarely begins at the beginning of a cache line, so it needs up to two.
    if bytes > CACHE_LINE || usize::from(items) * 2 > page.len() / CACHE_LINE {
        return load_into_cache(page);
    }
    // This loop must be faster than the memory. Addresses beyond the page are wrapped, which needs no
    // branch.
    let byte = |at: usize| page[at % page.len()];
    let last = bytes.saturating_sub(1);
    let loaded = line_pointers(page).fold(0, |all, (_, line)| {
        let start = usize::from(line.offset);
        all | byte(start) | byte(start + last)
    });
    std::hint::black_box(loaded);
}

/// `lp_flags`: the state of a line pointer.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub enum LinePointerFlags {
    /// Free, so a new item can reuse it.
    Unused,
    /// Points to an item.
    Normal,
    /// Redirected; used on heap pages only. When pruning has removed the first tuple of a HOT
    /// chain, its line pointer is redirected to the first remaining tuple. The offset field then
    /// contains the number of that tuple's line pointer.
    Redirect,
    /// `LP_DEAD`: the item is dead to all transactions. On an index page, a dead item may still
    /// have storage. On a heap page, it never does.
    Dead,
}

/// `ItemIdData`: a line pointer, 4 bytes on disk.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct LinePointer {
    /// The item's byte offset within the page, or the number of the target line pointer if this is
    /// a redirect. It is stored in 15 bits, so it can be up to 32767.
    pub offset: u16,
    /// The line pointer's state.
    pub flags: LinePointerFlags,
    /// The item's length in bytes, or 0 if it has no storage. It is stored in 15 bits, so it can be
    /// up to 32767.
    pub length: u16,
}

impl LinePointer {
    /// Decodes a line pointer: offset in bits 0–14, flags in bits 15–16, length in bits 17–31.
    pub fn from_bits(bits: u32) -> Self {
        Self {
            offset: (bits & 0x7FFF) as u16,
            flags: match bits >> 15 & 3 {
                0 => LinePointerFlags::Unused,
                1 => LinePointerFlags::Normal,
                2 => LinePointerFlags::Redirect,
                _ => LinePointerFlags::Dead,
            },
            length: (bits >> 17) as u16,
        }
    }

    /// Encodes the line pointer. Only the lower 15 bits of offset and length are used.
    pub fn to_bits(self) -> u32 {
        let flags = self.flags as u32;
        u32::from(self.offset & 0x7FFF) | flags << 15 | u32::from(self.length & 0x7FFF) << 17
    }

    /// The offset of the first byte after the item. It can be up to 65534 if the line pointer is
    /// damaged, which is beyond the end of the page.
    pub fn end(self) -> u16 {
        self.offset.saturating_add(self.length)
    }

    /// The item's bytes, or `None` if the item isn't entirely inside the page.
    pub fn item(self, page: &PageBytes) -> Option<&[u8]> {
        page.get(usize::from(self.offset)..usize::from(self.end()))
    }
}

/// Iterates over the line pointers of `page`, and also returns their numbers, counted from 1. Stops
/// at `pd_lower` or at the end of the page, whichever comes first. There can therefore be at most
/// 2042 line pointers, even if `pd_lower` is damaged.
pub fn line_pointers(page: &PageBytes) -> impl Iterator<Item = (u16, LinePointer)> + '_ {
    let count = usize::from(PageHeader::parse(page).line_pointer_count());
    let (pointers, _) = page[usize::from(HEADER_SIZE)..].as_chunks();
    let pointers = pointers.iter().take(count);
    (1..).zip(pointers.map(|bytes| LinePointer::from_bits(u32::from_le_bytes(*bytes))))
}

/// Returns line pointer number `item`, counted from 1, or `None` if `item` is 0 or the line pointer
/// would be beyond the end of the page. This does not check whether the line pointer is actually in
/// use according to `pd_lower`.
pub fn line_pointer(page: &PageBytes, item: u16) -> Option<LinePointer> {
    let before = usize::from(item.checked_sub(1)?) * usize::from(LINE_POINTER_SIZE);
    read_at::<u32>(page, usize::from(HEADER_SIZE) + before).map(LinePointer::from_bits)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::ids::BLOCK_SIZE;
    use crate::test_data::{header, put};

    #[test]
    fn header_fields() {
        let mut page = header(5, 28, 8160, 8176);
        put(&mut page, 0, &[1, 0, 0, 0, 0x89, 0x67, 0x45, 0x23, 0x34, 0x12]);
        put(&mut page, 20, &717_u32.to_le_bytes());
        let expected = PageHeader {
            lsn: Lsn(0x1_2345_6789),
            checksum: 0x1234,
            flags: 5,
            lower: 28,
            upper: 8160,
            special: 8176,
            page_size: 8192,
            version: 4,
            prune_xid: 717,
        };
        assert_eq!(PageHeader::parse(&page), expected);
        assert_eq!(expected.line_pointer_count(), 1);
    }

    #[test]
    fn line_pointers_end_with_the_page() {
        for (lower, count) in
            [(0, 0), (23, 0), (24, 0), (27, 0), (28, 1), (8192, 2042), (65535, 2042)]
        {
            assert_eq!(line_pointers(&header(0, lower, 0, 0)).count(), count, "lower {lower}");
        }
        assert_eq!(line_pointer(&[0; BLOCK_SIZE], 0), None);
        assert_eq!(line_pointer(&[0; BLOCK_SIZE], u16::MAX), None);
    }

    #[test]
    fn any_page_is_loaded_into_the_cache() {
        for (lower, fill) in [(28, 0), (100, 0x55), (8192, 0xFF), (1024, 0xFF)] {
            let mut page = header(0, lower, 0, 0);
            page[usize::from(HEADER_SIZE)..].fill(fill);
            for bytes in [0, 24, 64, 1000, u16::MAX] {
                load_item_starts(&page, bytes);
            }
        }
    }

    #[test]
    fn line_pointer_bits() {
        let pointer = LinePointer::from_bits(8160 | 1 << 15 | 28 << 17);
        let expected = LinePointer { offset: 8160, flags: LinePointerFlags::Normal, length: 28 };
        assert_eq!(pointer, expected);
        for bits in [0, u32::MAX, 0x1234_5678, 0x8000, 0x1_0000, 0x2_0000] {
            assert_eq!(LinePointer::from_bits(bits).to_bits(), bits);
        }
        assert_eq!(LinePointer::from_bits(u32::MAX).end(), 65534);
        assert_eq!(LinePointer { offset: u16::MAX, length: 1, ..pointer }.end(), u16::MAX);
        assert_eq!(LinePointer::from_bits(u32::MAX).item(&[0; BLOCK_SIZE]), None);
    }

    #[test]
    fn zero_and_new() {
        let mut page = [0; BLOCK_SIZE];
        assert!(is_new(&page) && is_all_zero(&page));
        page[BLOCK_SIZE - 1] = 1;
        assert!(is_new(&page) && !is_all_zero(&page));
        page[15] = 1;
        assert!(!is_new(&page));
    }
}
