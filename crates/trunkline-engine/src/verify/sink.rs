//! Collects content check results for one table.
//!
//! The checks report only blocks and line pointers; the sink adds names and paths to make findings.

use trunkline_aio::facade::Arc;
use trunkline_format::segment::segment_of;
use trunkline_format::{BlockNo, Tid};

use super::checked_table::{CheckedIndex, CheckedTable};
use super::content_problem::ContentProblem;
use super::content_report::Orphans;
use super::content_results::ContentResults;
use super::finding::{Finding, FindingKind};
use super::finding_log::{Group, GroupPlace};
use super::status_files::Needed;
use crate::job::Job;
use crate::storage::Relation;
use crate::transactions::TransactionError;
use trunkline_aio::facade::atomic::Ordering;

/// Adds one table's results to the shared results. Each worker has its own sink.
pub(super) struct Sink<'r> {
    job: &'r Job,
    results: &'r ContentResults,
}

impl<'r> Sink<'r> {
    /// Makes a sink for a table that is checked as part of `results`.
    pub(super) fn new(job: &'r Job, results: &'r ContentResults) -> Self {
        Self { job, results }
    }

    /// Records that a part of a table was not checked.
    pub(super) fn skipped(&self, table: &CheckedTable, reason: String) {
        self.results.skipped(Arc::clone(&table.name), reason);
    }

    /// Adds the orphaned TOAST values of a table.
    pub(super) fn orphans(&self, orphans: Orphans) {
        self.results.report.lock().orphans.push(orphans);
    }

    /// Adds a finding about a table.
    pub(super) fn table(
        &self,
        table: &CheckedTable,
        block: Option<BlockNo>,
        item: Option<u16>,
        problem: ContentProblem,
    ) {
        self.add(&table.heap, &table.name, block, item, problem);
    }

    /// Records a row whose visibility is unknown, or a value with such a chunk. If the cause is a
    /// file of the commit log or of multixacts, we count the row there instead of adding a finding
    /// about it.
    pub(super) fn unknown(
        &self,
        table: &CheckedTable,
        row: Tid,
        needed: Needed,
        error: &TransactionError,
    ) {
        let location = table.heap.location(row.block).at_item(row.item);
        if !self.results.status_files.add(error, needed, &table.name, &location) {
            let problem = ContentProblem::Transaction(error.to_string());
            self.table(table, Some(row.block), Some(row.item), problem);
        }
    }

    /// Adds a finding about a block of the visibility map.
    pub(super) fn map(&self, table: &CheckedTable, block: BlockNo, problem: ContentProblem) {
        self.add(&table.map, &table.name, Some(block), None, problem);
    }

    /// Adds a finding about an index.
    pub(super) fn index(
        &self,
        index: &CheckedIndex,
        block: BlockNo,
        item: Option<u16>,
        problem: ContentProblem,
    ) {
        self.add(index.index.relation(), &index.full_name, Some(block), item, problem);
    }

    /// Adds a finding about `files`, which belong to the relation `name`.
    pub(super) fn add(
        &self,
        files: &Relation,
        name: &Arc<str>,
        block: Option<BlockNo>,
        item: Option<u16>,
        problem: ContentProblem,
    ) {
        let path = files.path(segment_of(block.unwrap_or_default()).0);
        let is_of_file = matches!(problem, ContentProblem::Toast { file: Some(_), .. });
        let place = match problem.index() {
            Some(index) => GroupPlace::Index(index.map(str::to_owned)),
            None => GroupPlace::Page(block.filter(|_| !is_of_file)),
        };
        let group = Group { relation: Arc::clone(name), problem: problem.likeness(), place };
        let (relation, kind) = (Some(Arc::clone(name)), FindingKind::Content(problem));
        let finding = Finding { path, relation, block, item, kind, more: 0 };
        self.results.findings.push_like(finding, Some(group));
    }

    /// Counts a page.
    pub(super) fn count_page(&self) {
        self.job.count(1, 1);
    }

    /// Counts a visible row.
    pub(super) fn count_row(&self) {
        self.results.rows.fetch_add(1, Ordering::Relaxed);
    }

    /// Counts index entries.
    pub(super) fn count_entries(&self, entries: u64) {
        self.results.entries.fetch_add(entries, Ordering::Relaxed);
    }

    /// Whether the check should end early because the job is stopping.
    pub(super) fn is_stopping(&self) -> bool {
        self.job.is_stopping()
    }
}
