//! What a verification has to say: the counts of `pg_checksums`, what that would not see, and what
//! the I/O looked like.

use std::time::Duration;

use trunkline_format::BLOCK_SIZE;

use super::Finding;
use crate::datadir::Problem;
use crate::job::{End, IoSummary, bytes_per_second};

/// The result of a verification. Files, blocks and bad checksums are counted as `pg_checksums
/// --check` counts them; new pages are among the blocks.
#[derive(Debug)]
pub struct VerifyReport {
    /// Whether it came to its end. If not, the counts say how far it came, save that of the files.
    pub end: End,
    /// Files scanned.
    pub files: u64,
    /// Blocks scanned.
    pub blocks: u64,
    /// `data_checksum_version` of the control file; 0 where checksums are off.
    pub checksum_version: u32,
    /// Pages whose checksum is wrong.
    pub bad_checksums: u64,
    /// Pages with a right checksum, or none, that are wrong otherwise; `pg_checksums` passes over
    /// them.
    pub beyond_checksums: u64,
    /// Everything else: blocks that could not be read, files cut off or missing.
    pub other_findings: u64,
    /// What was found, by file and block, up to [`super::Options::findings_listed`].
    pub findings: Vec<Finding>,
    /// Oddities that are no findings.
    pub notes: Vec<Problem>,
    /// How long it took.
    pub elapsed: Duration,
    /// The I/O.
    pub io: IoSummary,
}

impl VerifyReport {
    /// Everything found.
    pub fn findings_total(&self) -> u64 {
        self.bad_checksums + self.beyond_checksums + self.other_findings
    }

    /// Findings that are counted and not listed.
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
