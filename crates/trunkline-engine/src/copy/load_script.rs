//! **Load script.** SQL for psql that creates the tables of copies, with the types that their
//! columns need, and loads the rows. It takes the place of a dump if no server can be started.
//!
//! ```text
//!   one transaction: schemas, types, tables, sequences, setval
//!   then for each table: \copy, count(*)
//!   at the end: names with line feeds; what the copies lack; an error if they lack anything, or if
//!   a table has fewer or more rows than its file
//! ```
//! The first part either succeeds or leaves nothing behind, so a script never adds rows to a table
//! that existed before. After that, each table is on its own: if one row of a damaged database is
//! refused, the other tables are still loaded.
//!
//! The script restores names, types, rows and sequences. It leaves out defaults, constraints (also
//! `NOT NULL`, which dead rows and unvalidated constraints need not satisfy), generated columns,
//! whose values are not in the files, indexes, views, functions, owners and privileges. Partitions,
//! child tables and materialized views become plain tables.
//!
//! Some types become `text`, with a comment. Their values load, and the column's type can be changed
//! once the server has everything that the type needs:
//!
//! - types of extensions, row types of tables, and range types, which may need operator classes and
//!   functions;
//! - types whose values are names of other objects, such as `regclass` and `aclitem`;
//! - types that a server prints but doesn't read, such as `pg_node_tree`.

use trunkline_aio::facade::hash::{Map, Set};
use trunkline_format::Oid;
use trunkline_format::catalog::{Generated, RelationKind, SequenceRow, TypeRow};
use trunkline_format::sequence::Sequence;
use trunkline_format::text_output::{FIRST_USER_OID, IntervalStyle, TypeCatalog};

use super::options::CopyOptions;
use super::sql_types::{PG_CATALOG, built_in_type, identifier, is_loadable, literal};
use crate::catalog::{ColumnInfo, Database, RelationInfo, is_system_schema};

/// The settings with which the copied values are read as they were printed.
const SETTINGS: &str = "\
SET client_min_messages = warning;
SET standard_conforming_strings = on;
SET search_path = pg_catalog;
SET statement_timeout = 0;
SET lock_timeout = 0;
SET idle_in_transaction_session_timeout = 0;
SET array_nulls = on;
SET xmloption = content;
SET lc_monetary = 'C';
";

/// Reports the tables whose number of rows is not that of their files. `:tables` and `:rows` are
/// psql's variables.
const SUMMARY: &str = r#"
DO $$ BEGIN
    IF EXISTS (SELECT FROM trunkline_load WHERE loaded IS DISTINCT FROM expected) THEN
        RAISE EXCEPTION 'not all rows are loaded: %',
            (SELECT string_agg(format('%s has %s of %s', name, coalesce(loaded, 0), expected),
                ', ' ORDER BY name)
            FROM trunkline_load WHERE loaded IS DISTINCT FROM expected);
    END IF;
END $$;
SELECT count(*) AS tables, coalesce(sum(loaded), 0) AS rows FROM trunkline_load \gset
\echo Loaded tables: :tables, rows: :rows
"#;

/// Fails at the end. Everything that can be loaded is in the database by then.
const FAILURE: &str = "
DO $$ BEGIN RAISE EXCEPTION 'loaded, but not everything was copied; see above'; END $$;
";

/// A copied table.
#[derive(Debug)]
pub struct LoadTable<'d> {
    /// The table.
    pub table: &'d RelationInfo,
    /// The names of the copied columns, in the order of the copy.
    pub columns: Vec<Vec<u8>>,
    /// The name of the copy's file, in the directory of the script.
    pub file: Vec<u8>,
    /// The number of rows in the file.
    pub rows: u64,
    /// Whether all rows of the table are in the file.
    pub whole: bool,
}

/// A catalog in which names are unique. A sequence isn't in `pg_type`, so a type that is not in
/// `pg_class` can have the sequence's name.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
enum Catalog {
    Class,
    Type,
}

/// The catalogs with a row for each table and composite type.
const BOTH: &[Catalog] = &[Catalog::Class, Catalog::Type];

