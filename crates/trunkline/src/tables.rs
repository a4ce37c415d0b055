//! `trunkline tables`: lists databases or relations, like `\l+` and `\d+` of psql.
//!
//! ```text
//!   tables -D DIR                    databases
//!   tables -D DIR -d bench           relations, without catalogs, indexes and TOAST tables
//!   tables -D DIR -d bench --all     all relations
//! ```
//! The row counts are the planner's estimates from `pg_class.reltuples`, because we'd have to read
//! every page to count the rows. Sizes are file sizes. As in `pg_table_size`, the size of a table
//! includes all forks, the TOAST table and the TOAST index, but not the table's own indexes.

use std::collections::BTreeMap;
use std::os::unix::ffi::OsStrExt;

use serde::Serialize;
use trunkline_engine::catalog::{Catalog, CatalogError, Database, DatabaseRow, RelationInfo};
use trunkline_engine::datadir::{DataDir, FileEntry};
use trunkline_engine::storage::RelationLocator;
use trunkline_format::catalog::RelationKind;
use trunkline_format::{Fork, Oid};

use crate::catalog_session::CatalogSession;
use crate::data_dir::{self, relative};
use crate::exit::{Exit, Failure};
use crate::options::{Context, DatabaseArgs};
use crate::output::{Column, human_bytes, object, print_report, table};

/// Options of the command.
#[derive(Debug, clap::Args)]
pub(crate) struct TablesArgs {
    #[command(flatten)]
    database: DatabaseArgs,

    /// Also list catalogs, indexes, TOAST tables and composite types.
    #[arg(long, requires = "dbname")]
    all: bool,
}

/// SQL_ASCII. The shared catalogs contain names from databases with different encodings, but they
/// don't record the encoding of a name.
const SHARED_CATALOG_ENCODING: i32 = 0;

/// Runs the command.
pub(crate) fn run(context: &Context<'_>, args: &TablesArgs) -> Result<Exit, Failure> {
    let Context { global, settings, .. } = context;
    let dir = data_dir::open(global)?;
    let mut session = CatalogSession::open(&dir, settings)?;
    let sizes = Sizes::of(&dir);
    let Some(name) = &args.database.dbname else {
        let databases = databases(&session.catalog, &sizes);
        dir.recheck()?;
        let json = object! { schema: 1, command: "tables", databases: &databases };
        print_report(global, &json, || table(&databases, &DATABASE_COLUMNS))?;
        return Ok(exit(session.catalog.faults().iter()));
    };
    let database = session.database(name.as_bytes())?;
    let relations = relations(&database, &dir, &sizes, args.all);
    dir.recheck()?;
    let name = shown_name(&database.info().name, SHARED_CATALOG_ENCODING);
    let json = object! { schema: 1, command: "tables", database: name, relations: &relations };
    print_report(global, &json, || table(&relations, &RELATION_COLUMNS))?;
    Ok(exit(session.catalog.faults().iter().chain(database.faults())))
}

/// If we had to skip a damaged catalog row, the list is incomplete. That counts as a finding.
fn exit<'f>(mut faults: impl Iterator<Item = &'f CatalogError>) -> Exit {
    if faults.next().is_none() { Exit::Good } else { Exit::Findings }
}

/// Total file size of each relation and of each database. We walk through all files once and add up
/// their sizes, which is cheaper than calling stat for every relation's files.
struct Sizes {
    relations: BTreeMap<RelationLocator, Size>,
    databases: BTreeMap<Oid, u64>,
}

/// Size of all forks of a relation.
#[derive(Default)]
struct Size {
    bytes: u64,
    /// Whether the first segment of the main fork exists. If it doesn't, the relation has been
    /// dropped, and any other forks are only leftovers.
    exists: bool,
}

impl Sizes {
    fn of(dir: &DataDir) -> Sizes {
        let mut sizes = Sizes { relations: BTreeMap::new(), databases: BTreeMap::new() };
        for file in dir.relation_files().files {
            let FileEntry { tablespace, database, relfilenode, bytes, .. } = file;
            let locator = RelationLocator { tablespace, database, relfilenode };
            let size = sizes.relations.entry(locator).or_default();
            size.bytes += bytes;
            size.exists |= file.fork == Fork::Main && file.segment == 0;
            *sizes.databases.entry(database).or_default() += bytes;
        }
        sizes
    }

