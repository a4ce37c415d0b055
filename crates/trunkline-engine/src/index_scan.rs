//! **Index scans** of tables: rows that match conditions, found through a B-tree, with the pages of
//! the index and of the table read ahead.
//!
//! ```text
//!   conditions ─▶ KeyRanges ─▶ EntryScan ─▶ TIDs ─┬─▶ IndexScan        rows, ordered or not
//!                              leaves ahead       ├─▶ IndexOnlyScan    columns of the entries
//!                                                 ├─▶ TidBitmap ─▶ BitmapHeapScan: block order
//!   many keys ──▶ level by level, leaves ahead ───┴─▶ KeyedScan        rows, key by key
//! ```
//! PostgreSQL reads one page at a time in all of these except the bitmap heap scan. Here, the TIDs of
//! the entries are the block source of a read stream, and that source reads leaves through a stream of
//! its own. All streams start without look-ahead and grow only if their consumer had to wait, and how
//! many leaves are read in advance is bounded by how many were needed so far. So a scan that stops
//! after its first row has read no more than PostgreSQL would, and one that stops later not much more
//! (decision 0031).
//!
//! [`look_up_row`] finds a single row without a scan.
//!
//! **Rows.** All scans return [`HeapPage`](crate::heap::HeapPage)s, as a heap scan does, with only
//! those rows that their entries lead to: the visible row of each HOT chain. [`HeapRow::entry`] says
//! which key of a [`KeyedScan`] a row belongs to. The caller must check the condition for every row
//! again. Then a damaged index can't bring a wrong row, and a lossy bitmap no row too many.
//!
//! **Damage.** [`IndexScanError::Index`] names the page of the index. If an entry leads to something
//! that isn't a row, [`HeapPage::rows`](crate::heap::HeapPage::rows) returns an error with the entry's
//! place. Entries that are missing aren't noticed; verification finds them.
//!
//! Nothing here changes with the server's state, because there is no server: the index and its table
//! are as they were at shutdown.
//!
//! [`HeapRow::entry`]: crate::heap::HeapRow::entry

mod bitmap_scan;
mod entry_source;
mod error;
mod expected_rows;
mod index_only;
mod key_lookup;
mod keyed_scan;
mod map_bits;
mod pooled_lookup;
mod row_list;
mod scan;
mod tid_bitmap;

pub use bitmap_scan::{BitmapBuilder, BitmapHeapScan};
pub use error::IndexScanError;
pub use expected_rows::ExpectedRows;
pub use index_only::{IndexOnlyEntry, IndexOnlyScan};
pub use keyed_scan::KeyedScan;
pub use pooled_lookup::{MissingPage, look_up_row};
pub use scan::{IndexScan, IndexScanOptions, IndexedTable, ScanCounts};
pub use tid_bitmap::{BitmapPage, BitmapPages, BitmapRows, TidBitmap};
