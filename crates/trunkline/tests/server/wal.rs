//! The log of a real server, as `inspect wal` and `pg_waldump` print it, and damaged logs.
//!
//! Only Debian's version 15 has a `pg_waldump`. For the others, the log must be readable to the last
//! record, and that record must be the shutdown checkpoint that the control file names. The logs of
//! 18 and 19 in trunkline-format's `testdata` are compared line by line there.

use std::fmt::Write as _;
use std::fs::{self, OpenOptions};
use std::os::unix::fs::FileExt;
use std::path::{Path, PathBuf};
use std::process::Command;

use serde_json::Value;
use trunkline_aio::facade::random::Rng;

use crate::binary::run;
use crate::differential::seeds;
use crate::server::{Server, Stopped, servers};

/// Nearly every kind of record.
const EVERYTHING: &str = include_str!("../../../trunkline-format/testdata/wal.sql");

const SETTINGS: [(&str, &str); 6] = [
    ("wal_level", "logical"),
    ("wal_keep_size", "1GB"),
    ("wal_log_hints", "on"),
    ("wal_compression", "on"),
    ("track_commit_timestamp", "on"),
    ("wal_consistency_checking", "btree,sequence"),
];

/// Random changes of a table, with savepoints and vacuums.
pub(crate) fn random_changes(rng: &mut Rng) -> String {
    let mut sql = String::from("create table changed (id int primary key, v text, n int);\n");
    sql.push_str("create index on changed (n);\n");
    for _ in 0..60 {
        let (id, length) = (rng.below(200), 1 + rng.below(2000));
        let row = format!("({id}, repeat('x', {length}), {})", rng.below(9));
        let _ = match rng.below(10) {
            0..5 => writeln!(sql, "insert into changed values {row} on conflict do nothing;"),
            5 => writeln!(
                sql,
                "update changed set v = v || 'y', n = n + 1 where id % 7 = {};",
                id % 7
            ),
            6 => writeln!(sql, "delete from changed where id % 5 = {};", id % 5),
            7 => writeln!(sql, "vacuum changed;"),
            8 => writeln!(
                sql,
                "begin; insert into changed values {row} on conflict do nothing; savepoint s; delete from changed where id = {id}; rollback to s; commit;"
            ),
            _ => writeln!(
                sql,
                "begin; select 1 from changed where id < {id} for share; update changed set n = n + 1 where id = {id}; rollback;"
            ),
        };
    }
    sql
}

/// A cluster with some log, shut down cleanly.
fn cluster(bin: &Path, seed: u64, everything: bool) -> Stopped {
    println!("TRUNKLINE_SEED={seed} ({})", bin.display());
    let server = Server::start(bin, &SETTINGS);
    if everything {
        // Not every server has all compressions.
        server.script("postgres", EVERYTHING, true);
    }
    server.script("postgres", &random_changes(&mut Rng::new(seed)), false);
    server.stop()
}

/// The segments, in order.
pub(crate) fn segments(data: &Path) -> Vec<PathBuf> {
    let entries = fs::read_dir(data.join("pg_wal")).expect("read");
    let paths = entries.map(|entry| entry.expect("an entry").path());
    let is_segment = |path: &PathBuf| path.file_name().is_some_and(|name| name.len() == 24);
    let mut segments: Vec<_> = paths.filter(is_segment).collect();
    segments.sort();
    segments
}

/// What both programs print in the same way: everything up to the operation, and the blocks.
fn comparable(line: &str) -> String {
    let (head, tail) = line.split_once("desc: ").expect("a description");
    let operation = tail.split([' ', ',']).next().expect("a word");
    let blocks = tail.split_once("blkref").map_or("", |(_, blocks)| blocks);
    format!("{head}{operation} {blocks}")
}

