//! Whether the pages of a B-tree fit together: levels, links, separators, and order across pages.
//!
//! ```text
//!   level n+1     │ ∞ │ k │ m │             each separator is the high key to the left of its child,
//!                  │   │   │                each child the next page of its level
//!   level n       a k──b m──c ∞             links go both ways, entries of b are above k
//! ```
//! Levels are walked from the root's down to the leaves, so that each page of a level is met by the
//! downlink that leads to it. Pages that are deleted, or half so, have none, nor has the right half
//! of a split that was not finished.

use std::cmp::Ordering;

use trunkline_format::BlockNo;
use trunkline_format::btree::{BtreePage, Entry, Fault, KeyLayout, Meta};

use super::problem::{ContentProblem, LinkProblem};
use crate::btree::{BtreeError, BtreeProblem, Downlink, Index, LevelPage, LevelWalk};
use crate::pool::{Backend, ReadError};
use crate::read_stream::StreamOptions;

/// Who hears of an index's pages and problems.
pub(super) trait Visitor {
    /// A live leaf.
    ///
    /// # Errors
    /// An entry cannot be taken apart.
    fn leaf(&mut self, block: BlockNo, page: &BtreePage<'_>) -> Result<(), Fault>;

    /// Something is wrong.
    fn problem(&mut self, block: BlockNo, item: Option<u16>, problem: ContentProblem);

    /// A page is done, of whatever level; false to stop.
    ///
    /// # Errors
    /// The session was cancelled.
    fn page_done(&mut self, backend: &mut Backend) -> Result<bool, ReadError>;
}

/// Checks an index, or only visits its leaves. False: it could not be followed to its end.
///
/// # Errors
/// The session was cancelled.
pub(super) fn check(
    index: &Index,
    backend: &mut Backend,
    options: StreamOptions,
    leaves_only: bool,
    visitor: &mut impl Visitor,
) -> Result<bool, ReadError> {
    let checked = check_levels(index, backend, options, leaves_only, visitor);
    let (block, problem) = match checked {
        Ok(whole) => return Ok(whole),
        Err(BtreeError::Read(ReadError::Cancelled)) => return Err(ReadError::Cancelled),
        Err(BtreeError::Read(error)) => {
            let block = error.block().unwrap_or_default();
            (block, ContentProblem::Unreadable(error.to_string()))
        }
        Err(BtreeError::Corrupt { location, problem }) => {
            (location.block().unwrap_or_default(), problem_of(problem))
        }
    };
    visitor.problem(block, item_of(&problem), problem);
    Ok(false)
}

fn check_levels(
    index: &Index,
    backend: &mut Backend,
    options: StreamOptions,
    leaves_only: bool,
    visitor: &mut impl Visitor,
) -> Result<bool, BtreeError> {
    let meta = index.meta(backend)?;
    let top = if leaves_only { 0 } else { meta.level };
    for level in (0..=top).rev() {
        let mut walk = LevelWalk::of_level(index, backend, level, options)?;
        let mut fast_root = false;
        let mut check = Level { meta, layout: index.layout(), left: None, high: Vec::new() };
        while let Some(found) = walk.next(backend)? {
            let LevelPage { block, page, downlink } = found;
            let at = |fault| index.corrupt(block, BtreeProblem::Fault(fault));
            let page = BtreePage::parse(page).map_err(at)?;
            if !leaves_only {
                check.page(block, &page, downlink.as_ref(), visitor).map_err(at)?;
            }
            fast_root |= (block, level) == (meta.fast_root, meta.fast_level) && is_alone(&page);
            if level == 0 && !page.is_ignored() {
                visitor.leaf(block, &page).map_err(at)?;
            }
            if !visitor.page_done(backend)? {
                return Ok(false);
            }
        }
        if let Some(&Downlink { parent, item, child, .. }) = walk.unmatched_downlink()
            && !leaves_only
        {
            let problem = LinkProblem::WrongDownlink { parent, item, child };
            visitor.problem(child, None, ContentProblem::IndexLink(problem));
        }
        // A level above the root's, which has no page, is told of with the root's.
        let named = meta.fast_level.min(top) == level;
        if named && !fast_root && !leaves_only && (meta.root, meta.fast_root) != (0, 0) {
            let (found, level) = (meta.fast_root, meta.fast_level);
            let problem = LinkProblem::FastRoot { found, level };
            visitor.problem(0, None, ContentProblem::IndexLink(problem));
        }
    }
    Ok(true)
}

/// Whether everything that its level has is in this page, or in the other half of a split of it
/// that was not finished.
fn is_alone(page: &BtreePage<'_>) -> bool {
    let right = page.right().is_some() && !page.is_split_incomplete();
    !page.is_ignored() && page.left().is_none() && !right
}

fn problem_of(problem: BtreeProblem) -> ContentProblem {
    match problem {
        BtreeProblem::Fault(fault) => ContentProblem::IndexPage(fault),
        BtreeProblem::Level { found, expected } => {
            ContentProblem::IndexLink(LinkProblem::Level { found, expected })
        }
        BtreeProblem::Loop { blocks } => ContentProblem::IndexLink(LinkProblem::Loop { blocks }),
    }
}

/// The line pointer that a problem names in its own text.
fn item_of(problem: &ContentProblem) -> Option<u16> {
    match problem {
        ContentProblem::IndexPage(fault) => fault.item(),
        _ => None,
    }
}

/// One level, from its left end to where the check is.
struct Level<'l> {
    meta: Meta,
    layout: &'l KeyLayout,
    left: Option<Left>,
    /// The high key of the last live page.
    high: Vec<u8>,
}

