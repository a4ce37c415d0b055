//! Keyed scan: the rows of many keys, key by key, for the inner side of a nested loop.
//!
//! The caller collects the keys of many outer rows, and gets the rows of the first key, then those of
//! the second, and so on; [`HeapRow::entry`](crate::heap::HeapRow::entry) is the number of the key.
//! The leaves of all keys are read together (`key_lookup`), and so are the pages of the table. How far
//! a nested loop that may stop early looks ahead is up to the caller: it begins with one outer row, and
//! passes more of them each time.

use std::task::{Context, Poll, ready};

use trunkline_aio::facade::{Arc, Mutex};
use trunkline_format::BlockNo;
use trunkline_format::btree::KeyRanges;

use super::error::IndexScanError;
use super::key_lookup::{KeyLookup, KeyRows};
use super::row_list::{BlockLists, Failure, RowList};
use super::scan::{IndexScanOptions, IndexedTable, ScanCounts, or_failure};
use crate::btree::{BtreeError, EntryScan, EntryScanOptions, LeafEntries};
use crate::heap::{HeapPage, HeapScan};
use crate::pool::{Backend, ReadError};
use crate::read_stream::{BlockSource, ReleaseAhead, SourceWait, Upcoming};

/// What the source does next.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Stage {
    /// Look up all keys.
    LookUp,
    /// Pass on the rows of this key.
    Key(usize),
    /// Scan for this key, which has more rows than its leaf.
    Scan(usize),
    Ended,
}

/// Yields blocks with the rows of the keys.
#[derive(Debug)]
struct KeyedSource {
    table: IndexedTable,
    options: EntryScanOptions,
    keys: Vec<Option<KeyRanges>>,
    found: Vec<KeyRows>,
    lookup: KeyLookup,
    /// Created for the first key that needs it.
    scan: Option<Box<EntryScan>>,
    leaf: LeafEntries,
    blocks: BlockLists,
    stage: Stage,
    failure: Failure,
}

impl KeyedSource {
    fn start(&mut self, keys: Vec<Option<KeyRanges>>) {
        self.lookup.start(&keys);
        self.found.clear();
        self.found.resize_with(keys.len(), KeyRows::default);
        self.blocks = BlockLists::default();
        self.stage = if keys.is_empty() { Stage::Ended } else { Stage::LookUp };
        self.keys = keys;
        *self.failure.lock() = None;
    }

    /// Goes on by one stage.
    fn advance(
        &mut self,
        backend: &mut Backend,
        wait: &mut SourceWait<'_, '_>,
    ) -> Poll<Result<(), BtreeError>> {
        match self.stage {
            Stage::Ended => {}
            Stage::LookUp => {
                let found = &mut self.found;
                ready!(self.lookup.poll(backend, wait, &self.keys, found))
                    .map_err(ReadError::from)?;
                self.stage = Stage::Key(0);
            }
            Stage::Key(key) => {
                let Some(found) = self.found.get_mut(key) else {
                    self.stage = Stage::Ended;
                    return Poll::Ready(Ok(()));
                };
                if let Some(error) = found.failed.take() {
                    return Poll::Ready(Err(error));
                }
                self.stage = Stage::Key(key + 1);
                let ranges = self.keys.get_mut(key).and_then(Option::take);
                if found.unfinished
                    && let Some(ranges) = ranges
                {
                    self.stage = Stage::Scan(key);
                    match &mut self.scan {
                        Some(scan) => scan.rescan(ranges),
                        None => {
                            let index = &self.table.index;
                            let scan = EntryScan::new(backend, index, ranges, self.options);
                            self.scan = Some(Box::new(scan));
                        }
                    }
                } else {
                    for (tid, place) in std::mem::take(&mut found.rows) {
                        self.blocks.push(tid, key as u32, place);
                    }
                }
            }
            Stage::Scan(key) => {
                let Some(scan) = &mut self.scan else {
                    self.stage = Stage::Key(key + 1);
                    return Poll::Ready(Ok(()));
                };
                match ready!(scan.poll_leaf(backend, wait, &mut self.leaf))? {
                    true => {
                        let leaf = self.leaf.block();
                        for entry in self.leaf.entries() {
                            self.blocks.push(entry.tid, key as u32, (leaf, entry.item));
                        }
                    }
                    false => self.stage = Stage::Key(key + 1),
                }
            }
        }
        Poll::Ready(Ok(()))
    }
}

impl BlockSource for KeyedSource {
    type Data = RowList;

    fn next_block(&mut self) -> Poll<Option<(BlockNo, RowList)>> {
        match self.blocks.pop() {
            None if self.stage != Stage::Ended => Poll::Pending,
            found => Poll::Ready(found),
        }
    }

