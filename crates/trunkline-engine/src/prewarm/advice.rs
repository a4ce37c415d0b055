//! `prefetch` mode: asks the kernel to read blocks into its page cache (`posix_fadvise`).
//!
//! `posix_fadvise` returns as soon as the reads have been queued, and there is no way to find out
//! when they complete, so we can't use an I/O handle for it. The report shows how much was cached
//! before the calls and right after them. At that point the kernel may not have read all of the
//! blocks, and it may never read some of them.

use std::io;
use std::num::NonZeroU64;

use rustix::fs::{Advice, Mode, OFlags};
use trunkline_aio::Aio;
use trunkline_aio::facade::Arc;
use trunkline_format::BLOCK_SIZE;

use super::report::PrewarmReport;
use super::target::Target;
use crate::datadir::{DataDir, FileEntry};
use crate::job::{Job, JobError, Observer, by_mount};

/// Number of blocks per call. The kernel reads at most the device's read-ahead size per call, which
/// is usually 128 KiB. If the range is longer, the kernel silently ignores the rest.
const BLOCKS: u32 = 16;

/// Issues `posix_fadvise` for the targets.
///
/// # Errors
/// [`JobError`]: nothing could be done at all, or a server was started on the directory.
pub fn prefetch(
    aio: &Aio,
    dir: &DataDir,
    targets: Vec<Target>,
    observer: Arc<dyn Observer>,
) -> Result<PrewarmReport, JobError> {
    let files: Vec<FileEntry> = targets.iter().flat_map(Target::wanted_files).collect();
    let dir = dir.clone();
    PrewarmReport::measure(aio, files, observer, move |job, files, failures| {
        let blocks: u64 = targets.iter().map(Target::blocks).sum();
        job.observer().begins(files.len(), blocks * BLOCK_SIZE as u64);
        let mounts = by_mount(targets, Target::device);
        let recheck = || Ok(dir.recheck()?);
        job.run_workers(mounts.len(), recheck, move |job, number| {
            for target in mounts.get(number).into_iter().flatten() {
                for file in &target.wanted_files() {
                    if let Err(error) = advise(job, target, file) {
                        let text = format!("could not be prefetched: {error}");
                        failures.lock().add(&file.path, text);
                    }
                }
            }
            Ok(())
        })
    })
}

/// Calls `posix_fadvise` for the selected blocks of one file. We open the file directly rather than
/// through the I/O instance, because we don't need an I/O handle.
fn advise(job: &Job, target: &Target, file: &FileEntry) -> io::Result<()> {
    let first = target.first.saturating_sub(file.first_block().unwrap_or_default());
    let flags = OFlags::RDONLY | OFlags::CLOEXEC | OFlags::NOFOLLOW;
    let open = rustix::fs::open(&file.path, flags, Mode::empty());
    // A file that cannot be opened counts as processed, so that progress still reaches the end.
    let open = open.inspect_err(|_| job.count(file.blocks() - first, 0))?;
    for block in (first..file.blocks()).step_by(BLOCKS as usize) {
        if job.is_stopping() {
            break;
        }
        let blocks = BLOCKS.min(file.blocks() - block);
        let bytes = |blocks: u32| u64::from(blocks) * BLOCK_SIZE as u64;
        let length = NonZeroU64::new(bytes(blocks));
        rustix::fs::fadvise(&open, bytes(block), length, Advice::WillNeed)?;
        job.count(blocks, blocks);
    }
    Ok(())
}
