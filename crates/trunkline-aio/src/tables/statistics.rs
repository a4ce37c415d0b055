//! I/O statistics: counters, and distributions of device and wait times.
//!
//! Device time is how long the storage took to execute an I/O, whereas wait time is how long a
//! session slept until the I/O completed. PostgreSQL 18 measures only wait times. With read-ahead
//! these are mostly zero and say little about the disk, so we record both.
//!
//! Times are recorded in nanoseconds, in HDR histograms with two significant digits. The histograms
//! are sharded, so that a thread holds a lock only briefly to record a time and rarely contends for
//! it. The counters are relaxed atomics, so they don't order anything, and a reader may see one
//! counter updated before another.

use crate::facade::Mutex;
use crate::facade::atomic::{AtomicU64, Ordering};
use crate::lock_free::outcome::Status;
use crate::lock_free::wait_ref::WaitRef;
use crate::storage::operation::{OPERATIONS, Operation};
use crate::tables::class::{CLASSES, Class};
use crate::tables::completer::{COMPLETERS, Completer};
use crate::tables::handle::Handle;
use hdrhistogram::Histogram;
use std::time::Duration;

/// Number of histogram shards. Completions choose a shard by handle index, waits by session number.
const SHARDS: usize = 8;
/// The longest time a histogram distinguishes: 1000 s.
const NANOS_MAX: u64 = 1_000_000_000_000;

/// A counter that all threads may increase: a number, or a time in nanoseconds.
#[derive(Debug, Default)]
pub(crate) struct Counter(AtomicU64);

impl Counter {
    pub(crate) fn add(&self, amount: u64) {
        self.0.fetch_add(amount, Ordering::Relaxed);
    }

    fn read<T: Count>(&self) -> T {
        T::from_number(self.0.load(Ordering::Relaxed))
    }
}

/// What a counter may count.
trait Count {
    fn from_number(number: u64) -> Self;
}

impl Count for u64 {
    fn from_number(number: u64) -> Self {
        number
    }
}

impl Count for Duration {
    fn from_number(number: u64) -> Self {
        Duration::from_nanos(number)
    }
}

