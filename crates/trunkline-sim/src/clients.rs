//! Code shared by the two random workloads: it seeds their clients, records a run's first failure,
//! and waits for the run to end.

use crate::pause::pause;
use std::time::Duration;
use trunkline_aio::facade::Mutex;

/// The seed of a client's random numbers, from the seed of its run.
pub(crate) fn client_seed(seed: u64, number: u32) -> u64 {
    seed.wrapping_mul(1_000_003).wrapping_add(u64::from(number))
}

/// The first failure of a run; later failures are usually its consequences. Clients record a
/// failure instead of panicking, because the other clients must still finish.
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

/// Waits until `state` returns OK, for at most a second on the façade's clock. Otherwise returns
/// the last error.
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
