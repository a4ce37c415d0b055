//! Looks up many keys together, level by level.
//!
//! ```text
//!   level 2   root:     all keys                       one page
//!   level 1   page 7:   keys 4, 0     page 9: keys 2   read ahead
//!   leaves    page 31:  key 4   page 32: key 0   …     read ahead
//! ```
//! Because all keys are known, so are the pages of the next level, once those of a level have been
//! read. So the reads of a level are in flight together, even if the index isn't cached at all. A key
//! whose matches end on their leaf is done then. The others need an ordinary scan, when it is their
//! turn.

use std::collections::VecDeque;
use std::task::{Poll, ready};

use trunkline_format::btree::{BtreePage, Cut, Entry, Fault, KeyRanges, LeafEnd, Meta, Step};
use trunkline_format::{BlockNo, PageBytes, Tid};

use crate::btree::{BtreeError, BtreeProblem, Index, PageStream, ScanSizes};
use crate::pool::{Backend, ReadError, Tally};
use crate::read_stream::{SourceWait, StreamOptions, StreamStats};

/// The matches of a key.
#[derive(Debug, Default)]
pub(super) struct KeyRows {
    /// The rows, with the places of their entries.
    pub(super) rows: Vec<(Tid, (BlockNo, u16))>,
    /// There may be more matches on other leaves, so `rows` is only a part of them.
    pub(super) unfinished: bool,
}

/// Which key is searched for, and from where.
#[derive(Debug, Clone)]
struct Search {
    key: usize,
    from: Cut,
}

/// A look-up of many keys.
#[derive(Debug)]
pub(super) struct KeyLookup {
    index: Index,
    sizes: ScanSizes,
    pages: PageStream,
    meta: Option<Meta>,
    /// The metapage was requested from the stream.
    meta_requested: bool,
    /// Searches that have not begun.
    start: Vec<Search>,
    /// The pages of the current level that the stream reads, with the keys to search for on each.
    groups: VecDeque<(BlockNo, Vec<Search>)>,
    level: u32,
    /// The pages of the level below.
    below: Vec<(BlockNo, Vec<Search>)>,
    /// Steps to the right, to recognize an endless loop.
    steps: u64,
}

impl KeyLookup {
    pub(super) fn new(
        backend: &Backend,
        index: &Index,
        sizes: ScanSizes,
        options: StreamOptions,
    ) -> Self {
        Self {
            index: index.clone(),
            sizes,
            pages: PageStream::new(backend, index.relation(), options),
            meta: None,
            meta_requested: false,
            start: Vec::new(),
            groups: VecDeque::new(),
            level: 0,
            below: Vec::new(),
            steps: 0,
        }
    }

    /// Starts to look up keys. `None` stands for a key that can't match anything.
    pub(super) fn start(&mut self, keys: &[Option<KeyRanges>]) {
        self.pages.clear();
        self.meta_requested = false;
        (self.groups, self.below, self.steps) = (VecDeque::new(), Vec::new(), 0);
        let searches = keys
            .iter()
            .enumerate()
            .filter_map(|(key, ranges)| ranges.as_ref()?.start().map(|from| Search { key, from }));
        self.start = searches.collect();
        // Neighbouring keys share pages.
        if let Some(ranges) = keys.iter().flatten().next() {
            self.start.sort_by(|one, other| ranges.compare_starts(&one.from, &other.from));
        }
    }

    /// Goes on until all keys have been looked up, or until it has to wait. The result of key `n` is
    /// in `found[n]`.
    ///
    /// # Errors
    /// See [`BtreeError`]. Apart from a cancellation, the look-up has ended.
    pub(super) fn poll(
        &mut self,
        backend: &mut Backend,
        wait: &mut SourceWait<'_, '_>,
        keys: &[Option<KeyRanges>],
        found: &mut [KeyRows],
    ) -> Poll<Result<(), BtreeError>> {
        loop {
            if !self.start.is_empty() {
                ready!(self.begin(backend, wait))?;
            }
            let Some((block, _)) = self.groups.front() else {
                if self.below.is_empty() {
                    return Poll::Ready(Ok(()));
                }
                self.level = self.level.saturating_sub(1);
                self.pages.extend(self.below.iter().map(|(block, _)| *block));
                self.groups.extend(self.below.drain(..));
                continue;
            };
            let block = *block;
            let Self { pages, groups, index, level, meta, sizes, .. } = self;
            let searches = groups.front().map_or(&[][..], |(_, searches)| searches);
            let orders_rows = meta.is_some_and(Meta::orders_rows);
            let page = PageSearch { index, keys, level: *level, orders_rows, sizes: *sizes, block };
            let polled = ready!(
                pages.poll_page(backend, wait, |_, bytes| { page.search(bytes, searches, found) })
            );
            let onward = match polled {
                Ok(Some(Ok(onward))) => onward,
                Ok(Some(Err(problem))) => {
                    return Poll::Ready(Err(self.index.corrupt(block, problem)));
                }
                // The stream has all blocks of the groups.
                Ok(None) => Vec::new(),
                Err(error) => return Poll::Ready(Err(error.into())),
            };
            self.groups.pop_front();
            for (search, step) in onward {
                match step {
                    Step::Here(_) => {}
                    Step::Down(child) => push(&mut self.below, child, search),
                    Step::Right(right) => {
                        self.steps += 1;
                        let blocks = self.sizes.index_blocks;
                        if self.steps > u64::from(blocks) + 100 {
                            let problem = BtreeProblem::Loop { blocks };
                            return Poll::Ready(Err(self.index.corrupt(right, problem)));
                        }
                        self.groups.push_back((right, vec![search]));
                        self.pages.extend([right]);
                    }
                }
            }
        }
    }

