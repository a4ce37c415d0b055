//! Directories of servers that crashed, and base backups, read through their log. Every table must have
//! the rows that the server has after it has recovered, or had at that moment; and nothing may be
//! written.

use std::collections::BTreeSet;
use std::fs;
use std::io::Read;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use trunkline_aio::facade::random::Rng;

use crate::binary::run;
use crate::differential::seeds;
use crate::pages;
use crate::server::{Server, servers, succeed};
use crate::wal::random_changes;

/// Tables whose pages come from the log in every way there is.
pub(crate) const LOAD: &str = "
create table kept (id int primary key, t text, n numeric);
insert into kept select i, repeat('x', i % 500), i * 1.5 from generate_series(1, 5000) i;
create index on kept (t);
vacuum kept;
delete from kept where id % 7 = 0;
create table long (id int primary key, t text);
insert into long select i, (select string_agg(md5((i * j)::text), '') from generate_series(1, 200) j)
  from generate_series(1, 50) i;
create table gone (i int);
insert into gone select generate_series(1, 1000);
create table cut (i int, t text);
create index on cut (i);
insert into cut select i, md5(i::text) from generate_series(1, 20000) i;
vacuum cut;
create unlogged table mapped (i int primary key);
insert into mapped select generate_series(1, 100);
vacuum mapped;
-- Other than a checkpoint, this also writes the pages of unlogged tables, and their maps.
create database flushed strategy file_copy;
drop database flushed;
checkpoint;
begin;
insert into kept values (100001, 'one', 1);
savepoint s; insert into kept values (100002, 'two', 2); rollback to s;
savepoint t; insert into kept values (100003, 'three', 3); release t;
commit;
drop table gone;
delete from cut where i > 10000;
vacuum cut;
insert into cut select i, md5(i::text) from generate_series(30000, 33000) i;
create table emptied (i int);
insert into emptied select generate_series(1, 5000);
truncate emptied;
insert into emptied select generate_series(1, 10);
create table made (id serial primary key, t text, b bytea);
insert into made (t, b) select md5(i::text), decode(repeat(md5(i::text), 100), 'hex')
  from generate_series(1, 500) i;
create unlogged table unlogged (i int primary key);
insert into unlogged select generate_series(1, 100);
vacuum full kept;
update kept set t = t || 'y' where id < 500;
vacuum full pg_class;
create database other;
create schema s;
create table s.parent (i int, t text) partition by range (i);
create table s.child partition of s.parent for values from (0) to (100);
insert into s.parent select i, 'p' from generate_series(0, 99) i;
alter table made add column c int default 7;
update made set c = id where id % 2 = 0;
begin; insert into kept values (200001, 'in doubt', 1); update made set t = 'in doubt' where id < 10;
prepare transaction 'one';
begin; insert into kept values (200002, 'committed', 1); prepare transaction 'two';
commit prepared 'two';
begin; insert into kept values (200003, 'rolled back', 1); prepare transaction 'three';
rollback prepared 'three';
begin;
select * from kept where id between 10 and 40 for share;
savepoint s; select * from kept where id between 20 and 30 for update; release s;
update kept set n = n + 1 where id = 25;
commit;
";

/// Enough memory for the pages that the load changes, but not for the records of each.
const SPILLING: &str = "400kB";

/// Catalogs whose rows are compared too.
const CATALOGS: [&str; 4] = [
    "pg_catalog.pg_class",
    "pg_catalog.pg_attribute",
    "pg_catalog.pg_depend",
    "pg_catalog.pg_type",
];

/// A copy of a directory.
pub(crate) fn copy(from: &Path, to: &Path) {
    succeed(Command::new("cp").arg("-a").arg(from).arg(to));
}

/// Everything in a directory: names, times of change and contents.
pub(crate) fn fingerprint(root: &Path) -> Vec<(PathBuf, std::time::SystemTime, u64, u32)> {
    let (mut found, mut folders) = (Vec::new(), vec![root.to_owned()]);
    while let Some(folder) = folders.pop() {
        for entry in fs::read_dir(&folder).expect("read").map(|entry| entry.expect("an entry")) {
            let metadata = entry.metadata().expect("examined");
            let (path, changed) = (entry.path(), metadata.modified().expect("a time"));
            if metadata.is_dir() {
                folders.push(path.clone());
            }
            let mut bytes = Vec::new();
            if metadata.is_file() {
                fs::File::open(&path).expect("opened").read_to_end(&mut bytes).expect("read");
            }
            found.push((path, changed, metadata.len(), crc32c::crc32c(&bytes)));
        }
    }
    found.sort();
    found
}

