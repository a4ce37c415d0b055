//! Index-only scan: the columns of the matching entries, without their rows where the visibility map
//! allows that.
//!
//! ```text
//!   EntryScan ─▶ visibility map ─▶ entries:  v v ? v ? ?      v is visible, ? must be looked up
//!                                                ▼   └─┴─▶ heap stream, which looks ahead
//!   consumer ◀─ in the order of the index ───────┘
//! ```
//! The consumer and the heap stream share one queue of entries. The stream takes the blocks of the
//! doubtful ones from it, as far ahead as its distance allows, and the consumer takes entries from
//! its front.
//!
//! **How far the queue grows.** To find the next doubtful entry, look-ahead may have to pass many
//! leaves whose rows are all visible. It never adds more leaves to the queue than the consumer has
//! finished, so a scan that stops early has read at most twice the leaves that it needed, and one that
//! stops on its first leaf none in vain. The queue is also limited to about 2.5 MB: the tuples of a
//! leaf are copied together, and its entries share the copy, however long their posting lists are.

use std::collections::VecDeque;
use std::task::{Context, Poll, ready};

use trunkline_aio::PolledWait;
use trunkline_aio::facade::{Arc, Mutex};
use trunkline_format::btree::{Entry, Fault, KeyRanges};
use trunkline_format::{BlockNo, Tid};

use super::error::IndexScanError;
use super::map_bits::MapBits;
use super::row_list::RowList;
use super::scan::{IndexScanOptions, IndexedTable, ScanCounts};
use crate::btree::{BtreeError, EntryScan, EntryScanOptions, LeafEntries};
use crate::heap::{ChainRoot, HeapError, HeapPage, HeapScan};
use crate::pool::{Backend, ReadError};
use crate::read_stream::{BlockSource, ReleaseAhead, SourceWait};
use crate::storage::Relation;
use crate::waiting::{Turns, Waiting, slept};

/// The heap stream doesn't look further ahead than this many entries, of 48 bytes each, and this many
/// bytes of tuples.
const ENTRIES_AHEAD: usize = 1 << 15;
const BYTES_AHEAD: usize = 1 << 20;

/// The most entries in a batch for the consumer.
const BATCH_MAX: usize = 1024;

/// A visible entry.
#[derive(Debug, Clone)]
pub struct IndexOnlyEntry {
    /// The row that the entry points to: the root of a HOT chain.
    pub tid: Tid,
    /// The leaf.
    pub leaf: BlockNo,
    /// The line pointer on the leaf.
    pub item: u16,
    /// The tuples of the leaf's matching entries, and where the entry's own is among them.
    tuples: Arc<[u8]>,
    start: u32,
    length: u16,
}

impl IndexOnlyEntry {
    /// The entry's columns.
    ///
    /// # Errors
    /// The entry is damaged.
    pub fn tuple(&self) -> Result<Entry<'_>, Fault> {
        let start = self.start as usize;
        let tuple = self.tuples.get(start..start + usize::from(self.length));
        Entry::of_leaf(self.item, tuple.unwrap_or_default())
    }
}

/// What is known of an entry in the queue.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum State {
    Visible,
    /// It must be looked up in the table.
    Doubtful,
    /// The stream has its block.
    Requested,
}

/// The queue of entries, shared by the consumer and the source of the heap stream.
#[derive(Debug)]
struct Feed {
    scan: EntryScan,
    leaf: LeafEntries,
    /// The leaf's tuples.
    tuples: Arc<[u8]>,
    /// How many entries of the leaf are in the queue.
    taken: usize,
    map: MapBits,
    entries: VecDeque<(IndexOnlyEntry, State)>,
    /// The leaves that have entries in the queue.
    queued: VecDeque<QueuedLeaf>,
    /// Bytes of their tuples.
    queued_bytes: usize,
    /// How many leaves the consumer has finished.
    finished: usize,
    /// How many entries at the front of the queue the source has been through.
    passed: usize,
    /// The number of entries in each block that the stream has, in order.
    requested: VecDeque<usize>,
    ended: bool,
    failure: Option<BtreeError>,
    fetches: u64,
}

