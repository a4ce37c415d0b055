//! Heap scan: returns a table's rows, page by page.
//!
//! Pages are read ahead by a read stream. When the stream returns a page, we lock it and determine
//! the visibility of its rows. If that needs a page of the commit log or of multixacts which we
//! don't have, we unlock the heap page, read the other one, and start over with this heap page.
//!
//! A thread calls [`HeapScan::next_page`], and a task [`HeapScan::poll_page`]. Both make the same
//! attempt, and only wait in different ways. A poll never blocks: files are opened by workers, and
//! content locks are polled too.

use std::task::{Context, Poll, ready};

use trunkline_aio::PolledWait;
use trunkline_aio::facade::Arc;
use trunkline_format::heap_tuple::{TUPLE_HEADER_SIZE, is_all_visible};
use trunkline_format::page::{load_into_cache, load_item_starts};
use trunkline_format::{BlockNo, PageBytes};

use super::error::HeapError;
use super::page::{HeapPage, PageRows, RowFilter};
use super::wanted::{Wanted, WantedRows};
use crate::pool::{Backend, LockWait, Page, PinRef, Tally};
use crate::read_stream::{
    BlockRange, BlockSource, ReadStream, ReleaseAhead, StreamOptions, StreamPage, StreamStats,
};
use crate::seq_scan::scan_strategy;
use crate::settings::Settings;
use crate::storage::{Relation, StorageError};
use crate::transactions::{StatusPages, Transactions};
use crate::waiting::{Waiting, slept};

/// What the caller of a scan reads of a page. That part is loaded into the CPU's cache at once. The
/// caller may read more than it said, which only takes longer.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum PageUse {
    /// Most of it.
    #[default]
    Rows,
    /// This many bytes of each row, tuple header included.
    RowStarts(u16),
    /// How many rows there are ([`HeapPage::count_rows`]).
    Count,
}

/// How a scan reads, and which tuples it returns.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct ScanOptions {
    /// How to read. [`HeapScan::of_table`] chooses the strategy.
    pub stream: StreamOptions,
    /// Which row versions to return.
    pub rows: RowFilter,
    /// What is read of them.
    pub page_use: PageUse,
}

impl ScanOptions {
    /// Visible rows, read in order, with the configured read-ahead.
    pub fn of(settings: &Settings) -> Self {
        let stream = StreamOptions { sequential: true, ..StreamOptions::of(settings) };
        Self { stream, rows: RowFilter::Visible, page_use: PageUse::Rows }
    }
}

impl Default for ScanOptions {
    /// Visible rows, read in order.
    fn default() -> Self {
        let stream = StreamOptions { sequential: true, ..StreamOptions::default() };
        Self { stream, rows: RowFilter::Visible, page_use: PageUse::Rows }
    }
}

/// A scan of a table, see [the module](crate::heap).
#[derive(Debug)]
pub struct HeapScan<S: BlockSource> {
    stream: ReadStream<S>,
    judge: Judge,
    /// How many rows the pages that were returned may have had.
    rows_taken: u64,
    /// The wait of a task for a lock or a status page. It is created by the first poll.
    wait: Option<PolledWait>,
}

/// What determines the visibility of a page's rows.
#[derive(Debug)]
struct Judge {
    relation: Relation,
    /// The index whose entries say which rows are wanted, for errors.
    index: Option<Relation>,
    transactions: Arc<Transactions>,
    statuses: StatusPages,
    rows: RowFilter,
    page_use: PageUse,
    page_rows: PageRows,
    /// The stream's current page has not been judged, because a poll had to wait or the session was
    /// cancelled.
    unfinished: bool,
    /// A poll waits for the lock of that page.
    lock_wait: Option<LockWait>,
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
        Ok(Self::of_blocks(backend, relation, relation.blocks()?, transactions, options))
    }

    /// [`HeapScan::of_table`] for a caller that has already determined how many blocks the table
    /// has. A task does that with [`Relation::count_blocks`].
    pub fn of_blocks(
        backend: &Backend,
        relation: &Relation,
        blocks: BlockNo,
        transactions: &Arc<Transactions>,
        options: ScanOptions,
    ) -> Self {
        let strategy = scan_strategy(blocks, backend.pool_buffers());
        let stream = StreamOptions { strategy, ..options.stream };
        let options = ScanOptions { stream, ..options };
        Self::new(backend, relation, BlockRange::new(0..blocks), transactions, options)
    }
}