fn sorted(bytes: &[u8]) -> Vec<&[u8]> {
    let mut lines: Vec<_> = bytes.split(|&byte| byte == b'\n').collect();
    lines.sort_unstable();
    lines
}

/// The tables of a database, and some catalogs.
fn tables(server: &Server, database: &str) -> Vec<String> {
    let query = "select quote_ident(nspname) || '.' || quote_ident(relname) from pg_class c \
                 join pg_namespace n on n.oid = relnamespace where relkind in ('r', 'm') \
                 and nspname not in ('pg_catalog', 'information_schema') order by 1";
    let names = String::from_utf8(server.sql(database, query)).expect("text");
    names.lines().chain(CATALOGS).map(str::to_owned).collect()
}

fn databases(server: &Server) -> Vec<String> {
    let query = "select datname from pg_database where datallowconn and datname <> 'template1'";
    let names = String::from_utf8(server.sql("postgres", query)).expect("text");
    names.lines().map(str::to_owned).collect()
}

/// Compares every table of every database.
fn compare(server: &Server, data: &Path, options: &[&str]) -> usize {
    let mut compared = 0;
    for database in databases(server) {
        for table in tables(server, &database) {
            let expected = server.sql(&database, &format!("copy {table} to stdout"));
            let arguments = [&["copy", "-d", &database, &table], options].concat();
            let (code, out, err) = run(data, &arguments);
            assert_eq!(code, 0, "{database}.{table}: {err}");
            let (expected, found) = (sorted(&expected), sorted(out.as_bytes()));
            let strange = |these: &[&[u8]], those: &[&[u8]]| {
                let those: BTreeSet<&[u8]> = those.iter().copied().collect();
                let line = these.iter().find(|line| !those.contains(*line));
                line.map(|line| String::from_utf8_lossy(line).into_owned())
            };
            assert!(
                expected == found,
                "{database}.{table}: {} rows, expected {}; server only {:?}, ours only {:?}",
                found.len(),
                expected.len(),
                strange(&expected, &found),
                strange(&found, &expected)
            );
            compared += 1;
        }
    }
    compared
}

