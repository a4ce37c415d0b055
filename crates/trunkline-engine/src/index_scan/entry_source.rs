//! The block source of an index scan: the blocks that the entries of an index lead to.
//!
//! In the order of the index, rows in a row on the same block are one block. If the caller doesn't
//! need that order, the rows of several leaves are sorted first, so that a block is read once and
//! neighbouring blocks are read together.
//!
//! **Scans that stop early** must not have read leaves in vain. A batch of leaves to sort is therefore
//! at most half as large as all batches before it, and only 1/64 as large if the consumer hasn't had
//! to wait for pages of the table. The same limit holds for the leaves that look-ahead reads in search of
//! the next match. But the rows that the consumer takes before it may stop
//! ([`EntrySource::expect_rows`]) are sorted together, as far as they are on a few leaves: then pages of
//! the table that have several of them are locked only once.

use std::task::{Poll, ready};

use trunkline_format::{BlockNo, Tid};

use super::expected_rows::ExpectedRows;
use super::row_list::{BlockLists, Failure, RowList};
use crate::btree::{EntryScan, LeafEntries};
use crate::heap::WantedRows;
use crate::pool::{Backend, ReadError};
use crate::read_stream::{BlockSource, Expected, SourceWait, Upcoming};

/// The most rows in a batch that is sorted, apart from those of its last leaf. They need 24 bytes each.
const ROWS_MAX: usize = 1 << 16;

/// The most leaves in a batch.
const LEAVES_MAX: u64 = 1 << 10;

/// The most leaves that a batch has only because its rows are certain to be taken. With 366 entries on a
/// leaf, these are the 8,192 rows of the largest batch of the executor.
const CERTAIN_LEAVES_MAX: u64 = 24;

/// Yields blocks with the rows that entries lead to.
#[derive(Debug)]
pub(super) struct EntrySource {
    scan: EntryScan,
    leaf: LeafEntries,
    blocks: BlockLists,
    /// Whether to sort the rows by block.
    unordered: bool,
    /// Rows that are still to be sorted, with the places of their entries.
    batch: Vec<(Tid, (BlockNo, u16))>,
    /// Leaves in the current batch, and how many it gets. An ordered scan has batches of one leaf.
    batch_leaves: u64,
    batch_leaves_max: u64,
    /// How many rows [`BlockSource::next_block`] has returned.
    returned: u64,
    expected: ExpectedRows,
    /// Leaves of all batches that are complete.
    leaves: u64,
    /// Leaves since the last block was found.
    fruitless: u64,
    ended: bool,
    failure: Failure,
}

impl EntrySource {
    pub(super) fn new(scan: EntryScan, unordered: bool, failure: Failure) -> Self {
        Self {
            scan,
            leaf: LeafEntries::default(),
            blocks: BlockLists::default(),
            unordered,
            batch: Vec::new(),
            batch_leaves: 0,
            batch_leaves_max: 1,
            returned: 0,
            expected: ExpectedRows::default(),
            leaves: 0,
            fruitless: 0,
            ended: false,
            failure,
        }
    }

    pub(super) fn scan(&self) -> &EntryScan {
        &self.scan
    }

    /// Says how many rows the consumer is expected to take, counted from the first row of the scan.
    pub(super) fn expect_rows(&mut self, expected: ExpectedRows) {
        self.expected = expected;
    }

    /// Determines how many leaves the next batch has. `distance` is that of the heap stream.
    fn begin_batch(&mut self, distance: u32) {
        let most = self.leaves / if distance > 1 { 2 } else { 64 };
        self.batch_leaves_max = if self.unordered { most.clamp(1, LEAVES_MAX) } else { 1 };
    }

    /// Adds the rows of the last leaf, and ends the batch if it is complete.
    fn add_leaf(&mut self) {
        let leaf = self.leaf.block();
        for entry in self.leaf.entries() {
            let place = (leaf, entry.item);
            match self.unordered {
                true => self.batch.push((entry.tid, place)),
                false => self.blocks.push(entry.tid, 0, place),
            }
        }
        self.batch_leaves += 1;
        let rows = self.returned + self.batch.len() as u64;
        // If few entries of each leaf match, the table should not wait for all leaves.
        let certain = rows < self.expected.certain && self.batch_leaves < CERTAIN_LEAVES_MAX;
        let wanted = certain || self.batch_leaves < self.batch_leaves_max;
        if !self.unordered || !wanted || self.batch.len() >= ROWS_MAX {
            self.end_batch();
        }
    }

    fn end_batch(&mut self) {
        self.batch.sort_unstable_by_key(|(tid, _)| *tid);
        for (tid, place) in self.batch.drain(..) {
            self.blocks.push(tid, 0, place);
        }
        self.leaves += self.batch_leaves;
        self.fruitless += self.batch_leaves;
        self.batch_leaves = 0;
        if !self.blocks.is_empty() {
            self.fruitless = 0;
        }
    }

    /// Whether look-ahead may read one more leaf.
    fn may_look_ahead(&self) -> bool {
        self.fruitless + self.batch_leaves < self.leaves.saturating_sub(self.fruitless) / 2
    }
}

impl BlockSource for EntrySource {
    type Data = RowList;

    fn next_block(&mut self) -> Poll<Option<(BlockNo, RowList)>> {
        match self.blocks.pop() {
            None if !self.ended => Poll::Pending,
            found => {
                self.returned += found.as_ref().map_or(0, |(_, rows)| rows.rows_max());
                Poll::Ready(found)
            }
        }
    }

    fn next_is(&self) -> Expected {
        match self.blocks.is_empty() {
            true => Expected::Unknown,
            false => self.expected.next_is(self.returned),
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
        if self.ended || !self.blocks.is_empty() {
            return Poll::Ready(Ok(()));
        }
        if wait.waiting().is_none() && !self.may_look_ahead() {
            return Poll::Pending;
        }
        if self.batch_leaves == 0 {
            self.begin_batch(wait.distance());
        }
        match ready!(self.scan.poll_leaf(backend, wait, &mut self.leaf)) {
            Ok(true) => self.add_leaf(),
            Ok(false) => {
                self.ended = true;
                self.end_batch();
            }
            Err(error) if error.is_cancelled() => {
                return Poll::Ready(Err(ReadError::Cancelled));
            }
            Err(error) => {
                self.ended = true;
                self.end_batch();
                *self.failure.lock() = Some(error);
            }
        }
        Poll::Ready(Ok(()))
    }

    fn release_ahead(&mut self) {
        self.scan.release_ahead();
    }
}
