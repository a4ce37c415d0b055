//! Content check results, shared by all workers.
//!
//! Workers add to them through [`Sink`](super::sink::Sink), one table at a time.

use trunkline_aio::facade::atomic::{AtomicU64, Ordering};
use trunkline_aio::facade::{Arc, Mutex};

use super::content_report::{ContentReport, Skipped};
use super::finding_log::FindingLog;
use crate::job::JobSummary;

/// Findings, counters and skipped objects.
#[derive(Debug)]
pub(super) struct ContentResults {
    pub(super) findings: FindingLog,
    /// Visible rows. We count rows and entries one at a time, so their counters are atomics rather
    /// than protected by the lock. They're just statistics, so relaxed ordering is enough.
    pub(super) rows: AtomicU64,
    /// Index entries. An entry counts once even if its index is walked several times.
    pub(super) entries: AtomicU64,
    /// All other results, except those that are known only when the job ends. A table is counted as
    /// soon as its check has begun.
    pub(super) report: Mutex<ContentReport>,
}

impl ContentResults {
    /// Starts without results. `listed` is the maximum number of findings to list.
    pub(super) fn new(listed: usize) -> Self {
        let findings = FindingLog::new(listed);
        let (rows, entries) = (AtomicU64::new(0), AtomicU64::new(0));
        Self { findings, rows, entries, report: Mutex::default() }
    }

    /// Records that an object was not checked.
    pub(super) fn skipped(&self, relation: Arc<str>, reason: String) {
        self.report.lock().skipped.push(Skipped { relation, reason });
    }

    /// Builds the report. Anything an abandoned worker adds later isn't included. The lists are
    /// sorted, so that the report doesn't depend on thread scheduling.
    pub(super) fn report(&self, summary: JobSummary) -> ContentReport {
        let mut report = std::mem::take(&mut *self.report.lock());
        report.skipped.sort_by(|one, other| {
            (&one.relation, &one.reason).cmp(&(&other.relation, &other.reason))
        });
        report.orphans.sort_by(|one, other| one.relation.cmp(&other.relation));
        let found = self.findings.take();
        ContentReport {
            end: summary.end,
            rows: self.rows.load(Ordering::Relaxed),
            entries: self.entries.load(Ordering::Relaxed),
            pages: summary.blocks,
            findings_total: found.findings_total(),
            findings: found.findings,
            elapsed: summary.elapsed,
            io: summary.io,
            ..report
        }
    }
}
