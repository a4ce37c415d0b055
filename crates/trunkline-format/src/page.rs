//! **Pages**: the page header and the array of line pointers behind it.
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
//! Line pointers grow up from byte 24, items grow down from `special`. An item is named by the number
//! of its line pointer, from 1: indexes refer to that number, so an item can move within its page.
//! Free space and visibility maps keep their data in the hole.
//!
//! Nothing is checked here; [`crate::page_check`] does that.
//! Mirrors `PageHeaderData` and `ItemIdData` of PostgreSQL's `storage/bufpage.h` and `itemid.h`.

use crate::ids::{Lsn, PageBytes};
use crate::little_endian::u32_at;

/// Bytes of the page header.
pub const HEADER_SIZE: u16 = 24;

/// Bytes of a line pointer.
pub const LINE_POINTER_SIZE: u16 = 4;

/// Bits of [`PageHeader::flags`] that PostgreSQL knows; the others are 0 on every sound page.
pub const FLAGS_KNOWN: u16 = 0x0007;

/// `PD_HAS_FREE_LINES`, a hint: some line pointers are unused.
pub const FLAG_FREE_LINES: u16 = 0x0001;
/// `PD_PAGE_FULL`, a hint: an update found no room here, so pruning may pay.
pub const FLAG_FULL: u16 = 0x0002;
/// `PD_ALL_VISIBLE`: every tuple is visible to all transactions.
pub const FLAG_ALL_VISIBLE: u16 = 0x0004;

/// `PageHeaderData`: the first 24 bytes of a page, unchecked.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct PageHeader {
    /// The end of the WAL record that last changed the page. The page must not be written before the
    /// log is flushed up to here.
    pub lsn: Lsn,
    /// Meaningful only in clusters with checksums.
    pub checksum: u16,
    /// `FLAG_…` bits.
    pub flags: u16,
    /// The end of the line pointers, in bytes from the page's start.
    pub lower: u16,
    /// The start of the items; 0 on a page that was never filled.
    pub upper: u16,
    /// The start of the access method's own space, up to the page's end; 8192 in tables.
    pub special: u16,
    /// Bytes of the page, a multiple of 256: 8192 on a sound one.
    pub page_size: u16,
    /// The layout's version: 4 since PostgreSQL 8.3.
    pub version: u8,
    /// A hint: the oldest xmax that pruning could remove; 0 if there is none.
    pub prune_xid: u32,
}

impl PageHeader {
    /// Reads the header of `page`.
    pub fn parse(page: &PageBytes) -> Self {
        let word = |at: usize| u16::from_le_bytes([page[at], page[at + 1]]);
        let double = |at: usize| (u64::from(word(at + 2)) << 16) | u64::from(word(at));
        Self {
            // PageXLogRecPtr: two 32-bit halves, the upper one first, each little-endian.
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

    /// How many line pointers end at or before [`Self::lower`]: 0 to 16377, so a damaged `lower`
    /// may count more than a page can hold. An incomplete last one is not counted.
    pub fn line_pointer_count(&self) -> u16 {
        self.lower.saturating_sub(HEADER_SIZE) / LINE_POINTER_SIZE
    }
}

/// `PageIsNew`: `pd_upper` is 0. Such pages have no checksum.
pub fn is_new(page: &PageBytes) -> bool {
    page[14] == 0 && page[15] == 0
}

/// Whether every byte is 0, as in a block that was added by extending a file.
pub fn is_all_zero(page: &PageBytes) -> bool {
    // Chunks that the compiler vectorises, with an early exit between them.
    page.as_chunks::<256>()
        .0
        .iter()
        .all(|stride| stride.iter().fold(0, |all, byte| all | byte) == 0)
}

/// What a line pointer is for.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub enum LinePointerFlags {
    /// Free for a new item.
    Unused,
    /// Points to an item.
    Normal,
    /// In tables: the root of a HOT chain that pruning shortened. The offset is the number of the
    /// line pointer that it redirects to.
    Redirect,
    /// `LP_DEAD`: the item is dead to all transactions. It may still have storage in an index, not in
    /// a table.
    Dead,
}

/// One entry of the array behind the header: 4 bytes.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct LinePointer {
    /// Where the item starts, in bytes from the page's start; of a redirect, an item's number.
    /// 15 bits: up to 32767.
    pub offset: u16,
    /// What the pointer is for.
    pub flags: LinePointerFlags,
    /// Bytes of the item, 0 if it has none. 15 bits: up to 32767.
    pub length: u16,
}

impl LinePointer {
    /// Takes apart the 32 bits of a line pointer: offset 0–14, flags 15–16, length 17–31.
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

    /// The 32 bits of this line pointer; of offset and length, the lower 15 bits each.
    pub fn to_bits(self) -> u32 {
        let flags = match self.flags {
            LinePointerFlags::Unused => 0,
            LinePointerFlags::Normal => 1,
            LinePointerFlags::Redirect => 2,
            LinePointerFlags::Dead => 3,
        };
        u32::from(self.offset & 0x7FFF) | flags << 15 | u32::from(self.length & 0x7FFF) << 17
    }

    /// The byte behind the item; up to 65534, so beyond the page if damaged.
    pub fn end(self) -> u16 {
        self.offset.saturating_add(self.length)
    }

    /// The item's bytes, or `None` if they are not inside the page.
    pub fn item(self, page: &PageBytes) -> Option<&[u8]> {
        page.get(usize::from(self.offset)..usize::from(self.end()))
    }
}

/// The line pointers of `page` with their 1-based numbers, in order. Ends at `pd_lower` or at the
/// end of the page, whichever is first; so at most 2042.
pub fn line_pointers(page: &PageBytes) -> impl Iterator<Item = (u16, LinePointer)> + '_ {
    let count = PageHeader::parse(page).line_pointer_count();
    (1..=count).map_while(|item| Some((item, line_pointer(page, item)?)))
}

/// The line pointer numbered `item` (from 1), or `None` for 0 and beyond the page's end. Does not
/// ask whether `pd_lower` includes it.
pub fn line_pointer(page: &PageBytes, item: u16) -> Option<LinePointer> {
    let before = usize::from(item.checked_sub(1)?) * usize::from(LINE_POINTER_SIZE);
    u32_at(page, usize::from(HEADER_SIZE) + before).map(LinePointer::from_bits)
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
