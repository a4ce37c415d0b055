//! One record of a page: where it is, and which part of it is about the page.
//!
//! For example, the record at 0/1A3F0C8 may change a heap page as its block reference 0, and clear bits of
//! a page of the visibility map without naming that.

use trunkline_format::Lsn;

/// A record that changes a page.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct ChainLink {
    /// Where the record begins.
    pub(super) record: Lsn,
    pub(super) part: Part,
}

/// What a record says about the page.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Part {
    /// The block reference with this number.
    Block(u8),
    /// The record clears bits of this map page without naming it.
    DerivedMap,
    /// The relation is truncated. If this map page exists, its bits behind the end are cleared.
    TruncatedMap,
}