/// A leaf that has entries in the queue.
#[derive(Debug, Clone, Copy)]
struct QueuedLeaf {
    /// How many.
    entries: usize,
    /// Bytes of the copy of its tuples.
    bytes: usize,
}

impl Feed {
    /// Whether no entries of the last leaf are missing in the queue.
    fn is_leaf_queued(&self) -> bool {
        self.taken == self.leaf.entries().len()
    }

    /// Whether look-ahead may add another leaf to the queue.
    fn may_look_ahead(&self) -> bool {
        let room = self.entries.len() < ENTRIES_AHEAD && self.queued_bytes < BYTES_AHEAD;
        room && self.queued.len() <= self.finished
    }

    /// Adds entries to the queue: those of the last leaf, or of the next one.
    fn poll_more(
        &mut self,
        backend: &mut Backend,
        wait: &mut SourceWait<'_, '_>,
    ) -> Poll<Result<(), ReadError>> {
        if self.is_leaf_queued() && !self.ended {
            self.taken = 0;
            match ready!(self.scan.poll_leaf(backend, wait, &mut self.leaf)) {
                Ok(true) if self.leaf.entries().is_empty() => self.finished += 1,
                Ok(true) => {
                    self.tuples = Arc::from(self.leaf.tuples());
                    self.queued_bytes += self.tuples.len();
                    let entries = self.leaf.entries().len();
                    self.queued.push_back(QueuedLeaf { entries, bytes: self.tuples.len() });
                }
                Ok(false) => self.ended = true,
                Err(error) if error.is_cancelled() => {
                    return Poll::Ready(Err(ReadError::Cancelled));
                }
                Err(error) => {
                    self.ended = true;
                    self.failure = Some(error);
                }
            }
        }
        while let Some(entry) = self.leaf.entries().get(self.taken) {
            let visible = ready!(self.map.poll_all_visible(backend, wait, entry.tid.block))?;
            let (tid, leaf, item) = (entry.tid, self.leaf.block(), entry.item);
            let range = self.leaf.tuple_range(entry);
            let (start, length) = (range.start as u32, range.len() as u16);
            let tuples = Arc::clone(&self.tuples);
            let state = if visible { State::Visible } else { State::Doubtful };
            let entry = IndexOnlyEntry { tid, leaf, item, tuples, start, length };
            self.entries.push_back((entry, state));
            self.taken += 1;
        }
        Poll::Ready(Ok(()))
    }

    /// The block of the next doubtful entries.
    fn next_block(&mut self) -> Option<(BlockNo, RowList)> {
        let rest = self.entries.iter().skip(self.passed);
        self.passed += rest.take_while(|(_, state)| *state != State::Doubtful).count();
        let block = self.entries.get(self.passed)?.0.tid.block;
        let mut list: Option<RowList> = None;
        let mut count = 0;
        for (entry, state) in self.entries.iter_mut().skip(self.passed) {
            if *state != State::Doubtful || entry.tid.block != block {
                break;
            }
            *state = State::Requested;
            // The number of the entry within its block.
            let place = (entry.leaf, entry.item);
            let root = ChainRoot { item: entry.tid.item, entry: count, place };
            match &mut list {
                Some(list) => list.push(root),
                None => list = Some(RowList::One(root)),
            }
            count += 1;
        }
        self.passed += count as usize;
        self.requested.push_back(count as usize);
        list.map(|list| (block, list))
    }

    fn pop(&mut self) -> Option<IndexOnlyEntry> {
        let (entry, _) = self.entries.pop_front()?;
        self.passed = self.passed.saturating_sub(1);
        if let Some(leaf) = self.queued.front_mut() {
            leaf.entries -= 1;
            if leaf.entries == 0 {
                self.queued_bytes -= leaf.bytes;
                self.queued.pop_front();
                self.finished += 1;
            }
        }
        Some(entry)
    }

    /// Takes the entries of the block that the stream has returned. The consumer gets those whose
    /// number is in `visible`.
    fn take_requested(&mut self, visible: &[u32], batch: &mut Vec<IndexOnlyEntry>) {
        let count = self.requested.pop_front().unwrap_or_default();
        self.fetches += count as u64;
        for number in 0..count as u32 {
            let entry = self.pop();
            if visible.contains(&number) {
                batch.extend(entry);
            }
        }
    }
}

