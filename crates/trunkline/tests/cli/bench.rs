//! `bench`: which blocks the workloads read, the reports, and what is left behind.
//!
//! No test looks at a time, because CI machines are loaded. All of them count blocks, cases or files.

use std::collections::BTreeMap;
use std::ffi::OsString;
use std::fs::{self, File};
use std::io::Read;
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};
use std::process::Stdio;

use serde_json::Value;

use crate::jobs::{catches_interrupts, cluster, signal, until};
use crate::{json, run, trunkline};

/// Blocks of the generated table at scale 1.
const BLOCKS: u64 = 1640;

/// Runs `bench` with a scratch directory in `home` and a table at scale 1.
fn bench(home: &Path, arguments: &[&str]) -> (i32, String, String) {
    run(command(home, arguments))
}

fn command(home: &Path, arguments: &[&str]) -> Vec<OsString> {
    let mut command: Vec<OsString> = ["bench", "--scale", "1", "--scratch"].map(Into::into).into();
    command.push(home.into());
    command.extend(arguments.iter().map(Into::into));
    command
}

fn names(directory: &Path) -> Vec<String> {
    let entries = fs::read_dir(directory).expect("a directory");
    let name = |entry: fs::DirEntry| entry.file_name().to_string_lossy().into_owned();
    let mut names: Vec<String> = entries.map(|entry| name(entry.expect("an entry"))).collect();
    names.sort();
    names
}

/// All files below a directory, with their bytes and times of change.
fn contents(directory: &Path) -> BTreeMap<PathBuf, (Vec<u8>, std::time::SystemTime)> {
    let mut found = BTreeMap::new();
    for entry in fs::read_dir(directory).expect("a directory") {
        let path = entry.expect("an entry").path();
        if path.is_dir() {
            found.extend(contents(&path));
        } else {
            let changed = path.metadata().and_then(|data| data.modified()).expect("a time");
            found.insert(path.clone(), (fs::read(&path).expect("read"), changed));
        }
    }
    found
}

#[test]
fn bench_reads_the_planned_blocks_and_its_reports_agree() {
    let home = tempfile::tempdir().expect("a directory");
    let at = |name: &str| home.path().join(name).to_string_lossy().into_owned();
    let (csv, html, save) = (at("run.csv"), at("run.html"), at("run.json"));
    let workloads =
        ["sequential", "uniform", "linear_10", "reread", "prewarm", "verify", "checkpoint"];
    let options = ["--scan", "bitmap,index", "--selectivity", "1", "--io-direct="];
    let options = [&options[..], &["--repetitions", "1", "--json"]].concat();
    let files = ["--csv", &csv, "--html", &html, "--save", &save];
    let (code, out, err) = bench(home.path(), &[&workloads[..], &options, &files].concat());
    assert_eq!(code, 0, "{out}{err}");
    assert_eq!(names(home.path()), ["run.csv", "run.html", "run.json"]);
    let report = json(&out);
    assert_eq!((&report["complete"], &report["table"]["blocks"]), (&true.into(), &BLOCKS.into()));
    let stored: Value =
        serde_json::from_str(&fs::read_to_string(&save).expect("read")).expect("JSON");
    assert!(stored == report, "the stored run differs from the printed one");
    let cases = report["measurements"].as_array().expect("measurements");
    // Tasks × methods. io_uring may not be available here.
    let skipped = report["skipped"].as_array().expect("skipped");
    assert_eq!(cases.len() + skipped.len(), (1 + 2 + 2 + 1 + 1 + 1 + 2) * 3, "{out}");
    assert!(skipped.iter().all(|case| case["io_method"] == "io_uring"), "{out}");
    let some = check_blocks(cases);
    // Of random values, a hundredth of the rows is in about half of the blocks; 61 rows per page.
    assert!((600..900).contains(&some["uniform"]) && some["linear_10"] < 250, "{some:?}");
    compare_reports(
        cases,
        &fs::read_to_string(&csv).expect("read"),
        &fs::read_to_string(&html).expect("read"),
    );
    // There may be no io_uring here, and the file system may keep what is to be evicted.
    let is_expected =
        |line: &str| line.contains("cases not measured") || line.contains("the page cache");
    assert!(err.lines().all(is_expected), "{err}");
}

