//! Heap scan: returns a table's rows, page by page.
//!
//! Pages are read ahead by a read stream. When the stream returns a page, we determine the
//! visibility of its rows.

use trunkline_aio::facade::Arc;

use super::error::HeapError;
use super::page::{HeapPage, PageRows, RowFilter};
use crate::pool::{Backend, Tally};
use crate::read_stream::{BlockRange, BlockSource, ReadStream, StreamOptions, StreamStats};
use crate::seq_scan::scan_strategy;
use crate::settings::Settings;
use crate::storage::{Relation, StorageError};
use crate::transactions::{Transactions, XidStatusCache};

/// How a scan reads, and which tuples it returns.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct ScanOptions {
    /// How to read. [`HeapScan::of_table`] chooses the strategy.
    pub stream: StreamOptions,
    /// Which row versions to return.
    pub rows: RowFilter,
}

impl ScanOptions {
    /// Visible rows, read in order, with the configured read-ahead.
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

/// A scan of a table, see [the module](crate::heap).
#[derive(Debug)]
pub struct HeapScan<S: BlockSource> {
    stream: ReadStream<S>,
    relation: Relation,
    transactions: Arc<Transactions>,
    /// Transaction statuses that this scan looked up most recently.
    statuses: XidStatusCache,
    rows: RowFilter,
    page_rows: PageRows,
}

impl HeapScan<BlockRange> {
    /// Scans all blocks that the table has at this point. As in PostgreSQL, if the table is larger
    /// than a quarter of the pool, we use a ring buffer.
    ///
    /// # Errors
    /// The table's length cannot be determined.
    pub fn of_table(
        backend: &Backend,
        relation: &Relation,
        transactions: &Arc<Transactions>,
        options: ScanOptions,
    ) -> Result<Self, StorageError> {
        let blocks = relation.blocks()?;
        let strategy = scan_strategy(blocks, backend.pool_buffers());
        let stream = StreamOptions { strategy, ..options.stream };
        let options = ScanOptions { stream, ..options };
        Ok(Self::new(backend, relation, BlockRange::new(0..blocks), transactions, options))
    }
}

impl<S: BlockSource> HeapScan<S> {
    /// Scans the blocks returned by `source`. You must pass the same `backend` to every call,
    /// because the I/Os of the stream belong to that backend's session.
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
            statuses: XidStatusCache::default(),
            rows: options.rows,
            page_rows: PageRows::default(),
        }
    }

    /// Returns the next page, or `None` at the end of the scan. Pages are returned even if none of
    /// their rows passes the filter. We unlock and unpin the previous page first, so that a scan
    /// never holds more than one content lock.
    ///
    /// # Errors
    /// If the next page can't be read, returns a [`HeapError`]. The scan can continue after that.
    /// # Panics
    /// If this is not the backend that the scan was created with.
    pub fn next_page(&mut self, backend: &mut Backend) -> Result<Option<HeapPage<'_>>, HeapError> {
        let Some(found) = self.stream.next(backend)? else { return Ok(None) };
        let block = found.block;
        let page = backend.read_lock(found.pin)?;
        // This lookup may have to read a commit log page while we are holding the content lock.
        // That can't deadlock, because commit log pages aren't in the pool, so the read never waits
        // for anything that needs our lock.
        let mut lookup = self.transactions.lookup(backend.session(), &mut self.statuses);
        self.page_rows.prepare(&page, &self.relation, block, self.rows, &mut lookup)?;
        Ok(Some(HeapPage::new(page, block, &self.relation, &self.page_rows)))
    }

    /// Statistics of the stream so far.
    pub fn stats(&self) -> StreamStats {
        self.stream.stats()
    }

    /// Hits, reads and times of the scan so far, without those of the commit log and of TOAST.
    pub fn buffer_usage(&self) -> Tally {
        self.stream.buffer_usage()
    }

    /// The table that is scanned.
    pub fn relation(&self) -> &Relation {
        &self.relation
    }
}
