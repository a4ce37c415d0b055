//! Servers start with the lines that `trunkline calibrate` prints.

use std::path::PathBuf;
use std::process::Command;

use serde_json::Value;

use crate::server::{Server, servers};

/// The settings of a server's lines, those that keep the default too.
fn settings(report: &Value, target: &str) -> Vec<(String, String)> {
    let all = report["settings"].as_array().expect("settings");
    let found = all.iter().find(|settings| settings["target"] == target).expect("a target");
    let text = |value: &Value| value.as_str().expect("text").to_owned();
    let lines = found["lines"].as_array().expect("lines");
    lines.iter().map(|line| (text(&line["name"]), text(&line["value"]))).collect()
}

#[test]
fn a_server_starts_with_the_lines_of_a_calibration() {
    let bins: Vec<PathBuf> = servers();
    if bins.is_empty() {
        return;
    }
    let home = tempfile::tempdir().expect("a directory");
    let mut calibrate = Command::new(env!("CARGO_BIN_EXE_trunkline"));
    calibrate.arg("calibrate").arg("-D").arg(home.path());
    calibrate.args(["--time", "30", "--size", "32MB", "--json"]);
    let output = calibrate.output().expect("runs");
    assert!(output.status.success(), "{output:?}");
    let report: Value = serde_json::from_slice(&output.stdout).expect("JSON");
    for bin in bins {
        let version = Command::new(bin.join("postgres")).arg("--version").output().expect("runs");
        let version = String::from_utf8_lossy(&version.stdout).into_owned();
        let target = match version.split_whitespace().nth(2).unwrap_or_default() {
            major if major.starts_with("18") => "18",
            major if major.starts_with("19") => "19",
            // These have no asynchronous I/O.
            _ => continue,
        };
        let mut lines = settings(&report, target);
        // Many builds have no io_uring, and nothing says so before the start.
        lines.retain(|(name, value)| name != "io_method" || value != "io_uring");
        let given: Vec<(&str, &str)> =
            lines.iter().map(|(name, value)| (name.as_str(), value.as_str())).collect();
        let server = Server::start(&bin, &given);
        for (name, value) in given {
            let shown = server.sql("postgres", &format!("select current_setting('{name}')"));
            let shown = String::from_utf8(shown).expect("text");
            // A server prints sizes in the largest unit, and numbers without a zero at the end.
            let number = |text: &str| {
                let text = text.trim();
                let (text, factor) = match (text.strip_suffix("kB"), text.strip_suffix("MB")) {
                    (Some(text), _) => (text, 1.0),
                    (_, Some(text)) => (text, 1024.0),
                    _ => (text, 1.0),
                };
                text.parse::<f64>().ok().map(|number| number * factor)
            };
            let is_same = match (number(&shown), number(value)) {
                (Some(shown), Some(value)) => (shown - value).abs() < 1e-9,
                _ => shown.trim() == value,
            };
            assert!(is_same, "{version}: {name} is {shown}, expected {value}");
        }
        server.stop();
    }
}

/// The largest values that a calibration can recommend.
#[test]
fn a_server_accepts_the_largest_values() {
    for bin in servers() {
        let mut largest = vec![
            ("effective_io_concurrency", "1000"),
            ("maintenance_io_concurrency", "1000"),
            ("io_max_concurrency", "1000"),
            ("io_max_combine_limit", "1024kB"),
            ("io_combine_limit", "1024kB"),
            ("random_page_cost", "1.0"),
            ("wal_sync_method", "open_sync"),
            ("checkpoint_flush_after", "2048kB"),
            ("bgwriter_flush_after", "2048kB"),
        ];
        let version = Command::new(bin.join("postgres")).arg("--version").output().expect("runs");
        let version = String::from_utf8_lossy(&version.stdout).into_owned();
        match version.split_whitespace().nth(2).unwrap_or_default() {
            major if major.starts_with("18") => largest.push(("io_workers", "32")),
            major if major.starts_with("19") => {
                largest.extend([("io_min_workers", "32"), ("io_max_workers", "32")]);
            }
            _ => continue,
        }
        let server = Server::start(&bin, &largest);
        let shown = server.sql("postgres", "show io_max_concurrency");
        assert_eq!(shown, b"1000\n", "{version}");
        server.stop();
    }
}
