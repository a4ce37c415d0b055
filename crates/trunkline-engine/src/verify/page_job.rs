//! The job of a page verification.
//!
//! The job reads relation files directly, like `pg_checksums`. Since it uses neither the buffer
//! pool nor the catalogs, it still works if the catalogs are damaged. If the caller has read the
//! catalogs, the job also compares the files with them.

use std::collections::BTreeMap;

use trunkline_aio::Aio;
use trunkline_aio::facade::{Arc, Mutex};

use super::catalog_files::{CatalogFiles, main_lengths};
use super::finding_log::{FINDINGS_LISTED, FindingLog};
use super::page_verifier::PageVerifier;
use super::replayed_pages::ReplayedPages;
use super::report::VerifyReport;
use super::scope::Scope;
use crate::datadir::{DataDir, FileEntry};
use crate::file_scan::{ReadOptions, read_files};
use crate::job::{End, Job, JobError, Observer};
use crate::settings::Settings;

/// How to verify pages.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Options {
    /// How to read the files.
    pub read: ReadOptions,
    /// Maximum number of findings to list in the report. Any findings beyond that are counted but
    /// not listed.
    pub findings_listed: usize,
}

impl Options {
    /// Options as configured in the settings.
    pub fn of(settings: &Settings) -> Self {
        Self { read: ReadOptions::of(settings), findings_listed: FINDINGS_LISTED }
    }
}

/// Verifies all pages in the relation files of all databases and tablespaces.
///
/// # Errors
/// [`JobError`]: we couldn't read anything at all, or a server was started on the data directory.
/// Problems with individual files or blocks are not errors; they are listed in the report.
pub fn verify(
    aio: &Aio,
    dir: &DataDir,
    options: Options,
    observer: Arc<dyn Observer>,
) -> Result<VerifyReport, JobError> {
    verify_scope(aio, dir, Scope::Everything, options, observer)
}

/// Verifies the pages of the relation files within a scope.
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
    run(aio, dir, (scope, None), options, observer)
}

/// Like [`verify_scope`], but also compares the files with the catalogs, which must have been read
/// with the same scope. All files named in the catalogs must exist, and every relation must have the
/// blocks that other pages refer to.
///
/// # Errors
/// The same as for [`verify`].
pub fn verify_with_catalogs(
    aio: &Aio,
    dir: &DataDir,
    (scope, catalogs): (Scope, CatalogFiles),
    options: Options,
    observer: Arc<dyn Observer>,
) -> Result<VerifyReport, JobError> {
    run(aio, dir, (scope, Some(Arc::new(catalogs))), options, observer)
}

fn run(
    aio: &Aio,
    dir: &DataDir,
    (scope, catalogs): (Scope, Option<Arc<CatalogFiles>>),
    options: Options,
    observer: Arc<dyn Observer>,
) -> Result<VerifyReport, JobError> {
    let findings = Arc::new(FindingLog::new(options.findings_listed));
    let checksums = dir.control().checksums();
    let pages = PageVerifier::new(checksums, Arc::clone(&findings), catalogs.clone());
    let job = Job::new(aio, observer);
    let version = dir.control().data_checksum_version;
    let lengths = Arc::new(Mutex::new(BTreeMap::new()));
    let (dir, all, compared) = (dir.clone(), Arc::clone(&findings), catalogs.clone());
    let listed = Arc::clone(&lengths);
    let summary = job.run(move |job| {
        let mut list = dir.relation_files();
        scope.narrow(&dir, &mut list);
        if let Some(catalogs) = compared {
            catalogs.check_existence(&list, &all);
            *listed.lock() = main_lengths(&list);
        }
        all.listing_problems(list.problems);
        all.count_files(&list.files);
        let (files, pages) = match dir.replay() {
            None => (list.files, Arc::new(pages)),
            Some(replay) => {
                let replayed = ReplayedPages::new(replay, &list.files);
                let mut on_disk = dir.files_on_disk();
                scope.narrow(&dir, &mut on_disk);
                on_disk.files.retain(|file| replayed.is_read(file));
                let pages = Arc::new(pages.with_replayed(Some(replayed.clone())));
                replayed.behind_files(&on_disk.files, &list.files, |file, block, page| {
                    pages.built(file, block, page);
                });
                (on_disk.files, pages)
            }
        };
        read_files(job, files, options.read, pages, || Ok(dir.recheck()?))
    })?;
    // We can only compare lengths after we have seen all references.
    let compared = catalogs.as_ref().filter(|_| summary.end == End::Complete);
    let compared = compared.map(|catalogs| catalogs.check_lengths(&lengths.lock(), &findings));
    let mut report = findings.report(summary, version);
    report.catalogs = compared;
    for finding in report.findings.iter_mut().filter(|finding| finding.relation.is_none()) {
        finding.relation = catalogs.as_ref().and_then(|names| names.name_of(&finding.path));
    }
    for unchecked in &mut report.unchecked {
        unchecked.relation = catalogs.as_ref().and_then(|names| names.name_of(&unchecked.path));
    }
    Ok(report)
}

/// Verifies the pages of single files that aren't part of a data directory. Since there is no
/// control file to tell us whether the pages have checksums, the caller must specify this
/// (`checksums`).
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
    let findings = Arc::new(FindingLog::new(options.findings_listed));
    let pages = Arc::new(PageVerifier::new(checksums, Arc::clone(&findings), None));
    let job = Job::new(aio, observer);
    let all = Arc::clone(&findings);
    let summary = job.run(move |job| {
        all.count_files(&files);
        read_files(job, files, options.read, pages, || Ok(()))
    })?;
    Ok(findings.report(summary, u32::from(checksums)))
}
