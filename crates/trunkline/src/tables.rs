//! `trunkline tables`: what a stopped cluster holds, as `\l+` and `\d+` of psql list it.
//!
//! ```text
//!   tables -D DIR              its databases
//!   tables -D DIR -d bench     the relations of one, but for catalogs, indexes and TOAST tables
//!   tables -D DIR -d bench --all
//! ```
//! Rows are what a server last counted. Sizes are those of the files: of a table all of its forks,
//! its TOAST table and the index of that, as `pg_table_size` counts; of anything else its own.

use std::collections::BTreeMap;
use std::os::unix::ffi::OsStrExt;

use serde::Serialize;
use trunkline_engine::catalog::{Catalog, CatalogError, Database, DatabaseInfo, RelationInfo};
use trunkline_engine::datadir::{DataDir, FileEntry};
use trunkline_engine::settings::Settings;
use trunkline_engine::storage::RelationLocator;
use trunkline_format::catalog::RelationKind;
use trunkline_format::{Fork, Oid};

use crate::cli::Global;
use crate::cluster::{Cluster, DatabaseArgs};
use crate::exit::{Exit, Failure};
use crate::output::{Table, human_bytes, print, print_json};
use crate::verify::{self, relative};

/// Options of the command.
#[derive(Debug, clap::Args)]
pub(crate) struct TablesArgs {
    #[command(flatten)]
    database: DatabaseArgs,

    /// Lists catalogs, indexes, TOAST tables and composite types too.
    #[arg(long, requires = "dbname")]
    all: bool,
}

/// SQL_ASCII: the names that all databases share are in no encoding that is told.
const SHARED: i32 = 0;

/// Runs the command.
pub(crate) fn run(
    global: &Global,
    settings: &Settings,
    args: &TablesArgs,
) -> Result<Exit, Failure> {
    let dir = verify::open(global)?;
    let mut cluster = Cluster::open(&dir, settings)?;
    let sizes = Sizes::of(&dir);
    let Some(name) = &args.database.dbname else {
        let databases = databases(&cluster.catalog, &sizes);
        dir.recheck()?;
        let listed = JsonDatabases { schema: 1, command: "tables", databases };
        show(global, &listed, |all| databases_table(&all.databases))?;
        return Ok(exit(cluster.catalog.faults().iter()));
    };
    let database = cluster.database(name.as_bytes())?;
    let relations = relations(&database, &dir, &sizes, args.all);
    dir.recheck()?;
    let name = text(&database.info().name, SHARED);
    let listed = JsonRelations { schema: 1, command: "tables", database: name, relations };
    show(global, &listed, |all| relations_table(&all.relations))?;
    Ok(exit(cluster.catalog.faults().iter().chain(database.faults())))
}

/// What is left out of the list is a finding.
fn exit<'f>(mut faults: impl Iterator<Item = &'f CatalogError>) -> Exit {
    if faults.next().is_none() { Exit::Good } else { Exit::Findings }
}

fn show<T: Serialize>(
    global: &Global,
    found: &T,
    table: impl FnOnce(&T) -> Table,
) -> Result<(), Failure> {
    if global.json {
        print_json(found)?;
    } else {
        print(&table(found).render())?;
    }
    Ok(())
}

/// Bytes of the files of each relation and each database.
struct Sizes {
    relations: BTreeMap<RelationLocator, Size>,
    databases: BTreeMap<Oid, u64>,
}

/// All forks of a relation.
#[derive(Default)]
struct Size {
    bytes: u64,
    /// Whether its first file is there; maps of what is gone mean nothing.
    is_there: bool,
}

impl Sizes {
    fn of(dir: &DataDir) -> Sizes {
        let mut sizes = Sizes { relations: BTreeMap::new(), databases: BTreeMap::new() };
        for file in dir.relation_files().files {
            let FileEntry { tablespace, database, relfilenode, bytes, .. } = file;
            let locator = RelationLocator { tablespace, database, relfilenode };
            let size = sizes.relations.entry(locator).or_default();
            size.bytes += bytes;
            size.is_there |= file.fork == Fork::Main && file.segment == 0;
            *sizes.databases.entry(database).or_default() += bytes;
        }
        sizes
    }

