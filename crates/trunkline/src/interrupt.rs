//! Ctrl-C handling: the first Ctrl-C asks the command to stop, and a second one kills it
//! immediately.
//!
//! Between pieces of work, a job calls [`Interrupt::requested`], much as PostgreSQL calls
//! `CHECK_FOR_INTERRUPTS`. If an interrupt was requested, the job stops submitting I/O, waits for
//! the I/O in flight to finish, and reports what it has done so far. If that hangs, for example on
//! a dead mount, the user can press Ctrl-C again to exit immediately. SIGTERM is treated like
//! Ctrl-C, except that the exit code is different.
//!
//! Some programs, such as `timeout`, first signal a process and then its process group, so the
//! process gets two signals. For this reason, we treat signals that arrive within [`SAME_REQUEST`]
//! of the first one as a single request.

use std::io;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use signal_hook::consts::{SIGINT, SIGTERM};
use signal_hook::flag;
use signal_hook::iterator::Signals;
use signal_hook::low_level;
use trunkline_aio::Canceller;
use trunkline_aio::clock::{self, Time};
use trunkline_aio::facade::{Futex, Mutex, thread};
use trunkline_engine::job::{End, JobError};

use crate::exit::{Exit, Failure, message};

/// A shell adds this to the number of the signal that terminated a program.
const SIGNALLED: i32 = 128;

/// Signals that arrive within this time of the first signal are part of the same request. This
/// can't swallow a real second request, because a user can't press Ctrl-C twice that quickly.
const SAME_REQUEST: Duration = Duration::from_millis(200);

/// How long we continue to wait after a signal. A healthy file system responds much sooner, and after
/// pressing Ctrl-C, a user doesn't mind waiting that long.
const END_TIMEOUT: Duration = Duration::from_secs(1);

/// How often we check for a signal while waiting.
const POLL_INTERVAL: Duration = Duration::from_millis(50);

/// Whether a signal asked the command to stop. Clones share the state.
#[derive(Debug, Clone, Default)]
pub(crate) struct Interrupt {
    /// The number of the latest signal, or 0 if there was none.
    signal: Arc<AtomicUsize>,
    /// Cancellers of the sessions in which the command itself waits. Jobs cancel their own sessions.
    cancellers: Arc<Mutex<Vec<Box<dyn Cancel>>>>,
}

/// What a signal cancels.
pub(crate) trait Cancel: std::fmt::Debug + Send {
    /// Cancels it. This may happen more than once.
    fn cancel(&self);
}

impl Cancel for Canceller {
    fn cancel(&self) {
        Canceller::cancel(self);
    }
}

/// When the first signal arrived.
#[derive(Default)]
struct FirstSignal(Option<Time>);

impl FirstSignal {
    /// Returns whether a signal that arrives `now` counts as a second request. A second request
    /// ends the process immediately.
    fn is_second_request(&mut self, now: Time) -> bool {
        now.since(*self.0.get_or_insert(now)) >= SAME_REQUEST
    }
}

impl Interrupt {
    /// Installs handlers for SIGINT and SIGTERM.
    pub(crate) fn install() -> Result<Interrupt, Failure> {
        Interrupt::try_install().map_err(|error| {
            Failure::cannot_run(format_args!("could not install signal handlers: {error}"))
        })
    }

    fn try_install() -> io::Result<Interrupt> {
        let interrupt = Interrupt::default();
        // A signal handler may only call async-signal-safe functions, so ours just stores the
        // signal number. The thread below does the rest.
        for signal in [SIGINT, SIGTERM] {
            flag::register_usize(signal, Arc::clone(&interrupt.signal), signal as usize)?;
        }
        // We need a thread just for this, because every other thread may be stuck in a system call.
        // The thread runs until the process exits.
        let mut signals = Signals::new([SIGINT, SIGTERM])?;
        let mut first = FirstSignal::default();
        let asked = interrupt.clone();
        thread::spawn("signals", move || {
            for signal in signals.forever() {
                if first.is_second_request(clock::now()) {
                    low_level::exit(SIGNALLED + signal);
                }
                asked.cancel();
            }
        })?;
        Ok(interrupt)
    }

    /// Cancels a session's waits as soon as a signal arrives, or immediately if one has already
    /// arrived.
    ///
    /// We must check for a signal while holding the lock. The handler stores the signal before the
    /// thread takes the lock, so either we see the signal here, or the thread sees the canceller.
    pub(crate) fn cancel_on_request(&self, canceller: impl Cancel + 'static) {
        let mut cancellers = self.cancellers.lock();
        if self.requested() {
            canceller.cancel();
        }
        cancellers.push(Box::new(canceller));
    }

    /// Cancels the waits of all sessions.
    fn cancel(&self) {
        self.cancellers.lock().iter().for_each(|canceller| canceller.cancel());
    }

