//! A table and its indexes, as described by the catalog.
//!
//! Before the checks begin, we look up everything they need in the catalog: relation names for the
//! findings, column layouts and types, the TOAST table and the indexes. The checks themselves don't
//! access the catalog.

use trunkline_aio::facade::Arc;
use trunkline_format::btree::{Entry, Order, unpadded};
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
pub(super) struct CheckedTable {
    pub(super) database: Arc<Database>,
    /// Database, schema and relation, quoted.
    pub(super) name: Arc<str>,
    pub(super) heap: Relation,
    /// The visibility map fork.
    pub(super) map: Relation,
    /// `relfrozenxid` and `relminmxid`, which are the lower bounds for the ids in the rows'
    /// headers.
    pub(super) oldest: (u32, u32),
    pub(super) columns: Vec<Column>,
    pub(super) toast: Option<ToastTable>,
    /// The TOAST table, if the table has one that the catalogs don't describe.
    pub(super) lost_toast: Option<Oid>,
    pub(super) indexes: Vec<CheckedIndex>,
    /// Indexes and columns that cannot be checked, each with the reason.
    pub(super) notes: Vec<String>,
}

/// A column of the table.
#[derive(Debug)]
pub(super) struct Column {
    pub(super) name: Box<[u8]>,
    pub(super) attribute: Attribute,
    pub(super) dropped: bool,
    /// The payload of the value that the column has in rows older than the column itself
    /// (`attmissingval`).
    pub(super) missing: Option<Vec<u8>>,
    /// The column's type. `None` if we can't check values of this type, or if the column was
    /// dropped.
    pub(super) ty: Option<Type>,
}

/// An index of the table.
#[derive(Debug)]
pub(super) struct CheckedIndex {
    /// Database, schema and index, quoted.
    pub(super) full_name: Arc<str>,
    /// The name, quoted.
    pub(super) name: String,
    pub(super) index: Index,
    /// For each column of the index, the corresponding column of the table (numbered from 0), or
    /// `None` if it is an expression.
    pub(super) sources: Vec<Option<usize>>,
    /// For each column of the index, whether its operator class ignores trailing blanks.
    blanks_ignored: Vec<bool>,
    /// Whether it is a partial index.
    pub(super) partial: bool,
    /// Whether it is a unique index.
    pub(super) unique: bool,
    /// Whether the index is `NULLS NOT DISTINCT`.
    nulls_equal: bool,
}

impl CheckedIndex {
    /// Returns the part of a payload that must be the same in the row and in its entry. For
    /// `bpchar`, that is the value without trailing blanks: PostgreSQL takes keys that compare as
    /// equal for identical when it splits a posting list (`_bt_swap_posting`). In a column without
    /// a length, an entry can therefore end up with the blanks of another row.
    pub(super) fn significant<'p>(&self, column: usize, payload: &'p [u8]) -> &'p [u8] {
        match self.blanks_ignored.get(column) {
            Some(true) => unpadded(payload),
            _ => payload,
        }
    }

    /// Whether another entry could have a key that is equal to this entry's key. If a key contains
    /// a null, it isn't equal to any other key, unless the index is `NULLS NOT DISTINCT`.
    pub(super) fn can_equal(&self, entry: &Entry<'_>) -> bool {
        let layout = self.index.layout();
        let mut keys = layout.attributes(entry).take(layout.keys().len());
        self.nulls_equal || keys.all(|stored| matches!(stored, Ok(Some(_))))
    }

    /// Whether only a server knows the key order, for example because of a collation.
    pub(super) fn has_unknown_order(&self) -> bool {
        self.index.layout().keys().iter().any(|key| key.order == Order::Unknown)
    }
}

impl CheckedTable {
    /// Resolves a table, a materialized view or a TOAST table of `database`.
    ///
    /// # Errors
    /// [`CatalogError`]: the relation has a different kind, or isn't described by the catalog.
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
        let (toast, lost_toast) = (files.toast, database.lost_toast(relation));
        let name = full_name(database, relation);
        let database = Arc::clone(database);
        let oldest = (relation.frozen_xid, relation.min_multi);
        Ok(Self { database, name, heap, map, oldest, columns, toast, lost_toast, indexes, notes })
    }
}

/// The quoted name of a relation with database and schema.
pub(super) fn full_name(database: &Database, relation: &RelationInfo) -> Arc<str> {
    let of = crate::catalog::quoted(&database.info().name);
    format!("{of}.{}", database.qualified_name(relation)).into()
}

/// Looks up a column. If its type isn't supported, adds a note that its values aren't checked.
fn column(database: &Arc<Database>, info: &ColumnInfo, notes: &mut Vec<String>) -> Column {
    let ty = match info.dropped {
        true => None,
        false => match Type::resolve(info.type_oid, &**database) {
            Ok(ty) => Some(ty),
            Err(error) => {
                let name = String::from_utf8_lossy(&info.name);
                notes.push(format!("column \"{name}\" is not checked: {error}"));
                None
            }
        },
    };
    let missing = info.missing.as_deref().and_then(|stored| match info.attribute.len {
        // The catalog never stores default values in TOAST. If this value is damaged, we have
        // already reported its catalog row as damaged.
        -1 => Varlena::parse(stored).ok()?.payload(&mut Vec::new()).ok().map(<[u8]>::to_vec),
        _ => Some(stored.to_vec()),
    });
    let (name, attribute, dropped) = (info.name.clone(), info.attribute, info.dropped);
    Column { name, attribute, dropped, missing, ty }
}

/// Looks up an index. Returns `None` if it isn't a B-tree or isn't valid. In most of these cases,
/// we also add a note that the index was skipped.
fn index(
    database: &Arc<Database>,
    row: &IndexRow,
    notes: &mut Vec<String>,
) -> Option<CheckedIndex> {
    let relation = database.relation(row.index)?;
    // The index of a partitioned table has no files.
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
    let ignores_blanks = |class: &Oid| {
        let class = database.operator_class(*class);
        class.is_some_and(|class| Order::ignores_trailing_blanks(class.family))
    };
    let blanks_ignored = row.classes.iter().map(ignores_blanks).collect();
    debug_assert_ne!(row.index, Oid(0));
    let full_name = full_name(database, relation);
    let IndexRow { partial, unique, nulls_not_distinct: nulls_equal, .. } = *row;
    Some(CheckedIndex {
        full_name,
        name,
        index,
        sources,
        blanks_ignored,
        partial,
        unique,
        nulls_equal,
    })
}