#[test]
fn a_crashed_directory_is_read_as_the_server_recovers_it() {
    for bin in servers() {
        let seed = seeds().next().expect("one");
        println!("TRUNKLINE_SEED={seed} ({})", bin.display());
        // The launcher of logical replication would read catalogs after the recovery.
        let mut server = Server::start(
            &bin,
            &[
                ("checkpoint_timeout", "1h"),
                ("max_wal_size", "1GB"),
                ("max_logical_replication_workers", "0"),
                ("wal_writer_delay", "10s"),
            ],
        );
        server.script("postgres", LOAD, false);
        server.script("other", &random_changes(&mut Rng::new(seed)), false);
        // A transaction that is still running has changed rows, and its pages may be in the files.
        let mut open = server.psql("postgres");
        let changes = "begin; insert into kept select i, 'open', 0 from generate_series(300000, 301000) i; \
                       update cut set t = 'open' where i < 100; select pg_sleep(1000)";
        let mut open = open.args(["-c", changes]).stderr(Stdio::null()).spawn().expect("a client");
        let waits = "select count(*) from pg_stat_activity where wait_event = 'PgSleep'";
        while server.sql("postgres", waits) != b"1\n" {}
        // It makes the log durable up to here.
        server.sql("postgres", "insert into kept values (400000, 'last', 1)");
        // Pages of an index are written when it is built, and its records are not yet in the log.
        let mut builder = server.psql("postgres");
        let build = "begin; create table unfinished as select generate_series(1, 30000) i; \
                     create index on unfinished (i); select pg_sleep(1000)";
        let mut builder =
            builder.args(["-c", build]).stderr(Stdio::null()).spawn().expect("a client");
        while server.sql("postgres", waits) != b"2\n" {}
        server.halt("immediate");
        open.wait().expect("ended");
        builder.wait().expect("ended");
        let crashed = server.home().join("crashed");
        copy(&server.data(), &crashed);
        let before = fingerprint(&crashed);
        server.run();
        server.halt("fast");
        let scratch = server.home().join("scratch");
        fs::create_dir(&scratch).expect("made");
        let pages = pages::compare(&crashed, &server.data(), &scratch).expect("readable");
        println!("{}: {pages}", bin.display());
        assert!(pages.differences.is_empty(), "{pages}: {:#?}", pages.differences);
        assert!(pages.equal > 1000 && pages.not_replayed.is_empty(), "{pages}");
        server.run();
        let compared = compare(&server, &crashed, &[]);
        assert!(compared > 15, "{compared}");
        let (code, out, err) = run(&crashed, &["verify", "--deep"]);
        assert_eq!(code, 0, "{out}{err}");
        assert!(err.contains("note: replayed ") && err.contains("nothing was written"), "{err}");
        assert!(err.contains("1 prepared transaction has not ended; its changes"), "{err}");
        // With less memory than the list of changes needs, it goes to a scratch file.
        let spilling = ["--replay-memory", SPILLING, "--scratch", scratch.to_str().expect("text")];
        assert_eq!(compare(&server, &crashed, &spilling), compared);
        let verify = [&["verify", "--deep"], &spilling[..]].concat();
        let (code, out, err) = run(&crashed, &verify);
        assert_eq!(code, 0, "{out}{err}");
        assert!(err.contains("MB of scratch, for lack of --replay-memory"), "{err}");
        assert_eq!(fs::read_dir(&scratch).expect("read").count(), 0, "the file has no name");
        let nowhere = ["tables", "--list", "--replay-memory", SPILLING, "--scratch", "/nowhere"];
        let (code, _, err) = run(&crashed, &nowhere);
        assert_eq!(code, 2, "{err}");
        assert!(err.contains("could not use \"/nowhere\" for --scratch"), "{err}");
        // With less than the pages need, it is refused before anything is read.
        let (code, _, err) = run(&crashed, &["tables", "-d", "postgres", "--replay-memory", "1kB"]);
        assert_eq!(code, 3, "{err}");
        assert!(err.contains("of the 1024 bytes of --replay-memory"), "{err}");
        let (code, _, err) = run(&crashed, &["tables", "--list", "--until", "0/1"]);
        assert_eq!(code, 3, "{err}");
        assert!(err.contains("--until needs a base backup"), "{err}");
        let (code, _, err) = run(&crashed, &["tables", "--list", "--no-replay"]);
        assert_eq!(code, 0, "{err}");
        assert!(err.contains("the newest changes are missing"), "{err}");
        assert_eq!(fingerprint(&crashed), before, "the directory has changed");
        drop(server.stop());
    }
}

