//! Code that is used by both random workloads. It chooses a seed for each client, records the first
//! failure in a run, and waits until the run has finished.

use crate::pause::pause;
use std::time::Duration;
use trunkline_aio::facade::Mutex;

/// The seed of a client's random numbers, from the seed of its run.
pub(crate) fn client_seed(seed: u64, number: u32) -> u64 {
    seed.wrapping_mul(1_000_003).wrapping_add(u64::from(number))
}

/// Records the first failure in a run. We ignore any later failures, because they are usually
/// caused by the first one. A client that detects a failure must record it here rather than panic,
/// because the other clients still have to finish.
#[derive(Debug, Default)]
pub(crate) struct FirstFailure(Mutex<Option<String>>);

impl FirstFailure {
    /// Records a failure.
    pub(crate) fn record(&self, text: String) {
        self.0.lock().get_or_insert(text);
    }

    /// Returns the failure, if there was one.
    pub(crate) fn take(&self) -> Result<(), String> {
        self.0.lock().take().map_or(Ok(()), Err)
    }
}

/// Calls `state` until it returns OK. If it doesn't do so within a second on the façade's clock,
/// returns the last error.
pub(crate) fn settle(state: impl Fn() -> Result<(), String>) -> Result<(), String> {
    let mut last = Ok(());
    for _ in 0..1000 {
        last = state();
        if last.is_ok() {
            break;
        }
        pause(Duration::from_millis(1));
    }
    last
}
