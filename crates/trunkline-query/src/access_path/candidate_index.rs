//! Which indexes a scan may use, and why not the others.
//!
//! An index decides which rows are looked at, so it must have all of them. In a cluster that was not shut
//! down cleanly, a page of a table may have been written, and that of its index may not. There, only
//! sequential scans find what is in the tables.

use std::sync::Arc;

use trunkline_engine::btree::Index;
use trunkline_engine::catalog::{BTREE_METHOD, Database, RelationInfo};
use trunkline_engine::storage::Relation;
use trunkline_format::Oid;
use trunkline_format::btree::{Comparison, Order};
use trunkline_format::catalog::{IndexRow, Persistence, RelationKind};
use trunkline_sql::catalog::{SqlCatalog, oids};

use super::column_order::ColumnOrder;

/// A B-tree that a scan may use.
#[derive(Debug, Clone)]
pub(crate) struct CandidateIndex {
    /// The OID of the index.
    pub(crate) oid: Oid,
    /// Its name.
    pub(crate) name: String,
    /// Its files and columns.
    pub(crate) index: Index,
    /// The key columns that it can be searched for: those before the first one whose order only a
    /// server knows.
    pub(super) columns: Vec<IndexColumn>,
    /// Why there are no more of them.
    pub(super) unknown: Option<&'static str>,
    /// For each of its columns, `INCLUDE` columns too, the place of the table's column whose values it
    /// stores as they are; `None` for an expression.
    stored: Vec<Option<usize>>,
    /// Whether it is unique.
    pub(super) unique: bool,
    /// Whether it lacks the rows for which its predicate isn't true.
    pub(super) is_partial: bool,
    /// All key columns, also those that it can't be searched for.
    pub(super) key_count: usize,
    /// Its size as of the last `VACUUM` or `ANALYZE`, in blocks.
    pub(super) pages: i32,
    /// Its entries as of then; `None` if they were never counted.
    pub(super) entries: Option<f32>,
}

/// A key column.
#[derive(Debug, Clone, Copy)]
pub(super) struct IndexColumn {
    /// Its place among the stored columns of the table, from 0.
    pub(super) place: usize,
    /// How it is sorted.
    pub(super) order: ColumnOrder,
}

impl CandidateIndex {
    /// An index, if the scans of its table may use it.
    ///
    /// # Errors
    /// Why they may not.
    pub(super) fn new(database: &Database, row: &IndexRow) -> Result<Self, String> {
        let relation = database.relation(row.index).ok_or("pg_class has no row for it")?;
        if relation.access_method != BTREE_METHOD {
            let name = database.access_method(relation.access_method);
            let name = name.map(String::from_utf8_lossy).unwrap_or_else(|| "unknown".into());
            return Err(format!("its access method is {name}"));
        }
        let reasons = [
            (!database.is_clean(), "the cluster was not shut down cleanly"),
            (!row.valid, "it is invalid"),
            (!row.ready, "it is not ready"),
            (!row.live, "it is being dropped"),
            (row.check_xmin, "it may lack rows of broken HOT chains (indcheckxmin)"),
        ];
        if let Some((_, why)) = reasons.iter().find(|(applies, _)| *applies) {
            return Err((*why).to_owned());
        }
        let index = database.btree(row).ok_or("its columns or files are not in the catalogs")?;
        let (mut columns, mut unknown) = (Vec::new(), None);
        for (at, key) in index.layout().keys().iter().enumerate() {
            let number = row.columns.get(at).copied().unwrap_or_default();
            let place = usize::try_from(number).ok().and_then(|number| number.checked_sub(1));
            let class = row.classes.get(at).and_then(|class| database.operator_class(*class));
            let collation = row.collations.get(at).copied().unwrap_or_default();
            unknown = match (place, class, key.order) {
                (None, ..) => Some("is an expression"),
                (_, None, _) => Some("has an unknown operator class"),
                (.., Order::Enum) => Some("is an enum"),
                (.., Order::Unknown) if collation != Oid(0) => {
                    Some("has a collation whose order only a server knows")
                }
                (.., Order::Unknown) => Some("has an operator class that is not supported"),
                (Some(place), Some(class), _) => {
                    let order = ColumnOrder::of_class(database, class, collation);
                    columns.push(IndexColumn { place, order });
                    continue;
                }
            };
            break;
        }
        Ok(Self {
            oid: row.index,
            name: String::from_utf8_lossy(&relation.name).into_owned(),
            key_count: index.layout().keys().len(),
            stored: stored_columns(database, row),
            index,
            columns,
            unknown,
            unique: row.unique,
            is_partial: row.partial,
            pages: relation.pages,
            entries: relation.rows,
        })
    }
}