#[test]
fn bench_reads_the_planned_blocks_with_direct_io() {
    let home = tempfile::tempdir().expect("a directory");
    let options = ["--scan", "sequential,index", "--selectivity", "100", "--io-method", "worker"];
    let options = [&["uniform", "checkpoint"], &options[..], &["--repetitions", "1", "--json"]];
    let (code, out, err) = bench(home.path(), &options.concat());
    assert_eq!(code, 0, "{out}{err}");
    let report = json(&out);
    let cases = report["measurements"].as_array().expect("measurements");
    // Tasks × modes. Direct I/O may not be available here.
    let skipped = report["skipped"].as_array().expect("skipped");
    assert_eq!(cases.len() + skipped.len(), (2 + 2) * 2, "{out}");
    assert!(skipped.iter().all(|case| case["io_direct"] == true), "{out}");
    check_blocks(cases);
}

/// Checks how many blocks each case has read or written. Returns how many a hundredth of the rows is
/// in, for each workload.
fn check_blocks(cases: &[Value]) -> BTreeMap<String, u64> {
    let mut some: BTreeMap<String, u64> = BTreeMap::new();
    for case in cases {
        let blocks = case["blocks"].as_u64().expect("a number");
        let text = |field: &str| case[field].as_str().expect("text");
        let expected = match (text("workload"), text("scan")) {
            // 1637 windows of 4 blocks. Only 1640 blocks are read, whatever the method.
            ("reread", _) => {
                assert_eq!(case["hits"], 1637 * 4 - BLOCKS, "{case}");
                1637 * 4
            }
            ("checkpoint", _) => BLOCKS / 2,
            (workload, "bitmap" | "index") if case["selectivity_percent"] == 1.0 => {
                // The same blocks for both scans and all methods.
                *some.entry(workload.to_owned()).or_insert(blocks)
            }
            _ => BLOCKS,
        };
        assert_eq!(blocks, expected, "{case}");
        assert_eq!(case["repetitions"], 1, "{case}");
        assert_eq!(case["steady"], false, "{case}");
        assert!(case["ios"].as_u64().is_some_and(|ios| ios > 0 && ios <= blocks), "{case}");
        check_times(case);
    }
    some
}

/// Checks the times of single I/Os. There are percentiles only of enough I/Os.
fn check_times(case: &Value) {
    let (times, ios) = (&case["device_micros"], case["ios"].as_u64().expect("a number"));
    assert_eq!(times["count"].as_u64(), Some(ios), "{case}");
    let [p50, p99, p999] = ["p50", "p99", "p999"].map(|part| times[part].as_f64());
    assert!(p50.is_some_and(|p50| p99.is_none_or(|p99| p50 <= p99)), "{case}");
    assert_eq!((p99.is_some(), p999.is_some()), (ios >= 100, ios >= 1000), "{case}");
    let [device, wait] =
        ["device_seconds", "wait_seconds"].map(|field| case[field].as_f64().expect("a number"));
    assert!(device > 0.0, "{case}");
    if case["io_method"] == "sync" {
        // Sessions execute all I/O themselves.
        assert!(wait > 0.99 * device, "{case}");
        assert_eq!(&case["wait_micros"], times, "{case}");
    }
}

