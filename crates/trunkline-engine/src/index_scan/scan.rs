//! Index scan: the rows that the matching entries lead to, in the order of the index, or sorted by
//! block as far as that helps.

use std::task::{Context, Poll, ready};

use trunkline_aio::facade::{Arc, Mutex};
use trunkline_format::btree::KeyRanges;

use super::entry_source::EntrySource;
use super::error::IndexScanError;
use super::expected_rows::ExpectedRows;
use super::row_list::Failure;
use crate::btree::{EntryScan, EntryScanOptions, Index, ScanSizes};
use crate::heap::{HeapError, HeapPage, HeapScan, PageUse, RowFilter, ScanOptions};
use crate::pool::{Backend, Tally};
use crate::read_stream::{ReleaseAhead, StreamOptions, StreamStats};
use crate::settings::Settings;
use crate::storage::Relation;
use crate::transactions::Transactions;

/// A table with one of its indexes, and what determines the visibility of its rows.
#[derive(Debug, Clone)]
pub struct IndexedTable {
    /// The index.
    pub index: Index,
    /// The table's main fork.
    pub rows: Relation,
    /// Their lengths.
    pub sizes: ScanSizes,
    /// The transactions of the cluster.
    pub transactions: Arc<Transactions>,
}

/// How to read.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct IndexScanOptions {
    /// How to read the leaves of the index.
    pub leaves: StreamOptions,
    /// How to read the table.
    pub heap: StreamOptions,
    /// The caller doesn't need the order of the index.
    pub unordered: bool,
}

impl IndexScanOptions {
    /// The configured look-ahead, in the order of the index.
    pub fn of(settings: &Settings) -> Self {
        let stream = StreamOptions::of(settings);
        Self { leaves: stream, heap: stream, unordered: false }
    }

    pub(super) fn scan_options(&self) -> ScanOptions {
        let stream = StreamOptions { sequential: false, unordered: self.unordered, ..self.heap };
        ScanOptions { stream, rows: RowFilter::Visible, page_use: PageUse::Rows }
    }
}

impl Default for IndexScanOptions {
    /// PostgreSQL's defaults, in the order of the index.
    fn default() -> Self {
        let stream = StreamOptions::default();
        Self { leaves: stream, heap: stream, unordered: false }
    }
}

/// What a scan has read so far, for `EXPLAIN`.
#[derive(Debug, Clone, Copy, Default)]
pub struct ScanCounts {
    /// The streams of index pages, all levels together.
    pub index: StreamStats,
    /// Hits, reads and times of index pages.
    pub index_buffers: Tally,
    /// The stream of the table's pages.
    pub heap: StreamStats,
    /// Hits, reads and times of the table's pages.
    pub heap_buffers: Tally,
    /// Pages of a bitmap whose rows were known (`Heap Blocks: exact`).
    pub exact_blocks: u64,
    /// Pages of a bitmap whose rows were not known (`Heap Blocks: lossy`).
    pub lossy_blocks: u64,
    /// Entries for which an index-only scan has looked at the table so far (`Heap Fetches`). Entries
    /// that are only read ahead don't count.
    pub heap_fetches: u64,
}

/// A scan of a table through an index, see [the module](crate::index_scan).
#[derive(Debug)]
pub struct IndexScan {
    heap: HeapScan<EntrySource>,
    failure: Failure,
}

impl IndexScan {
    /// A scan of the rows in `ranges`, which must have been made for the index's layout. You must
    /// pass the same `backend` to every call.
    pub fn new(
        backend: &Backend,
        table: &IndexedTable,
        ranges: KeyRanges,
        options: IndexScanOptions,
    ) -> Self {
        let failure = Failure::new(Mutex::new(None));
        let IndexedTable { index, rows, sizes, transactions } = table;
        let entries = EntryScanOptions { stream: options.leaves, sizes: *sizes, keep_keys: false };
        let entries = EntryScan::new(backend, index, ranges, entries);
        let source = EntrySource::new(entries, options.unordered, Arc::clone(&failure));
        let heap = HeapScan::new(backend, rows, source, transactions, options.scan_options());
        Self { heap: heap.for_index(index.relation()), failure }
    }

    /// Returns the next page with its rows, or `None` at the end, as [`HeapScan::next_page`]. In the
    /// order of the index, the same page may come several times, each time with other rows.
    ///
    /// # Errors
    /// See [`IndexScanError`].
    /// # Panics
    /// If this is not the backend that the scan was created with.
    pub fn next_page(
        &mut self,
        backend: &mut Backend,
    ) -> Result<Option<HeapPage<'_>>, IndexScanError> {
        let Self { heap, failure } = self;
        or_failure(heap.next_page(backend), failure)
    }

    /// [`IndexScan::next_page`] for a task, as [`HeapScan::poll_page`].
    ///
    /// # Errors
    /// As for [`IndexScan::next_page`].
    /// # Panics
    /// As for [`IndexScan::next_page`].
    pub fn poll_page(
        &mut self,
        context: &mut Context<'_>,
        backend: &mut Backend,
    ) -> Poll<Result<Option<HeapPage<'_>>, IndexScanError>> {
        let Self { heap, failure } = self;
        Poll::Ready(or_failure(ready!(heap.poll_page(context, backend)), failure))
    }

    /// Says how many more rows the caller is expected to take. The scan then reads their pages at once
    /// if it has to read, instead of a few at first, and without the order of the index it sorts those
    /// that are certain by block. Call this again before each page.
    pub fn expect_rows(&mut self, expected: ExpectedRows) {
        let expected = expected.after(self.heap.rows_taken());
        self.heap.source_mut().expect_rows(expected);
    }

    /// What the scan has read so far.
    pub fn counts(&self) -> ScanCounts {
        let entries = self.heap.source().scan();
        ScanCounts {
            index: entries.stats(),
            index_buffers: entries.buffer_usage(),
            heap: self.heap.stats(),
            heap_buffers: self.heap.buffer_usage(),
            ..ScanCounts::default()
        }
    }
}

/// At the end of the pages, returns the damage of the index that has ended them.
pub(super) fn or_failure<'p>(
    page: Result<Option<HeapPage<'p>>, HeapError>,
    failure: &Failure,
) -> Result<Option<HeapPage<'p>>, IndexScanError> {
    match page? {
        None => match failure.lock().take() {
            Some(error) => Err(error.into()),
            None => Ok(None),
        },
        page => Ok(page),
    }
}

impl ReleaseAhead for IndexScan {
    fn release_ahead(&mut self) {
        ReleaseAhead::release_ahead(&mut self.heap);
    }
}
