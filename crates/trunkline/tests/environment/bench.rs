//! `bench --slow-disk`: what is measured is on the slow disk, and no mount is left behind.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use rustix::process::{Pid, Signal, kill_process};
use serde_json::Value;

use crate::child::{Ended, Running};
use crate::need;
use crate::verify::binary;

fn bench(home: &Path, profile: &str, arguments: &[&str]) -> Command {
    let mut command = Command::new(binary());
    command.args(["bench", "--json", "--scale", "1", "--slow-disk", profile]).args(arguments);
    command.arg("--scratch").arg(home).env_remove("PGDATA");
    command
}

fn scratch(home: &Path) -> PathBuf {
    home.join("trunkline-bench-scratch")
}

fn is_mounted(home: &Path) -> bool {
    let mounts = fs::read_to_string("/proc/self/mountinfo").expect("read");
    mounts.contains(scratch(home).to_str().expect("a name"))
}

/// The process that serves the mount in `home`.
fn serving(home: &Path) -> Option<Pid> {
    let mount = scratch(home).join("slow");
    let mount = mount.to_str().expect("a name");
    let processes = fs::read_dir("/proc").expect("listed").flatten();
    let found = processes.filter(|entry| {
        let command = fs::read(entry.path().join("cmdline")).unwrap_or_default();
        let command = String::from_utf8_lossy(&command);
        command.contains("--until-eof") && command.contains(mount)
    });
    let pids = found.filter_map(|entry| entry.file_name().to_str()?.parse().ok());
    pids.filter_map(Pid::from_raw).next()
}

/// The report of a run that must succeed and must leave nothing behind.
fn report(home: &Path, ended: &Ended) -> Value {
    assert_eq!(ended.status.code(), Some(0), "{ended:?}");
    assert!(!is_mounted(home) && !scratch(home).exists(), "{ended:?}");
    // It ends when nothing uses the mount any more, at the latest with our process.
    while serving(home).is_some() {}
    serde_json::from_str(&ended.stdout).expect("JSON")
}

const QUICK: [&str; 5] = ["verify", "--io-method", "sync", "--repetitions", "1"];

#[test]
fn the_report_names_the_slow_disk_and_its_error() {
    if !need::fuse() {
        return;
    }
    let home = tempfile::tempdir().expect("a directory");
    let work =
        ["sequential", "checkpoint", "durable", "--io-method", "worker", "--repetitions", "1"];
    let ended = Running::start(&mut bench(home.path(), "latency=1ms", &work)).wait_for_end();
    let report = report(home.path(), &ended);
    let disk = &report["slow_disk"];
    assert_eq!(disk["profile"], "latency=1ms", "{report}");
    let depths = disk["accuracy"].as_array().expect("a list").iter();
    let depths: Vec<_> = depths.map(|one| one["in_flight"].as_u64()).collect();
    assert_eq!(depths, [Some(1), Some(16), Some(64)]);
    assert_eq!(report["machine"]["file_system"], "fuse", "{report}");
    let cases = report["measurements"].as_array().expect("cases");
    // Sequential, two checkpoints and durable writes, buffered and direct.
    assert_eq!(cases.len(), 8, "{report}");
    for case in cases.iter().filter(|case| case["workload"] == "durable") {
        // 200 writes, one after the other, none of which is faster than the disk.
        assert!(case["seconds"]["median"].as_f64() >= Some(0.2), "{case}");
    }
}

#[test]
fn no_mount_is_left_after_a_signal_or_after_the_run_that_follows_a_kill() {
    if !need::fuse() {
        return;
    }
    let home = tempfile::tempdir().expect("a directory");
    let home = home.path();
    let endless = ["sequential", "--io-method", "worker", "--repetitions", "1000"];
    let endless = [&endless[..], &["--spread", "0.0001", "--max-time", "86400"]].concat();
    let start = || {
        let running = Running::start(&mut bench(home, "latency=1ms", &endless));
        while !is_mounted(home) {}
        running
    };
    let running = start();
    running.signal(Signal::INT);
    let ended = running.wait_for_end();
    assert_eq!(ended.status.code(), Some(130), "{ended:?}");
    assert!(!is_mounted(home) && !scratch(home).exists(), "{ended:?}");
    // The other process notices that ours was killed, and unmounts.
    let running = start();
    running.signal(Signal::KILL);
    running.wait_for_end();
    while is_mounted(home) || serving(home).is_some() {}
    report(home, &Running::start(&mut bench(home, "latency=1ms", &QUICK)).wait_for_end());
    // Both are killed, and the mount stays.
    let running = start();
    kill_process(serving(home).expect("it serves"), Signal::KILL).expect("killed");
    running.signal(Signal::KILL);
    running.wait_for_end();
    assert!(is_mounted(home));
    report(home, &Running::start(&mut bench(home, "latency=1ms", &QUICK)).wait_for_end());
}

#[test]
fn a_machine_without_fuse_is_refused() {
    if !need::fuse() {
        return;
    }
    let home = tempfile::tempdir().expect("a directory");
    // Another device in its place, for this command only.
    let mut command = Command::new("unshare");
    command.args(["--mount", "sh", "-c", "mount --bind /dev/null /dev/fuse && exec \"$@\"", "sh"]);
    command.arg(binary()).args(["bench", "--scale", "1", "--slow-disk", "gp3", "--scratch"]);
    command.arg(home.path()).args(QUICK);
    let ended = Running::start(&mut command).wait_for_end();
    assert_eq!(ended.status.code(), Some(3), "{ended:?}");
    assert!(ended.stderr.contains("error: could not mount"), "{ended:?}");
    assert!(!scratch(home.path()).exists(), "{ended:?}");
}

#[test]
fn a_server_on_the_slow_disk_does_the_same_work() {
    if !need::fuse() {
        return;
    }
    let Some(programs) = need::server() else { return };
    let home = tempfile::tempdir().expect("a directory");
    let server = ["--postgres", programs];
    let work = ["linear_10", "--scan", "bitmap", "--selectivity", "1", "--io-method", "worker"];
    let arguments = [&work[..], &server, &["--io-direct=", "--repetitions", "1"]].concat();
    // The directory is ours, and the server's user must get through it.
    let open = std::os::unix::fs::PermissionsExt::from_mode(0o755);
    fs::set_permissions(home.path(), open).expect("set");
    let run =
        |arguments: &[&str]| Running::start(&mut bench(home.path(), "latency=1ms", arguments));
    let first = report(home.path(), &run(&arguments).wait_for_end());
    let cases = first["measurements"].as_array().expect("cases");
    assert!(cases.len() == 2 && cases[0]["blocks"] == cases[1]["blocks"], "{first}");
    assert_eq!(first["machine"]["file_system"], "fuse", "{first}");
    // A killed run leaves a server whose files are on the mount.
    let endless = ["--repetitions", "1000", "--spread", "0.0001", "--max-time", "86400"];
    let endless = [&work[..], &server, &endless].concat();
    let running = run(&endless);
    let pid_file = scratch(home.path()).join("slow/cluster/postmaster.pid");
    while !fs::read_to_string(&pid_file).is_ok_and(|text| text.contains("ready")) {}
    running.signal(Signal::KILL);
    running.wait_for_end();
    report(home.path(), &run(&arguments).wait_for_end());
}
