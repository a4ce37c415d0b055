//! **B-tree indexes.** Searches and walks nbtree indexes through the buffer pool.
//!
//! ```text
//!   Index ── scan(from, to) ──▶ root ─▶ … ─▶ leaf ─▶ leaf      rows of one leaf at a time
//!         ├─ find_many ───────▶ leaves of many keys             with read-ahead
//!         └─ LevelWalk ───────▶ page ─▶ page ─▶ page            with read-ahead: the level above
//!                                                               has the downlinks
//! ```
//!
//! `trunkline_format::btree` decodes pages and decides where a search continues. This module just
//! reads pages and follows that decision, as `nbtsearch.c` does with `_bt_moveright` and
//! `_bt_binsrch`.
//!
//! Apart from the pages a read stream holds, we pin at most one page at a time. Results are copied
//! out before we read the next page, so even the smallest pool is large enough. As in nbtree, the
//! descent needs no lock coupling: if a page was split after we read its downlink, its high key
//! shows that we must move right.
//!
//! A damaged index must cause an error, never an endless loop. So each step down must descend
//! exactly one level, and we never take more steps to the right than the index has blocks.
//!
//! ```no_run
//! # use trunkline_engine::btree::{BtreeError, Index};
//! # use trunkline_engine::pool::Backend;
//! # use trunkline_engine::storage::Relation;
//! # use trunkline_format::Tid;
//! fn chunks(backend: &mut Backend, toast: Relation, value: u32) -> Result<Vec<Tid>, BtreeError> {
//!     let value = value.to_le_bytes();
//!     let key: &[Option<&[u8]>] = &[Some(&value)];
//!     let mut scan = Index::of_toast(toast).scan(backend, key, key)?;
//!     let mut rows = Vec::new();
//!     while scan.next_page(backend, &mut rows)? {}
//!     Ok(rows)
//! }
//! ```

mod error;
mod index;
mod index_scan;
mod level_walk;
mod multi_search;

pub use error::{BtreeError, BtreeProblem};
pub use index::Index;
pub use index_scan::IndexScan;
pub use level_walk::{Downlink, LevelPage, LevelWalk};
