//! Brings relations nearer, in three ways, as PostgreSQL's `pg_prewarm` does, and says how much of
//! them was where before and afterwards.
//!
//! ```text
//!   names, fork, first, last ── target ──▶ ranges of blocks of relations
//!     buffer    pool and stream ──▶ pages checked, in the buffer pool    (buffer)
//!     read      window of a scan ──▶ in the operating system's cache     (cache)
//!     prefetch  posix_fadvise ──▶ in its cache too, some time soon       (advice)
//! ```
//! Reading into the cache and advice go through the cache whatever `io_direct` says: past it they
//! would leave nothing behind. All three run in a thread per mount, so that a file system that hangs
//! stops nobody else, and the caller can leave at any time.

mod advice;
mod buffer;
mod cache;
mod target;

use std::path::{Path, PathBuf};
use std::time::Duration;

use trunkline_aio::sync::Mutex;
use trunkline_aio::{Aio, OpenOptions, Residency, residency};
use trunkline_format::BLOCK_SIZE;

use crate::datadir::FileEntry;
use crate::scan::{End, IoSummary};

pub use self::advice::prefetch;
pub use self::buffer::{BufferOptions, BufferReport, into_pool};
pub use self::cache::prewarm;
pub use self::target::{Choice, SelectError, Selection, Target, select};

/// The result of filling the operating system's cache.
#[derive(Debug)]
pub struct PrewarmReport {
    /// Whether it came to its end.
    pub end: End,
    /// Files asked for.
    pub files: u64,
    /// Blocks read, or asked for in advance.
    pub blocks: u64,
    /// What was in the page cache before.
    pub before: Residency,
    /// What was there afterwards.
    pub after: Residency,
    /// Files and blocks that could not be read, with the reason.
    pub failures: Failures,
    /// How long it took, without looking at the page cache.
    pub elapsed: Duration,
    /// The I/O.
    pub io: IoSummary,
}

impl PrewarmReport {
    /// Bytes read, or asked for in advance.
    pub fn bytes(&self) -> u64 {
        self.blocks * BLOCK_SIZE as u64
    }

    /// The same per second.
    pub fn bytes_per_second(&self) -> f64 {
        self.bytes() as f64 / self.elapsed.as_secs_f64().max(1e-9)
    }
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

/// Failures that are listed.
const FAILURES_LISTED: usize = 10_000;

/// Files and blocks that could not be had, and why.
#[derive(Debug, Default)]
pub struct Failures {
    /// The first ten thousand: the file, and what is wrong with which block.
    pub listed: Vec<(PathBuf, String)>,
    /// How many there were in all.
    pub total: u64,
}

impl Failures {
    fn add(&mut self, path: &Path, text: String) {
        self.total += 1;
        if self.listed.len() < FAILURES_LISTED {
            self.listed.push((path.to_owned(), text));
        }
    }
}

/// Takes out what several threads have put in.
fn take<T: Default>(shared: &Mutex<T>) -> T {
    std::mem::take(&mut *shared.lock())
}