impl<S: BlockSource> HeapScan<S>
where
    S::Data: WantedRows,
{
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
            judge: Judge {
                relation: relation.clone(),
                index: None,
                transactions: Arc::clone(transactions),
                statuses: StatusPages::default(),
                rows: options.rows,
                page_use: options.page_use,
                page_rows: PageRows::default(),
                unfinished: false,
                lock_wait: None,
            },
            rows_taken: 0,
            wait: None,
        }
    }

    /// Names the index whose entries have led to the rows, for errors about entries.
    pub(crate) fn for_index(mut self, index: &Relation) -> Self {
        self.judge.index = Some(index.clone());
        self
    }

    /// Gives up all pages that have not been returned, for a source that starts again. Distances and
    /// counts are kept.
    pub(crate) fn restart(&mut self) {
        if let Some(wait) = &mut self.wait {
            wait.leave_queue();
        }
        self.judge.lock_wait = None;
        self.judge.unfinished = false;
        self.judge.statuses.begin();
        self.stream.restart();
    }

    /// How many rows the pages that were returned may have had ([`WantedRows::rows_max`]).
    pub(crate) fn rows_taken(&self) -> u64 {
        self.rows_taken
    }

    /// The source of the scan's blocks.
    pub(crate) fn source(&self) -> &S {
        self.stream.source()
    }

    /// The source of the scan's blocks, for a consumer that shares work with it.
    pub(crate) fn source_mut(&mut self) -> &mut S {
        self.stream.source_mut()
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
        let Self { stream, judge, rows_taken, wait } = self;
        if let Some(wait) = wait {
            wait.leave_queue();
        }
        slept(next((stream, judge, rows_taken), &mut Waiting::Sleep, backend))
    }

    /// Returns the next page if it's available, and otherwise `Pending`. The task is woken when the
    /// page may have become available. Nothing blocks the thread if the session must not block
    /// ([`Session::set_may_block`](trunkline_aio::Session::set_may_block)), except I/O under
    /// `io_method = sync`. A page must not be kept until the next poll, because it is locked.
    ///
    /// # Errors
    /// As for [`HeapScan::next_page`].
    /// # Panics
    /// As for [`HeapScan::next_page`].
    pub fn poll_page(
        &mut self,
        context: &mut Context<'_>,
        backend: &mut Backend,
    ) -> Poll<Result<Option<HeapPage<'_>>, HeapError>> {
        let Self { stream, judge, rows_taken, wait } = self;
        let wait = wait.get_or_insert_with(|| backend.polled_wait());
        next((stream, judge, rows_taken), &mut Waiting::Wake(context, wait), backend)
    }

    /// Releases all pins of the scan, including those of pages that were read ahead, and its places
    /// in queues. A consumer that is about to wait for something else should call this, because
    /// other sessions may need the buffers. No page is skipped.
    pub fn release_ahead(&mut self) {
        if let Some(wait) = &mut self.wait {
            wait.leave_queue();
        }
        self.judge.lock_wait = None;
        match std::mem::take(&mut self.judge.unfinished) {
            // The consumer hasn't received the current page yet.
            true => {
                // Don't keep the frame and the file of a commit log page that is being read.
                self.judge.statuses.begin();
                self.stream.release_all();
            }
            false => self.stream.release_ahead(),
        }
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
        &self.judge.relation
    }
}

impl<S: BlockSource + Send> ReleaseAhead for HeapScan<S>
where
    S::Data: Send + WantedRows,
{
    fn release_ahead(&mut self) {
        HeapScan::release_ahead(self);
        // As for a stream: no signal would wake the scan's task.
        if let Some(wait) = &self.wait {
            wait.wake_tasks();
        }
    }
}

/// Gets the next page from the stream and judges it, or goes on with the one that was not finished.
fn next<'s, S: BlockSource>(
    (stream, judge, rows_taken): (&'s mut ReadStream<S>, &'s mut Judge, &mut u64),
    waiting: &mut Waiting<'_, '_>,
    backend: &mut Backend,
) -> Poll<Result<Option<HeapPage<'s>>, HeapError>>
where
    S::Data: WantedRows,
{
    let found = if judge.unfinished {
        stream.current()
    } else {
        judge.statuses.begin();
        match waiting {
            Waiting::Sleep => stream.next(backend)?,
            Waiting::Wake(context, _) => ready!(stream.poll_next(context, backend))?,
        }
    };
    let Some(StreamPage { pin, block, data }) = found else { return Poll::Ready(Ok(None)) };
    judge.unfinished = true;
    let judged = ready!(judge.judge(waiting, backend, pin, (block, data.wanted())));
    // A page that was not judged because of a cancel is judged by the next call.
    judge.unfinished = judged.as_ref().is_err_and(HeapError::is_cancelled);
    if !judge.unfinished {
        *rows_taken += data.rows_max();
    }
    Poll::Ready(Ok(Some(HeapPage::new(judged?, block, &judge.relation, &judge.page_rows))))
}

impl Judge {
    /// Loads what we and the caller will read of a page.
    fn load(&self, page: &PageBytes, wanted: Wanted<'_>) {
        if matches!(wanted, Wanted::Chains { .. }) {
            return;
        }
        match self.page_use {
            PageUse::Rows => load_into_cache(page),
            PageUse::RowStarts(bytes) => load_item_starts(page, bytes),
            // The line pointers are next to each other, so the CPU loads them by itself.
            PageUse::Count if is_all_visible(page) => {}
            PageUse::Count => load_item_starts(page, TUPLE_HEADER_SIZE),
        }
    }

    /// Locks the page and determines the visibility of its rows.
    fn judge<'p>(
        &mut self,
        waiting: &mut Waiting<'_, '_>,
        backend: &mut Backend,
        pin: PinRef<'p>,
        (block, wanted): (BlockNo, Wanted<'_>),
    ) -> Poll<Result<Page<'p>, HeapError>> {
        loop {
            // If an earlier poll has left a page unread, we read it before we lock anything.
            ready!(self.transactions.load(&mut self.statuses, backend.session(), waiting))?;
            let page = ready!(backend.lock_shared(waiting, pin, &mut self.lock_wait))?;
            self.load(&page, wanted);
            let mut lookup = self.transactions.lookup(&mut self.statuses);
            let rows = (self.rows, wanted, self.index.as_ref());
            self.page_rows.prepare(&page, &self.relation, block, rows, &mut lookup)?;
            if self.statuses.is_complete() {
                return Poll::Ready(Ok(page));
            }
        }
    }
}
