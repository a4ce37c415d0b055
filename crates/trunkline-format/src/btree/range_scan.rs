//! A scan of key ranges on one page: the matching entries of a leaf, and the children of a page that
//! may have matches.
//!
//! ```text
//!   leaf     . . . m m m . . . m m . .        . binary search for a cut, m match
//!   parent   │s1   │s2   │s3   │s4            a child is skipped if the next place with a match
//!                                             is behind the end of the child
//! ```
//! On a leaf we jump from one run of matches to the next, and we know the end of a run from its first
//! entry. In a damaged index, entries are in the wrong order, so such jumps may miss some of them;
//! finding out what is missing is what verification is for. But we do compare each entry that we
//! return with the one before it, because the caller relies on the order.

use super::entry::Entry;
use super::fault::Fault;
use super::key::Key;
use super::layout::{KeyLayout, Step};
use super::page::BtreePage;
use super::ranges::{Cut, Direction, KeyRanges, Verdict};
use crate::ids::BlockNo;
use std::cmp::Ordering;

/// How a scan goes on after a leaf.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum LeafEnd {
    /// There are no more matches.
    Ended,
    /// There may be matches behind this cut.
    Goes {
        /// The next match is behind it.
        on: Cut,
        /// Pages between this leaf and the one where the cut leads have no matches, if there are any.
        /// If this is false, the neighbour is next.
        skips: bool,
    },
}

/// The children of a page that may have matches.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Children {
    /// The children's block numbers, in the order of the scan.
    pub blocks: Vec<BlockNo>,
    /// Behind this cut there may be more matches, in the children of other pages. `None` if there
    /// can't be any.
    pub rest: Option<Cut>,
    /// The cut may be far behind this page, or even lead to its last child in the direction of the
    /// scan, so the scan descends again. If this is false, the neighbour is next.
    pub skips: bool,
}

/// The entries of a page in the order of a scan.
#[derive(Clone, Copy)]
struct Items<'p> {
    page: BtreePage<'p>,
    direction: Direction,
    first: u16,
    len: u16,
}

impl<'p> Items<'p> {
    fn of(page: &BtreePage<'p>, direction: Direction) -> Self {
        let first = page.first();
        let len = (page.count() + 1).saturating_sub(first);
        Self { page: *page, direction, first, len }
    }

    fn entry(&self, at: u16) -> Result<Entry<'p>, Fault> {
        let item = match self.direction {
            Direction::Forward => self.first + at,
            Direction::Backward => self.first + (self.len - 1).saturating_sub(at),
        };
        self.page.entry(item)
    }
}

impl KeyRanges {
    /// Calls `each` for the matching entries of a leaf that are behind `from`, in the order of the
    /// scan. Entries that are marked dead are left out.
    ///
    /// `layout` must be the one that the ranges were made for. `last` has the bytes of the last entry
    /// that was returned, and is updated; it is empty at the start of a scan. `orders_rows` must be
    /// the result of [`super::Meta::orders_rows`].
    ///
    /// # Errors
    /// The page's entries are damaged, out of order, or can't be compared.
    pub fn scan_leaf<'p>(
        &self,
        layout: &KeyLayout,
        page: &BtreePage<'p>,
        from: &Cut,
        orders_rows: bool,
        last: &mut Vec<u8>,
        mut each: impl FnMut(&Entry<'p>),
    ) -> Result<LeafEnd, Fault> {
        if page.is_ignored() {
            return Ok(LeafEnd::Goes { on: from.clone(), skips: false });
        }
        let items = Items::of(page, self.direction());
        let mut order = EntryOrder { layout, direction: self.direction(), orders_rows };
        let mut from = from.clone();
        let mut at = self.seek(&items, 0, &from)?;
        let mut before: Option<Entry<'p>> = None;
        let mut ended = false;
        while at < items.len {
            let entry = items.entry(at)?;
            match self.verdict_of(&entry)? {
                Verdict::End => {
                    ended = true;
                    break;
                }
                Verdict::Seek(cut) => {
                    // Go on by at least one entry, even if the entries are in the wrong order.
                    at = self.seek(&items, at + 1, &cut)?;
                    from = cut;
                }
                Verdict::Match(end) => {
                    let end = self.seek(&items, at + 1, &end)?;
                    while at < end {
                        let entry = items.entry(at)?;
                        match &before {
                            Some(before) => order.check(before, &entry)?,
                            None => order.check_last(last, &entry)?,
                        }
                        if !entry.is_dead() && self.is_row_match(&entry)? {
                            each(&entry);
                        }
                        before = Some(entry);
                        at += 1;
                    }
                }
            }
        }
        if let Some(before) = before {
            last.clear();
            last.extend_from_slice(page.item(before.item())?);
        }
        if ended { Ok(LeafEnd::Ended) } else { self.leaf_end(page, &items, from) }
    }

