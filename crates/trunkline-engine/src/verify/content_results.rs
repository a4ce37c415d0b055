//! Content check results, shared by all workers.
//!
//! Workers add to them through [`Sink`](super::sink::Sink), one table at a time.

use trunkline_aio::sync::Mutex;
use trunkline_aio::sync::atomic::{AtomicU64, Ordering};

use super::content_report::{ContentReport, Orphans, Skipped};
use super::finding_log::FindingLog;
use crate::job::JobSummary;

/// Findings, counters and skipped objects. The counters are statistics and use relaxed ordering.
#[derive(Debug)]
pub(super) struct ContentResults {
    pub(super) findings: FindingLog,
    /// Tables whose check has begun.
    pub(super) tables: AtomicU64,
    pub(super) indexes: AtomicU64,
    /// Visible rows.
    pub(super) rows: AtomicU64,
    /// Index entries. An entry counts once even if its index is walked several times.
    pub(super) entries: AtomicU64,
    /// Objects that were not checked, in the order in which workers came across them.
    pub(super) skipped: Mutex<Vec<Skipped>>,
    pub(super) orphans: Mutex<Vec<Orphans>>,
}

impl ContentResults {
    /// Starts without results. `listed` is the maximum number of findings to list.
    pub(super) fn new(listed: usize) -> Self {
        Self {
            findings: FindingLog::new(listed),
            tables: AtomicU64::new(0),
            indexes: AtomicU64::new(0),
            rows: AtomicU64::new(0),
            entries: AtomicU64::new(0),
            skipped: Mutex::default(),
            orphans: Mutex::default(),
        }
    }

    /// Builds the report. It doesn't include anything an abandoned worker adds later. We sort the
    /// lists, so that the report doesn't depend on thread scheduling.
    pub(super) fn report(&self, summary: JobSummary) -> ContentReport {
        let (findings, findings_total) = self.findings.take();
        let mut skipped = std::mem::take(&mut *self.skipped.lock());
        skipped.sort_by(|one, other| {
            (&one.relation, &one.reason).cmp(&(&other.relation, &other.reason))
        });
        let mut orphans = std::mem::take(&mut *self.orphans.lock());
        orphans.sort_by(|one, other| one.relation.cmp(&other.relation));
        let count = |counter: &AtomicU64| counter.load(Ordering::Relaxed);
        ContentReport {
            end: summary.end,
            tables: count(&self.tables),
            indexes: count(&self.indexes),
            rows: count(&self.rows),
            entries: count(&self.entries),
            pages: summary.blocks,
            findings,
            findings_total,
            skipped,
            orphans,
            elapsed: summary.elapsed,
            io: summary.io,
        }
    }
}
