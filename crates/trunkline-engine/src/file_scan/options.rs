//! Options of a raw file scan.
//!
//! They also determine how much memory the read windows of its workers need.

use trunkline_format::BLOCK_SIZE;

use crate::settings::Settings;

/// How to read files.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct ReadOptions {
    /// Whether to bypass the operating system's page cache (`O_DIRECT`).
    pub direct: bool,
    /// Reads kept in flight on each mount. With 0 or 1, the worker itself executes one read after
    /// another.
    pub depth: u32,
    /// Blocks combined into one read, 1 to 128.
    pub combine_blocks: u32,
}

impl ReadOptions {
    /// The options configured by `io_direct`, `effective_io_concurrency` and `io_combine_limit`.
    pub fn of(settings: &Settings) -> Self {
        Self {
            direct: settings.io_direct_data(),
            depth: settings.effective_io_concurrency(),
            combine_blocks: settings.io_combine_limit(),
        }
    }

    /// Buffers in one mount's window, one per read in flight.
    pub(super) fn slots(self) -> usize {
        self.depth.max(1) as usize
    }

    /// Memory, in bytes, that a scan of `mounts` mounts needs for full windows. With less memory
    /// the scan still works, but with fewer reads in flight.
    pub fn region_bytes(self, mounts: usize) -> usize {
        self.slots() * self.combine_blocks as usize * BLOCK_SIZE * mounts.max(1)
    }
}
