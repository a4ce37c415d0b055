//! **Loads**: what a device is asked to do, and what it answers.
//!
//! The code that searches and analyses runs against the trait [`Device`], so the same code runs on a
//! real device and, in tests, on a model of a disk with a clock of its own.
//!
//! A device answers with a series of short windows instead of one number. A number hides that a
//! burst credit ran out half-way.

use std::time::Duration;

use hdrhistogram::Histogram;
use trunkline_aio::MethodKind;

use crate::error::MeasureError;

/// A page of PostgreSQL.
pub(crate) const PAGE: u32 = 8192;
/// Reads in flight at rising size: PostgreSQL's default of `effective_io_concurrency`.
pub(crate) const DEFAULT_DEPTH: u32 = 16;

/// How a write becomes durable. The names are those of `wal_sync_method`.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum SyncMethod {
    Fdatasync,
    Fsync,
    OpenDatasync,
    OpenSync,
}

impl SyncMethod {
    /// All of them, PostgreSQL's default on Linux first.
    pub(crate) const ALL: [Self; 4] =
        [Self::Fdatasync, Self::OpenDatasync, Self::Fsync, Self::OpenSync];

    /// The value of `wal_sync_method`.
    pub(crate) fn name(self) -> &'static str {
        match self {
            Self::Fdatasync => "fdatasync",
            Self::Fsync => "fsync",
            Self::OpenDatasync => "open_datasync",
            Self::OpenSync => "open_sync",
        }
    }
}

/// The kind of work.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Work {
    /// Writes the scratch file in order, until it has its size.
    Fill,
    /// Reads pages at random places.
    Random,
    /// Reads in order.
    Sequential,
    /// Reads and writes at random places, this percentage of reads. The latencies are those of reads.
    Mixed(u32),
    /// Overwrites pages of the scratch file at random places.
    RandomWrite,
    /// Overwrites the scratch file in order.
    SequentialWrite,
    /// Single writes, each durable before the session does the next one. The depth is the number of
    /// sessions.
    Durable(SyncMethod),
    /// One session writes durably while another one writes pages into the page cache and has the
    /// kernel write them back after this many bytes (0: never); at the end it syncs them, as a
    /// checkpoint does. The latencies are those of the durable session.
    Flush(u64),
}

impl Work {
    /// Whether all of its I/Os are writes of the scratch file.
    pub(crate) fn only_writes(self) -> bool {
        matches!(self, Self::Fill | Self::RandomWrite | Self::SequentialWrite)
    }

    /// Whether some of its I/Os are such writes.
    pub(crate) fn writes(self) -> bool {
        self.only_writes() || matches!(self, Self::Mixed(_))
    }
}

/// Something to do for a while.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Load {
    pub(crate) work: Work,
    /// Whether reads bypass the page cache. If not, they begin with an empty one.
    pub(crate) is_direct: bool,
    /// `None` for io_uring or, where that is missing, what replaces it.
    pub(crate) method: Option<MethodKind>,
    /// Most workers of the method `worker`.
    pub(crate) workers: usize,
    /// I/Os in flight.
    pub(crate) depth: u32,
    /// Bytes of an I/O.
    pub(crate) size: u32,
    /// How long the device is idle between two I/Os.
    pub(crate) pause: Duration,
    pub(crate) duration: Duration,
    /// A window ends with the first completion after this time.
    pub(crate) window: Duration,
}

/// What completed in a short time. A window begins where the last one ended, and ends with a
/// completion, so a rate isn't rounded to a whole number of I/Os.
#[derive(Debug, Clone)]
pub(crate) struct Window {
    /// When it begins, in seconds on the device's clock.
    pub(crate) begin: f64,
    pub(crate) seconds: f64,
    pub(crate) count: u64,
    pub(crate) bytes: u64,
    /// Nanoseconds of each I/O.
    pub(crate) latency: Histogram<u32>,
    /// Only I/Os that were still in flight at the end. They count as work, but not as a rate.
    pub(crate) is_tail: bool,
}

impl Window {
    pub(crate) fn new(begin: f64) -> Self {
        Self { begin, seconds: 0.0, count: 0, bytes: 0, latency: latencies(), is_tail: false }
    }

    /// Adds an I/O that has completed.
    pub(crate) fn record(&mut self, bytes: u64, latency: Duration) {
        self.record_without_time(bytes);
        self.record_time(latency);
    }

    /// Adds an I/O whose time isn't shown.
    pub(crate) fn record_without_time(&mut self, bytes: u64) {
        self.count += 1;
        self.bytes += bytes;
    }

    /// Adds the time of an I/O that is counted elsewhere.
    pub(crate) fn record_time(&mut self, latency: Duration) {
        // Saturates at the bounds of the histogram.
        self.latency.saturating_record(u64::try_from(latency.as_nanos()).unwrap_or(u64::MAX));
    }

    pub(crate) fn ios_per_second(&self) -> f64 {
        self.count as f64 / self.seconds.max(1e-9)
    }

    pub(crate) fn bytes_per_second(&self) -> f64 {
        self.bytes as f64 / self.seconds.max(1e-9)
    }
}

/// An empty histogram of nanoseconds, up to 100 seconds, with two significant digits.
pub(crate) fn latencies() -> Histogram<u32> {
    match Histogram::new_with_bounds(1_000, 100_000_000_000, 2) {
        Ok(histogram) => histogram,
        Err(_) => unreachable!("the bounds are valid"),
    }
}

/// Why a device didn't do something.
#[derive(Debug)]
pub(crate) enum DeviceError {
    /// It can't be done here. Everything else still can.
    Unsupported(String),
    Failed(MeasureError),
}

impl From<MeasureError> for DeviceError {
    fn from(error: MeasureError) -> Self {
        Self::Failed(error)
    }
}

/// Something that does I/O and has a clock.
pub(crate) trait Device {
    /// Seconds since some start.
    fn now(&self) -> f64;

    /// Runs a load. Calls `each` with each window when it ends; the load ends early if that returns
    /// false. When this returns, nothing is in flight.
    ///
    /// # Errors
    /// The load isn't possible, or an I/O failed. Windows up to then were passed on.
    fn run(&mut self, load: &Load, each: &mut dyn FnMut(Window) -> bool)
    -> Result<(), DeviceError>;

    /// Whether reads can bypass the page cache.
    fn is_direct(&self) -> bool;

    /// How many bytes of the scratch file were written.
    fn file_bytes(&self) -> u64;
}
