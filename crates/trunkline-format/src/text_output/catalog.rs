//! Catalog look-ups that printing a value needs: types, columns, enum labels, object names.
//!
//! A catalog reader implements [`TypeCatalog`] with plain look-ups. The server's rules for names
//! (visibility without a schema, quoting, signatures of functions) are applied by the output
//! functions, so that implementations do not repeat them.

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

/// The classes of objects that values refer to by OID.
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

/// Look-ups in the catalogs of one database.
///
/// The trait requires `Sync`, so that many threads can share a catalog. If an object does not
/// exist, its OID is printed as a number or the type is refused, as in the server.
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
