//! What the catalog knows of one relation and its columns, and of one database.
//!
//! Plain values, copied out of the catalogs' rows: nothing here keeps a page.

use std::ops::Range;

use trunkline_format::Oid;
use trunkline_format::catalog::{Generated, Persistence, RelationKind};
use trunkline_format::deform::Attribute;

use super::name::quoted;
use crate::storage::RelationLocator;

/// The access method of ordinary tables.
pub const HEAP_METHOD: Oid = Oid(2);

/// The access method of B-trees.
pub const BTREE_METHOD: Oid = Oid(403);

/// A database.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct DatabaseInfo {
    /// Its OID: the name of its directory.
    pub oid: Oid,
    /// Its name.
    pub name: Box<[u8]>,
    /// The encoding of its text: 6 is UTF-8, 0 is unknown.
    pub encoding: i32,
    /// Whether others may be made after it.
    pub is_template: bool,
    /// Whether a server lets anybody connect to it.
    pub allows_connections: bool,
    /// Its removal began and did not end: its files may be gone.
    pub is_invalid: bool,
    /// Where its files are unless something else is said of them.
    pub tablespace: Oid,
    /// Whether text is sorted by its bytes unless a column says otherwise.
    pub sorts_by_bytes: bool,
}

/// A tablespace.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct TablespaceInfo {
    /// Its OID: the name of its link.
    pub oid: Oid,
    /// Its name.
    pub name: Box<[u8]>,
}

/// A schema.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct SchemaInfo {
    /// Its OID.
    pub oid: Oid,
    /// Its name.
    pub name: Box<[u8]>,
}

/// A table, index, sequence, view or whatever else has a row in `pg_class`.
#[derive(Debug, Clone, PartialEq)]
pub struct RelationInfo {
    /// Its OID.
    pub oid: Oid,
    /// The OID of the schema it is in.
    pub schema: Oid,
    /// Its name.
    pub name: Box<[u8]>,
    /// What it is.
    pub kind: RelationKind,
    /// What becomes of it after a crash.
    pub persistence: Persistence,
    /// The OID of the access method that laid out its files; 0 if none.
    pub access_method: Oid,
    /// Its files; `None` if it has none, or if they are another session's.
    pub locator: Option<RelationLocator>,
    /// Blocks when a server last counted, as far as it did.
    pub pages: i32,
    /// Rows when a server last counted; `None` if it never did.
    pub rows: Option<f32>,
    /// The OID of the table with its long values; 0 if it has none.
    pub toast: Oid,
    /// The OID of the composite type of its rows; 0 if it has none.
    pub row_type: Oid,
    /// Whether all databases share it.
    pub shared: bool,
    /// Whether it holds what its query says; true of everything but materialized views.
    pub populated: bool,
    /// Whether it is a partition.
    pub is_partition: bool,
    /// The oldest transaction that a row of it may name as an ordinary one; 0 if it has no rows.
    pub frozen_xid: u32,
    /// The oldest multixact that a row of it may name; 0 if it has no rows.
    pub min_multi: u32,
    /// Columns that there should be, those that were dropped included.
    pub(super) column_count: u16,
    /// Its columns among all.
    pub(super) columns: Range<usize>,
}

impl RelationInfo {
    /// Its name as one would write it without its schema.
    pub fn quoted_name(&self) -> String {
        quoted(&self.name)
    }

    /// Whether what it holds is in its partitions.
    pub fn is_partitioned(&self) -> bool {
        matches!(self.kind, RelationKind::PartitionedTable | RelationKind::PartitionedIndex)
    }
}

/// A column of a relation.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ColumnInfo {
    /// Its name; of a dropped column one that nobody would give.
    pub name: Box<[u8]>,
    /// Its number, from 1.
    pub number: u16,
    /// The OID of its type; 0 if it was dropped.
    pub type_oid: Oid,
    /// What its type was given, such as a length; -1 if nothing.
    pub modifier: i32,
    /// How it lies in a row.
    pub attribute: Attribute,
    /// The OID of the collation of its type; 0 if it has none.
    pub collation: Oid,
    /// Whether it is never null.
    pub not_null: bool,
    /// Whether it was dropped: rows may still hold values.
    pub dropped: bool,
    /// Whether it is computed, and stored.
    pub generated: Generated,
    /// What rows have that are older than it, in the form in which rows hold values; `None`: null.
    pub missing: Option<Box<[u8]>>,
}
