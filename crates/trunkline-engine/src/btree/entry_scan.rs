//! Entry scan: the entries of an index that match conditions, leaf by leaf, in either direction.
//!
//! ```text
//!   LeafPrediction ──▶ leaves to read ahead ──▶ stream ──▶ leaf: copy the matches ──▶ LeafEntries
//!                                                 ▲          │ link to the neighbour
//!                            another page ────────┴──────────┘ that the prediction didn't have
//! ```
//! The links between the leaves decide where the scan goes next. The pages above only predict it, and
//! tell which leaves can be skipped. After an unfinished split or deletion, a leaf has no downlink, so
//! it isn't read ahead but when the scan gets there, as PostgreSQL does it.
//!
//! **Look-ahead** begins with nothing: the first leaf is read alone, and further leaves only after the
//! scan had to wait for one. A leaf is copied out before it is unlocked, so the scan holds no page
//! while its caller reads the table.
//!
//! **Damage.** A neighbour must link back, a leaf must be on level 0, and entries must be in order.
//! The number of leaves is limited by the number of blocks that the index has, and so are the pages
//! that are visited in search of a leaf (`leaf_prediction`), so a scan always ends.

use std::collections::VecDeque;
use std::ops::Range;
use std::task::{Poll, ready};

use trunkline_format::btree::{
    BtreePage, Cut, Direction, Entry, Fault, KeyLayout, KeyRanges, LeafEnd,
};
use trunkline_format::{BlockNo, PageBytes, Tid};

use super::error::{BtreeError, BtreeProblem};
use super::index::Index;
use super::leaf_prediction::{LeafPrediction, is_neighbour};
use super::page_stream::PageStream;
use crate::pool::{Backend, Tally};
use crate::read_stream::{SourceWait, StreamOptions, StreamStats};
use crate::waiting::{Waiting, slept};

/// The lengths of an index and its table, which limit where links and entries may lead. A task
/// determines them with [`Relation::count_blocks`](crate::storage::Relation::count_blocks).
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct ScanSizes {
    /// Blocks of the index.
    pub index_blocks: BlockNo,
    /// Blocks of the table.
    pub table_blocks: BlockNo,
}

/// How to scan an index.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct EntryScanOptions {
    /// How to read the leaves.
    pub stream: StreamOptions,
    /// The lengths of the files.
    pub sizes: ScanSizes,
    /// Copy the entries' columns too, for an index-only scan.
    pub keep_keys: bool,
}

/// An entry that matches, for one row. An entry with several rows is returned as several.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct LeafEntry {
    /// The row that the entry points to: the root of a HOT chain.
    pub tid: Tid,
    /// The entry's line pointer on its leaf.
    pub item: u16,
    /// Where its tuple is in the leaf's copy.
    start: u32,
    length: u16,
}

/// The matching entries of a leaf, in the order of the scan.
#[derive(Debug, Default)]
pub struct LeafEntries {
    block: BlockNo,
    entries: Vec<LeafEntry>,
    tuples: Vec<u8>,
}

impl LeafEntries {
    /// The leaf.
    pub fn block(&self) -> BlockNo {
        self.block
    }

    /// The entries.
    pub fn entries(&self) -> &[LeafEntry] {
        &self.entries
    }

    /// The columns of an entry, if the scan keeps keys.
    ///
    /// # Errors
    /// The entry is damaged.
    pub fn tuple(&self, entry: &LeafEntry) -> Result<Entry<'_>, Fault> {
        Entry::of_leaf(entry.item, self.bytes(entry))
    }

    /// The bytes of an entry's tuple, if the scan keeps keys; otherwise they are empty.
    pub fn bytes(&self, entry: &LeafEntry) -> &[u8] {
        self.tuples.get(self.tuple_range(entry)).unwrap_or_default()
    }

    /// The tuples of all entries, if the scan keeps keys. Entries of a posting list share one.
    pub(crate) fn tuples(&self) -> &[u8] {
        &self.tuples
    }

    /// Where an entry's tuple is in [`LeafEntries::tuples`].
    pub(crate) fn tuple_range(&self, entry: &LeafEntry) -> Range<usize> {
        let start = entry.start as usize;
        start..start + usize::from(entry.length)
    }

    /// Removes all entries.
    pub fn clear(&mut self) {
        self.entries.clear();
        self.tuples.clear();
    }
}

/// How the scan gets to its next leaf.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Next {
    /// Decide between the neighbour of leaf `from`, if there is one, and the next predicted leaf.
    Decide {
        from: Option<BlockNo>,
        neighbour: Option<BlockNo>,
        skips: bool,
    },
    /// Read the next predicted leaf. It is the neighbour of leaf `from`, if given.
    Predicted {
        from: Option<BlockNo>,
    },
    /// Read a leaf that wasn't predicted, the neighbour of leaf `from`. `right` is the direction.
    Neighbour {
        block: BlockNo,
        from: BlockNo,
        right: bool,
        requested: bool,
    },
    Ended,
}

