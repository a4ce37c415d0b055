//! Collects findings: counts all of them, but lists only a limited number.
//!
//! The limit prevents a directory full of garbage from using up all memory. Findings are rare, so
//! it's OK to protect the list with a single lock.

use std::collections::BTreeMap;
use std::collections::btree_map::Entry;
use std::io;
use std::path::{Path, PathBuf};

use trunkline_aio::facade::hash::Map;
use trunkline_aio::facade::{Arc, Mutex};
use trunkline_format::{BlockNo, Finding as PageFinding};

use super::content_problem::Likeness;
use super::finding::{Finding, FindingKind};
use super::report::VerifyReport;
use super::scope::locator_of;
use super::unchecked_pages::UncheckedPages;
use crate::datadir::{FileEntry, Problem};
use crate::file_scan::ReadFailure;
use crate::job::JobSummary;
use crate::replay::PageRedoError;
use crate::storage::RelationLocator;

/// Default for the number of findings to list.
pub(super) const FINDINGS_LISTED: usize = 10_000;

/// Findings that are alike. For example, if an index has lost its last thousand pages, a hundred
/// thousand rows have no entry. If we listed each of them, the other findings would be hidden among
/// them, so we list only the first few of a group and count the others.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub(super) struct Group {
    /// The relation that was checked.
    pub(super) relation: Arc<str>,
    /// What their problems have in common.
    pub(super) problem: Likeness,
    /// The index or page that all of them concern.
    pub(super) place: GroupPlace,
}

/// Where like findings are.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub(super) enum GroupPlace {
    /// Anywhere in an index, or in the rows of its table.
    Index(Option<String>),
    /// On a page, or anywhere in the relation.
    Page(Option<BlockNo>),
}

/// Findings of a group to list. A few places help to see what happened, and little damage is listed
/// completely.
const LISTED_OF_GROUP: u32 = 3;

/// The findings of a running job. All workers add to it.
#[derive(Debug)]
pub(super) struct FindingLog {
    limit: usize,
    /// For each group, the number of findings listed, and the place of the last one.
    groups: Mutex<Map<Group, (u32, usize)>>,
    unchecked: Mutex<BTreeMap<RelationLocator, UncheckedPages>>,
    /// Doesn't include anything that we only know at the end of the job.
    report: Mutex<VerifyReport>,
}

impl FindingLog {
    pub(super) fn new(limit: usize) -> Self {
        Self { limit, groups: <_>::default(), unchecked: <_>::default(), report: <_>::default() }
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

    /// Adds a page that can't be built from the log.
    pub(super) fn not_replayed(&self, path: &Path, block: BlockNo, error: PageRedoError) {
        self.add(path, Some(block), FindingKind::NotReplayed(error));
    }

    /// Adds a page for whose records we have no redo rule. It is not checked, which is no finding.
    pub(super) fn not_checked(&self, file: &FileEntry, block: BlockNo, reason: PageRedoError) {
        let path = file.path.clone();
        let first = UncheckedPages { path, relation: None, pages: 1, block, reason };
        match self.unchecked.lock().entry(locator_of(file)) {
            Entry::Vacant(entry) => _ = entry.insert(first),
            Entry::Occupied(mut entry) => {
                let known = entry.get_mut();
                let pages = known.pages + 1;
                if block < known.block {
                    *known = first;
                }
                known.pages = pages;
            }
        }
    }

    /// Adds a finding without a relation name, because page verification doesn't read the catalog.
    fn add(&self, path: &Path, block: Option<BlockNo>, kind: FindingKind) {
        let (path, relation) = (path.to_owned(), None);
        self.push(Finding { path, relation, block, item: None, kind, more: 0 });
    }

    /// Adds a finding about a whole file.
    pub(super) fn file(&self, path: PathBuf, relation: Option<&Arc<str>>, kind: FindingKind) {
        let relation = relation.map(Arc::clone);
        self.push(Finding { path, relation, block: None, item: None, kind, more: 0 });
    }

    /// Counts a finding, and adds it to the list unless the list is full.
    pub(super) fn push(&self, finding: Finding) {
        self.push_like(finding, None);
    }

    /// Counts a finding. If we have already listed enough findings of its group, increments the
    /// count of the last one instead of listing this one.
    pub(super) fn push_like(&self, finding: Finding, group: Option<Group>) {
        let report = &mut *self.report.lock();
        report.denied += u64::from(finding.kind.is_denied());
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
        let is_full = report.findings.len() >= self.limit;
        let place = report.findings.len();
        let mut groups = self.groups.lock();
        match group.as_ref().and_then(|group| groups.get_mut(group)) {
            Some((listed, last)) if is_full || *listed == LISTED_OF_GROUP => {
                if let Some(last) = report.findings.get_mut(*last) {
                    last.more += 1;
                }
                return;
            }
            Some(known) => *known = (known.0 + 1, place),
            None if is_full => return,
            // There is at most one group per listed finding.
            None => groups.extend(group.map(|group| (group, (1, place)))),
        }
        report.findings.push(finding);
    }

    /// Returns the counters, and the list of findings sorted by location. If an abandoned worker
    /// adds more findings later, they won't be included.
    pub(super) fn take(&self) -> VerifyReport {
        let mut report = std::mem::take(&mut *self.report.lock());
        self.groups.lock().clear();
        report.unchecked = std::mem::take(&mut *self.unchecked.lock()).into_values().collect();
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

#[cfg(test)]
mod tests {
    use super::super::content_problem::ContentProblem;
    use super::super::link_problem::LinkProblem;
    use super::*;

    /// Three harmless problems of an index must not hide a different one.
    #[test]
    fn only_problems_of_the_same_kind_are_counted_together() {
        let log = FindingLog::new(100);
        let add = |block, problem: LinkProblem| {
            let problem = ContentProblem::IndexLink(problem);
            let group = Group {
                relation: "index".into(),
                problem: problem.likeness(),
                place: GroupPlace::Index(None),
            };
            let kind = FindingKind::Content(problem);
            let (path, relation) = (PathBuf::from("1"), None);
            let finding = Finding { path, relation, block: Some(block), item: None, kind, more: 0 };
            log.push_like(finding, Some(group));
        };
        for block in 0..10 {
            add(block, LinkProblem::Separator { parent: block, item: 1 });
        }
        add(10, LinkProblem::Left { found: 1, expected: 2 });
        let report = log.take();
        let listed: Vec<_> = report.findings.iter().map(|it| (it.block, it.more)).collect();
        assert_eq!(listed, [(Some(0), 0), (Some(1), 0), (Some(2), 7), (Some(10), 0)]);
        assert_eq!((report.other_findings, report.findings_omitted()), (11, 0));
    }
}
