//! `trunkline doctor`, started by root, tries rings as the server's user: with its groups and its share
//! of locked memory, even if it can't execute the program, and never as another user.
//!
//! ```text
//!   test ──▶ trunkline doctor (root) ──▶ probe-rings (root, then the owner of the cluster)
//!    └── rings of the same owner
//! ```

use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::path::Path;
use std::process::Command;

use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::process::{Pid, PidfdFlags, Signal, pidfd_open, pidfd_send_signal};
use seccompiler::SeccompAction;
use trunkline_aio::facade::channel::bounded;
use trunkline_aio::facade::thread;
use trunkline_aio::open_rings;

use crate::child::Running;
use crate::doctor::{Diagnosis, WITH_SYSCTL, doctor, make_cluster, run};
use crate::fuse::PATIENCE;
use crate::need;
use crate::seccomp::{IO_URING_SETUP, run_without};
use crate::verify::binary;

/// Calls `body` while a thread of user `uid` has `count` rings open.
fn with_rings_of<T>(uid: u32, count: u32, body: impl FnOnce() -> T) -> T {
    let ((opened, is_open), (end, ended)) = (bounded(1), bounded::<()>(1));
    let holder = thread::spawn("rings", move || {
        let user = rustix::process::Uid::from_raw(uid);
        rustix::thread::set_thread_res_uid(user, user, user).expect("another user");
        let rings = open_rings(count, 64);
        opened.send((rings.opened, rings.errno)).expect("received");
        ended.receive();
        drop(rings);
    });
    let holder = holder.expect("a thread");
    assert_eq!(is_open.receive(), Some((count, None)), "rings of user {uid}");
    let result = body();
    end.send(()).expect("received");
    holder.join().expect("it ended");
    result
}

#[test]
fn other_processes_of_the_user_are_the_cause() {
    if !need::root() {
        return;
    }
    let home = tempfile::tempdir().expect("a directory");
    let data = make_cluster(home.path(), "io_method = io_uring\n", 61_020);
    // 142 rings need 1,136 kB of 1,536, but 800 are in use.
    let found =
        with_rings_of(61_020, 100, || run(doctor(&["prlimit", "--memlock=1572864"], &data, &[])));
    let prediction = found.prediction(18, "io_uring");
    let is_charged = prediction["is_charged"] == true;
    assert_eq!(prediction["starts"], !is_charged, "{prediction}");
    if is_charged {
        let reason = prediction["reason"].as_str().expect("a reason");
        assert!(reason.contains("other processes of user 61020"), "{reason}");
        // More than the limit.
        let fix = prediction["fix"].as_str().expect("a fix");
        assert!(fix.starts_with("ulimit -l 3072,"), "{fix}");
    }
}

/// With as little as this, the rings of earlier trials must have been given back.
#[test]
fn little_locked_memory_is_enough_for_each_feature() {
    if !need::root() {
        return;
    }
    let home = tempfile::tempdir().expect("a directory");
    let data = make_cluster(home.path(), "", 61_021);
    let found = run(doctor(&["prlimit", "--memlock=32768"], &data, &[]));
    let checks = found.report["checks"].as_array().expect("checks");
    let features: Vec<_> = checks
        .iter()
        .filter(|check| check["name"].as_str().is_some_and(|name| name.starts_with("IORING_")))
        .collect();
    assert!(features.len() >= 10, "{found:?}");
    for check in features {
        let reason = check["reason"].as_str().expect("a reason");
        assert!(!reason.contains("RLIMIT_MEMLOCK"), "{check}");
    }
}

/// A member of the group in `kernel.io_uring_group` isn't refused by the sysctl.
#[test]
fn supplementary_groups_count() {
    if !need::root() {
        return;
    }
    let home = tempfile::tempdir().expect("a directory");
    let data = make_cluster(home.path(), "", 61_022);
    let (users, groups) = (home.path().join("passwd"), home.path().join("group"));
    fs::write(&users, "root:x:0:0::/:/bin/sh\nmember:x:61022:61022::/:/bin/sh\n").expect("written");
    let members = |members: &str| {
        let text = format!("root:x:0:\nmember:x:61022:\nuring:x:1234:{members}\n");
        fs::write(&groups, text).expect("written");
    };
    let script = format!(
        "mount --bind {} /etc/passwd && mount --bind {} /etc/group && {WITH_SYSCTL}",
        users.display(),
        groups.display()
    );
    for (names, reason) in [("", "but not user 61022"), ("member", "a seccomp filter")] {
        members(names);
        let before = ["unshare", "--mount", "sh", "-c", &script, "1"];
        let command = doctor(&before, &data, &[]);
        let found = Diagnosis::of(run_without(IO_URING_SETUP, SeccompAction::Errno(1), command));
        found.assert("set up", "missing", reason);
    }
}

