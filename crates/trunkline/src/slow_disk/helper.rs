//! The part of `trunkline slow-disk` that uses the mount, in a process of its own.
//!
//! ```text
//!   trunkline slow-disk ── starts ──▶ trunkline slow-disk-helper --device 0:45 --measure 1000000 MOUNT
//!      │ serves the mount  ◀── reads ──┘     │
//!      ◀──── accuracies, as JSON ────────────┘
//! ```
//! A process must not use a mount that it serves ([`SlowDisk`]): if it were killed meanwhile, it would
//! neither end nor release the mount. If the command is killed, the kernel ends the connection, and
//! the reads of the helper fail.
//!
//! The helper has a process group of its own. Ctrl-C in a terminal therefore signals only the
//! command, which ends a measurement, but not an unmount.

use std::io;
use std::os::unix::process::CommandExt;
use std::path::PathBuf;
use std::process::{Child, Command, Output, Stdio};
use std::time::Duration;

use rustix::process::{Pid, PidfdFlags, Signal, pidfd_open, pidfd_send_signal};
use serde::{Deserialize, Serialize};
use trunkline_aio::facade::{Arc, Futex, Mutex, thread};
use trunkline_slow_disk::{Accuracy, SlowDisk, Unmounted, measure, unmount};

use crate::exit::{Exit, Failure};
use crate::interrupt::Interrupt;
use crate::output::print_json;

/// This program, even if its file has been replaced.
const PROGRAM: &str = "/proc/self/exe";

/// An unmount that takes longer is worth a message.
const SLOW: Duration = Duration::from_secs(1);

/// Arguments of the helper.
#[derive(Debug, clap::Args)]
pub(crate) struct HelperArgs {
    /// Mount point.
    mount: PathBuf,
    /// Device number of the mount, to unmount no other one.
    #[arg(long)]
    device: String,
    /// Measure how exactly the mount keeps this latency, in nanoseconds, instead of unmounting it.
    #[arg(long)]
    measure: Option<u64>,
}

/// What the helper prints.
#[derive(Debug, Serialize, Deserialize)]
enum Answer {
    Measured(Vec<Measured>),
    Unmounted { when_closed: bool },
    Failed(String),
}

/// An [`Accuracy`].
#[derive(Debug, Serialize, Deserialize)]
struct Measured {
    in_flight: u32,
    reads: u32,
    median: Duration,
    p99: Duration,
}

/// Runs the helper.
pub(crate) fn run(args: &HelperArgs) -> Result<Exit, Failure> {
    let answer = match args.measure {
        Some(nanos) => match measure(&args.mount, Duration::from_nanos(nanos)) {
            Ok(found) => Answer::Measured(found.into_iter().map(Measured::from).collect()),
            Err(error) => Answer::Failed(error.to_string()),
        },
        None => match unmount(&args.mount, &args.device) {
            Ok(how) => Answer::Unmounted { when_closed: how == Unmounted::WhenClosed },
            Err(error) => Answer::Failed(error.to_string()),
        },
    };
    print_json(&answer)?;
    Ok(Exit::Good)
}

/// Lets a helper measure. `None` means that a signal ended the measurement.
pub(super) fn accuracies(
    disk: &SlowDisk,
    interrupt: &Interrupt,
) -> Result<Option<Vec<Accuracy>>, Failure> {
    let failed = |error| {
        let mount = disk.mount_point().display();
        Failure::cannot_run(format_args!("could not measure \"{mount}\": {error}"))
    };
    let nanos = disk.profile().latency().as_nanos().to_string();
    let child = start(disk, &["--measure", &nanos]).map_err(failed)?;
    let process = pidfd_open(Pid::from_child(&child), PidfdFlags::empty());
    let process = process.map_err(|error| failed(error.into()))?;
    let output = match interrupt.wait_for("measurement", move || child.wait_with_output()) {
        Ok(output) => output.map_err(failed)?,
        Err(failure) => {
            // Fails if it has ended by itself.
            let _ = pidfd_send_signal(&process, Signal::KILL);
            return if interrupt.requested() { Ok(None) } else { Err(failure) };
        }
    };
    match answer(&output).map_err(failed)? {
        Answer::Measured(found) => Ok(Some(found.into_iter().map(Accuracy::from).collect())),
        other => Err(failed(unexpected(other))),
    }
}

/// Lets a helper unmount, which writes back all data. Calls `slow` once if that takes long.
pub(super) fn unmounted(disk: &SlowDisk, slow: impl FnOnce()) -> Result<Unmounted, Failure> {
    let failed = |error| {
        let mount = disk.mount_point().display();
        Failure::cannot_run(format_args!("could not unmount \"{mount}\": {error}"))
    };
    let child = start(disk, &[]).map_err(failed)?;
    let done = Arc::new(Futex::new(0));
    let output = Arc::new(Mutex::new(None));
    let (ended, result) = (Arc::clone(&done), Arc::clone(&output));
    let waiting = thread::spawn("unmount", move || {
        *result.lock() = Some(child.wait_with_output());
        ended.signal();
    });
    let waiting = waiting.map_err(failed)?;
    done.wait(0, Some(SLOW));
    if done.epoch() == 0 {
        slow();
    }
    waiting.join().map_err(|error| failed(io::Error::other(error)))?;
    let output = output.lock().take().unwrap_or_else(|| Err(io::ErrorKind::Other.into()));
    match answer(&output.map_err(failed)?).map_err(failed)? {
        Answer::Unmounted { when_closed: false } => Ok(Unmounted::Now),
        Answer::Unmounted { when_closed: true } => Ok(Unmounted::WhenClosed),
        other => Err(failed(unexpected(other))),
    }
}

fn start(disk: &SlowDisk, options: &[&str]) -> io::Result<Child> {
    let mut command = Command::new(PROGRAM);
    command.args(["slow-disk-helper", "--device", disk.device()]).args(options);
    command.arg("--").arg(disk.mount_point()).process_group(0);
    command.stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::piped()).spawn()
}

/// The answer of a helper that has ended.
fn answer(output: &Output) -> io::Result<Answer> {
    serde_json::from_slice(&output.stdout).map_err(|_| {
        let text = String::from_utf8_lossy(&output.stderr);
        io::Error::other(format!("{}: {}", output.status, text.trim()))
    })
}

fn unexpected(answer: Answer) -> io::Error {
    match answer {
        Answer::Failed(error) => io::Error::other(error),
        other => io::Error::other(format!("unexpected answer {other:?}")),
    }
}

impl From<Accuracy> for Measured {
    fn from(Accuracy { in_flight, reads, median, p99 }: Accuracy) -> Measured {
        Measured { in_flight, reads, median, p99 }
    }
}

impl From<Measured> for Accuracy {
    fn from(Measured { in_flight, reads, median, p99 }: Measured) -> Accuracy {
        Accuracy { in_flight, reads, median, p99 }
    }
}
