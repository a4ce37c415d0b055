//! Progress of `calibrate`: what is being measured, and the time left.
//!
//! On a terminal, this is a bar. Elsewhere, each phase is one line, so that a log shows how far a
//! calibration has come.

use std::fmt;
use std::io::IsTerminal as _;
use std::time::Duration;

use trunkline_aio::facade::Mutex;
use trunkline_measure::Watcher;

use crate::exit::message;
use crate::interrupt::Interrupt;
use crate::options::Global;
use crate::progress::Progress;

/// Watches one calibration.
#[derive(Debug)]
pub(super) struct CalibrationMonitor {
    interrupt: Interrupt,
    shows_progress: bool,
    state: Mutex<State>,
}

#[derive(Debug, Default)]
struct State {
    bar: Option<Progress>,
    /// The last phase.
    phase: String,
}

impl CalibrationMonitor {
    pub(super) fn new(interrupt: Interrupt, global: &Global) -> CalibrationMonitor {
        let shows_progress = global.shows_progress();
        CalibrationMonitor { interrupt, shows_progress, state: Mutex::default() }
    }

    /// Removes the bar from the terminal.
    pub(super) fn clear(&self) {
        self.state.lock().bar.take();
    }
}

impl Watcher for CalibrationMonitor {
    fn progressed(&self, done: u64, total: u64, case: &dyn fmt::Display) {
        if !self.shows_progress {
            return;
        }
        let (mut state, case) = (self.state.lock(), case.to_string());
        if std::io::stderr().is_terminal() {
            let bar = state.bar.get_or_insert_with(|| Progress::of_repetitions(true));
            bar.set_case(case);
            bar.set_repetitions(done, total);
            bar.set_remaining(Duration::from_millis(total.saturating_sub(done)));
            return;
        }
        // The cases of a comparison take turns.
        let phase = case.split(':').next().unwrap_or_default();
        if phase != state.phase {
            let percent = done * 100 / total.max(1);
            let left = total.saturating_sub(done) / 1000;
            message("info", format_args!("{phase} ({percent} % done, about {left} s left)"));
            state.phase = phase.to_owned();
        }
    }

    fn cancelled(&self) -> bool {
        self.interrupt.requested()
    }
}