    /// Returns the size of a relation, including its TOAST table. Returns `None` if the relation
    /// has no files or if they are missing.
    fn of_relation(&self, database: &Database, relation: &RelationInfo) -> Option<u64> {
        let own = |relation: &RelationInfo| {
            let size = self.relations.get(&relation.locator?)?;
            size.exists.then_some(size.bytes)
        };
        let bytes = own(relation)?;
        let Some(toast) = database.relation(relation.toast) else { return Some(bytes) };
        let indexes = database.indexes_of(toast.oid).iter();
        let indexes = indexes.filter_map(|row| own(database.relation(row.index)?));
        Some(bytes + own(toast).unwrap_or_default() + indexes.sum::<u64>())
    }
}

/// A database in the list.
#[derive(Serialize)]
struct DatabaseLine {
    name: String,
    oid: u32,
    encoding: &'static str,
    tablespace: String,
    bytes: u64,
    template: bool,
    allows_connections: bool,
    invalid: bool,
}

fn databases(catalog: &Catalog, sizes: &Sizes) -> Vec<DatabaseLine> {
    let line = |info: &DatabaseRow| {
        let tablespace = catalog.tablespaces().iter().find(|space| space.oid == info.tablespace);
        DatabaseLine {
            name: shown_name(&info.name, SHARED_CATALOG_ENCODING),
            oid: info.oid.0,
            encoding: encoding_name(info.encoding),
            tablespace: tablespace.map_or_else(
                || info.tablespace.to_string(),
                |space| shown_name(&space.name, SHARED_CATALOG_ENCODING),
            ),
            bytes: sizes.databases.get(&info.oid).copied().unwrap_or_default(),
            template: info.is_template,
            allows_connections: info.allows_connections,
            invalid: info.is_invalid(),
        }
    };
    catalog.databases().iter().map(line).collect()
}

/// The columns in the list of databases. Unusual properties are all shown in the last column,
/// because most databases have none.
const DATABASE_COLUMNS: [Column<DatabaseLine>; 6] = [
    ("name", |line| line.name.clone()),
    (">oid", |line| line.oid.to_string()),
    ("encoding", |line| line.encoding.to_owned()),
    ("tablespace", |line| line.tablespace.clone()),
    (">size", |line| human_bytes(line.bytes)),
    ("note", |line| {
        let notes = [
            (line.invalid, "invalid: DROP DATABASE was interrupted"),
            (line.template, "template"),
            (!line.allows_connections, "no connections"),
        ];
        let notes: Vec<&str> = notes.iter().filter(|(is, _)| *is).map(|(_, note)| *note).collect();
        notes.join(", ")
    }),
];

/// A relation in the list.
#[derive(Serialize)]
struct RelationLine {
    schema: String,
    name: String,
    oid: u32,
    kind: String,
    /// Estimated number of rows; `None` if the relation was never vacuumed or analyzed.
    rows: Option<f32>,
    /// `None` for relations without files.
    bytes: Option<u64>,
    file: Option<String>,
    persistence: String,
    access_method: Option<String>,
}

