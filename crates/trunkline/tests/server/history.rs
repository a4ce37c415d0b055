//! Creates a random database with a history. We create tables of all kinds, and then run inserts,
//! updates, deletes, rollbacks and savepoints, lock rows in several transactions, add and drop
//! columns, and vacuum.
//!
//! ```text
//!   types ─▶ tables, partitions, indexes ─▶ history ─▶ last transactions
//!                                                      one for each table: some changes, then COPY,
//!                                                      then commit
//! ```
//! The server copies each table inside the last transaction that changes it. While it does so, the
//! transaction is still in progress, so the server can't set hint bits on the changed rows. For
//! these rows, only the commit log shows that they are visible.

use std::fmt::Write as _;
use std::path::{Path, PathBuf};

use trunkline_aio::facade::random::Rng;

use crate::compound::{TYPES_SQL, change_of_type};
use crate::values::{TYPES, chance, pick, value};

/// Number of tables in a run.
const TABLES: usize = 14;

/// The most rows in one insert.
const ROWS_MAX: u64 = 60;

/// A table that holds rows.
#[derive(Debug)]
pub(crate) struct Table {
    /// Its name without the schema.
    pub(crate) name: String,
    columns: Vec<(String, String)>,
    /// For a partition, the parent table, because rows are inserted into the parent. `None` for all
    /// other tables.
    parent: Option<String>,
    next_column: usize,
    /// Whether it has a virtual generated column.
    computes: bool,
}

/// Features of a server version.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Abilities {
    /// Compression with lz4.
    pub(crate) lz4: bool,
    /// Virtual generated columns.
    pub(crate) computes: bool,
}

/// The script for a server, and the tables that it creates.
#[derive(Debug)]
pub(crate) struct History {
    /// A script in which statements may fail.
    pub(crate) script: String,
    /// Each table with the file that COPY writes.
    pub(crate) tables: Vec<(String, PathBuf)>,
}

