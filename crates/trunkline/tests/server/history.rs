//! A random database and its life: tables of all kinds and columns, then inserts, updates, deletes,
//! rollbacks, savepoints, locks by several transactions, columns that come and go, vacuum.
//!
//! ```text
//!   types ─▶ tables, partitions, indexes ─▶ history ─▶ last words
//!                                                      a transaction for each table: some changes,
//!                                                      then COPY, before the commit
//! ```
//! The server prints each table inside the last transaction that changes it, so it leaves no hint
//! of the fate of these rows behind: whether they are there only the commit log says.

use std::fmt::Write as _;
use std::path::{Path, PathBuf};

use trunkline_aio::sync::random::Rng;

use crate::values::{TYPES, chance, pick, value};

/// Tables of a run.
const TABLES: usize = 14;

/// Rows of one insert.
const ROWS_MAX: u64 = 60;

/// A table that holds rows.
#[derive(Debug)]
pub(crate) struct Table {
    /// Its name without the schema.
    pub(crate) name: String,
    columns: Vec<(String, String)>,
    /// Where rows for it go in: itself, or the table that it is a partition of.
    parent: Option<String>,
    next_column: usize,
}

/// What a server is told, and what there is afterwards.
#[derive(Debug)]
pub(crate) struct History {
    /// To be run as one script, errors allowed.
    pub(crate) script: String,
    /// Each table with the file that COPY writes.
    pub(crate) tables: Vec<(String, PathBuf)>,
}

const TYPES_SQL: &str = "\
create schema s;
create type s.mood as enum ('sad', 'ok', 'happy', 'o''k \"x\"');
alter type s.mood add value 'late' before 'ok';
create domain s.small as int4 check (value < 1000);
create type s.pair as (a int4, b text);
create type s.tree as (n int4, p s.pair, l s.pair[]);
create tablespace place location '';
";

impl History {
    /// A random one. `lz4`: the server can compress so.
    pub(crate) fn new(rng: &mut Rng, lz4: bool, output: &Path) -> Self {
        let mut script = String::from("\\set ON_ERROR_ROLLBACK on\nset lock_timeout = '2s';\n");
        script.push_str(TYPES_SQL);
        let mut tables = Vec::new();
        for number in 0..TABLES {
            make_table(rng, number, lz4, &mut tables, &mut script);
        }
        let mut transactions = 0;
        for _ in 0..TABLES * 16 {
            let at = rng.below(tables.len() as u64) as usize;
            step(rng, &mut tables[at], &mut transactions, &mut script);
        }
        let mut files = Vec::new();
        for table in &tables {
            let file = output.join(format!("{}.copy", table.name));
            last_words(rng, table, &file, &mut script);
            files.push((format!("s.{}", table.name), file));
        }
        leave_prepared(rng, &tables, &mut script);
        Self { script, tables: files }
    }
}

/// A type for a column: any, or an array of one.
fn column_type(rng: &mut Rng) -> String {
    let ty = pick(rng, &TYPES);
    // There is no array of an array, and no two-dimensional vector of these.
    if chance(rng, 6) && !ty.ends_with("range") { format!("{ty}[]") } else { ty.into() }
}

fn make_table(
    rng: &mut Rng,
    number: usize,
    lz4: bool,
    tables: &mut Vec<Table>,
    script: &mut String,
) {
    let name = format!("t{number}");
    let wide = chance(rng, 8);
    let count = if wide { 40 + rng.below(60) } else { 1 + rng.below(10) } as usize;
    let mut columns = vec![("id".to_owned(), "int4".to_owned())];
    columns.extend((1..=count).map(|at| (format!("c{at}"), column_type(rng))));
    let list: Vec<String> = columns
        .iter()
        .map(|(name, ty)| {
            let method = match rng.below(4) {
                0 if lz4 && is_text(ty) => " compression lz4",
                1 if is_text(ty) => " compression pglz",
                _ => "",
            };
            format!("{name} {ty}{method}")
        })
        .collect();
    let place = if chance(rng, 5) { " tablespace place" } else { "" };
    let partitioned = chance(rng, 5);
    let kind = if chance(rng, 10) && !partitioned { "unlogged " } else { "" };
    let fill = format!(" with (fillfactor = {})", 30 + rng.below(71));
    let list = list.join(", ");
    if partitioned {
        let _ = writeln!(script, "create table s.{name} ({list}) partition by hash (id){place};");
        for part in 0..2 {
            let part_name = format!("{name}_{part}");
            let _ = writeln!(
                script,
                "create table s.{part_name} partition of s.{name} for values with (modulus 2, remainder {part}){fill};"
            );
            let (columns, parent) = (columns.clone(), Some(name.clone()));
            tables.push(Table { name: part_name, columns, parent, next_column: count + 1 });
        }
    } else {
        let _ = writeln!(script, "create {kind}table s.{name} ({list}){fill}{place};");
        for (column, ty) in columns.iter().filter(|(_, ty)| is_text(ty)) {
            if chance(rng, 3) {
                let storage = pick(rng, &["external", "main", "plain", "extended"]);
                let _ = writeln!(
                    script,
                    "alter table s.{name} alter {column} set storage {storage}; -- {ty}"
                );
            }
        }
        tables.push(Table {
            name: name.clone(),
            columns: columns.clone(),
            parent: None,
            next_column: count + 1,
        });
    }
    for index in 0..rng.below(4) {
        make_index(rng, &name, &format!("{name}_i{index}"), &columns, script);
    }
}

