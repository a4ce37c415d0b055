//! The rows of a table: pages over the read stream, visible versions, values from TOAST.
//!
//! ```text
//!   BlockSource ──▶ ReadStream ──▶ HeapScan::next_page ──▶ HeapPage: rows by line pointer
//!                   pages, pinned    every row judged        each a tuple and its state, or an error
//! ```
//! A scan goes through a table in the order of its source, and through a page in the order of its
//! line pointers: that is the order in which a server's sequential scan prints rows. A row version
//! is judged by itself; which one came from which does not matter, since at most one of them is
//! visible. On a page that says of itself that everyone sees all its rows nobody is asked.
//!
//! What is damaged is an error with its place, and the scan can go on behind it: a page that cannot
//! be read or is no table's comes from [`HeapScan::next_page`], a row that is not sound or whose
//! transaction cannot be looked up from [`HeapPage::rows`].
//!
//! ```no_run
//! # use trunkline_aio::sync::Arc;
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
mod page;
mod page_copies;
mod toast;
mod toast_batch;
mod toast_error;

use trunkline_aio::sync::Arc;
use trunkline_format::HeapTuple;

use crate::pool::Backend;
use crate::read_stream::{BlockRange, BlockSource, ReadStream, StreamOptions, StreamStats};
use crate::seq_scan::scan_strategy;
use crate::settings::Settings;
use crate::storage::{Relation, StorageError};
use crate::transactions::{Memo, Transactions};
use page::Judged;

pub use error::{HeapError, RowError, RowProblem};
pub use page::{HeapPage, HeapRow, Rows};
pub use page_copies::PageCopies;
pub use toast::{CHUNK_BYTES, ToastReader, ToastTable};
pub use toast_batch::ToastBatch;
pub use toast_error::{ToastError, ToastProblem};

/// In `t_infomask`: a value of the tuple is in TOAST.
const HAS_EXTERNAL: u16 = 0x0004;

/// Whether a value of the tuple is in TOAST.
#[inline]
pub fn has_external(tuple: &HeapTuple<'_>) -> bool {
    tuple.infomask() & HAS_EXTERNAL != 0
}

/// Which row versions a scan hands out.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum RowFilter {
    /// Those that are live: what a server's `SELECT` sees.
    #[default]
    Visible,
    /// Every one that a line pointer leads to, whatever its state.
    All,
}

/// How a scan reads, and what it hands out.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct ScanOptions {
    /// How its stream reads. [`HeapScan::of_table`] chooses the strategy.
    pub stream: StreamOptions,
    /// Which row versions.
    pub rows: RowFilter,
}

impl ScanOptions {
    /// Visible rows, read in order, with read-ahead as the settings say.
    pub fn of(settings: &Settings) -> Self {
        let stream = StreamOptions { sequential: true, ..StreamOptions::of(settings) };
        Self { stream, rows: RowFilter::Visible }
    }
}

impl Default for ScanOptions {
    /// Visible rows, read in order.
    fn default() -> Self {
        let stream = StreamOptions { sequential: true, ..StreamOptions::default() };
        Self { stream, rows: RowFilter::Visible }
    }
}

/// See the module.
#[derive(Debug)]
pub struct HeapScan<S: BlockSource> {
    stream: ReadStream<S>,
    relation: Relation,
    transactions: Arc<Transactions>,
    memo: Memo,
    rows: RowFilter,
    judged: Judged,
}

impl HeapScan<BlockRange> {
    /// Over all blocks that the table has now. A table larger than a quarter of the pool goes round in
    /// a ring of buffers, as a server's does.
    ///
    /// # Errors
    /// The table's length cannot be found out.
    pub fn of_table(
        backend: &Backend,
        relation: &Relation,
        transactions: &Arc<Transactions>,
        options: ScanOptions,
    ) -> Result<Self, StorageError> {
        let blocks = relation.blocks()?;
        let strategy = scan_strategy(blocks, backend.shared.count());
        let stream = StreamOptions { strategy, ..options.stream };
        let options = ScanOptions { stream, ..options };
        Ok(Self::new(backend, relation, BlockRange::new(0..blocks), transactions, options))
    }
}

impl<S: BlockSource> HeapScan<S> {
    /// Over the blocks that `source` names, by the means of `backend`, which every call is to be given.
    pub fn new(
        backend: &Backend,
        relation: &Relation,
        source: S,
        transactions: &Arc<Transactions>,
        options: ScanOptions,
    ) -> Self {
        Self {
            stream: ReadStream::new(backend, relation, source, options.stream),
            relation: relation.clone(),
            transactions: Arc::clone(transactions),
            memo: Memo::default(),
            rows: options.rows,
            judged: Judged::default(),
        }
    }

    /// The next page, its rows judged, even if none is left to hand out; `None` at the end. The one
    /// before is let go of first.
    ///
    /// # Errors
    /// See [`HeapError`]: of a block whose turn it is. The scan can be asked again, for what follows.
    /// # Panics
    /// If the backend is not the one that the scan was made with.
    pub fn next_page(&mut self, backend: &mut Backend) -> Result<Option<HeapPage<'_>>, HeapError> {
        let Some(found) = self.stream.next(backend)? else { return Ok(None) };
        let block = found.block;
        let page = backend.read_lock(found.pin)?;
        let mut lookup = self.transactions.lookup(backend.session(), &mut self.memo);
        self.judged.judge(&page, &self.relation, block, self.rows, &mut lookup)?;
        Ok(Some(HeapPage::new(page, block, &self.relation, &self.judged)))
    }

    /// What its stream has done so far.
    pub fn stats(&self) -> StreamStats {
        self.stream.stats()
    }

    /// The table.
    pub fn relation(&self) -> &Relation {
        &self.relation
    }
}