/// Each line of the CSV file is a row of the page, with the numbers of the JSON report.
fn compare_reports(cases: &[Value], csv: &str, page: &str) {
    let mut lines = csv.lines();
    let columns: Vec<&str> = lines.next().expect("names").split(',').collect();
    let lines: Vec<Vec<&str>> = lines.map(|line| line.split(',').collect()).collect();
    assert_eq!(lines.len(), cases.len());
    for (line, case) in lines.iter().zip(cases) {
        let row = format!("<tr><td>{}</td></tr>", line.join("</td><td>"));
        assert!(page.contains(&row), "{row}");
        for (name, value) in [
            ("seconds", &case["seconds"]["median"]),
            ("cpu_seconds", &case["cpu_seconds"]),
            ("ios_per_second", &case["ios_per_second"]),
            ("device_p99_micros", &case["device_micros"]["p99"]),
            ("wait_p999_micros", &case["wait_micros"]["p999"]),
            ("seconds_high", &case["seconds"]["high"]),
        ] {
            let column = columns.iter().position(|known| *known == name).expect(name);
            match value {
                Value::Null => assert_eq!(line[column], "", "{name}: {case}"),
                value => {
                    assert_eq!(line[column].parse::<f64>().ok(), value.as_f64(), "{name}: {case}");
                    assert!(value.is_number(), "{name}: {case}");
                }
            }
        }
        // One repetition has no interval.
        assert!(case["seconds"]["median"].is_number() && case["seconds"]["high"].is_null());
        assert_eq!((line[0], &case["system"]), ("trunkline", &"trunkline".into()));
    }
    assert!(page.contains("<svg viewBox=") && !page.contains("<script"));
}

#[test]
fn durable_writes_are_one_io_each_and_sessions_are_counted() {
    let home = tempfile::tempdir().expect("a directory");
    let options = ["durable", "--sessions", "1,3", "--repetitions", "1", "--json"];
    let one = ["--io-method", "worker", "--io-direct="];
    let (code, out, err) = bench(home.path(), &[&options[..], &one].concat());
    assert_eq!(code, 0, "{out}{err}");
    let report = json(&out);
    let cases = report["measurements"].as_array().expect("measurements");
    let counts = |field: &str| cases.iter().map(|case| case[field].as_u64()).collect::<Vec<_>>();
    assert_eq!(counts("sessions"), [Some(1), Some(3)]);
    assert_eq!(
        (counts("blocks"), counts("ios")),
        (vec![Some(200), Some(600)], vec![Some(200), Some(600)])
    );
    assert_eq!(names(home.path()), [""; 0]);
}

#[test]
fn a_second_run_is_compared_with_the_first() {
    let home = tempfile::tempdir().expect("a directory");
    let stored = home.path().join("run.json").to_string_lossy().into_owned();
    let work = [
        "verify",
        "prewarm",
        "--io-method",
        "sync",
        "--io-direct=",
        "--repetitions",
        "7",
        "--max-time",
        "86400",
    ];
    let (code, out, err) = bench(home.path(), &[&work[..], &["--save", &stored]].concat());
    assert_eq!(code, 0, "{out}{err}");
    assert!(!out.contains("against"), "{out}");
    let (code, out, err) =
        bench(home.path(), &[&work[..], &["--against", &stored, "--json"]].concat());
    // On a file system that keeps everything, such as tmpfs, there is a warning about the page cache.
    assert!(code == 0 && err.lines().all(|line| line.contains("page cache")), "{err}{out}");
    let report = json(&out);
    assert_eq!(report["against"]["path"], stored.as_str());
    for case in report["measurements"].as_array().expect("measurements") {
        let ratio = &case["against"]["ratio"];
        let [low, median, high] = ["low", "median", "high"].map(|end| ratio[end].as_f64());
        assert!(low.is_some() && low <= median && median <= high, "{case}");
    }
    // Another table is still compared, with a warning.
    let other = [
        "--io-method",
        "sync",
        "--io-direct=",
        "--repetitions",
        "7",
        "--max-time",
        "86400",
        "--against",
        &stored,
    ];
    let mut other: Vec<OsString> = other.map(Into::into).into();
    other.splice(0..0, ["bench", "verify", "--scale", "2", "--scratch"].map(Into::into));
    other.insert(5, home.path().into());
    let (code, out, err) = run(other);
    assert_eq!(code, 0, "{out}{err}");
    let expected =
        "warning: table differs: pgbench_accounts, generated at scale 2 (3279 blocks, 61 rows";
    assert!(err.contains(expected), "{err}");
    fs::write(&stored, "{}").expect("written");
    let (code, _, err) = bench(home.path(), &["verify", "--against", &stored]);
    assert!(code == 2 && err.contains("is not a report of trunkline bench"), "{code} {err}");
}

