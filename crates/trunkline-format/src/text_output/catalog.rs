//! The catalog look-ups needed to print values: types, columns, enum labels, object names.
//!
//! To print values, a program that reads the catalogs must implement [`TypeCatalog`], which only
//! requires simple lookups. The server's rules for printing names (such as when to include the
//! schema, add quotes, or list the argument types of a function) are implemented in the output
//! functions.

use crate::catalog::{ObjectRow, TypeRow};
use crate::deform::Attribute;
use crate::ids::Oid;

/// A row of `pg_attribute`: a column of a composite type, or of a table.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ColumnRow {
    /// `atttypid`; 0 if the column was dropped.
    pub type_oid: Oid,
    /// `atttypmod`, such as a length; -1 if there is none.
    pub modifier: i32,
    /// `attlen` and `attalign`.
    pub attribute: Attribute,
    /// `attisdropped`.
    pub dropped: bool,
}

/// The catalogs of objects that values refer to by OID.
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
/// The trait requires `Sync`, so that several threads can use the same catalog. As in the server,
/// if an object doesn't exist, its OID is printed as a number, but if a type doesn't exist, its
/// values can't be printed and the output function returns an error.
pub trait TypeCatalog: Send + Sync {
    /// The row of `pg_type`.
    fn type_row(&self, oid: Oid) -> Option<TypeRow>;

    /// All columns of a relation, dropped ones included, in `attnum` order from 1.
    fn columns(&self, relation: Oid) -> Option<Vec<ColumnRow>>;

    /// An enum's labels and the OIDs of their `pg_enum` rows, in any order.
    fn enum_labels(&self, enum_type: Oid) -> Vec<(Oid, Vec<u8>)>;

    /// `pg_range.rngsubtype` of a range type.
    fn range_subtype(&self, range: Oid) -> Option<Oid>;

    /// `pg_range.rngtypid` of the row whose `rngmultitypid` is this multirange type.
    fn multirange_range(&self, multirange: Oid) -> Option<Oid>;

    /// Returns a built-in type that has the same C output function as this base type. An extension
    /// can use one of the server's own functions: for example, `citext` is printed by `textout`,
    /// like `text`. Returns `None` if the type's output function is not one of the server's own.
    fn printed_as(&self, base_type: Oid) -> Option<Oid>;

    /// The object with this OID.
    fn object(&self, class: ObjectClass, oid: Oid) -> Option<ObjectRow>;

    /// All objects with exactly this name, in any schema and in any order.
    fn objects_named(&self, class: ObjectClass, name: &[u8]) -> Vec<ObjectRow>;
}
