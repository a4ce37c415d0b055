//! What can be wrong with a B-tree page.
//!
//! Like [`crate::page_check::Finding`], a fault holds numbers only and allocates nothing.

use thiserror::Error;

/// The first thing wrong with a page. `item` is the 1-based number of a line pointer.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Error)]
pub enum Fault {
    /// Block 0 does not begin as a metapage.
    #[error("metapage magic {found:#010X} found, 0x00053162 expected")]
    Magic {
        /// What stands where 0x00053162 should.
        found: u32,
    },
    /// The metapage is of a version that no server from 9.x on writes.
    #[error("B-tree version {found} found, 2 to 4 expected")]
    Version {
        /// The version.
        found: u32,
    },
    /// The tree is said to have more levels than can be.
    #[error("level {found} of the root found, at most 31 expected")]
    Levels {
        /// The root's level.
        found: u32,
    },
    /// The special space is not a B-tree's.
    #[error("special space at {found} found, at 8176 expected in a B-tree")]
    Special {
        /// Where it starts.
        found: u16,
    },
    /// The page's flags contradict each other, or where it is.
    #[error("B-tree flags {found:#06X} cannot be together")]
    Flags {
        /// All of them.
        found: u16,
    },
    /// A leaf is not at level 0, or another page is.
    #[error("level {found} does not go with the page's being a leaf or not")]
    LeafLevel {
        /// The level.
        found: u32,
    },
    /// The line pointers do not end within the page.
    #[error("{count} line pointers do not end within the page")]
    LinePointers {
        /// How many there are said to be.
        count: u16,
    },
    /// A page with a right neighbour has no high key.
    #[error("no high key, but a right neighbour")]
    NoHighKey,
    /// A page above the leaves has no entry.
    #[error("no entry on a page above the leaves")]
    NoDownlink,
    /// The item is not within the page, or it is not an item.
    #[error("line pointer {item}: no item within the page")]
    Item {
        /// The line pointer.
        item: u16,
    },
    /// The entry's own length is not its line pointer's.
    #[error("line pointer {item}: entry of {found} bytes found, {expected} expected")]
    Size {
        /// The line pointer.
        item: u16,
        /// The entry's.
        found: u16,
        /// The line pointer's.
        expected: u16,
    },
    /// A separator on a leaf, or an entry for a row above the leaves.
    #[error("line pointer {item}: an entry that does not belong on this level")]
    Kind {
        /// The line pointer.
        item: u16,
    },
    /// The list of rows does not fit into the entry.
    #[error("line pointer {item}: list of {rows} rows at {start} in an entry of {size} bytes")]
    Posting {
        /// The line pointer.
        item: u16,
        /// Where the list starts, within the entry.
        start: u32,
        /// Rows in it.
        rows: u16,
        /// Bytes of the entry.
        size: u16,
    },
    /// The rows of a list are not in order.
    #[error("line pointer {item}: rows of its list are out of order")]
    PostingOrder {
        /// The line pointer.
        item: u16,
    },
    /// The entry points at no row: its line pointer is 0.
    #[error("line pointer {item}: points at line pointer 0")]
    NoRow {
        /// The line pointer.
        item: u16,
    },
    /// The entry has more columns than the index, or fewer.
    #[error("line pointer {item}: {found} columns found, {expected} expected")]
    Columns {
        /// The line pointer.
        item: u16,
        /// How many it has.
        found: u16,
        /// How many it has at most.
        expected: u16,
    },
    /// The columns do not end within the entry.
    #[error("line pointer {item}: column {column} ends behind the entry")]
    Overrun {
        /// The line pointer.
        item: u16,
        /// The column, from 1.
        column: u16,
    },
    /// A column's value cannot be taken apart.
    #[error("line pointer {item}: value of column {column} cannot be taken apart")]
    Value {
        /// The line pointer.
        item: u16,
        /// The column, from 1.
        column: u16,
    },
    /// The entry is not above the one before.
    #[error("line pointer {item}: not above the entry before it")]
    Order {
        /// The line pointer.
        item: u16,
    },
    /// The entry is above the page's high key.
    #[error("line pointer {item}: above the page's high key")]
    AboveHighKey {
        /// The line pointer.
        item: u16,
    },
    /// The order of two keys is unknown: it depends on a collation or on a type that only the server
    /// can compare.
    #[error("the order of column {column} is known to the server only")]
    UnknownOrder {
        /// The column, from 1.
        column: u16,
    },
}

impl Fault {
    /// The line pointer that it is about, if it is about one.
    pub fn item(&self) -> Option<u16> {
        match *self {
            Self::Item { item }
            | Self::Size { item, .. }
            | Self::Kind { item }
            | Self::Posting { item, .. }
            | Self::PostingOrder { item }
            | Self::NoRow { item }
            | Self::Columns { item, .. }
            | Self::Overrun { item, .. }
            | Self::Value { item, .. }
            | Self::Order { item }
            | Self::AboveHighKey { item } => Some(item),
            _ => None,
        }
    }
}
