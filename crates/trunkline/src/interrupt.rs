//! Ctrl-C: the first asks the command to end, the second ends it at once.
//!
//! Jobs ask [`Interrupt::requested`] between pieces of work, stop submitting, let what is in flight
//! finish, and report what they did. Should that hang (a dead mount), a second Ctrl-C leaves
//! without further ado. SIGTERM counts like Ctrl-C, but for the exit code.
//!
//! Programs that end others, `timeout` among them, signal a process and then its group: two signals
//! within a moment are one request.

use std::io;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use signal_hook::consts::{SIGINT, SIGTERM};
use signal_hook::flag;
use signal_hook::iterator::Signals;
use signal_hook::low_level;
use trunkline_aio::clock::{self, Time};
use trunkline_aio::sync::thread;

use crate::exit::Exit;

/// What a shell adds to the number of the signal that ended a program.
const SIGNALLED: i32 = 128;

/// How long after the first signal others still say the same. A person takes longer.
const SAME_REQUEST: Duration = Duration::from_millis(200);

/// Whether somebody asked to stop. Clones share the answer.
#[derive(Debug, Clone, Default)]
pub(crate) struct Interrupt {
    /// The number of the latest signal, 0 without any.
    signal: Arc<AtomicUsize>,
}

/// When the first signal came.
#[derive(Default)]
struct First(Option<Time>);

impl First {
    /// Whether a signal that comes `now` ends the process at once.
    fn is_another(&mut self, now: Time) -> bool {
        now.since(*self.0.get_or_insert(now)) >= SAME_REQUEST
    }
}

impl Interrupt {
    /// Takes over the signals of this process.
    ///
    /// # Errors
    /// The system's, if it refuses.
    pub(crate) fn install() -> io::Result<Interrupt> {
        let interrupt = Interrupt::default();
        for signal in [SIGINT, SIGTERM] {
            flag::register_usize(signal, Arc::clone(&interrupt.signal), signal as usize)?;
        }
        // A thread of its own, since every other may hang. It ends with the process.
        let mut signals = Signals::new([SIGINT, SIGTERM])?;
        let mut first = First::default();
        thread::spawn("signals", move || {
            for signal in signals.forever() {
                if first.is_another(clock::now()) {
                    low_level::exit(SIGNALLED + signal);
                }
            }
        })?;
        Ok(interrupt)
    }

    /// Whether to end soon.
    pub(crate) fn requested(&self) -> bool {
        self.signal() != 0
    }

    /// How a command ends that was asked to.
    pub(crate) fn exit(&self) -> Exit {
        match self.signal() {
            signal if signal == SIGTERM as usize => Exit::Terminated,
            _ => Exit::Interrupted,
        }
    }

    fn signal(&self) -> usize {
        // Alone, orders nothing else.
        self.signal.load(Ordering::Relaxed)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn first_signal_is_a_request() {
        let interrupt = Interrupt::install().expect("signals");
        assert!(!interrupt.requested());
        signal_hook::low_level::raise(SIGTERM).expect("raised");
        assert!(interrupt.clone().requested());
        assert_eq!(interrupt.exit(), Exit::Terminated);
    }

    #[test]
    fn signals_within_a_moment_are_one_request() {
        let at = |millis: u64| Time::from_nanos(5_000_000_000 + millis * 1_000_000);
        let mut first = First::default();
        for (millis, ends) in [(0, false), (1, false), (199, false), (200, true), (9000, true)] {
            assert_eq!(first.is_another(at(millis)), ends, "{millis}");
        }
    }
}
