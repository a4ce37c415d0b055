//! I/O statistics: counters, and distributions of device and wait times.
//!
//! Device time is how long the storage took to execute an I/O; wait time is how long a session
//! slept for it. PostgreSQL 18 measures only wait times. With read-ahead these are mostly zero, so
//! they say little about the disk. We therefore record both.
//!
//! Times go into HDR histograms in nanoseconds with two significant digits. The histograms are
//! sharded, so a recording thread only briefly holds a lock and rarely contends for it. Counters
//! are relaxed atomics: they don't order anything, and a reader may see one counter updated before
//! another.

use crate::lock_free::outcome::Status;
use crate::storage::operation::{OPERATIONS, Operation};
use crate::sync::Mutex;
use crate::sync::atomic::{AtomicU64, Ordering};
use crate::tables::class::{CLASSES, Class};
use crate::tables::completer::{COMPLETERS, Completer};
use hdrhistogram::Histogram;
use std::time::Duration;

/// Number of histogram shards. Completions choose a shard by handle index, waits by session number.
const SHARDS: usize = 8;
/// The longest time a histogram distinguishes: 1000 s.
const NANOS_MAX: u64 = 1_000_000_000_000;

/// An instance's statistics, updated by all threads.
#[derive(Debug)]
pub(crate) struct Statistics {
    /// Counters by class and operation.
    by_kind: [[Cell; OPERATIONS.len()]; CLASSES.len()],
    completers: [AtomicU64; COMPLETERS.len()],
    general: General,
    shards: Box<[Mutex<Shard>]>,
}

/// Counters for one class and operation.
#[derive(Debug, Default)]
struct Cell {
    count: AtomicU64,
    bytes: AtomicU64,
    partial: AtomicU64,
    warnings: AtomicU64,
    errors: AtomicU64,
    device_nanos: AtomicU64,
}

/// Counters without a class; see [`Counters`] for their meaning.
#[derive(Debug, Default)]
struct General {
    batches: AtomicU64,
    overflowed: AtomicU64,
    needed_now: AtomicU64,
    cached: AtomicU64,
    inline_writes: AtomicU64,
    retried: AtomicU64,
    moved: AtomicU64,
    advised: AtomicU64,
    leaked: AtomicU64,
    waits: AtomicU64,
    wait_nanos: AtomicU64,
    in_flight_sum: AtomicU64,
    in_flight_samples: AtomicU64,
    in_flight_max: AtomicU64,
    workers_launched: AtomicU64,
    workers_refused: AtomicU64,
}

/// Histograms by class and operation, in the order of `by_kind`. A shard takes a fixed amount of
/// memory, whether or not its histograms are used.
#[derive(Debug)]
struct Shard {
    device: Vec<Histogram<u32>>,
    wait: Vec<Histogram<u32>>,
    /// Waits for a free handle or a notification.
    wait_other: Histogram<u32>,
}

/// What we record about a completed I/O.
#[derive(Debug)]
pub(crate) struct CompletedIo {
    /// Index of the handle, which selects the shard.
    pub(crate) index: u32,
    pub(crate) class: Class,
    pub(crate) operation: Operation,
    /// Bytes, or minus errno.
    pub(crate) raw: i32,
    pub(crate) status: Status,
    pub(crate) device: Duration,
    pub(crate) completer: Completer,
}

/// Totals for one operation in one class.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct OperationCounters {
    /// I/Os completed, including failed ones.
    pub count: u64,
    /// Bytes transferred.
    pub bytes: u64,
    /// Short transfers without an error.
    pub partial: u64,
    /// Completed with a warning from a callback.
    pub warnings: u64,
    /// Failed.
    pub errors: u64,
    /// Total device time of these I/Os.
    pub device_time: Duration,
}

/// All counters since the instance started.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Counters {
    /// By class and operation, in the order of [`CLASSES`] and [`OPERATIONS`].
    pub by_kind: [[OperationCounters; OPERATIONS.len()]; CLASSES.len()],
    /// I/Os by the kind of thread that completed them, in the order of [`COMPLETERS`].
    pub completers: [u64; COMPLETERS.len()],
    /// Batches submitted through a method.
    pub batches: u64,
    /// I/Os executed by their issuer because the method had no room.
    pub overflowed: u64,
    /// I/Os executed by their issuer because it needed them immediately and had nothing else in
    /// flight.
    pub needed_now: u64,
    /// Reads served from the page cache by the issuing thread.
    pub cached: u64,
    /// Buffered writes, and their writebacks, that the issuing thread executed because the mount is
    /// fast.
    pub inline_writes: u64,
    /// Executions repeated after EINTR or EAGAIN.
    pub retried: u64,
    /// I/Os moved to the workers because a ring failed.
    pub moved: u64,
    /// Ranges for which `posix_fadvise` was issued under `sync`.
    pub advised: u64,
    /// Handles reclaimed because their [`crate::Io`] was leaked.
    pub leaked: u64,
    /// Times a session slept for I/O or for a handle.
    pub waits: u64,
    /// Total time slept.
    pub wait_time: Duration,
    /// Number of handles in use, summed over all submissions.
    pub in_flight_sum: u64,
    /// Number of submissions in `in_flight_sum`.
    pub in_flight_samples: u64,
    /// Maximum number of handles in use at a submission.
    pub in_flight_max: u64,
    /// Worker threads started.
    pub workers_launched: u64,
    /// Worker threads the system refused to start.
    pub workers_refused: u64,
}

