//! Faults that a B-tree page check can report.
//!
//! Like [`crate::page_check::Finding`], a fault contains only numbers, so we can report a fault
//! without allocating any memory.

use thiserror::Error;

/// The first fault found on a page. `item` is a line pointer number, from 1.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Error)]
pub enum Fault {
    /// Block 0 doesn't start with the metapage's magic number.
    #[error("metapage magic {found:#010X} found, 0x00053162 expected")]
    Magic {
        /// The value found in place of 0x00053162.
        found: u32,
    },
    /// The metapage has a version that no server since 9.x writes.
    #[error("B-tree version {found} found, 2 to 4 expected")]
    Version {
        /// The version.
        found: u32,
    },
    /// The metapage claims more levels than a tree can have.
    #[error("level {found} of the root found, at most 31 expected")]
    Levels {
        /// The root's level according to the metapage.
        found: u32,
    },
    /// The special space isn't where a B-tree page has it.
    #[error("special space at {found} found, at 8176 expected in a B-tree")]
    Special {
        /// Offset of the special space.
        found: u16,
    },
    /// The page's flags contradict each other or the page's position in the tree.
    #[error("B-tree flags {found:#06X} cannot be together")]
    Flags {
        /// All flags, as stored.
        found: u16,
    },
    /// A leaf has a level other than 0, or an inner page has level 0.
    #[error("level {found} does not go with the page's being a leaf or not")]
    LeafLevel {
        /// The level.
        found: u32,
    },
    /// The line pointer array extends past the end of the page.
    #[error("{count} line pointers do not end within the page")]
    LinePointers {
        /// The number of line pointers according to `pd_lower`.
        count: u16,
    },
    /// A page with a right neighbour has no high key.
    #[error("no high key, but a right neighbour")]
    NoHighKey,
    /// An inner page has no entries.
    #[error("no entry on a page above the leaves")]
    NoDownlink,
    /// The line pointer does not point at an item within the page.
    #[error("line pointer {item}: no item within the page")]
    Item {
        /// The line pointer.
        item: u16,
    },
    /// The length in the tuple header differs from the line pointer's.
    #[error("line pointer {item}: entry of {found} bytes found, {expected} expected")]
    Size {
        /// The line pointer.
        item: u16,
        /// Length in the tuple header.
        found: u16,
        /// Length in the line pointer.
        expected: u16,
    },
    /// A leaf page contains a separator, or an inner page contains a leaf tuple.
    #[error("line pointer {item}: an entry that does not belong on this level")]
    Kind {
        /// The line pointer.
        item: u16,
    },
    /// The posting list doesn't fit into its entry.
    #[error("line pointer {item}: list of {rows} rows at {start} in an entry of {size} bytes")]
    Posting {
        /// The line pointer.
        item: u16,
        /// Offset of the posting list within the entry.
        start: u32,
        /// The number of TIDs in the posting list.
        rows: u16,
        /// The entry's size in bytes.
        size: u16,
    },
    /// A posting list's TIDs are out of order.
    #[error("line pointer {item}: rows of its list are out of order")]
    PostingOrder {
        /// The line pointer.
        item: u16,
    },
    /// The entry's heap TID has line pointer number 0, which is invalid.
    #[error("line pointer {item}: points at line pointer 0")]
    NoRow {
        /// The line pointer.
        item: u16,
    },
    /// The entry's column count doesn't match the index.
    #[error("line pointer {item}: {found} columns found, {expected} expected")]
    Columns {
        /// The line pointer.
        item: u16,
        /// The entry's column count.
        found: u16,
        /// The most columns that the entry may have.
        expected: u16,
    },
    /// A column extends past the end of the entry.
    #[error("line pointer {item}: column {column} ends behind the entry")]
    Overrun {
        /// The line pointer.
        item: u16,
        /// The column, from 1.
        column: u16,
    },
    /// A column's value cannot be decoded.
    #[error("line pointer {item}: value of column {column} cannot be taken apart")]
    Value {
        /// The line pointer.
        item: u16,
        /// The column, from 1.
        column: u16,
    },
    /// The entry does not sort after the preceding entry.
    #[error("line pointer {item}: not above the entry before it")]
    Order {
        /// The line pointer.
        item: u16,
    },
    /// The entry sorts after the page's high key.
    #[error("line pointer {item}: above the page's high key")]
    AboveHighKey {
        /// The line pointer.
        item: u16,
    },
    /// We cannot tell whether the keys are in order, because they use a collation or a data type
    /// that only the server can compare.
    #[error("the order of column {column} is known to the server only")]
    UnknownOrder {
        /// The column, from 1.
        column: u16,
    },
}

impl Fault {
    /// The line pointer that the fault concerns, if it concerns a specific line pointer.
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