#[test]
fn nothing_is_left_after_ctrl_c_or_after_the_run_that_follows_a_kill() {
    let home = tempfile::tempdir().expect("a directory");
    let scratch = home.path().join("trunkline-bench-scratch");
    let endless =
        ["verify", "--repetitions", "1000", "--spread", "0.0001", "--max-time", "86400", "--json"];
    let save = home.path().join("run.json").to_string_lossy().into_owned();
    let start = || {
        let mut program = trunkline();
        program.args(command(home.path(), &[&endless[..], &["--save", &save]].concat()));
        program.stdout(Stdio::piped()).stderr(Stdio::piped());
        let mut child = program.spawn().expect("runs");
        // The table is complete, so the measurement has begun or is about to begin.
        let marker = scratch.join("table/trunkline-accounts");
        until(&mut child, |pid| catches_interrupts(pid) && marker.exists());
        child
    };
    let child = start();
    signal(&child, "-INT");
    let output = child.wait_with_output().expect("ended");
    assert_eq!(output.status.code(), Some(130), "{output:?}");
    // There is a report if something was measured before.
    let report = json(&String::from_utf8_lossy(&output.stdout));
    let is_measured = report["measurements"].as_array().is_some_and(|cases| !cases.is_empty());
    let expected: &[&str] = if is_measured { &["run.json"] } else { &[] };
    assert_eq!(names(home.path()), expected);
    let mut child = start();
    assert!(names(home.path()).contains(&"run.json.partial".to_owned()));
    // While it runs, a second one is refused.
    let (code, _, err) = bench(home.path(), &["verify"]);
    assert!(code == 3 && err.contains("is in use by another trunkline bench"), "{code} {err}");
    child.kill().expect("killed");
    child.wait().expect("ended");
    assert!(scratch.join("table/base/5/16385").exists(), "SIGKILL leaves files");
    let quick = ["verify", "--io-method", "sync", "--io-direct=", "--repetitions", "1"];
    let (code, out, err) = bench(home.path(), &[&quick[..], &["--save", &save]].concat());
    assert_eq!(code, 0, "{out}{err}");
    assert_eq!(names(home.path()), ["run.json"]);
}

#[test]
fn the_page_cache_is_as_asked_for_or_the_case_is_marked() {
    // Not in /tmp, which may be a tmpfs.
    let home = tempfile::tempdir_in(env!("CARGO_TARGET_TMPDIR")).expect("a directory");
    let work = ["sequential", "--cache", "cold,cached", "--io-method", "worker", "--io-direct="];
    let csv = home.path().join("run.csv").to_string_lossy().into_owned();
    let options = ["--repetitions", "2", "--csv", &csv, "--json"];
    let (code, out, err) = bench(home.path(), &[&work[..], &options].concat());
    assert_eq!(code, 0, "{out}{err}");
    let report = json(&out);
    let cases = report["measurements"].as_array().expect("measurements");
    let of = |cache: &str| {
        let case = cases.iter().find(|case| case["cache"] == cache).expect(cache);
        (case["cached_percent"].as_f64().expect("known"), &case["cache_held"])
    };
    let (percent, held) = of("cached");
    assert!(percent > 99.0 && *held == true, "{out}");
    let (percent, held) = of("cold");
    let file_system = report["machine"]["file_system"].as_str().expect("a name");
    match file_system {
        "ext4" | "xfs" | "btrfs" => assert!(percent < 5.0 && *held == true, "{out}"),
        _ => assert_eq!(*held, percent <= 5.0, "{out}"),
    }
    assert_eq!(err.contains("did not begin with the page cache"), *held == false, "{err}");
}