impl Counters {
    /// One class and operation.
    pub fn of(&self, class: Class, operation: Operation) -> OperationCounters {
        self.by_kind[class as usize][operation as usize]
    }

    /// One operation, all classes.
    pub fn operation(&self, operation: Operation) -> OperationCounters {
        let mut sum = OperationCounters::default();
        for row in &self.by_kind {
            let cell = row[operation as usize];
            sum.count += cell.count;
            sum.bytes += cell.bytes;
            sum.partial += cell.partial;
            sum.warnings += cell.warnings;
            sum.errors += cell.errors;
            sum.device_time += cell.device_time;
        }
        sum
    }

    /// I/Os completed by one kind of thread.
    pub fn completed_by(&self, completer: Completer) -> u64 {
        self.completers[completer as usize]
    }

    /// Mean number of handles in use at submission.
    pub fn in_flight_mean(&self) -> f64 {
        self.in_flight_sum as f64 / self.in_flight_samples.max(1) as f64
    }
}

/// Distributions of times, in nanoseconds.
#[derive(Debug, Clone)]
pub struct Latencies {
    device: Vec<Option<Histogram<u32>>>,
    wait: Vec<Option<Histogram<u32>>>,
    wait_other: Histogram<u32>,
}

impl Latencies {
    /// Device times for one class and operation; `None` if no I/O has completed.
    pub fn device(&self, class: Class, operation: Operation) -> Option<&Histogram<u32>> {
        self.device[class as usize * OPERATIONS.len() + operation as usize].as_ref()
    }

    /// How long sessions slept for I/O of one class and operation; `None` if they never did.
    pub fn wait(&self, class: Class, operation: Operation) -> Option<&Histogram<u32>> {
        self.wait[class as usize * OPERATIONS.len() + operation as usize].as_ref()
    }

    /// How long sessions slept for a free handle or a notification.
    pub fn wait_other(&self) -> &Histogram<u32> {
        &self.wait_other
    }
}

impl Statistics {
    pub(crate) fn new() -> Self {
        let shard = || {
            let kinds = CLASSES.len() * OPERATIONS.len();
            // Allocate everything now, because recording happens on the I/O path.
            let each = || (0..kinds).map(|_| histogram()).collect();
            Mutex::new(Shard { device: each(), wait: each(), wait_other: histogram() })
        };
        Self {
            by_kind: Default::default(),
            completers: Default::default(),
            general: General::default(),
            shards: (0..SHARDS).map(|_| shard()).collect(),
        }
    }

    pub(crate) fn submitted(&self, count: usize, in_flight: u32) {
        let general = &self.general;
        add(&general.batches, 1);
        self.sample_in_flight(count as u64, in_flight);
    }

    pub(crate) fn needed_now(&self, in_flight: u32) {
        add(&self.general.needed_now, 1);
        self.sample_in_flight(1, in_flight);
    }

    pub(crate) fn cached(&self, in_flight: u32) {
        add(&self.general.cached, 1);
        self.sample_in_flight(1, in_flight);
    }

    pub(crate) fn inline_write(&self, in_flight: u32) {
        add(&self.general.inline_writes, 1);
        self.sample_in_flight(1, in_flight);
    }

    /// Samples the number of handles in use when I/O is submitted. `weight` is the number of I/Os,
    /// so the mean is per I/O rather than per batch.
    fn sample_in_flight(&self, weight: u64, in_flight: u32) {
        let general = &self.general;
        add(&general.in_flight_samples, weight);
        add(&general.in_flight_sum, weight * u64::from(in_flight));
        general.in_flight_max.fetch_max(u64::from(in_flight), Ordering::Relaxed);
    }

    /// Counts I/Os the method had no room for.
    pub(crate) fn overflowed(&self, count: usize) {
        if count > 0 {
            add(&self.general.overflowed, count as u64);
        }
    }

    pub(crate) fn retried(&self) {
        add(&self.general.retried, 1);
    }

    pub(crate) fn moved(&self, count: usize) {
        add(&self.general.moved, count as u64);
    }

    pub(crate) fn advised(&self) {
        add(&self.general.advised, 1);
    }

