//! Checks the structure of a B-tree across pages, like `bt_index_parent_check` in `amcheck`:
//! levels, sibling links, downlinks and key order.
//!
//! ```text
//!   level n+1     │ ∞ │ k │ m │             the key of a downlink is the high key of the page to
//!                  │   │   │                the left of its child; the children are the next level
//!   level n       a k──b m──c ∞             links go both ways, entries of b are above k
//! ```
//!
//! We check the tree level by level, from the root down to the leaves, and compare each page with
//! its downlink. It's OK if a deleted or half-dead page has no downlink, and the same applies to
//! the right half of an unfinished split. All other pages must have a downlink, except for the
//! root.

use std::cmp::Ordering;

use trunkline_format::BlockNo;
use trunkline_format::btree::{BtreePage, Entry, Fault, KeyLayout, Meta};

use super::content_problem::ContentProblem;
use super::entry_collector::EntryCollector;
use super::link_problem::LinkProblem;
use crate::btree::{BtreeError, BtreeProblem, Downlink, LevelPage, LevelWalk};
use crate::pool::{Backend, ReadError};
use crate::read_stream::StreamOptions;

/// Walks an index and passes its leaves to the collector. The first walk also checks the structure
/// of the tree, while later walks only visit the leaves. If we find a page that is damaged or can't
/// be read, we report the problem and end the walk, because we can't be sure of reaching all of the
/// remaining pages.
///
/// # Errors
/// The session was cancelled.
pub(super) fn collect_entries(
    mut collector: EntryCollector<'_, '_, '_>,
    backend: &mut Backend,
    options: StreamOptions,
) -> Result<(), ReadError> {
    let whole = check_levels(backend, options, &mut collector).or_else(|error| {
        let (block, problem) = match error {
            BtreeError::Read(ReadError::Cancelled) => return Err(ReadError::Cancelled),
            BtreeError::Read(error) => {
                (error.block(), ContentProblem::Unreadable(error.to_string()))
            }
            BtreeError::Corrupt { location, problem } => {
                (location.block(), ContentProblem::IndexPage(problem))
            }
        };
        collector.problem(block.unwrap_or_default(), problem);
        Ok(false)
    })?;
    collector.finish(backend, options, whole)
}

/// Walks and checks the levels from the root down to the leaves. Returns false if the walk had to
/// end early.
fn check_levels(
    backend: &mut Backend,
    options: StreamOptions,
    collector: &mut EntryCollector<'_, '_, '_>,
) -> Result<bool, BtreeError> {
    let (index, leaves_only) = (&collector.index.index, !collector.first);
    let meta = index.meta(backend)?;
    // Start at the top, so that problems on the upper levels are reported before their consequences
    // on the lower ones.
    let top = if leaves_only { 0 } else { meta.level };
    for level in (0..=top).rev() {
        let mut walk = LevelWalk::of_level(index, backend, level, options)?;
        let mut fast_root = false;
        let mut check = LevelCheck { meta, layout: index.layout(), left: None, high: Vec::new() };
        while let Some(found) = walk.next(backend)? {
            let LevelPage { block, page, downlink } = found;
            let at = |fault| index.corrupt(block, BtreeProblem::Fault(fault));
            let page = BtreePage::parse(page).map_err(at)?;
            if !leaves_only {
                check.page(block, &page, downlink.as_ref(), collector).map_err(at)?;
            }
            fast_root |= (block, level) == (meta.fast_root, meta.fast_level) && is_alone(&page);
            if level == 0 && !page.is_ignored() {
                collector.leaf(block, &page);
            }
            if !collector.page_done(backend)? {
                return Ok(false);
            }
        }
        if let Some(&Downlink { parent, item, child, .. }) = walk.unmatched_downlink()
            && !leaves_only
        {
            let problem = LinkProblem::WrongDownlink { parent, item, child };
            collector.problem(child, ContentProblem::IndexLink(problem));
        }
        // In a damaged index, the metapage may claim that the fast root is on a level above the
        // root. Since no page has such a level, we report the problem when we check the root's
        // level.
        let named = meta.fast_level.min(top) == level;
        if named && !fast_root && !leaves_only && (meta.root, meta.fast_root) != (0, 0) {
            let (found, level) = (meta.fast_root, meta.fast_level);
            let problem = LinkProblem::FastRoot { found, level };
            collector.problem(0, ContentProblem::IndexLink(problem));
        }
    }
    Ok(true)
}

