//! One database: an immutable snapshot of its catalogs, with look-ups by OID.
//!
//! Look-ups by name are in [`super::resolve`], and look-ups for printing values are in
//! [`super::lookups`]. Where callers need rows in order or as a range, such as a relation's
//! columns, we use sorted vectors; everywhere else we use hash maps. Except for what is loaded on
//! demand, nothing changes after loading.

use trunkline_aio::facade::hash::Map;
use trunkline_aio::facade::{Arc, Mutex};
use trunkline_format::btree::{KeyColumn, KeyLayout, Order};
use trunkline_format::catalog::{
    CatalogTable, ColumnStatisticsRow, DatabaseRow, IndexRow, NamespaceRow, OperatorClassRow,
    Persistence, RangeRow, RelationKind, RewriteRow, TablespaceRow, TypeRow,
};
use trunkline_format::text_output::{ObjectClass, UnsupportedReason, UnsupportedType};
use trunkline_format::{BLOCK_SIZE, Fork, Oid, PgVersion};

use super::cluster::{CatalogLocator, Cluster};
use super::error::{CatalogError, Unreadable};
use super::expression_catalogs::ExpressionCatalogs;
use super::name::quoted;
use super::objects::Objects;
use super::relation::{BTREE_METHOD, ColumnInfo, HEAP_METHOD, RelationInfo, catalog_in};
use crate::btree::Index;
use crate::heap::ToastTable;
use crate::storage::{Relation, RelationLocator, StorageError};
use crate::transactions::Transactions;

/// Built-in collations that sort by bytes: C, POSIX, ucs_basic, pg_c_utf8 and pg_unicode_fast.
const BYTEWISE: [u32; 5] = [950, 951, 962, 811, 6411];

/// `DEFAULT_COLLATION_OID`: the collation of the database.
const DEFAULT_COLLATION: Oid = Oid(100);

/// The rules of each relation that has some.
pub(super) type Rules = Map<Oid, Vec<RewriteRow>>;

/// A snapshot of a database's catalogs.
#[derive(Debug)]
pub struct Database {
    pub(super) cluster: Arc<Cluster>,
    pub(super) info: DatabaseRow,
    /// By OID.
    pub(super) relations: Vec<RelationInfo>,
    /// Indexes into `relations`, sorted by schema and name.
    pub(super) by_name: Vec<u32>,
    /// By relation and number.
    pub(super) columns: Vec<ColumnInfo>,
    /// By OID.
    pub(super) schemas: Vec<NamespaceRow>,
    pub(super) types: Map<Oid, TypeRow>,
    /// For each base type of an extension whose output function is one of the server's own, a
    /// built-in type that has the same output function.
    pub(super) printed_as: Map<Oid, Oid>,
    /// Why we may not know the output functions of other types.
    pub(super) output_fault: Option<Arc<CatalogError>>,
    /// For each enum, the OIDs stored in values, with their labels, in the order of the enum.
    pub(super) labels: Map<Oid, Vec<(Oid, Vec<u8>)>>,
    /// Whether `labels` has all labels, as far as we know.
    pub(super) has_all_labels: bool,
    pub(super) ranges: Vec<RangeRow>,
    /// For each parent, its children and partitions, by OID.
    pub(super) children: Map<Oid, Vec<Oid>>,
    /// By table.
    pub(super) indexes: Vec<IndexRow>,
    pub(super) access_methods: Map<Oid, Box<[u8]>>,
    pub(super) operator_classes: Map<Oid, OperatorClassRow>,
    /// Catalogs loaded on demand, and name indexes for catalogs in the snapshot. The lock is never
    /// held during I/O.
    pub(super) objects: Mutex<Map<ObjectClass, Arc<Objects>>>,
    /// Loaded on demand. The lock is never held during I/O.
    pub(super) expressions: Mutex<Option<Arc<ExpressionCatalogs>>>,
    /// The rules of relations, loaded on demand. The lock is never held during I/O.
    pub(super) rules: Mutex<Option<Arc<Rules>>>,
    /// Statistics of the columns of tables, loaded on demand. The lock is never held during I/O.
    pub(super) statistics: Mutex<Map<Oid, Arc<Vec<ColumnStatisticsRow>>>>,
    pub(super) faults: Vec<CatalogError>,
}

/// A table's files, and those of its TOAST table.
#[derive(Debug, Clone)]
pub struct TableFiles {
    /// The main fork.
    pub rows: Relation,
    /// The TOAST table; `None` if there is none.
    pub toast: Option<ToastTable>,
}

impl Database {
    /// Whether the cluster was shut down cleanly. Otherwise its files may contradict each other: a row
    /// may be missing from an index, and an entry may lead to no row.
    pub fn is_clean(&self) -> bool {
        self.cluster.clean
    }

