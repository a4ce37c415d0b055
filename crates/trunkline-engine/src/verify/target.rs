//! What is to be checked of one table, as the catalog describes it.
//!
//! Everything that a check needs is resolved before it begins: names for findings, the layout and
//! type of each column, where long values are, and which indexes there are.

use trunkline_aio::sync::Arc;
use trunkline_format::btree::{Entry, Order};
use trunkline_format::catalog::{IndexRow, RelationKind};
use trunkline_format::deform::Attribute;
use trunkline_format::text_output::Type;
use trunkline_format::varlena::Varlena;
use trunkline_format::{Fork, Oid};

use crate::btree::Index;
use crate::catalog::{CatalogError, ColumnInfo, Database, RelationInfo};
use crate::heap::ToastTable;
use crate::storage::Relation;

/// A table and its indexes.
#[derive(Debug)]
pub(super) struct Target {
    pub(super) database: Arc<Database>,
    /// Database, schema and relation, as one would write them.
    pub(super) name: Arc<str>,
    pub(super) heap: Relation,
    pub(super) map: Relation,
    /// `relfrozenxid` and `relminmxid`.
    pub(super) oldest: (u32, u32),
    pub(super) columns: Vec<Column>,
    pub(super) toast: Option<ToastTable>,
    pub(super) indexes: Vec<IndexTarget>,
    /// Indexes and columns that nobody here can check, each with its reason.
    pub(super) notes: Vec<String>,
}

/// A column.
#[derive(Debug)]
pub(super) struct Column {
    pub(super) name: Box<[u8]>,
    pub(super) attribute: Attribute,
    pub(super) dropped: bool,
    /// The payload that rows have that are older than the column.
    pub(super) missing: Option<Vec<u8>>,
    /// `None`: values are not looked into.
    pub(super) ty: Option<Type>,
}

/// An index.
#[derive(Debug)]
pub(super) struct IndexTarget {
    /// Database, schema and index.
    pub(super) full_name: Arc<str>,
    /// As one would write it.
    pub(super) name: String,
    pub(super) index: Index,
    /// For each of its columns the table's, from 0; `None` if it is computed.
    pub(super) sources: Vec<Option<usize>>,
    /// Whether only some rows have entries.
    pub(super) partial: bool,
    /// Whether no two rows have the same key.
    pub(super) unique: bool,
    /// Whether nulls are the same to a unique index.
    nulls_equal: bool,
}

impl IndexTarget {
    /// Whether an entry's key can be the same as another one.
    pub(super) fn can_equal(&self, entry: &Entry<'_>) -> bool {
        let layout = self.index.layout();
        let mut keys = layout.attributes(entry).take(layout.keys().len());
        self.nulls_equal || keys.all(|stored| matches!(stored, Ok(Some(_))))
    }

    /// Whether only a server knows the order of its entries.
    pub(super) fn has_unknown_order(&self) -> bool {
        self.index.layout().keys().iter().any(|key| key.order == Order::Unknown)
    }
}

impl Target {
    /// Of a table, a materialized view or a TOAST table of `database`.
    ///
    /// # Errors
    /// [`CatalogError`]: it is none of these, or the catalog does not describe it.
    pub(super) fn of(
        database: &Arc<Database>,
        relation: &RelationInfo,
    ) -> Result<Self, CatalogError> {
        let files = database.table_files(relation)?;
        let infos = database.columns(relation)?;
        let mut notes = Vec::new();
        let columns = infos.iter().map(|info| column(database, info, &mut notes)).collect();
        let rows = database.indexes_of(relation.oid);
        let indexes = rows.iter().filter_map(|row| index(database, row, &mut notes)).collect();
        let heap = files.rows;
        let map = heap.storage().relation(heap.locator(), Fork::Vm);
        let toast = files.toast;
        let name = full_name(database, relation);
        let database = Arc::clone(database);
        let oldest = (relation.frozen_xid, relation.min_multi);
        Ok(Self { database, name, heap, map, oldest, columns, toast, indexes, notes })
    }
}

/// Database, schema and relation.
pub(super) fn full_name(database: &Database, relation: &RelationInfo) -> Arc<str> {
    let of = crate::catalog::quoted(&database.info().name);
    format!("{of}.{}", database.qualified_name(relation)).into()
}

fn column(database: &Arc<Database>, info: &ColumnInfo, notes: &mut Vec<String>) -> Column {
    let ty = match info.dropped {
        true => None,
        false => match Type::resolve(info.type_oid, &**database) {
            Ok(ty) => Some(ty),
            Err(error) => {
                let name = String::from_utf8_lossy(&info.name);
                notes.push(format!("column \"{name}\" is not looked into: {error}"));
                None
            }
        },
    };
    let missing = info.missing.as_deref().and_then(|stored| match info.attribute.len {
        // The catalog keeps no value elsewhere; a damaged one is a damaged row of the catalog.
        -1 => Varlena::parse(stored).ok()?.payload(&mut Vec::new()).ok().map(<[u8]>::to_vec),
        _ => Some(stored.to_vec()),
    });
    let (name, attribute, dropped) = (info.name.clone(), info.attribute, info.dropped);
    Column { name, attribute, dropped, missing, ty }
}

fn index(database: &Arc<Database>, row: &IndexRow, notes: &mut Vec<String>) -> Option<IndexTarget> {
    let relation = database.relation(row.index)?;
    // Of a partitioned table: no files, and nothing to check.
    if relation.kind == RelationKind::PartitionedIndex {
        return None;
    }
    let name = relation.quoted_name();
    if !(row.valid && row.ready && row.live) {
        notes.push(format!("index {name} is not checked: it is not valid"));
        return None;
    }
    let Some(index) = database.btree(row) else {
        let method = database.access_method(relation.access_method);
        let method = method.map_or("?".into(), String::from_utf8_lossy);
        notes.push(format!("index {name} is not checked: access method {method}"));
        return None;
    };
    let source = |number: &i16| usize::try_from(*number).ok()?.checked_sub(1);
    let sources: Vec<_> = row.columns.iter().map(source).collect();
    debug_assert_ne!(row.index, Oid(0));
    let full_name = full_name(database, relation);
    let IndexRow { partial, unique, nulls_not_distinct: nulls_equal, .. } = *row;
    Some(IndexTarget { full_name, name, index, sources, partial, unique, nulls_equal })
}
