//! Child process under test: waits for its messages and for its exit. Each wait has a time limit.
//!
//! A single `poll` waits for both pipes and for the process itself (through its pidfd), so we never
//! have to sleep and check again. The time limit is reached only if a test has already failed.

use std::fs::File;
use std::io::Read;
use std::os::fd::OwnedFd;
use std::process::{Child, Command, ExitStatus, Stdio};
use std::time::Duration;

use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::process::{Pid, PidfdFlags, Signal, pidfd_open, pidfd_send_signal};
use trunkline_aio::clock::{self, Time};

use crate::fuse::PATIENCE;

/// Between two looks at a state that nothing signals.
const MOMENT: Duration = Duration::from_millis(10);

/// Exit status and complete output of a child.
#[derive(Debug)]
pub(crate) struct Ended {
    pub(crate) status: ExitStatus,
    pub(crate) stdout: String,
    pub(crate) stderr: String,
}

pub(crate) struct Running {
    child: Child,
    pidfd: OwnedFd,
    stdout: Stream,
    stderr: Stream,
    gone: bool,
}

struct Stream {
    pipe: Option<File>,
    text: Vec<u8>,
}

impl Running {
    pub(crate) fn start(command: &mut Command) -> Running {
        command.stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::piped());
        let mut child = command.spawn().expect("started");
        let pidfd = pidfd_open(Pid::from_child(&child), PidfdFlags::empty()).expect("pidfd");
        let stdout = Stream::new(child.stdout.take().expect("piped").into());
        let stderr = Stream::new(child.stderr.take().expect("piped").into());
        Running { child, pidfd, stdout, stderr, gone: false }
    }

    pub(crate) fn pid(&self) -> Pid {
        Pid::from_child(&self.child)
    }

    /// Whether it has ended by now.
    pub(crate) fn has_ended(&self) -> bool {
        let now = Timespec::default();
        poll(&mut [PollFd::new(&self.pidfd, PollFlags::IN)], Some(&now)).expect("polled") == 1
    }

    pub(crate) fn signal(&self, signal: Signal) {
        pidfd_send_signal(&self.pidfd, signal).expect("signalled");
    }

    /// Waits until the child's standard error contains `text`.
    pub(crate) fn wait_for_message(&mut self, text: &str) {
        self.wait_for_message_within(PATIENCE, text);
    }

    /// The same for a command that may take long before it.
    pub(crate) fn wait_for_message_within(&mut self, limit: Duration, text: &str) {
        self.wait_within(limit, &format!("{text:?} on standard error"), |running| {
            String::from_utf8_lossy(&running.stderr.text).contains(text)
        });
    }

    /// Waits until the child's standard error contains `text`, and returns true, or until the child has
    /// ended without it.
    pub(crate) fn wait_for_message_or_end(&mut self, text: &str) -> bool {
        let deadline = clock::now().after(PATIENCE);
        loop {
            if self.has_message(text) {
                return true;
            }
            if self.gone && self.stderr.pipe.is_none() {
                return false;
            }
            assert!(self.step(deadline), "no {text:?} within {PATIENCE:?}\n{}", self.said());
        }
    }

    /// Waits until the child's standard output contains `text`.
    pub(crate) fn wait_for_output(&mut self, text: &str) {
        self.wait(&format!("{text:?} on standard output"), |running| {
            String::from_utf8_lossy(&running.stdout.text).contains(text)
        });
    }

    /// The child's standard output so far.
    pub(crate) fn output(&self) -> String {
        String::from_utf8_lossy(&self.stdout.text).into_owned()
    }

    /// Waits until something outside of the child is so, or fails if the child ends before.
    pub(crate) fn wait_until(&mut self, what: &str, reached: impl Fn() -> bool) {
        let deadline = clock::now().after(PATIENCE);
        while !reached() {
            assert!(!self.gone, "it ended before {what}\n{}", self.said());
            assert!(clock::now() < deadline, "no {what} within {PATIENCE:?}\n{}", self.said());
            // Nothing signals such a state, so we look again after each event or a moment.
            self.step(clock::now().after(MOMENT));
        }
    }

    /// Takes the child's output for this time, or until it ends.
    pub(crate) fn run_for(&mut self, time: Duration) {
        let deadline = clock::now().after(time);
        while !self.gone && clock::now() < deadline {
            self.step(deadline);
        }
    }

    /// Whether the child's standard error contains `text` so far.
    pub(crate) fn has_message(&self, text: &str) -> bool {
        String::from_utf8_lossy(&self.stderr.text).contains(text)
    }

    /// Waits until all of the child's threads have exited and both pipes have reached end of file.
    pub(crate) fn wait_for_end(self) -> Ended {
        self.wait_for_end_within(PATIENCE)
    }

    /// The same for a command that may take long by itself.
    pub(crate) fn wait_for_end_within(mut self, limit: Duration) -> Ended {
        self.wait_within(limit, "the end of the process", |running| {
            running.gone && running.stdout.pipe.is_none() && running.stderr.pipe.is_none()
        });
        let status = self.child.wait().expect("its status");
        let text = |stream: &mut Stream| {
            String::from_utf8(std::mem::take(&mut stream.text)).expect("text")
        };
        Ended { status, stdout: text(&mut self.stdout), stderr: text(&mut self.stderr) }
    }

    fn wait(&mut self, what: &str, reached: impl Fn(&Running) -> bool) {
        self.wait_within(PATIENCE, what, reached);
    }

    fn wait_within(&mut self, limit: Duration, what: &str, reached: impl Fn(&Running) -> bool) {
        let deadline = clock::now().after(limit);
        while !reached(self) {
            assert!(
                !(self.gone && self.stdout.pipe.is_none() && self.stderr.pipe.is_none()),
                "it ended before {what}\n{}",
                self.said()
            );
            assert!(self.step(deadline), "no {what} within {limit:?}\n{}", self.said());
        }
    }

    /// Waits for one event and handles it. Returns false at the deadline.
    fn step(&mut self, deadline: Time) -> bool {
        let left = deadline.since(clock::now());
        let timeout = Timespec::try_from(left).expect("a short time");
        let mut events = Vec::new();
        let ends = [self.stdout.pipe.as_ref(), self.stderr.pipe.as_ref()];
        events.extend(ends.into_iter().flatten().map(|pipe| PollFd::new(pipe, PollFlags::IN)));
        if !self.gone {
            events.push(PollFd::new(&self.pidfd, PollFlags::IN));
        }
        if poll(&mut events, Some(&timeout)).expect("polled") == 0 {
            return false;
        }
        let mut happened = events.iter().map(|event| !event.revents().is_empty());
        let mut next = |waited: bool| waited && happened.next() == Some(true);
        let stdout = next(self.stdout.pipe.is_some());
        let stderr = next(self.stderr.pipe.is_some());
        let gone = next(!self.gone);
        drop(events);
        if stdout {
            self.stdout.take();
        }
        if stderr {
            self.stderr.take();
        }
        self.gone |= gone;
        true
    }

    fn said(&self) -> String {
        let [stdout, stderr] =
            [&self.stdout, &self.stderr].map(|stream| String::from_utf8_lossy(&stream.text));
        format!("stdout: {stdout}\nstderr: {stderr}")
    }
}

impl Drop for Running {
    /// Kills the child if the test failed. We don't wait for the child to exit, because it may hang
    /// in the test's file system.
    fn drop(&mut self) {
        if !self.gone {
            // Fails if the child has already exited.
            let _ = pidfd_send_signal(&self.pidfd, Signal::KILL);
        }
    }
}

impl Stream {
    fn new(pipe: OwnedFd) -> Stream {
        Stream { pipe: Some(pipe.into()), text: Vec::new() }
    }

    /// Reads the bytes that are available in the pipe. This must not be called if the read would
    /// block.
    fn take(&mut self) {
        let Some(pipe) = &mut self.pipe else { return };
        let mut buffer = [0; 4096];
        match pipe.read(&mut buffer).expect("read") {
            0 => self.pipe = None,
            count => self.text.extend_from_slice(&buffer[..count]),
        }
    }
}
