//! Moments of a backup: `--until` shows what a server has after it has recovered to the same target.
//!
//! The steps between the moments are transactions that commit, abort, or are prepared first. Times are those
//! of the commit records, and a microsecond less, since that decides on which side of the record a replay
//! ends.

use std::fs;
use std::path::Path;
use std::process::Command;

use crate::binary::run;
use crate::replay::copy;
use crate::server::{Server, servers, succeed};

/// Values of `--until`, with the setting of a server that means the same.
type Targets = Vec<(String, (&'static str, String))>;

#[test]
fn a_moment_is_that_of_a_servers_recovery_target() {
    for bin in servers() {
        let settings = [
            ("wal_level", "replica"),
            ("max_wal_senders", "1"),
            ("wal_keep_size", "1GB"),
            ("track_commit_timestamp", "on"),
        ];
        let server = Server::start(&bin, &settings);
        server.sql("postgres", "create table steps (i int primary key, t text)");
        let backup = server.home().join("backup");
        back_up(&server, &backup);
        let targets = steps(&server);
        let stopped = server.stop();
        let archive = backup.with_file_name("archive");
        copy(&stopped.data().join("pg_wal"), &archive);
        let wal = archive.display().to_string();
        let mut seen = Vec::new();
        for (until, target) in &targets {
            let expected = recovered(&bin, &backup, &wal, target);
            let arguments = ["copy", "-d", "postgres", "steps", "--wal", &wal, "--until", until];
            let (code, out, err) = run(&backup, &arguments);
            assert_eq!(code, 0, "{target:?}: {err}");
            assert_eq!(out, expected, "{target:?}: {err}");
            seen.push(expected);
        }
        // The moments differ, so they are not all the end of the log.
        seen.sort();
        seen.dedup();
        assert!(seen.len() > targets.len() / 2, "{seen:?}");
    }
}

/// A directory of copies is that of one moment, whether `--until` or the end of the log says which.
#[test]
fn copies_of_two_moments_are_not_mixed() {
    for bin in servers() {
        let settings =
            [("wal_level", "replica"), ("max_wal_senders", "1"), ("wal_keep_size", "1GB")];
        let server = Server::start(&bin, &settings);
        server.sql("postgres", "create table steps (i int)");
        let backup = server.home().join("backup");
        back_up(&server, &backup);
        let mut contents = Vec::new();
        for name in ["first", "second"] {
            server.sql("postgres", "insert into steps values (1)");
            server.sql("postgres", &format!("select pg_create_restore_point('{name}')"));
            contents.push(server.sql("postgres", "copy steps to stdout"));
            server.sql("postgres", "select pg_switch_wal()");
        }
        server.sql("postgres", "insert into steps values (2)");
        let last = server.sql("postgres", "select pg_walfile_name(pg_current_wal_lsn())");
        let last = String::from_utf8(last).expect("text").trim().to_owned();
        let archive = backup.with_file_name("archive");
        let stopped = server.stop();
        copy(&stopped.data().join("pg_wal"), &archive);
        let wal = archive.display().to_string();
        let out = |name: &str| backup.with_file_name(name);
        let copied = |name: &str, options: &[&str]| {
            let out = out(name).display().to_string();
            let args = ["copy", "-d", "postgres", "-t", "steps", "--wal", &wal, "-o", &out];
            run(&backup, &[&args, options].concat())
        };
        let rows = |name: &str| fs::read(out(name).join("public.steps.copy")).unwrap_or_default();
        let refused = |name: &str, options: &[&str]| {
            let before = rows(name);
            let (code, text, err) = copied(name, options);
            assert_eq!(code, 2, "{options:?}: {text}{err}");
            assert!(err.contains("contains copies of another moment"), "{err}");
            assert!(err.contains("hint: use another directory"), "{err}");
            assert_eq!(rows(name), before);
        };
        let [first, second] = ["name:first", "name:second"].map(|name| ["--until", name]);
        for (until, expected) in [first, second].iter().zip(&contents) {
            let (code, _, err) = copied(until[1], until);
            assert_eq!((code, &rows(until[1])), (0, expected), "{err}");
            let (code, text, err) = copied(until[1], until);
            let mut lines = text.lines();
            let is_kept = lines.any(|line| line.split_whitespace().eq(["Files", "kept:", "1"]));
            assert!(code == 0 && is_kept, "{code}: {text}{err}");
        }
        refused(first[1], &second);
        refused(second[1], &first);
        refused(second[1], &[]);
        // The archive does not have all of the log yet. Behind the last segment are recycled ones.
        let later = out("later");
        fs::create_dir(&later).expect("made");
        let move_later = |from: &Path, to: &Path| {
            for entry in fs::read_dir(from).expect("read") {
                let name = entry.expect("an entry").file_name();
                if name.len() == last.len() && *name >= *last {
                    fs::rename(from.join(&name), to.join(&name)).expect("moved");
                }
            }
        };
        move_later(&archive, &later);
        let (code, _, err) = copied("grown", &[]);
        assert_eq!((code, &rows("grown")), (0, &contents[1]), "{err}");
        move_later(&later, &archive);
        refused("grown", &[]);
        let (code, _, err) = copied("whole", &[]);
        assert_eq!((code, &*rows("whole")), (0, &b"1\n1\n2\n"[..]), "{err}");
    }
}

/// Copies the directory of a running server, without its log.
pub(crate) fn back_up(server: &Server, backup: &Path) {
    let label = server.home().join("label");
    let script = format!(
        "select pg_backup_start('moments', true);\n\\! cp -a {} {}\n\\o {}\n\
         select labelfile from pg_backup_stop(false);\n\\o\n",
        server.data().display(),
        backup.display(),
        label.display()
    );
    server.script("postgres", &script, false);
    fs::copy(label, backup.join("backup_label")).expect("copied");
    fs::remove_file(backup.join("postmaster.pid")).expect("removed");
    succeed(Command::new("rm").arg("-r").arg(backup.join("pg_wal")));
    fs::create_dir(backup.join("pg_wal")).expect("made");
}

/// Executes the steps, and returns moments between them.
fn steps(server: &Server) -> Targets {
    let text = |sql: &str| {
        let text = String::from_utf8(server.sql("postgres", sql)).expect("text");
        text.trim().to_owned()
    };
    let step = |sql: &str| text(&format!("{sql}; select pg_current_xact_id()"));
    let by_xid = |xid: &str| (format!("xid:{xid}"), ("recovery_target_xid", xid.to_owned()));
    let mut targets = Targets::new();
    for number in 0..3 {
        step(&format!("insert into steps values ({number}, 'committed')"));
        let xid = step(&format!("insert into steps values ({}, 'the target')", number + 10));
        for shift in ["0", "-1"] {
            let time =
                text(&format!("select pg_xact_commit_timestamp('{xid}') + '{shift} microseconds'"));
            targets.push((time.clone(), ("recovery_target_time", time)));
        }
        targets.push(by_xid(&xid));
        let position = text("select pg_current_wal_insert_lsn()");
        targets.push((position.clone(), ("recovery_target_lsn", position)));
        let aborted = "insert into steps values (20, 'aborted'); select pg_current_xact_id()";
        let aborted = text(&format!("begin; {aborted}; rollback"));
        step(&format!("update steps set t = 'round {number}' where i = {number}"));
        text(&format!(
            "begin; insert into steps values ({}, 'prepared'); prepare transaction 'p'",
            number + 30
        ));
        let prepared = text("select transaction from pg_prepared_xacts");
        step("delete from steps where i = 10");
        text("commit prepared 'p'");
        step(&format!("insert into steps values ({}, 'behind it')", number + 40));
        if number == 1 {
            targets.extend([by_xid(&aborted), by_xid(&prepared)]);
            text("select pg_create_restore_point('here')");
            let name = "recovery_target_name";
            targets.push(("name:here".to_owned(), (name, "here".to_owned())));
        }
    }
    targets
}

/// The rows that a server has after it has recovered the backup to the target.
fn recovered(bin: &Path, backup: &Path, wal: &str, target: &(&str, String)) -> String {
    let server = Server::prepare(bin);
    server.copy_from(backup);
    fs::write(server.data().join("recovery.signal"), "").expect("written");
    let restore = format!("cp {wal}/%f %p");
    let settings = [
        ("restore_command", restore.as_str()),
        (target.0, &target.1),
        ("recovery_target_action", "promote"),
    ];
    let server = server.configured(&settings);
    while server.sql("postgres", "select pg_is_in_recovery()") != b"f\n" {}
    String::from_utf8(server.sql("postgres", "copy steps to stdout")).expect("text")
}
