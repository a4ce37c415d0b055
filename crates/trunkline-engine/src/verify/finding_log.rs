//! Collects findings: counts all of them, but lists only a limited number.
//!
//! The limit keeps a directory full of garbage from filling up memory. Findings are rare, so a
//! single lock on the list is enough.

use std::io;
use std::path::Path;

use trunkline_aio::sync::Mutex;
use trunkline_aio::sync::atomic::{AtomicU64, Ordering};
use trunkline_format::{BlockNo, Finding as PageFinding};

use super::finding::{Finding, FindingKind};
use super::report::VerifyReport;
use crate::datadir::{FileEntry, Problem};
use crate::file_scan::ReadFailure;
use crate::job::JobSummary;

/// Default for the number of findings to list.
pub(super) const FINDINGS_LISTED: usize = 10_000;

/// The findings of a running job. All workers add to it.
#[derive(Debug)]
pub(super) struct FindingLog {
    /// Files that were read.
    files: AtomicU64,
    bad_checksums: AtomicU64,
    beyond_checksums: AtomicU64,
    /// Findings of all other kinds.
    others: AtomicU64,
    limit: usize,
    listed: Mutex<Vec<Finding>>,
    /// Problems of the listing that are not findings, such as unknown files.
    notes: Mutex<Vec<Problem>>,
}

impl FindingLog {
    pub(super) fn new(limit: usize) -> Self {
        Self {
            files: AtomicU64::new(0),
            bad_checksums: AtomicU64::new(0),
            beyond_checksums: AtomicU64::new(0),
            others: AtomicU64::new(0),
            limit,
            listed: Mutex::default(),
            notes: Mutex::default(),
        }
    }

    /// Adds the problems that a file listing has found.
    pub(super) fn listing_problems(&self, problems: Vec<Problem>) {
        for problem in problems {
            if problem.kind.is_finding() {
                self.add(&problem.path, None, FindingKind::File(problem.kind));
            } else {
                self.notes.lock().push(problem);
            }
        }
    }

    /// Counts the files to read, including empty ones.
    pub(super) fn count_files(&self, files: &[FileEntry]) {
        self.files.fetch_add(files.len() as u64, Ordering::Relaxed);
    }

    /// Adds an invalid page.
    pub(super) fn page(&self, path: &Path, block: BlockNo, finding: PageFinding) {
        self.add(path, Some(block), FindingKind::Page(finding));
    }

    /// Adds a file or block that could not be read. A file that cannot be opened does not count as
    /// read.
    pub(super) fn failure(&self, path: &Path, failure: ReadFailure) {
        match failure {
            ReadFailure::Open(error) => {
                self.files.fetch_sub(1, Ordering::Relaxed);
                self.add(path, None, FindingKind::NotOpened(error));
            }
            ReadFailure::Read { block, errno } => {
                let error = io::Error::from_raw_os_error(errno);
                self.add(path, Some(block), FindingKind::Unreadable(error));
            }
            ReadFailure::GaveUp { block } => self.add(path, Some(block), FindingKind::GaveUp),
            ReadFailure::Shrank { block, found, expected } => {
                self.add(path, Some(block), FindingKind::Shrank { found, expected });
            }
        }
    }

    /// Adds a finding without a relation name: page verification doesn't read the catalog.
    fn add(&self, path: &Path, block: Option<BlockNo>, kind: FindingKind) {
        self.push(Finding { path: path.to_owned(), relation: None, block, item: None, kind });
    }

    /// Counts a finding, and adds it to the list unless the list is full.
    pub(super) fn push(&self, finding: Finding) {
        let kind = &finding.kind;
        let counter = if kind.is_bad_checksum() {
            &self.bad_checksums
        } else if kind.is_beyond_checksums() {
            &self.beyond_checksums
        } else {
            &self.others
        };
        // Count before checking the limit: the totals must be right even when the list is full.
        counter.fetch_add(1, Ordering::Relaxed);
        let mut listed = self.listed.lock();
        if listed.len() < self.limit {
            listed.push(finding);
        }
    }

    /// Returns the listed findings sorted by location, and the number of all findings.
    pub(super) fn take(&self) -> (Vec<Finding>, u64) {
        let mut findings = std::mem::take(&mut *self.listed.lock());
        let place = |finding: &Finding| (finding.path.clone(), finding.block, finding.item);
        findings.sort_by_cached_key(place);
        let counters = [&self.bad_checksums, &self.beyond_checksums, &self.others];
        (findings, counters.map(|counter| counter.load(Ordering::Relaxed)).iter().sum())
    }

    /// Builds a page verification's report. It doesn't include findings an abandoned worker adds
    /// later.
    pub(super) fn report(&self, summary: JobSummary, checksum_version: u32) -> VerifyReport {
        let (findings, _) = self.take();
        VerifyReport {
            end: summary.end,
            files: self.files.load(Ordering::Relaxed),
            blocks: summary.blocks,
            checksum_version,
            bad_checksums: self.bad_checksums.load(Ordering::Relaxed),
            beyond_checksums: self.beyond_checksums.load(Ordering::Relaxed),
            other_findings: self.others.load(Ordering::Relaxed),
            findings,
            notes: std::mem::take(&mut *self.notes.lock()),
            elapsed: summary.elapsed,
            io: summary.io,
        }
    }
}
