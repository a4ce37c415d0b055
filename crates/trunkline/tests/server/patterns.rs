//! `copy -n`, `-N`, `-t` and `--exclude-table` choose the tables that `pg_dump` chooses, except for
//! system catalogs.

use std::collections::BTreeSet;
use std::fs;
use std::process::Command;

use trunkline_engine::catalog::quoted;

use crate::server::{Server, Stopped, servers};

const OBJECTS: &str = "
create table orders (i int);
create table orders_1 (i int);
create table \"Orders*\" (i int);
create table \"a.b\" (i int);
create schema app;
create table app.orders (i int);
create table app.lines (i int);
create view app.seen as select * from app.lines;
create sequence app.orders_seq;
create schema \"App 2\";
create table \"App 2\".orders_é (i int);
create table \"App 2\".\"q\"\"q\" (i int);
create table child () inherits (orders);
";

/// The user's tables whose rows a dump contains: the names in its COPY commands, quoted as in SQL.
fn dumped(server: &Server, args: &[&str]) -> BTreeSet<String> {
    let output = server.pg_dump("postgres").args(args).output().expect("runs");
    // A catalog may have values that are not valid text.
    let text = String::from_utf8_lossy(&output.stdout);
    let tables = text.lines().filter_map(|line| line.strip_prefix("COPY ")?.split(" (").next());
    let is_system = |name: &&str| name.starts_with("pg_") || name.starts_with("information_schema");
    tables.filter(|name| !is_system(name)).map(str::to_owned).collect()
}

#[test]
fn patterns_choose_the_tables_that_pg_dump_chooses() {
    // "é" is one character of two bytes.
    let cases: [&[&str]; 20] = [
        &["-t", "orders"],
        &["-t", "ORDERS"],
        &["-t", "\"ORDERS\""],
        &["-t", "orders*"],
        &["-t", "orders_?"],
        &["-t", "\"Orders*\""],
        &["-t", "*"],
        &["-t", "*.orders*"],
        &["-t", "app.*"],
        &["-t", "\"a.b\""],
        &["-t", "\"App 2\".orders_?"],
        &["-t", "\"App 2\".*\"q\"\"\"?"],
        &["-t", "app.lines", "-t", "orders_1"],
        &["-t", "app.*rs", "-t", "child"],
        &["-t", "app.*", "--exclude-table", "*.lines"],
        &["-n", "app"],
        &["-n", "*app*", "-n", "public"],
        &["-n", "*", "-N", "app"],
        &["-n", "\"App ?\""],
        &["-n", "app", "--exclude-table", "app.o*"],
    ];
    let mut compared = 0;
    for bin in servers() {
        let server = Server::start(&bin, &[]);
        server.script("postgres", OBJECTS, false);
        let compares = if server.has("pg_dump") { &cases[..] } else { &[] };
        let expected: Vec<_> = compares.iter().map(|args| dumped(&server, args)).collect();
        let stopped = server.stop();
        // Without load.sql, a sequence has no rows to copy.
        check(&stopped, &["-t", "app.orders_seq", "--ctid"], &BTreeSet::new());
        for (args, expected) in compares.iter().zip(expected) {
            compared += 1;
            check(&stopped, args, &expected);
        }
    }
    // Debian's server has one.
    assert!(compared >= cases.len() || servers().is_empty(), "{compared} cases");
}

/// Copies the tables that `args` select, and compares their names with those of a dump.
fn check(stopped: &Stopped, args: &[&str], expected: &BTreeSet<String>) {
    let home = tempfile::tempdir().expect("a directory");
    let path = home.path().join("out");
    let mut command = Command::new(env!("CARGO_BIN_EXE_trunkline"));
    command.env_remove("PGDATA").env_remove("PGDATABASE");
    command.args(["copy", "-d", "postgres", "-D"]).arg(stopped.data()).args(args);
    let output = command.arg("-o").arg(&path).output().expect("runs");
    let text = String::from_utf8_lossy(&output.stderr);
    if expected.is_empty() {
        // pg_dump refuses these, too.
        assert_eq!(output.status.code(), Some(2), "{args:?}: {text}");
        assert!(text.contains("no matching "), "{text}");
        return;
    }
    assert_eq!((output.status.code(), &*text), (Some(0), ""), "{args:?}");
    let entries = fs::read_dir(&path).expect("a directory");
    let found: BTreeSet<String> = entries
        .filter_map(|entry| {
            let name = entry.expect("an entry").file_name().into_string().expect("UTF-8");
            let (schema, table) = name.strip_suffix(".copy")?.split_once('.')?;
            let [schema, table] = [schema, table].map(|part| part.replace("%2E", "."));
            Some(format!("{}.{}", quoted(schema.as_bytes()), quoted(table.as_bytes())))
        })
        .collect();
    assert_eq!(found, *expected, "{args:?}");
}
