//! Monitors one job: shows a progress bar on a terminal, and handles Ctrl-C, which ends the job
//! early. The job's counts are still printed in that case.
//!
//! The job calls the [`Observer`] methods from several threads, so we need a lock around the bar.

use trunkline_aio::facade::{Arc, Mutex};
use trunkline_engine::job::Observer;

use crate::exit::Failure;
use crate::interrupt::Interrupt;
use crate::io_instance::IoInstance;
use crate::options::Global;
use crate::progress::Progress;

/// Runs one of the engine's jobs. Afterwards, it warns about I/O methods that turned out to be
/// unavailable during the job.
pub(crate) fn run_job<R, E: Into<Failure>>(
    global: &Global,
    interrupt: &Interrupt,
    io: &IoInstance,
    job: impl FnOnce(Arc<dyn Observer>) -> Result<R, E>,
) -> Result<R, Failure> {
    let monitor = Arc::new(JobMonitor::new(interrupt.clone(), global));
    let outcome = job(Arc::clone(&monitor) as _);
    // If the job was abandoned, its threads may still hold references to the observer. Dropping our
    // own reference would not be enough to remove the bar in that case.
    monitor.clear();
    io.report_fallbacks();
    outcome.map_err(E::into)
}

/// Observes one job.
#[derive(Debug)]
pub(crate) struct JobMonitor {
    interrupt: Interrupt,
    shows_progress: bool,
    /// The bar, once the job has begun.
    bar: Mutex<Option<Progress>>,
}

impl JobMonitor {
    pub(crate) fn new(interrupt: Interrupt, global: &Global) -> JobMonitor {
        JobMonitor { interrupt, shows_progress: global.shows_progress(), bar: Mutex::default() }
    }

    /// Removes the bar from the terminal.
    pub(crate) fn clear(&self) {
        self.bar.lock().take();
    }
}

impl Observer for JobMonitor {
    fn begins(&self, _files: usize, bytes: u64) {
        *self.bar.lock() = Some(Progress::new(bytes, self.shows_progress));
    }

    fn progressed(&self, bytes: u64) {
        if let Some(bar) = &*self.bar.lock() {
            bar.set(bytes);
        }
    }

    fn cancelled(&self) -> bool {
        self.interrupt.requested()
    }
}
