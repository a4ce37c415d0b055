//! `trunkline doctor` on different file systems: it names what they lack, and never writes into a
//! cluster.
//!
//! ```text
//!   mount ──▶ data/       the cluster: must not change
//!         └─▶ (beside it)  scratch files without a name, or none at all
//! ```

use std::collections::BTreeMap;
use std::fs;
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};
use std::process::Command;

use rustix::process::{Pid, Signal};

use crate::child::Running;
use crate::doctor::{Diagnosis, doctor, make_cluster, owner, run};
use crate::looped::{Looped, run as run_program};
use crate::need;
use crate::verify::binary;

const IMAGE_BYTES: u64 = 256 << 20;

/// A mounted file system. Dropping it unmounts it.
struct Mounted(PathBuf);

impl Mounted {
    fn new(arguments: &[&str], path: PathBuf) -> Mounted {
        fs::create_dir(&path).expect("made");
        let path_text = path.to_str().expect("a name").to_owned();
        run_program("mount", &[arguments, &[&path_text]].concat()).expect("mounted");
        Mounted(path)
    }
}

impl Drop for Mounted {
    fn drop(&mut self) {
        let _ = run_program("umount", &[self.0.to_str().expect("a name")]);
    }
}

/// What changes of a file if it is written.
pub(crate) type Status = (u64, i64, i64, i64, i64);

/// All files below a directory.
pub(crate) fn files(directory: &Path) -> BTreeMap<PathBuf, Status> {
    let mut found = BTreeMap::new();
    let mut pending = vec![directory.to_owned()];
    while let Some(path) = pending.pop() {
        let stat = fs::symlink_metadata(&path).expect("exists");
        if stat.is_dir() {
            let entries = fs::read_dir(&path).expect("a directory");
            pending.extend(entries.map(|entry| entry.expect("an entry").path()));
        }
        let times = (stat.mtime(), stat.mtime_nsec(), stat.ctime(), stat.ctime_nsec());
        found.insert(path, (stat.size(), times.0, times.1, times.2, times.3));
    }
    found
}

/// Runs the command on a cluster, which must not change. Nothing may be left beside it.
fn examine(data: &Path, args: &[&str]) -> Diagnosis {
    let names = || {
        let entries = fs::read_dir(data.parent().expect("a parent")).expect("a directory");
        let mut names: Vec<_> = entries.map(|entry| entry.expect("an entry").path()).collect();
        names.sort();
        names
    };
    let before = (files(data), names());
    let found = run(doctor(&[], data, args));
    assert_eq!((files(data), names()), before, "{found:?}");
    found
}

/// Direct I/O on a file system that accepts it only to ignore it, or not at all.
fn assert_no_direct(found: &Diagnosis, text: &str) {
    match found.check("direct I/O")["status"].as_str() {
        Some("good") => found.assert("direct I/O caution", "limited", text),
        _ => found.assert("direct I/O", "missing", "O_DIRECT"),
    }
}

#[test]
fn tmpfs_and_overlayfs_are_named() {
    if !need::root() {
        return;
    }
    let home = tempfile::tempdir().expect("a directory");
    let tmpfs = Mounted::new(&["-t", "tmpfs", "tmpfs"], home.path().join("tmpfs"));
    let data = make_cluster(&tmpfs.0, "", 61_010);
    let found = examine(&data, &[]);
    found.assert("file system", "limited", "tmpfs on ");
    assert_no_direct(&found, "tmpfs accepts O_DIRECT and ignores it");
    assert_eq!(found.code, Some(0), "{found:?}");

    let [lower, upper, work] = ["lower", "upper", "work"].map(|name| {
        let path = tmpfs.0.join(name);
        fs::create_dir(&path).expect("made");
        path.to_str().expect("a name").to_owned()
    });
    let options = format!("lowerdir={lower},upperdir={upper},workdir={work}");
    let arguments = ["-t", "overlay", "-o", &options, "overlay"];
    let overlay = Mounted::new(&arguments, home.path().join("overlay"));
    let data = make_cluster(&overlay.0, "", 61_010);
    let found = examine(&data, &[]);
    found.assert("file system", "limited", "overlay on ");
}

