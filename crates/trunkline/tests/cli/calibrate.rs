//! `calibrate`: its reports, what it refuses, and that nothing is left or written into a cluster.
//!
//! What it finds out about a device is tested in trunkline-measure, and on slow disks in the tests of
//! the environment. CI machines are loaded, so no test here looks at a number.

use std::collections::BTreeMap;
use std::ffi::OsString;
use std::fs;
use std::io::{BufRead, BufReader, Read};
use std::path::{Path, PathBuf};
use std::process::Stdio;
use std::time::SystemTime;

use serde_json::Value;

use crate::jobs::{cluster, signal};
use crate::{run, trunkline};

/// The shortest calibration.
const QUICK: [&str; 4] = ["--time", "30", "--size", "64MB"];

fn command(directory: &Path, arguments: &[&str]) -> Vec<OsString> {
    let mut command: Vec<OsString> = ["calibrate", "-D"].map(Into::into).into();
    command.push(directory.into());
    command.extend(arguments.iter().map(Into::into));
    command
}

fn names(directory: &Path) -> Vec<OsString> {
    let entries = fs::read_dir(directory).expect("a directory");
    let mut names: Vec<OsString> =
        entries.map(|entry| entry.expect("an entry").file_name()).collect();
    names.sort();
    names
}

/// All files and directories below a directory, with their lengths and times of change.
fn listing(directory: &Path) -> BTreeMap<PathBuf, (u64, SystemTime)> {
    let mut found = BTreeMap::new();
    for entry in fs::read_dir(directory).expect("a directory") {
        let path = entry.expect("an entry").path();
        let data = path.metadata().expect("its metadata");
        found.insert(path.clone(), (data.len(), data.modified().expect("a time")));
        if path.is_dir() {
            found.extend(listing(&path));
        }
    }
    found
}

#[test]
fn a_calibration_has_lines_and_reports_and_leaves_the_cluster_alone() {
    let cluster = cluster(10);
    let home = cluster.path.parent().expect("a parent").to_owned();
    let outside = tempfile::tempdir().expect("a directory");
    let at = |name: &str| outside.path().join(name).to_string_lossy().into_owned();
    let (conf, save, csv, html) = (at("io.conf"), at("run.json"), at("run.csv"), at("run.html"));
    let before = listing(&cluster.path);
    let files = ["--for", "18", "--conf", &conf, "--save", &save, "--csv", &csv, "--html", &html];
    let (code, out, err) = run(command(&cluster.path, &[&QUICK[..], &files].concat()));
    assert_eq!(code, 0, "{out}{err}");
    assert!(listing(&cluster.path) == before, "the cluster has changed");
    assert_eq!(names(&home), [cluster.path.file_name().expect("a name")]);
    assert_eq!(names(outside.path()), ["io.conf", "run.csv", "run.html", "run.json"]);
    assert_eq!(fs::read_to_string(&conf).expect("read"), out);
    let phases = [
        "writing the scratch file",
        "random reads until steady",
        "durable writes",
        "mixed reads and writes",
        "random writes",
        "writes in order",
        "durable writes by sessions",
        "durable writes by size",
    ];
    for phase in phases {
        assert!(err.contains(&format!("trunkline: info: {phase} (")), "{phase}: {err}");
    }
    let report: Value =
        serde_json::from_str(&fs::read_to_string(&save).expect("read")).expect("JSON");
    // A busy machine may be too slow or too unsteady for a result. Then there is no line.
    let skipped = report["found"]["skipped"].as_array().expect("skipped");
    for (name, result) in [
        ("io_method", "methods"),
        ("io_workers", "methods"),
        ("effective_io_concurrency", "concurrency"),
        ("io_combine_limit", "combined"),
    ] {
        let is_setting =
            |line: &str| line.trim_start_matches('#').starts_with(&format!("{name} = "));
        let result = report["found"].get(result).expect(result);
        // The line compares with the default.
        let depths = report["found"]["depths"].as_array().expect("depths");
        let has_default = depths.iter().any(|step| step["depth"] == 16);
        let has_result = result.as_array().map_or(!result.is_null(), |all| !all.is_empty());
        let has_line = out.lines().any(is_setting);
        assert!(has_line || !has_result || !has_default || !skipped.is_empty(), "{name}: {out}");
    }
    assert_eq!((&report["schema"], &report["complete"]), (&1.into(), &true.into()));
    check_reports(&report, &out, [&csv, &html]);
}

