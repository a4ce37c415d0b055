//! Which columns a copy has: the usual ones, or those that somebody names.
//!
//! Names are bytes in the encoding of the database, with quotes as in SQL.

use trunkline_engine::catalog::{Database, QualifiedName, RelationInfo};
use trunkline_engine::copy::{ColumnNames, PlanError, column_names};
use trunkline_format::catalog::Generated;
use trunkline_format::text_output::Type;

use super::{CopyArgs, RowsArg};
use crate::exit::{Failure, message};
use crate::tables::encoding_name;

/// The names of a list: what is between commas that are not in quotes.
pub(super) fn names_of(list: &[u8]) -> impl Iterator<Item = &[u8]> {
    let mut quoted = false;
    list.split(move |&byte| {
        quoted ^= byte == b'"';
        byte == b',' && !quoted
    })
}

/// A column's name as it was written.
pub(super) fn column_name(text: &[u8]) -> Result<Vec<u8>, Failure> {
    match QualifiedName::parse(text) {
        Ok(QualifiedName { database: None, schema: None, relation }) => Ok(relation),
        _ => {
            let text = String::from_utf8_lossy(text);
            Err(Failure::usage(format_args!("invalid name of a column: \"{text}\"")))
        }
    }
}

/// The columns to copy, those that somebody wants or the usual ones.
pub(super) fn columns(
    args: &CopyArgs,
    database: &Database,
    table: &RelationInfo,
    wanted: &[Vec<u8>],
) -> Result<ColumnNames, PlanError> {
    let names = column_names(database, table, wanted)?;
    if !args.ctid && args.rows == RowsArg::Visible {
        return Ok(names.of_table());
    }
    warn_of_virtual(database, table, &names.left_out);
    Ok(names)
}

/// The columns of a table that are stored and whose values have text.
pub(super) fn printable(database: &Database, table: &RelationInfo) -> Vec<Vec<u8>> {
    let columns = database.columns(table).unwrap_or_default().iter();
    let shown = columns.filter(|column| {
        let stored = !column.dropped && column.generated != Generated::Virtual;
        stored && Type::resolve(column.type_oid, database).is_ok()
    });
    shown.map(|column| column.name.to_vec()).collect()
}

/// Why `name` was not found, if it may be that it was written in another encoding.
pub(super) fn encoded(failure: Failure, name: &[u8], database: &Database) -> Failure {
    let encoding = encoding_name(database.info().encoding);
    if name.is_ascii() || ["UTF8", "SQL_ASCII"].contains(&encoding) {
        return failure;
    }
    failure.with_hint(format_args!(
        "names are taken as bytes in the encoding of the database, which is {encoding}"
    ))
}

/// Says what a table has that its files do not.
fn warn_of_virtual(database: &Database, table: &RelationInfo, left_out: &[Vec<u8>]) {
    for name in left_out {
        let (name, table) = (String::from_utf8_lossy(name), database.qualified_name(table));
        let text = "is virtual: it is not stored, and left out";
        message("warning", format_args!("column \"{name}\" of relation {table} {text}"));
    }
}