/// `ours` are the lines of `inspect wal` for all records. Returns how many there are.
pub(crate) fn compare_with_pg_waldump(program: &Path, data: &Path, ours: &str) -> usize {
    let names = segments(data);
    let name = |path: &PathBuf| path.file_name().expect("a name").to_owned();
    let (first, last) = (names.first().map(name), names.last().map(name));
    let mut command = Command::new(program);
    command.env("LC_ALL", "C").env("TZ", "UTC").current_dir("/").arg("-p").arg(data.join("pg_wal"));
    let output = command.args(first).args(last).output().expect("runs");
    let theirs = String::from_utf8_lossy(&output.stdout);
    let mut compared = 0;
    let mut lines = theirs.lines();
    for line in ours.lines() {
        let expected = lines.next().expect("a line for each record");
        assert_eq!(comparable(line), comparable(expected));
        compared += 1;
    }
    assert_eq!(lines.next(), None);
    compared
}

#[test]
fn records_are_those_of_pg_waldump() {
    for bin in servers() {
        let seed = seeds().next().expect("one");
        let stopped = cluster(&bin, seed, true);
        let data = stopped.data();
        let folder = data.join("pg_wal").display().to_string();
        let (code, ours, err) = run(&data, &["inspect", "wal", &folder]);
        assert_eq!(code, 0, "{err}");
        assert!(err.contains("note: log ends at"), "{err}");
        let last = ours.lines().last().expect("a record");
        assert!(last.contains("desc: CHECKPOINT_SHUTDOWN redo "), "{last}");
        let (_, control, _) = run(&data, &["inspect", "control"]);
        let checkpoint =
            control.lines().find_map(|line| line.strip_prefix("Latest checkpoint location:"));
        let checkpoint = checkpoint.expect("a checkpoint").trim().replace("0/", "");
        assert!(last.contains(&checkpoint), "{last}, expected {checkpoint}");
        let kinds: std::collections::BTreeSet<&str> =
            ours.lines().filter_map(|line| line.split_whitespace().nth(1)).collect();
        assert!(kinds.len() >= 18 && ours.lines().count() > 5000, "{kinds:?}");
        for wrong in ["UNKNOWN", "too short", "unrecognized"] {
            assert!(!ours.contains(wrong), "{wrong}");
        }
        let program = bin.join("pg_waldump");
        if program.is_file() {
            let compared = compare_with_pg_waldump(&program, &data, &ours);
            println!("{compared} records compared");
        }
    }
}

#[test]
fn records_are_selected_and_relations_have_names() {
    let Some(bin) = servers().into_iter().next() else { return };
    let stopped = cluster(&bin, 1, false);
    let data = stopped.data();
    let wal = |args: &[&str]| {
        let (code, out, err) = run(&data, &[&["inspect", "wal"], args].concat());
        assert_eq!(code, 0, "{err}");
        out
    };
    let all = wal(&["--json"]);
    let all: Vec<Value> = all.lines().map(|line| serde_json::from_str(line).expect(line)).collect();
    let name = "postgres.public.changed";
    let of_table = |record: &&Value| {
        let blocks = record["blocks"].as_array();
        blocks.is_some_and(|blocks| blocks.iter().any(|block| block["relation"] == name))
    };
    let count = |condition: &dyn Fn(&&Value) -> bool| all.iter().filter(|it| condition(it)).count();
    let lines = |args: &[&str]| wal(args).lines().count();
    let expected = count(&of_table);
    assert!(expected > 50, "{expected}");
    assert_eq!(lines(&["--relation", name]), expected);
    assert_eq!(lines(&["--relation", "changed", "-d", "postgres"]), expected);
    let block = all.iter().find(of_table).expect("one")["blocks"][0].clone();
    let numbers = format!("{}/{}/{}", block["tablespace"], block["database"], block["file"]);
    assert_eq!(lines(&["--relation", &numbers]), expected);
    let text = wal(&["--relation", name]);
    assert!(text.lines().all(|line| line.contains(&format!(" rel {name} "))), "{text}");
    // By transaction, manager and position.
    let commit = all.iter().rfind(|record| record["operation"] == "COMMIT").expect("one");
    let xid = commit["xid"].to_string();
    assert_eq!(lines(&["--xid", &xid]), count(&|record| record["xid"] == commit["xid"]));
    let heap = |record: &&Value| record["rmgr"] == "Heap" || record["rmgr"] == "Heap2";
    assert_eq!(lines(&["--rmgr", "heap", "--rmgr", "Heap2"]), count(&heap));
    let (from, to) =
        (all[100]["lsn"].as_str().expect("text"), all[200]["lsn"].as_str().expect("text"));
    assert_eq!(lines(&["--from", from, "--to", to]), 100);
    // Statistics count the same.
    let statistics: Value =
        serde_json::from_str(&wal(&["--stats=record", "--json"])).expect("JSON");
    let of_line = |name: &str| {
        let found = statistics["lines"].as_array().expect("lines").iter();
        found
            .filter(|line| line["name"] == name)
            .map(|line| line["records"].as_u64())
            .next()
            .flatten()
    };
    assert_eq!(of_line("total"), Some(all.len() as u64));
    assert_eq!(
        of_line("Transaction/COMMIT"),
        Some(count(&|it| it["operation"] == "COMMIT") as u64)
    );
    let text = wal(&["--stats"]);
    assert!(text.lines().any(|line| line.starts_with("Btree ")), "{text}");
}

