//! Where the pages of a scan come from: the whole table, an index, or a bitmap.
//!
//! All of them return pages of the table with the rows that are wanted, so a reader decodes them in the
//! same way.

use std::task::{Context, Poll, ready};

use trunkline_engine::heap::{HeapPage, HeapScan, PageUse, ScanOptions};
use trunkline_engine::index_scan::{ExpectedRows, IndexScan, IndexScanOptions};
use trunkline_engine::pool::Backend;
use trunkline_engine::read_stream::{ParallelRange, RegisteredStream};
use trunkline_sql::SqlError;

use super::access::TableAccess;
use super::bitmap_source::BitmapSource;
use super::counters::{IndexCounts, ScanCounts};
use super::failure::{index_error, page_error};
use crate::access_path::PathKind;

/// Yields the pages of a scan.
pub(super) enum PageSource {
    /// A part of the table.
    Table(RegisteredStream<HeapScan<ParallelRange>>),
    /// The pages that an index leads to.
    Index(RegisteredStream<IndexScan>),
    /// The pages of a bitmap.
    Bitmap(Box<BitmapSource>),
    /// No entry of the index can match.
    Nothing,
}

impl PageSource {
    /// Opens the source of a partition.
    pub(super) fn open(
        backend: &Backend,
        access: &TableAccess,
        kind: &PathKind,
        parts: &ParallelRange,
        unordered: bool,
        page_use: PageUse,
    ) -> Result<Self, SqlError> {
        Ok(match kind {
            PathKind::Sequential => {
                let options = ScanOptions { page_use, ..access.scan_options(unordered) };
                let rows = &access.files.rows;
                let transactions = &access.transactions;
                let heap = HeapScan::new(backend, rows, parts.clone(), transactions, options);
                Self::Table(access.streams.register(heap))
            }
            PathKind::Index(search) => match &search.ranges {
                None => Self::Nothing,
                Some(ranges) => {
                    let table = access.indexed(search)?;
                    let unordered = search.order.is_none();
                    let options = IndexScanOptions { unordered, ..access.index_options() };
                    let scan = IndexScan::new(backend, &table, ranges.clone(), options);
                    Self::Index(access.streams.register(scan))
                }
            },
            // Their entries are read by `EntryReader`.
            PathKind::IndexOnly(_) => {
                return Err(SqlError::internal("an index-only scan returns no pages"));
            }
            PathKind::Bitmap(node) => Self::Bitmap(Box::new(BitmapSource::new(access, node))),
        })
    }

    /// Says how many more rows are expected to be taken, before the next page is asked for.
    pub(super) fn expect_rows(&mut self, expected: ExpectedRows) {
        match self {
            Self::Index(scan) => scan.lock().expect_rows(expected),
            Self::Bitmap(bitmap) => bitmap.expect_rows(expected),
            Self::Table(_) | Self::Nothing => {}
        }
    }

    /// Passes the next page to `take`, or `None` at the end.
    pub(super) fn poll_page<R>(
        &mut self,
        context: &mut Context<'_>,
        backend: &mut Backend,
        take: impl FnOnce(Option<HeapPage<'_>>) -> Result<R, SqlError>,
    ) -> Poll<Result<R, SqlError>> {
        let taken = match self {
            Self::Table(heap) => {
                let mut heap = heap.lock();
                let page = ready!(heap.poll_page(context, backend));
                take(page.map_err(|error| page_error(&error))?)
            }
            Self::Index(scan) => {
                let mut scan = scan.lock();
                let page = ready!(scan.poll_page(context, backend));
                take(page.map_err(|error| index_error(&error))?)
            }
            Self::Bitmap(bitmap) => return bitmap.poll_page(context, backend, take),
            Self::Nothing => take(None),
        };
        Poll::Ready(taken)
    }

    /// What the source has read so far.
    pub(super) fn counts(&self) -> ScanCounts {
        match self {
            Self::Table(heap) => {
                let heap = heap.lock();
                let (streams, buffers) = (heap.stats(), heap.buffer_usage());
                ScanCounts { streams, buffers, ..ScanCounts::default() }
            }
            Self::Index(scan) => {
                let counts = scan.lock().counts();
                let mut buffers = counts.heap_buffers;
                buffers.add(&counts.index_buffers);
                let index = IndexCounts { streams: counts.index, ..IndexCounts::default() };
                let (streams, indexes) = (counts.heap, vec![index]);
                ScanCounts { streams, buffers, indexes, ..ScanCounts::default() }
            }
            Self::Bitmap(bitmap) => bitmap.counts(),
            Self::Nothing => ScanCounts::default(),
        }
    }
}