    /// The database's `pg_database` row.
    pub fn info(&self) -> &DatabaseRow {
        &self.info
    }

    /// All databases of the cluster, by name.
    pub fn databases(&self) -> &[DatabaseRow] {
        &self.cluster.databases
    }

    /// All tablespaces of the cluster, by OID, with `pg_default` and `pg_global`.
    pub fn tablespaces(&self) -> &[TablespaceRow] {
        &self.cluster.tablespaces
    }

    /// The version of the cluster.
    pub fn version(&self) -> PgVersion {
        self.cluster.version
    }

    /// Damage that we skipped in this database's catalogs, in the order we found it. This is empty
    /// unless the catalog was opened with [`super::OnDamage::Collect`] or
    /// [`super::OnDamage::Rescue`].
    pub fn faults(&self) -> &[CatalogError] {
        &self.faults
    }

    /// The cluster's commit log and multixacts.
    pub fn transactions(&self) -> &Arc<Transactions> {
        &self.cluster.transactions
    }

    /// The database's name for messages.
    pub(super) fn display_name(&self) -> String {
        String::from_utf8_lossy(&self.info.name).into_owned()
    }

    /// The database's name, quoted if needed.
    pub fn quoted_name(&self) -> String {
        quoted(&self.info.name)
    }

    /// If a type cannot be printed, returns the reason if that is only because we don't know whether
    /// the row of its output function is visible. Damage must not be collected.
    pub fn output_fault(&self, refused: &UnsupportedType) -> Option<&Arc<CatalogError>> {
        let not_found = refused.reason == UnsupportedReason::NotBuiltIn;
        self.output_fault.as_ref().filter(|_| not_found)
    }

    /// Whether we have read all labels of enums. If damage in `pg_enum` was skipped, or if nothing
    /// shows whether it has lost pages, a value may have a label that we don't know.
    pub(crate) fn has_all_labels(&self) -> bool {
        self.has_all_labels
    }

    /// All relations, by OID.
    pub fn relations(&self) -> &[RelationInfo] {
        &self.relations
    }

    /// The relation with this OID.
    pub fn relation(&self, oid: Oid) -> Option<&RelationInfo> {
        let at = self.relations.binary_search_by_key(&oid, |relation| relation.oid).ok()?;
        self.relations.get(at)
    }

    /// The relation that has these files.
    pub fn relation_at(&self, locator: RelationLocator) -> Option<&RelationInfo> {
        self.relations.iter().find(|relation| relation.locator == Some(locator))
    }

    /// All schemas, by OID.
    pub fn schemas(&self) -> &[NamespaceRow] {
        &self.schemas
    }

    /// The schema with this OID.
    pub fn schema(&self, oid: Oid) -> Option<&NamespaceRow> {
        let at = self.schemas.binary_search_by_key(&oid, |schema| schema.oid).ok()?;
        self.schemas.get(at)
    }

    /// The name of a relation's schema, or the schema's OID in digits if the schema doesn't exist.
    pub fn schema_name(&self, relation: &RelationInfo) -> Vec<u8> {
        let schema = self.schema(relation.schema);
        schema.map_or_else(|| relation.schema.to_string().into_bytes(), |found| found.name.to_vec())
    }

    /// Schema and name, quoted if needed: `public."My table"`.
    pub fn qualified_name(&self, relation: &RelationInfo) -> String {
        format!("{}.{}", quoted(&self.schema_name(relation)), quoted(&relation.name))
    }

    /// The columns of a relation by `attnum`, dropped ones included. Column n is at index n - 1.
    ///
    /// # Errors
    /// [`CatalogError::Columns`]: some are missing in `pg_attribute`.
    pub fn columns(&self, relation: &RelationInfo) -> Result<&[ColumnInfo], CatalogError> {
        let columns = self.columns.get(relation.columns()).unwrap_or_default();
        let numbered = (1..).zip(columns).all(|(number, column)| column.number == number);
        if !numbered || columns.len() != usize::from(relation.column_count) {
            return Err(CatalogError::Columns {
                relation: self.qualified_name(relation),
                expected: relation.column_count,
                found: columns.len(),
            });
        }
        Ok(columns)
    }

    /// All types, in no particular order.
    pub fn types(&self) -> impl Iterator<Item = &TypeRow> {
        self.types.values()
    }

    /// The type with this OID.
    pub fn data_type(&self, oid: Oid) -> Option<&TypeRow> {
        self.types.get(&oid)
    }

    /// All range types, in no particular order.
    pub fn ranges(&self) -> &[RangeRow] {
        &self.ranges
    }