#[test]
fn ext4_is_good_until_it_is_read_only() {
    if !need::root() {
        return;
    }
    let made = Looped::new(&["mkfs.ext4", "-q"], IMAGE_BYTES, "ext4", "noatime");
    let Some(mount) = made else { return };
    let data = make_cluster(&mount.path(), "debug_io_direct = data\n", 61_011);
    let found = examine(&data, &[]);
    found.assert("file system", "good", "ext4 on ");
    found.assert("direct I/O", "good", "were written and read");
    found.assert("PostgreSQL 18: debug_io_direct=data", "good", "works");
    assert_eq!(found.code, Some(0), "{found:?}");
    assert!(found.check("atomic writes of 8 kB")["status"].is_string(), "{found:?}");
    assert!(found.check("scheduler")["reason"].is_string(), "{found:?}");

    let path = mount.path();
    let path = path.to_str().expect("a name");
    run_program("mount", &["-o", "remount,ro", path]).expect("mounted");
    let found = examine(&data, &[]);
    found.assert("writes", "missing", "read-only");
    found.assert("direct I/O", "limited", "4 kB of a file were read");
    for method in ["io_uring", "worker", "sync"] {
        let prediction = found.prediction(18, method);
        assert_eq!(prediction["starts"], false, "{prediction}");
        assert!(prediction["reason"].as_str().is_some_and(|it| it.contains("is read-only")));
    }
    // Read-only is not something that the configuration asks about.
    assert_eq!(found.code, Some(0), "{found:?}");
}

/// ramfs has no direct I/O at all. PostgreSQL starts on it, and fails when it opens a data file.
#[test]
fn a_file_system_without_direct_io_is_refused() {
    if !need::root() {
        return;
    }
    let home = tempfile::tempdir().expect("a directory");
    let ramfs = Mounted::new(&["-t", "ramfs", "ramfs"], home.path().join("ramfs"));
    let data = make_cluster(&ramfs.0, "debug_io_direct = data\n", 61_016);
    let found = examine(&data, &[]);
    found.assert("direct I/O", "missing", "open with O_DIRECT");
    found.assert("PostgreSQL 18: debug_io_direct=data", "missing", "doesn't work in");
    for method in ["io_uring", "worker", "sync"] {
        let prediction = found.prediction(18, method);
        assert_eq!(prediction["starts"], true, "{prediction}");
        assert_eq!(prediction["works"], false, "{prediction}");
        let reason = prediction["reason"].as_str().unwrap_or_default();
        assert!(reason.contains("fail at the first connection"), "{reason}");
    }
    assert_eq!(found.code, Some(1), "{found:?}");
    let found = examine(&data, &["-c", "debug_io_direct="]);
    assert_eq!(found.prediction(18, "worker")["works"], true, "{found:?}");
    assert_eq!(found.code, Some(0), "{found:?}");
}

/// Nothing in a log directory outside the data directory says that it belongs to a cluster.
#[test]
fn a_log_on_its_own_mount_is_not_written() {
    if !need::root() {
        return;
    }
    let home = tempfile::tempdir().expect("a directory");
    let data = make_cluster(home.path(), "", 61_015);
    let tmpfs = Mounted::new(&["-t", "tmpfs", "tmpfs"], home.path().join("wal"));
    // The root of the mount last: with a log in it, it is a place for nothing else.
    for name in ["pg_wal", ""] {
        let log = tmpfs.0.join(name);
        fs::create_dir_all(&log).expect("made");
        fs::write(log.join("000000010000000000000001"), vec![0; 8192]).expect("written");
        // Leftovers of ours, as far as their names go.
        for place in [&log, &tmpfs.0] {
            fs::write(place.join(".trunkline-scratch-17"), "").expect("written");
        }
        let _ = fs::remove_file(data.join("pg_wal"));
        std::os::unix::fs::symlink(&log, data.join("pg_wal")).expect("linked");
        let before = files(&log);
        let found = run(doctor(&[], &data, &[]));
        let checks = found.report["checks"].as_array().expect("checks").clone();
        let area = log.canonicalize().expect("exists").display().to_string();
        assert!(checks.iter().any(|check| check["area"] == area), "{found:?}");
        match name {
            "" => assert_eq!(files(&log), before, "{found:?}"),
            // Beside it, leftovers are removed.
            _ => {
                assert!(log.join(".trunkline-scratch-17").exists(), "{found:?}");
                assert!(!tmpfs.0.join(".trunkline-scratch-17").exists(), "{found:?}");
            }
        }
    }
}

