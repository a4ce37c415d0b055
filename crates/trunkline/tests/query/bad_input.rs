//! What is refused, and how the command ends early.

use std::io::{BufRead, BufReader};
use std::process::Stdio;

use rustix::process::{Pid, Signal, kill_process};

use crate::{data, query, run, said};

/// Rows that never end within the time of a test.
const ENDLESS: &str = "select x from generate_series(1, 100000000000) x";

#[test]
fn errors_before_the_first_statement_have_their_own_exit_statuses() {
    let Some(data) = data() else { return };
    let inside = data.join("rows.csv");
    let inside = inside.to_str().expect("UTF-8");
    for (args, code, expected) in [
        (&["select 1", "-d", "nosuch"][..], 2, "error: database \"nosuch\" does not exist\n"),
        (
            &["select 1", "-c", "nosuch=1"],
            2,
            "error: unrecognized configuration parameter \"nosuch\"\n",
        ),
        (
            &["select 1", "-c", "work_mem=x"],
            2,
            "error: invalid value for parameter \"work_mem\": \"x\"\n",
        ),
        (&["select 1", "-o", inside], 2, "is inside the data directory or a tablespace\n"),
        (&["select 1", "-o", "/nosuch/x"], 3, "\"/nosuch/x\": No such file or directory\n"),
        (&["-f", "/nosuch/x"], 3, "could not read \"/nosuch/x\": No such file or directory\n"),
        (&["-f", "x", "select 1"], 2, "cannot be used with"),
        (&[], 2, "arguments were not provided"),
        (&["select 1", "-x", "--format", "csv"], 2, "--expanded requires the format"),
        (&["select 1", "--null", "x", "--json"], 2, "--null has no effect on JSON"),
        (&["select 1", "--format", "parquet"], 2, "invalid value 'parquet' for '--format"),
    ] {
        let (found, stdout, stderr) = said(query(&data).args(args));
        assert_eq!((found, &*stdout), (code, ""), "{args:?} {stderr}");
        assert!(stderr.contains(expected), "{args:?}: {stderr}");
    }
    let missing = said(query("/nosuch".as_ref()).arg("select 1"));
    assert_eq!(missing.0, 3, "{missing:?}");
}

#[test]
fn the_first_error_ends_the_command() {
    let Some(found) = run(&["select 1; select nosuch; select 2", "-t"]) else { return };
    let stderr = "ERROR:  column \"nosuch\" does not exist\n\
                  LINE 1: select 1; select nosuch; select 2\n                         ^\n";
    assert_eq!(found, (1, "        1\n\n".to_owned(), stderr.to_owned()));
    let (code, stdout, _) = run(&["create table t (a int)"]).expect("a fixture");
    assert_eq!((code, &*stdout), (1, ""));
}

#[test]
fn statements_have_a_time_limit() {
    let args = ["-c", "statement_timeout=50ms", "--format=csv", ENDLESS, "-o", "/dev/null"];
    let Some((code, _, stderr)) = run(&args) else { return };
    assert_eq!(code, 1);
    assert_eq!(stderr, "ERROR:  canceling statement due to statement timeout\n");
}

#[test]
fn a_reader_that_goes_away_ends_the_command_silently() {
    let Some(data) = data() else { return };
    let mut command = query(&data);
    command.args(["-d", "fixture", "--format", "csv", ENDLESS]);
    let mut child = command.stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().expect("runs");
    let mut first = String::new();
    BufReader::new(child.stdout.take().expect("a pipe")).read_line(&mut first).expect("read");
    assert_eq!(first, "x\n");
    let output = child.wait_with_output().expect("ended");
    assert_eq!((output.status.code(), &*output.stderr), (Some(141), &b""[..]));
}

#[test]
fn a_signal_cancels_the_statement() {
    let Some(data) = data() else { return };
    for (signal, code) in [(Signal::INT, 130), (Signal::TERM, 143)] {
        let mut command = query(&data);
        command.args(["-d", "fixture", "--format", "ndjson", ENDLESS]);
        let mut child =
            command.stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().expect("runs");
        let mut stdout = BufReader::new(child.stdout.take().expect("a pipe"));
        let mut first = String::new();
        stdout.read_line(&mut first).expect("read");
        let id = i32::try_from(child.id()).expect("a process");
        kill_process(Pid::from_raw(id).expect("a process"), signal).expect("sent");
        std::io::copy(&mut stdout, &mut std::io::sink()).expect("read");
        let output = child.wait_with_output().expect("ended");
        let stderr = String::from_utf8(output.stderr).expect("text");
        assert_eq!(
            (output.status.code(), &*stderr),
            (Some(code), "trunkline: error: interrupted\n")
        );
    }
}