fn relations(database: &Database, dir: &DataDir, sizes: &Sizes, all: bool) -> Vec<RelationLine> {
    let mut lines: Vec<RelationLine> = Vec::new();
    let shown = |name: &[u8]| shown_name(name, database.info().encoding);
    for relation in database.relations() {
        let schema = shown(&database.schema_name(relation));
        if !all && (is_internal(relation.kind) || is_system(&schema)) {
            continue;
        }
        let method = database.access_method(relation.access_method);
        lines.push(RelationLine {
            schema,
            name: shown(&relation.name),
            oid: relation.oid.0,
            kind: relation.kind.to_string(),
            rows: relation.rows.filter(|_| counts_rows(relation.kind)),
            bytes: sizes.of_relation(database, relation),
            file: database.files(relation).map(|files| relative(&files.path(0), dir.path())),
            persistence: relation.persistence.to_string(),
            access_method: method.map(shown),
        });
    }
    lines.sort_by(|one, other| (&one.schema, &one.name).cmp(&(&other.schema, &other.name)));
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

/// Whether a schema holds system catalogs, TOAST tables or temporary tables.
fn is_system(schema: &str) -> bool {
    schema.starts_with("pg_") || schema == "information_schema"
}

/// The table of relations.
const RELATION_COLUMNS: [Column<RelationLine>; 7] = [
    ("schema", |line| line.schema.clone()),
    ("name", |line| line.name.clone()),
    ("kind", |line| line.kind.clone()),
    (">rows", |line| line.rows.map(|rows| format!("{rows:.0}")).unwrap_or_default()),
    (">size", |line| match (line.bytes, &line.file) {
        (Some(bytes), _) => human_bytes(bytes),
        (None, Some(_)) => "missing".to_owned(),
        (None, None) => String::new(),
    }),
    ("file", |line| line.file.clone().unwrap_or_default()),
    ("persistence", |line| line.persistence.clone()),
];

/// Converts a name in the encoding of a database to UTF-8.
///
/// Names in UTF-8 are shown unchanged, and LATIN1 is the only encoding that we convert. In all
/// other encodings, and in names that aren't valid in their encoding, non-ASCII bytes are shown as
/// escapes such as `\xE4`. In that case we also double every backslash, so that two different names
/// never look the same.
fn shown_name(name: &[u8], encoding: i32) -> String {
    let encoding = encoding_name(encoding);
    if encoding == "LATIN1" {
        return name.iter().copied().map(char::from).collect();
    }
    match str::from_utf8(name) {
        Ok(text) if text.is_ascii() && !text.contains('\\') => text.to_owned(),
        Ok(text) if encoding == "UTF8" => text.to_owned(),
        Ok(text) if encoding == "SQL_ASCII" && !text.contains('\\') => text.to_owned(),
        _ => name.iter().fold(String::new(), |mut shown, &byte| {
            match byte {
                b'\\' => shown.push_str("\\\\"),
                0..=127 => shown.push(char::from(byte)),
                _ => shown.push_str(&format!("\\x{byte:02X}")),
            }
            shown
        }),
    }
}

/// Returns PostgreSQL's name for an encoding (`pg_enc`). The numbers can't change between versions,
/// because they are stored in `pg_database.encoding`.
pub(crate) fn encoding_name(encoding: i32) -> &'static str {
    const NAMES: &str = "SQL_ASCII EUC_JP EUC_CN EUC_KR EUC_TW EUC_JIS_2004 UTF8 MULE_INTERNAL \
        LATIN1 LATIN2 LATIN3 LATIN4 LATIN5 LATIN6 LATIN7 LATIN8 LATIN9 LATIN10 WIN1256 WIN1258 \
        WIN866 WIN874 KOI8R WIN1251 WIN1252 ISO_8859_5 ISO_8859_6 ISO_8859_7 ISO_8859_8 WIN1250 \
        WIN1253 WIN1254 WIN1255 WIN1257 KOI8U";
    let at = usize::try_from(encoding).ok();
    at.and_then(|at| NAMES.split(' ').nth(at)).unwrap_or("unknown")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn encodings_have_the_names_of_postgresql() {
        for (number, name) in [(0, "SQL_ASCII"), (6, "UTF8"), (8, "LATIN1"), (24, "WIN1252")] {
            assert_eq!(encoding_name(number), name);
        }
        for (number, name) in [(34, "KOI8U"), (35, "unknown"), (-1, "unknown")] {
            assert_eq!(encoding_name(number), name);
        }
    }

    #[test]
    fn different_names_stay_different_in_every_encoding() {
        const LATIN1: i32 = 8;
        const LATIN2: i32 = 9;
        let names: [&[u8]; 4] = [b"t\xE4", "t\u{e4}".as_bytes(), b"t\\xE4", b"t"];
        let shown = |encoding| names.map(|name| shown_name(name, encoding));
        assert_eq!(shown(LATIN1), ["tä", "tÃ¤", "t\\xE4", "t"]);
        assert_eq!(shown(LATIN2), ["t\\xE4", "t\\xC3\\xA4", "t\\\\xE4", "t"]);
        assert_eq!(shown(SHARED_CATALOG_ENCODING), ["t\\xE4", "tä", "t\\\\xE4", "t"]);
    }

    #[test]
    fn an_unknown_row_count_is_blank() {
        let line = RelationLine {
            schema: "public".into(),
            name: "t".into(),
            oid: 1,
            kind: "table".into(),
            rows: None,
            bytes: None,
            file: Some("base/5/1".into()),
            persistence: "permanent".into(),
            access_method: None,
        };
        let text = table(&[line], &RELATION_COLUMNS);
        assert!(text.contains("\npublic  t     table        missing  base/5/1"), "{text}");
    }
}
