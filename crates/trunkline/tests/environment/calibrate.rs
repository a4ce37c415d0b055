//! `trunkline calibrate` on slow disks whose limits are known, and killed at any moment.
//!
//! ```text
//!   latency=40ms,rate=30MB/s,iops=400   ──▶ calibrate ──▶ the same numbers within 10 %
//! ```
//! Numbers of a busy machine prove nothing. So with the two disks of CI, a test only looks whether
//! everything was measured; the numbers are compared by a soak.
//!
//! `TRUNKLINE_CALIBRATED_DISKS` replaces the two disks by others, separated by semicolons, and
//! `TRUNKLINE_CALIBRATION_SECONDS` the time for each, for `cargo xtask soak calibrate`.

use std::fs;
use std::path::Path;
use std::process::Command;
use std::time::Duration;

use rustix::process::Signal;
use serde_json::Value;
use trunkline_aio::facade::env;
use trunkline_slow_disk::{Limit, Profile};

use crate::child::Running;
use crate::fuse::PATIENCE;
use crate::need;
use crate::slow_disk::Home;
use crate::verify::binary;

/// Without and with a credit for I/Os, which ends within seconds.
const DISKS: &str = "latency=40ms,rate=30MB/s,iops=400;\
                     latency=40ms,rate=30MB/s,iops=200,burst_iops=800,credit=3000io";

/// Seconds for each of them.
const SECONDS: &str = "45";

/// Calibrations of a disk until one of them is right, at most.
const ATTEMPTS: usize = 3;

/// The largest error.
const ERROR_MAX: f64 = 0.10;

fn calibrate(directory: &Path, options: &[&str]) -> Running {
    let mut command = Command::new(binary());
    command.args(["calibrate", "-D"]).arg(directory).args(options);
    Running::start(&mut command)
}

fn names(directory: &Path) -> Vec<String> {
    let entries = fs::read_dir(directory).expect("a directory").flatten();
    entries.map(|entry| entry.file_name().to_string_lossy().into_owned()).collect()
}

/// Measures a mounted disk. Each phase has a time limit of its own.
fn measured(mount: &Path, report: &Path, seconds: &str) -> Value {
    let path = report.to_str().expect("a name");
    // A long run takes two fifths of the time.
    let limit = PATIENCE + Duration::from_secs(seconds.parse().expect("seconds"));
    let mut running =
        calibrate(mount, &["--time", seconds, "--size", "128MB", "--for", "18", "--save", path]);
    for phase in [
        "sequential reads until steady",
        "latency",
        "random reads until steady",
        "I/O methods",
        "durable writes",
        "flush settings",
        "mixed reads and writes",
        "random writes",
        "writes in order",
        "durable writes by sessions",
        "durable writes by size",
    ] {
        running.wait_for_message_within(limit, &format!("info: {phase} ("));
    }
    let ended = running.wait_for_end_within(limit);
    assert_eq!(ended.status.code(), Some(0), "{ended:?}");
    serde_json::from_str(&fs::read_to_string(report).expect("read")).expect("JSON")
}

/// The latency in seconds of a mounted disk, as it has measured itself with one read in flight.
///
/// This machine adds to the profile's latency. A program that measures the mount has to find that, too.
fn own_latency(mount: &mut Running, profile: &Profile) -> f64 {
    mount.wait_for_output("\n       64 ");
    let text = mount.output();
    let mut rows = text.lines().map(|line| line.split_whitespace().collect::<Vec<_>>());
    let error = rows.find_map(|cells| match cells[..] {
        ["1", .., error, "%"] => error.parse::<f64>().ok(),
        _ => None,
    });
    profile.latency().as_secs_f64() * (1.0 + error.expect("the error with one in flight") / 100.0)
}

/// How right a calibration is.
#[derive(Debug, Default, PartialEq)]
struct Verdict {
    /// What is wrong.
    errors: Vec<String>,
    /// Whether fewer reads in flight were found than the disk needs, because its credit had ended.
    is_excused: bool,
}