    /// Where the scan goes on after the last entry of a leaf.
    fn leaf_end(
        &self,
        page: &BtreePage<'_>,
        items: &Items<'_>,
        from: Cut,
    ) -> Result<LeafEnd, Fault> {
        // Everything that follows is at or behind this entry.
        let bound = match self.direction() {
            Direction::Forward => match page.high_key()? {
                Some(high) => Some(high),
                None => return Ok(LeafEnd::Ended),
            },
            Direction::Backward if page.left().is_none() => return Ok(LeafEnd::Ended),
            Direction::Backward if items.len == 0 => None,
            Direction::Backward => Some(items.entry(items.len - 1)?),
        };
        let Some(bound) = bound else { return Ok(LeafEnd::Goes { on: from, skips: false }) };
        Ok(match self.behind(&bound, &from)? {
            Some((on, skips)) => LeafEnd::Goes { on, skips },
            None => LeafEnd::Ended,
        })
    }

    /// The cut from where on there may be matches, of those at or behind both `bound` and `from`, and
    /// whether that is further away than `bound` itself, so that there is something to skip.
    fn behind(&self, bound: &Entry<'_>, from: &Cut) -> Result<Option<(Cut, bool)>, Fault> {
        let at_bound = self.with_columns(bound, |found| {
            let values = found.iter().map(|key| key.map(Box::from)).collect();
            // In a scan to the left, a separator whose columns were truncated is behind all entries
            // that have its remaining columns.
            let stored = bound.columns(self.columns().len());
            let truncated = stored < self.columns().len() && stored <= found.len();
            let passed = truncated && self.direction() == Direction::Backward;
            Ok(Cut { values, passed })
        })?;
        if self.compare_cuts(&at_bound, from)? == Ordering::Less {
            return Ok(Some((from.clone(), true)));
        }
        let Some(next) = self.at_least(at_bound.clone())? else { return Ok(None) };
        let further = self.compare_cuts(&at_bound, &next)? == Ordering::Less;
        Ok(Some((next, further)))
    }

    fn verdict_of(&self, entry: &Entry<'_>) -> Result<Verdict, Fault> {
        self.with_columns(entry, |found| self.verdict(found))
    }

    fn is_row_match(&self, entry: &Entry<'_>) -> Result<bool, Fault> {
        match self.has_rows() {
            true => self.with_columns(entry, |found| self.passes_rows(found)),
            false => Ok(true),
        }
    }