/// An operator of a key column.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct KeyOperator {
    /// `pg_operator.oid`
    pub(crate) operator: Oid,
    /// The type of its operands.
    pub(crate) input: Oid,
}

impl CandidateIndex {
    /// For each of its columns, the place of the table's column whose values it stores.
    pub(crate) fn stored(&self) -> &[Option<usize>] {
        &self.stored
    }

    /// Whether it stores all of these columns of the table.
    pub(super) fn stores(&self, places: &[usize]) -> bool {
        places.iter().all(|place| self.stored.contains(&Some(*place)))
    }

    /// The place of a key column among the stored columns of the table.
    pub(crate) fn place_of(&self, at: usize) -> Option<usize> {
        self.columns.get(at).map(|column| column.place)
    }

    /// The operator by which a key column is compared.
    pub(crate) fn operator(
        &self,
        catalog: &SqlCatalog,
        at: usize,
        comparison: Comparison,
    ) -> Option<KeyOperator> {
        let order = self.columns.get(at)?.order;
        let operator = order.operator(catalog, comparison)?;
        Some(KeyOperator { operator, input: order.input })
    }
}

/// The indexes of a table: those that its scans may use, and the others, each with a reason.
#[derive(Debug, Clone, Default)]
pub(crate) struct TableIndexes {
    pub(crate) usable: Vec<Arc<CandidateIndex>>,
    /// Partial indexes. They lack rows, so they are unusable until it is proven that the scan doesn't want
    /// those ([`TableIndexes::with_implied`]).
    pub(super) partial: Vec<Arc<CandidateIndex>>,
    /// Names and reasons.
    pub(crate) unusable: Vec<(String, String)>,
}

impl TableIndexes {
    /// The places of the columns that an index can be searched for.
    pub(crate) fn columns(&self) -> impl Iterator<Item = usize> {
        self.usable.iter().flat_map(|index| &index.columns).map(|column| column.place)
    }

    /// Whether it has to be proven that an index may be used.
    pub(crate) fn has_partial(&self) -> bool {
        !self.partial.is_empty()
    }

    /// The indexes of a table, in the order of their OIDs.
    pub(crate) fn of(database: &Database, table: &RelationInfo) -> Self {
        let mut found = Self::default();
        if !matches!(table.kind, RelationKind::Table | RelationKind::MaterializedView)
            || table.persistence == Persistence::Temporary
        {
            return found;
        }
        for row in database.indexes_of(table.oid) {
            match CandidateIndex::new(database, row) {
                Ok(index) if row.partial => found.partial.push(Arc::new(index)),
                Ok(index) => found.usable.push(Arc::new(index)),
                Err(why) => {
                    let name = database.relation(row.index).map(|index| index.name.to_vec());
                    let name = name.unwrap_or_else(|| row.index.to_string().into_bytes());
                    found.unusable.push((String::from_utf8_lossy(&name).into_owned(), why));
                }
            }
        }
        found
    }
}

/// The files of the indexes that scans of a table may use, partial ones too, by OID. Their sizes are asked for
/// before the statement is planned.
pub(crate) fn index_files(database: &Database, table: &RelationInfo) -> Vec<(Oid, Relation)> {
    let TableIndexes { usable, partial, .. } = TableIndexes::of(database, table);
    let indexes = usable.into_iter().chain(partial);
    indexes.map(|index| (index.oid, index.index.relation().clone())).collect()
}

/// The places of the columns whose values an index stores as the table does. Most do, but `name_ops` stores
/// C strings (`opckeytype`), which the decoder of entries knows.
fn stored_columns(database: &Database, row: &IndexRow) -> Vec<Option<usize>> {
    let columns = |oid| database.columns(database.relation(oid)?).ok();
    let (own, table) = (columns(row.index).unwrap_or_default(), columns(row.table));
    let stored = row.columns.iter().zip(own).enumerate().map(|(at, (number, own))| {
        let place = usize::try_from(*number).ok()?.checked_sub(1)?;
        let column = table?.get(place).filter(|column| !column.dropped)?;
        let is_same = own.type_oid == column.type_oid && own.attribute == column.attribute;
        let class = || database.operator_class(*row.classes.get(at)?);
        let is_name = own.type_oid == oids::CSTRING
            && class().is_some_and(|class| class.input_type == oids::NAME);
        (is_same || is_name).then_some(place)
    });
    stored.collect()
}