    /// All operator classes, in no particular order.
    pub fn operator_classes(&self) -> impl Iterator<Item = &OperatorClassRow> {
        self.operator_classes.values()
    }

    /// The operator class with this OID.
    pub fn operator_class(&self, oid: Oid) -> Option<&OperatorClassRow> {
        self.operator_classes.get(&oid)
    }

    /// The inheritance children and partitions of a table, by OID. Those that are being detached are
    /// not included.
    pub fn children(&self, table: Oid) -> &[Oid] {
        self.children.get(&table).map_or(&[], Vec::as_slice)
    }

    /// The name of an access method.
    pub fn access_method(&self, oid: Oid) -> Option<&[u8]> {
        self.access_methods.get(&oid).map(|name| &**name)
    }

    /// The files of a catalog.
    pub(super) fn catalog(
        &self,
        table: &'static CatalogTable,
    ) -> Result<CatalogLocator, CatalogError> {
        catalog_in(&self.relations, table).ok_or_else(|| CatalogError::NoCatalog {
            table: table.name,
            database: self.display_name(),
        })
    }

    /// The main fork of a relation, if it has files.
    pub fn files(&self, relation: &RelationInfo) -> Option<Relation> {
        let locator = relation.locator?;
        Some(self.cluster.storage.relation(locator, Fork::Main))
    }

    /// The size of a fork of a relation in bytes; 0 if it has no such fork.
    ///
    /// # Errors
    /// [`StorageError`]: the length of a segment is unknown.
    pub fn fork_bytes(&self, relation: &RelationInfo, fork: Fork) -> Result<u64, StorageError> {
        let Some(locator) = relation.locator else { return Ok(0) };
        match self.cluster.storage.relation(locator, fork).blocks() {
            Ok(blocks) => Ok(u64::from(blocks) * BLOCK_SIZE as u64),
            Err(StorageError::SegmentMissing { .. }) => Ok(0),
            Err(error) => Err(error),
        }
    }

    /// Checks that a relation has files according to the catalog, but not that they exist on disk.
    ///
    /// # Errors
    /// [`CatalogError::NotReadable`] if it has none.
    pub fn require_files(&self, relation: &RelationInfo) -> Result<(), CatalogError> {
        let reason = match relation.locator {
            Some(_) => return Ok(()),
            None if !relation.kind.has_storage() => Unreadable::Kind(relation.kind),
            None if relation.persistence == Persistence::Temporary => Unreadable::Temporary,
            None => Unreadable::NoFiles,
        };
        Err(CatalogError::NotReadable { name: self.qualified_name(relation), reason })
    }

    /// The files of a table, a materialized view or a TOAST table.
    ///
    /// # Errors
    /// [`CatalogError::NotReadable`] if the relation is of any other kind, or if its access method
    /// isn't heap. The rows of a partitioned table are in its [`Database::leaves`].
    pub fn table_files(&self, relation: &RelationInfo) -> Result<TableFiles, CatalogError> {
        let refuse =
            |reason| Err(CatalogError::NotReadable { name: self.qualified_name(relation), reason });
        if !relation.kind.is_table_like() {
            return refuse(Unreadable::Kind(relation.kind));
        }
        if relation.access_method != HEAP_METHOD {
            let oid = relation.access_method;
            let name = self.access_method(oid).map(String::from_utf8_lossy);
            return refuse(Unreadable::AccessMethod { oid, name: name.map(Into::into) });
        }
        self.require_files(relation)?;
        match self.files(relation) {
            Some(rows) => Ok(TableFiles { rows, toast: self.toast_files(relation) }),
            None => refuse(Unreadable::NoFiles),
        }
    }

    /// Returns the OID of a relation's TOAST table if the catalogs don't describe that table,
    /// although `pg_class` says that the relation has one. Rows of the catalogs must be missing, so
    /// we can't fetch any value from TOAST. Nothing is wrong with these values.
    pub(crate) fn lost_toast(&self, relation: &RelationInfo) -> Option<Oid> {
        let is_lost = relation.toast != Oid(0) && self.toast_files(relation).is_none();
        is_lost.then_some(relation.toast)
    }

    /// The TOAST table of a relation, and its index.
    pub(super) fn toast_files(&self, relation: &RelationInfo) -> Option<ToastTable> {
        let toast = self.relation(relation.toast)?;
        // Every index on a TOAST table is on (chunk_id, chunk_seq), so we can use any of them that
        // is valid. An invalid index is left over from a failed REINDEX CONCURRENTLY and may be
        // empty.
        let indexes = self.indexes_of(toast.oid);
        let index = indexes.iter().find(|row| row.valid).or(indexes.first())?;
        let files = self.files(self.relation(index.index)?)?;
        Some(ToastTable { oid: toast.oid, heap: self.files(toast)?, index: Index::of_toast(files) })
    }