/// The page before.
#[derive(Clone, Copy)]
struct Left {
    block: BlockNo,
    split_incomplete: bool,
}

impl Level<'_> {
    fn page(
        &mut self,
        block: BlockNo,
        page: &BtreePage<'_>,
        downlink: Option<&Downlink>,
        visitor: &mut impl Visitor,
    ) -> Result<(), Fault> {
        let rows = self.meta.orders_rows();
        let left = self.left.replace(Left { block, split_incomplete: page.is_split_incomplete() });
        let mut link = |problem| {
            visitor.problem(block, None, ContentProblem::IndexLink(problem));
        };
        let (found, expected) =
            (page.left().unwrap_or_default(), left.map_or(0, |left| left.block));
        if found != expected {
            link(LinkProblem::Left { found, expected });
        }
        if page.is_ignored() {
            return Ok(());
        }
        let root = self.meta.root;
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
            visitor.problem(block, fault.item(), ContentProblem::IndexPage(fault));
        }
        self.high.clear();
        if page.right().is_some() {
            self.high.extend_from_slice(page.item(1)?);
        }
        Ok(())
    }

    /// Whether `bound` is the high key of the live page before; both are empty at the left end.
    fn is_high_key(&self, bound: &[u8], rows: bool) -> Result<bool, Fault> {
        if bound.is_empty() || self.high.is_empty() {
            return Ok(bound.is_empty() == self.high.is_empty());
        }
        let bound = Entry::of_separator(1, bound)?;
        let high = Entry::of_separator(1, &self.high)?;
        self.layout.same_separator(&bound, &high, rows)
    }

    /// Whether the first entry that has a key is above the high key of the live page before, as far
    /// as the order is known.
    fn is_above_left(&self, page: &BtreePage<'_>, rows: bool) -> Result<bool, Fault> {
        let first = if page.is_leaf() { page.first() } else { page.first() + 1 };
        if self.high.is_empty() || page.count() < first {
            return Ok(true);
        }
        let high = Entry::of_separator(1, &self.high)?;
        let entry = page.entry(first)?;
        match self.layout.compare_entries(&high, &entry, rows) {
            Ok(Ordering::Less) | Err(Fault::UnknownOrder { .. }) => Ok(true),
            Ok(Ordering::Equal) => Ok(!rows),
            Ok(Ordering::Greater) => Ok(false),
            Err(fault) => Err(fault),
        }
    }
}