/// A script that is being written.
#[derive(Debug)]
pub struct LoadScript<'d> {
    database: &'d Database,
    /// Options of `COPY ... FROM`.
    options: Vec<u8>,
    /// The types seen so far, and whether they can be used. A type that is being created doesn't
    /// count as usable, so a damaged catalog can't make us recurse for ever.
    types: Map<Oid, bool>,
    /// Quoted names of schemas, by OID.
    schemas: Map<Oid, Vec<u8>>,
    /// Qualified names by catalog. In a damaged one, two objects can have the same name.
    names: Set<(Catalog, Vec<u8>)>,
    /// Creates everything, in one transaction.
    create: Vec<u8>,
    /// Loads the tables.
    load: Vec<u8>,
    /// Renames tables and schemas.
    rename: Vec<u8>,
    /// Prints what the copies lack.
    lacking: Vec<u8>,
}

impl<'d> LoadScript<'d> {
    /// Starts a script. It fails before it creates anything if psql doesn't run in the directory of
    /// the copies, which is the one with `manifest`, an ASCII file. The name of the database's
    /// encoding is `encoding`, and `options` are those of the copy.
    pub fn new(
        database: &'d Database,
        encoding: &str,
        options: &CopyOptions,
        manifest: &str,
    ) -> Self {
        let style = match options.text.interval_style {
            IntervalStyle::Postgres => "postgres",
            IntervalStyle::PostgresVerbose => "postgres_verbose",
            IntervalStyle::SqlStandard => "sql_standard",
            IntervalStyle::Iso8601 => "iso_8601",
        };
        // A psqlrc file may have turned AUTOCOMMIT off, and psql's \encoding goes on after an error.
        let start = format!(
            "-- Loads the copies in this directory. Run psql in it: psql -d DATABASE -f load.sql\n\
             -- This restores names, types, rows and sequences, and nothing else. Generated columns\n\
             -- are left out: their values are not in the files.\n\n\
             \\set ON_ERROR_STOP on\n\\set QUIET on\n\\set AUTOCOMMIT on\n\
             SET client_encoding = '{encoding}';\n{SETTINGS}\
             SET IntervalStyle = '{style}';\n\n\
             -- Fails if psql runs in another directory.\n\
             CREATE TEMP TABLE trunkline_manifest (line text);\n\
             \\copy trunkline_manifest from './{manifest}' \
             with (format csv, delimiter E'\\x01', quote E'\\x02')\n\n\
             CREATE TEMP TABLE trunkline_load (name text, expected bigint, loaded bigint);\n\n\
             BEGIN;\n"
        );
        Self {
            database,
            options: options.format.sql_options(options.header),
            types: Map::default(),
            schemas: Map::default(),
            names: Set::default(),
            create: start.into_bytes(),
            load: Vec::new(),
            rename: Vec::new(),
            lacking: Vec::new(),
        }
    }

    /// Adds something that was not copied although it should have been, such as a table. The script
    /// names it at its end and fails, because comments in a script are easily overlooked.
    pub fn leave_out(&mut self, what: &str) {
        self.remark(what);
        self.warn(&format!("not copied: {what}"));
    }

    /// Makes the script print a warning at its end, and fail.
    fn warn(&mut self, text: &str) {
        self.lacking.extend_from_slice(b"\\warn ");
        // Within quotes, psql expands neither variables nor backquotes, but it does read escapes.
        let text = one_line(text.as_bytes());
        let text: Vec<&[u8]> = text.split(|&byte| byte == b'\\').collect();
        literal(&text.join(&b"\\\\"[..]), &mut self.lacking);
        self.lacking.push(b'\n');
    }

    /// Mentions something that has nothing to copy.
    pub fn remark(&mut self, what: &str) {
        self.create.push(b'\n');
        comment(format!("Left out: {what}").as_bytes(), &mut self.create);
    }