fn is_text(ty: &str) -> bool {
    matches!(ty, "text" | "bytea" | "jsonb" | "json") || ty.ends_with("[]")
}

/// Some of these fail: not every type has an order.
fn make_index(
    rng: &mut Rng,
    table: &str,
    index: &str,
    columns: &[(String, String)],
    script: &mut String,
) {
    let mut column = || pick(rng, &columns.iter().collect::<Vec<_>>()).0.clone();
    let (one, other) = (column(), column());
    let direction = pick(rng, &["", " desc", " nulls first", " desc nulls last"]);
    let _ = match rng.below(6) {
        0 => writeln!(script, "create index {index} on s.{table} (id, {one}{direction});"),
        1 => writeln!(script, "create index {index} on s.{table} (md5({one}::text));"),
        2 => writeln!(
            script,
            "create index {index} on s.{table} ({one}{direction}) where id % 3 = 0;"
        ),
        3 => writeln!(script, "create index {index} on s.{table} (id) include ({other});"),
        4 => writeln!(script, "create index {index} on s.{table} ({one}{direction}, {other});"),
        _ => {
            writeln!(script, "create index {index} on s.{table} (id{direction}) tablespace place;")
        }
    };
}

/// Values for all columns of a row.
fn row(rng: &mut Rng, table: &Table) -> String {
    let id = rng.below(500).to_string();
    let others = table
        .columns
        .iter()
        .skip(1)
        .map(|(_, ty)| if chance(rng, 6) { "null".into() } else { value(rng, ty) });
    let all: Vec<String> = std::iter::once(id).chain(others).collect();
    format!("({})", all.join(", "))
}

fn insert(rng: &mut Rng, table: &Table, script: &mut String) {
    let into = table.parent.as_ref().unwrap_or(&table.name);
    let names: Vec<&str> = table.columns.iter().map(|(name, _)| name.as_str()).collect();
    let names = names.join(", ");
    if chance(rng, 4) {
        let _ = writeln!(
            script,
            "insert into s.{into} ({names}) select {names} from s.{} limit {};",
            table.name,
            rng.below(400)
        );
        return;
    }
    // One statement for each row: a value that a server refuses costs one row only.
    for _ in 0..1 + rng.below(ROWS_MAX) {
        let _ = writeln!(script, "insert into s.{into} ({names}) values {};", row(rng, table));
    }
}

fn change(rng: &mut Rng, table: &Table, script: &mut String) {
    let name = &table.name;
    let modulus = 2 + rng.below(9);
    let _ = match rng.below(3) {
        0 => writeln!(script, "delete from s.{name} where id % {} = 1;", modulus + 3),
        _ => {
            let at = rng.below(table.columns.len() as u64) as usize;
            let (column, ty) = &table.columns[at];
            let new = if at == 0 { "id".into() } else { value(rng, ty) };
            writeln!(script, "update s.{name} set {column} = {new} where id % {modulus} = 0;")
        }
    };
}