    /// Whether the command has been asked to end.
    pub(crate) fn requested(&self) -> bool {
        self.signal() != 0
    }

    /// The exit code of a command that was asked to end.
    pub(crate) fn exit(&self) -> Exit {
        match self.signal() {
            signal if signal == SIGTERM as usize => Exit::Terminated,
            _ => Exit::Interrupted,
        }
    }

    /// Returns the exit code for a command whose job ended with `end`. If the job was interrupted,
    /// we print a warning and return the signal's exit code. If it wasn't, we return `otherwise`.
    pub(crate) fn exit_after(&self, end: End, otherwise: Exit) -> Exit {
        let text = match end {
            End::Complete => return otherwise,
            End::Cancelled => "interrupted; counts cover only part of the data",
            // A file system may hang, or the reader of our output may be slow.
            End::Abandoned => {
                "interrupted before all I/O had ended; counts cover only part of the data"
            }
        };
        message("warning", text);
        self.exit()
    }

    /// The failure of a command that a signal ended before it had a result.
    pub(crate) fn failure(&self) -> Failure {
        Failure::interrupted(self.exit())
    }

    /// Runs `work` in a separate thread and waits for its result. If `work` hasn't returned
    /// [`END_TIMEOUT`] after a signal, for example because a file system hangs, we abandon the
    /// thread.
    ///
    /// # Errors
    /// We abandoned the thread, or it panicked, or it could not be started.
    pub(crate) fn wait_for<T: Send + 'static>(
        &self,
        name: &str,
        work: impl FnOnce() -> T + Send + 'static,
    ) -> Result<T, Failure> {
        let (result, ended) = (Arc::new(Mutex::new(None)), Arc::new(Futex::new(0)));
        let (slot, end) = (Arc::clone(&result), SignalOnDrop(Arc::clone(&ended)));
        let spawned = thread::spawn(name, move || {
            let _end = end;
            let done = work();
            *slot.lock() = Some(done);
        });
        spawned.map_err(JobError::Start)?;
        let mut deadline = None;
        // The thread signals only once, either after it has stored its result or when it panics.
        while ended.epoch() == 0 {
            let now = clock::now();
            if deadline.is_some_and(|deadline| now >= deadline) {
                return Err(self.failure());
            }
            if deadline.is_none() && self.requested() {
                deadline = Some(now.after(END_TIMEOUT));
            }
            ended.wait(0, Some(POLL_INTERVAL));
        }
        let done = result.lock().take();
        done.ok_or_else(|| JobError::Panicked.into())
    }

    fn signal(&self) -> usize {
        // Relaxed: the value is used alone and orders no other memory access.
        self.signal.load(Ordering::Relaxed)
    }
}

/// Signals a futex when it is dropped, so that we don't wait forever for a thread that panics.
struct SignalOnDrop(Arc<Futex>);

impl Drop for SignalOnDrop {
    fn drop(&mut self) {
        self.0.signal();
    }
}

#[cfg(test)]
impl Interrupt {
    /// Returns the state after a SIGINT.
    pub(crate) fn after_sigint() -> Interrupt {
        let interrupt = Interrupt::default();
        interrupt.request();
        interrupt
    }

    /// Has the same effect as SIGINT.
    pub(crate) fn request(&self) {
        self.signal.store(SIGINT as usize, Ordering::Relaxed);
        self.cancel();
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn work_that_hangs_is_abandoned() {
        let hang = Arc::new(Futex::new(0));
        let hung = Arc::clone(&hang);
        let failed = Interrupt::after_sigint().wait_for("hangs", move || {
            while hung.epoch() == 0 {
                hung.wait(0, None);
            }
        });
        assert_eq!(failed.expect_err("abandoned").exit, Exit::Interrupted);
        hang.signal();
        let interrupt = Interrupt::default();
        assert_eq!(interrupt.wait_for("works", || 7).expect("a result"), 7);
        let panicked = interrupt.wait_for("panics", || panic!("this panic is part of the test"));
        let panicked: Failure = panicked.expect_err("panicked");
        assert_eq!(panicked.to_string(), "a worker thread panicked");
    }

    #[test]
    fn first_signal_is_a_request() {
        let interrupt = Interrupt::install().expect("signals");
        assert!(!interrupt.requested());
        signal_hook::low_level::raise(SIGTERM).expect("raised");
        assert!(interrupt.clone().requested());
        assert_eq!(interrupt.exit(), Exit::Terminated);
    }

    #[test]
    fn signals_in_quick_succession_are_one_request() {
        let at = |millis: u64| Time::from_nanos(5_000_000_000 + millis * 1_000_000);
        let mut first = FirstSignal::default();
        for (millis, ends) in [(0, false), (1, false), (199, false), (200, true), (9000, true)] {
            assert_eq!(first.is_second_request(at(millis)), ends, "{millis}");
        }
    }
}
