//! An index, and access to its pages.
//!
//! All searches and walks read pages through [`Index`], which takes the content lock and checks the
//! level of each page. This makes sure that no caller follows a damaged downlink into the wrong
//! level.

use trunkline_aio::facade::Arc;
use trunkline_format::btree::{BtreePage, Fault, KeyColumn, KeyLayout, Meta, Order};
use trunkline_format::deform::Attribute;
use trunkline_format::{Align, BlockNo, PageBytes};

use super::error::{BtreeError, BtreeProblem};
use crate::pool::{Backend, ReadError};
use crate::storage::Relation;

/// A B-tree index: its main fork and its columns. Clones are cheap.
#[derive(Debug, Clone)]
pub struct Index {
    relation: Relation,
    layout: Arc<KeyLayout>,
}

impl Index {
    /// An index with the columns of `layout`.
    pub fn new(relation: Relation, layout: KeyLayout) -> Self {
        Self { relation, layout: Arc::new(layout) }
    }

    /// The index of a TOAST table, on `chunk_id` (an `oid`) and `chunk_seq` (an `int4`).
    pub fn of_toast(relation: Relation) -> Self {
        let column = |order| {
            let attribute = Attribute { len: 4, align: Align::Int };
            KeyColumn { attribute, order, descending: false, nulls_first: false }
        };
        Self::new(relation, KeyLayout::new(vec![column(Order::Oid), column(Order::Int4)], 2))
    }

    /// The index's files.
    pub fn relation(&self) -> &Relation {
        &self.relation
    }

    /// The index's columns.
    pub fn layout(&self) -> &KeyLayout {
        &self.layout
    }

    /// Reads the metapage (block 0), which points to the root and the fast root.
    ///
    /// # Errors
    /// See [`BtreeError`].
    pub fn meta(&self, backend: &mut Backend) -> Result<Meta, BtreeError> {
        self.read_page(backend, 0, Meta::parse)
    }

    /// Locks a page in share mode and passes it to the `read` closure. We release the lock and the
    /// pin before returning, so the closure must copy anything it needs.
    pub(crate) fn read_page<T>(
        &self,
        backend: &mut Backend,
        block: BlockNo,
        read: impl FnOnce(&PageBytes) -> Result<T, Fault>,
    ) -> Result<T, BtreeError> {
        let pin = backend.read(&self.relation, block)?;
        let page = backend.read_lock(pin.page()).map_err(ReadError::from)?;
        read(&page).map_err(|fault| self.corrupt(block, BtreeProblem::Fault(fault)))
    }

    /// Passes a page to `read` after checking that it is on `level`.
    pub(crate) fn read_level_page<T>(
        &self,
        backend: &mut Backend,
        block: BlockNo,
        level: u32,
        read: impl FnOnce(&BtreePage<'_>) -> Result<T, Fault>,
    ) -> Result<T, BtreeError> {
        let result = self.read_page(backend, block, |page| {
            let page = BtreePage::parse(page)?;
            // In old versions, a deleted page stores the deleting transaction's ID where the level
            // would be.
            if !page.is_deleted() && page.level() != level {
                return Ok(Err(page.level()));
            }
            read(&page).map(Ok)
        })?;
        result.map_err(|found| self.corrupt(block, BtreeProblem::Level { found, expected: level }))
    }

    /// Returns the next level down, or an error if `level` is already the leaf level. This error
    /// can occur only if we got here through a deleted page, because we don't check the level of
    /// deleted pages.
    pub(crate) fn level_below(&self, block: BlockNo, level: u32) -> Result<u32, BtreeError> {
        let fault = BtreeProblem::Fault(Fault::LeafLevel { found: level });
        level.checked_sub(1).ok_or_else(|| self.corrupt(block, fault))
    }

    /// Makes an error about a page of this index.
    pub(crate) fn corrupt(&self, block: BlockNo, problem: BtreeProblem) -> BtreeError {
        BtreeError::Corrupt { location: self.relation.location(block), problem }
    }
}

/// Counts the steps we take along right links. A level can't have more right links than the index
/// has blocks, so if we take more steps than that, the links must form a loop. PostgreSQL doesn't
/// check for this, so there the search would continue until the query is cancelled.
#[derive(Debug, Default)]
pub(crate) struct RightSteps {
    taken: BlockNo,
    blocks: Option<BlockNo>,
}

/// Number of steps to the right that we allow before we start checking for a loop. Most searches
/// take fewer steps than this, so they avoid the system call needed to get the size of the index.
const STEPS_FREE: BlockNo = 100;

impl RightSteps {
    /// Counts a step to `block`.
    pub(crate) fn count(&mut self, index: &Index, block: BlockNo) -> Result<(), BtreeError> {
        self.taken = self.taken.saturating_add(1);
        if self.taken <= STEPS_FREE {
            return Ok(());
        }
        let blocks = match self.blocks {
            Some(blocks) => blocks,
            None => *self.blocks.insert(index.relation.blocks().map_err(ReadError::from)?),
        };
        if self.taken > blocks.max(STEPS_FREE) {
            return Err(index.corrupt(block, BtreeProblem::Loop { blocks }));
        }
        Ok(())
    }
}
