//! **The descent**: from the root to the page of a level that a key belongs to.
//!
//! The descent of an insert finishes each split that it finds unfinished (`_bt_moveright` with `forupdate`). It locks one page at a
//! time, so the page that it returns may have been split since. The caller moves right.

use std::cmp::Ordering;

use trunkline_format::BlockNo;
use trunkline_format::btree::{BtreePage, Entry, Fault, KeyLayout, Place};

use super::error::BtreeWriteError;
use super::writer::BtreeWriter;
use crate::btree::RightSteps;
use crate::heap_writer::HeapSession;

/// What is searched for.
#[derive(Clone, Copy, Debug)]
pub(super) struct Sought<'k> {
    /// An entry with the key.
    pub(super) entry: Entry<'k>,
    /// Whether the heap TID is compared as the last key column. If not, the search finds the first entry with the key.
    pub(super) with_row: bool,
}

impl Sought<'_> {
    /// Where it is on a page.
    pub(super) fn place_on(
        &self,
        layout: &KeyLayout,
        page: &BtreePage<'_>,
    ) -> Result<Place, Fault> {
        page.search(|entry| {
            Ok(layout.compare_entries(entry, &self.entry, self.with_row)? == Ordering::Less)
        })
    }
}

/// Where a descent goes after a page.
enum Next {
    FinishSplit,
    Right(BlockNo),
    Down(BlockNo),
    Nowhere,
}

impl BtreeWriter {
    /// Finds the page of a level that a key belongs to. The page may be split before the caller locks it.
    pub(super) fn descend(
        &mut self,
        session: &mut HeapSession<'_>,
        sought: &Sought<'_>,
        level: u32,
    ) -> Result<BlockNo, BtreeWriteError> {
        let meta = self.meta(session.backend)?;
        let (mut block, mut at) = (meta.root, meta.level);
        let mut steps = RightSteps::default();
        while at > level {
            let layout = self.index.layout();
            let next = self.index.read_level_page(session.backend, block, at, |page| {
                if page.is_split_incomplete() && !page.is_ignored() {
                    return Ok(Next::FinishSplit);
                }
                match sought.place_on(layout, page)? {
                    Place::Right(right) => Ok(Next::Right(right)),
                    Place::Item(_) if page.is_ignored() => Ok(Next::Nowhere),
                    Place::Item(item) => page.child_before(item).map(Next::Down),
                }
            })?;
            match next {
                // The page is looked at again.
                Next::FinishSplit => self.finish_split(session, block, at)?,
                Next::Right(right) => {
                    steps.count(&self.index, right)?;
                    block = right;
                }
                Next::Down(child) => (block, at) = (child, self.index.level_below(block, at)?),
                Next::Nowhere => {
                    let location = self.index.relation().location(block);
                    return Err(BtreeWriteError::EndOfLevel { location });
                }
            }
        }
        Ok(block)
    }
}