impl std::fmt::Display for Verdict {
    /// As `cargo xtask soak calibrate` counts it.
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match (self.errors.is_empty(), self.is_excused) {
            (true, false) => f.write_str("ok"),
            (true, true) => f.write_str("ok (at least)"),
            (false, _) => f.write_str(&self.errors.join(", ")),
        }
    }
}

/// Judges a calibration of a disk with this profile and latency.
fn verdict(found: &Value, profile: &Profile, latency: f64) -> Verdict {
    let mut errors = Vec::new();
    let mut check = |what: &str, found: &Value, expected: f64| {
        let error = found.as_f64().map(|found| found / expected - 1.0);
        if error.is_none_or(|error| error.abs() > ERROR_MAX) {
            errors.push(format!("{what} is {found}, expected {expected}"));
        }
    };
    check("latency", &found["latency"]["micros"]["p50"], latency * 1e6);
    let mut limit = |name: &str, expected: Option<Limit>| {
        let Some(expected) = expected else { return };
        let found = &found[name];
        check(name, &found["sustained"]["median"], expected.rate as f64);
        if let Some(burst) = expected.burst {
            check(&format!("burst of {name}"), &found["burst"]["rate"], burst as f64);
            check(&format!("credit of {name}"), &found["burst"]["credit"], expected.credit as f64);
        } else if !found["burst"].is_null() {
            check(&format!("burst of {name}"), &Value::Null, 0.0);
        }
    };
    limit("iops", profile.iops());
    limit("bandwidth", profile.bandwidth());
    let product = |of: fn(Limit) -> u64| profile.iops().map(|iops| latency * of(iops) as f64);
    let (all, sustained) = (product(|it| it.burst.unwrap_or(it.rate)), product(|it| it.rate));
    let recommended = &found["concurrency"]["recommended"];
    let factor = |product: Option<f64>| Some(recommended.as_f64()? / product?.max(1.0));
    let is_within = |factor: Option<f64>| factor.is_some_and(|it| (0.5..=2.0).contains(&it));
    // If a credit ended within the sweep, the report says "at least". The rate still grew up to the last
    // depth before, so that is the least, and more than the disk needs without credit.
    let deepest = found["depths"].as_array().and_then(|steps| steps.last()?["depth"].as_f64());
    let reaches = recommended.as_f64().zip(deepest).is_some_and(|(it, deepest)| it >= deepest);
    let is_excused = found["concurrency"]["is_cut"] == true
        && factor(all).is_some_and(|factor| factor < 0.5)
        && factor(sustained).is_some_and(|factor| factor >= 0.5)
        && reaches;
    if !is_within(factor(all)) && !is_excused {
        errors.push(format!("concurrency is {recommended}, latency x throughput is {all:?}"));
    }
    Verdict { errors, is_excused }
}

