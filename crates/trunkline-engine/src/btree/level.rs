//! All pages of a level, from left to right, read ahead of their consumer.
//!
//! ```text
//!   level above:  parents, one at a time ──▶ downlinks ──▶ stream: pages ahead ─┐
//!   this level:   page ── right link ──▶ page ── right link ──▶ page  ◀─────────┘
//! ```
//! Links to the right are the truth; the level above only foretells them. A page that it does not
//! know of, since its split or its deletion was not finished, is read when its turn comes. With each
//! page comes the downlink that led to it, so that a verification can hold the two levels against
//! each other.

use std::collections::VecDeque;

use trunkline_aio::sync::{Arc, Mutex};
use trunkline_format::btree::{BtreePage, Fault};
use trunkline_format::{BLOCK_SIZE, BlockNo, PageBytes};

use super::{BtreeError, BtreeProblem, Index, Steps};
use crate::pool::{Backend, ReadError, Strategy};
use crate::read_stream::{BlockSource, ReadStream, StreamOptions};

/// Downlinks known ahead of the stream, below which the next parent is read.
const DOWNLINKS_AHEAD: usize = 1024;

/// An entry of the level above.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Downlink {
    /// The page that has it.
    pub parent: BlockNo,
    /// Its line pointer there.
    pub item: u16,
    /// The page that it leads to.
    pub child: BlockNo,
    /// What everything in the child is above, as the bytes of a separator: the downlink's own, or
    /// for a parent's first the high key of the parent to its left. Empty for the level's first.
    pub bound: Vec<u8>,
}

/// A page of a walk.
#[derive(Debug)]
pub struct LevelPage<'w> {
    /// The block.
    pub block: BlockNo,
    /// A copy of the page.
    pub page: &'w PageBytes,
    /// The downlink that leads to it, if the level above has it next.
    pub downlink: Option<Downlink>,
}

/// See the module.
#[derive(Debug)]
pub struct LevelWalk {
    index: Index,
    level: u32,
    next: Option<BlockNo>,
    steps: Steps,
    /// The page of the level above whose downlinks come next.
    parent: Option<BlockNo>,
    parent_steps: Steps,
    /// The high key of the parent before.
    parent_bound: Vec<u8>,
    /// Downlinks whose pages have not come yet.
    downlinks: VecDeque<Downlink>,
    /// Blocks that the stream may read.
    feed: Feed,
    stream: ReadStream<Feed>,
    /// A page that the stream has brought before its turn.
    ahead: Option<BlockNo>,
    ahead_page: Box<PageBytes>,
    page: Box<PageBytes>,
}

/// What the stream reads: filled by the walk, drained by the stream.
#[derive(Debug, Clone, Default)]
struct Feed(Arc<Mutex<VecDeque<BlockNo>>>);

impl BlockSource for Feed {
    type Data = ();

    fn next_block(&mut self) -> Option<(BlockNo, ())> {
        self.0.lock().pop_front().map(|block| (block, ()))
    }
}

impl LevelWalk {
    /// All leaves.
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

    /// All pages of `level`; none if the tree is not as high. Of an index that would fill the pool
    /// the pages go round in a few buffers.
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
        let blocks = index.relation.blocks().map_err(ReadError::from)?;
        let bulk = blocks > backend.shared.count() / 4;
        let strategy = if bulk { Strategy::BulkRead } else { options.strategy };
        let options = StreamOptions { strategy, unordered: false, ..options };
        let feed = Feed::default();
        Ok(Self {
            index: index.clone(),
            level,
            next: first,
            steps: Steps::default(),
            parent,
            parent_steps: Steps::default(),
            parent_bound: Vec::new(),
            downlinks: VecDeque::new(),
            stream: ReadStream::new(backend, &index.relation, feed.clone(), options),
            feed,
            ahead: None,
            ahead_page: Box::new([0; BLOCK_SIZE]),
            page: Box::new([0; BLOCK_SIZE]),
        })
    }

    /// The next page; `None` at the right end. Pages that are deleted or about to be come too.
    ///
    /// # Errors
    /// See [`BtreeError`]; the walk cannot go on.
    pub fn next(&mut self, backend: &mut Backend) -> Result<Option<LevelPage<'_>>, BtreeError> {
        let Some(block) = self.next.take() else { return Ok(None) };
        self.foretell(backend)?;
        self.fetch(backend, block)?;
        let fault = |fault| self.index.problem(block, BtreeProblem::Fault(fault));
        let page = BtreePage::parse(&self.page).map_err(fault)?;
        if !page.is_deleted() && page.level() != self.level {
            let level = BtreeProblem::Level { found: page.level(), expected: self.level };
            return Err(self.index.problem(block, level));
        }
        self.next = page.right();
        if let Some(right) = self.next {
            self.steps.count(&self.index, right)?;
        }
        let leads_here = self.downlinks.front().is_some_and(|downlink| downlink.child == block);
        let downlink = if leads_here { self.downlinks.pop_front() } else { None };
        Ok(Some(LevelPage { block, page: &self.page, downlink }))
    }

    /// The first downlink whose page has not come; after the last page of a sound index there is
    /// none.
    pub fn unmet(&self) -> Option<&Downlink> {
        self.downlinks.front()
    }

    /// Reads parents until enough downlinks are known.
    fn foretell(&mut self, backend: &mut Backend) -> Result<(), BtreeError> {
        while let Some(parent) = self.parent
            && self.feed.0.lock().len() < DOWNLINKS_AHEAD
        {
            let (level, downlinks) = (self.level + 1, &mut self.downlinks);
            let (before, parent_bound) = (downlinks.len(), &mut self.parent_bound);
            self.parent = self.index.look_at(backend, parent, level, |page| {
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
            self.feed.0.lock().extend(children);
        }
        Ok(())
    }

    /// Copies `block` out: from the stream if it comes next there.
    fn fetch(&mut self, backend: &mut Backend, block: BlockNo) -> Result<(), BtreeError> {
        if self.ahead.is_none() {
            self.take_streamed(backend)?;
        }
        if self.ahead == Some(block) {
            self.ahead = None;
            std::mem::swap(&mut self.page, &mut self.ahead_page);
            return Ok(());
        }
        let copy = &mut self.page;
        self.index.look(backend, block, |page| {
            **copy = *page;
            Ok(())
        })
    }

    /// Copies out what the stream brings next.
    fn take_streamed(&mut self, backend: &mut Backend) -> Result<(), BtreeError> {
        loop {
            if let Some(found) = self.stream.next(backend)? {
                let page = backend.read_lock(found.pin).map_err(ReadError::from)?;
                *self.ahead_page = *page;
                self.ahead = Some(found.block);
                return Ok(());
            }
            // It has ended for want of blocks, and now there may be some.
            if self.feed.0.lock().is_empty() {
                return Ok(());
            }
            self.stream.reset(self.feed.clone());
        }
    }
}

fn leftmost_child(
    index: &Index,
    backend: &mut Backend,
    block: BlockNo,
    level: u32,
) -> Result<BlockNo, BtreeError> {
    index.look_at(backend, block, level, |page| {
        let item = page.first();
        if page.count() < item {
            return Err(Fault::NoDownlink);
        }
        page.entry(item)?.child().ok_or(Fault::Kind { item })
    })
}
