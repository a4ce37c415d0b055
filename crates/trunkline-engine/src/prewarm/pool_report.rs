//! Options and results of `buffer` mode.
//!
//! The other two modes fill the page cache and have their own report, see
//! [`PrewarmReport`](super::PrewarmReport).

use std::time::Duration;

use trunkline_format::BLOCK_SIZE;

use super::report::{Failures, Unchecked};
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
    /// Options as configured in the settings, with a maintenance stream.
    pub fn of(settings: &Settings) -> Self {
        let stream = StreamOptions { sequential: true, ..StreamOptions::maintenance(settings) };
        Self { stream, policy: Policy::of(settings) }
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
    /// Where the relations' blocks were cached before. This covers all of the relations' blocks,
    /// not just those to load.
    pub before: RelationResidency,
    /// How many blocks were cached after prewarming, and where. This is `None` if a mount hung, or
    /// if the job was cancelled before we could find out.
    pub after: Option<RelationResidency>,
    /// Files and blocks that could not be read, with the reason.
    pub failures: Failures,
    /// Pages that were not loaded, since we have no redo rule for their records. They aren't failures.
    pub unchecked: Unchecked,
    /// Damaged pages that the policy accepted.
    pub warnings: Vec<ReadWarning>,
    /// Number of warnings beyond those kept.
    pub warnings_lost: u64,
    /// All streams together.
    pub streams: StreamStats,
    /// Changes in the pool's counters during the job, including those caused by other sessions.
    pub counts: Vec<(IoKey, Tally)>,
    /// Time spent loading, without the page cache queries.
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
