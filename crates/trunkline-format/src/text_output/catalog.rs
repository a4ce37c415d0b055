//! What printing a value needs to know of the catalogs: rows of types, columns, labels and names.
//!
//! Whoever read a database's catalogs implements [`TypeCatalog`] with plain look-ups. The server's
//! rules (what is visible without its schema, how a name is quoted, what a function's signature
//! looks like) are applied here, to the rows that the look-ups give, so nobody else repeats them.

use crate::align::Align;
use crate::catalog::{ObjectRow, TypeRow};
use crate::ids::Oid;

/// A row of `pg_attribute`: a column of a composite type, or of a table.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ColumnRow {
    /// `attname`, in the encoding of the database.
    pub name: Vec<u8>,
    /// `atttypid`; 0 if the column was dropped.
    pub type_oid: Oid,
    /// `attlen`.
    pub len: i16,
    /// `attalign`.
    pub align: Align,
    /// `attisdropped`.
    pub dropped: bool,
}

/// The kinds of objects that values name by their OIDs.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum ObjectClass {
    /// `pg_class`: tables, indexes, views, sequences, composite types.
    Relation,
    /// `pg_proc`: functions, procedures, aggregates.
    Procedure,
    /// `pg_operator`.
    Operator,
    /// `pg_namespace`.
    Schema,
    /// `pg_authid`.
    Role,
    /// `pg_database`.
    Database,
    /// `pg_collation`.
    Collation,
    /// `pg_ts_config`.
    TextSearchConfig,
    /// `pg_ts_dict`.
    TextSearchDictionary,
    /// `pg_type`.
    Type,
}

/// Look-ups in the catalogs of one database, as of the state that is read.
///
/// `Sync`, so that many threads can print with one of it. What is not there is `None` or empty:
/// the caller then prints a number, or refuses the type, as the server does.
pub trait TypeCatalog: Send + Sync {
    /// The row of `pg_type`.
    fn type_row(&self, oid: Oid) -> Option<TypeRow>;

    /// All columns of a relation by rising `attnum` from 1, those that were dropped included.
    fn columns(&self, relation: Oid) -> Option<Vec<ColumnRow>>;

    /// The labels of an enum by the OIDs of their rows in `pg_enum`, in any order.
    fn enum_labels(&self, enum_type: Oid) -> Vec<(Oid, Vec<u8>)>;

    /// `pg_range.rngsubtype` of a range type.
    fn range_subtype(&self, range: Oid) -> Option<Oid>;

    /// `pg_range.rngtypid` where `rngmultitypid` is the given multirange type.
    fn multirange_range(&self, multirange: Oid) -> Option<Oid>;

    /// The object with this OID.
    fn object(&self, class: ObjectClass, oid: Oid) -> Option<ObjectRow>;

    /// All objects with exactly this name, in any schema and in any order.
    fn objects_named(&self, class: ObjectClass, name: &[u8]) -> Vec<ObjectRow>;
}
