//! Progress and cancellation of one job: a progress bar on a terminal, and Ctrl-C, which ends the
//! job early but still prints its counts.
//!
//! The job calls the [`Observer`] methods from its own threads, so the bar is behind a lock.

use trunkline_aio::sync::Mutex;
use trunkline_engine::job::{End, Observer};

use crate::exit::{Exit, message};
use crate::interrupt::Interrupt;
use crate::options::Global;
use crate::progress::Progress;

/// Observes one job.
#[derive(Debug)]
pub(crate) struct JobMonitor {
    interrupt: Interrupt,
    shows_progress: bool,
    /// The bar and the number of bytes it shows, once the job has begun. The job reports running
    /// totals but the bar wants increments, so we remember the previous total.
    bar: Mutex<Option<(Progress, u64)>>,
}

impl JobMonitor {
    pub(crate) fn new(interrupt: Interrupt, global: &Global) -> JobMonitor {
        JobMonitor { interrupt, shows_progress: global.shows_progress(), bar: Mutex::default() }
    }

    /// The exit code of a command whose job ended this way: `otherwise`, unless the job was
    /// interrupted, which we report here.
    pub(crate) fn exit(&self, end: End, otherwise: Exit) -> Exit {
        match end {
            End::Complete => return otherwise,
            End::Cancelled => {
                message("warning", "interrupted; counts cover only part of the data");
            }
            End::Abandoned => {
                let text = "interrupted while I/O was hanging; counts cover only part of the data";
                message("warning", text);
            }
        }
        self.interrupt.exit()
    }

    /// Removes the bar from the terminal.
    pub(crate) fn clear(&self) {
        self.bar.lock().take();
    }
}

impl Observer for JobMonitor {
    fn begins(&self, _files: usize, bytes: u64) {
        *self.bar.lock() = Some((Progress::new(bytes, self.shows_progress), 0));
    }

    fn progressed(&self, bytes: u64) {
        if let Some((bar, before)) = &mut *self.bar.lock() {
            bar.advance(bytes.saturating_sub(*before));
            *before = bytes;
        }
    }

    fn cancelled(&self) -> bool {
        self.interrupt.requested()
    }
}