    /// Adds a table and the command that loads it.
    pub fn table(&mut self, copied: &LoadTable<'_>) {
        let table = copied.table;
        let all = self.database.columns(table).unwrap_or_default();
        let find = |name: &Vec<u8>| all.iter().find(|it| !it.dropped && *it.name == **name);
        let columns: Vec<&ColumnInfo> = copied.columns.iter().filter_map(find).collect();
        let mut lines = Vec::new();
        for (at, column) in columns.iter().enumerate() {
            let (definition, is_text) = self.column(column);
            lines.extend_from_slice(b"\n    ");
            lines.extend(definition);
            if at + 1 < columns.len() {
                lines.push(b',');
            }
            if is_text {
                lines.extend_from_slice(b" -- ");
                lines.extend(one_line(&self.shown_type(column.type_oid)));
            }
        }
        let is_left_out = |it: &&ColumnInfo| {
            let is_copied = copied.columns.iter().any(|name| **name == *it.name);
            !it.dropped && it.generated != Generated::No && !is_copied
        };
        for column in all.iter().filter(is_left_out) {
            let mut name = Vec::new();
            identifier(&column.name, &mut name);
            let ty = self.shown_type(column.type_oid);
            let text = [&name[..], b" ", &ty, b" is generated, and left out"].concat();
            lines.extend_from_slice(b"\n    ");
            lines.extend([b"-- ", &one_line(&text)[..]].concat());
        }
        let name = self.table_name(table);
        self.create.push(b'\n');
        if table.kind == RelationKind::MaterializedView {
            comment(b"A materialized view.", &mut self.create);
        }
        self.push(&[b"CREATE TABLE ", &name, b" (", &lines, b"\n);\n"]);
        // What is expected is known before anything is loaded. If a table can't even be counted
        // afterwards, for example because the disk is full, it counts as not loaded.
        let mut quoted = Vec::new();
        literal(&name, &mut quoted);
        let rows = copied.rows.to_string();
        self.push(&[
            b"INSERT INTO trunkline_load VALUES (",
            &quoted,
            b", ",
            rows.as_bytes(),
            b");\n",
        ]);
        if !copied.whole {
            comment(b"Damaged rows are missing in this file:", &mut self.load);
            let table = self.database.qualified_name(table);
            self.warn(&format!("not copied: damaged rows of {table}"));
        }
        self.load.extend_from_slice(b"\\copy ");
        self.load.extend_from_slice(&name);
        self.load.extend_from_slice(b" from ");
        // psql would replace a leading tilde.
        literal(&[b"./", &copied.file[..]].concat(), &mut self.load);
        self.load.extend([b" with (", &self.options[..], b")\n"].concat());
        let count = [b"(SELECT count(*) FROM ", &name[..], b")"].concat();
        let row = [b" WHERE name = ", &quoted[..], b";\n"].concat();
        self.load.extend([b"UPDATE trunkline_load SET loaded = ", &count[..], &row].concat());
    }

    /// Adds a sequence with its current value.
    pub fn sequence(&mut self, relation: &RelationInfo, row: &SequenceRow, value: &Sequence) {
        let Some(name) = self.new_name(relation.schema, &relation.name, &[Catalog::Class]) else {
            let name = self.database.qualified_name(relation);
            self.leave_out(&format!("{name} is in pg_class more than once"));
            return;
        };
        let ty = match row.type_oid {
            Oid(21) => "smallint",
            Oid(23) => "integer",
            _ => "bigint",
        };
        let SequenceRow { start, increment, max, min, cache, .. } = row;
        let cycle = if row.cycle { "CYCLE" } else { "NO CYCLE" };
        let options = format!(
            " AS {ty}\n    INCREMENT BY {increment} MINVALUE {min} MAXVALUE {max} \
             START WITH {start} CACHE {cache} {cycle};\nSELECT setval("
        );
        self.push(&[b"\nCREATE SEQUENCE ", &name, options.as_bytes()]);
        literal(&name, &mut self.create);
        // \gset keeps psql quiet.
        self.push(&[format!(", {}, {}) \\gset\n", value.last_value, value.is_called).as_bytes()]);
    }

    /// Ends the script.
    pub fn finish(self) -> Vec<u8> {
        let loads = b"COMMIT;\n\n-- If a table can't be loaded, go on with the others.\n\
            \\set ON_ERROR_STOP off\n\n";
        let end = b"\n\\set ON_ERROR_STOP on\n";
        let failure = if self.lacking.is_empty() { "" } else { FAILURE };
        let (summary, failure) = (SUMMARY.as_bytes(), failure.as_bytes());
        let load = [&self.create[..], loads, &self.load, end];
        [load, [&self.rename, &self.lacking, summary, failure]].concat().concat()
    }

