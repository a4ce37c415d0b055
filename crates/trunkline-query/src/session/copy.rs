//! The table of `COPY … TO`: which columns are copied, and of which relations.
//!
//! `copy t (b, a) to stdout` copies two columns of the table itself, without those that inherit from
//! it. Generated columns are left out, because they can't be loaded.

use trunkline_format::catalog::{Generated, RelationKind};
use trunkline_sql::catalog::{Namespace, ObjectName};
use trunkline_sql::syntax::{Name, QualifiedName};
use trunkline_sql::{SqlError, SqlState};

/// The query that returns the rows to copy.
///
/// # Errors
/// 42P01: the relation doesn't exist. 42809: it can't be copied. 42703, 42701, 42P10: a column can't.
pub(super) fn table_query(
    names: Namespace<'_>,
    table: &QualifiedName,
    listed: &[Name],
    major: u32,
) -> Result<String, SqlError> {
    let at = table.span.start;
    let (schema, name) = match &*table.parts {
        [name] => (None, name),
        [schema, name] => (Some(&*schema.text), name),
        _ => {
            let message = "COPY of a table in another database is not supported by trunkline";
            return Err(SqlError::unsupported(message).at(at));
        }
    };
    let object = ObjectName { schema, name: &name.text };
    let relation = names.relation_named(object)?;
    check_kind(relation.kind, &name.text, major)?;
    let database = names.catalog().database();
    let encoding = names.catalog().encoding();
    let columns = database
        .columns(relation)
        .map_err(|error| SqlError::new(SqlState::DATA_CORRUPTED, error.to_string()))?;
    let columns = columns.iter().filter(|column| !column.dropped);
    let columns: Vec<(String, bool)> = columns
        .map(|column| (encoding.decode(&column.name), column.generated != Generated::No))
        .collect();
    let mut chosen: Vec<&str> = Vec::new();
    for column in listed {
        let found = columns.iter().find(|(name, _)| *name == column.text);
        let Some((found, is_generated)) = found else {
            let message =
                format!("column \"{}\" of relation \"{}\" does not exist", column.text, name.text);
            return Err(SqlError::new(SqlState::UNDEFINED_COLUMN, message));
        };
        if *is_generated {
            let message = format!("column \"{found}\" is a generated column");
            return Err(SqlError::new(SqlState::INVALID_COLUMN_REFERENCE, message)
                .with_detail("Generated columns cannot be used in COPY."));
        }
        if chosen.contains(&&**found) {
            let message = format!("column \"{found}\" specified more than once");
            return Err(SqlError::new(SqlState::DUPLICATE_COLUMN, message));
        }
        chosen.push(found);
    }
    if listed.is_empty() {
        chosen = columns.iter().filter(|column| !column.1).map(|column| &*column.0).collect();
    }
    let columns: Vec<String> = chosen.into_iter().map(quoted).collect();
    let parts: Vec<String> = table.parts.iter().map(|part| quoted(&part.text)).collect();
    Ok(format!("select {} from only {}", columns.join(", "), parts.join(".")))
}

fn check_kind(kind: RelationKind, name: &str, major: u32) -> Result<(), SqlError> {
    let what = match kind {
        RelationKind::Table => return Ok(()),
        RelationKind::MaterializedView if major >= 18 => return Ok(()),
        RelationKind::MaterializedView => "materialized view",
        RelationKind::View => "view",
        RelationKind::PartitionedTable => "partitioned table",
        RelationKind::ForeignTable => "foreign table",
        _ => {
            let message = "COPY of a relation that is not a table is not supported by trunkline";
            return Err(SqlError::unsupported(message));
        }
    };
    let message = format!("cannot copy from {what} \"{name}\"");
    Err(SqlError::new(SqlState::WRONG_OBJECT_TYPE, message)
        .with_hint("Try the COPY (SELECT ...) TO variant."))
}

/// A name in double quotes.
fn quoted(name: &str) -> String {
    format!("\"{}\"", name.replace('"', "\"\""))
}
