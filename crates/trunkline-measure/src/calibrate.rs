//! **Calibration**: finds out what a device can do, and which settings of a server follow from it.
//!
//! ```text
//!   Device ◀── loads ── Search ──▶ findings ──▶ settings: lines for PostgreSQL 18, 19, trunkline
//!     │                   ▲          │
//!     └─ windows ─────────┘          └─▶ Calibrated: JSON, CSV, page
//! ```
//! - **One search, two devices.** The code that searches and analyses knows only the trait `Device`
//!   (`load`). Tests run it on a model of a disk with a clock of its own, where it has to find limits
//!   that are known (`tests`). `real_device` is the user's.
//! - **Bursts.** A rate counts when it is steady (`steady`). If it falls on the way, the rest of the
//!   run gives the sustained rate, and everything before it the credit (`ledger`, `limit`).
//! - **Settings.** A setting changes only if the interval of what was measured excludes that the
//!   change gains nothing (`settings`). Anything else keeps its default, as a comment.
//!
//! Decision 0029 has the rules and the reasons, and 0033 those of writes.

mod comparison;
mod confidence;
mod durable_session;
mod durable_sweep;
mod findings;
mod ledger;
mod limit;
mod line;
mod load;
mod outcome;
mod page;
mod page_writer;
mod plots;
mod real_device;
mod search;
mod settings;
#[cfg(test)]
mod simulated_device;
mod steady;
mod step;
mod summary;
mod sweep;
#[cfg(test)]
mod tests;
mod time_plan;
mod write_search;
mod write_sync;

use std::path::{Path, PathBuf};
use std::time::Duration;

use trunkline_aio::facade::Arc;
use trunkline_aio::{Canceller, clock};

use self::real_device::RealDevice;
use self::search::{Ended, FILE_MIN, Search};
use crate::bench::Origin;
use crate::error::MeasureError;
use crate::machine::Machine;
use crate::watcher::Watcher;

pub use self::comparison::Case;
pub use self::confidence::Confidence;
pub use self::findings::{Concurrency, DeviceFindings, Series};
pub use self::limit::{Burst, Limit};
pub use self::line::{Line, Lines, Target};
pub use self::outcome::Calibrated;
pub use self::real_device::ScratchFiles;
pub use self::settings::ClusterFacts;
pub use self::step::Step;

/// Bytes that a calibration needs beside the scratch file of the given size: the log of durable
/// writes.
pub const CALIBRATION_BYTES_BESIDE: u64 = real_device::LOG_BYTES;

/// The smallest scratch file.
pub const CALIBRATION_BYTES_MIN: u64 = FILE_MIN;

/// What to calibrate, and for how long.
#[derive(Debug, Clone)]
pub struct CalibrationPlan {
    /// The directory whose file system is measured, for the report.
    pub directory: PathBuf,
    /// Size of the scratch file, at most. A slow device doesn't fill it in its time.
    pub bytes: u64,
    /// How long everything takes, about.
    pub time: Duration,
    /// Why direct I/O may not be what it seems to be on this file system.
    pub direct_caution: Option<String>,
    /// What the settings are for.
    pub cluster: ClusterFacts,
}

/// A calibration that is ready to run.
pub struct Calibration {
    device: RealDevice,
    plan: CalibrationPlan,
    watcher: Arc<dyn Watcher>,
}

impl Calibration {
    /// Starts I/O and writes the small file.
    ///
    /// # Errors
    /// [`MeasureError`]: the files can't be written, or memory or threads are missing.
    pub fn new(
        files: ScratchFiles,
        plan: CalibrationPlan,
        watcher: Arc<dyn Watcher>,
    ) -> Result<Self, MeasureError> {
        let is_doubtful = plan.direct_caution.is_some();
        let device =
            RealDevice::new(files, &plan.directory, plan.bytes, is_doubtful, Arc::clone(&watcher))?;
        Ok(Self { device, plan, watcher })
    }

    /// Cancels all waits.
    pub fn canceller(&self) -> Canceller {
        self.device.canceller()
    }

    /// Why reads don't bypass the page cache, if they don't.
    pub fn direct_problem(&self) -> Option<&str> {
        self.device.direct_problem()
    }

    /// Measures. If the watcher ends it, or an I/O fails, the report has what was found nevertheless.
    ///
    /// This doesn't wait for I/Os in flight when the watcher ends it, but dropping the calibration does.
    ///
    /// # Errors
    /// [`MeasureError`]: the scratch file or the latency can't be measured, or the device is too slow for
    /// the time.
    pub fn run(&mut self, origin: Origin) -> Result<Calibrated, MeasureError> {
        let started = clock::unix_micros() / 1_000_000;
        let machine = Machine::describe(&self.plan.directory);
        let io_method = self.device.usual_method().name().to_owned();
        let buffered_because = self.device.direct_problem().map(str::to_owned);
        let not_direct = buffered_because.clone().or_else(|| self.plan.direct_caution.clone());
        let mut search = Search::new(
            &mut self.device,
            self.plan.time,
            self.plan.cluster.combine_max(),
            Arc::clone(&self.watcher),
        );
        search.found.not_direct = not_direct;
        let complete = match search.run() {
            Ok(()) => !search.has_failed,
            Err(Ended::Cancelled) => false,
            Err(Ended::Failed(error)) => return Err(error),
        };
        let found = std::mem::take(&mut search.found);
        let settings = settings::settings(&found, &self.plan.cluster, complete);
        Ok(Calibrated {
            schema: outcome::SCHEMA,
            command: "calibrate".to_owned(),
            command_line: origin.command_line,
            program: origin.program,
            started,
            machine,
            directory: display(&self.plan.directory),
            seconds: self.plan.time.as_secs(),
            io_method,
            buffered_because,
            complete,
            found,
            settings,
        })
    }
}

fn display(path: &Path) -> String {
    path.display().to_string()
}