/// Everything was measured, whatever the numbers are.
fn check_structure(report: &Value) {
    let found = &report["found"];
    assert_eq!(report["complete"], true);
    for (name, number) in [
        ("latency", &found["latency"]["micros"]["p50"]),
        ("iops", &found["iops"]["sustained"]["median"]),
        ("bandwidth", &found["bandwidth"]["sustained"]["median"]),
        ("product", &found["concurrency"]["product"]),
        ("mixed", &found["mixed"]["ios_per_second"]["median"]),
    ] {
        assert!(number.as_f64().is_some_and(|it| it > 0.0), "{name}: {found}");
    }
    for name in ["depths", "sizes", "methods", "durable", "series"] {
        assert!(found[name].as_array().is_some_and(|all| !all.is_empty()), "{name}: {found}");
    }
    for (name, sweep) in [
        ("mixed_depths", "mixed reads and writes"),
        ("random_writes", "random writes"),
        ("sequential_writes", "writes in order"),
        ("durable_sessions", "durable writes by sessions"),
        ("durable_sizes", "durable writes by size"),
    ] {
        let steps = found[name].as_array().expect(name);
        // A busy machine may have no time for more than the first step, or complete nothing in the
        // time of one, but then the report says so.
        let skipped = found["skipped"].as_array().expect("skipped");
        let says_so = skipped.iter().any(|text| {
            let text = text.as_str().expect("text");
            text.starts_with(sweep) && text.ends_with(if steps.is_empty() { "in time" } else { "" })
        });
        assert!(steps.len() >= 3 || says_so, "{name}: {found}");
        for step in steps {
            assert!(step["ios_per_second"]["median"].as_f64().is_some_and(|it| it > 0.0), "{step}");
            // All of the few I/Os of the first mixed step may be writes, whose times aren't shown.
            let has_reads = name != "mixed_depths" || step["depth"] != 1;
            assert!(!has_reads || step["micros"]["p50"].is_number(), "{step}");
            assert!(step["steady"].is_boolean(), "{step}");
        }
    }
}

/// A number of reads in flight that a credit cut is at least the last depth before that, and nothing
/// else is excused.
#[test]
fn only_a_cut_sweep_may_find_too_few_reads_in_flight() {
    let disk = "latency=40ms,rate=30MB/s,iops=100,burst_iops=1000,credit=9io";
    let profile: Profile = disk.parse().expect("a profile");
    let found = |recommended: f64, is_cut: Value, deepest: u32| {
        let found = serde_json::json!({
            "latency": { "micros": { "p50": 40_000.0 } },
            "iops": {
                "sustained": { "median": 100.0 },
                "burst": { "rate": 1000.0, "credit": 9.0 },
            },
            "bandwidth": { "sustained": { "median": 30e6 }, "burst": null },
            "depths": [{ "depth": 1 }, { "depth": deepest }],
            "concurrency": { "recommended": recommended, "is_cut": is_cut },
        });
        let verdict = verdict(&found, &profile, profile.latency().as_secs_f64());
        (verdict.errors.len(), verdict.to_string() == "ok (at least)")
    };
    for is_cut in [false.into(), true.into(), Value::Null] {
        for right in [20.0, 40.0, 80.0] {
            assert_eq!(found(right, is_cut.clone(), 128), (0, false), "{right}, {is_cut}");
        }
        assert_eq!(found(81.0, is_cut.clone(), 64), (1, false), "{is_cut}");
    }
    assert_eq!(found(8.0, true.into(), 8), (0, true));
    assert_eq!([false.into(), Value::Null].map(|it| found(8.0, it, 8)), [(1, false); 2]);
    // Below the last depth that was measured, and below what the disk sustains.
    assert_eq!([found(8.0, true.into(), 16), found(1.0, true.into(), 1)], [(1, false); 2]);
}

/// More than a second of reads is in flight when the signal comes, and the report doesn't wait for them.
#[test]
fn ctrl_c_on_a_slow_disk_prints_what_was_found() {
    if !need::fuse() {
        return;
    }
    let home = Home::new();
    let mut mount = home.start("latency=40ms,rate=10MB/s,iops=400");
    mount.wait_for_output("error of the median");
    let mut running = calibrate(&home.mount(), &["--time", "120", "--size", "32MB"]);
    running.wait_for_message("info: sequential reads until steady (");
    running.signal(Signal::INT);
    let ended = running.wait_for_end();
    assert_eq!(ended.status.code(), Some(130), "{ended:?}");
    assert!(ended.stdout.contains("scratch file of 32.0 MiB"), "{ended:?}");
    assert!(ended.stderr.contains("interrupted; only a part was measured"), "{ended:?}");
    mount.signal(Signal::TERM);
    assert_eq!(mount.wait_for_end().status.code(), Some(0));
    assert_eq!(names(&home.directory()), [""; 0]);
}

