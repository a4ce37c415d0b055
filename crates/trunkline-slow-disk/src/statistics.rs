//! Counters of a slow disk, printed when it is unmounted.

use std::time::Duration;

use trunkline_aio::facade::atomic::{AtomicU64, Ordering};

/// What a disk has done. The counters are independent of each other, so their accesses are relaxed.
#[derive(Debug, Default)]
pub(crate) struct Counters {
    reads: AtomicU64,
    read_bytes: AtomicU64,
    writes: AtomicU64,
    written_bytes: AtomicU64,
    flushes: AtomicU64,
    late: AtomicU64,
    latest_ns: AtomicU64,
}

/// What a disk has done since it was mounted.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Statistics {
    /// Read requests.
    pub reads: u64,
    /// Bytes read.
    pub read_bytes: u64,
    /// Write requests.
    pub writes: u64,
    /// Bytes written.
    pub written_bytes: u64,
    /// Flushes: `fsync`, `fdatasync`, and writes to files opened with `O_DSYNC`.
    pub flushes: u64,
    /// Requests that took longer than the profile says, because the directory below was slower.
    pub late: u64,
    /// How late the latest of them was.
    pub latest: Duration,
}

impl Counters {
    pub(crate) fn count_read(&self, bytes: u64) {
        self.reads.fetch_add(1, Ordering::Relaxed);
        self.read_bytes.fetch_add(bytes, Ordering::Relaxed);
    }

    pub(crate) fn count_write(&self, bytes: u64) {
        self.writes.fetch_add(1, Ordering::Relaxed);
        self.written_bytes.fetch_add(bytes, Ordering::Relaxed);
    }

    pub(crate) fn count_flush(&self) {
        self.flushes.fetch_add(1, Ordering::Relaxed);
    }

    pub(crate) fn count_late(&self, by: Duration) {
        self.late.fetch_add(1, Ordering::Relaxed);
        let nanos = u64::try_from(by.as_nanos()).unwrap_or(u64::MAX);
        self.latest_ns.fetch_max(nanos, Ordering::Relaxed);
    }

    pub(crate) fn snapshot(&self) -> Statistics {
        let of = |counter: &AtomicU64| counter.load(Ordering::Relaxed);
        Statistics {
            reads: of(&self.reads),
            read_bytes: of(&self.read_bytes),
            writes: of(&self.writes),
            written_bytes: of(&self.written_bytes),
            flushes: of(&self.flushes),
            late: of(&self.late),
            latest: Duration::from_nanos(of(&self.latest_ns)),
        }
    }
}
