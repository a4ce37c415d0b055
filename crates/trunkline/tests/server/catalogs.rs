//! Copies every table in `pg_catalog` from a database that contains objects of every kind. The
//! output must match, byte for byte, what the server printed before it was stopped.

use std::fs;
use std::process::{Command, Output};

use crate::server::{Server, Stopped, servers};

/// Objects that leave rows in as many catalogs as possible.
const OBJECTS: &str = include_str!("catalogs.sql");

/// A database, and the server's output for each of its catalogs.
type Printed = (&'static str, Vec<(String, Vec<u8>)>);

/// The server's output for every catalog of a database, with ctid.
fn printed(server: &Server, database: &'static str) -> Printed {
    let list = "select relname from pg_class where relkind = 'r' \
                and relnamespace = 'pg_catalog'::regnamespace order by 1";
    let list = String::from_utf8(server.sql(database, list)).expect("text");
    let directory = server.home().join(database);
    server.make_directory(&directory);
    let file = |name: &str| directory.join(name);
    // Use one session for all catalogs, since a session's first query takes longest.
    let copy = |name: &str| {
        let file = file(name);
        format!("\\copy (select ctid, * from pg_catalog.{name}) to '{}'\n", file.display())
    };
    server.script(database, &list.lines().map(copy).collect::<String>(), false);
    let read = |name: &str| (name.to_owned(), fs::read(file(name)).expect("printed"));
    (database, list.lines().map(read).collect())
}

fn copied(stopped: &Stopped, database: &str, name: &str, method: &str) -> Output {
    let mut command = Command::new(env!("CARGO_BIN_EXE_trunkline"));
    command
        .env_remove("PGDATA")
        .env_remove("PGDATABASE")
        .current_dir("/")
        .args(["copy", "--ctid", "-d", database, "-D"]);
    command.arg(stopped.data()).arg(format!("pg_catalog.{name}"));
    command.args(["--io-method", method, "--shared-buffers", "4MB"]);
    command.output().expect("runs")
}

/// Describes the first difference between two outputs.
fn difference(expected: &[u8], found: &[u8]) -> String {
    let mut lines = expected.split(|&byte| byte == b'\n').zip(found.split(|&byte| byte == b'\n'));
    let text = String::from_utf8_lossy;
    match lines.find(|(one, other)| one != other) {
        Some((one, other)) => format!("expected: {}\nfound:    {}", text(one), text(other)),
        None => format!("expected {} bytes, found {}", expected.len(), found.len()),
    }
}

#[test]
fn every_catalog_is_as_the_server_printed_it() {
    for bin in servers() {
        let server = Server::start(&bin, &[]);
        let major = server.major();
        server.sql("postgres", "create database objects");
        server.script("objects", OBJECTS, false);
        let all = ["objects", "template1"].map(|database| printed(&server, database));
        let stopped = server.stop();
        let mut wrong = Vec::new();
        let (mut tables, mut rows, mut filled) = (0, 0, 0);
        for (database, printed) in &all {
            for ((name, expected), at) in printed.iter().zip(0..) {
                let method = ["sync", "worker", "io_uring"][at % 3];
                let Output { status, stdout, stderr } = copied(&stopped, database, name, method);
                let said = String::from_utf8_lossy(&stderr);
                if stdout != *expected {
                    let difference = difference(expected, &stdout);
                    wrong.push(format!("{major} {database} {name}: {difference}\n{said}"));
                } else {
                    assert!(status.success(), "{database} {name}: {said}");
                }
                tables += 1;
                rows += expected.iter().filter(|&&byte| byte == b'\n').count();
                filled += usize::from(!expected.is_empty() && *database == "objects");
            }
        }
        println!("PostgreSQL {major}: {tables} catalogs, {rows} rows, {filled} with rows");
        assert!(wrong.is_empty(), "{}", wrong.join("\n"));
        assert!(filled > 50, "{filled}");
    }
}
