//! Is every page of a data directory sound?
//!
//! All relation files are read once, in any order, and each page goes through
//! [`check_page`](trunkline_format::check_page) on whatever thread completes its read. What is
//! counted is what `pg_checksums --check` counts; what it would not see is counted apart. A bad page
//! is no error: it becomes a [`Finding`], and the job goes on.
//!
//! Pages can be sound and not fit together, which only who knows the catalog can see:
//! [`verify_contents`] reads tables and indexes through a pool. Values are held against their types,
//! rows against the indexes, keys of unique ones against each other, long values against their chunks
//! and chunks against the rows, the visibility map against the rows.
//!
//! ```no_run
//! # fn main() -> Result<(), Box<dyn std::error::Error>> {
//! use trunkline_aio::{Builder, sync::Arc};
//! use trunkline_engine::{datadir, job, settings::Settings, verify};
//!
//! let options = verify::Options::of(&Settings::default());
//! let aio = Builder::new().region_bytes(options.read.region_bytes(1)).start()?;
//! let dir = datadir::DataDir::open("data".as_ref(), datadir::OpenOptions::default())?;
//! let report = verify::verify(&aio, &dir, options, Arc::new(job::Unobserved))?;
//! println!("{} blocks, {} bad", report.blocks, report.bad_checksums);
//! # Ok(()) }
//! ```

mod age;
mod chains;
mod collect;
mod content_report;
mod contents;
mod entries;
mod findings;
mod judge;
mod map;
mod orphans;
mod pages;
mod problem;
mod report;
mod row;
mod scope;
mod sink;
mod structure;
mod table;
mod target;
mod unique;
mod value_ids;

pub use content_report::{ContentError, ContentReport, Skipped};
pub use contents::{Checks, ContentOptions, Only, verify_contents};
pub use findings::{Finding, FindingKind};
pub use orphans::Orphans;
pub use problem::{ContentProblem, HeaderId, LinkProblem, Nowhere};
pub use report::VerifyReport;
pub use scope::Scope;

use trunkline_aio::Aio;
use trunkline_aio::sync::Arc;

use self::findings::Findings;
use self::pages::PageVerifier;
use crate::datadir::{DataDir, FileEntry};
use crate::file_scan::{ReadOptions, read_files};
use crate::job::{Job, JobError, Observer};
use crate::settings::Settings;

/// Findings that a report lists, unless asked otherwise.
const FINDINGS_LISTED: usize = 10_000;

/// How to verify.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Options {
    /// How to read.
    pub read: ReadOptions,
    /// Findings that the report lists; all are counted.
    pub findings_listed: usize,
}

impl Options {
    /// As the settings say.
    pub fn of(settings: &Settings) -> Self {
        Self { read: ReadOptions::of(settings), findings_listed: FINDINGS_LISTED }
    }
}

/// Verifies every relation file of every database and tablespace.
///
/// # Errors
/// [`JobError`]: nothing could be read at all, or a server has started meanwhile. Whatever is wrong
/// with single files and blocks is in the report.
pub fn verify(
    aio: &Aio,
    dir: &DataDir,
    options: Options,
    observer: Arc<dyn Observer>,
) -> Result<VerifyReport, JobError> {
    verify_scope(aio, dir, Scope::Everything, options, observer)
}

/// Verifies the relation files of a scope.
///
/// # Errors
/// As [`verify`].
pub fn verify_scope(
    aio: &Aio,
    dir: &DataDir,
    scope: Scope,
    options: Options,
    observer: Arc<dyn Observer>,
) -> Result<VerifyReport, JobError> {
    let findings = Arc::new(Findings::new(options.findings_listed));
    let checksums = dir.control().checksums();
    let pages = Arc::new(PageVerifier::new(checksums, Arc::clone(&findings)));
    let job = Job::new(aio, observer);
    let (dir, all) = (dir.clone(), Arc::clone(&findings));
    let version = dir.control().data_checksum_version;
    let summary = job.run(move |job| {
        let mut list = dir.relation_files();
        scope.narrow(&dir, &mut list);
        all.listed(list.problems);
        all.scan(&list.files);
        read_files(job, list.files, options.read, pages, || Ok(dir.recheck()?))
    })?;
    Ok(findings.report(summary, version))
}

/// Verifies single files, of which nothing is known but their names and whether their pages carry
/// checksums.
///
/// # Errors
/// As [`verify`].
pub fn verify_files(
    aio: &Aio,
    files: Vec<FileEntry>,
    checksums: bool,
    options: Options,
    observer: Arc<dyn Observer>,
) -> Result<VerifyReport, JobError> {
    let findings = Arc::new(Findings::new(options.findings_listed));
    let pages = Arc::new(PageVerifier::new(checksums, Arc::clone(&findings)));
    let job = Job::new(aio, observer);
    let all = Arc::clone(&findings);
    let summary = job.run(move |job| {
        all.scan(&files);
        read_files(job, files, options.read, pages, || Ok(()))
    })?;
    Ok(findings.report(summary, u32::from(checksums)))
}
