//! **Samples**: what one repetition took, from the clock and from the engine's own statistics.

use std::time::Duration;

use trunkline_aio::clock::{self, Time};
use trunkline_aio::{Counters, Latencies, MethodKind, Operation};
use trunkline_engine::Engine;
use trunkline_engine::pool::Tally;

use crate::latency::IoTimes;

/// One repetition.
#[derive(Debug, Clone, Default)]
pub(crate) struct Sample {
    pub(crate) seconds: f64,
    /// Blocks that the work asked for, or wrote.
    pub(crate) blocks: u64,
    /// Of these, blocks found in the pool, or being read for another request.
    pub(crate) hits: u64,
    pub(crate) io_bytes: u64,
    /// Not known of a server.
    pub(crate) details: Option<Details>,
    pub(crate) times: IoTimes,
    /// The nodes of the plan that a server's planner chose, if none was forced.
    pub(crate) plan: Option<String>,
}

/// What only our own engine counts.
#[derive(Debug, Clone, Copy, Default)]
pub(crate) struct Details {
    /// Of all threads, including the kernel's that work for this process.
    pub(crate) cpu_seconds: f64,
    /// Reads or writes.
    pub(crate) ios: u64,
    /// Mean number in flight at submission.
    pub(crate) in_flight: f64,
    pub(crate) device_seconds: f64,
    pub(crate) wait_seconds: f64,
}

/// What a repetition does, which decides whose I/Os and waits are counted.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Work {
    /// Reads into the pool.
    PoolReads,
    /// Reads of files outside the pool.
    FileReads,
    /// Durable writes.
    DurableWrites,
    /// A checkpoint.
    Checkpoint,
}

impl Work {
    /// The operation whose I/Os are counted.
    fn counted(self) -> Operation {
        match self {
            Work::PoolReads | Work::FileReads => Operation::Readv,
            Work::DurableWrites | Work::Checkpoint => Operation::Writev,
        }
    }

    /// The operations whose device time is summed. A checkpoint also waits for its fsyncs.
    fn timed(self) -> &'static [Operation] {
        match self {
            Work::PoolReads | Work::FileReads => &[Operation::Readv],
            Work::DurableWrites => &[Operation::Writev],
            Work::Checkpoint => &[
                Operation::Writev,
                Operation::BeginWriteback,
                Operation::Fsync,
                Operation::Fdatasync,
            ],
        }
    }
}

/// A running repetition: the clocks and counters at its start.
pub(crate) struct Stopwatch {
    work: Work,
    counters: Counters,
    latencies: Latencies,
    tally: Tally,
    cpu: Duration,
    started: Time,
}

impl Stopwatch {
    /// Starts.
    pub(crate) fn start(engine: &Engine, work: Work) -> Self {
        Self {
            work,
            counters: engine.aio().counters(),
            latencies: engine.aio().latencies(),
            tally: engine.pool().total(),
            cpu: cpu_time(),
            // Last, so that the snapshots aren't timed.
            started: clock::now(),
        }
    }

    /// Ends. `took` replaces our own time for work that has timed itself.
    pub(crate) fn stop(self, engine: &Engine, blocks: u64, took: Option<Duration>) -> Sample {
        let elapsed = clock::now().since(self.started);
        let cpu = cpu_time().saturating_sub(self.cpu);
        let (old, new) = (&self.counters, engine.aio().counters());
        let operation = self.work.counted();
        let (before, after) = (old.operation(operation), new.operation(operation));
        let samples = (new.in_flight_samples - old.in_flight_samples).max(1) as f64;
        let seconds = |new: Duration, old: Duration| new.saturating_sub(old).as_secs_f64();
        let device = |&operation: &Operation| {
            seconds(new.operation(operation).device_time, old.operation(operation).device_time)
        };
        let device_seconds = self.work.timed().iter().map(device).sum();
        let slept = seconds(new.wait_time, old.wait_time);
        let pool = engine.pool().total().since(&self.tally);
        let times = IoTimes::between(&self.latencies, &engine.aio().latencies(), operation);
        // The instance counts only sleeps. With `sync`, sessions execute all I/O themselves, and other
        // methods leave some reads to them. The pool adds these reads to its waits; outside the pool,
        // we know only that under `sync` each I/O is one.
        let is_sync = engine.aio().method_status().used == MethodKind::Sync;
        let wait_seconds = match (self.work, is_sync) {
            (Work::PoolReads, _) => pool.wait_time().as_secs_f64(),
            (_, true) => slept + device_seconds,
            (_, false) => slept,
        };
        Sample {
            seconds: took.unwrap_or(elapsed).as_secs_f64(),
            blocks,
            hits: pool.hits,
            io_bytes: after.bytes - before.bytes,
            details: Some(Details {
                cpu_seconds: cpu.as_secs_f64(),
                ios: after.count - before.count,
                in_flight: (new.in_flight_sum - old.in_flight_sum) as f64 / samples,
                device_seconds,
                wait_seconds,
            }),
            times: if is_sync { times.executed_by_sessions() } else { times },
            plan: None,
        }
    }
}

/// CPU time of all threads of this process, including the kernel threads that work for it.
#[expect(clippy::disallowed_methods, reason = "only measured and shown, never acted upon")]
fn cpu_time() -> Duration {
    let time = rustix::time::clock_gettime(rustix::time::ClockId::ProcessCPUTime);
    Duration::new(time.tv_sec.unsigned_abs(), time.tv_nsec.unsigned_abs() as u32)
}