    /// Bytes of a relation and of what holds its long values; `None` if it has no files, or if they
    /// are not there.
    fn of_relation(&self, database: &Database, relation: &RelationInfo) -> Option<u64> {
        let own = |relation: &RelationInfo| {
            let size = self.relations.get(&relation.locator?)?;
            size.is_there.then_some(size.bytes)
        };
        let bytes = own(relation)?;
        let Some(toast) = database.relation(relation.toast) else { return Some(bytes) };
        let indexes = database.indexes_of(toast.oid).iter();
        let indexes = indexes.filter_map(|row| own(database.relation(row.index)?));
        Some(bytes + own(toast).unwrap_or_default() + indexes.sum::<u64>())
    }
}

#[derive(Serialize)]
struct JsonDatabases {
    schema: u32,
    command: &'static str,
    databases: Vec<DatabaseLine>,
}

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
    let line = |info: &DatabaseInfo| {
        let tablespace = catalog.tablespaces().iter().find(|space| space.oid == info.tablespace);
        DatabaseLine {
            name: text(&info.name, SHARED),
            oid: info.oid.0,
            encoding: encoding_name(info.encoding),
            tablespace: tablespace
                .map_or_else(|| info.tablespace.to_string(), |space| text(&space.name, SHARED)),
            bytes: sizes.databases.get(&info.oid).copied().unwrap_or_default(),
            template: info.is_template,
            allows_connections: info.allows_connections,
            invalid: info.is_invalid,
        }
    };
    catalog.databases().iter().map(line).collect()
}

fn databases_table(databases: &[DatabaseLine]) -> Table {
    let mut table = Table::new(&["name", ">oid", "encoding", "tablespace", ">size", "note"]);
    for line in databases {
        let notes = [
            (line.invalid, "invalid: its removal was interrupted"),
            (line.template, "template"),
            (!line.allows_connections, "no connections"),
        ];
        let notes: Vec<&str> = notes.iter().filter(|(is, _)| *is).map(|(_, note)| *note).collect();
        table.row(vec![
            line.name.clone(),
            line.oid.to_string(),
            line.encoding.to_owned(),
            line.tablespace.clone(),
            human_bytes(line.bytes),
            notes.join(", "),
        ]);
    }
    table
}

#[derive(Serialize)]
struct JsonRelations {
    schema: u32,
    command: &'static str,
    database: String,
    relations: Vec<RelationLine>,
}

#[derive(Serialize)]
struct RelationLine {
    schema: String,
    name: String,
    oid: u32,
    kind: String,
    /// What a server last counted; nothing if it never did.
    rows: Option<f32>,
    /// Nothing without files.
    bytes: Option<u64>,
    file: Option<String>,
    persistence: String,
    access_method: Option<String>,
}

fn relations(database: &Database, dir: &DataDir, sizes: &Sizes, all: bool) -> Vec<RelationLine> {
    let mut lines: Vec<RelationLine> = Vec::new();
    let text = |name: &[u8]| text(name, database.info().encoding);
    for relation in database.relations() {
        let schema = text(&database.schema_name(relation));
        if !all && (is_internal(relation.kind) || is_system(&schema)) {
            continue;
        }
        let method = database.access_method(relation.access_method);
        lines.push(RelationLine {
            schema,
            name: text(&relation.name),
            oid: relation.oid.0,
            kind: relation.kind.to_string(),
            rows: relation.rows.filter(|_| counts_rows(relation.kind)),
            bytes: sizes.of_relation(database, relation),
            file: database.files(relation).map(|files| relative(&files.path(0), dir.path())),
            persistence: relation.persistence.to_string(),
            access_method: method.map(text),
        });
    }
    lines.sort_by(|one, other| (&one.schema, &one.name).cmp(&(&other.schema, &other.name)));
    lines
}

/// Whether a server counts the rows, or entries, of such relations.
fn counts_rows(kind: RelationKind) -> bool {
    kind.is_table_like() || matches!(kind, RelationKind::Index | RelationKind::PartitionedTable)
}

