//! Determines which columns a copy prints: those listed in `--columns`, or the default columns.
//!
//! Names are bytes in the encoding of the database, quoted as in SQL.

use trunkline_engine::catalog::{Database, QualifiedName, RelationInfo};
use trunkline_engine::copy::{ColumnNames, PlanError, column_names};
use trunkline_format::catalog::Generated;
use trunkline_format::text_output::Type;

use super::args::CopyArgs;
use crate::exit::{Failure, message};
use crate::tables::encoding_name;

/// Splits a list of names at commas outside quotes.
pub(super) fn split_names(list: &[u8]) -> impl Iterator<Item = &[u8]> {
    let mut quoted = false;
    list.split(move |&byte| {
        quoted ^= byte == b'"';
        byte == b',' && !quoted
    })
}

/// Parses the name of a column.
pub(super) fn parse_column_name(text: &[u8]) -> Result<Vec<u8>, Failure> {
    match QualifiedName::parse(text) {
        Ok(QualifiedName { database: None, schema: None, relation }) => Ok(relation),
        _ => {
            let text = String::from_utf8_lossy(text);
            Err(Failure::usage(format_args!("invalid column name: \"{text}\"")))
        }
    }
}

/// The columns to print: `wanted`, or the default columns if `wanted` is empty.
pub(super) fn columns(
    args: &CopyArgs,
    database: &Database,
    table: &RelationInfo,
    wanted: &[Vec<u8>],
) -> Result<ColumnNames, PlanError> {
    let names = column_names(database, table, wanted)?;
    if !args.shows_system_columns() {
        return Ok(names.of_table());
    }
    warn_of_virtual_columns(database, table, &names.left_out);
    Ok(names)
}

/// The columns of a table that are stored and have a supported type.
pub(super) fn printable_columns(database: &Database, table: &RelationInfo) -> Vec<Vec<u8>> {
    let columns = database.columns(table).unwrap_or_default().iter();
    let shown = columns.filter(|column| {
        let stored = !column.dropped && column.generated != Generated::Virtual;
        stored && Type::resolve(column.type_oid, database).is_ok()
    });
    shown.map(|column| column.name.to_vec()).collect()
}

/// Adds a hint to the error for a table or column that wasn't found. The user may have typed the
/// name in an encoding that differs from the database's.
pub(super) fn with_encoding_hint(failure: Failure, name: &[u8], database: &Database) -> Failure {
    let encoding = encoding_name(database.info().encoding);
    if name.is_ascii() || ["UTF8", "SQL_ASCII"].contains(&encoding) {
        return failure;
    }
    failure.with_hint(format_args!("names must be in the encoding of the database, {encoding}"))
}

/// Warns about virtual generated columns. They can't be copied, because a server computes them when
/// they are read and doesn't store them in its files.
fn warn_of_virtual_columns(database: &Database, table: &RelationInfo, left_out: &[Vec<u8>]) {
    for name in left_out {
        let (name, table) = (String::from_utf8_lossy(name), database.qualified_name(table));
        let text = "is a virtual generated column, which is not stored; skipped";
        message("warning", format_args!("column \"{name}\" of relation {table} {text}"));
    }
}
