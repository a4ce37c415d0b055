//! The result of a page verification.
//!
//! Its counters are comparable with those of `pg_checksums --check`.

use std::time::Duration;

use trunkline_format::BLOCK_SIZE;

use super::catalog_summary::CatalogSummary;
use super::finding::Finding;
use super::unchecked_pages::UncheckedPages;
use crate::datadir::Problem;
use crate::job::{End, IoSummary, bytes_per_second};

/// The result of a page verification. We count files, blocks and bad checksums in the same way as
/// `pg_checksums --check`. In particular, `blocks` includes new pages.
#[derive(Debug, Default)]
pub struct VerifyReport {
    /// Whether the verification was completed. If not, all counts except `files` cover only part of
    /// the data.
    pub end: End,
    /// Files scanned.
    pub files: u64,
    /// Blocks scanned.
    pub blocks: u64,
    /// `data_checksum_version` of the control file; 0 if checksums are disabled.
    pub checksum_version: u32,
    /// Pages with a wrong checksum.
    pub bad_checksums: u64,
    /// Number of pages that are invalid but don't have a bad checksum. `pg_checksums` doesn't
    /// detect such pages.
    pub beyond_checksums: u64,
    /// All other findings: unreadable blocks, truncated or missing files.
    pub other_findings: u64,
    /// The list of findings, sorted by file and block. It contains at most
    /// [`Options::findings_listed`](super::Options::findings_listed) findings.
    pub findings: Vec<Finding>,
    /// Pages for whose records we have no redo rule, one entry for each relation. They don't count as
    /// findings.
    pub unchecked: Vec<UncheckedPages>,
    /// Files and directories that we had no permission to read. They count as findings, too, but
    /// the user must know that we learned nothing about their contents.
    pub denied: u64,
    /// The results of the comparison with the catalogs. `None` if there was no comparison, or if
    /// the verification was not completed.
    pub catalogs: Option<CatalogSummary>,
    /// Remarks about the files that don't count as findings.
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

    /// The number of pages for whose records we have no redo rule.
    pub fn pages_unchecked(&self) -> u64 {
        self.unchecked.iter().map(|of| of.pages).sum()
    }

    /// Findings that are counted but not listed.
    pub fn findings_omitted(&self) -> u64 {
        let listed: u64 = self.findings.iter().map(|finding| 1 + finding.more).sum();
        self.findings_total().saturating_sub(listed)
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
