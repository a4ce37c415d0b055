//! The consumer interface of a raw file scan: receives blocks and failures.
//!
//! Verification checks the pages. Prewarming ignores them, because reading them was the whole
//! purpose, and just collects the failures.

use std::io;

use trunkline_aio::facade::Arc;
use trunkline_aio::{Callback, Payload};
use trunkline_format::{BlockNo, Fork};

use super::options::ReadOptions;
use crate::datadir::FileEntry;
use crate::job::Job;

/// Receives the blocks of a scan. The workers of all mounts call it concurrently, and blocks arrive
/// in any order.
pub(crate) trait BlockVisitor: Send + Sync {
    /// The number of blocks to skip at the beginning of a file. Skipped blocks count as processed.
    fn skipped(&self, _file: &FileEntry) -> u32 {
        0
    }

    /// Completion callbacks to run for every read.
    fn callbacks(&self) -> Vec<Arc<dyn Callback<ReadPayload>>> {
        Vec::new()
    }

    /// Whole blocks were read, and the callbacks have run. Bit n of `bad` is set if a callback
    /// marked block `first + n`. Short reads are continued, so a run can arrive in several calls.
    fn blocks_read(&self, _file: &FileEntry, _first: BlockNo, _pages: &[u8], _bad: u128) {}

    /// A file or a block could not be read. The scan continues.
    fn failed(&self, _file: &FileEntry, _failure: ReadFailure) {}
}

/// The payload of one read, for its completion callbacks. A callback can run on any thread, so it
/// has no other access to the job.
#[derive(Debug, Default)]
pub(crate) struct ReadPayload {
    pub(crate) fork: Fork,
    /// The number of the first block.
    pub(crate) first: BlockNo,
    /// Callbacks set a bit for each bad block. A read has at most 128 blocks.
    pub(crate) bad: u128,
}

impl Payload for ReadPayload {}

/// Why blocks of a file were not read.
#[derive(Debug)]
pub(crate) enum ReadFailure {
    /// The file could not be opened.
    Open(io::Error),
    /// One block could not be read.
    Read { block: BlockNo, errno: i32 },
    /// Too many blocks of the file failed. This block and those after it were skipped.
    GaveUp { block: BlockNo },
    /// The file is shorter than when it was listed. Either a server has truncated it, or it is
    /// damaged.
    Shrank { block: BlockNo, found: u64, expected: u64 },
}

/// The references that all parts of a worker need.
#[derive(Clone, Copy)]
pub(super) struct Context<'s> {
    pub(super) job: &'s Job,
    pub(super) options: ReadOptions,
    pub(super) visitor: &'s dyn BlockVisitor,
}
