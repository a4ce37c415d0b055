//! Where the check of one table leaves what it finds: findings with names and places, counts, and
//! what was not looked into.
//!
//! Workers share it, each with its own table.

use trunkline_aio::sync::Arc;
use trunkline_format::BlockNo;
use trunkline_format::segment::segment_of;

use super::content_report::Skipped;
use super::contents::Work;
use super::findings::{Finding, FindingKind};
use super::orphans::Orphans;
use super::problem::ContentProblem;
use super::target::{IndexTarget, Target};
use crate::job::Job;
use crate::storage::Relation;
use trunkline_aio::sync::atomic::Ordering;

/// Where a check of one table leaves what it finds.
pub(super) struct Sink<'w> {
    job: &'w Job,
    work: &'w Work,
}

impl<'w> Sink<'w> {
    /// For a table that is checked as part of `work`.
    pub(super) fn new(job: &'w Job, work: &'w Work) -> Self {
        Self { job, work }
    }

    /// Something about a table is not looked into.
    pub(super) fn not_looked_into(&self, target: &Target, reason: String) {
        let relation = Arc::clone(&target.name);
        self.work.skipped.lock().push(Skipped { relation, reason });
    }

    /// A table's long values that no row names.
    pub(super) fn orphans(&self, orphans: Orphans) {
        self.work.orphans.lock().push(orphans);
    }

    /// Something is wrong with a table.
    pub(super) fn table(
        &self,
        target: &Target,
        block: Option<BlockNo>,
        item: Option<u16>,
        problem: ContentProblem,
    ) {
        self.add(&target.heap, &target.name, block, item, problem);
    }

    /// Something is wrong with a block of its visibility map.
    pub(super) fn map(&self, target: &Target, block: BlockNo, problem: ContentProblem) {
        self.add(&target.map, &target.name, Some(block), None, problem);
    }

    /// Something is wrong with an index.
    pub(super) fn index(
        &self,
        index: &IndexTarget,
        block: BlockNo,
        item: Option<u16>,
        problem: ContentProblem,
    ) {
        self.add(index.index.relation(), &index.full_name, Some(block), item, problem);
    }

    /// Something is wrong with `files`, which are those of the relation `name`.
    pub(super) fn add(
        &self,
        files: &Relation,
        name: &Arc<str>,
        block: Option<BlockNo>,
        item: Option<u16>,
        problem: ContentProblem,
    ) {
        // The text of a page's fault names the line pointer itself.
        let item = item.filter(|_| !matches!(problem, ContentProblem::IndexPage(_)));
        let path = files.path(segment_of(block.unwrap_or_default()).0);
        let (relation, kind) = (Some(Arc::clone(name)), FindingKind::Content(problem));
        self.work.findings.push(Finding { path, relation, block, item, kind });
    }

    /// A page is done with.
    pub(super) fn count_page(&self) {
        self.job.count(1, 1);
    }

    /// A visible row was seen.
    pub(super) fn count_row(&self) {
        self.work.counts.rows.fetch_add(1, Ordering::Relaxed);
    }

    /// Index entries were seen.
    pub(super) fn count_entries(&self, entries: u64) {
        self.work.counts.entries.fetch_add(entries, Ordering::Relaxed);
    }

    /// Whether to stop.
    pub(super) fn is_stopping(&self) -> bool {
        self.job.is_stopping()
    }
}
