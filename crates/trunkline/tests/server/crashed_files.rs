//! Crashed directories whose files are not what the log needs: a lost commit log, pages without images, a log that still
//! grows, and pages of unlogged tables.

use std::fs;

use trunkline_engine::datadir::{DataDir, DataDirError, OpenOptions};
use trunkline_engine::replay::ReplayOptions;

use crate::binary::run;
use crate::killed_writers::control_file;
use crate::replay::copy;
use crate::server::{Server, servers};
use crate::wal::segments;

/// No catalog needs the commit log, and `rows` has rows from before and after a checkpoint, without hint bits.
const ROWS: &str = "
create table rows (i int);
vacuum (freeze);
insert into rows select generate_series(1, 10);
checkpoint;
insert into rows select generate_series(11, 20);
";

#[test]
fn a_crashed_directory_that_lacks_something_says_so() {
    for bin in servers() {
        let mut server = Server::start(&bin, &[("full_page_writes", "off")]);
        server.script("postgres", ROWS, false);
        server.halt("immediate");
        let data = server.home().join("crashed");
        copy(&server.data(), &data);
        let rows = |data| run(data, &["copy", "-d", "postgres", "rows"]);
        let (code, out, err) = rows(&data);
        assert_eq!((code, out.lines().count()), (0, 20), "{err}");
        let has_checksums = control_file(&data).checksums();
        assert_eq!(err.contains("full_page_writes was off"), !has_checksums, "{err}");

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
