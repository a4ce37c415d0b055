//! `trunkline slow-disk` ends and unmounts, whatever ends it.
//!
//! ```text
//!   kill -9 ──▶ the process ends, its mount stays ──▶ the next start removes it
//!   SIGTERM ──▶ unmounted
//! ```

use std::fs;
use std::io::Write;
use std::path::{Path, PathBuf};
use std::process::Command;

use rustix::process::Signal;

use crate::child::Running;
use crate::looped::run;
use crate::need;
use crate::verify::binary;

/// A directory and a mount point, which is detached when this is dropped.
pub(crate) struct Home(tempfile::TempDir);

impl Home {
    pub(crate) fn new() -> Home {
        let home = Home(tempfile::tempdir().expect("a directory"));
        for path in [home.directory(), home.mount()] {
            fs::create_dir(path).expect("made");
        }
        home
    }

    pub(crate) fn directory(&self) -> PathBuf {
        self.0.path().join("directory")
    }

    pub(crate) fn mount(&self) -> PathBuf {
        self.0.path().join("mount")
    }

    pub(crate) fn start(&self, profile: &str) -> Running {
        let mut command = Command::new(binary());
        command.arg("slow-disk").arg(self.directory()).arg(self.mount());
        Running::start(command.args(["--profile", profile]))
    }

    /// Mounts it, and waits until the command has measured. The mount of a killed process is removed
    /// if there is one.
    fn mounted(&self, is_stale: bool) -> Running {
        let mut running = self.start("latency=1ms");
        running.wait_for_output("error of the median");
        let message = "info: removed a stale mount";
        assert_eq!(running.has_message(message), is_stale, "{message}");
        running
    }

    fn is_mounted(&self) -> bool {
        let mounts = fs::read_to_string("/proc/self/mountinfo").expect("read");
        mounts.contains(self.mount().to_str().expect("a name"))
    }
}

impl Drop for Home {
    fn drop(&mut self) {
        if self.is_mounted() {
            let _ = run("umount", &["-l", self.mount().to_str().expect("a name")]);
        }
    }
}

/// Whether a helper uses this mount point.
fn has_helper(mount: &Path) -> bool {
    let processes = fs::read_dir("/proc").expect("listed").flatten();
    let mut commands = processes.filter_map(|entry| fs::read(entry.path().join("cmdline")).ok());
    let mount = mount.to_str().expect("a name");
    commands.any(|command| {
        let command = String::from_utf8_lossy(&command);
        command.contains("slow-disk-helper") && command.contains(mount)
    })
}

#[test]
fn a_killed_slow_disk_is_cleaned_by_the_next_start() {
    if !need::fuse() {
        return;
    }
    let home = Home::new();
    // Killed while it measures, which would take half a minute.
    let mut running = home.start("latency=10s");
    running.wait_until("its helper", || has_helper(&home.mount()));
    running.signal(Signal::KILL);
    running.wait_for_end();
    assert!(home.is_mounted());
    let running = home.mounted(true);
    let path = home.mount().join("file");
    let mut file = fs::File::create(&path).expect("created");
    file.write_all(b"durable").and_then(|()| file.sync_all()).expect("written");
    // Killed while a file is open.
    running.signal(Signal::KILL);
    running.wait_for_end();
    assert!(home.is_mounted() && fs::read(&path).is_err());
    drop(file);
    let running = home.mounted(true);
    assert_eq!(fs::read(&path).expect("read"), b"durable");
    running.signal(Signal::TERM);
    let ended = running.wait_for_end();
    assert_eq!(ended.status.code(), Some(0), "{ended:?}");
    assert!(ended.stdout.contains("\nReads:    1, 7 bytes\n"), "{ended:?}");
    assert!(!home.is_mounted());
    assert_eq!(fs::read(home.directory().join("file")).expect("read"), b"durable");
    let running = home.mounted(false);
    running.signal(Signal::INT);
    assert_eq!(running.wait_for_end().status.code(), Some(0));
}

#[test]
fn a_signal_ends_a_measurement() {
    if !need::fuse() {
        return;
    }
    let home = Home::new();
    // It would take half a minute.
    let mut running = home.start("latency=10s");
    running.wait_until("its helper", || has_helper(&home.mount()));
    running.signal(Signal::INT);
    let ended = running.wait_for_end();
    assert_eq!(ended.status.code(), Some(0), "{ended:?}");
    assert!(!home.is_mounted(), "{ended:?}");
}

#[test]
fn the_end_of_a_slow_disk_removes_no_other_mount() {
    if !need::fuse() {
        return;
    }
    let home = Home::new();
    let mut detached = home.mounted(false);
    let file = fs::File::create(home.mount().join("file")).expect("created");
    detached.signal(Signal::TERM);
    detached.wait_for_message("are open; waiting until they are closed");
    // Another disk at the same mount point, while the first one still serves its open file.
    let other = home.0.path().join("other");
    fs::create_dir(&other).expect("made");
    fs::write(other.join("file"), "other").expect("written");
    let mut command = Command::new(binary());
    command.arg("slow-disk").args([&other, &home.mount()]).args(["--profile", "latency=1ms"]);
    let mut running = Running::start(&mut command);
    running.wait_for_output("error of the median");
    drop(file);
    let ended = detached.wait_for_end();
    assert_eq!(ended.status.code(), Some(0), "{ended:?}");
    assert_eq!(fs::read(home.mount().join("file")).expect("still mounted"), b"other");
    // A file system that covers the disk stays, too.
    run("mount", &["-t", "tmpfs", "cover", home.mount().to_str().expect("a name")]).expect("done");
    running.signal(Signal::TERM);
    running.wait_for_message("\"cover\" is mounted over ");
    run("umount", &[home.mount().to_str().expect("a name")]).expect("done");
    assert_eq!(fs::read(home.mount().join("file")).expect("still mounted"), b"other");
    run("umount", &[home.mount().to_str().expect("a name")]).expect("done");
    let ended = running.wait_for_end();
    assert_eq!(ended.status.code(), Some(0), "{ended:?}");
    assert!(!home.is_mounted());
}

#[test]
fn what_is_in_use_is_refused() {
    if !need::fuse() {
        return;
    }
    let home = Home::new();
    let running = home.mounted(false);
    let refused = |command: Running, code, text: &str| {
        let ended = command.wait_for_end();
        assert_eq!(ended.status.code(), Some(code), "{ended:?}");
        assert!(ended.stderr.contains(text), "{ended:?}");
    };
    refused(home.start("latency=1ms"), 3, "another slow disk uses ");
    let other = home.0.path().join("other");
    fs::create_dir(&other).expect("made");
    let start = |directory: &Path| {
        let mut command = Command::new(binary());
        command.arg("slow-disk").arg(directory).arg(&other);
        Running::start(command.args(["--profile", "gp3"]))
    };
    refused(start(&home.directory()), 3, "another slow disk uses ");
    refused(start(&home.0.path().join("missing")), 3, "could not open ");
    refused(start(&other), 2, "contain each other");
    let mut same_mount = Command::new(binary());
    same_mount.arg("slow-disk").args([&other, &home.mount()]).args(["--profile", "gp3"]);
    let text = "\"trunkline-slow-disk\" is already mounted at ";
    refused(Running::start(&mut same_mount), 3, text);
    running.signal(Signal::TERM);
    assert_eq!(running.wait_for_end().status.code(), Some(0));
}
