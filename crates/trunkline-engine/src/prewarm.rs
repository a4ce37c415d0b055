//! Reads relation files into the operating system's page cache, and says how much of them was there
//! before and is there afterwards.
//!
//! Nothing is done with the pages, so the window of frames they are copied into is all the memory
//! it takes. Always through the cache, whatever `io_direct` says: direct reads would leave nothing
//! behind.

use std::io;
use std::path::{Component, Path, PathBuf};
use std::time::Duration;

use trunkline_aio::sync::{Arc, Mutex};
use trunkline_aio::{Aio, OpenOptions, Residency, residency};
use trunkline_format::BLOCK_SIZE;

use crate::datadir::{DataDir, FileEntry, Problem};
use crate::scan::{End, IoSummary, Job, JobError, Observer, ReadOptions, Trouble, Visitor};

/// The result of a prewarming.
#[derive(Debug)]
pub struct PrewarmReport {
    /// Whether it came to its end.
    pub end: End,
    /// Files asked for.
    pub files: u64,
    /// Blocks read.
    pub blocks: u64,
    /// What was in the page cache before.
    pub before: Residency,
    /// What was there afterwards.
    pub after: Residency,
    /// Files and blocks that could not be read, with the reason.
    pub failures: Vec<(PathBuf, String)>,
    /// How long it took, without looking at the page cache.
    pub elapsed: Duration,
    /// The I/O.
    pub io: IoSummary,
}

impl PrewarmReport {
    /// Bytes read.
    pub fn bytes(&self) -> u64 {
        self.blocks * BLOCK_SIZE as u64
    }

    /// Bytes read per second.
    pub fn bytes_per_second(&self) -> f64 {
        self.bytes() as f64 / self.elapsed.as_secs_f64().max(1e-9)
    }
}

/// A file that was asked for is not among the directory's relation files.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct NotAFile {
    /// As it was asked for.
    pub path: PathBuf,
}

impl std::fmt::Display for NotAFile {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "\"{}\" is no relation file of the data directory", self.path.display())
    }
}

impl std::error::Error for NotAFile {}

/// The files to read, chosen from a directory.
#[derive(Debug)]
pub struct Selection {
    /// In the order of the listing.
    pub files: Vec<FileEntry>,
    /// What is odd about the directory's files, chosen or not; empty if names were given.
    pub problems: Vec<Problem>,
}

/// Chooses files by name, relative to the data directory or absolute inside it; all if there are no
/// names.
///
/// # Errors
/// The first name that is no relation file's.
pub fn select(dir: &DataDir, names: &[PathBuf]) -> Result<Selection, NotAFile> {
    let mut list = dir.relation_files();
    if names.is_empty() {
        return Ok(Selection { files: list.files, problems: list.problems });
    }
    let mut wanted = Vec::with_capacity(names.len());
    for name in names {
        let path = inside(dir.path(), name);
        let found = list.files.iter().position(|file| file.path == path);
        wanted.push(found.ok_or_else(|| NotAFile { path: name.clone() })?);
    }
    wanted.sort_unstable();
    wanted.dedup();
    let mut position = 0..;
    list.files.retain(|_| position.next().is_some_and(|at| wanted.binary_search(&at).is_ok()));
    Ok(Selection { files: list.files, problems: Vec::new() })
}

/// The path by which the listing knows `name`.
fn inside(root: &Path, name: &Path) -> PathBuf {
    let parts = |path: &Path| -> PathBuf {
        path.components().filter(|part| !matches!(part, Component::CurDir)).collect()
    };
    if name.is_relative() {
        return root.join(parts(name));
    }
    if let Ok(rest) = name.strip_prefix(root) {
        return root.join(rest);
    }
    // The same directory by another name: links are resolved on both sides.
    let real = |path: &Path| path.canonicalize().unwrap_or_else(|_| path.to_owned());
    match real(name).strip_prefix(real(root)) {
        Ok(rest) => root.join(rest),
        Err(_) => name.to_owned(),
    }
}

/// Reads `files` into the page cache.
///
/// # Errors
/// [`JobError`]: nothing could be read at all, or a server has started meanwhile.
pub fn prewarm(
    aio: &Aio,
    dir: &DataDir,
    files: Vec<FileEntry>,
    options: ReadOptions,
    observer: Arc<dyn Observer>,
) -> Result<PrewarmReport, JobError> {
    let failures = Arc::new(Failures::default());
    let buffered = ReadOptions { direct: false, ..options };
    let job = Job::new(aio, buffered, Arc::clone(&failures) as _, observer);
    let (dir, count) = (dir.clone(), files.len() as u64);
    let cached = Arc::new(Mutex::new([Residency::default(); 2]));
    let looks = Arc::clone(&cached);
    let outline = job.run(move |job| {
        looks.lock()[0] = cached_part(&job.aio, &files);
        let outcome = job.read_all(files.clone(), || Ok(dir.recheck()?));
        looks.lock()[1] = cached_part(&job.aio, &files);
        outcome
    })?;
    let [before, after] = *cached.lock();
    Ok(PrewarmReport {
        end: outline.end,
        files: count,
        blocks: outline.blocks,
        before,
        after,
        failures: std::mem::take(&mut *failures.0.lock()),
        elapsed: outline.reading,
        io: outline.io,
    })
}

/// What the page cache holds of the files. A file that cannot be looked at counts as not cached.
pub fn cached_part(aio: &Aio, files: &[FileEntry]) -> Residency {
    let options = OpenOptions { no_follow: true, ..OpenOptions::default() };
    let mut sum = Residency::default();
    for file in files.iter().filter(|file| file.bytes > 0) {
        let look = aio.open(&file.path, options).and_then(|file| residency(&file));
        sum.add(look.unwrap_or(Residency { total: file.bytes, cached: 0 }));
    }
    sum
}

/// Remembers what could not be read.
#[derive(Debug, Default)]
struct Failures(Mutex<Vec<(PathBuf, String)>>);

/// Failures that are listed.
const FAILURES_LISTED: usize = 10_000;

impl Visitor for Failures {
    fn trouble(&self, file: &FileEntry, trouble: Trouble) {
        let text = match trouble {
            Trouble::Open(error) => format!("could not be opened: {error}"),
            Trouble::Read { block, errno } => {
                let error = io::Error::from_raw_os_error(errno);
                format!("block {block}: could not be read: {error}")
            }
            Trouble::GaveUp { block } => {
                format!("block {block}: not read, as too many blocks before it could not be read")
            }
            Trouble::Shrank { found, expected, .. } => {
                format!("file ended while it was read: {found} bytes found, {expected} expected")
            }
        };
        let mut failures = self.0.lock();
        if failures.len() < FAILURES_LISTED {
            failures.push((file.path.clone(), text));
        }
    }
}
