//! How a job ended, how long it took, and statistics about its I/O.
//!
//! Every report of a job contains these parts.

use std::time::Duration;

use trunkline_aio::{Counters, Operation};

/// How a job ended. If a job fails, it returns an error instead of a report, so there's no value
/// for that here.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum End {
    /// All work was done. This includes jobs that couldn't read some of the blocks; those are
    /// reported as findings.
    #[default]
    Complete,
    /// The observer cancelled the job.
    Cancelled,
    /// The observer cancelled the job, but a read or some other system call didn't return in time.
    /// We had to leak the thread and its buffers, because the kernel may still write into them.
    /// Don't wait for the [`Aio`](trunkline_aio::Aio) to shut down, because that would wait for the
    /// same system call.
    Abandoned,
}

/// I/O statistics for a job. We compute them by subtracting the instance's counters before the job
/// from those after it, so they include any I/O issued by other users of the instance in the
/// meantime.
#[derive(Debug, Clone, Copy, Default, PartialEq)]
pub struct IoSummary {
    /// Reads.
    pub reads: u64,
    /// Bytes read.
    pub bytes: u64,
    /// Reads served from the page cache by the issuing session itself.
    pub cached: u64,
    /// Mean number of reads in flight, as sampled by the instance. You can use it to check whether
    /// the job has reached the configured depth.
    pub in_flight: f64,
    /// How often a thread waited for I/O.
    pub waits: u64,
    /// Total time of these waits.
    pub wait_time: Duration,
    /// Total time that reads spent in the device. This is usually more than the elapsed time,
    /// because reads overlap.
    pub device_time: Duration,
    /// Reads that had to be retried after EINTR or EAGAIN.
    pub retried: u64,
}

impl IoSummary {
    /// The reads between two snapshots of the instance's counters. The differences can't be
    /// negative, because counters never decrease.
    pub(super) fn between(before: &Counters, after: &Counters) -> Self {
        let (old, new) = (before.operation(Operation::Readv), after.operation(Operation::Readv));
        let samples = after.in_flight_samples - before.in_flight_samples;
        let sum = after.in_flight_sum - before.in_flight_sum;
        Self {
            reads: new.count - old.count,
            bytes: new.bytes - old.bytes,
            cached: after.cached - before.cached,
            in_flight: sum as f64 / samples.max(1) as f64,
            waits: after.waits - before.waits,
            wait_time: after.wait_time.saturating_sub(before.wait_time),
            device_time: new.device_time.saturating_sub(old.device_time),
            retried: after.retried - before.retried,
        }
    }
}

/// The part of a report that all jobs have in common.
#[derive(Debug, Clone, Copy)]
pub(crate) struct JobSummary {
    pub(crate) end: End,
    /// Time from start to end.
    pub(crate) elapsed: Duration,
    /// The part of the elapsed time during which workers were running. We use this to compute
    /// throughput, because it doesn't include planning.
    pub(crate) working: Duration,
    /// Blocks that were read.
    pub(crate) blocks: u64,
    pub(crate) io: IoSummary,
}

/// A rate for reports. Always finite, even for an empty table.
pub(crate) fn bytes_per_second(bytes: u64, elapsed: Duration) -> f64 {
    bytes as f64 / elapsed.as_secs_f64().max(1e-9)
}
