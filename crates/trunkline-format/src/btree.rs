//! B-tree indexes: what their pages hold, how keys compare, and which way a search goes.
//!
//! ```text
//!   block 0: meta ──▶ root (level n) ──▶ … ──▶ leaves (level 0) ◀──▶ chained left to right
//!
//!   a page:   item 1            item 2 …                      a leaf's entry:   key ─▶ row, or rows
//!             high key, unless  entries in order of key,      any other entry:  separator ─▶ child
//!             it is rightmost   then of row
//! ```
//!
//! Every key of a page is at most its high key, and every separator is below all keys of its child;
//! the first one of a page counts as smaller than everything. Separators and high keys are cut
//! after the first column that tells the two sides apart: what was cut counts as minus infinity.
//!
//! Nothing here reads a file: [`KeyLayout::step`] says of one page where to go next, and
//! [`BtreePage::check`] what is wrong with one. Mirrors PostgreSQL's `access/nbtree.h`.

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

/// More levels than any index has: a search that goes deeper runs in circles.
pub const MAX_LEVELS: u32 = 32;

/// As many columns as an index can have.
pub const MAX_INDEX_KEYS: usize = 32;

#[cfg(test)]
mod tests;