/// A scan of the entries that match, see the module documentation.
#[derive(Debug)]
pub struct EntryScan {
    index: Index,
    ranges: KeyRanges,
    options: EntryScanOptions,
    prediction: LeafPrediction,
    /// An error of the prediction, which comes after the leaves that were predicted before.
    failed: Option<BtreeError>,
    /// Predicted leaves that the scan hasn't reached, in order. The stream reads them.
    predicted: VecDeque<BlockNo>,
    leaves: PageStream,
    /// Leaves that were not predicted.
    others: PageStream,
    next: Next,
    /// The next match is behind this cut.
    at: Cut,
    /// The last entry that was returned.
    last: Vec<u8>,
    leaves_read: u64,
}

impl EntryScan {
    /// A scan of the entries in `ranges`, which must have been made for the index's layout.
    pub fn new(
        backend: &Backend,
        index: &Index,
        ranges: KeyRanges,
        options: EntryScanOptions,
    ) -> Self {
        let mut scan = Self {
            index: index.clone(),
            prediction: LeafPrediction::new(index, backend, ranges.start()),
            failed: None,
            predicted: VecDeque::new(),
            leaves: PageStream::new(backend, index.relation(), options.stream),
            others: PageStream::one_by_one(backend, index.relation()),
            next: Next::Ended,
            at: ranges.start(),
            last: Vec::new(),
            leaves_read: 0,
            ranges,
            options,
        };
        scan.begin();
        scan
    }

    /// Starts again with other ranges. Streams keep their distances and counts.
    pub fn rescan(&mut self, ranges: KeyRanges) {
        self.ranges = ranges;
        self.leaves.clear();
        self.others.clear();
        self.begin();
    }

    fn begin(&mut self) {
        self.at = self.ranges.start();
        self.prediction.start(self.at.clone());
        self.failed = None;
        self.predicted.clear();
        self.last.clear();
        self.leaves_read = 0;
        self.next = Next::Decide { from: None, neighbour: None, skips: true };
    }

    /// Gets the matches of the next leaf, and sleeps until it has been read. Returns false at the
    /// end. A leaf may have no matches.
    ///
    /// # Errors
    /// See [`BtreeError`]. Apart from a cancellation, an error ends the scan.
    pub fn next_leaf(
        &mut self,
        backend: &mut Backend,
        entries: &mut LeafEntries,
    ) -> Result<bool, BtreeError> {
        slept(self.poll_leaf(backend, &mut SourceWait::of_consumer(Waiting::Sleep), entries))
    }

    /// [`EntryScan::next_leaf`] for a thread, a task, or the source of a stream.
    ///
    /// # Errors
    /// As for [`EntryScan::next_leaf`].
    pub(crate) fn poll_leaf(
        &mut self,
        backend: &mut Backend,
        wait: &mut SourceWait<'_, '_>,
        entries: &mut LeafEntries,
    ) -> Poll<Result<bool, BtreeError>> {
        entries.clear();
        let polled = ready!(self.poll(backend, wait, entries));
        if polled.as_ref().is_err_and(|error| !error.is_cancelled()) {
            self.next = Next::Ended;
        }
        Poll::Ready(polled)
    }

    fn poll(
        &mut self,
        backend: &mut Backend,
        wait: &mut SourceWait<'_, '_>,
        entries: &mut LeafEntries,
    ) -> Poll<Result<bool, BtreeError>> {
        loop {
            match self.next {
                Next::Ended => return Poll::Ready(Ok(false)),
                Next::Decide { from, neighbour, skips } => {
                    if self.predicted.is_empty() && !self.prediction.has_ended() {
                        ready!(self.predict(backend, wait))?;
                        continue;
                    }
                    self.next = self.decide(from, neighbour, skips)?;
                }
                Next::Predicted { .. } | Next::Neighbour { .. } => {
                    self.look_ahead(backend);
                    let found = ready!(self.read_leaf(backend, wait, entries))?;
                    self.leave(found)?;
                    // The caller can't tell a leaf that the scan only passes from one without
                    // matches.
                    return Poll::Ready(Ok(true));
                }
            }
        }
    }

