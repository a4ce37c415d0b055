//! Crashed directories whose files are not what the log needs: a lost commit log, pages without images, a log that still
//! grows, and pages of unlogged tables.

use std::fs;
use std::path::Path;
use std::process::Command;

use trunkline_engine::datadir::{DataDir, DataDirError, OpenOptions};
use trunkline_engine::replay::ReplayOptions;

use crate::binary::run;
use crate::killed_writers::control_file;
use crate::moments::back_up;
use crate::replay::{copy, fingerprint};
use crate::server::{Server, servers};
use crate::wal::segments;

/// No catalog needs the commit log, and `rows` has rows from before and after a checkpoint, without hint bits.
const ROWS: &str = "
create table rows (i int);
vacuum (freeze);
insert into rows select generate_series(1, 10);
checkpoint;
insert into rows select generate_series(11, 20);
select pg_switch_wal();
create table other (i int);
select pg_switch_wal();
delete from rows where i = 20;
insert into rows values (20);
";

fn rows(data: &Path) -> (i32, String, String) {
    run(data, &["copy", "-d", "postgres", "rows"])
}

/// The log has three segments from the checkpoint on. They are swapped, compressed, and of another cluster.
fn refuses_what_no_crash_leaves(data: &Path, newest: &str) {
    let number = u64::from_str_radix(&newest[16..], 16).expect("a number");
    let path = |back: u64| data.join(format!("pg_wal/{}{:08X}", &newest[..16], number - back));
    let [last, middle, first] = [0, 1, 2].map(path);
    let [last_bytes, middle_bytes, first_bytes] =
        [&last, &middle, &first].map(|path| fs::read(path).expect("read"));
    let of_another = |bytes: &[u8]| [&bytes[..24], &[7; 8], &bytes[32..]].concat();
    let foreign = "page is of the system 506381209866536711";
    let packed = Command::new("gzip").arg("-c").arg(&middle).output().expect("run").stdout;
    for (files, expected) in [
        (
            vec![(&middle, last_bytes.clone()), (&last, middle_bytes.clone())],
            "page has the address",
        ),
        (vec![(&middle, packed)], " bytes, expected 1048576"),
        (vec![(&first, of_another(&first_bytes))], foreign),
        (vec![(&middle, of_another(&middle_bytes))], foreign),
        // A file that was recycled has an earlier part of the log, but of the same cluster.
        (vec![(&last, of_another(&first_bytes))], foreign),
    ] {
        for (path, bytes) in &files {
            fs::write(path, bytes).expect("written");
        }
        let before = fingerprint(data);
        let (code, _, err) = rows(data);
        assert!(code == 3 && err.contains(expected), "{code}, {expected}: {err}");
        let (code, out, err) = run(data, &["verify", "--wal"]);
        assert!(code != 0 && err.contains(expected), "{code}, {expected}: {out}{err}");
        let name = files[0].0.file_name().expect("a name").to_string_lossy().into_owned();
        assert!(err.contains(&name), "{name}: {err}");
        assert_eq!(fingerprint(data), before);
        for (path, bytes) in
            [(&first, &first_bytes), (&middle, &middle_bytes), (&last, &last_bytes)]
        {
            fs::write(path, bytes).expect("written");
        }
    }
    // A record that was torn is a usual end, but may be damage.
    let mut torn = last_bytes.clone();
    torn[70] ^= 1;
    fs::write(&last, torn).expect("written");
    let (code, out, err) = rows(data);
    assert_eq!((code, out.lines().count()), (0, 20), "{err}");
    assert!(err.contains("warning: the log ends at ") && err.contains("the CRC 0x"), "{err}");
    fs::write(&last, last_bytes).expect("written");
}