#[test]
fn relations_of_a_crashed_cluster_have_names() {
    for bin in servers() {
        let server = Server::start(&bin, &SETTINGS);
        server.sql("postgres", "create table shown as select generate_series(1, 1000)");
        let crashed = server.stop_at_once();
        let data = crashed.data();
        let named = "rel postgres.public.shown blk 0";
        let (code, all, err) = run(&data, &["inspect", "wal"]);
        assert_eq!(code, 0, "{err}");
        assert!(all.contains(named) && err.contains("note: replayed"), "{err}");
        let heap = |text: &str| -> Vec<String> {
            text.lines().filter(|line| line.contains(named)).map(str::to_owned).collect()
        };
        // The same names, whichever option has opened the directory. It is replayed once.
        let (code, out, err) =
            run(&data, &["inspect", "wal", "--relation", "postgres.public.shown"]);
        assert_eq!((code, err.matches("note: replayed").count()), (0, 1), "{err}");
        assert_eq!(heap(&out), heap(&all));
        // Statistics need no names.
        let (code, _, err) = run(&data, &["inspect", "wal", "--stats"]);
        assert!(code == 0 && !err.contains("replayed"), "{err}");
        // Segments that are only in an archive. The records and names come from there.
        let archive = data.with_file_name("archive");
        fs::create_dir(&archive).expect("made");
        for segment in segments(&data) {
            let name = segment.file_name().expect("a name");
            fs::rename(&segment, archive.join(name)).expect("moved");
        }
        let (code, _, err) = run(&data, &["inspect", "wal"]);
        assert_eq!(code, 3, "{err}");
        assert!(err.contains("contains no log segments"), "{err}");
        let folder = archive.display().to_string();
        let (code, out, err) = run(&data, &["inspect", "wal", "--wal", &folder]);
        assert_eq!(code, 0, "{err}");
        assert_eq!(out, all);
        // Without a log up to the checkpoint there are numbers.
        let (code, out, err) = run(&data, &["inspect", "wal", &folder]);
        assert_eq!(code, 0, "{err}");
        assert!(!out.contains(named) && out.contains("rel 1663/"), "{err}");
        for segment in fs::read_dir(&archive).expect("listed") {
            let path = segment.expect("an entry").path();
            let bytes = fs::read(&path).expect("read");
            fs::write(&path, &bytes[..8192]).expect("cut");
        }
        let (code, _, err) = run(&data, &["inspect", "wal", "--wal", &folder]);
        assert_ne!(code, 0, "{err}");
        assert!(err.contains("note: relations are shown as numbers: "), "{err}");
    }
}

