//! `read` mode: reads blocks into the kernel's page cache.
//!
//! We don't use the pages themselves, so the only memory needed is the read window. Checksums are
//! not verified.

use std::io;

use trunkline_aio::Aio;
use trunkline_aio::facade::{Arc, Mutex};

use super::report::{Failures, PrewarmReport};
use super::target::Target;
use crate::datadir::{DataDir, FileEntry};
use crate::file_scan::{BlockVisitor, ReadFailure, ReadOptions, read_files};
use crate::job::{JobError, Observer};

/// Reads the targets into the page cache.
///
/// # Errors
/// [`JobError`]: nothing could be read at all, or a server was started on the directory.
pub fn prewarm(
    aio: &Aio,
    dir: &DataDir,
    targets: &[Target],
    options: ReadOptions,
    observer: Arc<dyn Observer>,
) -> Result<PrewarmReport, JobError> {
    // The file list already ends at each target's last block, so we only need to tell the job where
    // to begin. The user specifies one starting block for all relations, so every target begins
    // either there or at block 0.
    let first = targets.iter().map(|target| target.first).max().unwrap_or_default();
    let files: Vec<FileEntry> = targets.iter().flat_map(Target::wanted_files).collect();
    let options = ReadOptions { direct: false, ..options };
    let dir = dir.clone();
    PrewarmReport::measure(aio, files, observer, move |job, files, failures| {
        let visitor = Arc::new(FailureCollector { first, failures });
        read_files(job, files.to_vec(), options, visitor, || Ok(dir.recheck()?))
    })
}

/// The scan's visitor. It ignores pages and only collects failures.
#[derive(Debug)]
struct FailureCollector {
    /// The first block to read in each relation.
    first: u32,
    failures: Arc<Mutex<Failures>>,
}

impl BlockVisitor for FailureCollector {
    /// Only the file that contains `first` has blocks to skip.
    fn skipped(&self, file: &FileEntry) -> u32 {
        self.first.saturating_sub(file.first_block().unwrap_or_default())
    }

    fn failed(&self, file: &FileEntry, failure: ReadFailure) {
        let text = match failure {
            ReadFailure::Open(error) => format!("could not be opened: {error}"),
            ReadFailure::Read { block, errno } => {
                let error = io::Error::from_raw_os_error(errno);
                format!("block {block}: could not be read: {error}")
            }
            ReadFailure::GaveUp { block } => {
                format!("block {block}: not read, as too many blocks before it could not be read")
            }
            ReadFailure::Shrank { block, found, expected } => format!(
                "block {block}: file ended while it was read: {found} bytes found, {expected} \
                 expected"
            ),
        };
        self.failures.lock().add(&file.path, text);
    }
}
