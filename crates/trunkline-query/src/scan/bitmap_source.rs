//! Bitmap scans: first the bitmap is made, from one or more indexes, and then its pages are read in the
//! order of their blocks.
//!
//! The searches are executed one after the other. `AND` and `OR` are a stack machine, which combines each
//! bitmap with the one before as soon as both are there, so that few of them need memory at a time:
//!
//! ```text
//!   a = 1 AND (b = 2 OR c = 3 OR d = 4)     search a, search b, search c, or, search d, or, and
//! ```

use std::collections::VecDeque;
use std::sync::Arc;
use std::task::{Context, Poll, ready};

use trunkline_aio::clock::{self, Time};
use trunkline_engine::heap::HeapPage;
use trunkline_engine::index_scan::{BitmapBuilder, BitmapHeapScan, ExpectedRows, TidBitmap};
use trunkline_engine::pool::Backend;
use trunkline_engine::read_stream::RegisteredStream;
use trunkline_sql::SqlError;

use super::access::TableAccess;
use super::counters::{IndexCounts, ScanCounts};
use super::failure::index_error;
use crate::access_path::{BitmapNode, IndexSearch};

/// A step of making a bitmap.
enum Step {
    /// Pushes the bitmap of a search.
    Search(Arc<IndexSearch>),
    /// Replaces two bitmaps by the rows that both have.
    And,
    /// Replaces two bitmaps by the rows that one of them has.
    Or,
}

/// A search that is being executed.
struct Building {
    builder: RegisteredStream<BitmapBuilder>,
    bitmap: TidBitmap,
    begun: Time,
}

/// Yields the pages of a bitmap scan.
pub(super) struct BitmapSource {
    access: TableAccess,
    steps: VecDeque<Step>,
    /// What each bitmap may use, so that all of them together have `work_mem`.
    bytes: usize,
    stack: Vec<TidBitmap>,
    building: Option<Building>,
    heap: Option<RegisteredStream<BitmapHeapScan>>,
    expected: ExpectedRows,
    /// What the searches that have ended have counted.
    searches: Vec<IndexCounts>,
}

impl BitmapSource {
    pub(super) fn new(access: &TableAccess, node: &BitmapNode) -> Self {
        let mut steps = VecDeque::new();
        add_steps(node, &mut steps);
        Self {
            bytes: access.work_mem() / height(node),
            access: access.clone(),
            steps,
            stack: Vec::new(),
            building: None,
            heap: None,
            expected: ExpectedRows::default(),
            searches: Vec::new(),
        }
    }

    /// As for [`super::page_source::PageSource::poll_page`].
    pub(super) fn poll_page<R>(
        &mut self,
        context: &mut Context<'_>,
        backend: &mut Backend,
        take: impl FnOnce(Option<HeapPage<'_>>) -> Result<R, SqlError>,
    ) -> Poll<Result<R, SqlError>> {
        while self.heap.is_none() {
            if self.building.is_some() {
                ready!(self.poll_search(context, backend))?;
                continue;
            }
            match self.steps.pop_front() {
                Some(Step::Search(search)) => self.begin(backend, &search)?,
                Some(Step::And) => self.combine(TidBitmap::intersect),
                Some(Step::Or) => self.combine(TidBitmap::unite),
                None => {
                    let bitmap = self.stack.pop().unwrap_or_else(|| TidBitmap::new(0));
                    let TableAccess { files, transactions, streams, .. } = &self.access;
                    let options = self.access.index_options();
                    let heap =
                        BitmapHeapScan::new(backend, &files.rows, transactions, bitmap, options);
                    self.heap = Some(streams.register(heap));
                }
            }
        }
        let Some(heap) = &self.heap else { return Poll::Ready(take(None)) };
        let mut heap = heap.lock();
        heap.expect_rows(self.expected);
        let page = ready!(heap.poll_page(context, backend));
        Poll::Ready(page.map_err(|error| index_error(&error)).and_then(take))
    }

    /// As for [`super::page_source::PageSource::expect_rows`].
    pub(super) fn expect_rows(&mut self, expected: ExpectedRows) {
        self.expected = expected;
    }

    fn begin(&mut self, backend: &Backend, search: &IndexSearch) -> Result<(), SqlError> {
        let bitmap = TidBitmap::new(self.bytes);
        let Some(ranges) = &search.ranges else {
            self.stack.push(bitmap);
            self.searches.push(IndexCounts { loops: 1, ..IndexCounts::default() });
            return Ok(());
        };
        let sizes = self.access.indexed(search)?.sizes;
        let leaves = self.access.index_options().leaves;
        let builder = BitmapBuilder::new(backend, search.index(), sizes, ranges.clone(), leaves);
        let builder = self.access.streams.register(builder);
        self.building = Some(Building { builder, bitmap, begun: clock::now() });
        Ok(())
    }

    fn poll_search(
        &mut self,
        context: &mut Context<'_>,
        backend: &mut Backend,
    ) -> Poll<Result<(), SqlError>> {
        let Some(Building { builder, bitmap, .. }) = &mut self.building else {
            return Poll::Ready(Ok(()));
        };
        let built = ready!(builder.lock().poll_build(context, backend, bitmap));
        self.searches.extend(self.building.as_ref().map(Building::counts));
        if let Some(building) = self.building.take() {
            self.stack.push(building.bitmap);
        }
        Poll::Ready(built.map_err(|error| index_error(&error)))
    }

    fn combine(&mut self, combine: impl Fn(&mut TidBitmap, &TidBitmap)) {
        if let Some(other) = self.stack.pop()
            && let Some(one) = self.stack.last_mut()
        {
            combine(one, &other);
        }
    }

    /// What has been read so far.
    pub(super) fn counts(&self) -> ScanCounts {
        let mut counts = ScanCounts { indexes: self.searches.clone(), ..ScanCounts::default() };
        counts.indexes.extend(self.building.as_ref().map(Building::counts));
        if let Some(heap) = &self.heap {
            let heap = heap.lock().counts();
            counts.streams = heap.heap;
            counts.buffers = heap.heap_buffers;
            counts.exact = heap.exact_blocks;
            counts.lossy = heap.lossy_blocks;
        }
        counts
    }
}

impl Building {
    fn counts(&self) -> IndexCounts {
        let builder = self.builder.lock();
        let counts = builder.counts();
        IndexCounts {
            loops: 1,
            entries: builder.rows(),
            time: clock::now().since(self.begun),
            streams: counts.index,
            buffers: counts.index_buffers,
        }
    }
}

fn add_steps(node: &BitmapNode, steps: &mut VecDeque<Step>) {
    let (parts, is_and) = match node {
        BitmapNode::Index(search) => return steps.push_back(Step::Search(Arc::clone(search))),
        BitmapNode::And(parts) => (parts, true),
        BitmapNode::Or(parts) => (parts, false),
    };
    for (at, part) in parts.iter().enumerate() {
        add_steps(part, steps);
        if at > 0 {
            steps.push_back(if is_and { Step::And } else { Step::Or });
        }
    }
}

/// The most bitmaps that exist at a time.
fn height(node: &BitmapNode) -> usize {
    match node {
        BitmapNode::Index(_) => 1,
        BitmapNode::And(parts) | BitmapNode::Or(parts) => {
            // Beside each part but the first, there is what the parts before it have become.
            let of_part = |(at, part)| height(part) + usize::from(at > 0);
            parts.iter().enumerate().map(of_part).max().unwrap_or(1)
        }
    }
}
