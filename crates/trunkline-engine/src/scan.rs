//! Reads many files whole, in any order, through a small window of pages that is used again and
//! again.
//!
//! ```text
//!   files ── by mount ──▶ one thread, session and window each
//!                          feed: next piece (≤ io_combine_limit) ──▶ handle ──▶ whichever is done
//!                                   ▲ rest of a partial one, blocks of a failed one ◀──┘
//! ```
//!
//! The pages live in a window of a few leased runs of frames: what was looked at is overwritten by
//! the next piece while it is still in the processor's cache. Nothing is ordered: each piece that is
//! done is handed to a visitor, and its run of frames carries the next piece. A thread per mount
//! keeps a file system that hangs from stopping the others; the caller's thread does nothing but
//! watch, so it can leave at any time.
//!
//! Verification and prewarming are visitors of this module. Jobs that read through the buffer pool
//! use its threads, its end and its progress.

mod error;
mod feed;
mod job;
mod mount;
mod window;

pub use error::JobError;
pub(crate) use job::{Body, Job, Outline};
pub use job::{End, IoSummary};

use std::io;
use std::path::Path;

use trunkline_aio::Callback;
use trunkline_aio::sync::Arc;
use trunkline_format::{BLOCK_SIZE, BlockNo};

use crate::datadir::FileEntry;
use crate::settings::Settings;

/// How to read.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct ReadOptions {
    /// Past the operating system's cache.
    pub direct: bool,
    /// Reads kept in flight on each mount; 0 reads one after the other in the job's own thread.
    pub depth: u32,
    /// Blocks of one read, 1 to 128.
    pub combine_blocks: u32,
}

impl ReadOptions {
    /// As the settings say.
    pub fn of(settings: &Settings) -> Self {
        Self {
            direct: settings.io_direct_data(),
            depth: settings.effective_io_concurrency(),
            combine_blocks: settings.io_combine_limit(),
        }
    }

    /// Runs of frames in one mount's window: one for each read in flight.
    pub(crate) fn slots(self) -> usize {
        self.depth.max(1) as usize
    }

    /// Memory that the windows of so many mounts want, in bytes. With less, fewer reads are in
    /// flight.
    pub fn region_bytes(self, mounts: usize) -> usize {
        self.slots() * self.combine_blocks as usize * BLOCK_SIZE * mounts.max(1)
    }
}

/// Who watches a job. Methods are called from the job's threads and must not wait.
pub trait Observer: Send + Sync {
    /// The work is known: so many files, so many bytes. Called once.
    fn begins(&self, _files: usize, _bytes: u64) {}

    /// Bytes done so far, of those announced. Called some twenty times a second.
    fn progressed(&self, _bytes: u64) {}

    /// A piece of a file is about to be read.
    fn reading(&self, _path: &Path, _first: BlockNo, _blocks: u32) {}

    /// Whether to stop. Asked some twenty times a second.
    fn cancelled(&self) -> bool {
        false
    }
}

/// Nobody watches.
#[derive(Debug, Clone, Copy, Default)]
pub struct Unobserved;

impl Observer for Unobserved {}

/// What a read is for.
pub(crate) trait Visitor: Send + Sync {
    /// How many of a file's first blocks are left out.
    fn skipped(&self, _file: &FileEntry) -> u32 {
        0
    }

    /// To run on every read as it completes.
    fn callbacks(&self) -> Vec<Arc<dyn Callback<Vec<u64>>>> {
        Vec::new()
    }

    /// The data words of a read, for the callbacks.
    fn words(&self, _file: &FileEntry, _first: BlockNo) -> Words {
        [0; 4]
    }

    /// Whole blocks have arrived and were seen by the callbacks.
    fn arrived(&self, _file: &FileEntry, _first: BlockNo, _pages: &[u8], _words: Words) {}

    /// Something went wrong; the job goes on.
    fn trouble(&self, _file: &FileEntry, _trouble: Trouble) {}
}

/// The data words of one read.
pub(crate) type Words = [u64; 4];

/// Why blocks of a file were not read.
#[derive(Debug)]
pub(crate) enum Trouble {
    /// The file could not be opened.
    Open(io::Error),
    /// One block could not be read.
    Read { block: BlockNo, errno: i32 },
    /// So many blocks of one file could not be read that the rest was left out.
    GaveUp { block: BlockNo },
    /// The file ended before the size that it had.
    Shrank { block: BlockNo, found: u64, expected: u64 },
}
