//! Progress of `bench`: repetitions done, the case, and the time left.

use std::fmt;

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
    fn progressed(&self, done: u64, total: u64, case: &dyn fmt::Display) {
        let mut bar = self.bar.lock();
        let bar = bar.get_or_insert_with(|| Progress::of_repetitions(total, self.shows_progress));
        bar.set_repetitions(done, total, case.to_string());
    }

    fn cancelled(&self) -> bool {
        self.interrupt.requested()
    }
}
