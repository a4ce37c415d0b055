//! The kinds of page damage we detect.
//!
//! Findings are created in the completion callback of a read, which must not allocate any memory.
//! For this reason, a finding contains only numbers, and is converted to text when it is printed.

use thiserror::Error;

/// The first problem that we found on a page. All lengths are in bytes, and all offsets are in
/// bytes from the start of the page. `item` is the number of a line pointer, counted from 1.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Error)]
pub enum Finding {
    /// `pd_upper` is 0, as on a new page, but the page contains nonzero bytes.
    #[error("pd_upper is 0 as on a new page, but not all bytes are 0")]
    NewButNotZero,
    /// The stored checksum doesn't match the page contents.
    #[error("checksum {found:#06X} found, {expected:#06X} expected")]
    Checksum {
        /// `pd_checksum`.
        found: u16,
        /// The checksum computed for this block number.
        expected: u16,
    },
    /// `pd_pagesize_version` is not 0x2004.
    #[error("page size and version {found:#06X} found, 0x2004 expected")]
    SizeVersion {
        /// The value found.
        found: u16,
    },
    /// Flag bits that PostgreSQL doesn't define.
    #[error("flags {found:#06X} found, none beyond 0x0007 expected")]
    Flags {
        /// `pd_flags`.
        found: u16,
    },
    /// `pd_lower` is inside the header.
    #[error("pd_lower {lower} is below the page header's 24 bytes")]
    LowerInHeader {
        /// `pd_lower`.
        lower: u16,
    },
    /// The line pointer array overlaps the items.
    #[error("pd_lower {lower} is above pd_upper {upper}")]
    LowerAboveUpper {
        /// `pd_lower`.
        lower: u16,
        /// `pd_upper`.
        upper: u16,
    },
    /// Items would start in the special space.
    #[error("pd_upper {upper} is above pd_special {special}")]
    UpperAboveSpecial {
        /// `pd_upper`.
        upper: u16,
        /// `pd_special`.
        special: u16,
    },
    /// The special space starts beyond the end of the page.
    #[error("pd_special {special} is above the page's 8192 bytes")]
    SpecialAbovePage {
        /// `pd_special`.
        special: u16,
    },
    /// The special space does not start at a multiple of 8.
    #[error("pd_special {special} is not a multiple of 8")]
    SpecialUnaligned {
        /// `pd_special`.
        special: u16,
    },
    /// `pd_lower` ends mid line pointer.
    #[error("pd_lower {lower} is not 24 and a multiple of 4")]
    LowerCutsLinePointer {
        /// `pd_lower`.
        lower: u16,
    },
    /// There are more line pointers than minimal tuples could fit on the page.
    #[error("{count} line pointers found, at most 291 expected")]
    TooManyLinePointers {
        /// The number of line pointers.
        count: u16,
    },
    /// An unused line pointer has a nonzero length.
    #[error("line pointer {item}: unused, but its length is {length}")]
    UnusedWithLength {
        /// The line pointer.
        item: u16,
        /// Its length.
        length: u16,
    },
    /// An index page contains a redirect line pointer.
    #[error("line pointer {item}: a redirect, which only tables have")]
    RedirectInIndex {
        /// The line pointer.
        item: u16,
    },
    /// A redirect points to itself, or to a line pointer that doesn't exist or has no tuple.
    #[error("line pointer {item}: redirects to {target}, not a tuple among {count}")]
    RedirectTarget {
        /// The redirect.
        item: u16,
        /// The redirect's target.
        target: u16,
        /// The number of line pointers on the page.
        count: u16,
    },
    /// An item does not start at a multiple of 8.
    #[error("line pointer {item}: item at {start} is not at a multiple of 8")]
    ItemUnaligned {
        /// The line pointer.
        item: u16,
        /// The item's offset.
        start: u16,
    },
    /// An item starts in the hole or in the line pointers.
    #[error("line pointer {item}: item at {start} starts before pd_upper {upper}")]
    ItemBelowUpper {
        /// The line pointer.
        item: u16,
        /// The item's offset.
        start: u16,
        /// `pd_upper`.
        upper: u16,
    },
    /// An item extends into the special space or beyond the end of the page.
    #[error("line pointer {item}: item at {start}..{end} ends after pd_special {special}")]
    ItemAboveSpecial {
        /// The line pointer.
        item: u16,
        /// The item's offset.
        start: u16,
        /// The offset of the first byte after the item.
        end: u16,
        /// `pd_special`.
        special: u16,
    },
    /// An item is shorter than the minimum for its kind.
    #[error("line pointer {item}: length {length} found, at least {least} expected")]
    ItemTooShort {
        /// The line pointer.
        item: u16,
        /// The item's length.
        length: u16,
        /// The minimum length.
        least: u16,
    },
    /// An item overlaps an earlier item.
    #[error("line pointer {item}: item at {start}..{end} overlaps an earlier item")]
    ItemsOverlap {
        /// The line pointer.
        item: u16,
        /// The item's offset.
        start: u16,
        /// The offset of the first byte after the item.
        end: u16,
    },
    /// A tuple has more attributes than PostgreSQL allows in a table.
    #[error("tuple {item}: {natts} attributes found, at most 1600 expected")]
    TupleAttributes {
        /// The line pointer.
        item: u16,
        /// The tuple's number of attributes.
        natts: u16,
    },
    /// `t_hoff` is not a multiple of 8, or it points into the tuple header or beyond the end of the
    /// tuple.
    #[error("tuple {item}: header length {length} is not a multiple of 8 from {least} to {most}")]
    TupleHeaderLength {
        /// The line pointer.
        item: u16,
        /// `t_hoff`.
        length: u8,
        /// Size of the fixed header and the null bitmap.
        least: u16,
        /// Size of the whole tuple.
        most: u16,
    },
}

impl Finding {
    /// Whether `pg_checksums --check` reports such a page too. It checks nothing but checksums.
    pub fn seen_by_pg_checksums(&self) -> bool {
        matches!(self, Self::Checksum { .. })
    }
}
