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
//! Every key of a page is at most its high key. Every separator is below all keys of its child; the
//! first one of a page counts as minus infinity. Since PostgreSQL 12, suffix truncation cuts pivot
//! tuples after the first column that separates the two sides; a truncated column counts as minus
//! infinity. Posting lists (deduplication) came with PostgreSQL 13.
//!
//! Nothing here reads a file: [`KeyLayout::step`] says where a search continues after a page, and
//! [`BtreePage::check`] finds damage in one. Mirrors PostgreSQL's `access/nbtree.h`.

mod check;
mod entry;
mod fault;
mod key;
mod layout;
mod numeric;
mod order;
mod page;

pub use entry::{Attributes, Entry, Target, Tids};
pub use fault::Fault;
pub use key::{Key, KeyColumn};
pub use layout::{KeyLayout, Step};
pub use order::Order;
pub use page::{BtreePage, Meta};

/// More levels than any index has: a search that goes deeper follows a cycle.
pub const MAX_LEVELS: u32 = 32;

/// `INDEX_MAX_KEYS`: the most columns of an index.
pub const MAX_INDEX_KEYS: usize = 32;

#[cfg(test)]
mod tests;
