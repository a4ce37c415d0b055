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
use crate::heap::{ChainRoot, HeapScan};
use crate::pool::{Backend, ReadError};
use crate::read_stream::{BlockSource, ReleaseAhead, SourceWait};
use crate::storage::Relation;
use crate::waiting::{Waiting, slept};

/// The heap stream doesn't look further ahead than this many entries.
const ENTRIES_AHEAD: usize = 1 << 15;

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
    tuple: Box<[u8]>,
}

impl IndexOnlyEntry {
    /// The entry's columns.
    ///
    /// # Errors
    /// The entry is damaged.
    pub fn tuple(&self) -> Result<Entry<'_>, Fault> {
        Entry::of_leaf(self.item, &self.tuple)
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
    /// How many entries of the leaf are in the queue.
    taken: usize,
    map: MapBits,
    entries: VecDeque<(IndexOnlyEntry, State)>,
    /// How many entries at the front of the queue the source has been through.
    passed: usize,
    /// The number of entries in each block that the stream has, in order.
    requested: VecDeque<usize>,
    ended: bool,
    failure: Option<BtreeError>,
    fetches: u64,
}

impl Feed {
    /// Adds entries to the queue: those of the last leaf, or of the next one.
    fn poll_more(
        &mut self,
        backend: &mut Backend,
        wait: &mut SourceWait<'_, '_>,
    ) -> Poll<Result<(), ReadError>> {
        if self.taken == self.leaf.entries().len() && !self.ended {
            self.taken = 0;
            match ready!(self.scan.poll_leaf(backend, wait, &mut self.leaf)) {
                Ok(true) => {}
                Ok(false) => self.ended = true,
                Err(BtreeError::Read(ReadError::Cancelled)) => {
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
            let tuple = Box::from(self.leaf.bytes(entry));
            let state = if visible { State::Visible } else { State::Doubtful };
            self.entries.push_back((IndexOnlyEntry { tid, leaf, item, tuple }, state));
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
        self.fetches += u64::from(count);
        list.map(|list| (block, list))
    }

    fn pop(&mut self) -> Option<IndexOnlyEntry> {
        let (entry, _) = self.entries.pop_front()?;
        self.passed = self.passed.saturating_sub(1);
        Some(entry)
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
            None if !feed.ended || feed.taken < feed.leaf.entries().len() => Poll::Pending,
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
        if feed.entries.len() >= ENTRIES_AHEAD && wait.waiting().is_none() {
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
            taken: 0,
            map: MapBits::new(backend, map, map_blocks),
            entries: VecDeque::new(),
            passed: 0,
            requested: VecDeque::new(),
            ended: false,
            failure: None,
            fetches: 0,
        }));
        let options = IndexScanOptions { unordered: false, ..options }.scan_options();
        let source = DoubtfulBlocks(Arc::clone(&feed));
        let heap = HeapScan::new(backend, rows, source, transactions, options);
        Self { heap: heap.for_index(index.relation()), feed, batch: Vec::new(), wait: None }
    }

    /// Returns the next visible entries in the order of the index, or `None` at the end.
    ///
    /// # Errors
    /// See [`IndexScanError`].
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
                    return Poll::Ready(Ok(true));
                }
                let front = feed.entries.front().map(|(_, state)| *state);
                if front.is_none() {
                    if feed.ended && feed.taken >= feed.leaf.entries().len() {
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
            let page = match waiting {
                Waiting::Sleep => self.heap.next_page(backend)?,
                Waiting::Wake(context, _) => ready!(self.heap.poll_page(context, backend))?,
            };
            // The stream returns the blocks in the order in which it got them, and the first of them
            // has the entries at the front of the queue.
            let Some(page) = page else { return Poll::Ready(Ok(false)) };
            let mut visible = Vec::new();
            for row in page.rows() {
                visible.push(row?.entry);
            }
            drop(page);
            let mut feed = self.feed.lock();
            let count = feed.requested.pop_front().unwrap_or_default();
            for number in 0..count as u32 {
                let entry = feed.pop();
                if visible.contains(&number) {
                    self.batch.extend(entry);
                }
            }
            drop(feed);
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

impl ReleaseAhead for IndexOnlyScan {
    fn release_ahead(&mut self) {
        ReleaseAhead::release_ahead(&mut self.heap);
        if let Some(wait) = &mut self.wait {
            wait.leave_queue();
            wait.wake_tasks();
        }
    }
}
