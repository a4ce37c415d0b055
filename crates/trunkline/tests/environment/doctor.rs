//! `trunkline doctor` names the right cause if io_uring doesn't work: a seccomp filter, the sysctl, a
//! limit, or the container.
//!
//! ```text
//!   test ── filter, limit or mount namespace ──▶ trunkline doctor ──▶ its child, as the owner
//! ```
//! Each test has a cluster with an owner of its own, because the kernel counts locked memory for each
//! user, and tests run at the same time.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use seccompiler::SeccompAction;
use serde_json::Value;

use crate::child::{Ended, Running};
use crate::need;
use crate::seccomp::{IO_URING_ENTER, IO_URING_REGISTER, IO_URING_SETUP, run_without};
use crate::verify::binary;

/// What the command found.
#[derive(Debug)]
pub(crate) struct Diagnosis {
    pub(crate) code: Option<i32>,
    pub(crate) report: Value,
    stderr: String,
}

impl Diagnosis {
    pub(crate) fn of(ended: Ended) -> Diagnosis {
        let report = serde_json::from_str(&ended.stdout).unwrap_or(Value::Null);
        Diagnosis { code: ended.status.code(), report, stderr: ended.stderr }
    }

    /// The check with this name; null if there is none.
    pub(crate) fn check(&self, name: &str) -> &Value {
        let checks = self.report["checks"].as_array();
        let found = checks.into_iter().flatten().find(|check| check["name"] == name);
        found.unwrap_or(&Value::Null)
    }

    /// Asserts that a check ended in this way, for a reason that contains this text.
    pub(crate) fn assert(&self, name: &str, status: &str, reason: &str) {
        let check = self.check(name);
        let found = check["reason"].as_str().unwrap_or_default();
        assert!(check["status"] == status && found.contains(reason), "{name}: {check}\n{self:?}");
    }

    /// The prediction for a version and an I/O method.
    pub(crate) fn prediction(&self, version: u32, method: &str) -> &Value {
        let all = self.report["predictions"].as_array().expect("predictions");
        let found = all.iter().find(|it| it["version"] == version && it["io_method"] == method);
        found.expect("a prediction")
    }
}

/// Creates a cluster of version 18 with this configuration, which belongs to user `uid`.
pub(crate) fn make_cluster(parent: &Path, configuration: &str, uid: u32) -> PathBuf {
    let path = parent.join("data");
    for name in ["base/5", "global"] {
        fs::create_dir_all(path.join(name)).expect("made");
    }
    fs::write(path.join("PG_VERSION"), "18\n").expect("written");
    fs::write(path.join("postgresql.conf"), configuration).expect("written");
    fs::write(path.join("base/5/1259"), vec![0; 8192]).expect("written");
    for name in ["", "PG_VERSION", "postgresql.conf", "base", "base/5", "base/5/1259", "global"] {
        std::os::unix::fs::chown(path.join(name), Some(uid), Some(uid)).expect("owned");
    }
    path
}

/// This user if we are root, or else ourselves.
pub(crate) fn owner(uid: u32) -> u32 {
    let own = rustix::process::geteuid();
    if own.is_root() { uid } else { own.as_raw() }
}

/// The command, after the arguments of a program that starts it, if there are any.
pub(crate) fn doctor(before: &[&str], directory: &Path, args: &[&str]) -> Command {
    let mut command = match before.split_first() {
        Some((program, arguments)) => {
            let mut command = Command::new(program);
            command.args(arguments).arg(binary());
            command
        }
        None => Command::new(binary()),
    };
    command.env_remove("PGDATA").current_dir("/");
    command.args(["doctor", "--json", "-D"]).arg(directory).args(args);
    command
}

pub(crate) fn run(mut command: Command) -> Diagnosis {
    Diagnosis::of(Running::start(&mut command).wait_for_end())
}

/// A shell command that hides the system's values of the sysctl in a mount namespace of its own, and
/// then becomes its arguments. The values of the host don't change.
pub(crate) const WITH_SYSCTL: &str = "mount -t tmpfs tmpfs /proc/sys/kernel && \
    echo $0 > /proc/sys/kernel/io_uring_disabled && \
    echo 1234 > /proc/sys/kernel/io_uring_group && exec \"$@\"";

/// One that leaves the marks of podman.
const IN_CONTAINER: &str = "mount -t tmpfs tmpfs /run && touch /run/.containerenv && exec \"$@\"";

