//! How a stream writes, and what it has done.
//!
//! ```
//! # use trunkline_engine::write_stream::WriteOptions;
//! // As a checkpoint does: whoever uses a page, it is written in the end.
//! let options = WriteOptions { must: true, concurrency: 128, ..WriteOptions::default() };
//! assert_eq!(options.combine, 16);
//! ```

use std::time::Duration;
use trunkline_aio::Class;
use trunkline_format::BLOCK_SIZE;

/// How a stream writes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct WriteOptions {
    /// Writes in flight at most, 1 to 1000.
    pub concurrency: u32,
    /// Blocks of one write at most (`io_max_combine_limit`), 1 to 128.
    pub combine: u32,
    /// What the writes are counted as.
    pub class: Class,
    /// Every page is written, however long somebody uses it; otherwise such a page is left.
    pub must: bool,
    /// Only pages that the running checkpoint needs.
    pub checkpoint: bool,
    /// Have the system begin to write back what it has cached whenever so many blocks were written
    /// (`checkpoint_flush_after`, `bgwriter_flush_after`); 0 leaves that to the system.
    pub flush_after: u32,
}

impl Default for WriteOptions {
    fn default() -> Self {
        Self {
            concurrency: 16,
            combine: 16,
            class: Class::Eviction,
            must: false,
            checkpoint: false,
            flush_after: 0,
        }
    }
}

/// What a stream has done.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct WriteStats {
    /// Blocks written.
    pub blocks: u64,
    /// Writes issued.
    pub writes: u64,
    /// Pages that had been written by somebody else, or were gone.
    pub clean: u64,
    /// Pages left because somebody used them.
    pub skipped: u64,
    /// Pages written from a copy, because somebody read them all the while.
    pub copies: u64,
    /// Times that the log had to be made durable first.
    pub log_flushes: u64,
    /// Times that the stream slept.
    pub waits: u64,
    /// How long.
    pub wait_time: Duration,
    /// The most writes that were in flight.
    pub in_flight_max: u32,
    /// Writes in flight, the new one included, summed over the moments at which one was issued.
    pub in_flight_sum: u64,
    /// Ranges that the system was told to begin to write back.
    pub writebacks: u64,
}

impl WriteStats {
    /// Bytes written.
    pub fn bytes(&self) -> u64 {
        self.blocks * BLOCK_SIZE as u64
    }
}
