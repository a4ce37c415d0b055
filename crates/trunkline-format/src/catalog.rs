//! **System catalogs**: the layout of `pg_class`, `pg_attribute`, `pg_type` and others, declared as
//! data.
//!
//! The catalogs describe every table, including themselves. We must therefore know the layout of a
//! few catalogs before we can read any table at all. PostgreSQL solves this problem with bootstrap
//! data that is generated from its header files. Here, each catalog is declared with a macro:
//!
//! ```text
//!   describe_catalog! {
//!       PG_NAMESPACE = "pg_namespace", 2615;                  name, OID, where its file number is
//!       index "pg_namespace_oid_index", 2685;                 an index with an entry for every row
//!       columns { oid: Oid, nspname: Name, nspowner: Oid,     every column with its type and the
//!                 nspacl: AclItemArray }                      versions that have it
//!       row NamespaceRow { oid: Oid = oid,                    the columns that are decoded, and the
//!                          name: Box<[u8]> = nspname, }       Rust fields that they fill
//!   }
//! ```
//!
//! Adding a column takes one line, and adding a catalog takes one such block. The resulting
//! [`CatalogTable`] contains everything that is needed to scan the catalog, including the columns
//! that we don't decode into a row type:
//!
//! ```
//! use trunkline_format::PgVersion;
//! use trunkline_format::catalog::PG_CLASS;
//!
//! let layout = PG_CLASS.layout(PgVersion::V18);
//! let at = layout.columns().iter().position(|column| column.name == "relallfrozen");
//! assert_eq!(at, Some(12)); // new in PostgreSQL 18
//! ```
//!
//! In most catalogs, the first columns have a fixed size and are never null. They are at the same
//! offset in every row, just like the fields of the C struct (such as `FormData_pg_class`), so we
//! can read them without deforming the row. The remaining columns are deformed as in any other
//! table (see [`crate::deform`]).
//!
//! **Trust.** We copied the declarations from `pg_attribute` on a server of each version.
//! [`CatalogLayout::agrees`] compares them with `pg_attribute` in the cluster we are reading. So if
//! the cluster was created by a fork of PostgreSQL whose catalogs have different columns, we report
//! an error instead of decoding garbage.

mod codes;
mod data_types;
mod definitions;
mod describe;
mod description;
mod encoding_name;
mod extensions;
mod functions;
mod objects;
mod operators;
mod relations;
mod settings;
mod shared;
mod statistics;
mod stored_array;
#[cfg(test)]
mod tests;
mod tuple;
mod type_modifier;

pub use codes::{Generated, Persistence, RelationKind};
pub use data_types::*;
pub use definitions::*;
pub use description::{
    CatalogColumn, CatalogIndex, CatalogLayout, CatalogTable, ColumnType, Described, Mismatch,
    NAME_SIZE,
};
pub use encoding_name::encoding_name;
pub use extensions::*;
pub use functions::*;
pub use objects::{InternalFunction, ObjectRow};
pub use operators::*;
pub use relations::*;
pub use settings::settings_of;
pub use shared::*;
pub use statistics::*;
pub use stored_array::{array_chars, array_floats, array_oids, array_shorts, array_texts};
pub use tuple::{CatalogRow, CatalogTuple, ColumnValue, RowError};
pub use type_modifier::type_with_modifier;

/// All declared catalogs.
pub static CATALOGS: [&CatalogTable; 39] = [
    &PG_CLASS,
    &PG_ATTRIBUTE,
    &PG_INDEX,
    &PG_INHERITS,
    &PG_NAMESPACE,
    &PG_AM,
    &PG_OPCLASS,
    &PG_SEQUENCE,
    &PG_TYPE,
    &PG_ENUM,
    &PG_RANGE,
    &PG_PROC,
    &PG_AGGREGATE,
    &PG_CAST,
    &PG_LANGUAGE,
    &PG_OPERATOR,
    &PG_OPFAMILY,
    &PG_AMOP,
    &PG_AMPROC,
    &PG_COLLATION,
    &PG_TS_CONFIG,
    &PG_TS_DICT,
    &PG_DATABASE,
    &PG_TABLESPACE,
    &PG_AUTHID,
    &PG_DB_ROLE_SETTING,
    &PG_REWRITE,
    &PG_CONSTRAINT,
    &PG_PARTITIONED_TABLE,
    &PG_STATISTIC_EXT,
    &PG_ATTRDEF,
    &PG_DESCRIPTION,
    &PG_SHDESCRIPTION,
    &PG_CONVERSION,
    &PG_TS_PARSER,
    &PG_TS_TEMPLATE,
    &PG_EXTENSION,
    &PG_FOREIGN_DATA_WRAPPER,
    &PG_FOREIGN_SERVER,
];
