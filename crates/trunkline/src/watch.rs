//! A job over many files as the person at the terminal sees it: a bar, and Ctrl-C, which ends the
//! job early but not without its counts.

use std::io;

use trunkline_aio::sync::Mutex;
use trunkline_engine::job::{End, Observer};

use crate::cli::Global;
use crate::exit::{Exit, Failure, message};
use crate::interrupt::Interrupt;
use crate::progress::Progress;

/// Watches one job.
#[derive(Debug)]
pub(crate) struct Watch {
    interrupt: Interrupt,
    shown: bool,
    bar: Mutex<Option<(Progress, u64)>>,
}

impl Watch {
    pub(crate) fn new(interrupt: Interrupt, global: &Global) -> Watch {
        let shown = !global.json && !global.no_progress;
        Watch { interrupt, shown, bar: Mutex::default() }
    }

    /// Says that a job was interrupted, if it was, and how that makes the command end.
    pub(crate) fn ended(&self, end: End, otherwise: Exit) -> Exit {
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

    /// Takes the bar off the terminal.
    pub(crate) fn clear(&self) {
        self.bar.lock().take();
    }
}

impl Observer for Watch {
    fn begins(&self, _files: usize, bytes: u64) {
        *self.bar.lock() = Some((Progress::new(bytes, self.shown), 0));
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

/// Takes over Ctrl-C.
pub(crate) fn interrupt() -> Result<Interrupt, Failure> {
    Interrupt::install().map_err(|error: io::Error| {
        Failure::cannot_run(format_args!("could not take over signals: {error}"))
    })
}
