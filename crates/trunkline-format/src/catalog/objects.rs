//! Rows of catalogs that define named objects: `pg_proc`, `pg_operator`, `pg_authid` and others.
//!
//! To print a value of type `regproc`, `regrole` and the like, we need the same few columns from
//! each of these catalogs. In all of them, the first column is the object's OID, and the first
//! column of type `name` is the object's name.

use super::description::ColumnType;
use super::functions::PG_PROC;
use super::operators::PG_OPERATOR;
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
    /// For a function, this contains the types of its input arguments (`proargtypes`). For an
    /// operator, it always contains two types, those of the left and the right operand, and a
    /// missing operand is represented by 0. For all other objects it is empty.
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

/// A function of the language `internal`, which calls one of the server's own C functions.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct InternalFunction {
    /// `oid`.
    pub oid: Oid,
    /// `prosrc`: the name of the function in C.
    pub source: Box<[u8]>,
}

impl InternalFunction {
    /// Decodes a row of `pg_proc`. Returns `None` if the function has another language.
    ///
    /// # Errors
    /// [`RowError`]: a column is missing, null or has an impossible value.
    pub fn decode(tuple: &mut CatalogTuple<'_, '_>) -> Result<Option<Self>, RowError> {
        /// `INTERNALlanguageId`.
        const INTERNAL: Oid = Oid(12);
        let oid = tuple.get("oid")?;
        // We must check the language first, because the text of other functions may be in TOAST.
        if tuple.get::<Oid>("prolang")? != INTERNAL {
            return Ok(None);
        }
        Ok(Some(Self { oid, source: tuple.get("prosrc")? }))
    }
}
