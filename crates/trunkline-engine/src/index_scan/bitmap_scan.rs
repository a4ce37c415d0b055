//! Bitmap scans: an index scan that fills a bitmap, and a scan of the table in the order of its
//! blocks.

use std::task::{Context, Poll, ready};

use trunkline_aio::PolledWait;
use trunkline_aio::facade::Arc;
use trunkline_format::BlockNo;
use trunkline_format::btree::KeyRanges;

use super::error::IndexScanError;
use super::expected_rows::ExpectedRows;
use super::scan::{IndexScanOptions, ScanCounts};
use super::tid_bitmap::{BitmapPage, BitmapPages, BitmapRows, ROWS_MAX, TidBitmap};
use crate::btree::{
    BtreeError, BtreeProblem, EntryScan, EntryScanOptions, Index, LeafEntries, ScanSizes,
};
use crate::heap::{ChainRoot, HeapPage, HeapScan, Wanted, WantedRows};
use crate::pool::Backend;
use crate::read_stream::{
    BlockSource, Expected, ReleaseAhead, SourceWait, StreamOptions, Upcoming,
};
use crate::storage::Relation;
use crate::transactions::Transactions;
use crate::waiting::{Waiting, slept};

/// Adds the rows of matching entries to a bitmap (`Bitmap Index Scan`).
#[derive(Debug)]
pub struct BitmapBuilder {
    scan: EntryScan,
    leaf: LeafEntries,
    wait: Option<PolledWait>,
    rows: u64,
}

impl BitmapBuilder {
    /// A scan of the entries in `ranges`.
    pub fn new(
        backend: &Backend,
        index: &Index,
        sizes: ScanSizes,
        ranges: KeyRanges,
        leaves: StreamOptions,
    ) -> Self {
        // A bitmap needs all entries.
        let stream = StreamOptions { full: true, ..leaves };
        let options = EntryScanOptions { stream, sizes, keep_keys: false };
        let scan = EntryScan::new(backend, index, ranges, options);
        Self { scan, leaf: LeafEntries::default(), wait: None, rows: 0 }
    }

    /// Adds all rows to `bitmap`, and sleeps until they have been read.
    ///
    /// # Errors
    /// See [`IndexScanError`]. Some of the rows may have been added.
    pub fn build(
        &mut self,
        backend: &mut Backend,
        bitmap: &mut TidBitmap,
    ) -> Result<(), IndexScanError> {
        slept(self.advance(&mut Waiting::Sleep, backend, bitmap))
    }

    /// [`BitmapBuilder::build`] for a task, which passes the same bitmap until this is ready.
    ///
    /// # Errors
    /// As for [`BitmapBuilder::build`].
    pub fn poll_build(
        &mut self,
        context: &mut Context<'_>,
        backend: &mut Backend,
        bitmap: &mut TidBitmap,
    ) -> Poll<Result<(), IndexScanError>> {
        let mut wait = self.wait.take().unwrap_or_else(|| backend.polled_wait());
        let advanced = self.advance(&mut Waiting::Wake(context, &mut wait), backend, bitmap);
        self.wait = Some(wait);
        advanced
    }

    fn advance(
        &mut self,
        waiting: &mut Waiting<'_, '_>,
        backend: &mut Backend,
        bitmap: &mut TidBitmap,
    ) -> Poll<Result<(), IndexScanError>> {
        let Self { scan, leaf, rows, .. } = self;
        loop {
            let mut wait = SourceWait::of_consumer(waiting.reborrow());
            if !ready!(scan.poll_leaf(backend, &mut wait, leaf))? {
                return Poll::Ready(Ok(()));
            }
            for entry in leaf.entries() {
                if !bitmap.add(entry.tid, false) {
                    let problem = BtreeProblem::NoSuchRow {
                        item: entry.item,
                        tid: entry.tid,
                        most: ROWS_MAX,
                    };
                    let error: BtreeError = scan.index().corrupt(leaf.block(), problem);
                    return Poll::Ready(Err(error.into()));
                }
                *rows += 1;
            }
        }
    }

    /// The number of rows added.
    pub fn rows(&self) -> u64 {
        self.rows
    }

    /// What the scan has read so far.
    pub fn counts(&self) -> ScanCounts {
        ScanCounts {
            index: self.scan.stats(),
            index_buffers: self.scan.buffer_usage(),
            ..ScanCounts::default()
        }
    }
}

impl ReleaseAhead for BitmapBuilder {
    fn release_ahead(&mut self) {
        self.scan.release_ahead();
        if let Some(wait) = &mut self.wait {
            wait.leave_queue();
            wait.wake_tasks();
        }
    }
}

/// The rows of a block.
#[derive(Debug)]
enum BlockRows {
    Exact { roots: Vec<ChainRoot>, recheck: bool },
    Lossy,
}

