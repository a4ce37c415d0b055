//! What a stream did: the numbers of `EXPLAIN (ANALYZE, IO)`.
//!
//! Sums, so that the streams of several workers can be added; averages are made when somebody asks.

/// Counts of one stream, or of several.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct StreamStats {
    /// Pages handed out.
    pub pages: u64,
    /// Pages pinned ahead, summed over the moments at which a page was handed out.
    pub distance_sum: u64,
    /// The most of them at such a moment.
    pub distance_max: u32,
    /// The most that the stream may pin.
    pub capacity: u32,
    /// Reads issued.
    pub ios: u64,
    /// Blocks that they were to bring.
    pub io_blocks: u64,
    /// Times that a page was not there when it was wanted, whoever read it.
    pub waits: u64,
    /// Reads in flight, the new one included, summed over the moments at which one was issued.
    pub in_flight_sum: u64,
    /// Ranges that the system was told of in advance, under `sync`.
    pub advised: u64,
}

impl StreamStats {
    /// Adds another stream's.
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

    /// Pages pinned ahead on average (`Prefetch: avg`).
    pub fn distance_mean(&self) -> f64 {
        self.distance_sum as f64 / self.pages.max(1) as f64
    }

    /// Blocks of a read on average (`I/O: size`).
    pub fn io_size_mean(&self) -> f64 {
        self.io_blocks as f64 / self.ios.max(1) as f64
    }

    /// Reads in flight on average (`I/O: in-progress`).
    pub fn in_flight_mean(&self) -> f64 {
        self.in_flight_sum as f64 / self.ios.max(1) as f64
    }
}
