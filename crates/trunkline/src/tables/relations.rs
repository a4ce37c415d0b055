//! The list of a database's relations.

use serde::Serialize;
use trunkline_engine::catalog::{Database, is_system_schema};
use trunkline_engine::datadir::DataDir;
use trunkline_format::catalog::RelationKind;

use super::listing::{Listing, SortKey, is_false, share, size, sort};
use super::sizes::{Sizes, Sum};
use crate::data_dir::relative;
use crate::encoding::shown_name;
use crate::output::Column;

/// A relation in the list.
#[derive(Serialize)]
pub(super) struct RelationLine {
    schema: String,
    name: String,
    oid: u32,
    kind: String,
    /// Estimated number of rows; `None` if the relation was never vacuumed or analyzed.
    rows: Option<f32>,
    /// `None` for relations without files, or if they are missing.
    pub(super) bytes: Option<u64>,
    /// Whether files are missing or could not be read, so that `bytes` is too small.
    #[serde(skip_serializing_if = "is_false")]
    pub(super) incomplete: bool,
    #[serde(skip_serializing_if = "Option::is_none")]
    bytes_cached: Option<u64>,
    file: Option<String>,
    persistence: String,
    access_method: Option<String>,
}

/// A line for each relation, in the order of the options. Only with `all` are there lines for
/// catalogs, indexes and the like.
pub(super) fn relations(
    database: &Database,
    dir: &DataDir,
    sizes: &Sizes,
    all: bool,
    listing: Listing,
) -> Vec<RelationLine> {
    let mut lines: Vec<RelationLine> = Vec::new();
    let shown = |name: &[u8]| shown_name(name, database.info().encoding);
    for relation in database.relations() {
        let schema = database.schema_name(relation);
        if !all && (is_internal(relation.kind) || is_system_schema(&schema)) {
            continue;
        }
        let sum = sizes.of_relation(database, relation);
        let size = sum.and_then(Sum::found);
        let method = database.access_method(relation.access_method);
        lines.push(RelationLine {
            schema: shown(&schema),
            name: shown(&relation.name),
            oid: relation.oid.0,
            kind: relation.kind.to_string(),
            rows: relation.rows.filter(|_| counts_rows(relation.kind)),
            bytes: size.map(|size| size.bytes),
            incomplete: relation.has_main_fork() && sum.is_some_and(|sum| !sum.is_complete()),
            bytes_cached: size.filter(|_| listing.cached).map(|size| size.cached),
            file: database.files(relation).map(|files| relative(&files.path(0), dir.path())),
            persistence: relation.persistence.to_string(),
            access_method: method.map(shown),
        });
    }
    lines.sort_by(|one, other| (&one.schema, &one.name).cmp(&(&other.schema, &other.name)));
    sort(&mut lines, |line| match listing.sort {
        SortKey::Name => None,
        SortKey::Rows => line.rows.map(|rows| rows as u64),
        SortKey::Size => line.bytes,
        SortKey::Cached => line.bytes_cached,
    });
    lines
}

/// Whether `pg_class.reltuples` is maintained for this kind of relation.
fn counts_rows(kind: RelationKind) -> bool {
    kind.is_table_like() || matches!(kind, RelationKind::Index | RelationKind::PartitionedTable)
}

/// Returns whether relations of this kind are only part of another relation. We list these only
/// with `--all`.
fn is_internal(kind: RelationKind) -> bool {
    matches!(
        kind,
        RelationKind::Index
            | RelationKind::PartitionedIndex
            | RelationKind::Toast
            | RelationKind::CompositeType
    )
}

/// The columns of the list.
pub(super) const RELATION_COLUMNS: [Column<RelationLine>; 8] = [
    ("schema", |line| line.schema.clone()),
    ("name", |line| line.name.clone()),
    ("kind", |line| line.kind.clone()),
    (">rows", |line| line.rows.map(|rows| format!("{rows:.0}")).unwrap_or_default()),
    (">size", |line| match line.bytes {
        None if !line.incomplete => String::new(),
        bytes => size(bytes, line.incomplete),
    }),
    (">cached", |line| match (line.bytes_cached, line.bytes) {
        (Some(cached), Some(bytes)) => share(cached, bytes),
        _ => String::new(),
    }),
    ("file", |line| line.file.clone().unwrap_or_default()),
    ("persistence", |line| line.persistence.clone()),
];

#[cfg(test)]
mod tests {
    use super::super::listing::columns;
    use super::*;
    use crate::output::table;

    #[test]
    fn an_unknown_row_count_is_blank() {
        let line = RelationLine {
            schema: "public".into(),
            name: "t".into(),
            oid: 1,
            kind: "table".into(),
            rows: None,
            bytes: None,
            incomplete: true,
            bytes_cached: None,
            file: Some("base/5/1".into()),
            persistence: "permanent".into(),
            access_method: None,
        };
        let text = table(&[line], &columns(&RELATION_COLUMNS, false));
        assert!(text.contains("\npublic  t     table        missing  base/5/1"), "{text}");
    }
}