    fn push(&mut self, parts: &[&[u8]]) {
        self.create.extend(parts.concat());
    }

    /// The quoted name of a schema, which is created when it is first used.
    fn schema(&mut self, oid: Oid) -> Vec<u8> {
        if let Some(known) = self.schemas.get(&oid) {
            return known.clone();
        }
        let row = self.database.schema(oid);
        let name = row.map_or_else(|| oid.to_string().into_bytes(), |row| row.name.to_vec());
        let mut quoted = Vec::new();
        identifier(&name, &mut quoted);
        if !is_one_line(&name) {
            let last = std::mem::replace(&mut quoted, format!("trunkline_schema_{oid}").into());
            let rename = [b"ALTER SCHEMA ", &quoted[..], b" RENAME TO ", &last, b";\n"].concat();
            // After the tables in it.
            self.rename.extend(rename);
        }
        // CREATE SCHEMA IF NOT EXISTS would need a privilege even if the schema exists.
        let mut create = Vec::new();
        literal(&[b"CREATE SCHEMA ", &quoted[..]].concat(), &mut create);
        let mut wanted = Vec::new();
        literal(&quoted, &mut wanted);
        let is_absent = [b" WHERE to_regnamespace(", &wanted[..], b") IS NULL \\gexec\n"].concat();
        self.push(&[b"\nSELECT ", &create, &is_absent]);
        self.schemas.insert(oid, quoted.clone());
        quoted
    }

    /// The qualified name of a new object with rows in these catalogs; `None` if another object
    /// has it.
    fn new_name(&mut self, schema: Oid, name: &[u8], catalogs: &[Catalog]) -> Option<Vec<u8>> {
        let mut qualified = self.schema(schema);
        qualified.push(b'.');
        identifier(name, &mut qualified);
        let mut catalogs = catalogs.iter();
        let is_new = catalogs.all(|&it| self.names.insert((it, qualified.clone())));
        is_new.then_some(qualified)
    }

    /// The qualified name of a new table. `\copy` reads a single line, so a name with line feeds is
    /// given to the table only after it was loaded. If another table has the name, this one gets
    /// its own.
    fn table_name(&mut self, table: &RelationInfo) -> Vec<u8> {
        let is_plain = is_one_line(&table.name);
        if is_plain && let Some(name) = self.new_name(table.schema, &table.name, BOTH) {
            return name;
        }
        let mut name = self.schema(table.schema);
        name.extend(format!(".trunkline_{}", table.oid).into_bytes());
        if !is_plain {
            let mut last = Vec::new();
            identifier(&table.name, &mut last);
            let rename = [b"ALTER TABLE ", &name[..], b" RENAME TO ", &last, b";\n"].concat();
            self.rename.splice(0..0, rename);
        }
        name
    }

    /// Name and type of a column, and whether it is text in place of its own type.
    fn column(&mut self, column: &ColumnInfo) -> (Vec<u8>, bool) {
        let mut definition = Vec::new();
        identifier(&column.name, &mut definition);
        definition.push(b' ');
        let ty = self.usable_type(column.type_oid, column.modifier);
        definition.extend_from_slice(ty.as_deref().unwrap_or(b"text"));
        (definition, ty.is_none())
    }

    /// The type's name for a comment.
    fn shown_type(&self, oid: Oid) -> Vec<u8> {
        match self.database.type_row(oid) {
            Some(row) if row.is_array() => [&self.shown_type(row.element)[..], b"[]"].concat(),
            Some(row) => match self.database.schema(row.schema) {
                Some(schema) if row.schema != PG_CATALOG => {
                    [&schema.name[..], b".", &row.name].concat()
                }
                _ => row.name.to_vec(),
            },
            None => oid.to_string().into_bytes(),
        }
    }

