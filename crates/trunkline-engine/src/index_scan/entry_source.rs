//! The block source of an index scan: the blocks that the entries of an index lead to.
//!
//! In the order of the index, rows in a row on the same block are one block. If the caller doesn't
//! need that order, the rows of several leaves are sorted first, so that a block is read once and
//! neighbouring blocks are read together. The first such batch is a single leaf, and each batch is
//! twice as large as the one before it, so a scan that stops early hasn't read leaves in vain.

use std::task::{Poll, ready};

use trunkline_format::{BlockNo, Tid};

use super::row_list::{BlockLists, Failure, RowList};
use crate::btree::{BtreeError, EntryScan, LeafEntries};
use crate::pool::{Backend, ReadError};
use crate::read_stream::{BlockSource, SourceWait};

/// The most rows in a batch that is sorted. They need 24 bytes each.
pub(super) const BATCH_MAX: usize = 1 << 16;

/// Yields blocks with the rows that entries lead to.
#[derive(Debug)]
pub(super) struct EntrySource {
    scan: EntryScan,
    leaf: LeafEntries,
    blocks: BlockLists,
    /// Rows that are still to be sorted, with the places of their entries.
    batch: Vec<(Tid, (BlockNo, u16))>,
    /// The number of rows to sort next; 0 if the order of the index is kept.
    sorted: usize,
    ended: bool,
    failure: Failure,
}

impl EntrySource {
    pub(super) fn new(scan: EntryScan, unordered: bool, failure: Failure) -> Self {
        Self {
            scan,
            leaf: LeafEntries::default(),
            blocks: BlockLists::default(),
            batch: Vec::new(),
            sorted: usize::from(unordered),
            ended: false,
            failure,
        }
    }

    pub(super) fn scan(&self) -> &EntryScan {
        &self.scan
    }

    /// Adds the rows of the last leaf.
    fn add_leaf(&mut self) {
        let leaf = self.leaf.block();
        for entry in self.leaf.entries() {
            let place = (leaf, entry.item);
            match self.sorted {
                0 => self.blocks.push(entry.tid, 0, place),
                _ => self.batch.push((entry.tid, place)),
            }
        }
    }

    /// Sorts the batch if it is complete.
    fn sort_batch(&mut self) {
        if self.batch.is_empty() || (self.batch.len() < self.sorted && !self.ended) {
            return;
        }
        self.batch.sort_unstable_by_key(|(tid, _)| *tid);
        for (tid, place) in self.batch.drain(..) {
            self.blocks.push(tid, 0, place);
        }
        self.sorted = (2 * self.sorted).clamp(1024, BATCH_MAX);
    }
}

impl BlockSource for EntrySource {
    type Data = RowList;

    fn next_block(&mut self) -> Poll<Option<(BlockNo, RowList)>> {
        match self.blocks.pop() {
            None if !self.ended => Poll::Pending,
            found => Poll::Ready(found),
        }
    }

    fn fetch(
        &mut self,
        backend: &mut Backend,
        wait: &mut SourceWait<'_, '_>,
    ) -> Poll<Result<(), ReadError>> {
        if self.ended || !self.blocks.is_empty() {
            return Poll::Ready(Ok(()));
        }
        let mut result = Ok(());
        match ready!(self.scan.poll_leaf(backend, wait, &mut self.leaf)) {
            Ok(true) => self.add_leaf(),
            Ok(false) => self.ended = true,
            Err(BtreeError::Read(ReadError::Cancelled)) => {
                return Poll::Ready(Err(ReadError::Cancelled));
            }
            Err(error) => {
                self.ended = true;
                match error {
                    BtreeError::Read(error) if self.batch.is_empty() => result = Err(error),
                    error => *self.failure.lock() = Some(error),
                }
            }
        }
        self.sort_batch();
        Poll::Ready(result)
    }

    fn release_ahead(&mut self) {
        self.scan.release_ahead();
    }
}