    fn decide(
        &mut self,
        from: Option<BlockNo>,
        neighbour: Option<BlockNo>,
        skips: bool,
    ) -> Result<Next, BtreeError> {
        let predicted = self.predicted.front().copied();
        if predicted.is_some() && predicted == neighbour {
            return Ok(Next::Predicted { from });
        }
        if predicted.is_none()
            && let Some(error) = self.failed.take()
        {
            return Err(error);
        }
        Ok(match (predicted, neighbour, from) {
            (Some(_), neighbour, _) if skips || neighbour.is_none() => {
                Next::Predicted { from: None }
            }
            (_, Some(block), Some(from)) => {
                let right = self.ranges.direction() == Direction::Forward;
                Next::Neighbour { block, from, right, requested: false }
            }
            _ => Next::Ended,
        })
    }

    /// Predicts more leaves.
    fn predict(
        &mut self,
        backend: &mut Backend,
        wait: &mut SourceWait<'_, '_>,
    ) -> Poll<Result<(), BtreeError>> {
        let Self { prediction, index, ranges, predicted, leaves, options, .. } = self;
        let index = (&*index, options.sizes.index_blocks);
        let mut more = Vec::new();
        let polled = ready!(prediction.poll(backend, wait, index, ranges, &mut more));
        predicted.extend(&more);
        leaves.extend(more);
        match polled {
            Err(error) if error.is_cancelled() => Poll::Ready(Err(error)),
            Err(error) => {
                self.failed = Some(error);
                Poll::Ready(Ok(()))
            }
            Ok(()) => Poll::Ready(Ok(())),
        }
    }

    /// If the stream of leaves looks ahead and has begun to read all leaves that it knows, predicts
    /// more of them, without waiting for it.
    fn look_ahead(&mut self, backend: &mut Backend) {
        if self.leaves.looks_ahead() && self.leaves.unstarted() == 0 && !self.prediction.has_ended()
        {
            // A cancellation is noticed by whatever comes next.
            let _ = self.predict(backend, &mut SourceWait::never());
        }
    }

    /// Reads the next leaf and copies its matches.
    fn read_leaf(
        &mut self,
        backend: &mut Backend,
        wait: &mut SourceWait<'_, '_>,
        entries: &mut LeafEntries,
    ) -> Poll<Result<Left, BtreeError>> {
        let (predicted, arrival) = match &mut self.next {
            Next::Predicted { from } => (true, from.map(|from| (from, None))),
            Next::Neighbour { block, from, right, requested } => {
                if !std::mem::replace(requested, true) {
                    self.others.extend([*block]);
                }
                (false, Some((*from, Some(*right))))
            }
            Next::Decide { .. } | Next::Ended => unreachable!("no leaf was chosen"),
        };
        let Self { index, ranges, options, prediction, leaves, others, at: from, last, .. } = self;
        let orders_rows = prediction.meta().is_some_and(|meta| meta.orders_rows());
        let forward = ranges.direction() == Direction::Forward;
        let arrival = arrival.map(|(from, right)| (from, right.unwrap_or(forward)));
        let reader = LeafReader { layout: index.layout(), ranges, options, orders_rows };
        let stream = if predicted { leaves } else { others };
        let polled = ready!(stream.poll_page(backend, wait, |block, page| {
            entries.block = block;
            (block, reader.read(page, arrival, from, last, entries))
        }));
        Poll::Ready(match polled {
            Ok((_, Ok(left))) => Ok(left),
            Ok((block, Err(problem))) => {
                // The caller gets nothing of a damaged leaf, even if the damage is in its last entry.
                entries.clear();
                Err(index.corrupt(block, problem))
            }
            Err(error) => {
                if !predicted && let Next::Neighbour { requested, .. } = &mut self.next {
                    *requested = false;
                    self.others.clear();
                }
                Err(error.into())
            }
        })
    }

    /// Goes on after a leaf.
    fn leave(&mut self, left: Left) -> Result<(), BtreeError> {
        let was_predicted = matches!(self.next, Next::Predicted { .. });
        if was_predicted {
            self.predicted.pop_front();
        }
        self.leaves_read += 1;
        // To the left, the scan may visit a leaf twice that was split.
        let blocks = self.options.sizes.index_blocks;
        if self.leaves_read > 2 * u64::from(blocks) + 1 {
            return Err(self.index.corrupt(left.block, BtreeProblem::Circle { blocks }));
        }
        self.next = match left.end {
            LeftBy::Ended => Next::Ended,
            LeftBy::MovingRight(block) => {
                Next::Neighbour { block, from: left.block, right: true, requested: false }
            }
            LeftBy::Going { on, neighbour, skips } => {
                self.at = on;
                Next::Decide { from: Some(left.block), neighbour, skips }
            }
        };
        Ok(())
    }

    /// Releases all pins of the scan. No leaf is skipped.
    pub fn release_ahead(&mut self) {
        self.leaves.release_ahead();
        self.others.release_ahead();
        self.prediction.release_ahead();
    }

    /// The index.
    pub fn index(&self) -> &Index {
        &self.index
    }