/// Whether the page is the only page on its level. If the page has an unfinished split, we don't
/// count the right half. The fast root must be such a page.
fn is_alone(page: &BtreePage<'_>) -> bool {
    let right = page.right().is_some() && !page.is_split_incomplete();
    !page.is_ignored() && page.left().is_none() && !right
}

/// The state for checking one level from left to right. We only keep what we need to compare the
/// next page with this one.
struct LevelCheck<'l> {
    meta: Meta,
    layout: &'l KeyLayout,
    left: Option<LeftSibling>,
    /// The high key of the last live page, which is a lower bound for the keys on the next page.
    /// Empty if we haven't seen a live page yet.
    high: Vec<u8>,
}

/// The page to the left of the current page, whether or not it is live.
#[derive(Clone, Copy)]
struct LeftSibling {
    block: BlockNo,
    split_incomplete: bool,
}

impl LevelCheck<'_> {
    /// Checks one page against its left sibling, its downlink and the rules for a single page.
    fn page(
        &mut self,
        block: BlockNo,
        page: &BtreePage<'_>,
        downlink: Option<&Downlink>,
        collector: &EntryCollector<'_, '_, '_>,
    ) -> Result<(), Fault> {
        let rows = self.meta.orders_rows();
        let left =
            self.left.replace(LeftSibling { block, split_incomplete: page.is_split_incomplete() });
        let link = |problem| collector.problem(block, ContentProblem::IndexLink(problem));
        // We check the left link of every page, because even deleted and half-dead pages keep their
        // links.
        let (found, expected) =
            (page.left().unwrap_or_default(), left.map_or(0, |left| left.block));
        if found != expected {
            link(LinkProblem::Left { found, expected });
        }
        // All other checks concern live pages only.
        if page.is_ignored() {
            return Ok(());
        }
        let root = self.meta.root;
        // The root flag must be set on the page that the metapage points to, and on no other page.
        if page.is_root() != (block == root) {
            link(LinkProblem::Root { expected: root });
        }
        match downlink {
            Some(Downlink { parent, item, bound, .. }) => {
                if !self.is_high_key(bound, rows)? {
                    link(LinkProblem::Separator { parent: *parent, item: *item });
                }
            }
            None => {
                let split = left.is_some_and(|left| left.split_incomplete);
                if block != root && !split {
                    link(LinkProblem::NoDownlink);
                }
            }
        }
        if let Some(left) = left
            && !self.is_above_left(page, rows)?
        {
            link(LinkProblem::BelowLeft { left: left.block });
        }
        let checked = page.check(rows).and_then(|()| self.layout.check(page, rows));
        if let Err(fault) = checked {
            collector.problem(block, ContentProblem::IndexPage(BtreeProblem::Fault(fault)));
        }
        // Remember this page's high key, so that we can compare it with the right sibling. The
        // rightmost page of a level has no high key.
        self.high.clear();
        if page.right().is_some() {
            self.high.extend_from_slice(page.item(1)?);
        }
        Ok(())
    }

    /// Whether `bound` is equal to the high key of the previous live page. For the leftmost page of
    /// a level, both must be empty.
    fn is_high_key(&self, bound: &[u8], rows: bool) -> Result<bool, Fault> {
        if bound.is_empty() || self.high.is_empty() {
            return Ok(bound.is_empty() == self.high.is_empty());
        }
        let bound = Entry::of_separator(1, bound)?;
        let high = Entry::of_separator(1, &self.high)?;
        self.layout.same_separator(&bound, &high, rows)
    }

    /// Whether the first key on the page is above the high key of the previous live page. Returns
    /// true if we don't know how the keys are ordered, because then only a server could compare
    /// them.
    fn is_above_left(&self, page: &BtreePage<'_>, rows: bool) -> Result<bool, Fault> {
        // On an internal page, the first downlink has no key, because it counts as minus infinity.
        let first = if page.is_leaf() { page.first() } else { page.first() + 1 };
        if self.high.is_empty() || page.count() < first {
            return Ok(true);
        }
        let high = Entry::of_separator(1, &self.high)?;
        let entry = page.entry(first)?;
        match self.layout.compare_entries(&high, &entry, rows) {
            Ok(Ordering::Less) | Err(Fault::UnknownOrder { .. }) => Ok(true),
            // Since version 4 of nbtree, the TID is part of the key, so no two keys can be equal.
            // In older indexes, entries with equal keys may continue on the next page.
            Ok(Ordering::Equal) => Ok(!rows),
            Ok(Ordering::Greater) => Ok(false),
            Err(fault) => Err(fault),
        }
    }
}