/// The source of the heap stream.
#[derive(Debug)]
struct DoubtfulBlocks(Arc<Mutex<Feed>>);

impl BlockSource for DoubtfulBlocks {
    type Data = RowList;

    fn next_block(&mut self) -> Poll<Option<(BlockNo, RowList)>> {
        let mut feed = self.0.lock();
        match feed.next_block() {
            None if !feed.ended || !feed.is_leaf_queued() => Poll::Pending,
            found => Poll::Ready(found),
        }
    }

    fn fetch(
        &mut self,
        backend: &mut Backend,
        wait: &mut SourceWait<'_, '_>,
    ) -> Poll<Result<(), ReadError>> {
        let mut feed = self.0.lock();
        // The consumer may have added entries in the meantime.
        let passed = feed.passed;
        if feed.entries.iter().skip(passed).any(|(_, state)| *state == State::Doubtful) {
            return Poll::Ready(Ok(()));
        }
        if wait.waiting().is_none() && feed.is_leaf_queued() && !feed.may_look_ahead() {
            return Poll::Pending;
        }
        feed.poll_more(backend, wait)
    }

    fn release_ahead(&mut self) {
        let mut feed = self.0.lock();
        feed.scan.release_ahead();
        feed.map.release_ahead();
    }
}

/// A scan that needs only columns of the index, see the module documentation.
#[derive(Debug)]
pub struct IndexOnlyScan {
    heap: HeapScan<DoubtfulBlocks>,
    feed: Arc<Mutex<Feed>>,
    batch: Vec<IndexOnlyEntry>,
    /// The wait of a task for a page of the index or of the map.
    wait: Option<PolledWait>,
    turns: Turns,
}

impl IndexOnlyScan {
    /// A scan of the entries in `ranges`. `map` is the table's visibility map with its length in
    /// blocks, which is 0 if the table has none. The order of the index is always kept.
    pub fn new(
        backend: &Backend,
        table: &IndexedTable,
        (map, map_blocks): (&Relation, BlockNo),
        ranges: KeyRanges,
        options: IndexScanOptions,
    ) -> Self {
        let IndexedTable { index, rows, sizes, transactions } = table;
        let entries = EntryScanOptions { stream: options.leaves, sizes: *sizes, keep_keys: true };
        let feed = Arc::new(Mutex::new(Feed {
            scan: EntryScan::new(backend, index, ranges, entries),
            leaf: LeafEntries::default(),
            tuples: Arc::from([]),
            taken: 0,
            map: MapBits::new(backend, map, map_blocks),
            entries: VecDeque::new(),
            queued: VecDeque::new(),
            queued_bytes: 0,
            finished: 0,
            passed: 0,
            requested: VecDeque::new(),
            ended: false,
            failure: None,
            fetches: 0,
        }));
        let options = IndexScanOptions { unordered: false, ..options }.scan_options();
        let source = DoubtfulBlocks(Arc::clone(&feed));
        let heap = HeapScan::new(backend, rows, source, transactions, options);
        let heap = heap.for_index(index.relation());
        Self { heap, feed, batch: Vec::new(), wait: None, turns: Turns::default() }
    }

    /// Returns the next visible entries in the order of the index, or `None` at the end.
    ///
    /// # Errors
    /// See [`IndexScanError`]. After an error of the table, the scan can continue behind the entries
    /// that had to be looked up on the same page.
    /// # Panics
    /// If this is not the backend that the scan was created with.
    pub fn next_entries(
        &mut self,
        backend: &mut Backend,
    ) -> Result<Option<&[IndexOnlyEntry]>, IndexScanError> {
        if let Some(wait) = &mut self.wait {
            wait.leave_queue();
        }
        let more = slept(self.advance(&mut Waiting::Sleep, backend))?;
        Ok(more.then_some(&self.batch))
    }

