//! **B-tree indexes** (nbtree): pages, index tuples, key comparison, and the direction of a search.
//!
//! ```text
//!   block 0: meta ──▶ root (level n) ──▶ … ──▶ leaves (level 0) ◀──▶ chained left to right
//!
//!   a page:   item 1            item 2 …                      leaf tuple:    key ─▶ heap tid, or a
//!             high key, unless  index tuples in key order,                   posting list of tids
//!             it is rightmost   then in tid order             pivot tuple:   separator ─▶ child
//! ```
//!
//! The high key of a page is an upper bound for all keys on that page. A separator is a lower bound
//! for the keys on its child page, and the first separator on a page counts as minus infinity.
//! Since PostgreSQL 12, suffix truncation removes those trailing columns of a pivot tuple that
//! aren't needed to separate the two pages. A truncated column counts as minus infinity.
//! Deduplication, which produces posting lists, was added in PostgreSQL 13.
//!
//! This module doesn't do any I/O. [`KeyLayout::step`] returns the page that a search must visit
//! next, and [`BtreePage::check`] looks for damage within a single page. It is the counterpart of
//! PostgreSQL's `access/nbtree.h`.

mod check;
mod condition;
mod entry;
mod fault;
mod interval;
mod key;
mod layout;
mod numeric;
mod order;
mod page;
mod range_scan;
mod ranges;

pub use condition::{Comparison, Condition, KeyValue, Unusable};
pub(crate) use entry::{
    ALTERNATIVE, COUNT, HAS_NULLS, HAS_ROW, IS_POSTING, SIZE as INDEX_SIZE_MASK,
};
pub use entry::{Attributes, Entry, MAX_INDEX_KEYS, Target, Tids};
pub use fault::Fault;
pub use key::{Key, KeyColumn};
pub use layout::{KeyLayout, Step};
pub(crate) use numeric::compare as numeric_order;
pub use order::{Order, unpadded};
pub use page::{BtreePage, MAX_LEVELS, Meta, Place, SPECIAL};
pub(crate) use page::{DELETED, HALF_DEAD, INCOMPLETE_SPLIT, LEAF, MAGIC, META, ROOT};
pub use range_scan::{Children, LeafEnd};
pub use ranges::{Cut, Direction, KeyRanges};

#[cfg(test)]
mod tests;
