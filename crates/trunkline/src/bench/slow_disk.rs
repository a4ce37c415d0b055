//! The slow disk of `bench --slow-disk`: a directory of the scratch directory, mounted by another
//! process.
//!
//! ```text
//!   SCRATCH/disk ◀── trunkline slow-disk ── mounts ──▶ SCRATCH/slow ◀── trunkline bench
//!                        ▲ ends when its standard input is closed            │ and a server
//!                        └───────────────────── pipe ────────────────────────┘
//! ```
//! The process that serves a mount must not use it, so we start one. If we are killed, the kernel
//! closes the pipe, and that process unmounts and ends.

use std::fs;
use std::io::{self, Read};
use std::os::unix::ffi::OsStrExt;
use std::os::unix::process::CommandExt;
use std::path::{Path, PathBuf};
use std::process::{Child, ChildStderr, ChildStdin, ChildStdout, Command, Stdio};

use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::process::{Pid, PidfdFlags, pidfd_open};
use serde_json::Value;
use trunkline_measure::{DiskAccuracy, MeasureError, SlowDisk, end_processes};
use trunkline_slow_disk::{Profile, unmount_leftover};

use crate::exit::{Failure, message};
use crate::interrupt::Interrupt;
use crate::slow_disk::ERROR_MAX;

/// The part of the scratch directory that is measured.
pub(super) const DIRECTORY: &str = "disk";
/// Where it appears as a slow disk.
const MOUNT: &str = "slow";
/// This program, even if its file has been replaced.
const PROGRAM: &str = "/proc/self/exe";
/// How long we wait for the end of the process.
const END_TIMEOUT: Timespec = Timespec { tv_sec: 10, tv_nsec: 0 };

/// A mounted disk. It is unmounted when this is dropped.
pub(super) struct MountedDisk {
    mount: PathBuf,
    child: Child,
    /// Closing it ends the process.
    input: Option<ChildStdin>,
    output: ChildStdout,
    description: SlowDisk,
}

impl MountedDisk {
    /// Mounts the directory of this scratch directory, and measures how exact its latency is.
    pub(super) fn mount(
        scratch: &Path,
        profile: &Profile,
        interrupt: &Interrupt,
    ) -> Result<MountedDisk, Failure> {
        let (directory, mount) = (scratch.join(DIRECTORY), scratch.join(MOUNT));
        let failed = |error: io::Error| {
            let mount = mount.display();
            Failure::cannot_run(format_args!("could not mount a slow disk at \"{mount}\": {error}"))
        };
        fs::create_dir(&mount).map_err(failed)?;
        let mut command = Command::new(PROGRAM);
        command.args(["slow-disk", "--until-eof", "--json", "--profile", &profile.to_string()]);
        command.arg("--").arg(&directory).arg(&mount);
        // Ctrl-C in a terminal signals only us. We end it when nothing uses the mount any more.
        command.process_group(0);
        command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped());
        let mut child = command.spawn().map_err(failed)?;
        let (Some(input), Some(output), Some(errors)) =
            (child.stdin.take(), child.stdout.take(), child.stderr.take())
        else {
            return Err(failed(io::ErrorKind::BrokenPipe.into()));
        };
        let started = interrupt.wait_for("slow disk", move || start(output, errors));
        let (output, report) = match started {
            Ok(Ok(started)) => started,
            Ok(Err((text, hint))) => {
                let _ = child.wait();
                return Err(Failure::cannot_run(text).with_hint_if_any(hint));
            }
            Err(interrupted) => {
                drop(input);
                let _ = child.wait();
                return Err(interrupted);
            }
        };
        let description = described(&report);
        for accuracy in &description.accuracy {
            if accuracy.error_percent.is_some_and(|error| error > ERROR_MAX * 100.0) {
                message(
                    "warning",
                    format_args!(
                        "this machine adds {} % to the disk's latency with {} requests in flight",
                        accuracy.error_percent.unwrap_or_default(),
                        accuracy.in_flight
                    ),
                );
            }
        }
        Ok(MountedDisk { mount, child, input: Some(input), output, description })
    }

    /// Where the directory appears.
    pub(super) fn path(&self) -> &Path {
        &self.mount
    }

    /// For the report.
    pub(super) fn description(&self) -> SlowDisk {
        self.description.clone()
    }
}