#[test]
fn report_files_are_created_early_and_nothing_else_is_replaced() {
    let home = tempfile::tempdir().expect("a directory");
    let at = |name: &str| home.path().join(name).to_string_lossy().into_owned();
    let quick = ["prewarm", "--io-method", "sync", "--io-direct=", "--repetitions", "1"];
    let with =
        |option: &str, path: &str| bench(home.path(), &[&quick[..], &[option, path]].concat());
    // Noticed before the table is generated.
    let (code, out, err) = with("--csv", &at("missing/run.csv"));
    assert!(code == 3 && out.is_empty() && err.contains("missing/run.csv"), "{code} {out}{err}");
    // A link of that name is neither followed nor removed.
    fs::write(at("victim"), "precious").expect("written");
    std::os::unix::fs::symlink(at("victim"), at("run.csv.partial")).expect("linked");
    let (code, _, err) = with("--csv", &at("run.csv"));
    assert!(code == 3 && err.contains("run.csv.partial\": not a regular file"), "{code} {err}");
    assert_eq!(fs::read(at("victim")).expect("read"), b"precious");
    assert_eq!(names(home.path()), ["run.csv.partial", "victim"]);
    // A pipe is written to, and stays. Opened for both, so that neither end waits for the other.
    let made = std::process::Command::new("mkfifo").arg(at("pipe")).status().expect("runs");
    assert!(made.success());
    let mut reader = File::options().read(true).write(true).open(at("pipe")).expect("opened");
    let (code, out, err) = with("--csv", &at("pipe"));
    assert_eq!(code, 0, "{out}{err}");
    let mut found = [0; 9];
    reader.read_exact(&mut found).expect("read");
    assert_eq!(&found, b"system,wo");
    assert_eq!(names(home.path()), ["pipe", "run.csv.partial", "victim"]);
    // The files are written even if the output has no reader.
    let mut program = trunkline();
    program.args(command(home.path(), &[&quick[..], &["--csv", &at("other.csv")]].concat()));
    let mut child = program.stdout(Stdio::piped()).stderr(Stdio::null()).spawn().expect("runs");
    drop(child.stdout.take());
    child.wait().expect("ended");
    assert!(fs::read_to_string(at("other.csv")).expect("written").starts_with("system,"));
}

#[test]
fn a_cluster_is_read_and_never_written() {
    let cluster = cluster(100);
    let outside = tempfile::tempdir().expect("a directory");
    let tablespace = outside.path().join("space");
    fs::create_dir_all(&tablespace).expect("made");
    fs::create_dir_all(cluster.path.join("pg_tblspc")).expect("made");
    std::os::unix::fs::symlink(&tablespace, cluster.path.join("pg_tblspc/16999")).expect("linked");
    let before = contents(&cluster.path);
    let table = |extra: &[&str]| {
        let mut command: Vec<OsString> =
            vec!["bench".into(), "-D".into(), cluster.path.clone().into()];
        command.extend(
            ["--table", "5/16384", "--repetitions", "1", "--selectivity", "10"].map(Into::into),
        );
        command.extend(extra.iter().map(Into::into));
        run(command)
    };
    let (code, out, err) = table(&["--json"]);
    assert_eq!(code, 0, "{out}{err}");
    let report = json(&out);
    assert_eq!(report["table"]["blocks"], 100);
    let cases = report["measurements"].as_array().expect("measurements");
    assert!(cases.iter().all(|case| case["workload"] != "checkpoint"), "{out}");
    assert!(cases.iter().any(|case| case["workload"] == "linear_10"), "{out}");
    let inside = [cluster.at("scratch"), cluster.at("base/5"), cluster.at("run.csv")];
    for (option, path) in ["--scratch", "--scratch", "--csv"].into_iter().zip(&inside) {
        let mut command: Vec<OsString> = vec!["bench".into(), option.into(), path.into()];
        command.extend(["-D".into(), cluster.path.clone().into()]);
        command.extend(["--table", "5/16384"].map(Into::into));
        let (code, out, err) = run(command);
        assert_eq!((code, out.as_str()), (2, ""), "{err}");
        assert!(err.contains("and nothing is written there"), "{err}");
    }
    // Only the cluster knows that this is a tablespace: it is empty.
    for option in ["--scratch", "--html"] {
        let path = tablespace.join("x").to_string_lossy().into_owned();
        let (code, out, err) = table(&[option, &path]);
        assert_eq!((code, out.as_str()), (2, ""), "{err}");
        assert!(err.contains("is inside the data directory or a tablespace"), "{err}");
    }
    // Durable writes need no generated table, for which there would be no room.
    let home = outside.path().to_string_lossy().into_owned();
    let writes = ["durable", "--scale", "21474", "--scratch", &home, "--io-method", "sync"];
    let (code, out, err) = table(&writes);
    assert_eq!(code, 0, "{out}{err}");
    assert_eq!(names(outside.path()), ["space"]);
    let (code, _, err) = table(&["durable"]);
    assert!(code == 2 && err.contains("durable writes, and there is no scratch"), "{code} {err}");
    assert!(contents(&cluster.path) == before, "the cluster has changed");
}

