//! Results of loading blocks into the page cache, and the failures of individual files and blocks.
//!
//! The modes `read` and `prefetch` use this report.

use std::path::{Path, PathBuf};
use std::time::Duration;

use trunkline_aio::facade::{Arc, Mutex};
use trunkline_aio::{Aio, OpenOptions, Residency, residency};
use trunkline_format::BLOCK_SIZE;

use crate::datadir::FileEntry;
use crate::job::{End, IoSummary, Job, JobError, Observer, bytes_per_second};

/// The result of filling the kernel's page cache.
#[derive(Debug)]
pub struct PrewarmReport {
    /// Whether the job reached its end.
    pub end: End,
    /// Files to read.
    pub files: u64,
    /// Blocks read, or blocks we issued `posix_fadvise` for.
    pub blocks: u64,
    /// How much of the files was in the page cache before.
    pub before: Residency,
    /// How much of the files was in the page cache afterwards.
    pub after: Residency,
    /// Files and blocks that could not be read, with the reason.
    pub failures: Failures,
    /// Time spent, without the page cache queries.
    pub elapsed: Duration,
    /// The I/O.
    pub io: IoSummary,
}

impl PrewarmReport {
    /// Bytes read, or bytes we issued `posix_fadvise` for.
    pub fn bytes(&self) -> u64 {
        self.blocks * BLOCK_SIZE as u64
    }

    /// Bytes per second.
    pub fn bytes_per_second(&self) -> f64 {
        bytes_per_second(self.bytes(), self.elapsed)
    }

    /// Runs `work` as a job, and passes it a mutex-protected list to add its failures to. Also
    /// queries how much of `files` is in the page cache, both before and afterwards. The queries
    /// run on the coordinator thread, because they open files and can hang.
    pub(super) fn measure(
        aio: &Aio,
        files: Vec<FileEntry>,
        observer: Arc<dyn Observer>,
        work: impl FnOnce(&Arc<Job>, &[FileEntry], Arc<Mutex<Failures>>) -> Result<(), JobError>
        + Send
        + 'static,
    ) -> Result<Self, JobError> {
        let count = files.len() as u64;
        let cached = Arc::new(Mutex::new([Residency::default(); 2]));
        let failures = Arc::new(Mutex::new(Failures::default()));
        let (measured, failed) = (Arc::clone(&cached), Arc::clone(&failures));
        let summary = Job::new(aio, observer).run(move |job| {
            let before = cached_part(job.aio(), &files);
            measured.lock()[0] = before;
            let outcome = work(job, &files, failed);
            let after = cached_part(job.aio(), &files);
            measured.lock()[1] = after;
            outcome
        })?;
        let [before, after] = *cached.lock();
        let mut failures = std::mem::take(&mut *failures.lock());
        // Several workers add to the list, so its order would otherwise differ from run to run.
        failures.listed.sort_by(|left, right| left.0.cmp(&right.0));
        Ok(Self {
            end: summary.end,
            files: count,
            blocks: summary.blocks,
            before,
            after,
            failures,
            elapsed: summary.working,
            io: summary.io,
        })
    }
}

/// How much of the files is in the page cache, according to `mincore` or `cachestat`. If a file
/// can't be opened, we count it as not cached.
pub fn cached_part(aio: &Aio, files: &[FileEntry]) -> Residency {
    let options = OpenOptions { no_follow: true, ..OpenOptions::default() };
    let mut sum = Residency::default();
    for file in files.iter().filter(|file| file.bytes > 0) {
        let found = aio.open(&file.path, options).and_then(|file| residency(&file));
        sum.add(found.unwrap_or(Residency { total: file.bytes, cached: 0 }));
    }
    sum
}

/// The most failures to list. All failures are counted.
const FAILURES_LISTED: usize = 10_000;

/// Files and blocks that could not be read.
#[derive(Debug, Default)]
pub struct Failures {
    /// The first ten thousand failures. Each entry contains the file, and a text with the block and
    /// the reason. Pages of a fork that can't be built from the log for the same kind of reason share one entry.
    pub listed: Vec<(PathBuf, String)>,
    /// The number of failures, including those that aren't listed.
    pub total: u64,
}

impl Failures {
    /// Counts a failure, and adds it to the list unless the list is full.
    pub(super) fn add(&mut self, path: &Path, text: String) {
        self.add_all(path, text, 1);
    }

    /// Counts failures that are alike, of which one text is listed.
    pub(super) fn add_all(&mut self, path: &Path, text: String, count: u64) {
        self.total += count;
        if self.listed.len() < FAILURES_LISTED {
            self.listed.push((path.to_owned(), text));
        }
    }
}

/// Pages that were not loaded, since we have no redo rule for their records. A server may have it.
#[derive(Debug, Default)]
pub struct Unchecked {
    /// One entry for each relation fork: the file of the first page, and a text with its block and the reason.
    pub listed: Vec<(PathBuf, String)>,
    /// The number of pages.
    pub pages: u64,
}

impl Unchecked {
    /// Adds the pages of a fork.
    pub(super) fn add(&mut self, path: &Path, text: String, pages: u64) {
        self.pages += pages;
        self.listed.push((path.to_owned(), text));
    }
}