    /// Passes on the leading columns of an entry, as many as matter and as the entry has.
    fn with_columns<T>(
        &self,
        entry: &Entry<'_>,
        use_them: impl FnOnce(&[Key<'_>]) -> Result<T, Fault>,
    ) -> Result<T, Fault> {
        let needed = self.columns_needed();
        let mut stored = [None; super::MAX_INDEX_KEYS];
        let mut count = 0;
        for (place, value) in stored.iter_mut().zip(entry.attributes(self.columns())).take(needed) {
            *place = value?;
            count += 1;
        }
        // Only values with a varlena header need room, and only if they are compressed.
        let mut rooms: Vec<Vec<u8>> = Vec::new();
        let varlena = self.columns().iter().take(count).any(|column| column.attribute.len == -1);
        if varlena {
            rooms.resize(count, Vec::new());
        }
        let mut keys = [None; super::MAX_INDEX_KEYS];
        let mut room = rooms.iter_mut();
        for (at, (key, column)) in keys.iter_mut().zip(self.columns()).take(count).enumerate() {
            let Some(stored) = stored.get(at).copied().flatten() else {
                room.next();
                continue;
            };
            let fault = Fault::Value { item: entry.item(), column: at as u16 + 1 };
            *key = match room.next() {
                Some(room) => Some(column.payload(stored, room).map_err(|_| fault)?),
                None => Some(stored),
            };
        }
        use_them(keys.get(..count).unwrap_or_default())
    }

    /// The first of the items from `at` on that isn't before the cut. Since it's often near, we double
    /// the steps first.
    fn seek(&self, items: &Items<'_>, at: u16, cut: &Cut) -> Result<u16, Fault> {
        let (mut low, mut step) = (at, 1);
        let mut end = items.len;
        while low < end {
            let probe = low.saturating_add(step - 1).min(end - 1);
            if !self.entry_is_before(&items.entry(probe)?, cut)? {
                end = probe;
                break;
            }
            low = probe + 1;
            step = step.saturating_mul(2);
        }
        while low < end {
            let middle = low + (end - low) / 2;
            match self.entry_is_before(&items.entry(middle)?, cut)? {
                true => low = middle + 1,
                false => end = middle,
            }
        }
        Ok(low.min(items.len))
    }

    /// One step of the descent to the leaf where a scan that starts at `from` has its first entry.
    /// On level 1, the caller uses [`Self::children`] instead of going down.
    ///
    /// # Errors
    /// The page's entries are damaged, or their order is unknown.
    pub fn step(&self, page: &BtreePage<'_>, from: &Cut) -> Result<Step, Fault> {
        if let Some(right) = page.right()
            && (page.is_ignored() || self.is_further_right(page, from)?)
        {
            return Ok(Step::Right(right));
        }
        if page.is_ignored() || page.is_leaf() {
            return Ok(Step::Here(page.first()));
        }
        let item = self.child_item(page, from)?;
        page.entry(item)?.child().map(Step::Down).ok_or(Fault::Kind { item })
    }

    /// Whether the scan's first entry is on a page further right, because the page was split after
    /// its parent was written.
    ///
    /// # Errors
    /// The high key is damaged.
    pub fn is_further_right(&self, page: &BtreePage<'_>, from: &Cut) -> Result<bool, Fault> {
        match page.high_key()? {
            Some(high) => self.entry_is_left_of(&high, from),
            None => Ok(false),
        }
    }

    /// The last child whose lower bound is to the left of the cut.
    fn child_item(&self, page: &BtreePage<'_>, from: &Cut) -> Result<u16, Fault> {
        let first = page.first();
        let (mut low, mut end) = (first + 1, page.count() + 1);
        if end < low {
            return Err(Fault::NoDownlink);
        }
        while low < end {
            let middle = low + (end - low) / 2;
            match self.entry_is_left_of(&page.entry(middle)?, from)? {
                true => low = middle + 1,
                false => end = middle,
            }
        }
        Ok(low - 1)
    }

    /// The children of a page above the leaves that may have matches behind `from`.
    ///
    /// # Errors
    /// The page's entries are damaged, or their order is unknown.
    pub fn children(&self, page: &BtreePage<'_>, from: &Cut) -> Result<Children, Fault> {
        let mut children = Children { blocks: Vec::new(), rest: None, skips: false };
        let mut from = from.clone();
        let forward = self.direction() == Direction::Forward;
        let (first, last) = (page.first(), page.count());
        let mut item = self.child_item(page, &from)?;
        let mut skipped = false;
        loop {
            // The bound of the child on the side where the scan leaves it.
            let far = match forward {
                true if item == last => page.high_key()?,
                true => Some(page.entry(item + 1)?),
                false if item == first => None,
                false => Some(page.entry(item)?),
            };
            let Some(far) = far else {
                // The end of the level, or a child whose lower bound isn't on this page.
                let block = page.entry(item)?.child().ok_or(Fault::Kind { item })?;
                if forward {
                    children.blocks.push(block);
                } else {
                    // If the scan has skipped entries, it may skip this child too. It finds out by
                    // descending again.
                    if !skipped {
                        children.blocks.push(block);
                    }
                    children.rest = (skipped || page.left().is_some()).then_some(from);
                    children.skips = skipped;
                }
                return Ok(children);
            };
            if !self.entry_is_before(&far, &from)? {
                children.blocks.push(page.entry(item)?.child().ok_or(Fault::Kind { item })?);
            }
            let Some((rest, further)) = self.behind(&far, &from)? else { return Ok(children) };
            (from, skipped) = (rest, further);
            if forward && item == last {
                children.rest = Some(from);
                children.skips = skipped;
                return Ok(children);
            }
            // The next child whose far bound isn't before the cut.
            item = match forward {
                true => self.child_item(page, &from)?.max(item + 1),
                false => self.child_item(page, &from)?.min(item - 1),
            };
        }
    }
}

/// Compares each entry that a scan returns with the one before it.
struct EntryOrder<'l> {
    layout: &'l KeyLayout,
    direction: Direction,
    orders_rows: bool,
}

impl EntryOrder<'_> {
    fn check(&mut self, before: &Entry<'_>, entry: &Entry<'_>) -> Result<(), Fault> {
        let (left, right) = match self.direction {
            Direction::Forward => (before, entry),
            Direction::Backward => (entry, before),
        };
        match self.layout.compare_entries(left, right, self.orders_rows) {
            Ok(Ordering::Greater) => Err(Fault::Order { item: entry.item() }),
            Ok(_) | Err(Fault::UnknownOrder { .. }) => Ok(()),
            Err(fault) => Err(fault),
        }
    }

    fn check_last(&mut self, last: &[u8], entry: &Entry<'_>) -> Result<(), Fault> {
        if last.is_empty() {
            return Ok(());
        }
        self.check(&Entry::of_leaf(1, last)?, entry)
    }
}
