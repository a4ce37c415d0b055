//! Unusual and damaged clusters: foreign partitions, domains over arrays, settings that change how
//! statistics are printed, names with unusual characters, truncated files, and directories that
//! have been moved.

use std::fs::{self, Permissions};
use std::os::unix::fs::{MetadataExt, PermissionsExt};
use std::os::unix::process::CommandExt;
use std::path::PathBuf;
use std::process::Command;

use serde_json::Value;

use crate::binary::run;
use crate::server::{Server, Stopped, servers};

const OBJECTS: &str = "
create domain dar as int[];
create function takes(dar[]) returns int language sql as 'select 1';
create table kinds (u regtype, f regprocedure);
insert into kinds values ('dar', null), ('dar[]', 'takes(dar[])'), ('int[]', null), ('oidvector', null);
create table added (a int);
insert into added select i from generate_series(1, 500) i;
alter table added add t timestamptz default '2020-01-01 00:00+00';
alter table added add m money default 5;
alter table added add d date default '2024-02-01';
create index on added (a);
analyze added;
create table long (a int, t text);
alter table long alter t set storage external;
insert into long select 1, repeat('x', 9000);
create table pt (a int primary key) partition by range (a);
create table pt1 partition of pt for values from (0) to (10);
insert into pt select generate_series(0, 9);
create table pf (a int) partition by range (a);
create table pf1 partition of pf for values from (0) to (10);
insert into pf select generate_series(0, 9);
vacuum (freeze) pf1;
create foreign data wrapper wrapper;
create server remote foreign data wrapper wrapper;
create foreign table pf2 partition of pf for values from (10) to (20) server remote;
create table empty (a int) partition by range (a);
create table cut as select i from generate_series(1, 500) i;
create extension hstore;
create table own (\"I d\" int, e hstore, n int);
insert into own values (1, 'x=>1', 2);
create materialized view unfilled as select 1 with no data;
create index on long using hash (a);
create table \"new
line\" (a int);
create table \"\x1b[31mred\" (a int);
";

/// The first REINDEX has to wait for the prepared transaction, so it fails with a lock timeout and
/// leaves empty indexes behind. The second REINDEX skips these indexes.
const REINDEXED: &str = "
create table reindexed (a int primary key, t text);
alter table reindexed alter t set storage external;
insert into reindexed select i, repeat('x', 5000) from generate_series(1, 20) i;
begin;
insert into reindexed values (21, repeat('y', 5000));
prepare transaction 'writer';
set lock_timeout = '10ms';
reindex table concurrently reindexed;
reset lock_timeout;
commit prepared 'writer';
reindex table concurrently reindexed;
";

/// Runs a command that must succeed without messages, and returns its standard output.
fn good(stopped: &Stopped, args: &[&str]) -> String {
    let (code, out, err) = run(&stopped.data(), args);
    assert_eq!((code, err.as_str()), (0, ""), "{args:?}: {out}");
    out
}

fn file(stopped: &Stopped, name: &str) -> PathBuf {
    let listed = good(stopped, &["tables", "-d", "odd", "--json"]);
    let listed: Value = serde_json::from_str(&listed).expect("JSON");
    let relations = listed["relations"].as_array().expect("a list");
    let found = relations.iter().find(|relation| relation["name"] == name).expect("listed");
    stopped.data().join(found["file"].as_str().expect("a file"))
}

#[test]
fn odd_things_in_a_database() {
    for bin in servers() {
        let mut server = Server::start(&bin, &[]);
        server.sql("postgres", "create database odd");
        server.sql("postgres", "alter database odd set timezone = 'America/New_York'");
        let latin = "create database latin template template0 encoding 'LATIN1'";
        server.sql("postgres", latin);
        crash_with_a_temporary_table(&mut server);
        server.script("odd", OBJECTS, false);
        server.script("odd", REINDEXED, true);
        server.sql("latin", r#"create table U&"t\00e4" (a int); create table "t\xE4" (a int)"#);
        server.sql("latin", r#"insert into U&"t\00e4" values (7)"#);
        // In LATIN1, this name has the bytes that ä has in UTF-8.
        server.sql("latin", r#"create schema U&"\00c3\00a4""#);
        server.sql("latin", r#"create table U&"\00c3\00a4".U&"\00c3\00a4" as select 8"#);
        server.sql(
            "postgres",
            "create database kanji template template0 encoding 'EUC_JP' locale 'C'",
        );
        let kanji = "set client_encoding = 'UTF8'; create schema 図; create table 図.日本 (列 int, a int); \
                     insert into 図.日本 values (1, 2)";
        server.script("kanji", kanji, false);
        server.restart();
        let tables = [
            "public.kinds",
            "public.reindexed",
            "pg_catalog.pg_attribute",
            "pg_catalog.pg_statistic",
        ];
        let printed = tables.map(|table| {
            let zone = "set timezone = 'America/New_York'";
            let copy = format!("copy (select ctid, * from {table}) to stdout");
            server.sql("odd", &format!("{zone}; {copy}"))
        });
        let inherited = server.sql("odd", "copy parent to stdout");
        server.script("odd", "begin; insert into long values (2); prepare transaction 'p'", false);
        let prepared = server.sql("odd", "select transaction from pg_prepared_xacts");
        let prepared = String::from_utf8(prepared).expect("text");
        let stopped = server.stop();
        for (table, expected) in tables.iter().zip(printed) {
            let found = good(&stopped, &["copy", "--ctid", "-d", "odd", table]);
            assert_eq!(found, String::from_utf8(expected).expect("text"), "{table}");
        }
        // As COPY, without the rows of the children.
        assert_eq!(good(&stopped, &["copy", "odd.public.parent"]).into_bytes(), inherited);
        indexes_left_over(&stopped);
        names_with_a_database(&stopped);
        partitions_elsewhere(&stopped);
        names_with_anything(&stopped);
        what_is_not_there(&stopped, prepared.trim());
        settings(&stopped);
        cut_and_closed(&stopped);
        may_not_be_read(&stopped);
    }
}

/// A session was killed, so its temporary table is still there, as a child of a permanent table.
fn crash_with_a_temporary_table(server: &mut Server) {
    let parent = "create table parent as select 1 as a; create table child () inherits (parent)";
    server.sql("odd", parent);
    server.sql("odd", "insert into child values (2)");
    let mut crash = server.psql("odd");
    crash.args(["-c", "create temp table lost () inherits (parent)"]);
    crash.args(["-c", "insert into lost values (3)"]);
    crash.args(["-c", "copy (select) to program 'kill -9 $PPID'"]);
    assert!(!crash.output().expect("runs").status.success());
    server.crash();
}

/// Invalid indexes of a table and of its TOAST table.
fn indexes_left_over(stopped: &Stopped) {
    let (code, out, err) = run(&stopped.data(), &["verify", "--deep", "odd.public.reindexed"]);
    assert!(code == 0 && out.contains("Visible rows:                    84\n"), "{out}{err}");
    let left = "_ccnew is not checked: it is not valid\n";
    assert_eq!((err.matches(left).count(), err.lines().count()), (2, 2), "{err}");
}

/// `database.schema.name` is accepted wherever a name is.
fn names_with_a_database(stopped: &Stopped) {
    let verified = good(stopped, &["verify", "--deep", "odd.public.added"]);
    assert!(verified.contains("Visible rows:                    500\n"), "{verified}");
    for name in ["odd.public.added", "odd.public.\"added\""] {
        let warmed = good(stopped, &["prewarm", name]);
        assert!(warmed.starts_with("Relation forks:   1\n"), "{warmed}");
    }
    let both = good(stopped, &["prewarm", "odd.public.added", "postgres.pg_catalog.pg_class"]);
    assert!(both.starts_with("Relation forks:   2\n"), "{both}");
    let sum = good(stopped, &["sum", "odd.public.added", "--offset", "0"]);
    assert!(sum.starts_with("Sum:      125250\n"), "{sum}");
    let row = good(stopped, &["inspect", "tuple", "odd.public.long", "0,1"]);
    assert!(row.contains("public.long"), "{row}");
    good(stopped, &["inspect", "btree", "odd.public.added_a_idx"]);
    for args in [
        &["verify", "public.added"][..],
        &["copy", "public.added"],
        &["inspect", "tuple", "public.added", "0,1"],
        &["inspect", "btree", "added_a_idx"],
        &["inspect", "toast", "long", "1"],
    ] {
        let (code, _, err) = run(&stopped.data(), args);
        let expected = "trunkline: error: no database given\n\
                        trunkline: hint: use -d DATABASE or DATABASE.SCHEMA.TABLE, or set \
                        PGDATABASE\n";
        assert_eq!((code, err.as_str()), (2, expected), "{args:?}");
    }
    let (code, _, err) = run(&stopped.data(), &["verify", "odd.public.added", "latin.public.t"]);
    assert!(code == 2 && err.contains("latin.public.t is not in database \"odd\""));
}

/// A foreign partition, and a partitioned table without partitions.
fn partitions_elsewhere(stopped: &Stopped) {
    let foreign = "public.pf2 is a foreign table: its rows are on another server";
    let note = format!("trunkline: note: {foreign}; skipped\n");
    for args in [
        &["verify", "--deep", "odd.public.pf"][..],
        &["prewarm", "odd.public.pf"],
        &["sum", "odd.public.pf", "--offset", "0"],
    ] {
        let (code, out, err) = run(&stopped.data(), args);
        assert_eq!((code, err.as_str()), (0, note.as_str()), "{args:?}: {out}");
    }
    let copy = ["copy", "-d", "odd", "pf"];
    let (code, out, err) = run(&stopped.data(), &copy);
    assert_eq!((code, out.as_str()), (2, ""));
    let expected = format!(
        "trunkline: error: {foreign}\n\
         trunkline: hint: use --keep-going to skip it and copy the others, or "
    );
    assert!(err.starts_with(&expected), "{err}");
    let (code, out, err) = run(&stopped.data(), &[&copy[..], &["--keep-going"]].concat());
    assert_eq!((code, out.as_str()), (1, "0\n1\n2\n3\n4\n5\n6\n7\n8\n9\n"));
    assert_eq!(err, format!("trunkline: warning: {foreign}; skipped\n"));

    for command in ["verify", "prewarm"] {
        for args in [&[command, "-d", "odd", "empty"][..], &[command, "odd.public.empty"]] {
            let (code, out, err) = run(&stopped.data(), args);
            let expected = "trunkline: note: public.empty has no partitions\n";
            assert_eq!((code, err.as_str()), (0, expected), "{args:?}: {out}");
            let counted = out.contains("Blocks scanned:                  0\n")
                || out.contains("Relation forks:   0\n");
            assert!(counted, "{args:?}: {out}");
        }
    }
    let (code, out, _) = run(&stopped.data(), &["verify", "--deep", "odd.public.empty"]);
    assert!(code == 0 && out.contains("Tables:                          0\n"), "{out}");
    assert_eq!(good(stopped, &["copy", "odd.public.empty"]), "");

    let home = tempfile::tempdir().expect("a directory");
    let all = home.path().join("all").display().to_string();
    let (code, _, err) = run(&stopped.data(), &["copy", "-d", "odd", "--all", "-o", &all]);
    assert!(code == 1 && err.contains(&note), "{code}: {err}");
    let hint = "to copy the other columns: copy 'public.own' --columns '\"I d\",n'\n";
    assert!(err.contains("column \"e\" of relation public.own cannot be printed"), "{err}");
    assert!(err.contains(hint), "{err}");
    let alone = ["copy", "odd.public.own", "--columns", "\"I d\",n"];
    assert_eq!(good(stopped, &alone), "1\t2\n");

    // The number of bytes read includes TOAST.
    let one = home.path().join("one").display().to_string();
    let long = ["copy", "odd.public.long", "-o", &one];
    let text = good(stopped, &long);
    fs::remove_file(&one).expect("removed");
    let counts = good(stopped, &[&long[..], &["--json"]].concat());
    let counts: Value = serde_json::from_str(&counts).expect("JSON");
    let toast = counts["toast_streams"]["pages"].as_u64().expect("counted");
    assert!(counts["blocks"] == 1 && toast >= 2, "{counts}");
    let read = format!("\n{}.0 KiB of tables and TOAST read, ", 8 * (1 + toast));
    assert!(text.contains(&read), "{text}");
}

fn names_with_anything(stopped: &Stopped) {
    let listed = good(stopped, &["tables", "-d", "odd"]);
    assert!(listed.contains("public  new\\nline  ") && !listed.contains('\x1b'), "{listed}");
    let (_, _, err) = run(&stopped.data(), &["copy", "odd.public.\x1b[31m"]);
    assert!(err.contains("\\u{1b}[31m") && !err.contains('\x1b'), "{err}");
    let listed = good(stopped, &["tables", "-d", "latin", "--json"]);
    let listed: Value = serde_json::from_str(&listed).expect("JSON");
    let names: Vec<&Value> = listed["relations"].as_array().expect("a list").iter().collect();
    let names: Vec<&Value> = names.into_iter().map(|relation| &relation["name"]).collect();
    assert_eq!(names, ["t\\xE4", "tä", "Ã¤"]);
    // Names can be typed as they are shown.
    assert_eq!(good(stopped, &["copy", "-d", "latin", "tä"]), "7\n");
    // A name or a pattern that no name matches may be what is stored.
    assert_eq!(good(stopped, &["copy", "-d", "latin", "ä.ä"]), "8\n");
    for pattern in [&["-t", "ä*.ä"][..], &["-n", "ä"], &["--all", "-N", "ä"]] {
        let home = tempfile::tempdir().expect("a directory");
        let out = home.path().join("out").display().to_string();
        let copied = good(stopped, &[&["copy", "-d", "latin", "-o", &out], pattern].concat());
        let expected = if pattern.len() == 3 { "Files written: 2\n" } else { "Files written: 1\n" };
        assert!(copied.contains(expected), "{pattern:?}: {copied}");
    }
    let listed = good(stopped, &["tables", "-d", "kanji"]);
    let is_table = |line: &str| line.starts_with("図 ") && line.contains(" 日本 ");
    assert!(listed.lines().any(is_table), "{listed}");
    assert_eq!(good(stopped, &["copy", "kanji.図.日本", "--columns", "a,列"]), "2\t1\n");
    good(stopped, &["verify", "--deep", "kanji.図.日本"]);
    good(stopped, &["inspect", "tuple", "kanji.図.日本", "0,1"]);
    for pattern in [&["-t", "図.*"][..], &["-t", "*.日?"], &["-n", "?"]] {
        let home = tempfile::tempdir().expect("a directory");
        let out = home.path().join("out").display().to_string();
        let copied = good(stopped, &[&["copy", "-d", "kanji", "-o", &out], pattern].concat());
        assert!(copied.contains("Files written: 1\n"), "{pattern:?}: {copied}");
    }
    let (code, _, err) = run(&stopped.data(), &["copy", "kanji.図.日本語"]);
    assert!(code == 2 && err.contains("does not exist in database \"kanji\"\n"), "{err}");
}

/// Transaction ids that haven't been assigned yet, and missing TOAST values.
fn what_is_not_there(stopped: &Stopped, prepared: &str) {
    let (code, out, err) = run(&stopped.data(), &["inspect", "clog", prepared]);
    assert_eq!((code, err.as_str()), (0, ""), "{out}");
    assert!(out.contains("  prepared  "), "{out}");
    let (code, out, err) = run(&stopped.data(), &["inspect", "clog", "3", "999999999"]);
    let expected = "trunkline: error: transaction 999999999 does not exist yet; the next one is ";
    assert!(code == 1 && err.starts_with(expected), "{err}");
    assert!(out.contains("committed") && !out.contains("999999999"), "{out}");
    let (code, out, err) = run(&stopped.data(), &["inspect", "toast", "odd.public.long", "5"]);
    assert_eq!((code, out.as_str()), (1, ""));
    let expected = "trunkline: error: the TOAST table of public.long has no chunks of value 5\n";
    assert!(err.starts_with(expected), "{err}");
    for (args, expected) in [
        (&["copy", "odd.public.unfilled"][..], "public.unfilled has not been populated"),
        (&["copy", "odd.public.added", "--columns", "a,"], "invalid column name: \"\"\n"),
        (
            &["inspect", "btree", "odd.public.pt_pkey"],
            "public.pt_pkey is not a B-tree index\ntrunkline: hint: each partition has one of its own\n",
        ),
        (
            &["inspect", "btree", "odd.public.long_a_idx"],
            "public.long_a_idx is not a B-tree index: its access method is \"hash\"\n",
        ),
    ] {
        let (code, out, err) = run(&stopped.data(), args);
        assert_eq!((code, out.as_str()), (2, ""), "{args:?}: {err}");
        assert!(err.contains(expected), "{args:?}: {err}");
    }
}

/// Settings with `-c`, and statistics of type money that depend on a locale.
fn settings(stopped: &Stopped) {
    let table = ["copy", "-d", "odd", "added", "--columns", "t"];
    let first = |args: &[&str]| {
        let out = good(stopped, &[&table[..], args].concat());
        out.lines().next().expect("a row").to_owned()
    };
    assert_eq!(first(&[]), "2019-12-31 19:00:00-05");
    assert_eq!(first(&["-c", "TimeZone=Asia/Kolkata"]), "2020-01-01 05:30:00+05:30");
    let both = ["-c", "timezone=Asia/Kolkata", "--timezone", "UTC"];
    assert_eq!(first(&both), "2020-01-01 00:00:00+00");
    let (code, _, err) = run(&stopped.data(), &["tables", "-c", "TimeZone=UTC"]);
    assert!(code == 2 && err.contains("parameter \"timezone\" has no effect"), "{err}");
    let (code, _, err) = run(&stopped.data(), &["copy", "-c", "work_mem=1", "-d", "odd", "added"]);
    assert!(code == 2 && err.contains("unrecognized configuration parameter \"work_mem\""));

    let configuration = stopped.data().join("postgresql.conf");
    let before = fs::read_to_string(&configuration).expect("read");
    for (setting, expected) in [
        (
            "lc_monetary = 'de_DE.UTF-8'",
            "type money is not supported with lc_monetary \"de_DE.UTF-8\"",
        ),
        ("datestyle = 'German'", "invalid value for parameter \"DateStyle\": \"German\""),
    ] {
        fs::write(&configuration, format!("{before}{setting}\n")).expect("written");
        for catalog in ["pg_attribute", "pg_statistic"] {
            let (code, out, err) = run(&stopped.data(), &["copy", "-d", "odd", catalog]);
            assert_eq!((code, out.as_str()), (2, ""), "{catalog} with {setting}: {err}");
            assert!(err.contains(expected), "{catalog} with {setting}: {err}");
        }
    }
    // Without values of type money, its locale does not matter.
    fs::write(&configuration, format!("{before}lc_monetary = 'de_DE'\n")).expect("written");
    good(stopped, &["copy", "-d", "postgres", "pg_statistic"]);
    good(stopped, &["copy", "-d", "odd", "pg_statistic", "-c", "lc_monetary=C"]);
    fs::write(&configuration, before).expect("written");
}

/// A file that ends with an incomplete page, and a closed standard output.
fn cut_and_closed(stopped: &Stopped) {
    let path = file(stopped, "cut");
    let whole = good(stopped, &["copy", "-d", "odd", "cut"]);
    let opened = fs::OpenOptions::new().write(true).open(&path).expect("opened");
    opened.set_len(8192 + 5000).expect("cut");
    let (code, out, err) = run(&stopped.data(), &["copy", "-d", "odd", "cut"]);
    let expected = format!("\"{}\" has 13192 bytes: the last page is incomplete", path.display());
    assert!(code == 1 && err.contains(&expected), "{code}: {err}");
    assert!(whole.starts_with(&out) && out.lines().count() > 100, "{out}");

    for (to, closed) in [(">&-", true), (">/dev/null", false)] {
        let mut shell = Command::new("sh");
        shell.arg("-c").arg(format!("exec \"$@\" {to}")).arg("sh");
        shell.arg(env!("CARGO_BIN_EXE_trunkline")).args(["copy", "odd.public.long", "-D"]);
        let output = shell.arg(stopped.data()).output().expect("runs");
        let err = String::from_utf8(output.stderr).expect("text");
        let expected = "trunkline: warning: standard output is closed or discarded; ";
        assert_eq!(err.starts_with(expected), closed, "{to}: {err}");
    }
}

/// A valid file that the current user may not read.
fn may_not_be_read(stopped: &Stopped) {
    fs::set_permissions(file(stopped, "long"), Permissions::from_mode(0o000)).expect("taken away");
    // Root may read any file, so run as the server's user.
    let owner = fs::metadata(stopped.data()).expect("there").uid();
    let program = stopped.data().with_file_name("trunkline");
    // We copy the program in a child process. If we copied it in this process, another test might
    // fork while we have the copy open for writing. The forked process would inherit the open file,
    // and executing the program would fail with ETXTBSY.
    let copied = Command::new("cp").arg(env!("CARGO_BIN_EXE_trunkline")).arg(&program).status();
    assert!(copied.expect("cp runs").success(), "the program is copied");
    let mut command = Command::new(&program);
    if rustix::process::geteuid().is_root() {
        command.uid(owner);
    }
    let command = command.env_remove("PGDATA").env_remove("PGDATABASE").args([
        "copy",
        "odd.public.long",
        "-D",
    ]);
    let output = command.arg(stopped.data()).current_dir("/").output().expect("runs");
    let err = String::from_utf8(output.stderr).expect("text");
    assert_eq!((output.status.code(), output.stdout.len()), (Some(3), 0), "{err}");
    let hint = "trunkline: hint: run as the user that owns the data directory\n";
    assert!(err.contains("Permission denied") && err.ends_with(hint), "{err}");
}

/// Transactions since the last checkpoint, which a crashed cluster's control file doesn't include.
#[test]
fn transactions_before_a_crash_are_found() {
    for bin in servers() {
        let server = Server::start(&bin, &[]);
        let xid = server.sql("postgres", "select pg_current_xact_id()");
        let stopped = server.stop_at_once();
        let xid = String::from_utf8(xid).expect("text");
        let (code, out, err) =
            run(&stopped.data(), &["inspect", "clog", xid.trim(), "--force-unclean"]);
        assert!(code == 0 && out.contains(xid.trim()), "{out}{err}");
    }
}

/// A tablespace directory that was moved, leaving a dangling link.
#[test]
fn a_dangling_tablespace_link_is_reported_with_a_hint() {
    for bin in servers() {
        let server = Server::start(&bin, &[]);
        let [old, new] = ["space", "moved"].map(|name| server.home().join(name));
        server.make_directory(&old);
        let space = format!("create tablespace space location '{}'", old.display());
        server.sql("postgres", &space);
        server.sql("postgres", "create table t tablespace space as select 1 a");
        server.sql("postgres", "create database inside tablespace space");
        let stopped = server.stop();
        fs::rename(&old, &new).expect("moved");
        let hint =
            format!("hint: use -T {}=NEWDIR if the tablespace has been moved\n", old.display());
        for args in [
            &["copy", "-d", "postgres", "t"][..],
            &["copy", "-d", "inside", "pg_class"],
            &["tables", "-d", "inside"],
            &["prewarm", "-d", "postgres", "t"],
            &["inspect", "page", "-d", "postgres", "t"],
            &["inspect", "page", "-d", "postgres", "t", "--fork", "vm"],
            &["inspect", "tuple", "-d", "postgres", "t", "0,1"],
            &["verify", "-d", "postgres", "t"],
            &["verify"],
        ] {
            let (code, out, err) = run(&stopped.data(), args);
            assert!(code == 1 || code == 3, "{args:?}: {code} {out}{err}");
            // Nothing is wrong with the table.
            assert!(code == 3 || args[0] != "inspect", "{args:?}: {code} {out}{err}");
            assert!(err.contains(&hint), "{args:?}: {out}{err}");
        }
        let (_, out, _) = run(&stopped.data(), &["verify"]);
        let expected =
            format!(": points to \"{}\", which does not exist; skipped\n", old.display());
        assert!(out.contains(&expected), "{out}");
        let mapping = format!("{}={}", old.display(), new.display());
        assert_eq!(good(&stopped, &["copy", "-d", "postgres", "t", "-T", &mapping]), "1\n");
    }
}
