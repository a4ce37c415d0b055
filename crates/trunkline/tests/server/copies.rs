//! `copy` with database settings, generated columns, encodings, materialized views that were never
//! refreshed, and rows whose TOAST values were vacuumed.

use std::fs;
use std::process::{Command, Output};

use trunkline_format::page_checksum;

use crate::server::{Server, Stopped, servers};

const OBJECTS: &str = "
create table gen (a int, b int generated always as (a * 2) stored, c text);
insert into gen values (1, default, 'x');
create table times (t timestamptz, b bytea, i interval, f float8);
insert into times values ('2020-01-01 00:00:00+00', '\\x00ff', '1 day', 0.1);
create materialized view unfilled as select 1 as one with no data;
create table long (id int, v text);
alter table long alter v set storage external;
insert into long select i, repeat(md5(i::text), 200) from generate_series(1, 3) i;
delete from long where id = 2;
create table comma (id int, \"a,b\" int);
insert into comma values (1, 2);
";

/// The server's output for a table, in a session with default settings.
fn printed(server: &Server, database: &str, sql: &str) -> Vec<u8> {
    let mut psql = server.psql(database);
    let output = psql.env_remove("PGOPTIONS").env_remove("PGTZ").args(["-c", sql]).output();
    let output = output.expect("runs");
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    output.stdout
}

fn copy(stopped: &Stopped, database: &str, args: &[&str]) -> Output {
    let mut command = Command::new(env!("CARGO_BIN_EXE_trunkline"));
    command
        .env_remove("PGDATA")
        .env_remove("PGDATABASE")
        .current_dir("/")
        .args(["copy", "-d", database, "-D"]);
    command.arg(stopped.data()).args(args).output().expect("runs")
}

/// Exit code and standard error.
fn said(output: &Output) -> (Option<i32>, String) {
    (output.status.code(), String::from_utf8_lossy(&output.stderr).into_owned())
}

#[test]
fn what_a_session_of_the_database_prints() {
    for bin in servers() {
        let server = Server::start(&bin, &[]);
        server.sql("postgres", "create database d");
        server.sql("postgres", "create database latin encoding 'LATIN1' template template0");
        server.script("d", OBJECTS, false);
        let toast = "select reltoastrelid::regclass from pg_class where relname = 'long'";
        let toast = String::from_utf8(server.sql("d", toast)).expect("text");
        server.sql("d", &format!("vacuum {}", toast.trim()));
        for sql in [
            "alter role all set extra_float_digits = -10",
            "alter role all set timezone = 'America/Lima'",
            "alter database d set timezone = 'Asia/Tokyo'",
            "alter database d set bytea_output = 'escape'",
            "alter database d set intervalstyle = 'iso_8601'",
        ] {
            server.sql("postgres", sql);
        }
        let accents = "set client_encoding = 'UTF8'; create table t (\"cö\" int, \"ß\" text)";
        server.script("latin", accents, false);
        let expected = [
            (&["public.times"][..], printed(&server, "d", "copy times to stdout")),
            (&["public.gen"], printed(&server, "d", "copy gen to stdout")),
            (
                &["public.gen", "--ctid"],
                printed(&server, "d", "copy (select ctid, * from gen) to stdout"),
            ),
        ];
        let sql = "set client_encoding = 'LATIN1'; copy t to stdout (format csv, header)";
        let header = printed(&server, "latin", sql);
        let stopped = server.stop();
        for (args, expected) in expected {
            let output = copy(&stopped, "d", args);
            assert_eq!(said(&output), (Some(0), String::new()), "{args:?}");
            let text = String::from_utf8_lossy;
            assert_eq!(text(&output.stdout), text(&expected), "{args:?}");
        }
        let output = copy(&stopped, "latin", &["public.t", "--header", "--format", "csv"]);
        assert_eq!(output.stdout, header);
        // LATIN1 has no such character.
        let (code, text) = said(&copy(&stopped, "latin", &["public.t", "--columns", "日"]));
        let hint = "hint: type the name in UTF-8, or in the database's encoding, LATIN1";
        assert!(code == Some(2) && text.contains(hint), "{text}");
        // The name that could be converted is not the one that is wrong.
        for columns in ["cö,nosuch", "cö,cö"] {
            let (code, text) = said(&copy(&stopped, "latin", &["public.t", "--columns", columns]));
            assert!(code == Some(2) && !text.contains("type the name"), "{text}");
        }
        let (code, text) = said(&copy(&stopped, "d", &["public.unfilled"]));
        let refused = "materialized view public.unfilled has not been populated";
        assert!(code == Some(2) && text.contains(refused), "{code:?} {text}");
        let output = copy(&stopped, "d", &["public.long", "--rows", "all", "--columns", "v,id"]);
        let (code, text) = said(&output);
        assert!(code == Some(0) && text.contains("note: 1 values of row versions"), "{text}");
        let lines = String::from_utf8_lossy(&output.stdout);
        assert!(lines.contains("\tdead\t\\N\t2\n") && lines.lines().count() == 3, "{lines}");
        let output = copy(&stopped, "d", &["public.comma", "--columns", "\"a,b\",id"]);
        assert_eq!(output.stdout, b"2\t1\n");
        let home = tempfile::tempdir().expect("a directory");
        let path = home.path().join("all");
        let output = copy(&stopped, "d", &["--all", "-o", &path.to_string_lossy()]);
        let (code, text) = said(&output);
        assert!(code == Some(0) && text.contains(refused), "{code:?} {text}");
        assert!(!path.join("public.unfilled.copy").exists());
    }
}

/// Tables that `copy` refuses are reported one by one, counted, and make the copy incomplete.
#[test]
fn tables_that_cannot_be_copied_are_counted() {
    let objects = "
        create access method other type table handler heap_tableam_handler;
        create table a (i int) using other;
        create table b (i int) using other;
        create table c as select 1 as i;
        create materialized view unfilled as select 1 as one with no data;
        create foreign data wrapper wrapper;
        create server remote foreign data wrapper wrapper;
        create foreign table far (i int) server remote;
        create table parent (i int) partition by range (i);
        create table p1 partition of parent for values from (0) to (10) using other;
        create table p2 partition of parent for values from (10) to (20);
        insert into parent values (1), (11);
    ";
    for bin in servers() {
        let server = Server::start(&bin, &[]);
        server.script("postgres", objects, false);
        let stopped = server.stop();
        let home = tempfile::tempdir().expect("a directory");
        for (name, more) in [("out", &[][..]), ("kept", &["--keep-going"])] {
            let path = home.path().join(name).to_string_lossy().into_owned();
            let all = |json: &[&str]| {
                copy(&stopped, "postgres", &[&["--all", "-o", &path], more, json].concat())
            };
            let output = all(&["--json"]);
            let (code, text) = said(&output);
            let report = String::from_utf8_lossy(&output.stdout);
            for expected in ["\"complete\":false", "\"outputs\":2,", "\"left_out\":3,"] {
                assert!(report.contains(expected), "{report}");
            }
            assert_eq!(code, Some(1), "{text}");
            // These errors don't end the command, so they don't have its exit status.
            let errors = text.lines().filter(|line| line.starts_with("{\"kind\":\"error\","));
            assert_eq!(errors.clone().count(), 3, "{text}");
            assert!(errors.clone().all(|line| !line.contains("exit_status")), "{text}");
            // The files exist now, and the same tables are missing.
            let output = all(&[]);
            let report = String::from_utf8_lossy(&output.stdout);
            assert!(report.contains("Files kept:    2\n"), "{report}");
            assert!(report.contains("Left out:      3 tables\n"), "{report}");
            assert_eq!(said(&output).0, Some(1));
            let script = home.path().join(name).join("load.sql");
            let script = std::fs::read_to_string(script).expect("a script");
            let foreign = "-- Left out: public.far is a foreign table: ";
            assert!(script.contains(foreign), "{script}");
        }
        // A single table without its partition.
        let path = home.path().join("parent").to_string_lossy().into_owned();
        let args = ["public.parent", "--keep-going", "-o", &path, "--json"];
        let output = copy(&stopped, "postgres", &args);
        let report = String::from_utf8_lossy(&output.stdout);
        let missing = ["\"complete\":false", "\"incomplete\":1", "\"left_out\":1,"];
        for expected in missing.into_iter().chain(["\"outputs\":1,"]) {
            assert!(report.contains(expected), "{report}");
        }
        assert_eq!(said(&output).0, Some(1));
        // A file's name says whether all rows are in it.
        assert!(!home.path().join("parent").exists());
        assert!(home.path().join("parent.incomplete").exists());
    }
}

/// Delimiters and null strings that occur in values of all kinds, numbers included.
#[test]
fn delimiters_and_null_strings_are_those_of_the_server() {
    let objects = "
        create table v (i int, \"d-x\" date, t text, f float8, b bytea, a int[]);
        insert into v values (1, '2024-02-29', E'a-b|c;d,e\\\\\tE\"q\"', -1.5e-10, '\\x5c', '{1,-2}'),
            (null, null, '', 'Infinity', null, null), (-17, '0044-03-15 BC', 'NULL', 'nan', '', '{}'),
            (17, null, E'\\\\.', 1e20, null, '{NULL}'), (170, null, E'\\\\N\\b\\x01', 0, null, null);
        create table one (t text);
        insert into one values (E'\\\\.'), (''), (null), ('x'), ('-');
    ";
    // Options of the server, and ours.
    let cases: [(&str, &[&str]); 10] = [
        ("delimiter '-'", &["--delimiter", "-"]),
        ("delimiter '|', null ''", &["--delimiter", "|", "--null", ""]),
        ("delimiter ' ', null '17'", &["--delimiter", " ", "--null", "17"]),
        ("delimiter 'I', header", &["--delimiter", "I", "--header"]),
        ("delimiter E'\\x01'", &["--delimiter", "\u{1}"]),
        ("delimiter E'\\b', null 'x'", &["--delimiter", "\u{8}", "--null", "x"]),
        ("format csv, delimiter '-', header", &["--format", "csv", "--delimiter", "-", "--header"]),
        ("format csv, null 'NULL'", &["--format", "csv", "--null", "NULL"]),
        ("format csv, null '17'", &["--format", "csv", "--null", "17"]),
        ("format csv, delimiter E'\\t', null '-'", &["--format=csv", "--delimiter=\t", "--null=-"]),
    ];
    for bin in servers() {
        let server = Server::start(&bin, &[]);
        server.script("postgres", objects, false);
        let mut expected = Vec::new();
        for (options, args) in cases {
            for table in ["v", "one"] {
                let sql = format!("copy {table} to stdout ({options})");
                expected.push((table, args, printed(&server, "postgres", &sql)));
            }
            // With a ctid and its comma.
            let sql = format!("copy (select ctid, * from v) to stdout ({options})");
            expected.push(("v --ctid", args, printed(&server, "postgres", &sql)));
        }
        let stopped = server.stop();
        for (table, args, expected) in expected {
            let (name, ctid) =
                table.split_once(' ').map_or((table, &[][..]), |it| (it.0, &["--ctid"]));
            let name = format!("public.{name}");
            let output = copy(&stopped, "postgres", &[&[name.as_str()], ctid, args].concat());
            assert_eq!(said(&output), (Some(0), String::new()), "{args:?}");
            let text = String::from_utf8_lossy;
            assert_eq!(text(&output.stdout), text(&expected), "{name} {args:?}");
        }
        for (args, message) in [
            (["--delimiter", "ab"], "COPY delimiter must be a single one-byte character"),
            (["--delimiter", "x"], "COPY delimiter cannot be \"x\""),
            (["--null", "a\tb"], "COPY delimiter must not appear in the NULL specification"),
        ] {
            let (code, text) =
                said(&copy(&stopped, "postgres", &[&["public.v"][..], &args].concat()));
            assert!(code == Some(2) && text.contains(message), "{code:?} {text}");
        }
    }
}

/// Database settings, in `pg_db_role_setting`: TOASTed settings are read, and a damaged row is
/// reported, or skipped with `--keep-going`.
#[test]
fn settings_that_are_long_or_damaged() {
    for bin in servers() {
        let server = Server::start(&bin, &[]);
        server.script("postgres", OBJECTS, false);
        server.sql("postgres", "alter database postgres set timezone = 'Asia/Tokyo'");
        server.sql("postgres", "alter role all set bytea_output = 'escape'");
        // Random letters, which don't compress.
        let letters = "select string_agg(md5(i::text), '') from generate_series(1, 200) i";
        let letters = String::from_utf8(server.sql("postgres", letters)).expect("text");
        let long = format!("alter database postgres set my.letters = '{}'", letters.trim());
        server.sql("postgres", &long);
        let long = "select max(pg_column_size(setconfig)) > 2000 from pg_db_role_setting";
        assert_eq!(server.sql("postgres", long), b"t\n");
        let file = "checkpoint; select pg_relation_filepath('pg_db_role_setting')";
        let file = String::from_utf8(server.sql("postgres", file)).expect("text");
        let expected = printed(&server, "postgres", "copy times to stdout");
        let zone_only = "set bytea_output = 'hex'; copy times to stdout";
        let without = printed(&server, "postgres", zone_only);
        let stopped = server.stop();
        let output = copy(&stopped, "postgres", &["public.times"]);
        assert_eq!(said(&output), (Some(0), String::new()));
        assert_eq!(output.stdout, expected);
        let file = stopped.data().join(file.trim());
        let mut bytes = fs::read(&file).expect("read");
        let text = b"bytea_output=escape";
        let at = bytes.windows(text.len()).position(|it| it == text).expect("the setting");
        // Damage the length word of the text in the array.
        bytes[at - 4..at].fill(0xFC);
        let page = bytes.first_chunk_mut().expect("a page");
        let checksum = page_checksum(page, 0);
        page[8..10].copy_from_slice(&checksum.to_le_bytes());
        fs::write(&file, &bytes).expect("written");
        let (code, text) = said(&copy(&stopped, "postgres", &["public.times"]));
        let place = format!("\"{}\"", file.display());
        assert!(code == Some(1) && text.contains("block 0, line pointer "), "{code:?} {text}");
        assert!(text.contains(&place), "{text}");
        assert!(text.contains("hint: use --keep-going"), "{text}");
        let output = copy(&stopped, "postgres", &["public.times", "--keep-going"]);
        let (code, text) = said(&output);
        assert!(code == Some(1) && text.contains("warning: shared catalog: "), "{text}");
        assert!(text.contains(&place) && text.contains("setconfig"), "{text}");
        assert_eq!(output.stdout, without);
    }
}
