//! Rows of catalogs that define named objects: `pg_proc`, `pg_operator`, `pg_authid` and others.
//!
//! Printing a `regproc` or `regrole` needs the same few columns from each of these catalogs. All of
//! them start with the object's OID, and the object's name is the first column of type `name`.

use super::data_types::{PG_OPERATOR, PG_PROC};
use super::description::ColumnType;
use super::tuple::{CatalogTuple, RowError};
use crate::ids::Oid;

/// A named object.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ObjectRow {
    /// `oid`.
    pub oid: Oid,
    /// The OID of its schema; 0 for schemas, roles and databases.
    pub schema: Oid,
    /// Its unquoted name, in the database's encoding.
    pub name: Box<[u8]>,
    /// For a function, its input argument types (`proargtypes`). For an operator, always its left
    /// and right operand types, with 0 for a missing operand. Empty for all other objects.
    pub arguments: Vec<Oid>,
}

impl ObjectRow {
    /// Decodes a row of any catalog that starts with an OID and has a column of type `name`.
    ///
    /// # Errors
    /// [`RowError`]: a column is missing, null or has an impossible value.
    pub fn decode(tuple: &mut CatalogTuple<'_, '_>) -> Result<Self, RowError> {
        let table = tuple.table();
        let name = table.columns.iter().find(|column| column.column_type == ColumnType::Name);
        let schema = table.columns.iter().find(|column| column.name.ends_with("namespace"));
        Ok(Self {
            oid: tuple.get("oid")?,
            name: tuple.get(name.map_or("", |column| column.name))?,
            schema: schema.map_or(Ok(Oid(0)), |column| tuple.get(column.name))?,
            arguments: if table.oid == PG_PROC.oid {
                tuple.get("proargtypes")?
            } else if table.oid == PG_OPERATOR.oid {
                vec![tuple.get("oprleft")?, tuple.get("oprright")?]
            } else {
                Vec::new()
            },
        })
    }
}