/// Declares two structs from a single list of fields: one with plain counts, and one with the
/// atomic counters from which we read them. The fields in braces exist only in the plain struct.
/// The `read` function leaves them at their defaults, and its caller fills them in from other
/// structs.
macro_rules! counts {
    (
        $(#[$meta:meta])*
        struct $counts:ident from $counters:ident;
        { $($(#[$other_doc:meta])* $other:ident: $other_type:ty,)* }
        $($(#[$doc:meta])* $name:ident: $type:ty,)*
    ) => {
        $(#[$meta])*
        #[derive(Debug, Clone, PartialEq, Eq, Default)]
        pub struct $counts {
            $($(#[$other_doc])* pub $other: $other_type,)*
            $($(#[$doc])* pub $name: $type,)*
        }

        #[derive(Debug, Default)]
        pub(crate) struct $counters {
            $(pub(crate) $name: Counter,)*
        }

        impl $counters {
            fn read(&self) -> $counts {
                $counts {
                    $($other: Default::default(),)*
                    $($name: self.$name.read(),)*
                }
            }
        }
    };
}

counts! {
    /// Totals for one operation in one class.
    #[derive(Copy)]
    struct OperationCounters from OperationCells;
    {}
    /// I/Os completed, including failed ones.
    count: u64,
    /// Bytes transferred.
    bytes: u64,
    /// Short transfers without an error.
    partial: u64,
    /// Completed with a warning from a callback.
    warnings: u64,
    /// Failed.
    errors: u64,
    /// Total device time of these I/Os.
    device_time: Duration,
}

counts! {
    /// All counters since the instance started.
    struct Counters from GeneralCells;
    {
        /// By class and operation, in the order of [`CLASSES`] and [`OPERATIONS`].
        by_kind: [[OperationCounters; OPERATIONS.len()]; CLASSES.len()],
        /// Number of I/Os by the kind of thread that completed them, in the order of
        /// [`COMPLETERS`].
        completers: [u64; COMPLETERS.len()],
    }
    /// Batches submitted through a method.
    batches: u64,
    /// I/Os executed by their issuer because the method had no room.
    overflowed: u64,
    /// I/Os executed by their issuer because it needed them immediately and had nothing else in
    /// flight.
    needed_now: u64,
    /// Reads served from the page cache by the issuing thread.
    cached: u64,
    /// Buffered writes, and their writebacks, that the issuing thread executed because the mount is
    /// fast.
    inline_writes: u64,
    /// Executions repeated after EINTR or EAGAIN.
    retried: u64,
    /// I/Os moved to the workers because a ring failed.
    moved: u64,
    /// Ranges for which `posix_fadvise` was issued under `sync`.
    advised: u64,
    /// Handles reclaimed because their [`crate::Io`] was leaked.
    leaked: u64,
    /// Times a session slept for I/O or for a handle.
    waits: u64,
    /// Total time slept.
    wait_time: Duration,
    /// Number of handles in use, summed over all submissions.
    in_flight_sum: u64,
    /// Number of submissions in `in_flight_sum`.
    in_flight_samples: u64,
    /// Maximum number of handles in use at a submission.
    in_flight_max: u64,
    /// Worker threads started.
    workers_launched: u64,
    /// Worker threads the system refused to start.
    workers_refused: u64,
}

/// An instance's statistics, updated by all threads.
#[derive(Debug)]
pub(crate) struct Statistics {
    /// Counters by class and operation.
    by_kind: [[OperationCells; OPERATIONS.len()]; CLASSES.len()],
    completers: [Counter; COMPLETERS.len()],
    general: GeneralCells,
    shards: Box<[Mutex<Shard>]>,
}

/// One histogram for each class and operation, in the same order as `by_kind`. A shard uses a fixed
/// amount of memory, whether or not anything is recorded in its histograms.
#[derive(Debug)]
struct Shard {
    device: Vec<Histogram<u32>>,
    wait: Vec<Histogram<u32>>,
    /// Waits for a free handle or a notification.
    wait_other: Histogram<u32>,
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
        self.device[position(class, operation)].as_ref()
    }

    /// How long sessions slept for I/O of one class and operation; `None` if they never did.
    pub fn wait(&self, class: Class, operation: Operation) -> Option<&Histogram<u32>> {
        self.wait[position(class, operation)].as_ref()
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
            general: Default::default(),
            shards: (0..SHARDS).map(|_| shard()).collect(),
        }
    }

    /// The counters without a class.
    pub(crate) fn general(&self) -> &GeneralCells {
        &self.general
    }

    /// Records how many handles are in use when I/O is submitted. The weight is the number of I/Os
    /// submitted, so that the mean is per I/O rather than per batch.
    pub(crate) fn sample_in_flight(&self, weight: usize, in_flight: u32) {
        let (general, weight, in_flight) = (&self.general, weight as u64, u64::from(in_flight));
        general.in_flight_samples.add(weight);
        general.in_flight_sum.add(weight * in_flight);
        general.in_flight_max.0.fetch_max(in_flight, Ordering::Relaxed);
    }

    /// Records that a session slept. `kind` is `None` if it wasn't waiting for an I/O.
    pub(crate) fn waited(&self, session: u32, kind: Option<(Class, Operation)>, time: Duration) {
        self.general.waits.add(1);
        self.general.wait_time.add(nanos(time));
        let mut shard = self.shards[session as usize % SHARDS].lock();
        let histogram = match kind {
            Some((class, operation)) => &mut shard.wait[position(class, operation)],
            None => &mut shard.wait_other,
        };
        histogram.saturating_record(nanos(time));
    }

    /// Records a completed I/O. This runs in the completing thread, so it must not block. The only
    /// lock it takes is the shard's, which we hold just long enough to record one value.
    pub(crate) fn completed(&self, io: WaitRef, handle: &Handle, status: Status, by: Completer) {
        let (class, operation, device) =
            (handle.class(), handle.operation(), nanos(handle.device_time()));
        let cell = &self.by_kind[class as usize][operation as usize];
        cell.count.add(1);
        cell.bytes.add(handle.raw().and_then(|raw| u64::try_from(raw).ok()).unwrap_or(0));
        match status {
            Status::Partial => cell.partial.add(1),
            Status::Warning => cell.warnings.add(1),
            Status::Error => cell.errors.add(1),
            Status::Ok | Status::Unknown => {}
        }
        cell.device_time.add(device);
        self.completers[by as usize].add(1);
        let mut shard = self.shards[io.index() as usize % SHARDS].lock();
        shard.device[position(class, operation)].saturating_record(device);
    }

    pub(crate) fn counters(&self) -> Counters {
        Counters {
            by_kind: self.by_kind.each_ref().map(|row| row.each_ref().map(OperationCells::read)),
            completers: self.completers.each_ref().map(Counter::read),
            ..self.general.read()
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

/// The position of a class and operation in a list of histograms.
fn position(class: Class, operation: Operation) -> usize {
    class as usize * OPERATIONS.len() + operation as usize
}

fn nanos(time: Duration) -> u64 {
    u64::try_from(time.as_nanos()).unwrap_or(u64::MAX)
}
