//! `copy`: where the rows go, and what is said about it.

use std::fs::{self, File};
use std::io::Read;
use std::process::Stdio;

use rustix::fs::{CWD, Mode, mkfifoat};

use crate::copy::{copy, fixtures, rows};
use crate::trunkline;

/// As in `copy … | head`: the reader takes the first rows and ends.
#[test]
fn a_copy_whose_reader_is_gone_ends_quietly() {
    for fixture in fixtures() {
        for output in [&[][..], &["-o", "/dev/stdout"]] {
            let mut child = trunkline();
            child.args(["copy", "bench.public.pgbench_accounts", "-D"]).arg(fixture.join("data"));
            let child = child.args(output).stdout(Stdio::piped()).stderr(Stdio::piped()).spawn();
            let mut child = child.expect("runs");
            // The table is far larger than a pipe's buffer.
            let mut reader = child.stdout.take().expect("a pipe");
            reader.read_exact(&mut [0; 100]).expect("rows");
            drop(reader);
            let ended = child.wait_with_output().expect("ended");
            // A shell's status for a program that SIGPIPE has ended.
            assert_eq!(ended.status.code(), Some(141), "{ended:?}");
            assert_eq!(String::from_utf8_lossy(&ended.stderr), "", "{output:?}");
        }
    }
}

/// A pipe given by `-o` is not our standard output, so the loss of rows must be reported.
#[test]
fn a_lost_reader_of_another_pipe_is_an_error() {
    let Some(fixture) = fixtures().pop() else { return };
    let home = tempfile::tempdir().expect("a directory");
    let path = home.path().join("pipe");
    mkfifoat(CWD, &path, Mode::RUSR | Mode::WUSR).expect("a pipe");
    let mut child = trunkline();
    child.args(["copy", "bench.public.pgbench_accounts", "-D"]).arg(fixture.join("data"));
    let child = child.arg("-o").arg(&path).stdout(Stdio::piped()).stderr(Stdio::piped()).spawn();
    let child = child.expect("runs");
    let mut reader = File::open(&path).expect("opened");
    reader.read_exact(&mut [0; 100]).expect("rows");
    drop(reader);
    let ended = child.wait_with_output().expect("ended");
    assert_eq!(ended.status.code(), Some(3), "{ended:?}");
    let err = String::from_utf8_lossy(&ended.stderr);
    assert!(err.contains(&*path.to_string_lossy()) && err.contains("Broken pipe"), "{err}");
}

#[test]
fn a_file_that_is_replaced_is_named() {
    let Some(fixture) = fixtures().pop() else { return };
    let home = tempfile::tempdir().expect("a directory");
    let path = home.path().join("rw.copy");
    let shown = path.to_string_lossy().into_owned();
    rows(&fixture, &["s1.rw", "-o", &shown]);
    let first = fs::read(&path).expect("read");
    fs::write(&path, "old").expect("written");
    let (code, _, err) = copy(&fixture, &["s1.rw", "-o", &shown]);
    let note = format!("trunkline: note: \"{shown}\" exists; a complete copy replaces it\n");
    assert_eq!((code, err), (0, note));
    assert_eq!(fs::read(&path).expect("read"), first);
    // A device is not replaced.
    rows(&fixture, &["s1.rw", "-o", "/dev/null"]);
    assert!(File::open("/dev/null").and_then(|it| it.metadata()).is_ok_and(|it| !it.is_file()));
}

/// The directory remembers the options of its first copy. If a refused command could create it, the
/// corrected command would be refused, too.
#[test]
fn a_wrong_setting_leaves_no_directory_behind() {
    let Some(fixture) = fixtures().pop() else { return };
    let home = tempfile::tempdir().expect("a directory");
    let path = home.path().join("out");
    let shown = path.to_string_lossy().into_owned();
    let all = ["--all", "-o", &shown];
    for wrong in [["--timezone", "Mars"], ["--datestyle", "German"], ["--bytea-output", "base64"]] {
        let (code, _, err) = copy(&fixture, &[&all[..], &wrong].concat());
        assert_eq!(code, 2, "{err}");
        assert!(err.contains("invalid value for parameter"), "{err}");
        assert!(!path.exists(), "{wrong:?}");
    }
    rows(&fixture, &all);
}