impl Drop for MountedDisk {
    fn drop(&mut self) {
        self.input = None;
        // If a thread of ours hangs and still has a file of the disk open, the process ends only
        // after us.
        let Ok(pidfd) = pidfd_open(Pid::from_child(&self.child), PidfdFlags::empty()) else {
            return;
        };
        match poll(&mut [PollFd::new(&pidfd, PollFlags::IN)], Some(&END_TIMEOUT)) {
            Ok(1..) => _ = self.child.wait(),
            _ => return,
        }
        let mut text = String::new();
        let _ = self.output.read_to_string(&mut text);
        let done: Value = serde_json::from_str(&text).unwrap_or_default();
        if let Some(late @ 1..) = done["late"].as_u64() {
            message(
                "warning",
                format_args!(
                    "{late} requests of the slow disk were late, because --scratch is slower"
                ),
            );
        }
    }
}

/// Reads the first report of the process. If it ends instead, returns its error and hint.
fn start(
    mut output: ChildStdout,
    mut errors: ChildStderr,
) -> Result<(ChildStdout, Value), (String, Option<String>)> {
    let first = serde_json::Deserializer::from_reader(&mut output).into_iter::<Value>().next();
    if let Some(Ok(report)) = first {
        return Ok((output, report));
    }
    let mut text = String::new();
    let _ = errors.read_to_string(&mut text);
    let messages = text.lines().filter_map(|line| serde_json::from_str::<Value>(line).ok());
    let error = messages.into_iter().find(|message| message["kind"] == "error");
    let part = |name: &str| Some(error.as_ref()?[name].as_str()?.to_owned());
    Err((part("text").unwrap_or_else(|| text.trim().to_owned()), part("hint")))
}

fn described(report: &Value) -> SlowDisk {
    let text = |value: &Value| value.as_str().unwrap_or_default().to_owned();
    let accuracy = |value: &Value| DiskAccuracy {
        in_flight: value["in_flight"].as_u64().unwrap_or_default() as u32,
        median_micros: value["median_us"].as_f64().unwrap_or_default(),
        p99_micros: value["p99_us"].as_f64().unwrap_or_default(),
        error_percent: value["error"].as_f64().map(|error| (error * 1000.0).round() / 10.0),
    };
    let all = report["accuracy"].as_array().map(Vec::as_slice).unwrap_or_default();
    SlowDisk { profile: text(&report["profile"]), accuracy: all.iter().map(accuracy).collect() }
}

/// Removes the mount of a killed run from a scratch directory. The process that serves it may still be
/// running: it ends by itself, but it may just be about to mount.
pub(super) fn release(scratch: &Path) -> Result<(), MeasureError> {
    let path = scratch.join(MOUNT);
    end_processes(None, |process| {
        let arguments = fs::read(process.join("cmdline")).unwrap_or_default();
        is_serving(&arguments, &path)
    })?;
    let unmounted = unmount_leftover(&path).map_err(|error| error.to_string());
    unmounted
        .map(|_| ())
        .map_err(|error| MeasureError::File { path, source: io::Error::other(error) })
}

/// Whether these arguments are those of a process that [`MountedDisk::mount`] has started with this
/// mount point.
fn is_serving(arguments: &[u8], mount: &Path) -> bool {
    let words: Vec<&[u8]> = arguments.split(|&byte| byte == 0).collect();
    words.contains(&&b"--until-eof"[..]) && words.contains(&mount.as_os_str().as_bytes())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_the_process_of_our_mount_is_waited_for() {
        let mount = Path::new("/disk/trunkline-bench-scratch/slow");
        for (arguments, expected) in [
            ("exe\0slow-disk\0--until-eof\0--\0/disk\0/disk/trunkline-bench-scratch/slow\0", true),
            ("exe\0slow-disk\0--until-eof\0--\0/disk\0/disk/slow\0", false),
            ("exe\0slow-disk\0/disk\0/disk/trunkline-bench-scratch/slow\0", false),
            ("", false),
        ] {
            assert_eq!(is_serving(arguments.as_bytes(), mount), expected, "{arguments}");
        }
    }

    #[test]
    fn the_report_of_the_mount_is_read() {
        let report = serde_json::json!({
            "mount": "/x", "profile": "latency=2ms",
            "accuracy": [{"in_flight": 64, "reads": 9, "median_us": 2130, "p99_us": 4000, "error": 0.0652}],
        });
        let disk = described(&report);
        assert_eq!((disk.profile.as_str(), disk.error_percent(64)), ("latency=2ms", Some(6.5)));
        assert_eq!(disk.error_percent(1), None);
    }
}
