//! Walks all pages of a level from left to right, with read-ahead.
//!
//! ```text
//!   level above:  parents, one at a time ──▶ downlinks ──▶ stream: reads ahead ─┐
//!   this level:   page ── right link ──▶ page ── right link ──▶ page  ◀─────────┘
//! ```
//!
//! If we followed only the right links, we would have to wait for every page, because we don't know
//! a page's right link until we have read the page. But the level above has downlinks to the same
//! pages in the same order, so we pass those blocks to a read stream.
//!
//! The right links remain authoritative, and the downlinks are only a prediction. After an
//! unfinished split or deletion, a page has no downlink, so we don't read that page until the walk
//! gets there. We return each page together with its downlink, so that verification can compare the
//! two levels, as `amcheck` does.

use std::collections::VecDeque;

use trunkline_format::btree::{BtreePage, Fault};
use trunkline_format::{BLOCK_SIZE, BlockNo, PageBytes};

use super::error::{BtreeError, BtreeProblem};
use super::index::{Index, RightSteps};
use super::page_stream::BlockQueue;
use crate::pool::{Backend, ReadError, Strategy};
use crate::read_stream::{ReadStream, StreamOptions};
use crate::seq_scan::scan_strategy;

/// We read the next parent when fewer downlinks than this are queued for the stream. This is well
/// above any look-ahead distance, so the stream doesn't run out of blocks between two parents.
const DOWNLINKS_AHEAD: usize = 1024;

/// A downlink: an entry of the level above.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Downlink {
    /// The parent page.
    pub parent: BlockNo,
    /// The line pointer of the downlink in the parent.
    pub item: u16,
    /// The page the downlink points to.
    pub child: BlockNo,
    /// The lower bound for the child's keys, as the bytes of a separator tuple. The first downlink
    /// on a parent page has no key, so we use the high key of the parent's left sibling instead.
    /// For the first page of a level, the bound is empty.
    pub bound: Vec<u8>,
}

/// One page of a walk.
#[derive(Debug)]
pub struct LevelPage<'w> {
    /// The block number.
    pub block: BlockNo,
    /// A copy of the page.
    pub page: &'w PageBytes,
    /// The downlink to this page, or `None` if the level above has no downlink to it where we
    /// expect one.
    pub downlink: Option<Downlink>,
}

/// A walk along one level of an index.
#[derive(Debug)]
pub struct LevelWalk {
    index: Index,
    level: u32,
    /// The next page of this level. `None` at the right end, or after an error.
    next: Option<BlockNo>,
    steps: RightSteps,
    /// The next parent page to read.
    parent: Option<BlockNo>,
    parent_steps: RightSteps,
    /// The last parent's high key, which becomes the lower bound for the next parent's first child.
    parent_bound: Vec<u8>,
    /// Downlinks whose pages we haven't returned yet, in order.
    downlinks: VecDeque<Downlink>,
    /// Children of these downlinks, not yet requested by the stream.
    queue: BlockQueue,
    stream: ReadStream<BlockQueue>,
    /// The block in `ahead_page`: a page that the stream returned before the walk arrived at it.
    ahead: Option<BlockNo>,
    ahead_page: Box<PageBytes>,
    page: Box<PageBytes>,
}

impl LevelWalk {
    /// Walks the leaves.
    ///
    /// # Errors
    /// As [`Self::of_level`].
    pub fn of_leaves(
        index: &Index,
        backend: &mut Backend,
        options: StreamOptions,
    ) -> Result<Self, BtreeError> {
        Self::of_level(index, backend, 0, options)
    }

    /// Walks the pages of the given level, where leaves are level 0. Returns no pages if the tree
    /// isn't that high. If the index is larger than a quarter of the pool, we read it through a
    /// ring buffer, as in a sequential scan.
    ///
    /// # Errors
    /// See [`BtreeError`].
    pub fn of_level(
        index: &Index,
        backend: &mut Backend,
        level: u32,
        options: StreamOptions,
    ) -> Result<Self, BtreeError> {
        let meta = index.meta(backend)?;
        let (mut first, mut parent) = (None, None);
        if meta.root != 0 && meta.level >= level {
            let (mut block, mut at) = (meta.root, meta.level);
            while at > level {
                parent = Some(block);
                block = leftmost_child(index, backend, block, at)?;
                at -= 1;
            }
            first = Some(block);
        }
        // Choose the strategy based on the size of the whole index, even though the upper levels
        // are small. Otherwise a walk over all levels would switch to a different strategy halfway.
        let blocks = index.relation().blocks().map_err(ReadError::from)?;
        let strategy = match scan_strategy(blocks, backend.pool_buffers()) {
            Strategy::Normal => options.strategy,
            ring => ring,
        };
        let options = StreamOptions { strategy, unordered: false, ..options };
        let queue = BlockQueue::default();
        Ok(Self {
            index: index.clone(),
            level,
            next: first,
            steps: RightSteps::default(),
            parent,
            parent_steps: RightSteps::default(),
            parent_bound: Vec::new(),
            downlinks: VecDeque::new(),
            stream: ReadStream::new(backend, index.relation(), queue.clone(), options),
            queue,
            ahead: None,
            ahead_page: Box::new([0; BLOCK_SIZE]),
            page: Box::new([0; BLOCK_SIZE]),
        })
    }