/// One episode in the life of a table.
fn step(rng: &mut Rng, table: &mut Table, transactions: &mut u64, script: &mut String) {
    let name = table.name.clone();
    match rng.below(16) {
        0..=4 => insert(rng, table, script),
        5 | 6 => change(rng, table, script),
        7 => {
            // Versions of versions on one page.
            for _ in 0..1 + rng.below(6) {
                change(rng, table, script);
            }
        }
        8 | 9 => {
            script.push_str("begin;\n");
            change(rng, table, script);
            insert(rng, table, script);
            script.push_str(pick(rng, &["rollback;\n", "commit;\n"]));
        }
        10 => {
            script.push_str("begin;\nsavepoint a;\n");
            change(rng, table, script);
            script.push_str("savepoint b;\n");
            insert(rng, table, script);
            script.push_str("rollback to b;\n");
            change(rng, table, script);
            script.push_str(pick(rng, &["rollback to a;\n", "release a;\n", ""]));
            insert(rng, table, script);
            script.push_str(pick(rng, &["commit;\n", "commit;\n", "rollback;\n"]));
        }
        11 => {
            // A transaction that is prepared holds its locks while another one locks the same
            // rows: so one session makes multixacts.
            *transactions += 1;
            let strength = pick(rng, &["share", "key share"]);
            let then = pick(rng, &["commit", "rollback"]);
            let _ = writeln!(
                script,
                "begin; select count(*) from (select 1 from s.{name} where id % 2 = 0 for {strength}) x; prepare transaction 'p{transactions}';\n\
                 begin; select count(*) from (select 1 from s.{name} where id % 4 = 0 for {strength}) x;"
            );
            if *strength == *"key share" {
                change(rng, table, script);
            }
            let _ = writeln!(script, "commit;\n{then} prepared 'p{transactions}';");
        }
        12 => alter(rng, table, script),
        13 => {
            let how = pick(rng, &["vacuum", "vacuum freeze", "vacuum", "vacuum full", "analyze"]);
            let _ = writeln!(script, "{how} s.{name};");
        }
        14 => {
            let _ = writeln!(
                script,
                "begin; select count(*) from (select 1 from s.{name} for update) x; commit;"
            );
        }
        _ => {
            let _ = match rng.below(4) {
                0 => writeln!(script, "reindex table s.{name};"),
                1 => writeln!(script, "checkpoint;"),
                2 => writeln!(
                    script,
                    "begin; insert into s.{name} (id) values (1); delete from s.{name} where id = 1; commit;"
                ),
                _ => writeln!(script, "select count(*) from s.{name};"),
            };
        }
    }
}

/// Columns come and go; of a partition those of all, which is done by its parent only.
fn alter(rng: &mut Rng, table: &mut Table, script: &mut String) {
    if table.parent.is_some() {
        return;
    }
    let name = &table.name;
    if chance(rng, 3) && table.columns.len() > 2 {
        let at = 1 + rng.below(table.columns.len() as u64 - 1) as usize;
        let (column, _) = table.columns.remove(at);
        let _ = writeln!(script, "alter table s.{name} drop column {column};");
        return;
    }
    let (column, ty) = (format!("c{}", table.next_column), column_type(rng));
    table.next_column += 1;
    let default = match rng.below(3) {
        0 => String::new(),
        // Kept in the catalog, for the rows that are there.
        _ => format!(" default {}", value(rng, &ty)),
    };
    // A default that makes no sense leaves the column without one.
    let _ = writeln!(script, "alter table s.{name} add column {column} {ty}{default};");
    let _ = writeln!(script, "alter table s.{name} add column if not exists {column} {ty};");
    table.columns.push((column, ty));
}

/// The last transaction: what it prints is what is there once it has committed.
fn last_words(rng: &mut Rng, table: &Table, file: &Path, script: &mut String) {
    script.push_str("begin;\n");
    for _ in 0..rng.below(3) {
        if table.parent.is_none() {
            change(rng, table, script);
            insert(rng, table, script);
        }
    }
    let _ = writeln!(
        script,
        "\\copy (select ctid, * from only s.{}) to '{}'\ncommit;",
        table.name,
        file.display()
    );
    if chance(rng, 3) {
        script.push_str("begin;\n");
        change(rng, table, script);
        script.push_str("rollback;\n");
    }
}

/// Transactions that are still prepared when the server stops: nothing of them shows.
fn leave_prepared(rng: &mut Rng, tables: &[Table], script: &mut String) {
    for number in 0..rng.below(3) {
        let table = &tables[rng.below(tables.len() as u64) as usize];
        script.push_str("begin;\n");
        change(rng, table, script);
        insert(rng, table, script);
        let _ = writeln!(script, "prepare transaction 'left{number}';");
    }
}
