//! Mode `read`: blocks into the operating system's cache, by reading them.
//!
//! Nothing is done with the pages, so the window of frames they are copied into is all the memory it
//! takes, and nobody looks whether they are sound.

use std::io;

use trunkline_aio::sync::{Arc, Mutex};
use trunkline_aio::{Aio, Residency};

use super::{Failures, PrewarmReport, Target, cached_part, take};
use crate::datadir::{DataDir, FileEntry};
use crate::scan::{Job, JobError, Observer, ReadOptions, Trouble, Visitor};

/// Reads the targets into the page cache.
///
/// # Errors
/// [`JobError`]: nothing could be read at all, or a server has started meanwhile.
pub fn prewarm(
    aio: &Aio,
    dir: &DataDir,
    targets: &[Target],
    options: ReadOptions,
    observer: Arc<dyn Observer>,
) -> Result<PrewarmReport, JobError> {
    // Files are cut at the end, and all targets that do not begin at 0 begin at the same block.
    let first = targets.iter().map(|target| target.first).max().unwrap_or_default();
    let files: Vec<FileEntry> = targets.iter().flat_map(Target::wanted_files).collect();
    let reading = Arc::new(Reading { first, failures: Mutex::default() });
    let buffered = ReadOptions { direct: false, ..options };
    let job = Job::new(aio, buffered, Arc::clone(&reading) as _, observer);
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
        failures: take(&reading.failures),
        elapsed: outline.reading,
        io: outline.io,
    })
}

/// Remembers what could not be read.
#[derive(Debug)]
struct Reading {
    /// The first block that is wanted of each relation.
    first: u32,
    failures: Mutex<Failures>,
}

impl Visitor for Reading {
    fn skipped(&self, file: &FileEntry) -> u32 {
        self.first.saturating_sub(file.first_block().unwrap_or_default())
    }

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
            Trouble::Shrank { block, found, expected } => format!(
                "block {block}: file ended while it was read: {found} bytes found, {expected} \
                 expected"
            ),
        };
        self.failures.lock().add(&file.path, text);
    }
}