    /// Returns the next page, including deleted and half-dead pages, or `None` at the right end.
    ///
    /// # Errors
    /// See [`BtreeError`]. The walk cannot continue.
    pub fn next(&mut self, backend: &mut Backend) -> Result<Option<LevelPage<'_>>, BtreeError> {
        let Some(block) = self.next.take() else { return Ok(None) };
        self.read_parents(backend)?;
        self.fetch(backend, block)?;
        let fault = |fault| self.index.corrupt(block, BtreeProblem::Fault(fault));
        let page = BtreePage::parse(&self.page).map_err(fault)?;
        if !page.is_deleted() && page.level() != self.level {
            let level = BtreeProblem::Level { found: page.level(), expected: self.level };
            return Err(self.index.corrupt(block, level));
        }
        self.next = page.right();
        if let Some(right) = self.next {
            self.steps.count(&self.index, right)?;
        }
        // A page without a downlink doesn't consume the next downlink, which belongs to a page
        // further right.
        let leads_here = self.downlinks.front().is_some_and(|downlink| downlink.child == block);
        let downlink = if leads_here { self.downlinks.pop_front() } else { None };
        Ok(Some(LevelPage { block, page: &self.page, downlink }))
    }

    /// The first downlink that points to a page the walk hasn't returned yet. In a valid index,
    /// there are no such downlinks left after the last page.
    pub fn unmatched_downlink(&self) -> Option<&Downlink> {
        self.downlinks.front()
    }

    /// Reads parents until enough downlinks are queued.
    fn read_parents(&mut self, backend: &mut Backend) -> Result<(), BtreeError> {
        while let Some(parent) = self.parent
            && self.queue.len() < DOWNLINKS_AHEAD
        {
            let (level, downlinks) = (self.level + 1, &mut self.downlinks);
            // Remember how many downlinks there were, to pass only the new children to the stream.
            let (before, parent_bound) = (downlinks.len(), &mut self.parent_bound);
            self.parent = self.index.read_level_page(backend, parent, level, |page| {
                if !page.is_ignored() {
                    for entry in page.entries() {
                        let entry = entry?;
                        let item = entry.item();
                        let child = entry.child().ok_or(Fault::Kind { item })?;
                        let bound = match item == page.first() {
                            true => std::mem::take(parent_bound),
                            false => page.item(item)?.to_vec(),
                        };
                        downlinks.push_back(Downlink { parent, item, child, bound });
                    }
                    if page.right().is_some() {
                        *parent_bound = page.item(1)?.to_vec();
                    }
                }
                Ok(page.right())
            })?;
            if let Some(right) = self.parent {
                self.parent_steps.count(&self.index, right)?;
            }
            let children = downlinks.iter().skip(before).map(|downlink| downlink.child);
            self.queue.extend(children);
        }
        Ok(())
    }

    /// Copies the given block into `self.page`. If the stream returns a different block next, there
    /// is no downlink to this page, so we read it directly. We keep the stream's page in
    /// `ahead_page` until the walk reaches it.
    fn fetch(&mut self, backend: &mut Backend, block: BlockNo) -> Result<(), BtreeError> {
        if self.ahead.is_none() {
            self.read_ahead(backend)?;
        }
        // The expected case: the downlinks predicted this page.
        if self.ahead == Some(block) {
            self.ahead = None;
            std::mem::swap(&mut self.page, &mut self.ahead_page);
            return Ok(());
        }
        let copy = &mut self.page;
        self.index.read_page(backend, block, |page| {
            **copy = *page;
            Ok(())
        })
    }

    /// Copies the next page of the stream.
    fn read_ahead(&mut self, backend: &mut Backend) -> Result<(), BtreeError> {
        loop {
            if let Some(found) = self.stream.next(backend)? {
                let page = backend.read_lock(found.pin).map_err(ReadError::from)?;
                *self.ahead_page = *page;
                self.ahead = Some(found.block);
                return Ok(());
            }
            // A stream ends when its source runs out of blocks. If we've read more parents since
            // then, restart it.
            if self.queue.len() == 0 {
                return Ok(());
            }
            self.stream.reset(self.queue.clone());
        }
    }
}

/// The child of a page's first downlink.
fn leftmost_child(
    index: &Index,
    backend: &mut Backend,
    block: BlockNo,
    level: u32,
) -> Result<BlockNo, BtreeError> {
    index.read_level_page(backend, block, level, |page| {
        let item = page.first();
        if page.count() < item {
            return Err(Fault::NoDownlink);
        }
        page.entry(item)?.child().ok_or(Fault::Kind { item })
    })
}
