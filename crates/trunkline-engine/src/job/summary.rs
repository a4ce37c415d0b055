//! How a job ended, how long it took, and what its I/O looked like.
//!
//! Every report of a job contains these parts.

use std::time::Duration;

use trunkline_aio::{Counters, Operation};

/// How a job ended. A failed job doesn't have one of these, because it returns an error instead of
/// a report.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum End {
    /// All work was done. Blocks that couldn't be read are findings; the job is still complete.
    #[default]
    Complete,
    /// The observer cancelled the job.
    Cancelled,
    /// The observer cancelled the job, but a read or another system call did not return in time.
    /// Its thread and its buffers are leaked, because the kernel may still write into them. Do not
    /// wait for the [`Aio`](trunkline_aio::Aio) to shut down: that would wait for the same system
    /// call.
    Abandoned,
}

/// I/O statistics for a job: the difference between the instance's counters before and after the
/// job. They therefore include other users' I/O through the same instance.
#[derive(Debug, Clone, Copy, Default, PartialEq)]
pub struct IoSummary {
    /// Reads.
    pub reads: u64,
    /// Bytes read.
    pub bytes: u64,
    /// Reads served from the page cache by the issuing session itself.
    pub cached: u64,
    /// Mean number of reads in flight, sampled by the instance. It shows whether the configured
    /// depth was reached.
    pub in_flight: f64,
    /// How often a thread waited for I/O.
    pub waits: u64,
    /// Total time of these waits.
    pub wait_time: Duration,
    /// Total time that reads spent in storage. Since reads overlap, this usually exceeds the
    /// elapsed time.
    pub device_time: Duration,
    /// Reads that had to be retried after EINTR or EAGAIN.
    pub retried: u64,
}

impl IoSummary {
    /// The reads between two snapshots of the instance's counters. Counters never decrease, so the
    /// differences can't be negative.
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
    /// The part of the elapsed time in which workers ran. It excludes planning, so we use it to
    /// compute throughput.
    pub(crate) working: Duration,
    /// Blocks that were read.
    pub(crate) blocks: u64,
    pub(crate) io: IoSummary,
}

/// A rate for reports. Always finite, even for an empty table.
pub(crate) fn bytes_per_second(bytes: u64, elapsed: Duration) -> f64 {
    bytes as f64 / elapsed.as_secs_f64().max(1e-9)
}
