//! Why a record can't be applied to a page.
//!
//! Each of these means that the page is not the one that the record was written for, or that one of
//! the two is damaged. A server stops with `PANIC` then.

use thiserror::Error;

use crate::page::LinePointerFlags;
use crate::wal::image::ImageError;

/// The reason why a record can't be applied to a page.
///
/// The texts say what was found and what was expected. The caller adds the record's position, the
/// relation and the block, which it knows.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Error)]
pub enum RedoError {
    /// The record has no block reference of this number.
    #[error("record has no block reference {id}")]
    NoBlock {
        /// The number.
        id: u8,
    },
    /// The operation has no rule for this block reference.
    #[error("operation changes no page by block reference {id}")]
    UnexpectedBlock {
        /// The number.
        id: u8,
    },
    /// The record must contain the image of the page, but doesn't.
    #[error("record has no image for block reference {id}, but its operation needs one")]
    NoImage {
        /// The number.
        id: u8,
    },
    /// The image doesn't decompress.
    #[error(transparent)]
    Image(#[from] ImageError),
    /// The data of the record ends too early.
    #[error("record is too short for its operation")]
    Short,
    /// The data of the record is longer than its operation says.
    #[error("record has {found} bytes more than its operation needs")]
    Long {
        /// The number of bytes.
        found: usize,
    },
    /// The operation makes the page from scratch, but the block reference doesn't say so, or the
    /// other way round.
    #[error("block reference {id} and the operation disagree on whether the page is initialised")]
    Initialisation {
        /// The number of the reference.
        id: u8,
    },
    /// The page header is impossible.
    #[error(
        "page has lower {lower}, upper {upper}, special {special}, expected special {expected}"
    )]
    Header {
        /// `pd_lower`.
        lower: u16,
        /// `pd_upper`.
        upper: u16,
        /// `pd_special`.
        special: u16,
        /// The `pd_special` of such a page.
        expected: u16,
    },
    /// A line pointer of the record is not on the page.
    #[error("page has {count} line pointers, the record names number {item}")]
    NoLinePointer {
        /// The number in the record.
        item: u16,
        /// How many the page has.
        count: u16,
    },
    /// A line pointer has another state than the operation expects.
    #[error("line pointer {item} is {found:?}, expected {expected:?}")]
    LinePointerState {
        /// The line pointer.
        item: u16,
        /// Its state.
        found: LinePointerFlags,
        /// The state that it must have.
        expected: LinePointerFlags,
    },
    /// An item is not between `pd_upper` and `pd_special`.
    #[error("item {item} has {length} bytes at {offset}, outside of the page's items")]
    ItemOutside {
        /// The line pointer.
        item: u16,
        /// Where it points.
        offset: u16,
        /// The length of the item in bytes.
        length: u16,
    },
    /// The items of the page together are longer than it.
    #[error("items of the page take {found} bytes, and only {room} are there")]
    Overlap {
        /// The size of all items in bytes.
        found: usize,
        /// The bytes between line pointers and special space.
        room: usize,
    },
    /// A new item doesn't fit.
    #[error("item {item} of {size} bytes does not fit into {room} bytes")]
    NoRoom {
        /// The line pointer of the new item.
        item: u16,
        /// The size of the item in bytes, aligned.
        size: usize,
        /// The free space in bytes.
        room: usize,
    },
    /// An item is shorter than its header, or than its header says.
    #[error("item {item} has {found} bytes, expected {expected}")]
    ItemLength {
        /// The line pointer.
        item: u16,
        /// Its length in bytes.
        found: usize,
        /// The smallest length that is possible, or the one that the record expects.
        expected: usize,
    },
    /// A part of the old row version that the record refers to lies outside of it.
    #[error("row version {item} has {found} bytes of data, the record reuses {expected}")]
    OldVersion {
        /// The line pointer of the old version.
        item: u16,
        /// The length of its data in bytes.
        found: usize,
        /// The length of the part in bytes.
        expected: usize,
    },
    /// The new item of a page split, or the posting list before it, is not in the left half.
    #[error("page split refers to item {item}, expected {first} to {last}")]
    SplitItem {
        /// The number in the record.
        item: u16,
        /// The smallest number that it can have.
        first: u16,
        /// The largest one.
        last: u16,
    },
    /// The record has flags that are mutually exclusive, or invalid for its operation.
    #[error("flags 0x{flags:02X} are invalid for this operation")]
    Flags {
        /// All flags of the record.
        flags: u16,
    },
    /// A posting list of an index has another shape than the record expects.
    #[error("item {item} is not a posting list with more than {expected} row pointers")]
    PostingList {
        /// The line pointer.
        item: u16,
        /// The place in the list that the record names.
        expected: u16,
    },
}
