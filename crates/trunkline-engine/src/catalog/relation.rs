//! One relation and one column, as plain values copied out of `pg_class` and `pg_attribute`.
//!
//! They don't hold any pins, so they remain valid after the catalog scan.

use std::ops::{Deref, Range};

use trunkline_format::Oid;
use trunkline_format::catalog::{
    AttributeRow, CatalogTable, ClassRow, Generated, PG_ATTRIBUTE, RelationKind, RowError,
};
use trunkline_format::deform::{Attribute, missing_value};
use trunkline_format::varlena::Varlena;

use super::cluster::CatalogLocator;
use super::name::quoted;
use crate::storage::RelationLocator;

/// `pg_am.oid` of the heap (`HEAP_TABLE_AM_OID`).
pub const HEAP_METHOD: Oid = Oid(2);

/// `pg_am.oid` of B-trees (`BTREE_AM_OID`).
pub const BTREE_METHOD: Oid = Oid(403);

/// A table, index, sequence, view or anything else with a row in `pg_class`. Dereferences to that
/// row.
#[derive(Debug, Clone, PartialEq)]
pub struct RelationInfo {
    row: ClassRow,
    /// The relation's files. `None` if this kind of relation has no files. Also `None` if the
    /// relation is temporary, because its session has ended.
    pub locator: Option<RelationLocator>,
    /// Range of its columns within all relations' columns.
    columns: Range<usize>,
}

impl Deref for RelationInfo {
    type Target = ClassRow;

    fn deref(&self) -> &ClassRow {
        &self.row
    }
}

impl RelationInfo {
    pub(super) fn new(row: ClassRow, locator: Option<RelationLocator>) -> Self {
        Self { row, locator, columns: 0..0 }
    }

    pub(super) fn columns(&self) -> Range<usize> {
        self.columns.clone()
    }

    pub(super) fn set_columns(&mut self, columns: Range<usize>) {
        self.columns = columns;
    }

    /// Its name without its schema, quoted if needed.
    pub fn quoted_name(&self) -> String {
        quoted(&self.name)
    }

    /// Whether it must have a main fork, if it has files. The server creates one for every relation
    /// except tables whose access method is not heap. Only that method knows which files those have.
    pub fn has_main_fork(&self) -> bool {
        !self.kind.is_table_like() || self.access_method == HEAP_METHOD
    }

    /// Whether it is partitioned, in which case its partitions hold the rows or entries.
    pub fn is_partitioned(&self) -> bool {
        matches!(self.kind, RelationKind::PartitionedTable | RelationKind::PartitionedIndex)
    }
}

/// The files of a catalog, by its row in `pg_class`. `relations` must be sorted by OID.
pub(super) fn catalog_in(
    relations: &[RelationInfo],
    table: &'static CatalogTable,
) -> Option<CatalogLocator> {
    let file = |oid| {
        let at = relations.binary_search_by_key(&oid, |relation| relation.oid).ok()?;
        relations.get(at)?.locator
    };
    Some(CatalogLocator { table, rows: file(table.oid)?, index: file(table.index.oid) })
}

/// A column of a relation.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ColumnInfo {
    /// Its name; `........pg.dropped.N........` if it was dropped.
    pub name: Box<[u8]>,
    /// Its number, from 1.
    pub number: u16,
    /// The OID of its type; 0 if it was dropped.
    pub type_oid: Oid,
    /// `atttypmod`, such as a length; -1 if there is none.
    pub modifier: i32,
    /// Its size and alignment in a row.
    pub attribute: Attribute,
    /// The OID of its collation; 0 if its type has none.
    pub collation: Oid,
    /// Whether it has a `NOT NULL` constraint.
    pub not_null: bool,
    /// Whether it was dropped. Old rows still hold its values.
    pub dropped: bool,
    /// Whether it is generated.
    pub generated: Generated,
    /// `attmissingval`: the value for rows stored before the column was added (`ADD COLUMN ...
    /// DEFAULT`), in the format of a stored datum. `None` means null.
    pub missing: Option<Box<[u8]>>,
}

impl ColumnInfo {
    /// Converts a row of `pg_attribute`; `None` for system columns, which are the same in all
    /// tables.
    pub(super) fn of_row(row: AttributeRow) -> Result<Option<Self>, RowError> {
        let Some(number) = u16::try_from(row.number).ok().filter(|&number| number > 0) else {
            return Ok(None);
        };
        let attribute = Attribute { len: row.len, align: row.align };
        let mut decompressed = Vec::new();
        let missing = row.missing.map(|stored| {
            let array = Varlena::parse(&stored).and_then(|array| array.payload(&mut decompressed));
            let value = array.ok().and_then(|array| missing_value(array, attribute));
            value.map(Box::from).ok_or(RowError::Value {
                table: PG_ATTRIBUTE.name,
                column: "attmissingval",
                found: i64::from(stored.first().copied().unwrap_or_default()),
            })
        });
        Ok(Some(Self {
            name: row.name,
            number,
            type_oid: row.type_oid,
            modifier: row.modifier,
            attribute,
            collation: row.collation,
            not_null: row.not_null,
            dropped: row.dropped,
            generated: row.generated,
            missing: missing.transpose()?,
        }))
    }
}
