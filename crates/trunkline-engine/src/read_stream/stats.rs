//! Stream statistics: the numbers of `EXPLAIN (ANALYZE, IO)`.
//!
//! All numbers are sums, so that the statistics of several workers' streams can be added up.
//! Averages are computed on demand.

/// Counts of one stream, or of several.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct StreamStats {
    /// Pages returned.
    pub pages: u64,
    /// Pages pinned ahead, summed over the moments when a page was returned.
    pub distance_sum: u64,
    /// Largest number of pages pinned ahead when a page was returned.
    pub distance_max: u32,
    /// Maximum number of pages that the stream may pin.
    pub capacity: u32,
    /// Reads issued.
    pub ios: u64,
    /// Blocks of these reads.
    pub io_blocks: u64,
    /// Waits for a page, read by this stream or by another session. If the stream is the source of
    /// another one, this includes reads that were not complete when that stream could have used
    /// their page. Waits for the stream's own source are not included.
    pub waits: u64,
    /// Reads in flight, the new one included, summed over the moments when one was issued.
    pub in_flight_sum: u64,
    /// Ranges for which `posix_fadvise` was issued, under `sync`.
    pub advised: u64,
}

impl StreamStats {
    /// Adds the counts of another stream.
    pub fn add(&mut self, other: &StreamStats) {
        self.pages += other.pages;
        self.distance_sum += other.distance_sum;
        self.distance_max = self.distance_max.max(other.distance_max);
        self.capacity = self.capacity.max(other.capacity);
        self.ios += other.ios;
        self.io_blocks += other.io_blocks;
        self.waits += other.waits;
        self.in_flight_sum += other.in_flight_sum;
        self.advised += other.advised;
    }

    /// Average number of pages pinned ahead (`Prefetch: avg`).
    pub fn distance_mean(&self) -> f64 {
        self.distance_sum as f64 / self.pages.max(1) as f64
    }

    /// Average number of blocks per read (`I/O: size`).
    pub fn io_size_mean(&self) -> f64 {
        self.io_blocks as f64 / self.ios.max(1) as f64
    }

    /// Average number of reads in flight (`I/O: in-progress`).
    pub fn in_flight_mean(&self) -> f64 {
        self.in_flight_sum as f64 / self.ios.max(1) as f64
    }
}
