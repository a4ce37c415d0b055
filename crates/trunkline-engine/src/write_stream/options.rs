//! Options and statistics of a write stream.
//!
//! ```
//! # use trunkline_engine::write_stream::WriteOptions;
//! // Like a checkpoint: write every page eventually, even if sessions keep it locked.
//! let options = WriteOptions { must: true, concurrency: 128, ..WriteOptions::default() };
//! assert_eq!(options.combine, 16);
//! ```

use std::time::Duration;
use trunkline_aio::Class;
use trunkline_format::BLOCK_SIZE;

/// Options of a write stream.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct WriteOptions {
    /// Maximum number of writes in flight, 1 to 1000.
    pub concurrency: u32,
    /// Maximum number of blocks in one write (`io_max_combine_limit`), 1 to 128.
    pub combine: u32,
    /// Class of the writes.
    pub class: Class,
    /// Whether every page must be written, no matter how long it stays locked. If not, we skip
    /// pages that are locked.
    pub must: bool,
    /// Whether to write only those pages that the running checkpoint needs.
    pub checkpoint: bool,
    /// After this many blocks, we ask the kernel to start writing the dirty pages in its page cache
    /// (`checkpoint_flush_after`, `bgwriter_flush_after`). If it's 0, we leave writeback to the
    /// kernel.
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
    /// Number of pages that were already clean or evicted when we got to them, usually because
    /// another session had written them.
    pub clean: u64,
    /// Pages skipped because they were locked.
    pub skipped: u64,
    /// Number of pages that we wrote from a copy, because readers kept them locked.
    pub copies: u64,
    /// Number of times we had to flush the log before writing pages.
    pub log_flushes: u64,
    /// Waits of the stream.
    pub waits: u64,
    /// Time of these waits.
    pub wait_time: Duration,
    /// Largest number of writes in flight.
    pub in_flight_max: u32,
    /// The number of writes in flight, added up each time we issue a write. Each number includes
    /// the new write.
    pub in_flight_sum: u64,
    /// Ranges whose writeback was started (`sync_file_range`).
    pub writebacks: u64,
}

impl WriteStats {
    /// Bytes written.
    pub fn bytes(&self) -> u64 {
        self.blocks * BLOCK_SIZE as u64
    }
}
