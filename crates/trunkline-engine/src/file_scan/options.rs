//! Options of a raw file scan.
//!
//! They also determine how much memory the workers need for their read windows.

use trunkline_format::BLOCK_SIZE;

use crate::settings::Settings;

/// How to read files.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct ReadOptions {
    /// Whether to bypass the operating system's page cache (`O_DIRECT`).
    pub direct: bool,
    /// Number of reads to keep in flight on each mount. If this is 0 or 1, the mount has only one
    /// worker, which executes the reads itself, one at a time.
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

    /// Returns how much memory a scan needs, in bytes, for full windows on this many mounts. A scan
    /// can also run with less memory, but then it has fewer reads in flight.
    pub fn region_bytes(self, mounts: usize) -> usize {
        self.slots() * self.combine_blocks as usize * BLOCK_SIZE * mounts.max(1)
    }
}
