//! Collects findings: counts all of them, but lists only a limited number.
//!
//! The limit prevents a directory full of garbage from using up all memory. Findings are rare, so
//! it's OK to protect the list with a single lock.

use std::io;
use std::path::Path;

use trunkline_aio::facade::Mutex;
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
    limit: usize,
    /// Doesn't include anything that we only know at the end of the job.
    report: Mutex<VerifyReport>,
}

impl FindingLog {
    pub(super) fn new(limit: usize) -> Self {
        Self { limit, report: Mutex::default() }
    }

    /// Adds the problems that were found while listing the files. Some of these problems, such as
    /// unknown files, don't count as findings.
    pub(super) fn listing_problems(&self, problems: Vec<Problem>) {
        for problem in problems {
            if problem.kind.is_finding() {
                self.add(&problem.path, None, FindingKind::File(problem.kind));
            } else {
                self.report.lock().notes.push(problem);
            }
        }
    }

    /// Counts the files that will be read. Empty files are counted too.
    pub(super) fn count_files(&self, files: &[FileEntry]) {
        self.report.lock().files += files.len() as u64;
    }

    /// Adds an invalid page.
    pub(super) fn page(&self, path: &Path, block: BlockNo, finding: PageFinding) {
        self.add(path, Some(block), FindingKind::Page(finding));
    }

    /// Adds a file or block that couldn't be read. If the file couldn't even be opened, we don't
    /// count it as read.
    pub(super) fn failure(&self, path: &Path, failure: ReadFailure) {
        match failure {
            ReadFailure::Open(error) => {
                self.add(path, None, FindingKind::NotOpened(error));
                let mut report = self.report.lock();
                // Use saturating arithmetic, because an abandoned worker may call this after
                // `take`.
                report.files = report.files.saturating_sub(1);
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

    /// Adds a finding without a relation name, because page verification doesn't read the catalog.
    fn add(&self, path: &Path, block: Option<BlockNo>, kind: FindingKind) {
        self.push(Finding { path: path.to_owned(), relation: None, block, item: None, kind });
    }

    /// Counts a finding, and adds it to the list unless the list is full.
    pub(super) fn push(&self, finding: Finding) {
        let report = &mut *self.report.lock();
        let counter = if finding.kind.is_bad_checksum() {
            &mut report.bad_checksums
        } else if finding.kind.is_beyond_checksums() {
            &mut report.beyond_checksums
        } else {
            &mut report.other_findings
        };
        // Increment the counters before checking the limit, because the totals must be correct even
        // if the list is full.
        *counter += 1;
        if report.findings.len() < self.limit {
            report.findings.push(finding);
        }
    }

    /// Returns the counters, and the list of findings sorted by location. If an abandoned worker
    /// adds more findings later, they won't be included.
    pub(super) fn take(&self) -> VerifyReport {
        let mut report = std::mem::take(&mut *self.report.lock());
        let place = |finding: &Finding| (finding.path.clone(), finding.block, finding.item);
        report.findings.sort_by_cached_key(place);
        report
    }

    /// Builds a page verification's report.
    pub(super) fn report(&self, summary: JobSummary, checksum_version: u32) -> VerifyReport {
        VerifyReport {
            end: summary.end,
            blocks: summary.blocks,
            checksum_version,
            elapsed: summary.elapsed,
            io: summary.io,
            ..self.take()
        }
    }
}
