//! Comments: `obj_description`, `col_description`, `shobj_description`.
//!
//! In PostgreSQL, these functions are queries of `pg_description` in SQL. `obj_description(oid)`
//! without the name of a catalog can be ambiguous, and then fails.

use trunkline_format::Oid;

use crate::catalog::{Definitions, SqlCatalog};
use crate::error::{SqlError, SqlState};
use crate::functions::call::{Call, Kernel};
use crate::functions::rows::{Reader, each_row};

/// The kernels of this module.
pub(in crate::functions) const COMMENTS: &[(&str, Kernel)] = &[
    ("obj_description(oid,name)", |call| {
        of_class(call, |definitions, object, class| definitions.description(object, class, 0))
    }),
    ("obj_description(oid)", only_description),
    ("col_description(oid,int4)", |call| {
        let catalog = &call.settings.session()?.catalog;
        let (tables, columns) = (Reader::<u32>::new(call, 0)?, Reader::<i32>::new(call, 1)?);
        each_row(call.rows, |row| {
            let (Some(table), Some(column)) = (tables.get(row), columns.get(row)) else {
                return Ok(None);
            };
            let found = catalog.definitions().description(Oid(table), PG_CLASS, column)?;
            Ok(found.map(|text| catalog.encoding().decode(text)))
        })
    }),
    ("shobj_description(oid,name)", |call| of_class(call, Definitions::shared_description)),
];

/// The OID of `pg_class`.
const PG_CLASS: Oid = Oid(1259);

/// The catalog with this name.
fn class_named(catalog: &SqlCatalog, name: &str) -> Option<Oid> {
    let database = catalog.database();
    let schema = database.schema(crate::catalog::oids::PG_CATALOG)?;
    let name = catalog.encoding().encode(name)?;
    Some(database.find(schema, &name)?.oid)
}

/// Finds the comment on an object by its OID and that of its catalog.
type FindComment = fn(&Definitions, Oid, Oid) -> Result<Option<&[u8]>, SqlError>;

/// The comments that `find` finds by the object's OID and its catalog's.
fn of_class(call: &Call<'_>, find: FindComment) -> Result<arrow_array::ArrayRef, SqlError> {
    let catalog = &call.settings.session()?.catalog;
    let (objects, classes) = (Reader::<u32>::new(call, 0)?, Reader::<&str>::new(call, 1)?);
    each_row(call.rows, |row| {
        let (Some(object), Some(class)) = (objects.get(row), classes.get(row)) else {
            return Ok(None);
        };
        let Some(class) = class_named(catalog, class) else { return Ok(None) };
        let found = find(catalog.definitions(), Oid(object), class)?;
        Ok(found.map(|text| catalog.encoding().decode(text)))
    })
}

fn only_description(call: &Call<'_>) -> Result<arrow_array::ArrayRef, SqlError> {
    let catalog = &call.settings.session()?.catalog;
    let objects = Reader::<u32>::new(call, 0)?;
    let rows = &catalog.definitions().catalogs()?.descriptions;
    each_row(call.rows, |row| {
        let Some(object) = objects.get(row) else { return Ok(None) };
        let mut found = rows.iter().filter(|row| row.object == Oid(object) && row.part == 0);
        let (first, second) = (found.next(), found.next());
        if second.is_some() {
            let message = "query returned more than one row";
            return Err(SqlError::new(SqlState::CARDINALITY_VIOLATION, message));
        }
        let text = first.and_then(|row| row.text.as_deref());
        Ok(text.map(|text| catalog.encoding().decode(text)))
    })
}