#[test]
fn seccomp_is_the_cause() {
    if !need::root() {
        return;
    }
    let home = tempfile::tempdir().expect("a directory");
    let data = make_cluster(home.path(), "io_method = io_uring\n", 61_001);
    let (eperm, enosys) = (1, 38);
    // A server that can open its rings starts, and crashes at its first read. It registers nothing,
    // while our engine asks each ring for its opcodes.
    for (call, action, name, reason, starts, works) in [
        (IO_URING_SETUP, SeccompAction::Errno(eperm), "set up", "a seccomp filter", false, false),
        (IO_URING_SETUP, SeccompAction::Errno(enosys), "set up", "a seccomp filter", false, false),
        (IO_URING_SETUP, SeccompAction::KillProcess, "set up", "kills programs", false, false),
        (IO_URING_ENTER, SeccompAction::Errno(eperm), "use", "a seccomp filter", true, false),
        (IO_URING_REGISTER, SeccompAction::Errno(eperm), "use", "a seccomp filter", true, true),
    ] {
        let found = Diagnosis::of(run_without(call, action, doctor(&[], &data, &[])));
        found.assert(name, "missing", reason);
        let fix = found.check(name)["fix"].as_str().unwrap_or_default();
        assert!(fix.contains("io_uring_") || fix.contains("@aio"), "{found:?}");
        for version in [18, 19] {
            let prediction = found.prediction(version, "io_uring");
            assert_eq!(prediction["starts"], starts, "{prediction}");
            assert_eq!(prediction["works"], works, "{prediction}");
            assert_eq!(found.prediction(version, "worker")["works"], true);
        }
        // The configuration asks for it.
        match works {
            true => found.assert("PostgreSQL 18: io_method=io_uring", "good", "would start"),
            false => found.assert("PostgreSQL 18: io_method=io_uring", "missing", reason),
        }
        assert_eq!(found.code, Some(i32::from(!works)), "{found:?}");
        // -c overrides the configuration.
        let other = doctor(&[], &data, &["-c", "io_method=worker"]);
        let found = Diagnosis::of(run_without(call, SeccompAction::Errno(eperm), other));
        assert_eq!(found.code, Some(0), "{found:?}");
    }
}

#[test]
fn the_sysctl_is_the_cause() {
    if !need::root() {
        return;
    }
    let home = tempfile::tempdir().expect("a directory");
    let data = make_cluster(home.path(), "", 61_002);
    for (value, reason) in [
        ("2", "the sysctl kernel.io_uring_disabled is 2"),
        ("1", "kernel.io_uring_group admits group 1234, but not user 61002"),
    ] {
        let before = ["unshare", "--mount", "sh", "-c", WITH_SYSCTL, value];
        let command = doctor(&before, &data, &["--io-method", "io_uring"]);
        // The kernel's own value doesn't forbid it, so a filter does.
        let found = Diagnosis::of(run_without(IO_URING_SETUP, SeccompAction::Errno(1), command));
        found.assert("set up", "missing", reason);
        assert_eq!(found.code, Some(1), "{found:?}");
    }
    // What was tried counts, not what the file says.
    let before = ["unshare", "--mount", "sh", "-c", WITH_SYSCTL, "2"];
    run(doctor(&before, &data, &[])).assert("set up", "good", "read a file");
}

#[test]
fn a_container_changes_the_fix() {
    if !need::root() {
        return;
    }
    let home = tempfile::tempdir().expect("a directory");
    let data = make_cluster(home.path(), "", 61_003);
    let before =
        ["unshare", "--mount", "--pid", "--fork", "--mount-proc", "sh", "-c", IN_CONTAINER, "sh"];
    let command = doctor(&before, &data, &[]);
    let found = Diagnosis::of(run_without(IO_URING_SETUP, SeccompAction::Errno(1), command));
    assert_eq!(found.report["container"], "podman", "{found:?}");
    found.assert("set up", "missing", "a seccomp filter of podman forbids it");
    let fix = found.check("set up")["fix"].as_str().unwrap_or_default();
    assert!(fix.starts_with("podman run --security-opt seccomp="), "{fix}");
}

#[test]
fn the_limit_of_locked_memory_is_the_cause() {
    if !need::root() {
        return;
    }
    let home = tempfile::tempdir().expect("a directory");
    let data = make_cluster(home.path(), "io_method = io_uring\n", 61_004);
    // 142 rings need 1,136 kB where the kernel counts them. The limit that is enough is far larger,
    // because the kernel gives back the memory of the previous rings a little later.
    for (limit, is_enough) in [(0, false), (1024 << 10, false), (4096 << 10, true)] {
        let limit = format!("--memlock={limit}:{limit}");
        let found = run(doctor(&["prlimit", &limit], &data, &[]));
        let prediction = found.prediction(18, "io_uring");
        assert_eq!(prediction["rings"], 142, "{prediction}");
        assert_eq!(prediction["ring_bytes"], 142 * 8192, "{prediction}");
        let starts = prediction["is_charged"] == false || is_enough;
        assert_eq!(prediction["starts"], starts, "{limit}: {found:?}");
        assert_eq!(found.code, Some(i32::from(!starts)), "{found:?}");
        if !starts {
            let reason = prediction["reason"].as_str().expect("a reason");
            assert!(reason.contains("RLIMIT_MEMLOCK is "), "{reason}");
            let fix = prediction["fix"].as_str().expect("a fix");
            assert!(fix.contains("LimitMEMLOCK="), "{fix}");
        }
        found.assert("RLIMIT_MEMLOCK", "limited", "of all processes of user 61004");
    }
}

