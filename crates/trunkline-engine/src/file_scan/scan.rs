//! Starts the workers of a raw file scan, one for each mount.
//!
//! We divide memory and file descriptors among the workers in advance. If they were shared instead,
//! a worker that hangs could keep memory and descriptors that the other workers need.

use std::io;

use rustix::process::{Resource, getrlimit};
use trunkline_aio::facade::Arc;
use trunkline_aio::{OpenOptions, file_system_name};
use trunkline_format::BLOCK_SIZE;

use super::mount_worker;
use super::options::ReadOptions;
use super::visitor::{BlockVisitor, Context};
use crate::datadir::FileEntry;
use crate::job::{Job, JobError, by_mount};

/// File descriptors reserved for other uses, such as the standard streams, the rings, and files in
/// the data directory that aren't part of the scan.
const DESCRIPTORS_RESERVED: u64 = 20;

/// Reads all blocks of `files`, using one worker for each mount. `recheck` is called once a second,
/// and once more at the end.
pub(crate) fn read_files(
    job: &Arc<Job>,
    files: Vec<FileEntry>,
    options: ReadOptions,
    visitor: Arc<dyn BlockVisitor>,
    recheck: impl Fn() -> Result<(), JobError>,
) -> Result<(), JobError> {
    let bytes = files.iter().map(|file| u64::from(file.blocks()) * BLOCK_SIZE as u64).sum();
    job.observer().begins(files.len(), bytes);
    // Skip empty files. There's nothing to read in them, and the workers rely on every file having
    // at least one block.
    let files = files.into_iter().filter(|file| file.blocks() > 0);
    let mounts = by_mount(files, |file| file.device);
    if options.direct {
        mounts.iter().try_for_each(|files| probe_direct(job, files))?;
    }
    // Divide the file descriptors and the memory evenly, because any of the workers may hang.
    let workers = mounts.len();
    let frames = job.aio().region().frames() / workers.max(1) as u32;
    let limits = mount_worker::Limits {
        slots: options.slots().min((frames / options.combine_blocks) as usize),
        open_files: open_files_max(workers.max(1)),
    };
    job.run_workers(workers, recheck, move |job, number| {
        let context = Context { job, options, visitor: &*visitor };
        mount_worker::read(context, mounts.get(number).map_or(&[], Vec::as_slice), limits)
    })
}

/// Checks whether a mount supports direct I/O by opening one of the files on it, so that we can
/// report the problem before we start reading. If the file system doesn't support direct I/O,
/// `open` fails with `EINVAL`. Any other error concerns only that one file, so we try the next file
/// here, and report the error when the scan gets to it.
fn probe_direct(job: &Job, files: &[FileEntry]) -> Result<(), JobError> {
    let options = OpenOptions { direct: true, no_follow: true, ..OpenOptions::default() };
    for file in files {
        match job.aio().open(&file.path, options) {
            Ok(_) => return Ok(()),
            Err(error) if error.kind() == io::ErrorKind::InvalidInput => {
                return Err(JobError::Direct {
                    path: file.path.clone(),
                    file_system: file_system_name(&file.path),
                });
            }
            Err(_) => {}
        }
    }
    Ok(())
}

/// The number of files that each of `workers` workers may keep open, derived from `RLIMIT_NOFILE`.
fn open_files_max(workers: usize) -> usize {
    let limit = getrlimit(Resource::Nofile).current;
    let free = limit.unwrap_or(u64::MAX).saturating_sub(DESCRIPTORS_RESERVED);
    usize::try_from(free / workers as u64).unwrap_or(usize::MAX).max(1)
}