    /// [`IndexOnlyScan::next_entries`] for a task.
    ///
    /// # Errors
    /// As for [`IndexOnlyScan::next_entries`].
    /// # Panics
    /// As for [`IndexOnlyScan::next_entries`].
    pub fn poll_entries(
        &mut self,
        context: &mut Context<'_>,
        backend: &mut Backend,
    ) -> Poll<Result<Option<&[IndexOnlyEntry]>, IndexScanError>> {
        let mut wait = self.wait.take().unwrap_or_else(|| backend.polled_wait());
        let advanced = self.advance(&mut Waiting::Wake(context, &mut wait), backend);
        self.wait = Some(wait);
        let more = ready!(advanced)?;
        Poll::Ready(Ok(more.then_some(&self.batch)))
    }

    /// The first error of a page of the visibility map that hasn't been taken, for a warning. The rows
    /// of the blocks that such a page covers are looked up in the table.
    pub fn take_map_error(&mut self) -> Option<ReadError> {
        self.feed.lock().map.take_error()
    }

    /// Fills the batch. False at the end.
    fn advance(
        &mut self,
        waiting: &mut Waiting<'_, '_>,
        backend: &mut Backend,
    ) -> Poll<Result<bool, IndexScanError>> {
        self.batch.clear();
        loop {
            let front = {
                let mut feed = self.feed.lock();
                while self.batch.len() < BATCH_MAX
                    && feed.entries.front().is_some_and(|(_, state)| *state == State::Visible)
                {
                    self.batch.extend(feed.pop());
                }
                if !self.batch.is_empty() {
                    // An earlier poll may wait for the map, for entries further behind.
                    feed.map.stop_waiting();
                    waiting.leave_queue();
                    return Poll::Ready(Ok(true));
                }
                let front = feed.entries.front().map(|(_, state)| *state);
                if front.is_none() {
                    if feed.ended && feed.is_leaf_queued() {
                        return Poll::Ready(match feed.failure.take() {
                            Some(error) => Err(error.into()),
                            None => Ok(false),
                        });
                    }
                    let mut wait = SourceWait::of_consumer(waiting.reborrow());
                    let more = ready!(feed.poll_more(backend, &mut wait));
                    more.map_err(BtreeError::from)?;
                    continue;
                }
                front
            };
            debug_assert_ne!(front, Some(State::Visible));
            // There may be many pages without a visible row.
            ready!(self.turns.next_page(backend.session(), Some(waiting)))
                .map_err(HeapError::from)?;
            let page = match waiting {
                Waiting::Sleep => self.heap.next_page(backend),
                Waiting::Wake(context, _) => ready!(self.heap.poll_page(context, backend)),
            };
            let visible = match page {
                Ok(Some(page)) => visible_rows(&page),
                Ok(None) => unreachable!("an entry is waiting for its page"),
                Err(error) if error.is_cancelled() => return Poll::Ready(Err(error.into())),
                Err(error) => Err(error.into()),
            };
            // The stream returns the blocks in the order in which it got them, so the entries at the
            // front of the queue are those of this page, whether it could be read or not.
            let none = &Vec::new();
            let visible_rows = visible.as_ref().unwrap_or(none);
            self.feed.lock().take_requested(visible_rows, &mut self.batch);
            visible?;
            if !self.batch.is_empty() {
                return Poll::Ready(Ok(true));
            }
        }
    }

    /// What the scan has read so far.
    pub fn counts(&self) -> ScanCounts {
        let (heap, heap_buffers) = (self.heap.stats(), self.heap.buffer_usage());
        let feed = self.feed.lock();
        ScanCounts {
            index: feed.scan.stats(),
            index_buffers: feed.scan.buffer_usage(),
            heap,
            heap_buffers,
            heap_fetches: feed.fetches,
            ..ScanCounts::default()
        }
    }
}

/// The numbers of the entries whose rows are visible.
fn visible_rows(page: &HeapPage<'_>) -> Result<Vec<u32>, IndexScanError> {
    page.rows().map(|row| Ok(row?.entry)).collect()
}

impl ReleaseAhead for IndexOnlyScan {
    fn release_ahead(&mut self) {
        ReleaseAhead::release_ahead(&mut self.heap);
        if let Some(wait) = &mut self.wait {
            wait.leave_queue();
            wait.wake_tasks();
        }
    }
}
