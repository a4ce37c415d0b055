//! The documents that this project grew from, run as written in psql: one script for each. What psql
//! prints is compared with the files beside the scripts, with times masked.
//!
//! `TRUNKLINE_UPDATE_SEEDS=1` writes the files.

use std::cell::RefCell;
use std::path::{Path, PathBuf};
use std::process::Command;

use trunkline_aio::facade::env;

use crate::client::{Client, message, text};
use crate::server::{Server, Stopped, servers};
use crate::serving::{PORT, Serving, wait_until};

/// The tables of the documents, with fewer rows of pgbench.
const TABLES: &str = "
    create database pgbench;
    \\c pgbench
    create table pgbench_accounts(aid int, bid int, abalance int, filler char(84));
    insert into pgbench_accounts select i, 1, i % 1000 - 500, '' from generate_series(1, 100000) i;
    create table large as
        select i, repeat((i * 0.000000731)::text, 5) from generate_series(1, 1000000) g(i);
    vacuum (freeze) pgbench_accounts;
    vacuum (freeze) large;
    checkpoint;
";

/// A stopped cluster with the tables.
fn cluster() -> Option<Stopped> {
    let bin = servers().into_iter().next()?;
    let server = Server::start(&bin, &[("max_wal_size", "1GB")]);
    server.script("postgres", TABLES, false);
    Some(server.stop())
}

fn path(name: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/it/seeds").join(name)
}

/// Runs a script and compares what psql prints.
fn check(cluster: &Stopped, name: &str) {
    let serving = Serving::with_pool(&cluster.data(), "128MB", |_| {});
    let output = Command::new("psql")
        .args(["-X", "-a", "-U", "postgres", "-d", "pgbench", "-p", &PORT.to_string(), "-h"])
        .arg(serving.directory.path())
        .arg("-f")
        .arg(path(&format!("{name}.sql")))
        .output()
        .expect("psql");
    let mut found = masked(&String::from_utf8_lossy(&output.stdout));
    for line in String::from_utf8_lossy(&output.stderr).lines() {
        // Without the name of the script.
        let (_, message) = line.split_once(".sql:").unwrap_or(("", line));
        found.push_str(message.split_once(": ").map_or(message, |(_, message)| message).trim());
        found.push('\n');
    }
    let expected = path(&format!("{name}.out"));
    if env::var("TRUNKLINE_UPDATE_SEEDS").is_some() {
        std::fs::write(&expected, &found).expect("written");
    }
    assert_eq!(found, std::fs::read_to_string(&expected).expect("the expected output"));
}

/// The text without times, the widths that depend on them, and the rows of single workers.
fn masked(text: &str) -> String {
    let mut masked = String::new();
    // What each worker did differs.
    for line in text.lines().filter(|line| !line.trim_start().starts_with("Worker ")) {
        let is_rule = line.len() > 8 && line.chars().all(|char| char == '-');
        match line.trim() {
            _ if is_rule => masked.push_str("--------"),
            "QUERY PLAN" => masked.push_str("QUERY PLAN"),
            _ => masked.push_str(without_times(line).trim_end()),
        }
        masked.push('\n');
    }
    masked
}

/// Replaces numbers with a decimal point by `T`, except numbers of rows.
fn without_times(line: &str) -> String {
    let mut out = String::new();
    let mut rest = line;
    while let Some(at) = rest.find(|char: char| char.is_ascii_digit()) {
        let (before, number) = rest.split_at(at);
        let mut end = 0;
        let bytes = number.as_bytes();
        while bytes.get(end).is_some_and(|byte| byte.is_ascii_digit() || *byte == b'.')
            && !number[end..].starts_with("..")
        {
            end += 1;
        }
        let (number, after) = number.split_at(end);
        out.push_str(before);
        match number.contains('.') && !before.ends_with("rows=") {
            true => out.push('T'),
            false => out.push_str(number),
        }
        rest = after;
    }
    out.push_str(rest);
    out
}

#[test]
fn documents_run_as_written() {
    let Some(cluster) = cluster() else { return };
    for name in ["000", "001", "002", "004"] {
        check(&cluster, name);
    }
    reads_are_seen_while_a_scan_runs(&cluster);
}

/// `pg_aios` as the article shows it.
fn reads_are_seen_while_a_scan_runs(cluster: &Stopped) {
    // The table doesn't fit, so every scan reads all of it.
    let serving = Serving::with_pool(&cluster.data(), "4MB", |_| {});
    let mut scanning = Client::connect_to(&serving, "pgbench");
    let scans = "select count(*) from large;".repeat(1000);
    scanning.send(&message(b'Q', &text(&scans)));
    let watching = RefCell::new(Client::connect_to(&serving, "pgbench"));
    let seen = RefCell::new(String::new());
    wait_until("a read in pg_aios", || {
        let sql = "select operation, off % 8192, length % 8192, target, target_desc, f_sync \
                   from pg_aios where operation = 'readv' limit 1";
        let found = watching.borrow_mut().query(sql).join("\n");
        let is_row = found.contains("smgr");
        *seen.borrow_mut() = found;
        is_row
    });
    let seen = seen.into_inner();
    assert!(seen.contains("blocks ") && seen.contains("in file \"base/"), "{seen}");
    // The end of its client ends the scan.
    drop(scanning);
    serving.wait_for_sessions(1);
}