    fn upcoming(&self, ahead: usize) -> Option<Upcoming> {
        self.blocks.upcoming(ahead)
    }

    fn fetch(
        &mut self,
        backend: &mut Backend,
        wait: &mut SourceWait<'_, '_>,
    ) -> Poll<Result<(), ReadError>> {
        // All rows that the look-up has found are passed on, because the stream can look ahead only
        // as far as it knows the blocks.
        while self.stage != Stage::Ended
            && (self.blocks.is_empty() || matches!(self.stage, Stage::Key(_)))
        {
            match ready!(self.advance(backend, wait)) {
                Ok(()) => {}
                Err(error) if error.is_cancelled() => {
                    return Poll::Ready(Err(ReadError::Cancelled));
                }
                Err(error) => {
                    self.stage = Stage::Ended;
                    *self.failure.lock() = Some(error);
                }
            }
        }
        Poll::Ready(Ok(()))
    }

    fn release_ahead(&mut self) {
        self.lookup.release_ahead();
        if let Some(scan) = &mut self.scan {
            scan.release_ahead();
        }
    }
}

/// A scan of the rows of many keys, see the module documentation.
#[derive(Debug)]
pub struct KeyedScan {
    heap: HeapScan<KeyedSource>,
    failure: Failure,
}

impl KeyedScan {
    /// A scan without keys. You must pass the same `backend` to every call.
    pub fn new(backend: &Backend, table: &IndexedTable, options: IndexScanOptions) -> Self {
        let failure = Failure::new(Mutex::new(None));
        let stream = options.leaves;
        let source = KeyedSource {
            options: EntryScanOptions { stream, sizes: table.sizes, keep_keys: false },
            keys: Vec::new(),
            found: Vec::new(),
            lookup: KeyLookup::new(backend, &table.index, table.sizes, stream),
            scan: None,
            leaf: LeafEntries::default(),
            blocks: BlockLists::default(),
            stage: Stage::Ended,
            failure: Arc::clone(&failure),
            table: table.clone(),
        };
        // The rows must come key by key.
        let options = IndexScanOptions { unordered: false, ..options }.scan_options();
        let heap = HeapScan::new(backend, &table.rows, source, &table.transactions, options);
        Self { heap: heap.for_index(table.index.relation()), failure }
    }

    /// Sets the next keys, each as the ranges of its conditions, or `None` if nothing can match. All
    /// of them must have the same direction. Rows of the keys before that have not been returned are
    /// given up, for example because the first row of a key was enough. Reads that are in flight for
    /// them end by themselves. How far the scan looks ahead is kept.
    pub fn start(&mut self, keys: Vec<Option<KeyRanges>>) {
        self.heap.restart();
        self.heap.source_mut().start(keys);
    }

    /// Returns the next page with its rows, or `None` after the rows of the last key. A page may have
    /// rows of several keys, in the order of the keys.
    ///
    /// # Errors
    /// See [`IndexScanError`]. An error of the index comes after the rows of all keys before the one
    /// that has met it, and ends the batch.
    /// # Panics
    /// If this is not the backend that the scan was created with.
    pub fn next_page(
        &mut self,
        backend: &mut Backend,
    ) -> Result<Option<HeapPage<'_>>, IndexScanError> {
        let Self { heap, failure } = self;
        or_failure(heap.next_page(backend), failure)
    }

    /// [`KeyedScan::next_page`] for a task, as [`HeapScan::poll_page`].
    ///
    /// # Errors
    /// As for [`KeyedScan::next_page`].
    /// # Panics
    /// As for [`KeyedScan::next_page`].
    pub fn poll_page(
        &mut self,
        context: &mut Context<'_>,
        backend: &mut Backend,
    ) -> Poll<Result<Option<HeapPage<'_>>, IndexScanError>> {
        let Self { heap, failure } = self;
        Poll::Ready(or_failure(ready!(heap.poll_page(context, backend)), failure))
    }

    /// What the scan has read so far.
    pub fn counts(&self) -> ScanCounts {
        let KeyedSource { lookup, scan, .. } = self.heap.source();
        let (mut index, mut index_buffers) = (lookup.stats(), lookup.buffer_usage());
        if let Some(scan) = scan {
            index.add(&scan.stats());
            index_buffers.add(&scan.buffer_usage());
        }
        let (heap, heap_buffers) = (self.heap.stats(), self.heap.buffer_usage());
        ScanCounts { index, index_buffers, heap, heap_buffers, ..ScanCounts::default() }
    }
}

impl ReleaseAhead for KeyedScan {
    fn release_ahead(&mut self) {
        ReleaseAhead::release_ahead(&mut self.heap);
    }
}