fn check_reports(report: &Value, lines: &str, [csv, html]: [&str; 2]) {
    let targets: Vec<&str> = report["settings"]
        .as_array()
        .expect("settings")
        .iter()
        .map(|settings| settings["target"].as_str().expect("a name"))
        .collect();
    assert_eq!(targets, ["18", "19", "trunkline"]);
    // Each line has its measurement, its confidence, and what the default loses.
    for line in report["settings"][0]["lines"].as_array().expect("lines") {
        assert!(!line["measurement"].as_str().expect("text").is_empty(), "{line}");
        let (name, value) = (line["name"].as_str().expect("text"), line["value"].as_str());
        let mark = if line["changed"] == true { "" } else { "#" };
        let text = format!("\n{mark}{name} = {}\n", value.expect("text"));
        assert!(lines.contains(&text), "{text}: {lines}");
        let is_unused = line["loss"] == "";
        assert!(
            is_unused || ["high", "medium", "low"].iter().any(|word| line["confidence"] == *word)
        );
    }
    let page = fs::read_to_string(html).expect("read");
    for name in ["kernel", "file_system", "device", "scheduler"] {
        let text = report["machine"][name].as_str().expect("text");
        assert!(page.contains(text), "{name}: {text}");
    }
    assert!(page.contains("trunkline calibrate -D") && page.contains("<svg viewBox="));
    assert!(!page.contains("<script") && !page.contains("src=") && !page.contains("<link"));
    let csv = fs::read_to_string(csv).expect("read");
    let found = &report["found"];
    let names = [
        "depths",
        "sizes",
        "mixed_depths",
        "random_writes",
        "sequential_writes",
        "durable_sessions",
        "durable_sizes",
    ];
    let steps = names.map(|name| found[name].as_array().map_or(0, Vec::len));
    // A busy machine may have no time for more than the first step, but then the report says so.
    let says_so = found["skipped"].to_string().contains("no time left");
    // The sweep over depths ends early if the device becomes slower meanwhile, and says so, too.
    let is_cut = found["concurrency"]["is_cut"] == true;
    for (name, count) in names.iter().zip(&steps) {
        let may_be_short = says_so || is_cut && *name == "depths";
        assert!(*count >= if may_be_short { 1 } else { 3 }, "{name}: {found}");
    }
    let cases = ["in_flight", "combined", "methods", "durable", "flush"]
        .map(|name| found[name].as_array().map_or(0, Vec::len));
    let rows = steps.iter().sum::<usize>() + cases.iter().sum::<usize>();
    // The fill, the latency, and the names of the columns.
    assert_eq!(csv.lines().count(), rows + 2 + 1, "{csv}");
}

#[test]
fn ctrl_c_prints_what_was_found_and_leaves_nothing() {
    let home = tempfile::tempdir().expect("a directory");
    let mut program = trunkline();
    program.args(command(home.path(), &["--time", "3600", "--size", "64MB"]));
    let mut child = program.stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().expect("runs");
    let mut messages = BufReader::new(child.stderr.take().expect("piped"));
    let mut line = String::new();
    while !line.contains("info: sequential reads of 64 kB") {
        line.clear();
        assert!(messages.read_line(&mut line).expect("text") > 0, "it ended early");
    }
    signal(&child, "-INT");
    let mut rest = String::new();
    messages.read_to_string(&mut rest).expect("text");
    let output = child.wait_with_output().expect("ended");
    assert_eq!(output.status.code(), Some(130), "{rest}");
    let out = String::from_utf8(output.stdout).expect("text");
    assert!(
        out.contains("scratch file of 64.0 MiB") && out.contains("\n# PostgreSQL 19\n"),
        "{out}"
    );
    assert!(!out.contains("confidence high") && !out.contains("Confidence: high"), "{out}");
    assert!(rest.contains("warning: interrupted; only a part was measured"), "{rest}");
    assert!(names(home.path()).is_empty());
}

#[test]
fn places_in_a_cluster_are_refused() {
    let cluster = cluster(1);
    let before = listing(&cluster.path);
    let home = tempfile::tempdir().expect("a directory");
    let inside = cluster.at("base/5");
    for option in ["--conf", "--save", "--csv", "--html", "--scratch"] {
        let mut command = command(home.path(), &["--for", "18", option]);
        command.push(inside.clone().into());
        let (code, out, err) = run(command);
        assert_eq!((code, out.as_str()), (2, ""), "{option}: {err}");
        assert!(err.contains("nothing is written there"), "{option}: {err}");
    }
    assert!(listing(&cluster.path) == before, "the cluster has changed");
}

#[test]
fn wrong_usage_of_calibrate_is_explained() {
    let home = tempfile::tempdir().expect("a directory");
    let file = home.path().join("file");
    fs::write(&file, "x").expect("written");
    let path = file.to_string_lossy().into_owned();
    let missing = home.path().join("missing").to_string_lossy().into_owned();
    let directory = home.path().to_string_lossy().into_owned();
    for (arguments, expected) in [
        (&["calibrate"][..], "no data directory given"),
        (&["calibrate", "-D", &path], "file\": not a directory"),
        (&["calibrate", "-D", &missing], "missing\": No such file or directory"),
        (&["calibrate", "-D", &directory, "--scratch", &missing], "No such file or directory"),
        (&["calibrate", "--size", "15MB"], "must be in range 16MB..1TB"),
        (&["calibrate", "--size", "1"], "expected a size such as 512MB or 2GB"),
        (&["calibrate", "--time", "29"], "must be in range 30..86400"),
        (&["calibrate", "--for", "17"], "[possible values: 18, 19, trunkline]"),
        (&["calibrate", "--conf", "x"], "--for <SERVER>"),
        (&["--io-method", "sync", "calibrate"], "\"io_method\" has no effect on this command"),
    ] {
        let (code, out, err) = run(arguments);
        let is_explained = code == 2 && out.is_empty() && err.contains(expected);
        assert!(is_explained, "{arguments:?}: {code} {err}");
    }
    let (code, _, err) = run(["calibrate", "-D", &directory, "--size", "1TB"]);
    assert!(code == 3 && err.contains("not enough disk space in "), "{code} {err}");
    assert_eq!(names(home.path()), ["file"]);
}