#[test]
fn damaged_logs_are_found() {
    let Some(bin) = servers().into_iter().next() else { return };
    let stopped = cluster(&bin, 2, true);
    let data = stopped.data();
    let files = segments(&data);
    // The checkpoint is in one of the last files; those behind it are for later use.
    let [first, second, third, ..] = &files[..] else { panic!("{files:?}") };
    let name = |path: &Path| path.file_name().expect("a name").to_string_lossy().into_owned();
    let check = |damage: &dyn Fn(), undo: &dyn Fn(), texts: &[&str]| {
        damage();
        let (code, _, err) = run(&data, &["inspect", "wal"]);
        undo();
        assert_eq!(code, 1, "{err}");
        for text in texts {
            assert!(err.contains(text), "{err}, expected {text}");
        }
        assert!(!err.contains("note: log ends"), "{err}");
    };
    let contents = fs::read(second).expect("read");
    let restore = || fs::write(second, &contents).expect("written");
    let put = |at: u64, bytes: &[u8]| {
        let file = OpenOptions::new().write(true).open(second).expect("opened");
        file.write_all_at(bytes, at).expect("written");
    };
    let (second_name, third_name) = (name(second), name(third));
    let in_second = format!("in segment {second_name}");
    check(&|| put(500_000, &[0xFF; 9000]), &restore, &[&in_second]);
    // Another cluster's segment.
    check(&|| put(24, &[1; 8]), &restore, &[&in_second, "page is of the system 72340172838076673"]);
    check(&|| put(0, &[0; 8192]), &restore, &["page is empty", "but it goes on in", &third_name]);
    let cut = || {
        let file = OpenOptions::new().write(true).open(second).expect("opened");
        file.set_len(300_000).expect("cut");
    };
    check(&cut, &restore, &[&in_second, "the file has 300000 bytes, expected 1048576"]);
    let missing = || fs::remove_file(second).expect("removed");
    let gap = run(&data, &["inspect", "wal", "--rmgr", "XLOG"]).0;
    assert_eq!(gap, 0, "the log is sound again");
    missing();
    // What lies before a gap is left over, but not if it is asked for.
    let number = u64::from_str_radix(&name(first)[8..], 16).expect("a number");
    let from = format!("0/{:X}", number << 20);
    let (code, _, err) = run(&data, &["inspect", "wal", "--from", &from]);
    restore();
    assert_eq!(code, 1, "{err}");
    assert!(err.contains(&format!("there is no segment {second_name}")), "{err}");
    assert!(err.contains("but it goes on in"), "{err}");
    // Two segments that changed places.
    let swap = || {
        let aside = second.with_extension("aside");
        fs::rename(second, &aside).expect("moved");
        fs::rename(third, second).expect("moved");
        fs::rename(&aside, third).expect("moved");
    };
    check(&swap, &swap, &[&in_second, "page has the address 0/0", "but"]);
    // The usage is checked, and files are what they must be.
    let usage = |args: &[&str], code: i32, text: &str| {
        let (found, _, err) = run(&data, &[&["inspect", "wal"], args].concat());
        assert_eq!(found, code, "{args:?}: {err}");
        assert!(err.contains(text), "{args:?}: {err}");
    };
    usage(&["--from", "0/2", "--to", "0/1"], 2, "--to 0/00000001 is before --from 0/00000002");
    usage(&["--from", "x"], 2, "expected two hexadecimal numbers");
    usage(&["--rmgr", "nothing"], 2, "expected one of XLOG, Transaction");
    usage(&["--from", "FF/0"], 3, "there is no segment");
    usage(&["--timeline", "9"], 3, "there are no log segments of timeline 9");
    let control = data.join("global/pg_control").display().to_string();
    usage(&[&control], 1, "is not a log segment: page magic is");
    let version = data.join("PG_VERSION").display().to_string();
    usage(&[&version], 1, "has 3 bytes, too few for a log segment");
    let (first, base) = (first.display().to_string(), data.join("base").display().to_string());
    usage(&[&first, &first], 2, "are the same segment");
    usage(&[&first, &base], 2, "is a directory");
    usage(&[&base], 3, "contains no log segments");
    usage(&["--to", "FF/0"], 1, "--to is FF/00000000");
    // One file alone ends where the next should be.
    let (code, out, err) = run(&data, &["inspect", "wal", &first]);
    assert_eq!(code, 0, "{err}");
    assert!(err.contains(&format!("there is no segment {second_name}")), "{err}");
    assert!(out.lines().count() > 10);
}