#[test]
fn the_user_need_not_be_able_to_execute_the_program() {
    if !need::root() {
        return;
    }
    let home = tempfile::tempdir().expect("a directory");
    let data = make_cluster(home.path(), "", 61_023);
    let copy = home.path().join("trunkline");
    // Another process copies it: a program can't be started while it is open for writing, and children
    // of other tests may have a copy of our descriptor for a moment.
    assert!(Command::new("cp").arg(binary()).arg(&copy).status().expect("runs").success());
    fs::set_permissions(&copy, fs::Permissions::from_mode(0o700)).expect("changed");
    let mut command = Command::new("prlimit");
    command.arg("--memlock=0").arg(&copy).args(["doctor", "--json", "-D"]).arg(&data);
    command.env_remove("PGDATA").current_dir("/");
    let found = run(command);
    // Root would not be subject to the limit.
    found.assert("RLIMIT_MEMLOCK", "limited", "of all processes of user 61023");
}

#[test]
fn what_the_user_could_not_try_is_not_known() {
    if !need::root() {
        return;
    }
    let home = tempfile::tempdir().expect("a directory");
    let data = make_cluster(home.path(), "io_method = io_uring\n", 61_024);
    // This namespace has no user but root, which is not the root of the host.
    let found = run(doctor(&["unshare", "--user", "--map-root-user"], &data, &[]));
    found.assert("user", "limited", "could not become user 65534");
    let prediction = found.prediction(18, "io_uring");
    assert!(prediction["starts"].is_null() && prediction["works"].is_null(), "{prediction}");
    assert_eq!(found.code, Some(1), "{found:?}");
    // The capability is there, without its effect.
    let memlock = found.check("RLIMIT_MEMLOCK")["reason"].as_str().unwrap_or_default();
    assert!(!memlock.contains("CAP_IPC_LOCK"), "{found:?}");
}

/// The child of a process that has rings open, if there is one now.
fn child_with_rings(parent: Pid) -> Option<Pid> {
    let parent = parent.as_raw_pid().to_string();
    let processes = fs::read_dir("/proc").expect("mounted").flatten();
    let numbers = processes.filter_map(|entry| entry.file_name().to_str()?.parse::<i32>().ok());
    let mut children = numbers.filter(|number| {
        let stat = fs::read_to_string(format!("/proc/{number}/stat")).unwrap_or_default();
        // The name in parentheses may contain anything.
        let fields = stat.rsplit(')').next().unwrap_or_default();
        fields.split_whitespace().nth(1) == Some(&*parent)
    });
    let child = children.next()?;
    let files = fs::read_dir(Path::new("/proc").join(child.to_string()).join("fd")).ok()?.flatten();
    let mut links = files.filter_map(|file| fs::read_link(file.path()).ok());
    links.any(|link| link.as_os_str() == "anon_inode:[io_uring]").then(|| Pid::from_raw(child))?
}

#[test]
fn the_child_ends_with_doctor() {
    if !need::root() {
        return;
    }
    let home = tempfile::tempdir().expect("a directory");
    let data = make_cluster(home.path(), "", 61_025);
    // The child is easier to catch while it opens many rings. Once it has stopped, it can't end by
    // itself.
    let stopped = (0..100).find_map(|_| {
        let running = Running::start(&mut doctor(&[], &data, &["-c", "max_connections=800"]));
        let child = loop {
            match child_with_rings(running.pid()) {
                Some(child) => break child,
                None if running.has_ended() => return None,
                None => {}
            }
        };
        let pidfd = pidfd_open(child, PidfdFlags::empty()).ok()?;
        pidfd_send_signal(&pidfd, Signal::STOP).ok()?;
        Some((running, pidfd))
    });
    let (running, pidfd) = stopped.expect("a child was caught");
    running.signal(Signal::KILL);
    let timeout = Timespec::try_from(PATIENCE).expect("a short time");
    let ended = poll(&mut [PollFd::new(&pidfd, PollFlags::IN)], Some(&timeout)).expect("polled");
    let _ = pidfd_send_signal(&pidfd, Signal::KILL);
    assert_eq!(ended, 1, "the child outlived its parent");
    drop(running);
}
