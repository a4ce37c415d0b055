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
//! No key on a page is above the page's high key. A separator is a lower bound for its child's
//! keys; the first separator on a page counts as minus infinity. Since PostgreSQL 12, suffix
//! truncation drops a pivot tuple's trailing columns once a column separates the two sides; a
//! truncated column counts as minus infinity. Deduplication and its posting lists were added in
//! PostgreSQL 13.
//!
//! This module does no I/O: [`KeyLayout::step`] returns the page that a search visits next,
//! and [`BtreePage::check`] finds damage within a single page. Mirrors PostgreSQL's
//! `access/nbtree.h`.

mod check;
mod entry;
mod fault;
mod key;
mod layout;
mod numeric;
mod order;
mod page;

pub use entry::{Attributes, Entry, MAX_INDEX_KEYS, Target, Tids};
pub use fault::Fault;
pub use key::{Key, KeyColumn};
pub use layout::{KeyLayout, Step};
pub use order::Order;
pub use page::{BtreePage, MAX_LEVELS, Meta};

#[cfg(test)]
mod tests;