    /// The streams of index pages so far, all levels together.
    pub fn stats(&self) -> StreamStats {
        let mut stats = self.leaves.stats();
        stats.add(&self.others.stats());
        stats.add(&self.prediction.pages().stats());
        stats
    }

    /// Hits, reads and times of index pages so far.
    pub fn buffer_usage(&self) -> Tally {
        let mut tally = self.leaves.buffer_usage();
        tally.add(&self.others.buffer_usage());
        tally.add(&self.prediction.pages().buffer_usage());
        tally
    }
}

/// How the scan leaves a leaf.
#[derive(Debug)]
struct Left {
    block: BlockNo,
    end: LeftBy,
}

#[derive(Debug)]
enum LeftBy {
    Ended,
    /// The leaf was split after its parent was written, and the first match is further right.
    MovingRight(BlockNo),
    Going {
        on: Cut,
        neighbour: Option<BlockNo>,
        skips: bool,
    },
}

/// Reads one leaf.
struct LeafReader<'s> {
    layout: &'s KeyLayout,
    ranges: &'s KeyRanges,
    options: &'s EntryScanOptions,
    orders_rows: bool,
}

impl LeafReader<'_> {
    /// `arrival` is the page whose link led here, and whether it was a link to the right.
    fn read(
        &self,
        page: &PageBytes,
        arrival: Option<(BlockNo, bool)>,
        from: &Cut,
        last: &mut Vec<u8>,
        entries: &mut LeafEntries,
    ) -> Result<Left, BtreeProblem> {
        let block = entries.block;
        let page = BtreePage::parse(page).map_err(BtreeProblem::Fault)?;
        if !page.is_deleted() && page.level() != 0 {
            return Err(BtreeProblem::Level { found: page.level(), expected: 0 });
        }
        let forward = self.ranges.direction() == Direction::Forward;
        match arrival {
            Some((neighbour, right)) => is_neighbour(&page, neighbour, right)?,
            // By a downlink.
            None => {
                if let Some(right) = page.right()
                    && !forward
                    && (page.is_ignored() || self.is_split(&page, from)?)
                {
                    return Ok(Left { block, end: LeftBy::MovingRight(right) });
                }
            }
        }
        let mut problem = None;
        let each = |entry: &Entry<'_>| {
            if let Err(found) = self.copy(&page, entry, entries) {
                problem.get_or_insert(found);
            }
        };
        let end = self.ranges.scan_leaf(self.layout, &page, from, self.orders_rows, last, each);
        let end = end.map_err(BtreeProblem::Fault)?;
        if let Some(problem) = problem {
            return Err(problem);
        }
        let end = match end {
            LeafEnd::Ended => LeftBy::Ended,
            LeafEnd::Goes { on, skips } => {
                let neighbour = if forward { page.right() } else { page.left() };
                // The right half of an unfinished split has no downlink. If a scan to the left has
                // moved to it, it must return to the left half.
                let moved = arrival.is_some_and(|(_, right)| right != forward);
                let split = forward && page.is_split_incomplete();
                let skips = skips && !split && !moved;
                LeftBy::Going { on, neighbour, skips }
            }
        };
        Ok(Left { block, end })
    }

    fn is_split(&self, page: &BtreePage<'_>, from: &Cut) -> Result<bool, BtreeProblem> {
        let further = page.is_split_incomplete() && self.is_further_right(page, from)?;
        Ok(further)
    }

    fn is_further_right(&self, page: &BtreePage<'_>, from: &Cut) -> Result<bool, BtreeProblem> {
        self.ranges.is_further_right(page, from).map_err(BtreeProblem::Fault)
    }

    /// Copies an entry, once for each of its rows.
    fn copy(
        &self,
        page: &BtreePage<'_>,
        entry: &Entry<'_>,
        entries: &mut LeafEntries,
    ) -> Result<(), BtreeProblem> {
        let item = entry.item();
        let start = entries.tuples.len() as u32;
        let mut length = 0;
        if self.options.keep_keys {
            let bytes = page.item(item).map_err(BtreeProblem::Fault)?;
            length = bytes.len() as u16;
            entries.tuples.extend_from_slice(bytes);
        }
        let blocks = self.options.sizes.table_blocks;
        let first = entries.entries.len();
        for tid in entry.rows() {
            if tid.item == 0 {
                return Err(BtreeProblem::Fault(Fault::NoRow { item }));
            }
            if tid.block >= blocks {
                return Err(BtreeProblem::NoSuchBlock { item, tid, blocks });
            }
            entries.entries.push(LeafEntry { tid, item, start, length });
        }
        if self.ranges.direction() == Direction::Backward {
            entries.entries.get_mut(first..).unwrap_or_default().reverse();
        }
        Ok(())
    }
}
