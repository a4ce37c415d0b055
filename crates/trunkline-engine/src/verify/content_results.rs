//! Content check results, shared by all workers.
//!
//! Workers add their results through [`Sink`](super::sink::Sink), one table at a time.

use trunkline_aio::facade::atomic::{AtomicU64, Ordering};
use trunkline_aio::facade::{Arc, Mutex};

use super::content_report::{ContentReport, Skipped};
use super::finding_log::FindingLog;
use super::status_files::StatusFiles;
use crate::job::JobSummary;

/// Findings, counters and skipped objects.
#[derive(Debug)]
pub(super) struct ContentResults {
    pub(super) findings: FindingLog,
    /// Files of the commit log and of multixacts that are missing, short or unreadable.
    pub(super) status_files: StatusFiles,
    /// Number of visible rows. We update the counters of rows and entries for every single row and
    /// entry, so they are atomics and don't need the lock. Since they are only used as statistics,
    /// relaxed ordering is sufficient.
    pub(super) rows: AtomicU64,
    /// Number of index entries. Each entry is counted only once, even if we walk its index several
    /// times.
    pub(super) entries: AtomicU64,
    /// All other results, except for those that we don't know until the end of the job. A table is
    /// counted when we begin to check it.
    pub(super) report: Mutex<ContentReport>,
}

impl ContentResults {
    /// Creates empty results. `listed` is the maximum number of findings to list.
    pub(super) fn new(listed: usize) -> Self {
        let findings = FindingLog::new(listed);
        let (rows, entries) = (AtomicU64::new(0), AtomicU64::new(0));
        let status_files = StatusFiles::default();
        Self { findings, status_files, rows, entries, report: Mutex::default() }
    }

    /// Records that an object was not checked.
    pub(super) fn skipped(&self, relation: Arc<str>, reason: String) {
        self.report.lock().skipped.push(Skipped { relation, reason });
    }

    /// Builds the report. If an abandoned worker adds more results later, they won't be included.
    /// We sort the lists, so that the report doesn't depend on how the threads were scheduled.
    pub(super) fn report(&self, summary: JobSummary) -> ContentReport {
        let mut report = std::mem::take(&mut *self.report.lock());
        report.skipped.sort_by(|one, other| {
            (&one.relation, &one.reason).cmp(&(&other.relation, &other.reason))
        });
        report.orphans.sort_by(|one, other| one.relation.cmp(&other.relation));
        // Findings about these files come first. Since they explain why other rows were not checked,
        // we must list them even if there are more findings than we can list.
        let files = self.status_files.take();
        let found = self.findings.take();
        let findings_total = found.findings_total() + files.len() as u64;
        let findings = files.into_iter().chain(found.findings).collect();
        ContentReport {
            end: summary.end,
            rows: self.rows.load(Ordering::Relaxed),
            entries: self.entries.load(Ordering::Relaxed),
            pages: summary.blocks,
            findings_total,
            findings,
            elapsed: summary.elapsed,
            io: summary.io,
            ..report
        }
    }
}