#[test]
fn the_limit_of_open_files_is_the_cause() {
    if !need::root() {
        return;
    }
    let home = tempfile::tempdir().expect("a directory");
    let data = make_cluster(home.path(), "", 61_005);
    for (limit, others, uring) in [
        (62, false, false),
        (63, true, false),
        (100, true, false),
        (204, true, false),
        (205, true, true),
    ] {
        let limit = format!("--nofile={limit}:{limit}");
        let found = run(doctor(&["prlimit", &limit], &data, &[]));
        for version in [18, 19] {
            for (method, starts) in [("worker", others), ("sync", others), ("io_uring", uring)] {
                let prediction = found.prediction(version, method);
                assert_eq!(prediction["starts"], starts, "{limit}: {prediction}");
                let reason = prediction["reason"].as_str().expect("a reason");
                assert!(starts || reason.contains("RLIMIT_NOFILE is "), "{reason}");
            }
        }
        // Nothing was asked for.
        assert_eq!(found.code, Some(0), "{found:?}");
    }
}

/// After a crash, the number in `postmaster.pid` may be that of another process.
#[test]
fn a_server_runs_in_its_data_directory() {
    let home = tempfile::tempdir().expect("a directory");
    let data = make_cluster(home.path(), "", owner(61_007));
    for (directory, is_server) in [(home.path(), false), (&*data, true)] {
        let mut command = Command::new("cat");
        // It ends with its input, which ends with us.
        command.stdin(Stdio::piped()).current_dir(directory);
        let mut process = command.spawn().expect("started");
        fs::write(data.join("postmaster.pid"), format!("{}\n", process.id())).expect("written");
        let found = run(doctor(&[], &data, &[]));
        assert_eq!(found.check("running server").is_object(), is_server, "{found:?}");
        drop(process.stdin.take());
        process.wait().expect("ended");
    }
}

#[test]
fn what_was_asked_for_decides_the_exit_status() {
    let home = tempfile::tempdir().expect("a directory");
    let data =
        make_cluster(home.path(), "huge_pages = on\nshared_buffers = 1000GB\n", owner(61_006));
    let found = run(doctor(&[], &data, &[]));
    found.assert("PostgreSQL 18: huge_pages=on", "missing", "would not start");
    for method in ["io_uring", "worker", "sync"] {
        let prediction = found.prediction(18, method);
        assert_eq!(prediction["starts"], false, "{prediction}");
        assert!(prediction["reason"].as_str().is_some_and(|it| it.contains("huge_pages = on")));
    }
    assert_eq!(found.code, Some(1), "{found:?}");
    let found = run(doctor(&[], &data, &["-c", "huge_pages=try"]));
    assert_eq!(found.code, Some(0), "{found:?}");
    let found = run(doctor(&[], &data, &["-c", "huge_pages=off", "-c", "io_method=sync"]));
    found.assert("PostgreSQL 18: io_method=sync", "good", "would start");
    // The settings of a server, and one that the engine has, too.
    let args = ["-c", "max_connections=50", "-c", "io_workers=5", "-c", "huge_pages=off"];
    let found = run(doctor(&[], &data, &args));
    assert_eq!(found.prediction(18, "io_uring")["rings"], 92, "{found:?}");
    let reason = found.prediction(18, "worker")["reason"].as_str().unwrap_or_default();
    assert!(reason.contains("io_workers=5"), "{found:?}");
    // A configuration that the server refuses, whatever else it asks for.
    for args in [["-c", "max_connections=3"], ["-c", "max_connections=262143"]] {
        let found = run(doctor(&[], &data, &[&args[..], &["-c", "huge_pages=off"]].concat()));
        found.assert("PostgreSQL 18: configuration", "missing", "would not start");
        assert_eq!(found.prediction(18, "sync")["starts"], false, "{found:?}");
        assert_eq!(found.code, Some(1), "{found:?}");
    }
    fs::write(data.join("postgresql.conf"), "max_connections = 100\nwork_mem 4MB'\n")
        .expect("written");
    let found = run(doctor(&[], &data, &[]));
    found.assert("PostgreSQL 18: configuration", "missing", "syntax error in file");
    assert_eq!(found.prediction(18, "worker")["starts"], false, "{found:?}");
    assert_eq!(found.code, Some(1), "{found:?}");
    let found = run(doctor(&[], &data, &["-c", "work_mem=4MB"]));
    assert_eq!(found.code, Some(2), "{found:?}");
    assert!(found.stderr.contains("unrecognized configuration parameter"), "{found:?}");
    fs::write(data.join("PG_VERSION"), "18x").expect("written");
    let found = run(doctor(&[], &data, &[]));
    assert_eq!(found.code, Some(3), "{found:?}");
    assert!(found.stderr.contains("expected a version from 15 to 19"), "{found:?}");
    let found = run(doctor(&[], &home.path().join("missing"), &[]));
    assert_eq!(found.code, Some(3), "{found:?}");
}
