//! Ctrl-C: the first asks the command to end, the second ends it at once.
//!
//! Jobs ask [`Interrupt::requested`] between pieces of work, stop submitting, let what is in flight
//! finish, and report what they did. Should that hang (a dead mount), a second Ctrl-C leaves
//! without further ado. SIGTERM counts like Ctrl-C.
//!
//! Programs that end others, `timeout` among them, signal a process and then its group: two signals
//! within a moment are one request.

use std::io;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use signal_hook::consts::{SIGINT, SIGTERM};
use signal_hook::flag;
use signal_hook::iterator::Signals;
use signal_hook::low_level;
use trunkline_aio::clock::{self, Time};
use trunkline_aio::sync::thread;

/// What a shell reports for a program that Ctrl-C ended.
const EXIT_AT_ONCE: i32 = 128 + SIGINT;

/// How long after the first signal others still say the same. A person takes longer.
const SAME_REQUEST: Duration = Duration::from_millis(200);

/// Whether somebody asked to stop. Clones share the answer.
#[derive(Debug, Clone, Default)]
pub(crate) struct Interrupt {
    requested: Arc<AtomicBool>,
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
            flag::register(signal, Arc::clone(&interrupt.requested))?;
        }
        // A thread of its own, since every other may hang. It ends with the process.
        let mut signals = Signals::new([SIGINT, SIGTERM])?;
        let mut first = First::default();
        thread::spawn("signals", move || {
            for _ in signals.forever() {
                if first.is_another(clock::now()) {
                    low_level::exit(EXIT_AT_ONCE);
                }
            }
        })?;
        Ok(interrupt)
    }

    /// Whether to end soon.
    pub(crate) fn requested(&self) -> bool {
        // Alone, orders nothing else.
        self.requested.load(Ordering::Relaxed)
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