/// What belongs to a table rather than being one.
fn is_internal(kind: RelationKind) -> bool {
    matches!(
        kind,
        RelationKind::Index
            | RelationKind::PartitionedIndex
            | RelationKind::Toast
            | RelationKind::CompositeType
    )
}

/// Schemas that come with every database, or belong to sessions.
fn is_system(schema: &str) -> bool {
    schema.starts_with("pg_") || schema == "information_schema"
}

fn relations_table(relations: &[RelationLine]) -> Table {
    let mut table =
        Table::new(&["schema", "name", "kind", ">rows", ">size", "file", "persistence"]);
    for line in relations {
        table.row(vec![
            line.schema.clone(),
            line.name.clone(),
            line.kind.clone(),
            line.rows.map(|rows| format!("{rows:.0}")).unwrap_or_default(),
            match (line.bytes, &line.file) {
                (Some(bytes), _) => human_bytes(bytes),
                (None, Some(_)) => "missing".to_owned(),
                (None, None) => String::new(),
            },
            line.file.clone().unwrap_or_default(),
            line.persistence.clone(),
        ]);
    }
    table
}

/// A name in the encoding of a database.
///
/// LATIN1 is converted. In encodings that are not known here, and in names that are not in the
/// encoding that they should be in, `\xE4` stands for each byte beyond ASCII that cannot be shown, and
/// two backslashes for one, so that different names stay different.
fn text(name: &[u8], encoding: i32) -> String {
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

/// PostgreSQL's name of an encoding.
pub(crate) fn encoding_name(encoding: i32) -> &'static str {
    const NAMES: [&str; 35] = [
        "SQL_ASCII",
        "EUC_JP",
        "EUC_CN",
        "EUC_KR",
        "EUC_TW",
        "EUC_JIS_2004",
        "UTF8",
        "MULE_INTERNAL",
        "LATIN1",
        "LATIN2",
        "LATIN3",
        "LATIN4",
        "LATIN5",
        "LATIN6",
        "LATIN7",
        "LATIN8",
        "LATIN9",
        "LATIN10",
        "WIN1256",
        "WIN1258",
        "WIN866",
        "WIN874",
        "KOI8R",
        "WIN1251",
        "WIN1252",
        "ISO_8859_5",
        "ISO_8859_6",
        "ISO_8859_7",
        "ISO_8859_8",
        "WIN1250",
        "WIN1253",
        "WIN1254",
        "WIN1255",
        "WIN1257",
        "KOI8U",
    ];
    usize::try_from(encoding).ok().and_then(|at| NAMES.get(at)).copied().unwrap_or("unknown")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn encodings() {
        for (number, name) in [(0, "SQL_ASCII"), (6, "UTF8"), (8, "LATIN1"), (24, "WIN1252")] {
            assert_eq!(encoding_name(number), name);
        }
        for (number, name) in [(34, "KOI8U"), (35, "unknown"), (-1, "unknown")] {
            assert_eq!(encoding_name(number), name);
        }
    }

    #[test]
    fn names_in_other_encodings_stay_different() {
        const LATIN1: i32 = 8;
        const LATIN2: i32 = 9;
        let names: [&[u8]; 4] = [b"t\xE4", "t\u{e4}".as_bytes(), b"t\\xE4", b"t"];
        assert_eq!(names.map(|name| text(name, LATIN1)), ["tä", "tÃ¤", "t\\xE4", "t"]);
        let shown = ["t\\xE4", "t\\xC3\\xA4", "t\\\\xE4", "t"];
        assert_eq!(names.map(|name| text(name, LATIN2)), shown);
        assert_eq!(names.map(|name| text(name, SHARED)), ["t\\xE4", "tä", "t\\\\xE4", "t"]);
    }

    #[test]
    fn rows_that_nobody_counted_are_blank() {
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
        let text = relations_table(&[line]).render();
        assert!(text.contains("\npublic  t     table        missing  base/5/1"), "{text}");
    }
}
