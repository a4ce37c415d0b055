//! A relation with files, as described by `pg_class` and `pg_index`: which forks it must have, and
//! what determines its minimum length.

use trunkline_aio::facade::Arc;
use trunkline_format::catalog::{IndexRow, Persistence, RelationKind};
use trunkline_format::{BlockNo, Oid};

use super::length_bound::{LengthBound, LengthProof};
use crate::catalog::{BTREE_METHOD, Database, HEAP_METHOD, RelationInfo};
use crate::storage::RelationLocator;

/// A relation in a catalog.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct CatalogedRelation {
    /// Database, schema and relation, quoted. Without the database if the relation is shared.
    pub(super) name: Arc<str>,
    /// Whether recovery resets it to its init fork.
    pub(super) unlogged: bool,
    /// Whether it must have a main fork.
    pub(super) has_main: bool,
    /// Whether it must have an init fork. While an unlogged index is being built, it doesn't have
    /// one yet. If `CREATE INDEX CONCURRENTLY` fails, the index remains like that.
    pub(super) has_init: bool,
    pub(super) storage: StorageKind,
    /// Its length at the last `VACUUM` or `ANALYZE` (`pg_class.relpages`). 0 if that is unknown, or
    /// says nothing about its length now.
    pub(super) pages: BlockNo,
}

/// The contents of a relation's files, insofar as they determine its minimum length.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum StorageKind {
    /// Rows, each of which has an entry in every B-tree of the table.
    Heap {
        /// The B-trees that have an entry for every row.
        indexes: Vec<RelationLocator>,
    },
    /// A B-tree.
    Btree {
        /// The table, if the server maintains the index. Otherwise, its entries prove nothing.
        table: Option<RelationLocator>,
    },
    /// One page with one row.
    Sequence,
    /// An index with another built-in access method, built and maintained by the server.
    Index {
        /// Number of blocks in an empty index of this kind.
        blocks: BlockNo,
        /// A description of these blocks.
        what: &'static str,
    },
    /// An index that has not been built yet, or a table or index with an unknown access method.
    Unknown,
}

impl CatalogedRelation {
    /// Describes a relation. `index` is its row in `pg_index`.
    pub(super) fn of(
        database: &Database,
        relation: &RelationInfo,
        index: Option<&IndexRow>,
    ) -> Self {
        let name = database.qualified_name(relation);
        let of = if relation.shared { String::new() } else { database.quoted_name() + "." };
        let storage = match relation.kind {
            RelationKind::Sequence => StorageKind::Sequence,
            RelationKind::Index => index_storage(database, relation, index),
            _ if relation.kind.is_table_like() && relation.access_method == HEAP_METHOD => {
                StorageKind::Heap { indexes: whole_btrees(database, relation) }
            }
            _ => StorageKind::Unknown,
        };
        let unlogged = relation.persistence == Persistence::Unlogged;
        let has_main = relation.has_main_fork();
        let is_built = relation.kind != RelationKind::Index || index.is_some_and(|row| row.ready);
        let has_init = unlogged && has_main && is_built;
        // Recovery makes an unlogged relation empty, but doesn't update pg_class. VACUUM updates the
        // pages of a shared relation only in its own database. A foreign access method may count
        // pages in another way.
        let is_counted = !unlogged && !relation.shared && storage != StorageKind::Unknown;
        let pages = u32::try_from(relation.pages).unwrap_or_default();
        let pages = if is_counted { pages } else { 0 };
        Self { name: format!("{of}{name}").into(), unlogged, has_main, has_init, storage, pages }
    }

    /// Whether it is a table, or an index that is known to be built. Others may be in the middle of that.
    pub(super) fn is_built(&self) -> bool {
        !matches!(self.storage, StorageKind::Unknown | StorageKind::Btree { table: None })
    }

    /// Whether we have redo rules for all of its records.
    pub(super) fn has_rules(&self) -> bool {
        matches!(
            self.storage,
            StorageKind::Heap { .. } | StorageKind::Btree { .. } | StorageKind::Sequence
        )
    }

    /// Returns the number of blocks that the relation must have even if it is empty.
    pub(super) fn least_blocks(&self) -> Option<LengthBound> {
        let (blocks, what) = match self.storage {
            StorageKind::Sequence => (1, "a sequence has one page"),
            StorageKind::Btree { table: Some(_) } => (1, "a B-tree begins with a metapage"),
            StorageKind::Index { blocks, what } => (blocks, what),
            StorageKind::Heap { .. } | StorageKind::Btree { .. } | StorageKind::Unknown => {
                return None;
            }
        };
        Some(LengthBound { blocks, proof: LengthProof::Kind(what) })
    }

    /// Whether other pages refer to all pages that have visible rows or entries. If they don't, the
    /// relation may have lost pages at its end without our noticing. `locator` is the relation
    /// itself, and `is_whole` returns whether we have read all pages of a B-tree.
    pub(super) fn is_length_proven(
        &self,
        locator: RelationLocator,
        is_whole: impl Fn(RelationLocator) -> bool,
    ) -> bool {
        match &self.storage {
            StorageKind::Heap { indexes } => indexes.iter().copied().any(is_whole),
            StorageKind::Btree { table } => table.is_some() && is_whole(locator),
            StorageKind::Sequence => true,
            StorageKind::Index { .. } | StorageKind::Unknown => false,
        }
    }
}

/// Returns the storage kind of an index.
fn index_storage(
    database: &Database,
    relation: &RelationInfo,
    index: Option<&IndexRow>,
) -> StorageKind {
    // `CREATE INDEX CONCURRENTLY` first commits an empty index, and sets `indisready` once it has
    // built the index. `VACUUM` doesn't remove entries from the index before that.
    let built = index.filter(|row| row.ready && row.live);
    if relation.access_method == BTREE_METHOD {
        // `VACUUM FULL` and others don't rebuild an invalid index of a TOAST table, so its entries
        // may be those of the old table. `REINDEX CONCURRENTLY` leaves one after a crash.
        let valid = built.filter(|row| row.valid);
        let table = valid.and_then(|row| database.relation(row.table));
        let table = table.filter(|table| table.access_method == HEAP_METHOD);
        return StorageKind::Btree { table: table.and_then(|table| table.locator) };
    }
    let (blocks, what) = match relation.access_method {
        _ if built.is_none() => return StorageKind::Unknown,
        Oid(405) => (1, "a hash index begins with a metapage"),
        Oid(783) => (1, "a GiST index begins with its root"),
        Oid(2742) => (2, "a GIN index begins with a metapage and a root"),
        Oid(3580) => (1, "a BRIN index begins with a metapage"),
        Oid(4000) => (3, "an SP-GiST index begins with a metapage and two roots"),
        _ => return StorageKind::Unknown,
    };
    StorageKind::Index { blocks, what }
}

/// Returns a table's B-trees that have an entry for every row.
fn whole_btrees(database: &Database, table: &RelationInfo) -> Vec<RelationLocator> {
    let rows = database.indexes_of(table.oid).iter();
    let whole = rows.filter(|row| row.valid && row.ready && row.live && !row.partial);
    let indexes = whole.filter_map(|row| database.relation(row.index));
    let btrees = indexes.filter(|index| index.access_method == BTREE_METHOD);
    btrees.filter_map(|index| index.locator).collect()
}