    /// The name of a type that the loading server has, creating it if needed. `None` if there is
    /// no such type.
    fn usable_type(&mut self, oid: Oid, modifier: i32) -> Option<Vec<u8>> {
        if !self.create(oid) {
            return None;
        }
        let row = self.database.type_row(oid)?;
        if row.is_array() {
            return Some([&self.usable_type(row.element, modifier)?[..], b"[]"].concat());
        }
        if row.schema == PG_CATALOG {
            return Some(built_in_type(oid, &row.name, modifier));
        }
        let mut name = self.schema(row.schema);
        name.push(b'.');
        identifier(&row.name, &mut name);
        Some(name)
    }

    /// Creates a type unless every server has it. Returns false if we can't.
    fn create(&mut self, oid: Oid) -> bool {
        let Some(row) = self.database.type_row(oid) else { return false };
        if let Some(&known) = self.types.get(&oid) {
            return known;
        }
        self.types.insert(oid, false);
        let is_system = self.is_of_system(&row);
        let usable = match row.kind {
            // An array of arrays exists only in a damaged catalog.
            _ if row.is_array() => {
                let element = self.database.type_row(row.element);
                element.is_some_and(|it| !it.is_array()) && self.create(row.element)
            }
            // An extension may have put its types into pg_catalog, and types in a temporary schema
            // can't be created.
            _ if is_system => {
                oid.0 < FIRST_USER_OID
                    && matches!(row.kind, b'b' | b'd' | b'r' | b'm')
                    && is_loadable(oid)
            }
            b'e' => self.create_enum(&row),
            b'c' => self.create_composite(&row),
            b'd' => self.create_domain(&row),
            _ => false,
        };
        self.types.insert(oid, usable);
        usable
    }

    /// Whether the type is in a schema in which we can't create any.
    fn is_of_system(&self, row: &TypeRow) -> bool {
        self.database.schema(row.schema).is_some_and(|it| is_system_schema(&it.name))
    }

    fn create_enum(&mut self, row: &TypeRow) -> bool {
        let Some(name) = self.new_name(row.schema, &row.name, &[Catalog::Type]) else {
            return false;
        };
        let mut labels = Vec::new();
        for (at, (_, label)) in self.database.enum_labels(row.oid).iter().enumerate() {
            if at > 0 {
                labels.extend_from_slice(b", ");
            }
            literal(label, &mut labels);
        }
        self.push(&[b"\nCREATE TYPE ", &name, b" AS ENUM (", &labels, b");\n"]);
        true
    }

    /// Creates a composite type, unless it is the row type of a table or view.
    fn create_composite(&mut self, row: &TypeRow) -> bool {
        let database = self.database;
        let Some(relation) = database.relation(row.relation) else { return false };
        let Ok(columns) = database.columns(relation) else { return false };
        if relation.kind != RelationKind::CompositeType {
            return false;
        }
        let live = columns.iter().filter(|column| !column.dropped);
        let definitions: Vec<Vec<u8>> = live.map(|column| self.column(column).0).collect();
        let Some(name) = self.new_name(row.schema, &row.name, BOTH) else { return false };
        self.push(&[b"\nCREATE TYPE ", &name, b" AS (", &definitions.join(&b", "[..]), b");\n"]);
        true
    }

    fn create_domain(&mut self, row: &TypeRow) -> bool {
        let Some(base) = self.usable_type(row.base, row.base_modifier) else { return false };
        let Some(name) = self.new_name(row.schema, &row.name, &[Catalog::Type]) else {
            return false;
        };
        self.push(&[b"\nCREATE DOMAIN ", &name, b" AS ", &base, b";\n"]);
        true
    }
}

/// Whether a name has no line feed, nor a carriage return, which psql may take for one.
fn is_one_line(name: &[u8]) -> bool {
    !name.iter().any(|byte| matches!(byte, b'\n' | b'\r'))
}

/// The text with spaces in place of control characters.
fn one_line(text: &[u8]) -> Vec<u8> {
    text.iter().map(|&byte| if byte < b' ' { b' ' } else { byte }).collect()
}

/// Appends a comment of one line.
fn comment(text: &[u8], out: &mut Vec<u8>) {
    out.extend([b"-- ", &one_line(text)[..], b"\n"].concat());
}