#[test]
fn limits_of_mounted_disks_are_found_within_ten_percent() {
    if !need::fuse() {
        return;
    }
    let text = |name: &str| env::var(name).and_then(|value| value.into_string().ok());
    let disks = text("TRUNKLINE_CALIBRATED_DISKS").unwrap_or_else(|| DISKS.to_owned());
    let seconds = text("TRUNKLINE_CALIBRATION_SECONDS").unwrap_or_else(|| SECONDS.to_owned());
    // A wall-clock result of a busy machine proves nothing, so only a soak compares it.
    let compares = env::var("TRUNKLINE_CALIBRATED_DISKS").is_some();
    let mut failures = Vec::new();
    for disk in disks.split(';').map(str::trim) {
        let profile: Profile = disk.parse().expect("a profile");
        let mut last = Verdict::default();
        for _ in 0..ATTEMPTS {
            // A new mount has its full credit.
            let home = Home::new();
            let mut mount = home.start(disk);
            let latency = own_latency(&mut mount, &profile);
            let report = home.mount().with_file_name("report.json");
            let found = measured(&home.mount(), &report, &seconds);
            assert_eq!(names(&home.directory()), [""; 0]);
            mount.signal(Signal::TERM);
            assert_eq!(mount.wait_for_end().status.code(), Some(0));
            if !compares {
                check_structure(&found);
                break;
            }
            last = verdict(&found["found"], &profile, latency);
            println!("calibrated {disk}: {last}");
            if last.errors.is_empty() {
                break;
            }
        }
        if !last.errors.is_empty() {
            failures.push(format!("{disk}: {last}"));
        }
    }
    // Only now, so that one disk doesn't hide what was found about the others.
    assert!(failures.is_empty(), "{}", failures.join("\n"));
}

#[test]
fn a_killed_calibration_leaves_nothing() {
    let home = tempfile::tempdir().expect("a directory");
    for phase in [
        "info: measuring",
        "info: writing the scratch file",
        "info: sequential reads of 16 kB",
        "info: sequential reads until steady",
    ] {
        let mut running = calibrate(home.path(), &["--time", "120", "--size", "64MB"]);
        running.wait_for_message(phase);
        running.signal(Signal::KILL);
        running.wait_for_end();
        assert_eq!(names(home.path()), [""; 0], "killed after {phase:?}");
    }
    // At moments that depend on the machine.
    for _ in 0..20 {
        let running = calibrate(home.path(), &["--time", "120", "--size", "64MB"]);
        running.signal(Signal::KILL);
        running.wait_for_end();
        assert_eq!(names(home.path()), [""; 0]);
    }
    // Where files have names at first, the next start removes the name.
    fs::write(home.path().join(".trunkline-scratch-4194304"), "").expect("written");
    let mut running = calibrate(home.path(), &["--time", "120", "--size", "64MB"]);
    running.wait_for_message("info: measuring");
    assert_eq!(names(home.path()), [""; 0]);
    running.signal(Signal::KILL);
    running.wait_for_end();
}

#[test]
fn a_mount_that_is_a_data_directory_needs_another_place() {
    if !need::fuse() {
        return;
    }
    let home = Home::new();
    fs::create_dir(home.directory().join("global")).expect("made");
    fs::write(home.directory().join("PG_VERSION"), "18\n").expect("written");
    let mut mount = home.start("latency=1ms");
    mount.wait_for_output("error of the median");
    let ended = calibrate(&home.mount(), &[]).wait_for_end();
    assert_eq!(ended.status.code(), Some(3), "{ended:?}");
    assert!(ended.stderr.contains("no directory on the file system of "), "{ended:?}");
    assert!(ended.stderr.contains("hint: use --scratch DIR"), "{ended:?}");
    let mut found = names(&home.directory());
    found.sort();
    assert_eq!(found, ["PG_VERSION", "global"]);
    mount.signal(Signal::TERM);
    mount.wait_for_end();
}
