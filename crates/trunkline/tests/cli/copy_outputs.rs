//! `copy`: where the rows go, and what is said about it.

use std::fs::{self, File};
use std::io::Read;
use std::path::Path;
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

/// The names of the copies in a directory.
fn copies(directory: &Path) -> Vec<String> {
    let entries = fs::read_dir(directory).expect("a directory");
    let names = entries.map(|entry| entry.expect("an entry").file_name());
    let names = names.map(|name| name.into_string().expect("UTF-8"));
    let mut names: Vec<String> = names.filter(|name| name.ends_with(".copy")).collect();
    names.sort();
    names
}

#[test]
fn several_tables_by_name_and_by_pattern() {
    for fixture in fixtures() {
        let home = tempfile::tempdir().expect("a directory");
        let check = |args: &[&str], expected: &[&str]| {
            let out = tempfile::tempdir_in(home.path()).expect("a directory");
            let path = out.path().to_string_lossy().into_owned();
            rows(&fixture, &[args, &["-o", &path]].concat());
            assert_eq!(copies(out.path()), expected, "{args:?}");
        };
        let parts = ["s1.part_2023", "s1.part_2024_a", "s1.part_2024_def", "s1.part_att"];
        let parts = parts.map(|name| format!("{name}.copy"));
        let parts: Vec<&str> = parts.iter().map(String::as_str).collect();
        check(&["s1.rw", "s1.hot", "s1.rw"], &["s1.hot.copy", "s1.rw.copy"]);
        check(&["-t", "s1.r?", "s1.hot"], &["s1.hot.copy", "s1.rw.copy"]);
        // A partitioned table has no rows of its own, so it stands for its partitions.
        check(&["-t", "s1.part"], &parts);
        check(&["s1.part", "s1.part"], &parts);
        check(&["-t", "s1.part*", "s1.rw", "--exclude-table", "s1.part"], &["s1.rw.copy"]);
        check(&["-t", "s1.part", "--exclude-table", "s1.part_2024*"], &[parts[0], parts[3]]);
        check(&["-n", "s1", "--exclude-table", "s1.*"], &[]);
        // A catalog can be named.
        check(&["pg_class", "s1.rw"], &["pg_catalog.pg_class.copy", "s1.rw.copy"]);
    }
}

#[test]
fn wrong_selections_are_refused() {
    let Some(fixture) = fixtures().pop() else { return };
    for (args, message) in [
        (&["s1.rw", "s1.hot"][..], "hint: use -o DIRECTORY"),
        (&["s1.rw", "s1.hot", "-o", "x", "--columns", "a"], "--columns is for one table"),
        (&["s1.rw", "--exclude-table", "x"], "hint: use --all, -n or -t"),
        (&["-N", "s1", "-o", "x"], "hint: use --all to copy all the others"),
        (&["--exclude-table", "s1.rw", "-o", "x"], "hint: use --all to copy all the others"),
        (&["-T", "s1.rw", "--all", "-o", "x"], "use --exclude-table"),
        (&["-n", "Odd Schema", "-o", "x"], "hint: capital letters need double quotes"),
        (&["-t", "s1.Odd", "-o", "x"], "hint: capital letters need double quotes"),
        (&["-t", "s1.\"Odd\"", "-o", "x"], "hint: a pattern without a schema"),
        (&["s1.rw", "-j", "-1"], "must be in range 1..64"),
        (&["-t", "s1.rw"], "hint: use -o DIRECTORY"),
        (&["-n", "s1"], "hint: use -o DIRECTORY"),
        (&["--all"], "hint: use -o DIRECTORY"),
        (&["-t", "s1.rw", "-n", "s1", "-o", "x"], "cannot be used with"),
        (&["s1.rw", "s1.hot", "-N", "s1", "-o", "x"], "cannot be used with"),
        (&["-t", "nothing*", "-o", "x"], "no matching tables were found for pattern \"nothing*\""),
        (&["-t", "pg_*.pg_class", "-o", "x"], "system catalogs are copied by name only"),
        (&["-n", "nothing", "-o", "x"], "no matching schemas were found for pattern \"nothing\""),
        (&["-n", "pg_catalog", "-o", "x"], "hint: patterns don't match system schemas"),
        // A misspelt exclusion must not copy what should be left out.
        (&["--all", "-N", "s1x", "-o", "x"], "no matching schemas were found for pattern \"s1x\""),
        (&["-t", "s1.*", "--exclude-table", "s1.x", "-o", "x"], "for pattern \"s1.x\""),
        (&["-t", "a|b", "-o", "x"], "regular expressions are not supported"),
        (&["-n", "a.b", "-o", "x"], "too many dotted names"),
        (&["s1.rw", "s1.vw", "-o", "x"], "s1.vw is a view"),
    ] {
        let (code, out, err) = copy(&fixture, args);
        assert_eq!((code, out.as_str()), (2, ""), "{args:?}: {err}");
        assert!(err.contains(message), "{args:?}: {err}");
    }
}
