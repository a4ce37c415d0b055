//! The consumer interface of a raw file scan: receives blocks and failures.
//!
//! Verification checks the pages. Prewarming has no use for the pages once they have been read, so
//! it only collects the failures.

use std::io;

use trunkline_aio::facade::Arc;
use trunkline_aio::{Callback, Payload};
use trunkline_format::{BlockNo, Fork};

use super::options::ReadOptions;
use crate::datadir::FileEntry;
use crate::job::Job;

/// Receives the blocks of a scan. It is called concurrently by the workers of all mounts. Several
/// workers may call it for the same file, and the blocks arrive in no particular order.
pub(crate) trait BlockVisitor: Send + Sync {
    /// The number of blocks to skip at the beginning of a file. The skipped blocks count as
    /// processed.
    fn skipped(&self, _file: &FileEntry) -> u32 {
        0
    }

    /// Completion callbacks to run for every read.
    fn callbacks(&self) -> Vec<Arc<dyn Callback<ReadPayload>>> {
        Vec::new()
    }

    /// Called when whole blocks have been read and their callbacks have run. Bit n of `bad` is set
    /// if a callback marked block `first + n` as bad. If a read comes back short, we continue it,
    /// so a single run may arrive in several calls.
    fn blocks_read(&self, _file: &FileEntry, _first: BlockNo, _pages: &[u8], _bad: u128) {}

    /// A file or a block could not be read. The scan continues.
    fn failed(&self, _file: &FileEntry, _failure: ReadFailure) {}
}

/// The payload of one read, for its completion callbacks. A callback may run on any thread, and
/// this is the only part of the job that it can access.
#[derive(Debug, Default)]
pub(crate) struct ReadPayload {
    pub(crate) fork: Fork,
    /// The number of the first block.
    pub(crate) first: BlockNo,
    /// The callbacks set one bit for each bad block. That's enough bits, because a read never has
    /// more than 128 blocks.
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
    /// Too many blocks of this file have failed, so this block and all following blocks were
    /// skipped.
    GaveUp { block: BlockNo },
    /// The file is shorter now than when we listed it. Either a server has truncated it, or it is
    /// damaged.
    Shrank { block: BlockNo, found: u64, expected: u64 },
}

/// What all parts of a worker need.
#[derive(Clone, Copy)]
pub(super) struct Context<'s> {
    pub(super) job: &'s Job,
    pub(super) options: ReadOptions,
    /// Whether to try all reads in the page cache first; see `Io::try_cached`.
    pub(super) try_cached: bool,
    pub(super) visitor: &'s dyn BlockVisitor,
}