    /// The indexes of a table, by OID.
    pub fn indexes_of(&self, table: Oid) -> &[IndexRow] {
        let first = self.indexes.partition_point(|row| row.table < table);
        let behind = self.indexes.partition_point(|row| row.table <= table);
        self.indexes.get(first..behind).unwrap_or_default()
    }

    /// The `pg_index` row of an index.
    pub fn index(&self, oid: Oid) -> Option<&IndexRow> {
        self.indexes.iter().find(|row| row.index == oid)
    }

    /// Returns a B-tree index with its key columns, ready for searches and scans. Returns `None` if
    /// the index isn't a B-tree, has no files, or has columns that are missing from the catalog. If
    /// we don't implement the operator class or collation of a key column, that column gets
    /// [`Order::Unknown`]. It's still possible to walk such an index, but not to search it.
    pub fn btree(&self, index: &IndexRow) -> Option<Index> {
        let relation = self.relation(index.index)?;
        if relation.access_method != BTREE_METHOD || relation.kind != RelationKind::Index {
            return None;
        }
        let mut columns = Vec::new();
        for (at, column) in self.columns(relation).ok()?.iter().enumerate() {
            let bytewise = self.sorts_by_bytes(index.collations.get(at).copied().unwrap_or(Oid(0)));
            let class = index.classes.get(at).and_then(|class| self.operator_classes.get(class));
            let order = class.map_or(Order::Unknown, |class| {
                Order::of(class.family, class.input_type, bytewise)
            });
            let options = index.options.get(at).copied().unwrap_or_default();
            columns.push(KeyColumn {
                attribute: column.attribute,
                order,
                // INDOPTION_DESC and INDOPTION_NULLS_FIRST.
                descending: options & 1 != 0,
                nulls_first: options & 2 != 0,
            });
        }
        let layout = KeyLayout::new(columns, usize::from(index.key_count));
        Some(Index::new(self.files(relation)?, layout))
    }

    /// Returns true if a collation compares text byte by byte. Also returns true for OID 0, which
    /// stands for no collation. We don't implement any other collation, because its order depends
    /// on the server's version of ICU or libc.
    pub fn sorts_by_bytes(&self, collation: Oid) -> bool {
        match collation {
            Oid(0) => true,
            DEFAULT_COLLATION => self.info.sorts_by_bytes(),
            Oid(other) => BYTEWISE.contains(&other),
        }
    }

    /// A relation and its dependents: a table's indexes, its TOAST table, and the TOAST table's
    /// index.
    pub fn parts(&self, relation: &RelationInfo) -> Vec<&RelationInfo> {
        let tables = [relation.oid, relation.toast].into_iter();
        let found = tables.filter_map(|oid| self.relation(oid)).flat_map(|table| {
            let indexes = self.indexes_of(table.oid).iter();
            let indexes = indexes.filter_map(|row| self.relation(row.index));
            [table].into_iter().chain(indexes)
        });
        found.collect()
    }

    /// Returns the relation itself, or its partitions at any depth if it is partitioned, because a
    /// partitioned relation has no rows of its own. Children of a table that is not partitioned
    /// are not included. As in `find_all_inheritors`, the partitions are sorted by level, and by
    /// OID within a level.
    pub fn leaves(&self, relation: &RelationInfo) -> Vec<&RelationInfo> {
        let mut found = self.descendants(relation, RelationInfo::is_partitioned);
        found.retain(|relation| !relation.is_partitioned());
        found
    }

    /// Returns the relation itself, and all tables that inherit from it or are partitions of it, at
    /// any depth and in the order of `find_all_inheritors`.
    pub fn inheritors(&self, relation: &RelationInfo) -> Vec<&RelationInfo> {
        self.descendants(relation, |_| true)
    }

    /// The relation itself and the children of all relations for which `is_parent` is true, by level,
    /// and by OID within a level.
    fn descendants(
        &self,
        relation: &RelationInfo,
        is_parent: impl Fn(&RelationInfo) -> bool,
    ) -> Vec<&RelationInfo> {
        let Some(first) = self.relation(relation.oid) else { return Vec::new() };
        let mut found = vec![first];
        let mut next = 0;
        while let Some(parent) = found.get(next) {
            next += 1;
            if !is_parent(parent) {
                continue;
            }
            let children = self.children.get(&parent.oid).map_or(&[][..], Vec::as_slice);
            for child in children.iter().filter_map(|&child| self.relation(child)) {
                // Damaged rows can form a cycle, or give a partition two parents.
                if !found.iter().any(|known| known.oid == child.oid) {
                    found.push(child);
                }
            }
        }
        found
    }
}