    pub(crate) fn leaked(&self) {
        add(&self.general.leaked, 1);
    }

    pub(crate) fn worker_launched(&self) {
        add(&self.general.workers_launched, 1);
    }

    pub(crate) fn worker_refused(&self) {
        add(&self.general.workers_refused, 1);
    }

    /// Records that a session slept. `kind` is `None` if it wasn't waiting for an I/O.
    pub(crate) fn waited(&self, session: u32, kind: Option<(Class, Operation)>, time: Duration) {
        add(&self.general.waits, 1);
        add(&self.general.wait_nanos, nanos(time));
        let mut shard = self.shards[session as usize % SHARDS].lock();
        let histogram = match kind {
            Some((class, operation)) => {
                &mut shard.wait[class as usize * OPERATIONS.len() + operation as usize]
            }
            None => &mut shard.wait_other,
        };
        histogram.saturating_record(nanos(time));
    }

    /// Records a completed I/O. Runs in the completing thread, so it must not block, apart from the
    /// shard's lock, which is only held while one value is recorded.
    pub(crate) fn completed(&self, io: &CompletedIo) {
        let (class, operation) = (io.class as usize, io.operation as usize);
        let cell = &self.by_kind[class][operation];
        add(&cell.count, 1);
        add(&cell.bytes, u64::try_from(io.raw).unwrap_or(0));
        match io.status {
            Status::Partial => add(&cell.partial, 1),
            Status::Warning => add(&cell.warnings, 1),
            Status::Error => add(&cell.errors, 1),
            Status::Ok | Status::Unknown => {}
        }
        add(&cell.device_nanos, nanos(io.device));
        add(&self.completers[io.completer as usize], 1);
        let mut shard = self.shards[io.index as usize % SHARDS].lock();
        let at = class * OPERATIONS.len() + operation;
        shard.device[at].saturating_record(nanos(io.device));
    }

    pub(crate) fn counters(&self) -> Counters {
        let get = |counter: &AtomicU64| counter.load(Ordering::Relaxed);
        let general = &self.general;
        Counters {
            by_kind: std::array::from_fn(|class| {
                std::array::from_fn(|operation| {
                    let cell = &self.by_kind[class][operation];
                    OperationCounters {
                        count: get(&cell.count),
                        bytes: get(&cell.bytes),
                        partial: get(&cell.partial),
                        warnings: get(&cell.warnings),
                        errors: get(&cell.errors),
                        device_time: Duration::from_nanos(get(&cell.device_nanos)),
                    }
                })
            }),
            completers: std::array::from_fn(|at| get(&self.completers[at])),
            batches: get(&general.batches),
            overflowed: get(&general.overflowed),
            needed_now: get(&general.needed_now),
            cached: get(&general.cached),
            inline_writes: get(&general.inline_writes),
            retried: get(&general.retried),
            moved: get(&general.moved),
            advised: get(&general.advised),
            leaked: get(&general.leaked),
            waits: get(&general.waits),
            wait_time: Duration::from_nanos(get(&general.wait_nanos)),
            in_flight_sum: get(&general.in_flight_sum),
            in_flight_samples: get(&general.in_flight_samples),
            in_flight_max: get(&general.in_flight_max),
            workers_launched: get(&general.workers_launched),
            workers_refused: get(&general.workers_refused),
        }
    }

    /// Merges all shards. This allocates and copies, but it locks only one shard at a time.
    pub(crate) fn latencies(&self) -> Latencies {
        let kinds = CLASSES.len() * OPERATIONS.len();
        let none = || vec![None; kinds];
        let mut sum = Latencies { device: none(), wait: none(), wait_other: histogram() };
        for shard in &self.shards {
            let shard = shard.lock();
            add_all(&mut sum.device, &shard.device);
            add_all(&mut sum.wait, &shard.wait);
            // Adding histograms with equal bounds cannot fail.
            let _ = sum.wait_other.add(&shard.wait_other);
        }
        sum
    }
}

fn add_all(sums: &mut [Option<Histogram<u32>>], parts: &[Histogram<u32>]) {
    for (sum, part) in sums.iter_mut().zip(parts) {
        if !part.is_empty() {
            let _ = sum.get_or_insert_with(histogram).add(part);
        }
    }
}

#[expect(clippy::expect_used, reason = "constant bounds, checked by every test of this crate")]
fn histogram() -> Histogram<u32> {
    Histogram::new_with_bounds(1, NANOS_MAX, 2).expect("valid bounds")
}

fn add(counter: &AtomicU64, amount: u64) {
    counter.fetch_add(amount, Ordering::Relaxed);
}

fn nanos(time: Duration) -> u64 {
    u64::try_from(time.as_nanos()).unwrap_or(u64::MAX)
}
