//! Progress of `bench`: repetitions done, the case that is prepared or measured, and an estimate of
//! the time left.

use std::fmt;
use std::time::Duration;

use trunkline_aio::facade::Mutex;
use trunkline_measure::Watcher;

use crate::interrupt::Interrupt;
use crate::options::Global;
use crate::progress::Progress;

/// Watches one measurement.
#[derive(Debug)]
pub(super) struct BenchMonitor {
    interrupt: Interrupt,
    shows_progress: bool,
    bar: Mutex<Option<Progress>>,
}

impl BenchMonitor {
    pub(super) fn new(interrupt: Interrupt, global: &Global) -> BenchMonitor {
        BenchMonitor { interrupt, shows_progress: global.shows_progress(), bar: Mutex::default() }
    }

    /// Removes the bar from the terminal.
    pub(super) fn clear(&self) {
        self.bar.lock().take();
    }
}

impl Watcher for BenchMonitor {
    fn begins(&self, case: &dyn fmt::Display) {
        let mut bar = self.bar.lock();
        let bar = bar.get_or_insert_with(|| Progress::of_repetitions(self.shows_progress));
        bar.set_case(case.to_string());
    }

    fn progressed(&self, done: u64, total: u64, _case: &dyn fmt::Display) {
        if let Some(bar) = &*self.bar.lock() {
            bar.set_repetitions(done, total);
        }
    }

    fn estimated(&self, remaining: Duration) {
        if let Some(bar) = &*self.bar.lock() {
            bar.set_remaining(remaining);
        }
    }

    fn cancelled(&self) -> bool {
        self.interrupt.requested()
    }
}
