//! **Heap access.** Reads the rows of a table through the buffer pool, checks their visibility, and
//! detoasts their values.
//!
//! ```text
//!   BlockSource ──▶ ReadStream ──▶ HeapScan::next_page ──▶ HeapPage: rows by line pointer
//!                   pinned pages     visibility checks        a tuple and its state, or an error
//! ```
//!
//! A task of an async runtime polls with [`HeapScan::poll_page`] instead.
//!
//! A scan returns pages in the order given by its source, and the rows within a page in the order
//! of their line pointers. A server's sequential scan returns rows in the same order.
//!
//! **Visibility.** Since no server is running, there are no concurrent transactions, and we don't
//! need a snapshot: a tuple is visible if its xmin committed and its xmax did not. We check each
//! tuple separately, without following HOT chains or update chains, which is OK because at most one
//! version of a row can be visible. If a page is marked all-visible, we don't check its tuples at
//! all.
//!
//! A source may also say which rows of a block it wants ([`WantedRows`]): those that index entries
//! point to. The scan then follows their HOT chains, and returns them in the order of the entries
//! (`index_scan`).
//!
//! **Damage** is reported with its location, and the scan can continue after it, whereas a server
//! would abort the query. [`HeapScan::next_page`] reports pages that can't be read or aren't heap
//! pages. [`HeapPage::rows`] reports rows that are invalid, and rows whose transaction status can't
//! be looked up.
//!
//! ```no_run
//! # use trunkline_aio::facade::Arc;
//! # use trunkline_engine::heap::{HeapScan, ScanOptions};
//! # use trunkline_engine::pool::{BackendType, Pool};
//! # use trunkline_engine::storage::Relation;
//! # use trunkline_engine::transactions::Transactions;
//! fn count(
//!     pool: &Pool,
//!     relation: &Relation,
//!     transactions: &Arc<Transactions>,
//! ) -> Result<u64, Box<dyn std::error::Error>> {
//!     let mut backend = pool.backend(BackendType::Client)?;
//!     let options = ScanOptions::default();
//!     let mut scan = HeapScan::of_table(&backend, relation, transactions, options)?;
//!     let mut rows = 0;
//!     while let Some(page) = scan.next_page(&mut backend)? {
//!         for row in page.rows() {
//!             assert_eq!(row?.tid.block, page.block());
//!             rows += 1;
//!         }
//!     }
//!     Ok(rows)
//! }
//! ```

mod error;
mod hot_chain;
mod page;
mod page_batch;
mod pooled_page;
mod scan;
mod toast_batch;
mod toast_error;
mod toast_reader;
mod toast_table;
mod wanted;

pub use error::{EntryProblem, HeapError, RowError, RowProblem};
pub use hot_chain::ChainRoot;
pub use page::{HeapPage, HeapRow, RowFilter, Rows};
pub use page_batch::PageBatch;
pub(crate) use pooled_page::pooled_rows;
pub use scan::{HeapScan, PageUse, ScanOptions};
pub use toast_batch::ToastBatch;
pub use toast_error::{ToastError, ToastProblem};
pub use toast_reader::ToastReader;
pub use toast_table::{CHUNK_BYTES, ToastTable, has_external};
pub(crate) use wanted::HEAP_TUPLES_MAX;
pub use wanted::{Wanted, WantedRows};