#[test]
fn a_crashed_directory_that_lacks_something_says_so() {
    for bin in servers() {
        let mut server =
            Server::start(&bin, &[("full_page_writes", "off"), ("wal_keep_size", "1GB")]);
        let backup = server.home().join("backup");
        back_up(&server, &backup);
        server.script("postgres", ROWS, false);
        let newest = server.sql("postgres", "select pg_walfile_name(pg_current_wal_insert_lsn())");
        let newest = String::from_utf8(newest).expect("a name");
        server.halt("immediate");
        let data = server.home().join("crashed");
        copy(&server.data(), &data);
        refuses_what_no_crash_leaves(&data, newest.trim());
        let (code, out, err) = rows(&data);
        assert_eq!((code, out.lines().count()), (0, 20), "{err}");
        let has_checksums = control_file(&data).checksums();
        assert_eq!(err.contains("full_page_writes was off"), !has_checksums, "{err}");
        // A backup has images of all pages that were changed meanwhile.
        let wal = format!("--wal={}", data.join("pg_wal").display());
        let (code, out, err) = run(&backup, &["copy", "-d", "postgres", "rows", &wal]);
        assert_eq!((code, out.lines().count()), (0, 20), "{err}");
        assert!(!err.contains("full_page_writes was off"), "{err}");

        // The server goes on, but its control file and its process can't be seen.
        let scratch = tempfile::tempdir().expect("a folder");
        let options = ReplayOptions::new(scratch.path().to_owned());
        let opened = DataDir::open_replayed(&data, OpenOptions::default(), &options);
        let opened = opened.expect("opened");
        opened.recheck().expect("nothing has changed");
        server.run();
        server.sql("postgres", "insert into rows values (21)");
        server.halt("immediate");
        for segment in segments(&server.data()) {
            let name = segment.file_name().expect("a name");
            fs::copy(&segment, data.join("pg_wal").join(name)).expect("copied");
        }
        let changed = opened.recheck();
        assert!(matches!(changed, Err(DataDirError::Changed { .. })), "{changed:?}");

        // The page of the commit log has transactions that the log does not have.
        let lost = server.home().join("lost");
        copy(&server.data(), &lost);
        fs::remove_file(lost.join("pg_xact/0000")).expect("removed");
        let (code, out, err) = rows(&lost);
        assert!(code == 3 && err.contains("pg_xact/0000"), "{code}: {out}{err}");
    }
}

/// A server writes the pages of unlogged tables when it copies a database.
const UNLOGGED: &str = "
create unlogged table emptied (i int primary key);
insert into emptied select generate_series(1, 1000);
vacuum emptied;
create table kept (i int);
insert into kept select generate_series(1, 1000);
create database flushed strategy file_copy;
drop database flushed;
";

#[test]
fn an_unlogged_table_is_empty() {
    for bin in servers() {
        let mut server = Server::start(&bin, &[]);
        server.script("postgres", UNLOGGED, false);
        let file = server.sql("postgres", "select pg_relation_filepath('emptied')");
        let file = String::from_utf8(file).expect("text").trim().to_owned();
        server.halt("immediate");
        let data = server.data();
        let on_disk = fs::metadata(data.join(&file)).expect("a file").len();
        assert!(on_disk > 8192, "{on_disk}");
        for mode in ["buffer", "read", "prefetch"] {
            let prewarm = |names: &[&str]| {
                let args = ["prewarm", "--json", "--mode", mode];
                let (code, out, err) = run(&data, &[&args, names].concat());
                assert!(code == 0 && !err.contains("file ended"), "{mode} {names:?}: {code} {err}");
                let report: serde_json::Value = serde_json::from_str(&out).expect("JSON");
                report["blocks"].as_u64().expect("a number")
            };
            assert_eq!(prewarm(&["-d", "postgres", "emptied"]), 0, "{mode}");
            // The index has a page in its _init fork.
            assert_eq!(prewarm(&["-d", "postgres", "emptied_pkey"]), 1, "{mode}");
            assert!(prewarm(&["-d", "postgres"]) > 100 && prewarm(&[]) > 100, "{mode}");
        }
        let inspect = |block| run(&data, &["inspect", "page", "-d", "postgres", "emptied", block]);
        for block in ["0", "1"] {
            let (code, out, err) = inspect(block);
            assert_eq!((code, &*out), (2, ""), "{err}");
            let text = format!(
                "block {block} is past the end of \"{}\": the relation has 0 blocks",
                data.join(&file).display()
            );
            assert!(err.contains(&text), "{err}");
        }
    }
}