/// A backup that was made while tables changed, with its log in an archive.
#[test]
fn a_backup_with_its_archive_is_read_as_of_any_moment() {
    for bin in servers() {
        let settings =
            [("wal_level", "replica"), ("max_wal_senders", "1"), ("wal_keep_size", "1GB")];
        let server = Server::start(&bin, &settings);
        server.script("postgres", LOAD, false);
        let (home, backup) = (server.home().to_owned(), server.home().join("backup"));
        let label = home.join("label");
        let random = random_changes(&mut Rng::new(7));
        let (first, second) = random.split_at(random.find("insert").unwrap_or(0));
        let script = format!(
            "{first}\nselect pg_backup_start('test', true);\n\\! cp -a {}/base {}/half\n{second}\n\
             \\! cp -a {} {}\ninsert into kept values (500000, 'behind the copy', 1);\n\
             \\o {}\nselect labelfile from pg_backup_stop(false);\n\\o\n",
            server.data().display(),
            home.display(),
            server.data().display(),
            backup.display(),
            label.display(),
        );
        server.script("postgres", &script, true);
        // The files of different moments: the databases were copied before the rest.
        fs::remove_dir_all(backup.join("base")).expect("removed");
        fs::rename(home.join("half"), backup.join("base")).expect("moved");
        fs::write(backup.join("backup_label"), fs::read(&label).expect("a label"))
            .expect("written");
        // While the server of the original runs, its copy is no running cluster.
        let live = server.data().join("pg_wal").display().to_string();
        let (code, _, err) = run(&backup, &["tables", "--list", "--wal", &live]);
        assert_eq!(code, 0, "{err}");
        assert!(err.contains("warning: postmaster.pid is a copy: process"), "{err}");
        fs::remove_file(backup.join("postmaster.pid")).expect("removed");
        let sum = "select count(*), sum(id), sum(n) from kept";
        let mut moments = Vec::new();
        for (name, change) in [
            ("first", "delete from kept where id % 3 = 0"),
            (
                "second",
                "insert into kept select i, 'new', i from generate_series(600000, 603000) i",
            ),
            ("third", "update kept set t = 'changed'"),
        ] {
            server.sql("postgres", &format!("select pg_create_restore_point('{name}')"));
            moments.push((name, server.sql("postgres", "copy kept to stdout")));
            assert!(!server.sql("postgres", sum).is_empty());
            server.sql("postgres", change);
            server.sql("postgres", "select pg_switch_wal()");
        }
        // Behind the end of the backup the archive has only compressed files.
        let last = server.sql("postgres", "copy made to stdout");
        let stopped = server.stop();
        let archive = stopped.data().parent().expect("a home").join("archive");
        copy(&stopped.data().join("pg_wal"), &archive);
        fs::remove_dir_all(backup.join("pg_wal")).expect("removed");
        fs::create_dir(backup.join("pg_wal")).expect("made");
        let before = fingerprint(&backup);
        let wal = archive.display().to_string();
        let (code, _, err) = run(&backup, &["tables", "-d", "postgres"]);
        assert_eq!(code, 3, "{err}");
        assert!(err.contains("contains no log segments"), "{err}");
        let mut segments: Vec<PathBuf> = fs::read_dir(&archive)
            .expect("read")
            .map(|entry| entry.expect("an entry").path())
            .filter(|path| path.file_name().is_some_and(|name| name.len() == 24))
            .collect();
        segments.sort();
        for segment in segments.iter().step_by(2) {
            succeed(Command::new("gzip").arg(segment));
        }
        for (name, expected) in &moments {
            let until = format!("name:{name}");
            let arguments = ["copy", "-d", "postgres", "kept", "--wal", &wal, "--until", &until];
            let (code, out, err) = run(&backup, &arguments);
            assert_eq!(code, 0, "{name}: {err}");
            assert!(sorted(out.as_bytes()) == sorted(expected), "{name}: {err}");
        }
        let (code, out, err) = run(&backup, &["copy", "-d", "postgres", "made", "--wal", &wal]);
        assert_eq!(code, 0, "{err}");
        assert!(sorted(out.as_bytes()) == sorted(&last), "{err}");
        let (code, out, err) = run(&backup, &["verify", "--deep", "--wal", &wal]);
        assert_eq!(code, 0, "{out}{err}");
        missing(&backup, &wal, &segments);
        assert_eq!(fingerprint(&backup), before, "the directory has changed");
    }
}

/// What is missing is named, with what is there before and behind it.
fn missing(backup: &Path, wal: &str, segments: &[PathBuf]) {
    let check = |arguments: &[&str], expected: i32, parts: &[&str]| {
        let arguments = [&["tables", "-d", "postgres", "--wal", wal], arguments].concat();
        let (code, _, err) = run(backup, &arguments);
        assert_eq!(code, expected, "{arguments:?}: {err}");
        for part in parts {
            assert!(err.contains(part), "{arguments:?}: expected {part:?} in {err}");
        }
    };
    check(&["--until", "name:nowhere"], 3, &["without restore point \"nowhere\""]);
    check(&["--until", "0/1"], 3, &["before the files are consistent"]);
    // One of the last segments, which is behind the end of the backup. It isn't compressed.
    let plain: Vec<&PathBuf> = segments.iter().filter(|path| path.exists()).collect();
    let removed = plain[plain.len() - 2];
    let name = removed.file_name().and_then(|name| name.to_str()).expect("a name");
    let aside = removed.with_extension("aside");
    fs::rename(removed, &aside).expect("moved");
    check(&[], 3, &[&format!("there is no segment {name}"), "but the log goes on in", "--wal"]);
    check(&["--allow-incomplete"], 0, &["warning: the log ends at", name]);
    fs::rename(&aside, removed).expect("moved back");
}