#[test]
fn a_case_that_fails_is_reported_and_the_others_are_measured() {
    let cluster = cluster(100);
    let table = cluster.path.join("base/5/16384");
    let mut bytes = fs::read(&table).expect("read");
    // The header of one page.
    bytes[7 * 8192..][..24].fill(0xFF);
    fs::write(&table, bytes).expect("written");
    let home = tempfile::tempdir().expect("a directory");
    let mut command: Vec<OsString> = vec!["bench".into(), "verify".into(), "durable".into()];
    command.extend(["-D".into(), cluster.path.clone().into(), "--scratch".into()]);
    command.push(home.path().into());
    let options = ["--table", "5/16384", "--io-method", "sync", "--io-direct=", "--json"];
    command.extend(options.iter().chain(&["--repetitions", "1"]).map(Into::into));
    let (code, out, err) = run(command);
    assert!(code == 3 && err.contains("damaged pages, expected 0"), "{code} {err}");
    let report = json(&out);
    assert_eq!(report["complete"], false);
    let of = |list: &str| {
        let cases = report[list].as_array().expect("a list");
        cases.iter().map(|case| case["workload"].clone()).collect::<Vec<_>>()
    };
    assert_eq!(
        (of("measurements"), of("skipped")),
        (vec!["durable".into()], vec!["verify".into()])
    );
}

#[test]
fn a_directory_without_a_server_is_refused() {
    let home = tempfile::tempdir().expect("a directory");
    let empty = home.path().join("bin");
    fs::create_dir(&empty).expect("made");
    let bin = empty.to_string_lossy().into_owned();
    let refused = |bin: &str, expected: &str| {
        let (code, out, err) = bench(home.path(), &["--postgres", bin]);
        assert!(code == 2 && out.is_empty() && err.contains(expected), "{code} {err}");
        assert_eq!(names(home.path()), ["bin"]);
    };
    refused(&bin, "postgres\": is missing: expected a directory with the programs of a server");
    refused("/nowhere", "\"/nowhere\"");
    // Programs that aren't a server's, in a place that every user can reach.
    let programs = tempfile::Builder::new().prefix("trunkline-").tempdir().expect("a directory");
    fs::set_permissions(programs.path(), fs::Permissions::from_mode(0o755)).expect("set");
    for (text, expected) in [
        ("#!/bin/sh\necho 'postgres (PostgreSQL) 14.9'\n", "expected PostgreSQL 15 or later"),
        ("#!/bin/sh\necho hello\n", "--version printed \"hello\""),
        ("#!/bin/sh\necho broken >&2\nexit 1\n", "--version failed: broken"),
    ] {
        for name in ["postgres", "initdb"] {
            let path = programs.path().join(name);
            fs::write(&path, text).expect("written");
            fs::set_permissions(&path, fs::Permissions::from_mode(0o755)).expect("set");
        }
        refused(&programs.path().to_string_lossy(), expected);
    }
}

