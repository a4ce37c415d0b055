//! **Processes** of a server that we start, and those that a killed run has left.
//!
//! ```text
//!   trunkline bench ── starts ──▶ postgres -D SCRATCH/cluster …      its working directory
//!        killed                        └─ still runs
//!   trunkline bench ── finds it by its command line, and stops it
//! ```
//! The path of our scratch directory, which we have locked, is in the command line of each program
//! that we start there. So a process with that argument is one of ours, even if its number
//! was never stored.

use std::fs;
use std::os::unix::ffi::OsStrExt;
use std::path::Path;
use std::process::{Child, Command, ExitStatus};
use std::time::Duration;

use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::fd::OwnedFd;
use rustix::process::{Pid, PidfdFlags, Signal, pidfd_open, pidfd_send_signal};
use trunkline_aio::clock;
use trunkline_aio::facade::{Arc, Mutex};

use super::error::ServerError;

/// How long a server may take to end before it is killed.
const END_TIMEOUT: Duration = Duration::from_secs(60);

/// A process that we have started. Clones share it.
#[derive(Debug, Clone, Default)]
pub(super) struct Process(Arc<Mutex<State>>);

#[derive(Debug, Default)]
struct State {
    started: Option<Started>,
    /// Nothing is started any more.
    is_closed: bool,
}

#[derive(Debug)]
struct Started {
    child: Child,
    pidfd: Arc<OwnedFd>,
}

impl Process {
    /// Starts a program. It gets a process group of its own, so that Ctrl-C in a terminal signals
    /// only us.
    pub(super) fn start(&self, command: &mut Command) -> Result<(), ServerError> {
        use std::os::unix::process::CommandExt;
        let path = Path::new(command.get_program()).to_owned();
        let fail = |error| ServerError::system(&path, error);
        let mut state = self.0.lock();
        if state.is_closed {
            return Err(ServerError::Cancelled);
        }
        let mut child = command.process_group(0).spawn().map_err(fail)?;
        match pidfd_open(Pid::from_child(&child), PidfdFlags::empty()) {
            Ok(pidfd) => state.started = Some(Started { child, pidfd: Arc::new(pidfd) }),
            Err(error) => {
                // Without a descriptor we couldn't wait for it later.
                let _ = child.kill();
                let _ = child.wait();
                return Err(fail(error.into()));
            }
        }
        Ok(())
    }

    /// Asks it to end soon: a server disconnects its clients and shuts down.
    pub(super) fn interrupt(&self) {
        self.signal(Signal::INT);
    }

    fn signal(&self, signal: Signal) {
        if let Some(started) = &self.0.lock().started {
            // Fails if it has ended.
            let _ = pidfd_send_signal(&*started.pidfd, signal);
        }
    }

    /// Waits until it has ended, but not longer than `timeout`.
    pub(super) fn wait(&self, timeout: Duration) -> Option<ExitStatus> {
        let pidfd = Arc::clone(&self.0.lock().started.as_ref()?.pidfd);
        if !has_ended_within(&pidfd, timeout) {
            return None;
        }
        let mut state = self.0.lock();
        let status = state.started.as_mut()?.child.wait().ok()?;
        state.started = None;
        Some(status)
    }

    /// Whether there is no process any more.
    pub(super) fn is_gone(&self) -> bool {
        self.0.lock().started.is_none()
    }

    /// Ends it for good: it can't be started again.
    pub(super) fn close(&self) {
        self.0.lock().is_closed = true;
        self.end();
    }

    /// Ends it, whatever it does. A server gets the signal of an immediate shutdown if the first one
    /// didn't help.
    pub(super) fn end(&self) {
        for signal in [Signal::INT, Signal::QUIT, Signal::KILL] {
            self.signal(signal);
            self.wait(END_TIMEOUT);
            if self.is_gone() {
                return;
            }
        }
    }
}

/// Whether the process ends within this time.
fn has_ended_within(pidfd: &OwnedFd, timeout: Duration) -> bool {
    let deadline = clock::now().after(timeout);
    loop {
        let left = Timespec::try_from(deadline.since(clock::now())).unwrap_or_default();
        match poll(&mut [PollFd::new(pidfd, PollFlags::IN)], Some(&left)) {
            Ok(ready) => return ready > 0,
            Err(rustix::io::Errno::INTR) => {}
            Err(_) => return false,
        }
    }
}

/// Stops the servers that a killed run has left in its scratch directory, which the caller has
/// locked. Returns how many processes there were.
///
/// # Errors
/// [`ServerError`]: one of them doesn't end.
pub fn stop_leftovers(scratch: &Path) -> Result<usize, ServerError> {
    end_processes(Some(Signal::QUIT), |process| {
        let arguments = fs::read(process.join("cmdline")).unwrap_or_default();
        let directory = fs::read_link(process.join("cwd")).unwrap_or_default();
        is_ours(&arguments, scratch) || is_child(&arguments, &directory, scratch)
    })
}

