//! The minimum length of a relation, and the reference that proves it.
//!
//! PostgreSQL doesn't record the length of a relation anywhere. `pg_class.relpages` is just an
//! estimate, which makes us doubt a length but proves nothing (decision 0020), and if a file was cut
//! off at a page boundary, it is still a valid file. But other pages may refer to the pages that are
//! missing.
//!
//! ```text
//!   B-tree, leaf        entry (11,3)            ─▶ the table has at least 12 blocks
//!   B-tree, any page    sibling or child 7      ─▶ the index has at least 8 blocks
//!   visibility map      block 11 all-visible    ─▶ the table has at least 12 blocks
//!   sequence, B-tree …  first pages of its kind ─▶ at least 1 to 3 blocks
//! ```
//!
//! After a clean shutdown, there are no references to pages that don't exist. `VACUUM` removes the
//! index entries for a page before it truncates the page, and it truncates the visibility map
//! together with the table. A B-tree never becomes shorter. The free space map, by contrast, isn't
//! WAL-logged. After a crash, it may have entries for pages that never reached the disk, so it
//! doesn't prove anything.

use thiserror::Error;
use trunkline_aio::facade::Arc;
use trunkline_aio::facade::Mutex;
use trunkline_aio::facade::hash::{Map, Set};
use trunkline_format::btree::{BtreePage, Meta};
use trunkline_format::page::is_new;
use trunkline_format::{BlockNo, PageBytes, Tid, visibility_map};

use crate::storage::RelationLocator;

/// The minimum length of a relation.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct LengthBound {
    /// The minimum number of blocks.
    pub(super) blocks: BlockNo,
    /// The reference to the last of these blocks.
    pub(super) proof: LengthProof,
}

/// Why a relation must have a certain block.
#[derive(Debug, Clone, PartialEq, Eq, Error)]
pub enum LengthProof {
    /// Every relation of this kind has these blocks, even if it is empty.
    #[error("{0}")]
    Kind(&'static str),
    /// An index entry points to a row of the table.
    #[error("index {index} has an entry for row {row}, unless that entry is damaged")]
    Entry {
        /// The index.
        index: Arc<str>,
        /// The row.
        row: Tid,
    },
    /// A page of the index links to another page of the same index.
    #[error("block {from} links to block {to}")]
    Link {
        /// The page.
        from: BlockNo,
        /// Its sibling or child, or if it is the metapage, the root.
        to: BlockNo,
    },
    /// The visibility map has a bit set for a block.
    #[error("the visibility map has a bit set for block {block}")]
    AllVisible {
        /// The block.
        block: BlockNo,
    },
}

/// The bounds found so far, by relation. All workers of a scan add to it.
#[derive(Debug, Default)]
pub(super) struct LengthBounds {
    bounds: Mutex<Map<RelationLocator, LengthBound>>,
    /// Relations with pages that are invalid or could not be read.
    incomplete: Mutex<Set<RelationLocator>>,
}

impl LengthBounds {
    /// Records that some pages of a relation are invalid or could not be read, so that we may have
    /// missed references in them.
    pub(super) fn mark_incomplete(&self, relation: RelationLocator) {
        self.incomplete.lock().insert(relation);
    }

    /// Whether we may have missed references in a relation's pages.
    pub(super) fn is_incomplete(&self, relation: RelationLocator) -> bool {
        self.incomplete.lock().contains(&relation)
    }

    /// Raises the bound of a relation, unless we already have a higher one.
    pub(super) fn raise(&self, relation: RelationLocator, last: BlockNo, proof: LengthProof) {
        let bound = LengthBound { blocks: last.saturating_add(1), proof };
        let mut bounds = self.bounds.lock();
        match bounds.get_mut(&relation) {
            Some(known) if known.blocks >= bound.blocks => {}
            Some(known) => *known = bound,
            None => {
                bounds.insert(relation, bound);
            }
        }
    }

    /// Collects the references in pages of a visibility map.
    pub(super) fn map_pages<'p>(
        &self,
        table: RelationLocator,
        pages: impl Iterator<Item = (BlockNo, &'p PageBytes)>,
    ) {
        let last = pages.filter_map(|(map, page)| visibility_map::last_set(page, map)).max();
        if let Some(block) = last {
            self.raise(table, block, LengthProof::AllVisible { block });
        }
    }

    /// Collects the references in pages of a B-tree on `table`. `name` is the name of the index.
    pub(super) fn btree_pages<'p>(
        &self,
        index: RelationLocator,
        (table, name): (RelationLocator, &Arc<str>),
        pages: impl Iterator<Item = (BlockNo, &'p PageBytes)>,
    ) {
        let (mut link, mut row) = (None, None);
        for (block, page) in pages.filter(|(_, page)| !is_new(page)) {
            // A damaged page doesn't prove anything. We report such pages when we check the index.
            if block == 0 {
                let root = Meta::parse(page).ok().map(|meta| (meta.root.max(meta.fast_root), 0));
                link = link.max(root.filter(|(root, _)| *root != 0));
            } else if let Ok(page) = BtreePage::parse(page) {
                link = link.max(page.last_link().map(|to| (to, block)));
                row = row.max(page.last_row());
            }
        }
        if let Some((to, from)) = link {
            self.raise(index, to, LengthProof::Link { from, to });
        }
        if let Some(row) = row {
            let index = Arc::clone(name);
            self.raise(table, row.block, LengthProof::Entry { index, row });
        }
    }

    /// Returns the bound of a relation, or `None` if nothing refers to its pages.
    pub(super) fn of(&self, relation: RelationLocator) -> Option<LengthBound> {
        self.bounds.lock().get(&relation).cloned()
    }
}
