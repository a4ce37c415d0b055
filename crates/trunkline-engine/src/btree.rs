//! **B-tree indexes.** Searches and walks nbtree indexes through the buffer pool.
//!
//! ```text
//!   Index ── scan(from, to) ──▶ root ─▶ … ─▶ leaf ─▶ leaf      rows of one leaf at a time
//!         ├─ find_many ───────▶ leaves of many keys             with read-ahead
//!         ├─ LevelWalk ───────▶ page ─▶ page ─▶ page            with read-ahead: the level above
//!         │                                                     has the downlinks
//!         └─ EntryScan(ranges) ▶ leaf ─▶ leaf                   the same, but only leaves that may
//!                                                               have matches; polled
//! ```
//!
//! An [`EntryScan`] finds the entries that match conditions, in either direction, and copies them out
//! leaf by leaf. Scans of tables are built on it (`index_scan`).
//!
//! `trunkline_format::btree` decodes pages and decides where a search continues. The code in this
//! module only reads the pages and follows that decision, as `nbtsearch.c` does with
//! `_bt_moveright` and `_bt_binsrch`.
//!
//! Apart from the pages held by a read stream, we never pin more than one page at a time, and we
//! copy the results out before we read the next page. Even the smallest pool is therefore large
//! enough. As in nbtree, the descent doesn't need lock coupling: if a page was split after we read
//! its downlink, its high key shows that we must move right.
//!
//! A damaged index must lead to an error, never to an endless loop. We therefore make sure that
//! each step down descends by exactly one level, and that we never take more steps to the right
//! than the index has blocks.
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

mod entry_scan;
mod error;
mod index;
mod index_scan;
mod leaf_prediction;
mod level_walk;
mod multi_search;
mod page_stream;

pub use entry_scan::{EntryScan, EntryScanOptions, LeafEntries, LeafEntry, ScanSizes};
pub use error::{BtreeError, BtreeProblem};
pub use index::Index;
pub(crate) use index::RightSteps;
pub use index_scan::IndexScan;
pub use level_walk::{Downlink, LevelPage, LevelWalk};
pub(crate) use page_stream::PageStream;
