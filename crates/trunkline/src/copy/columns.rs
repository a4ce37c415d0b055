//! Determines which columns a copy prints: those listed in `--columns`, or the default columns.
//!
//! Names are quoted as in SQL.

use std::borrow::Cow;

use trunkline_engine::catalog::{Database, QualifiedName, RelationInfo};
use trunkline_engine::copy::{ColumnNames, PlanError, column_names};
use trunkline_format::catalog::Generated;
use trunkline_format::text_output::Type;

use super::args::CopyArgs;
use crate::encoding::spellings;
use crate::exit::{Failure, message};

/// Splits a list of names at commas outside quotes. There may be spaces around names.
pub(super) fn split_names(list: &[u8]) -> impl Iterator<Item = &[u8]> {
    let mut quoted = false;
    let names = list.split(move |&byte| {
        quoted ^= byte == b'"';
        byte == b',' && !quoted
    });
    names.map(<[u8]>::trim_ascii)
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

/// Whether a table has a column of exactly this name.
pub(super) fn has_column(database: &Database, table: &RelationInfo, name: &[u8]) -> bool {
    let columns = database.columns(table).unwrap_or_default();
    columns.iter().any(|it| !it.dropped && *it.name == *name)
}

/// Returns the stored name of a column whose name was typed on the command line. If there is no such
/// column, returns the name that was typed.
pub(super) fn stored_name(database: &Database, table: &RelationInfo, typed: Vec<u8>) -> Vec<u8> {
    let spellings = spellings(&typed, database.info().encoding).into_iter();
    let found = spellings.map(Cow::into_owned).find(|name| has_column(database, table, name));
    found.unwrap_or(typed)
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

/// Warns about virtual generated columns. They can't be copied, because a server computes them when
/// they are read and doesn't store them in its files.
fn warn_of_virtual_columns(database: &Database, table: &RelationInfo, left_out: &[Vec<u8>]) {
    for name in left_out {
        let (name, table) = (String::from_utf8_lossy(name), database.qualified_name(table));
        let text = "is a virtual generated column, which is not stored; skipped";
        message("warning", format_args!("column \"{name}\" of relation {table} {text}"));
    }
}