#[test]
fn settings_that_cannot_be_compared_are_refused_before_anything_is_created() {
    let home = tempfile::tempdir().expect("a directory");
    let file = home.path().join("lines.conf");
    let path = file.to_string_lossy().into_owned();
    let refused = |text: &str, more: &[&str], code: i32, expected: &str| {
        fs::write(&file, text).expect("written");
        let options = ["--postgres", "/bin", "--postgres-settings", &path];
        let (found, out, err) = bench(home.path(), &[&options[..], more].concat());
        assert!(found == code && out.is_empty() && err.contains(expected), "{found} {err}");
        assert_eq!(names(home.path()), ["lines.conf"]);
    };
    let all = "Shared_Buffers = 8GB\nport = 1\nio_workers = 12\n";
    let expected =
        "lines.conf\": settings that can't be compared: \"port\", \"shared_buffers\" (bench";
    refused(all, &[], 2, expected);
    refused("include = 'x'\n", &[], 2, "only this file is read");
    refused("#io_workers = 12\n\n", &[], 2, "has no settings, so there is nothing to compare");
    refused("io_workers == 12\n", &[], 3, "syntax error in line 1");
    let good = "io_workers = 12\n";
    refused(good, &["--concurrency", "1,2"], 2, "--concurrency takes one value");
    refused(good, &["--only-postgres", "--combine", "1"], 2, "--combine has no effect");
    refused(good, &["--only-postgres", "--io-method", "sync"], 2, "--io-method has no effect");
    refused(good, &["--only-postgres", "--io-direct=data"], 2, "--io-direct has no effect");
    refused(good, &["--postgres-workers", "1"], 2, "cannot be used with");
    // A good file is only the beginning.
    refused(good, &[], 2, "is missing: expected a directory with the programs of a server");
    fs::remove_file(&file).expect("removed");
    let options = ["--postgres", "/bin", "--postgres-settings", &path];
    let (code, _, err) = bench(home.path(), &options);
    assert!(code == 3 && err.contains("lines.conf\": No such file"), "{code} {err}");
}

#[test]
fn wrong_usage_of_bench_is_explained() {
    for (arguments, expected) in [
        (&["bench"][..], "no table to measure\ntrunkline: hint: use -D DIR --table RELATION"),
        (&["bench", "--table", "5/1"], "no data directory given"),
        (&["bench", "fsync"], "invalid value 'fsync' for '[WORKLOAD]...'"),
        (&["bench", "--selectivity", "0"], "must be in range 0..100"),
        (&["bench", "--concurrency", "1,x"], "expected a whole number"),
        (&["bench", "--postgres", "/bin"], "--scratch <DIR>"),
        (&["bench", "--slow-disk", "gp3"], "--scratch <DIR>"),
        (&["bench", "--scratch", "/", "--slow-disk", "fast"], "invalid value 'fast'"),
        (&["bench", "--scratch", "/", "--postgres-user", "ann"], "--postgres <BINDIR>"),
        (
            &["bench", "--scratch", "/", "--table", "5/1", "--postgres", "/bin"],
            "cannot be used with",
        ),
        (
            &["bench", "--scratch", "/", "--sessions", "1,2", "--postgres", "/bin"],
            "several sessions can't be compared with a server",
        ),
        (&["bench", "--scratch", "/", "--only-postgres"], "--postgres <BINDIR>"),
        (
            &[
                "bench",
                "--scratch",
                "/",
                "--postgres",
                "/bin",
                "--only-postgres",
                "--io-direct=data",
            ],
            "--io-direct has no effect with --only-postgres",
        ),
        (&["bench", "--scratch", "/", "--postgres-settings", "x"], "--postgres <BINDIR>"),
        (
            &["bench", "--scratch", "/", "--scan", "planned", "--postgres", "/bin"],
            "hint: use --postgres-settings FILE",
        ),
    ] {
        let (code, out, err) = run(arguments);
        assert!(
            code == 2 && out.is_empty() && err.contains(expected),
            "{arguments:?}: {code} {err}"
        );
    }
}
