//! Servers start with the lines that `trunkline calibrate` prints.

use std::os::unix::fs::PermissionsExt;
use std::path::PathBuf;
use std::process::Command;

use trunkline_measure::{Calibrated, Line, Target};

use crate::server::{Server, servers};

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
    let report: Calibrated = serde_json::from_slice(&output.stdout).expect("JSON");
    for bin in bins {
        let version = Command::new(bin.join("postgres")).arg("--version").output().expect("runs");
        let version = String::from_utf8_lossy(&version.stdout).into_owned();
        let target = match version.split_whitespace().nth(2).unwrap_or_default() {
            major if major.starts_with("18") => Target::Postgres18,
            major if major.starts_with("19") => Target::Postgres19,
            // These have no asynchronous I/O.
            _ => continue,
        };
        let lines = report.settings.iter().find(|lines| lines.target == target).expect("lines");
        // Many builds have no io_uring, and nothing says so before the start.
        let is_active = |name: &str| lines.lines.iter().any(|it| it.name == name && it.changed);
        assert!(!is_active("io_method"), "{version}");
        // The text itself, as --conf writes it, and once more with every line in effect but that one.
        let all: String = lines
            .lines
            .iter()
            .filter(|line| line.name != "io_method")
            .map(|line| format!("{} = {}\n", line.name, line.value))
            .collect();
        let files = [("lines", lines.text()), ("all", all)].map(|(name, text)| {
            let path = home.path().join(format!("{target:?}-{name}.conf"));
            std::fs::write(&path, text).expect("written");
            path.to_str().expect("a name").to_owned()
        });
        // The server may run as another user.
        let mode = std::fs::Permissions::from_mode(0o755);
        std::fs::set_permissions(home.path(), mode).expect("changed");
        let [first, second] = &files;
        let server = Server::start(&bin, &[("include", first), ("include", second)]);
        // A server shows the number that it has chosen instead of -1.
        let is_shown = |line: &&Line| line.name != "io_method" && line.value != "-1";
        let given = lines.lines.iter().filter(is_shown);
        let given = given.map(|line| (line.name.as_str(), line.value.as_str()));
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
