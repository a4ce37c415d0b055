//! CSV, JSON, files, statements from files, settings and notices.

use std::fs;
use std::io::Write;
use std::process::Stdio;

use crate::{check, data, query, run, said};

#[test]
fn csv_is_that_of_copy() {
    let sql = "select 1 as a, '' as \"b,c\", null as d, E'x\\ny\"' as e";
    check(&[sql, "--format", "csv"], "a,\"b,c\",d,e\n1,\"\",,\"x\ny\"\"\"\n");
    check(&[sql, "--format", "csv", "-t", "--null", "x"], "1,,x,\"x\ny\"\"\"\n");
    check(&["select 1 as a where false", "--format", "csv"], "a\n");
}

#[test]
fn json_has_the_values_of_to_json() {
    let sql = "select 1 as a, 1.50 as b, 'NaN'::float8 as c, true as d, null as e, \
               E'\"\\n' as f, '{1,null}'::int[] as g, '{\"x\":\n1}'::json as h, \
               '2020-01-02 03:04'::timestamp as i, '\\x00'::bytea as j";
    let row = "{\"a\":1,\"b\":1.50,\"c\":\"NaN\",\"d\":true,\"e\":null,\"f\":\"\\\"\\n\",\
               \"g\":[1,null],\"h\":{\"x\": 1},\"i\":\"2020-01-02T03:04:00\",\"j\":\"\\\\x00\"}";
    check(&[sql, "--format", "ndjson"], &format!("{row}\n"));
    check(&[sql, "--json"], &format!("{row}\n"));
    check(&[sql, "--format", "json"], &format!("[\n{row}\n]\n"));
    let two = "select x from generate_series(1, 2) x";
    check(&[two, "--format", "json"], "[\n{\"x\":1},\n{\"x\":2}\n]\n");
    check(&["select 1 as a where false", "--format", "json"], "[]\n");
    check(&["select 1 as a where false", "--format", "ndjson"], "");
    // Tags are not JSON.
    check(&["begin; select 1 as a; commit", "--format", "ndjson"], "{\"a\":1}\n");
}

#[test]
fn lines_of_copy_are_printed_as_they_are() {
    let sql = "copy (select 1, null) to stdout";
    for format in ["aligned", "csv", "json"] {
        check(&[sql, "--format", format], "1\t\\N\n");
    }
}

#[test]
fn a_file_gets_its_name_when_it_is_complete() {
    let home = tempfile::tempdir().expect("a directory");
    let path = home.path().join("rows.csv");
    let name = path.to_str().expect("UTF-8");
    let names = || fs::read_dir(home.path()).expect("a directory").count();
    let failing = "select 1 as a; select 1/0";
    let Some((code, ..)) = run(&[failing, "--format", "csv", "-o", name]) else { return };
    assert_eq!((code, names()), (1, 0));
    check(&["select 1 as a", "--format", "csv", "-o", name], "");
    assert_eq!(fs::read(&path).expect("read"), b"a\n1\n");
    assert_eq!(names(), 1);
    check(&["select 1 as a", "--format", "csv", "-o", "-"], "a\n1\n");
}

#[test]
fn statements_are_read_from_a_file_or_from_standard_input() {
    let Some(data) = data() else { return };
    let home = tempfile::tempdir().expect("a directory");
    let path = home.path().join("report.sql");
    fs::write(&path, "\u{FEFF}-- a comment\nselect 1 as a;\n\nselect 2 as b;\n").expect("written");
    let expected = "a\n1\nb\n2\n";
    check(&["-f", path.to_str().expect("UTF-8"), "--format", "csv"], expected);
    let mut command = query(&data);
    command.args(["-d", "fixture", "-f", "-", "--format", "csv"]);
    let mut child = command.stdin(Stdio::piped()).stdout(Stdio::piped()).spawn().expect("runs");
    let mut stdin = child.stdin.take().expect("a pipe");
    stdin.write_all(b"select 1 as a; select 2 as b").expect("written");
    drop(stdin);
    let output = child.wait_with_output().expect("ended");
    assert_eq!(output.stdout, expected.as_bytes());
    check(&["-f", "/dev/null"], "");
}

#[test]
fn settings_are_those_of_the_engine_and_of_the_session() {
    let show = "select current_setting('shared_buffers'), current_setting('work_mem'), \
                '2020-01-02 03:04+00'::timestamptz";
    let csv = ["--format", "csv", "-t"];
    let args = ["-c", "work-mem=1MB", "-c", "TimeZone=Europe/Berlin", show];
    check(&[&args[..], &csv].concat(), "2MB,1MB,2020-01-02 04:04:00+01\n");
    let args = ["-c", "datestyle=ISO, DMY", "set work_mem = '2MB'; show work_mem"];
    check(&[&args[..], &csv].concat(), "2MB\n");
}

#[test]
fn the_database_comes_from_the_option_or_the_environment() {
    let Some(data) = data() else { return };
    let args = ["select current_database()", "--format", "csv", "-t"];
    let (.., stderr) = said(query(&data).args(args).env("PGDATABASE", "nosuch"));
    assert_eq!(stderr, "trunkline: error: database \"nosuch\" does not exist\n");
    let found = said(query(&data).args(args).env("PGDATABASE", "fixture"));
    assert_eq!(found, (0, "fixture\n".to_owned(), String::new()));
    let found = said(query(&data).args(args));
    assert_eq!(found, (0, "postgres\n".to_owned(), String::new()));
}

#[test]
fn messages_have_codes_if_asked_for() {
    let Some((code, stdout, stderr)) = run(&["select nosuch", "--verbose"]) else { return };
    let expected = "ERROR:  42703: column \"nosuch\" does not exist\n\
                    LINE 1: select nosuch\n               ^\n";
    assert_eq!((code, &*stdout, &*stderr), (1, "", expected));
    let (.., stderr) = run(&["select nosuch", "--json"]).expect("a fixture");
    let expected = "{\"kind\":\"error\",\"text\":\"column \\\"nosuch\\\" does not exist\",\
                    \"sqlstate\":\"42703\",\"position\":8,\"exit_status\":1}\n";
    assert_eq!(stderr, expected);
}

#[test]
fn the_time_is_printed_where_rows_are() {
    let Some((code, stdout, stderr)) = run(&["select 1 as a", "--timing", "-t"]) else { return };
    assert!(stdout.starts_with(" 1\n\nTime: ") && stdout.ends_with(" ms\n"), "{stdout}");
    assert_eq!((code, &*stderr), (0, ""));
    let (_, stdout, stderr) =
        run(&["select 1 as a", "--timing", "--format", "csv"]).expect("a fixture");
    assert_eq!(stdout, "a\n1\n");
    assert!(stderr.starts_with("trunkline: note: Time: "), "{stderr}");
}

#[test]
fn queries_are_explained() {
    check(&["set work_mem = '1MB'; select 1", "--explain", "-t"], "SET\n Result\n\n");
    let sql = "select count(*) from pg_class";
    let Some((code, stdout, stderr)) = run(&[sql, "--explain=analyze", "-t"]) else { return };
    assert_eq!((code, &*stderr), (0, ""));
    for part in ["Seq Scan on pg_class", "actual ", "Buffers: ", "Execution Time: "] {
        assert!(stdout.contains(part), "{part}: {stdout}");
    }
}