    /// Begins at the fast root.
    fn begin(
        &mut self,
        backend: &mut Backend,
        wait: &mut SourceWait<'_, '_>,
    ) -> Poll<Result<(), BtreeError>> {
        let meta = match self.meta {
            Some(meta) => meta,
            None => {
                if !std::mem::replace(&mut self.meta_requested, true) {
                    self.pages.extend([0]);
                }
                let polled =
                    ready!(self.pages.poll_page(backend, wait, |_, page| Meta::parse(page)));
                match polled {
                    Ok(Some(Ok(meta))) => *self.meta.insert(meta),
                    Ok(Some(Err(fault))) => {
                        let problem = BtreeProblem::Fault(fault);
                        return Poll::Ready(Err(self.index.corrupt(0, problem)));
                    }
                    Ok(None) => return Poll::Ready(Err(ReadError::Cancelled.into())),
                    Err(error) => return Poll::Ready(Err(error.into())),
                }
            }
        };
        let searches = std::mem::take(&mut self.start);
        if meta.fast_root != 0 {
            self.level = meta.fast_level;
            self.pages.extend([meta.fast_root]);
            self.groups.push_back((meta.fast_root, searches));
        }
        Poll::Ready(Ok(()))
    }

    pub(super) fn release_ahead(&mut self) {
        self.pages.release_ahead();
    }

    pub(super) fn stats(&self) -> StreamStats {
        self.pages.stats()
    }

    pub(super) fn buffer_usage(&self) -> Tally {
        self.pages.buffer_usage()
    }
}

/// Adds a search to the last group, or begins another group.
fn push(groups: &mut Vec<(BlockNo, Vec<Search>)>, block: BlockNo, search: Search) {
    match groups.last_mut().filter(|(last, _)| *last == block) {
        Some((_, searches)) => searches.push(search),
        None => groups.push((block, vec![search])),
    }
}

/// Searches one page for several keys.
struct PageSearch<'s> {
    index: &'s Index,
    keys: &'s [Option<KeyRanges>],
    level: u32,
    orders_rows: bool,
    sizes: ScanSizes,
    block: BlockNo,
}

impl PageSearch<'_> {
    /// Returns where each search goes on. Those that end here have [`Step::Here`].
    fn search(
        &self,
        bytes: &PageBytes,
        searches: &[Search],
        found: &mut [KeyRows],
    ) -> Result<Vec<(Search, Step)>, BtreeProblem> {
        let page = BtreePage::parse(bytes).map_err(BtreeProblem::Fault)?;
        if !page.is_deleted() && page.level() != self.level {
            return Err(BtreeProblem::Level { found: page.level(), expected: self.level });
        }
        let mut onward = Vec::new();
        for search in searches {
            let ranges = self.keys.get(search.key).and_then(Option::as_ref);
            let (Some(ranges), Some(rows)) = (ranges, found.get_mut(search.key)) else { continue };
            let step = ranges.step(&page, &search.from).map_err(BtreeProblem::Fault)?;
            if let Step::Here(_) = step {
                if self.level > 0 {
                    let fault = Fault::LeafLevel { found: page.level() };
                    return Err(BtreeProblem::Fault(fault));
                }
                self.search_leaf(&page, ranges, &search.from, rows)?;
            }
            onward.push((search.clone(), step));
        }
        Ok(onward)
    }

    fn search_leaf(
        &self,
        page: &BtreePage<'_>,
        ranges: &KeyRanges,
        from: &Cut,
        found: &mut KeyRows,
    ) -> Result<(), BtreeProblem> {
        let blocks = self.sizes.table_blocks;
        let mut problem = None;
        let each = |entry: &Entry<'_>| {
            let item = entry.item();
            for tid in entry.rows() {
                if tid.item == 0 {
                    problem = Some(BtreeProblem::Fault(Fault::NoRow { item }));
                } else if tid.block >= blocks {
                    problem = Some(BtreeProblem::NoSuchBlock { item, tid, blocks });
                } else {
                    found.rows.push((tid, (self.block, item)));
                }
            }
        };
        let (layout, rows) = (self.index.layout(), self.orders_rows);
        let end = ranges.scan_leaf(layout, page, from, rows, &mut Vec::new(), each);
        found.unfinished = end.map_err(BtreeProblem::Fault)? != LeafEnd::Ended;
        match problem {
            Some(problem) => Err(problem),
            None => Ok(()),
        }
    }
}
