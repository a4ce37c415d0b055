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
//!
//! After a split that was not finished, the keys of the right half are found through the right link.
//! They form one more group at the end of their level.
//!
//! **Damage** concerns only the keys that lead to the damaged page. The look-up goes on with the
//! others, because a caller that stops early may never get to those keys.

use std::collections::VecDeque;
use std::task::{Poll, ready};

use trunkline_aio::Cancelled;
use trunkline_format::btree::{
    BtreePage, Cut, Direction, Entry, Fault, KeyRanges, LeafEnd, Meta, Step,
};
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
    /// The damage that was met while searching for this key.
    pub(super) failed: Option<BtreeError>,
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
    groups: VecDeque<Group>,
    level: u32,
    /// The pages of the level below.
    below: Vec<Group>,
    /// Groups of the current level that came through a link to the right, to recognize an endless loop.
    right_groups: u64,
}

/// A page with the keys to search for on it.
type Group = (BlockNo, Vec<Search>);

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
            right_groups: 0,
        }
    }

    /// Starts to look up keys. `None` stands for a key that can't match anything.
    pub(super) fn start(&mut self, keys: &[Option<KeyRanges>]) {
        self.pages.clear();
        self.meta_requested = false;
        (self.groups, self.below, self.right_groups) = (VecDeque::new(), Vec::new(), 0);
        let searches = keys
            .iter()
            .enumerate()
            .filter_map(|(key, ranges)| Some(Search { key, from: ranges.as_ref()?.start() }));
        self.start = searches.collect();
        // Neighbouring keys share pages.
        if let Some(ranges) = keys.iter().flatten().next() {
            self.start.sort_by(|one, other| ranges.compare_starts(&one.from, &other.from));
        }
    }

    /// Goes on until all keys have been looked up, or until it has to wait. The result of key `n` is
    /// in `found[n]`. If several keys have met the same damage, only the first of them has the error.
    ///
    /// # Errors
    /// The session was cancelled.
    pub(super) fn poll(
        &mut self,
        backend: &mut Backend,
        wait: &mut SourceWait<'_, '_>,
        keys: &[Option<KeyRanges>],
        found: &mut [KeyRows],
    ) -> Poll<Result<(), Cancelled>> {
        loop {
            if !self.start.is_empty() {
                ready!(self.begin(backend, wait, found))?;
                continue;
            }
            let Some((block, _)) = self.groups.front() else {
                if self.below.is_empty() {
                    return Poll::Ready(Ok(()));
                }
                self.level = self.level.saturating_sub(1);
                self.right_groups = 0;
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
            if let Err(ReadError::Cancelled) = polled {
                return Poll::Ready(Err(Cancelled));
            }
            let Some((_, searches)) = self.groups.pop_front() else { continue };
            let onward = match polled {
                Ok(Ok(onward)) => onward,
                Ok(Err(problem)) => {
                    fail(found, &searches, self.index.corrupt(block, problem));
                    continue;
                }
                Err(error) => {
                    fail(found, &searches, error.into());
                    continue;
                }
            };
            let mut right_groups = Vec::new();
            for (search, step) in searches.into_iter().zip(onward) {
                match step {
                    Ok(Step::Here(_)) => {}
                    Ok(Step::Down(child)) => push(&mut self.below, child, search),
                    Ok(Step::Right(right)) => push(&mut right_groups, right, search),
                    Err(problem) => fail(found, &[search], self.index.corrupt(block, problem)),
                }
            }
            for (right, searches) in right_groups {
                self.right_groups += 1;
                // A page is reached by a link from one other page only, so in a sound index, there are
                // about as many such groups as splits that were not finished.
                let blocks = self.sizes.index_blocks;
                if self.right_groups > u64::from(blocks) + 100 {
                    fail(
                        found,
                        &searches,
                        self.index.corrupt(right, BtreeProblem::Loop { blocks }),
                    );
                    continue;
                }
                self.groups.push_back((right, searches));
                self.pages.extend([right]);
            }
        }
    }

    /// Begins at the fast root.
    fn begin(
        &mut self,
        backend: &mut Backend,
        wait: &mut SourceWait<'_, '_>,
        found: &mut [KeyRows],
    ) -> Poll<Result<(), Cancelled>> {
        let meta = match self.meta {
            Some(meta) => meta,
            None => {
                if !std::mem::replace(&mut self.meta_requested, true) {
                    self.pages.extend([0]);
                }
                let polled =
                    ready!(self.pages.poll_page(backend, wait, |_, page| Meta::parse(page)));
                let error = match polled {
                    Ok(Ok(meta)) => {
                        self.meta = Some(meta);
                        return Poll::Ready(Ok(()));
                    }
                    Ok(Err(fault)) => self.index.corrupt(0, BtreeProblem::Fault(fault)),
                    Err(ReadError::Cancelled) => return Poll::Ready(Err(Cancelled)),
                    Err(error) => error.into(),
                };
                self.meta_requested = false;
                fail(found, &std::mem::take(&mut self.start), error);
                return Poll::Ready(Ok(()));
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

/// Notes the error that these searches have met. It belongs to the first key, because the caller doesn't
/// get to the others.
fn fail(found: &mut [KeyRows], searches: &[Search], error: BtreeError) {
    let first = searches.iter().map(|search| search.key).min();
    if let Some(rows) = first.and_then(|key| found.get_mut(key)) {
        rows.failed = Some(error);
    }
}

/// Adds a search to the last group, or begins another group.
fn push(groups: &mut Vec<Group>, block: BlockNo, search: Search) {
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
    /// Returns where each search goes on, or what is wrong with the entries that it has met. Those that
    /// end here have [`Step::Here`].
    ///
    /// # Errors
    /// The page can't be searched at all.
    fn search(
        &self,
        bytes: &PageBytes,
        searches: &[Search],
        found: &mut [KeyRows],
    ) -> Result<Vec<Result<Step, BtreeProblem>>, BtreeProblem> {
        let page = BtreePage::parse(bytes).map_err(BtreeProblem::Fault)?;
        if !page.is_deleted() && page.level() != self.level {
            return Err(BtreeProblem::Level { found: page.level(), expected: self.level });
        }
        let onward = searches.iter().map(|search| {
            let ranges = self.keys.get(search.key).and_then(Option::as_ref);
            let (Some(ranges), Some(rows)) = (ranges, found.get_mut(search.key)) else {
                unreachable!("a search for key {} of {}", search.key, self.keys.len());
            };
            self.search_for(&page, ranges, &search.from, rows)
        });
        Ok(onward.collect())
    }

    /// One search.
    fn search_for(
        &self,
        page: &BtreePage<'_>,
        ranges: &KeyRanges,
        from: &Cut,
        found: &mut KeyRows,
    ) -> Result<Step, BtreeProblem> {
        let step = ranges.step(page, from).map_err(BtreeProblem::Fault)?;
        if let Step::Here(_) = step {
            if self.level > 0 {
                return Err(BtreeProblem::Fault(Fault::LeafLevel { found: page.level() }));
            }
            self.search_leaf(page, ranges, from, found)?;
        }
        Ok(step)
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
        let backward = ranges.direction() == Direction::Backward;
        let each = |entry: &Entry<'_>| {
            let item = entry.item();
            let first = found.rows.len();
            for tid in entry.rows() {
                if tid.item == 0 {
                    problem = Some(BtreeProblem::Fault(Fault::NoRow { item }));
                } else if tid.block >= blocks {
                    problem = Some(BtreeProblem::NoSuchBlock { item, tid, blocks });
                } else {
                    found.rows.push((tid, (self.block, item)));
                }
            }
            if backward {
                found.rows.get_mut(first..).unwrap_or_default().reverse();
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