#[test]
fn btrfs_has_cautions() {
    if !need::root() {
        return;
    }
    let made = Looped::new(&["mkfs.btrfs", "-q", "-f"], IMAGE_BYTES, "btrfs", "defaults");
    let Some(mount) = made else { return };
    let data = make_cluster(&mount.path(), "", 61_012);
    let found = examine(&data, &[]);
    found.assert("file system", "good", "btrfs on ");
    found.assert("direct I/O", "good", "were written and read");
    found.assert("direct I/O caution", "limited", "btrfs");
    // A directory without checksums is fine.
    let plain = mount.path().join("plain");
    fs::create_dir(&plain).expect("made");
    run_program("chattr", &["+C", plain.to_str().expect("a name")]).expect("changed");
    let found = run(doctor(&[], &plain, &[]));
    assert!(found.check("direct I/O caution").is_null(), "{found:?}");
}

/// The owner of a cluster often may not write beside it.
#[test]
fn an_ordinary_user_gets_as_far_as_possible() {
    if !need::root() {
        return;
    }
    let made = Looped::new(&["mkfs.ext4", "-q"], IMAGE_BYTES, "ext4", "noatime");
    let Some(mount) = made else { return };
    let data = make_cluster(&mount.path(), "io_method = io_uring\n", 61_013);
    // The build directory may not be open to other users, nor may the mount's parent directory.
    let parent = mount.path().parent().expect("a parent").to_owned();
    run_program("chmod", &["755", parent.to_str().expect("a name")]).expect("changed");
    let copy = mount.path().join("trunkline");
    // Another process copies it: a program can't be started while it is open for writing, and children
    // of other tests may have a copy of our descriptor for a moment.
    let own = binary().to_str().expect("a name");
    run_program("cp", &[own, copy.to_str().expect("a name")]).expect("copied");
    let before = files(&data);
    let mut command = Command::new("setpriv");
    command.args(["--reuid=61013", "--regid=61013", "--clear-groups"]).arg(&copy);
    command.args(["doctor", "--json", "-D"]).arg(&data).env_remove("PGDATA").current_dir("/");
    let found = run(command);
    found.assert("set up", "good", "read a file");
    found.assert("direct I/O", "limited", "no scratch file could be created (Permission denied)");
    assert_eq!(files(&data), before);
}

/// Number of children of a process.
fn children(parent: Pid) -> usize {
    let parent = parent.as_raw_pid().to_string();
    let processes = fs::read_dir("/proc").expect("mounted").flatten();
    let stats = processes.filter_map(|entry| fs::read_to_string(entry.path().join("stat")).ok());
    let is_child = |stat: &String| {
        let fields = stat.rsplit(')').next().unwrap_or_default();
        fields.split_whitespace().nth(1) == Some(&*parent)
    };
    stats.filter(is_child).count()
}

/// Whenever it is killed, the next start leaves nothing behind.
#[test]
fn a_kill_leaves_nothing_behind() {
    let home = tempfile::tempdir().expect("a directory");
    let data = make_cluster(home.path(), "", owner(61_014));
    let before = files(&data);
    // While its child tries rings, and after that, while it tries the file system.
    for after_child in [false, true] {
        let running = Running::start(&mut doctor(&[], &data, &[]));
        let has_child = || children(running.pid()) > 0;
        while !has_child() && !running.has_ended() {}
        while after_child && has_child() && !running.has_ended() {}
        running.signal(Signal::KILL);
        running.wait_for_end();
    }
    // As after a kill where files have names from the start.
    fs::write(home.path().join(".trunkline-scratch-4194304"), "").expect("written");
    assert!(run(doctor(&[], &data, &[])).report.is_object());
    let names: Vec<_> = fs::read_dir(home.path()).expect("a directory").collect();
    assert_eq!(names.len(), 1, "{names:?}");
    assert_eq!(files(&data), before);
}
