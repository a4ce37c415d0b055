//! Copies that a server loads again: what comes back must be what was there.
//!
//! The installed PostgreSQL 15 does the loading. Other tests compare the text with that of `COPY`,
//! which would not notice an error that both have in common.

use std::path::PathBuf;
use std::process::{Command, Output};

use crate::server::{Server, Stopped, servers};

/// Values with every character of one byte, and with what could be taken for a delimiter, a null
/// string, an escape, a quote, or the end of a line or of the data.
const OBJECTS: &str = r#"
create table v (i int, "d-x" date, t text, f float8, b bytea, a text[]);
insert into v values (1, '2024-02-29', E'a-b|c;d,e\\\tE"q"', -1.5e-10, '\x5c', '{1,-2}'),
    (null, null, '', 'Infinity', null, null), (-17, '0044-03-15 BC', 'NULL', 'nan', '', '{}'),
    (17, null, E'\\.', 1e20, null, '{NULL}'), (170, null, E'\\N\b\x01', 0, '\x0a0d', null),
    (171, null, ' both ends ', null, null, array['a,b', 'c"d', E'e\\f', '', ' ', E'\n']),
    (172, null, '17', null, null, null), (173, null, E'a\r\nb\rc\nd', null, null, null),
    (174, null, '-', null, null, null), (175, null, 'zß水𝄞', null, null, array['ß'])
    ;
insert into v (t) select chr(n) from generate_series(1, 127) n;
insert into v (i, t) select n, 'a' || chr(n) || 'b' || E'\\' || chr(n) from generate_series(1, 127) n;
create table one (t text);
insert into one values (E'\\.'), (''), (null), ('x'), ('-'), ('17'), ('NULL');
insert into one select chr(n) from generate_series(1, 127) n;
"#;

/// Options of the server, and ours. In the text format, a value that equals the null string is read
/// back as null, so these null strings do not occur among the values.
const CASES: [(&str, &[&str]); 11] = [
    ("format text", &[]),
    ("delimiter '-'", &["--delimiter", "-"]),
    ("delimiter '|', null 'n/a'", &["--delimiter", "|", "--null", "n/a"]),
    ("delimiter ' ', null '<17>'", &["--delimiter", " ", "--null", "<17>"]),
    ("delimiter 'I', header", &["--delimiter", "I", "--header"]),
    ("delimiter E'\\x01'", &["--delimiter", "\u{1}"]),
    ("delimiter E'\\b', null 'none'", &["--delimiter", "\u{8}", "--null", "none"]),
    ("format csv, delimiter '-', header", &["--format", "csv", "--delimiter", "-", "--header"]),
    ("format csv, null 'NULL'", &["--format", "csv", "--null", "NULL"]),
    ("format csv, null '17'", &["--format", "csv", "--null", "17"]),
    ("format csv, delimiter E'\\t', null '-'", &["--format=csv", "--delimiter=\t", "--null=-"]),
];

const TABLES: [&str; 2] = ["v", "one"];

/// PostgreSQL 15, the first of the installed servers.
fn server() -> Option<PathBuf> {
    servers().into_iter().next()
}

fn copy(stopped: &Stopped, args: &[&str]) -> Output {
    let mut command = Command::new(env!("CARGO_BIN_EXE_trunkline"));
    command.env_remove("PGDATA").env_remove("PGDATABASE").current_dir("/");
    command.args(["copy", "-d", "postgres", "-D"]).arg(stopped.data()).args(args);
    let output = command.output().expect("runs");
    let text = String::from_utf8_lossy(&output.stderr);
    assert_eq!((output.status.code(), &*text), (Some(0), ""), "{args:?}");
    output
}

/// The rows of a table, in a form in which different values differ.
fn contents(server: &Server, table: &str) -> String {
    let sql = format!("select row_to_json(line) from {table} line order by line::text");
    String::from_utf8(server.sql("postgres", &sql)).expect("text")
}

#[test]
fn values_come_back_in_every_format() {
    let Some(bin) = server() else { return };
    let server = Server::start(&bin, &[]);
    server.script("postgres", OBJECTS, false);
    let expected = TABLES.map(|table| contents(&server, table));
    assert_eq!(expected.each_ref().map(|text| text.lines().count()), [264, 134]);
    let stopped = server.stop();
    let target = Server::start(&bin, &[]);
    target.script("postgres", OBJECTS, false);
    let home = tempfile::tempdir().expect("a directory");
    let file = home.path().join("rows").to_string_lossy().into_owned();
    for (options, args) in CASES {
        for (table, expected) in TABLES.iter().zip(&expected) {
            let name = format!("public.{table}");
            let rows = copy(&stopped, &[&[name.as_str()], args].concat()).stdout;
            std::fs::write(&file, rows).expect("written");
            let load = format!("truncate {table};\n\\copy {table} from '{file}' ({options})\n");
            target.script("postgres", &load, false);
            assert_eq!(contents(&target, table), *expected, "{table} {options}");
        }
    }
}

/// Rows that were deleted by mistake, while VACUUM has not removed them.
#[test]
fn deleted_rows_are_loaded_again() {
    let Some(bin) = server() else { return };
    let objects = "create table t (id int, v text, g int generated always as (id + 1) stored);
        insert into t select i, repeat(md5(i::text), 100) from generate_series(1, 100) i;";
    let server = Server::start(&bin, &[]);
    server.script("postgres", objects, false);
    let before =
        server.sql("postgres", "copy (select * from t where id <= 60 order by id) to stdout");
    server.script("postgres", "delete from t where id <= 60;", false);
    // This row was never committed, so it is not among the deleted ones.
    server.script("postgres", "begin; insert into t values (1000, 'x'); rollback;", false);
    let stopped = server.stop();
    let home = tempfile::tempdir().expect("a directory");
    let file = home.path().join("rescued").to_string_lossy().into_owned();
    copy(&stopped, &["public.t", "--rows", "dead", "--no-state", "-o", &file]);
    let target = Server::start(&bin, &[]);
    target.script("postgres", objects, false);
    target.script("postgres", &format!("truncate t;\n\\copy t from '{file}'\n"), false);
    let found = target.sql("postgres", "copy (select * from t order by id) to stdout");
    assert_eq!(String::from_utf8_lossy(&found), String::from_utf8_lossy(&before));
}
