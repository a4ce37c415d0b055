//! The result of a page verification.
//!
//! Its counters are comparable with those of `pg_checksums --check`.

use std::time::Duration;

use trunkline_format::BLOCK_SIZE;

use super::finding::Finding;
use crate::datadir::Problem;
use crate::job::{End, IoSummary, bytes_per_second};

/// The result of a page verification. Files, blocks and bad checksums are counted as `pg_checksums
/// --check` counts them, so `blocks` includes new pages.
#[derive(Debug, Default)]
pub struct VerifyReport {
    /// Whether the verification reached its end. Otherwise all counts except `files` cover only
    /// part of the data.
    pub end: End,
    /// Files scanned.
    pub files: u64,
    /// Blocks scanned.
    pub blocks: u64,
    /// `data_checksum_version` of the control file; 0 if checksums are disabled.
    pub checksum_version: u32,
    /// Pages with a wrong checksum.
    pub bad_checksums: u64,
    /// Pages that are invalid in some way other than a wrong checksum. `pg_checksums` doesn't
    /// detect them.
    pub beyond_checksums: u64,
    /// All other findings: unreadable blocks, truncated or missing files.
    pub other_findings: u64,
    /// The findings by file and block, up to
    /// [`Options::findings_listed`](super::Options::findings_listed).
    pub findings: Vec<Finding>,
    /// Observations about the files that are not findings.
    pub notes: Vec<Problem>,
    /// How long it took.
    pub elapsed: Duration,
    /// The I/O.
    pub io: IoSummary,
}

impl VerifyReport {
    /// The number of findings.
    pub fn findings_total(&self) -> u64 {
        self.bad_checksums + self.beyond_checksums + self.other_findings
    }

    /// Findings that are counted but not listed.
    pub fn findings_omitted(&self) -> u64 {
        self.findings_total().saturating_sub(self.findings.len() as u64)
    }

    /// Bytes verified.
    pub fn bytes(&self) -> u64 {
        self.blocks * BLOCK_SIZE as u64
    }

    /// Bytes verified per second.
    pub fn bytes_per_second(&self) -> f64 {
        bytes_per_second(self.bytes(), self.elapsed)
    }
}
