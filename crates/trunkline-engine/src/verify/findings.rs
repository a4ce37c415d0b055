//! What was found, counted without end and listed up to a limit: a directory of nothing but garbage
//! must not fill the memory. Findings are rare, so a lock around the list is good enough.

use std::fmt;
use std::io;
use std::path::{Path, PathBuf};

use trunkline_aio::sync::atomic::{AtomicU64, Ordering};
use trunkline_aio::sync::{Arc, Mutex};
use trunkline_format::{BlockNo, Finding as PageFinding};

use super::VerifyReport;
use super::problem::ContentProblem;
use crate::datadir::{FileEntry, Problem, ProblemKind};
use crate::file_scan::ReadFailure;
use crate::job::JobSummary;

/// One thing that is wrong.
#[derive(Debug)]
pub struct Finding {
    /// The file, beginning with the data directory's path.
    pub path: PathBuf,
    /// Database, schema and relation, as one would write them; `None` if nobody asked the catalog.
    pub relation: Option<Arc<str>>,
    /// The block, counted over all segments of the relation; `None` if it is about the file.
    pub block: Option<BlockNo>,
    /// The line pointer, from 1, if it is about one and the rest does not say so.
    pub item: Option<u16>,
    /// What is wrong.
    pub kind: FindingKind,
}

/// What is wrong.
#[derive(Debug)]
pub enum FindingKind {
    /// With a page.
    Page(PageFinding),
    /// A block could not be read.
    Unreadable(io::Error),
    /// The file could not be opened.
    NotOpened(io::Error),
    /// Too many blocks of the file could not be read; this one and those after it were left out.
    GaveUp,
    /// The file ended while it was read.
    Shrank {
        /// Size in bytes when it ended.
        found: u64,
        /// Size in bytes when it was listed.
        expected: u64,
    },
    /// Something about the file was odd before it was read.
    File(ProblemKind),
    /// Every page is sound, but what they hold is not.
    Content(ContentProblem),
}

impl FindingKind {
    /// Whether `pg_checksums --check` counts it as a bad checksum.
    pub fn is_bad_checksum(&self) -> bool {
        matches!(self, FindingKind::Page(PageFinding::Checksum { .. }))
    }

    /// Whether `pg_checksums --check` passes over it: a page whose checksum is right, or that it
    /// takes for new.
    pub fn is_beyond_checksums(&self) -> bool {
        matches!(self, FindingKind::Page(_)) && !self.is_bad_checksum()
    }

    /// A word for programs.
    pub fn name(&self) -> &'static str {
        match self {
            FindingKind::Page(PageFinding::Checksum { .. }) => "checksum",
            FindingKind::Page(_) => "page",
            FindingKind::Unreadable(_) => "unreadable",
            FindingKind::NotOpened(_) => "not_opened",
            FindingKind::GaveUp => "gave_up",
            FindingKind::Shrank { .. } => "shrank",
            FindingKind::File(_) => "file",
            FindingKind::Content(problem) => problem.name(),
        }
    }
}

impl fmt::Display for FindingKind {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            FindingKind::Page(finding) => finding.fmt(f),
            FindingKind::Unreadable(error) => write!(f, "could not be read: {error}"),
            FindingKind::NotOpened(error) => write!(f, "could not be opened: {error}"),
            FindingKind::GaveUp => {
                f.write_str("not read, as too many blocks before it could not be read")
            }
            FindingKind::Shrank { found, expected } => {
                write!(f, "file ended while it was read: {found} bytes found, {expected} expected")
            }
            FindingKind::File(problem) => problem.fmt(f),
            FindingKind::Content(problem) => problem.fmt(f),
        }
    }
}

/// `block 17: checksum 0x1234 found, 0x5678 expected`, without the file.
impl fmt::Display for Finding {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if let Some(block) = self.block {
            write!(f, "block {block}: ")?;
        }
        if let Some(item) = self.item {
            write!(f, "line pointer {item}: ")?;
        }
        self.kind.fmt(f)
    }
}

/// The findings of a running job.
#[derive(Debug)]
pub(super) struct Findings {
    files: AtomicU64,
    bad_checksums: AtomicU64,
    beyond_checksums: AtomicU64,
    others: AtomicU64,
    limit: usize,
    listed: Mutex<Vec<Finding>>,
    notes: Mutex<Vec<Problem>>,
}

impl Findings {
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

    /// What was odd about the files before any was read.
    pub(super) fn listed(&self, problems: Vec<Problem>) {
        for problem in problems {
            if problem.kind.is_finding() {
                self.add(&problem.path, None, FindingKind::File(problem.kind));
            } else {
                self.notes.lock().push(problem);
            }
        }
    }

    /// These are going to be read, empty ones too.
    pub(super) fn scan(&self, files: &[FileEntry]) {
        self.files.fetch_add(files.len() as u64, Ordering::Relaxed);
    }

    pub(super) fn page(&self, path: &Path, block: BlockNo, finding: PageFinding) {
        self.add(path, Some(block), FindingKind::Page(finding));
    }

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

    fn add(&self, path: &Path, block: Option<BlockNo>, kind: FindingKind) {
        self.push(Finding { path: path.to_owned(), relation: None, block, item: None, kind });
    }

    /// Notes what is wrong.
    pub(super) fn push(&self, finding: Finding) {
        let kind = &finding.kind;
        let counter = if kind.is_bad_checksum() {
            &self.bad_checksums
        } else if kind.is_beyond_checksums() {
            &self.beyond_checksums
        } else {
            &self.others
        };
        counter.fetch_add(1, Ordering::Relaxed);
        let mut listed = self.listed.lock();
        if listed.len() < self.limit {
            listed.push(finding);
        }
    }

    /// What was listed, in order, and how much there is in all.
    pub(super) fn take(&self) -> (Vec<Finding>, u64) {
        let mut findings = std::mem::take(&mut *self.listed.lock());
        let place = |finding: &Finding| (finding.path.clone(), finding.block, finding.item);
        findings.sort_by_cached_key(place);
        let counters = [&self.bad_checksums, &self.beyond_checksums, &self.others];
        (findings, counters.map(|counter| counter.load(Ordering::Relaxed)).iter().sum())
    }

    /// What is known now; what is found later, by a thread that was left behind, is not in it.
    pub(super) fn report(&self, summary: JobSummary, checksum_version: u32) -> VerifyReport {
        let mut findings = std::mem::take(&mut *self.listed.lock());
        findings.sort_by(|a, b| (&a.path, a.block).cmp(&(&b.path, b.block)));
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