impl History {
    /// A random history for a server with these features.
    pub(crate) fn new(rng: &mut Rng, abilities: Abilities, output: &Path) -> Self {
        let mut script = String::from(
            "\\set ON_ERROR_ROLLBACK on\nset lock_timeout = '2s';\ncreate schema s;\n\
             create tablespace place location '';\n",
        );
        script.push_str(TYPES_SQL);
        let mut tables = Vec::new();
        for number in 0..TABLES {
            make_table(rng, number, abilities, &mut tables, &mut script);
        }
        let mut transactions = 0;
        for _ in 0..TABLES * 16 {
            let at = rng.below(tables.len() as u64) as usize;
            step(rng, &mut tables[at], &mut transactions, &mut script);
            if chance(rng, 20) {
                script.push_str(change_of_type(rng));
            }
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

/// A type for a column: any type, or an array of it.
fn column_type(rng: &mut Rng) -> String {
    let ty = pick(rng, TYPES);
    if chance(rng, 5) { format!("{ty}[]") } else { ty.into() }
}

fn make_table(
    rng: &mut Rng,
    number: usize,
    abilities: Abilities,
    tables: &mut Vec<Table>,
    script: &mut String,
) {
    let name = format!("t{number}");
    let wide = chance(rng, 8);
    let count = if wide { 40 + rng.below(60) } else { 1 + rng.below(10) } as usize;
    let mut columns = vec![("id".to_owned(), "int4".to_owned())];
    columns.extend((1..=count).map(|at| (format!("c{at}"), column_type(rng))));
    let mut list: Vec<String> = columns
        .iter()
        .map(|(name, ty)| {
            let method = match rng.below(4) {
                0 if abilities.lz4 && is_text(ty) => " compression lz4",
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
    let computes = abilities.computes && !partitioned && chance(rng, 3);
    if computes {
        list.insert(1, "computed int4 generated always as (id + 1) virtual".into());
    } else if chance(rng, 4) {
        list.insert(1, "made text generated always as (md5(id::text)) stored".into());
    }
    let list = list.join(", ");
    if partitioned {
        let _ = writeln!(script, "create table s.{name} ({list}) partition by hash (id){place};");
        for part in 0..2 {
            make_partition(rng, &name, part, &fill, &columns, script);
            let (name, columns) = (format!("{name}_{part}"), columns.clone());
            let (parent, next_column) = (Some(format!("t{number}")), count + 1);
            tables.push(Table { name, columns, parent, next_column, computes });
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
            computes,
        });
    }
    for index in 0..rng.below(4) {
        make_index(rng, &name, &format!("{name}_i{index}"), &columns, script);
    }
}

/// Creates a partition, or attaches a table with a different column order.
fn make_partition(
    rng: &mut Rng,
    parent: &str,
    part: u64,
    fill: &str,
    columns: &[(String, String)],
    script: &mut String,
) {
    let (name, of) = (format!("{parent}_{part}"), format!("with (modulus 2, remainder {part})"));
    if chance(rng, 2) {
        // This statement fails if the parent has a generated column. In that case, the statement
        // below creates the partition.
        let list: Vec<String> =
            columns.iter().rev().map(|(name, ty)| format!("{name} {ty}")).collect();
        let _ = writeln!(
            script,
            "create table s.{name} (gone int8, {}){fill};\n\
             alter table s.{name} drop column gone;\n\
             alter table s.{parent} attach partition s.{name} for values {of};\n\
             select 'drop table s.{name}' where not (select relispartition from pg_class where oid = 's.{name}'::regclass) \\gexec",
            list.join(", ")
        );
    }
    let _ = writeln!(
        script,
        "create table if not exists s.{name} partition of s.{parent} for values {of}{fill};"
    );
}

/// Whether values of the type can be TOASTed.
fn is_text(ty: &str) -> bool {
    let long = ["text", "bytea", "jsonb", "json", "xml", "varchar", "path", "s.mix", "s.tree"];
    long.contains(&ty) || ty.ends_with("[]") || ty.ends_with("multirange")
}

/// Creates indexes. Some of these statements fail, because some types can't be sorted.
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
    // We use a separate statement for each row, so that an invalid value costs us only that row.
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

/// One random change of a table.
fn step(rng: &mut Rng, table: &mut Table, transactions: &mut u64, script: &mut String) {
    let name = table.name.clone();
    match rng.below(18) {
        0..=4 => insert(rng, table, script),
        5 | 6 => change(rng, table, script),
        7 => {
            // Create several versions of rows on one page.
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
            // The prepared transaction keeps its row locks while another transaction locks the same
            // rows. This lets us create multixacts with a single session.
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
            let how = pick(
                rng,
                &["vacuum", "vacuum (freeze, index_cleanup off)", "vacuum freeze", "vacuum full"],
            );
            let _ = writeln!(script, "{how} s.{name};");
        }
        14 => {
            let _ = writeln!(
                script,
                "begin; select count(*) from (select 1 from s.{name} for update) x; commit;"
            );
        }
        15 => lock_oneself(rng, table, script),
        16 => rewrite(rng, table, script),
        _ => {
            let _ = match rng.below(5) {
                0 => writeln!(script, "reindex table s.{name};"),
                1 => writeln!(script, "checkpoint;"),
                4 => writeln!(script, "analyze s.{name};"),
                2 => writeln!(
                    script,
                    "begin; insert into s.{name} (id) values (1); delete from s.{name} where id = 1; commit;"
                ),
                _ => writeln!(script, "select count(*) from s.{name};"),
            };
        }
    }
}

/// Locks and updates rows in subtransactions, which creates multixacts with subtransaction members.
fn lock_oneself(rng: &mut Rng, table: &Table, script: &mut String) {
    let name = &table.name;
    let mut lock = |script: &mut String| {
        let strength = pick(rng, &["share", "key share", "no key update", "update"]);
        let _ = writeln!(
            script,
            "select count(*) from (select 1 from s.{name} where id % 3 = 0 for {strength}) x;"
        );
    };
    script.push_str("begin;\n");
    lock(script);
    script.push_str("savepoint a;\n");
    lock(script);
    script.push_str("savepoint b;\n");
    lock(script);
    change(rng, table, script);
    script.push_str(pick(rng, &["rollback to b;\n", "release b;\n", "rollback to a;\n", ""]));
    change(rng, table, script);
    let _ = writeln!(script, "update s.{name} set id = id where id % 3 = 0;");
    script.push_str(pick(rng, &["rollback to a;\n", "", ""]));
    script.push_str(pick(rng, &["commit;\n", "commit;\n", "rollback;\n"]));
}

/// Rewrites the table, in a transaction that commits or aborts.
fn rewrite(rng: &mut Rng, table: &Table, script: &mut String) {
    let name = &table.name;
    let column = pick(rng, &table.columns.iter().collect::<Vec<_>>());
    let (column, ty) = (&column.0, &column.1);
    // Change a column to text and back. This fails for some types.
    let retype = format!(
        "alter table s.{name} alter {column} type text using {column}::text;\n\
         alter table s.{name} alter {column} type {ty} using {column}::{ty};"
    );
    let all = table.columns.iter().map(|(name, _)| name.as_str()).collect::<Vec<_>>().join(", ");
    let (into, end) = (table.parent.as_ref().unwrap_or(name), pick(rng, &["commit", "rollback"]));
    let reload = format!(
        "begin;\ncreate temp table kept on commit drop as select {all} from s.{name};\n\
         truncate s.{name};\ninsert into s.{into} ({all}) select {all} from kept limit 500;\n{end};"
    );
    let _ = match rng.below(7) {
        0 => writeln!(script, "cluster s.{name} using {name}_i0;"),
        1 if table.parent.is_none() && column != "id" => writeln!(script, "{retype}"),
        2 => writeln!(script, "alter table s.{name} set tablespace place;"),
        3 => writeln!(script, "alter table s.{name} set tablespace pg_default;"),
        4 => writeln!(script, "alter table s.{name} set unlogged;"),
        5 => writeln!(script, "alter table s.{name} set logged;"),
        _ => writeln!(script, "{reload}"),
    };
}

/// Adds and drops columns. For a partition, we do this on its parent.
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
        // Stored as attmissingval for existing rows.
        _ => format!(" default {}", value(rng, &ty)),
    };
    // If the default is invalid, the column stays without one.
    let _ = writeln!(script, "alter table s.{name} add column {column} {ty}{default};");
    let _ = writeln!(script, "alter table s.{name} add column if not exists {column} {ty};");
    table.columns.push((column, ty));
}

/// The last transaction on a table. Its COPY already sees the transaction's own changes, so the
/// output is the same as if we ran COPY after the commit.
fn last_words(rng: &mut Rng, table: &Table, file: &Path, script: &mut String) {
    script.push_str("begin;\n");
    for _ in 0..rng.below(3) {
        if table.parent.is_none() {
            change(rng, table, script);
            insert(rng, table, script);
        }
    }
    // Virtual columns aren't stored, so we can't compare them.
    let columns = match table.computes {
        true => table.columns.iter().map(|(name, _)| name.as_str()).collect::<Vec<_>>().join(", "),
        false => "*".into(),
    };
    let _ = writeln!(
        script,
        "\\copy (select ctid, {columns} from only s.{}) to '{}'\ncommit;",
        table.name,
        file.display()
    );
    if chance(rng, 3) {
        script.push_str("begin;\n");
        change(rng, table, script);
        script.push_str("rollback;\n");
    }
}

/// Transactions that are still prepared when the server stops. Their changes are invisible.
fn leave_prepared(rng: &mut Rng, tables: &[Table], script: &mut String) {
    for number in 0..rng.below(3) {
        let table = &tables[rng.below(tables.len() as u64) as usize];
        script.push_str("begin;\n");
        change(rng, table, script);
        insert(rng, table, script);
        let _ = writeln!(script, "prepare transaction 'left{number}';");
    }
}