impl WantedRows for BlockRows {
    fn wanted(&self) -> Wanted<'_> {
        match self {
            Self::Exact { roots, recheck } => Wanted::Chains { roots, recheck: *recheck },
            Self::Lossy => Wanted::All { recheck: true },
        }
    }
}

/// Yields the pages of a bitmap.
#[derive(Debug)]
struct BitmapSource {
    pages: BitmapPages,
    /// How many rows were returned.
    returned: u64,
    expected: ExpectedRows,
}

impl BlockSource for BitmapSource {
    type Data = BlockRows;

    fn next_block(&mut self) -> Poll<Option<(BlockNo, BlockRows)>> {
        Poll::Ready(self.pages.next().map(|BitmapPage { block, rows, recheck }| {
            let rows = match rows {
                BitmapRows::Exact(items) => {
                    // The bitmap doesn't know which entries its rows come from.
                    let root = |item| ChainRoot { item, entry: 0, place: (0, 0) };
                    BlockRows::Exact { roots: items.map(root).collect(), recheck }
                }
                BitmapRows::Lossy => BlockRows::Lossy,
            };
            self.returned += rows.rows_max();
            (block, rows)
        }))
    }

    fn next_is(&self) -> Expected {
        match self.pages.is_empty() {
            true => Expected::Unknown,
            false => self.expected.next_is(self.returned),
        }
    }

    fn upcoming(&self, ahead: usize) -> Option<Upcoming> {
        // Lossy pages between exact ones only make this imprecise.
        let (block, item) = self.pages.upcoming_exact(ahead)?;
        Some(Upcoming { block, item })
    }
}

/// A scan of the rows of a bitmap in the order of their blocks (`Bitmap Heap Scan`).
#[derive(Debug)]
pub struct BitmapHeapScan {
    heap: HeapScan<BitmapSource>,
    exact: u64,
    lossy: u64,
}

impl BitmapHeapScan {
    /// A scan of a bitmap's rows. You must pass the same `backend` to every call.
    pub fn new(
        backend: &Backend,
        rows: &Relation,
        transactions: &Arc<Transactions>,
        bitmap: TidBitmap,
        options: IndexScanOptions,
    ) -> Self {
        let source = BitmapSource {
            pages: bitmap.into_pages(),
            returned: 0,
            expected: ExpectedRows::default(),
        };
        let options = options.scan_options();
        let heap = HeapScan::new(backend, rows, source, transactions, options);
        Self { heap, exact: 0, lossy: 0 }
    }

    /// Returns the next page with its rows, or `None` at the end. If
    /// [`HeapPage::needs_recheck`] is true, some of the rows may not match.
    ///
    /// # Errors
    /// See [`IndexScanError`]. The index has been read already, so the scan can always continue.
    /// # Panics
    /// If this is not the backend that the scan was created with.
    pub fn next_page(
        &mut self,
        backend: &mut Backend,
    ) -> Result<Option<HeapPage<'_>>, IndexScanError> {
        let Self { heap, exact, lossy } = self;
        let page = heap.next_page(backend)?;
        count(page.as_ref(), exact, lossy);
        Ok(page)
    }

    /// [`BitmapHeapScan::next_page`] for a task, as [`HeapScan::poll_page`].
    ///
    /// # Errors
    /// As for [`BitmapHeapScan::next_page`].
    /// # Panics
    /// As for [`BitmapHeapScan::next_page`].
    pub fn poll_page(
        &mut self,
        context: &mut Context<'_>,
        backend: &mut Backend,
    ) -> Poll<Result<Option<HeapPage<'_>>, IndexScanError>> {
        let Self { heap, exact, lossy } = self;
        let page = ready!(heap.poll_page(context, backend))?;
        count(page.as_ref(), exact, lossy);
        Poll::Ready(Ok(page))
    }

    /// As [`IndexScan::expect_rows`](super::IndexScan::expect_rows).
    pub fn expect_rows(&mut self, expected: ExpectedRows) {
        let expected = expected.after(self.heap.rows_taken());
        self.heap.source_mut().expected = expected;
    }

    /// What the scan has read so far.
    pub fn counts(&self) -> ScanCounts {
        ScanCounts {
            heap: self.heap.stats(),
            heap_buffers: self.heap.buffer_usage(),
            exact_blocks: self.exact,
            lossy_blocks: self.lossy,
            ..ScanCounts::default()
        }
    }
}

fn count(page: Option<&HeapPage<'_>>, exact: &mut u64, lossy: &mut u64) {
    match page.map(HeapPage::is_listed) {
        Some(true) => *exact += 1,
        Some(false) => *lossy += 1,
        None => {}
    }
}

impl ReleaseAhead for BitmapHeapScan {
    fn release_ahead(&mut self) {
        ReleaseAhead::release_ahead(&mut self.heap);
    }
}
