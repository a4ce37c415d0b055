//! **Watcher**: shows the progress of a measurement, and can end it.

use std::fmt;
use std::sync::Arc;
use std::time::Duration;

use trunkline_engine::job::Observer;

/// Follows a measurement. The methods are called by the measuring thread and by the threads of its
/// sessions, and must not block.
pub trait Watcher: Send + Sync {
    /// Called after each repetition. `total` decreases when a case is steady early.
    fn progressed(&self, _done: u64, _total: u64, _case: &dyn fmt::Display) {}

    /// Called before a repetition and its preparation, which may take long.
    fn begins(&self, _case: &dyn fmt::Display) {}

    /// Called after each repetition with an estimate of the time left.
    fn estimated(&self, _remaining: Duration) {}

    /// Whether to stop.
    fn cancelled(&self) -> bool {
        false
    }
}

/// Ignores progress and never stops.
#[derive(Debug, Clone, Copy, Default)]
pub struct Unwatched;

impl Watcher for Unwatched {}

/// Lets the engine's jobs ask the watcher whether to stop. Their own progress isn't shown, because a
/// repetition is a small part of the measurement.
pub(crate) struct JobWatcher(pub(crate) Arc<dyn Watcher>);

impl Observer for JobWatcher {
    fn cancelled(&self) -> bool {
        self.0.cancelled()
    }
}
