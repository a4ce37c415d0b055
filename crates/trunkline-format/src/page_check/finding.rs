//! What can be wrong with a page.
//!
//! A finding is made during the completion of a read, where nothing may be allocated. It therefore
//! holds numbers only, and becomes text when it is printed.

use thiserror::Error;

/// The first thing wrong with a page. Offsets and lengths are in bytes, offsets from the page's
/// start; `item` is the 1-based number of a line pointer.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Error)]
pub enum Finding {
    /// `pd_upper` is 0, as on a new page, but another byte is not.
    #[error("pd_upper is 0 as on a new page, but not all bytes are 0")]
    NewButNotZero,
    /// The page's bytes do not hash to the checksum it carries.
    #[error("checksum {found:#06X} found, {expected:#06X} expected")]
    Checksum {
        /// `pd_checksum`.
        found: u16,
        /// The hash of the page at this block number.
        expected: u16,
    },
    /// The word of page size and layout version is not 0x2004.
    #[error("page size and version {found:#06X} found, 0x2004 expected")]
    SizeVersion {
        /// The word.
        found: u16,
    },
    /// Flags beyond those that PostgreSQL knows.
    #[error("flags {found:#06X} found, none beyond 0x0007 expected")]
    Flags {
        /// All flags of the page.
        found: u16,
    },
    /// `pd_lower` is inside the header.
    #[error("pd_lower {lower} is below the page header's 24 bytes")]
    LowerInHeader {
        /// `pd_lower`.
        lower: u16,
    },
    /// Line pointers run into items.
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
    /// The special space starts behind the page's end.
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
    /// `pd_lower` cuts a line pointer.
    #[error("pd_lower {lower} is not 24 and a multiple of 4")]
    LowerCutsLinePointer {
        /// `pd_lower`.
        lower: u16,
    },
    /// More line pointers than the smallest tuples allow.
    #[error("{count} line pointers found, at most 291 expected")]
    TooManyLinePointers {
        /// How many there are.
        count: u16,
    },
    /// An unused line pointer has a length.
    #[error("line pointer {item}: unused, but its length is {length}")]
    UnusedWithLength {
        /// The line pointer.
        item: u16,
        /// Its length.
        length: u16,
    },
    /// An index has a redirecting line pointer.
    #[error("line pointer {item}: a redirect, which only tables have")]
    RedirectInIndex {
        /// The line pointer.
        item: u16,
    },
    /// A redirect leads to no line pointer, to itself, or to one without a tuple.
    #[error("line pointer {item}: redirects to {target}, not a tuple among {count}")]
    RedirectTarget {
        /// The redirect.
        item: u16,
        /// The number it leads to.
        target: u16,
        /// How many line pointers there are.
        count: u16,
    },
    /// An item does not start at a multiple of 8.
    #[error("line pointer {item}: item at {start} is not at a multiple of 8")]
    ItemUnaligned {
        /// The line pointer.
        item: u16,
        /// Where the item starts.
        start: u16,
    },
    /// An item starts in the hole or in the line pointers.
    #[error("line pointer {item}: item at {start} starts before pd_upper {upper}")]
    ItemBelowUpper {
        /// The line pointer.
        item: u16,
        /// Where the item starts.
        start: u16,
        /// `pd_upper`.
        upper: u16,
    },
    /// An item ends in the special space or behind the page.
    #[error("line pointer {item}: item at {start}..{end} ends after pd_special {special}")]
    ItemAboveSpecial {
        /// The line pointer.
        item: u16,
        /// Where the item starts.
        start: u16,
        /// The byte behind the item.
        end: u16,
        /// `pd_special`.
        special: u16,
    },
    /// An item is too short for what every item of its kind starts with.
    #[error("line pointer {item}: length {length} found, at least {least} expected")]
    ItemTooShort {
        /// The line pointer.
        item: u16,
        /// The item's length.
        length: u16,
        /// The least sound length.
        least: u16,
    },
    /// An item shares bytes with an earlier one.
    #[error("line pointer {item}: item at {start}..{end} overlaps an earlier item")]
    ItemsOverlap {
        /// The line pointer.
        item: u16,
        /// Where the item starts.
        start: u16,
        /// The byte behind the item.
        end: u16,
    },
    /// A tuple has more attributes than a table can have.
    #[error("tuple {item}: {natts} attributes found, at most 1600 expected")]
    TupleAttributes {
        /// The line pointer.
        item: u16,
        /// How many attributes the tuple says it has.
        natts: u16,
    },
    /// A tuple's data does not start at a multiple of 8 between its header and its end.
    #[error("tuple {item}: header length {length} is not a multiple of 8 from {least} to {most}")]
    TupleHeaderLength {
        /// The line pointer.
        item: u16,
        /// `t_hoff`.
        length: u8,
        /// Bytes of the fixed header and the null bitmap.
        least: u16,
        /// Bytes of the whole tuple.
        most: u16,
    },
}

impl Finding {
    /// Whether `pg_checksums --check` reports such a page too. It looks at nothing but checksums.
    pub fn seen_by_pg_checksums(&self) -> bool {
        matches!(self, Self::Checksum { .. })
    }
}