/// Ends the processes that `is_ours` finds by their directories in `/proc`: with this signal, or else
/// those that are about to end by themselves. One that is still there after a minute is killed.
/// Returns how many there were.
///
/// # Errors
/// [`ServerError`]: one of them doesn't end.
pub fn end_processes(
    signal: Option<Signal>,
    is_ours: impl Fn(&Path) -> bool,
) -> Result<usize, ServerError> {
    let list = Path::new("/proc");
    let entries = fs::read_dir(list).map_err(|error| ServerError::system(list, error))?;
    let mut stopped = 0;
    for entry in entries.flatten() {
        let name = entry.file_name();
        let Some(pid) = name.to_str().and_then(|name| name.parse().ok()).and_then(Pid::from_raw)
        else {
            continue;
        };
        // The descriptor first: then the command line can't be that of a later process.
        let Ok(pidfd) = pidfd_open(pid, PidfdFlags::empty()) else { continue };
        if !is_ours(&entry.path()) {
            continue;
        }
        if let Some(signal) = signal {
            let _ = pidfd_send_signal(&pidfd, signal);
        }
        if !has_ended_within(&pidfd, END_TIMEOUT) {
            let _ = pidfd_send_signal(&pidfd, Signal::KILL);
            if !has_ended_within(&pidfd, END_TIMEOUT) {
                let error = std::io::Error::other("a process of a killed run doesn't end");
                return Err(ServerError::system(&entry.path(), error));
            }
        }
        stopped += 1;
    }
    Ok(stopped)
}

/// Whether these arguments, each of which ends with a zero byte, are those of a server in `scratch`:
/// `postgres -D SCRATCH/…`.
fn is_ours(arguments: &[u8], scratch: &Path) -> bool {
    let words: Vec<&[u8]> = arguments.split(|&byte| byte == 0).collect();
    words.windows(2).any(|two| {
        let path = Path::new(std::ffi::OsStr::from_bytes(two[1]));
        two[0] == b"-D" && path.starts_with(scratch) && path != scratch
    })
}

/// Whether it is a process of a server that works below `scratch`. Those that initdb starts have no
/// other mark.
fn is_child(arguments: &[u8], directory: &Path, scratch: &Path) -> bool {
    let name = arguments.split(|&byte| byte == 0).next().unwrap_or_default();
    let name = name.rsplit(|&byte| byte == b'/').next().unwrap_or_default();
    name.starts_with(b"postgres") && directory.starts_with(scratch) && directory != scratch
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::process::Stdio;

    #[test]
    fn only_servers_in_the_directory_are_ours() {
        let scratch = Path::new("/disk/trunkline-bench-scratch");
        for (arguments, expected) in [
            ("postgres\0-D\0/disk/trunkline-bench-scratch/disk/cluster\0-c\0port=1\0", true),
            ("initdb\0-D\0/disk/trunkline-bench-scratch/slow/cluster\0", true),
            ("postgres\0-D\0/disk/trunkline-bench-scratch-2/cluster\0", false),
            ("postgres\0-D\0/var/lib/postgresql/18/main\0", false),
            ("tail\0/disk/trunkline-bench-scratch/disk/cluster\0", false),
            ("trunkline\0bench\0-D\0/disk/trunkline-bench-scratch\0", false),
            ("", false),
        ] {
            assert_eq!(is_ours(arguments.as_bytes(), scratch), expected, "{arguments}");
        }
        for (arguments, directory, expected) in [
            ("/bin/postgres\0--boot\0", "/disk/trunkline-bench-scratch/disk/cluster", true),
            ("postgres: walwriter \0", "/disk/trunkline-bench-scratch/disk/cluster", true),
            ("postgres\0--boot\0", "/disk/trunkline-bench-scratch", false),
            ("postgres\0--boot\0", "/disk/other", false),
            ("/bin/sh\0", "/disk/trunkline-bench-scratch/disk", false),
        ] {
            let found = is_child(arguments.as_bytes(), Path::new(directory), scratch);
            assert_eq!(found, expected, "{arguments} in {directory}");
        }
    }

    #[test]
    fn what_a_killed_run_has_left_is_stopped() {
        let scratch = tempfile::tempdir().expect("a directory");
        let cluster = scratch.path().join("cluster");
        let left = Process::default();
        // A shell that waits for its input, with the arguments of a server.
        let mut command = Command::new("sh");
        command.args(["-c", "read line", "sh", "-D"]).arg(&cluster).stdin(Stdio::piped());
        left.start(&mut command).expect("started");
        let elsewhere = tempfile::tempdir().expect("a directory");
        assert_eq!(stop_leftovers(elsewhere.path()).expect("none"), 0);
        assert!(left.wait(Duration::ZERO).is_none());
        // Between fork and exec it still has our own arguments.
        while stop_leftovers(scratch.path()).expect("stopped") == 0 {}
        let status = left.wait(END_TIMEOUT).expect("ended");
        assert!(!status.success() && left.is_gone(), "{status}");
    }

    #[test]
    fn a_process_ends_when_it_is_asked_to() {
        let process = Process::default();
        process.start(Command::new("sh").args(["-c", "exec sleep 1000"])).expect("started");
        assert!(process.wait(Duration::ZERO).is_none() && !process.is_gone());
        process.end();
        assert!(process.is_gone());
        process.start(&mut Command::new("true")).expect("started again");
        process.close();
        let refused = process.start(&mut Command::new("true"));
        assert!(matches!(refused, Err(ServerError::Cancelled)) && process.is_gone());
    }
}
