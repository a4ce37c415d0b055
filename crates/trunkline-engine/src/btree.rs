//! B-tree indexes through the pool: rows by key, and all pages of a level from left to right.
//!
//! ```text
//!   Index ── scan(from, to) ──▶ root ─▶ … ─▶ leaf ─▶ leaf      rows of one leaf at a time
//!         └─ LevelWalk ───────▶ page ─▶ page ─▶ page           with look-ahead: the level above
//!                                                              says which pages come
//! ```
//!
//! What pages mean and where a search goes is `trunkline_format::btree`'s matter. Never more than
//! one page is pinned but for what a walk has ahead: what is wanted of a page is copied out before
//! the next is read, so the smallest pool does.
//!
//! A damaged index ends in an error, not in a circle: each step down must lead one level down, and
//! nobody goes right more often than the index has blocks.
//!
//! ```no_run
//! # use trunkline_engine::btree::{BtreeError, Index};
//! # use trunkline_engine::pool::Backend;
//! # use trunkline_engine::storage::Relation;
//! # use trunkline_format::Tid;
//! fn chunks(backend: &mut Backend, toast: Relation, value: u32) -> Result<Vec<Tid>, BtreeError> {
//!     let value = value.to_le_bytes();
//!     let key: &[Option<&[u8]>] = &[Some(&value)];
//!     let mut scan = Index::of_toast(toast).scan(backend, key, key)?;
//!     let mut rows = Vec::new();
//!     while scan.next_page(backend, &mut rows)? {}
//!     Ok(rows)
//! }
//! ```

mod error;
mod level;
mod many;
mod search;

pub use error::{BtreeError, BtreeProblem};
pub use level::{Downlink, LevelPage, LevelWalk};
pub use search::IndexScan;

use crate::pool::Backend;
use crate::storage::Relation;
use trunkline_aio::sync::Arc;
use trunkline_format::btree::{BtreePage, Fault, Key, KeyColumn, KeyLayout, Meta, Order};
use trunkline_format::deform::Attribute;
use trunkline_format::{Align, BlockNo, PageBytes};

/// The main fork of an index, and what its columns are. Clones are cheap.
#[derive(Debug, Clone)]
pub struct Index {
    relation: Relation,
    layout: Arc<KeyLayout>,
}

impl Index {
    /// An index with these columns.
    pub fn new(relation: Relation, layout: KeyLayout) -> Self {
        Self { relation, layout: Arc::new(layout) }
    }

    /// The index of a TOAST table: `chunk_id`, an `oid`, and `chunk_seq`, an `int4`.
    pub fn of_toast(relation: Relation) -> Self {
        let column = |order| {
            let attribute = Attribute { len: 4, align: Align::Int };
            KeyColumn { attribute, order, descending: false, nulls_first: false }
        };
        Self::new(relation, KeyLayout::new(vec![column(Order::Oid), column(Order::Int4)], 2))
    }

    /// Its files.
    pub fn relation(&self) -> &Relation {
        &self.relation
    }

    /// Its columns.
    pub fn layout(&self) -> &KeyLayout {
        &self.layout
    }

    /// What its metapage says.
    ///
    /// # Errors
    /// See [`BtreeError`].
    pub fn meta(&self, backend: &mut Backend) -> Result<Meta, BtreeError> {
        self.look(backend, 0, Meta::parse)
    }

    /// The rows whose entries lie between two keys, both included. Either may have fewer columns
    /// than the index: then what follows does not matter. The same prefix twice finds what is equal
    /// to it.
    ///
    /// # Errors
    /// See [`BtreeError`].
    pub fn scan(
        &self,
        backend: &mut Backend,
        from: &[Key<'_>],
        to: &[Key<'_>],
    ) -> Result<IndexScan, BtreeError> {
        IndexScan::new(self, backend, from, to)
    }

    /// Looks at a page under its lock, and lets it go.
    fn look<T>(
        &self,
        backend: &mut Backend,
        block: BlockNo,
        look: impl FnOnce(&PageBytes) -> Result<T, Fault>,
    ) -> Result<T, BtreeError> {
        let pin = backend.read(&self.relation, block)?;
        let page = backend.read_lock(pin.page()).map_err(crate::pool::ReadError::from)?;
        look(&page).map_err(|fault| self.problem(block, BtreeProblem::Fault(fault)))
    }

    /// Looks at a page of a known level.
    fn look_at<T>(
        &self,
        backend: &mut Backend,
        block: BlockNo,
        level: u32,
        look: impl FnOnce(&BtreePage<'_>) -> Result<T, Fault>,
    ) -> Result<T, BtreeError> {
        let seen = self.look(backend, block, |page| {
            let page = BtreePage::parse(page)?;
            // A deleted page may keep something else there.
            if !page.is_deleted() && page.level() != level {
                return Ok(Err(page.level()));
            }
            look(&page).map(Ok)
        })?;
        seen.map_err(|found| self.problem(block, BtreeProblem::Level { found, expected: level }))
    }

    fn problem(&self, block: BlockNo, problem: BtreeProblem) -> BtreeError {
        let path = self.relation.path(trunkline_format::segment::segment_of(block).0);
        BtreeError::Corrupt { path, block, problem }
    }
}

/// Steps to the right, of which there are at most as many as blocks.
#[derive(Debug, Default)]
struct Steps {
    taken: BlockNo,
    most: Option<BlockNo>,
}

/// Steps before anybody asks how long the index is.
const STEPS_UNASKED: BlockNo = 100;

impl Steps {
    /// Counts a step to `block`.
    fn count(&mut self, index: &Index, block: BlockNo) -> Result<(), BtreeError> {
        self.taken = self.taken.saturating_add(1);
        if self.taken <= STEPS_UNASKED {
            return Ok(());
        }
        let most = match self.most {
            Some(most) => most,
            None => {
                *self.most.insert(index.relation.blocks().map_err(crate::pool::ReadError::from)?)
            }
        };
        if self.taken > most.max(STEPS_UNASKED) {
            return Err(index.problem(block, BtreeProblem::Loop { blocks: most }));
        }
        Ok(())
    }
}
