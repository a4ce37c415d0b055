//! Options and results of `buffer` mode.
//!
//! The other two modes fill the page cache and have their own report, see
//! [`PrewarmReport`](super::PrewarmReport).

use std::time::Duration;

use trunkline_format::BLOCK_SIZE;

use super::report::Failures;
use crate::job::{End, IoSummary, bytes_per_second};
use crate::pool::{IoKey, Policy, ReadWarning, RelationResidency, Tally};
use crate::read_stream::{StreamOptions, StreamStats};
use crate::settings::Settings;

/// How to fill the pool.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct BufferOptions {
    /// How to read.
    pub stream: StreamOptions,
    /// What to do with damaged pages.
    pub policy: Policy,
}

impl BufferOptions {
    /// The options that the settings ask for: a maintenance stream.
    pub fn of(settings: &Settings) -> Self {
        let policy = Policy {
            zero_damaged_pages: settings.zero_damaged_pages(),
            ignore_checksum_failure: settings.ignore_checksum_failure(),
        };
        let stream = StreamOptions { sequential: true, ..StreamOptions::maintenance(settings) };
        Self { stream, policy }
    }
}

/// The result of filling the pool.
#[derive(Debug)]
pub struct BufferReport {
    /// Whether the job reached its end.
    pub end: End,
    /// Forks of relations to load.
    pub relations: u64,
    /// Pages loaded.
    pub blocks: u64,
    /// Where the blocks of the relations were before. This covers all blocks of the relations, not
    /// only those to load.
    pub before: RelationResidency,
    /// Where they were afterwards. `None` if a mount hung or the job was cancelled before this was
    /// known.
    pub after: Option<RelationResidency>,
    /// Files and blocks that could not be read, with the reason.
    pub failures: Failures,
    /// Damaged pages that the policy let pass.
    pub warnings: Vec<ReadWarning>,
    /// Warnings beyond those that are kept.
    pub warnings_lost: u64,
    /// All streams together.
    pub streams: StreamStats,
    /// Changes of the pool's counters during the job, caused by this or by other sessions.
    pub counts: Vec<(IoKey, Tally)>,
    /// How long the loading took, without the queries of the page cache.
    pub elapsed: Duration,
    /// The I/O.
    pub io: IoSummary,
}

impl BufferReport {
    /// Bytes of the pages loaded.
    pub fn bytes(&self) -> u64 {
        self.blocks * BLOCK_SIZE as u64
    }

    /// Bytes loaded per second.
    pub fn bytes_per_second(&self) -> f64 {
        bytes_per_second(self.bytes(), self.elapsed)
    }
}
