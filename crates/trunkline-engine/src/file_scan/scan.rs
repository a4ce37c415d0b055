//! Starts the workers of a raw file scan, up to four for each mount.
//!
//! A mount has several workers so that all CPUs can copy and check pages if the files are in the
//! page cache. They take their reads from the same queue, so the files are still read in order.
//!
//! We divide memory and file descriptors among the mounts in advance. If they were shared instead,
//! a mount that hangs could keep memory and descriptors that the other mounts need.

use std::io;

use rustix::process::{Resource, getrlimit};
use trunkline_aio::facade::{Arc, Mutex, thread};
use trunkline_aio::{OpenOptions, file_system_name};
use trunkline_format::BLOCK_SIZE;

use super::mount_worker;
use super::options::ReadOptions;
use super::read_queue::ReadQueue;
use super::visitor::{BlockVisitor, Context};
use crate::datadir::FileEntry;
use crate::job::{Job, JobError, by_mount};

/// File descriptors reserved for other uses, such as the standard streams, the rings, and files in
/// the data directory that aren't part of the scan.
const DESCRIPTORS_RESERVED: u64 = 20;

/// A mount has at most one worker for this many reads in flight. If there were more workers, each
/// of them would submit only one read at a time.
const SLOTS_PER_WORKER: usize = 4;

/// Reads all blocks of `files`, each mount with its own workers. `recheck` is called once a second,
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
    // Divide the file descriptors and the memory evenly, because any of the mounts may hang.
    let share = mounts.len().max(1);
    let frames = job.aio().region().frames() / share as u32;
    let slots = options.slots().min((frames / options.combine_blocks) as usize);
    let workers = thread::available_parallelism().min(slots / SLOTS_PER_WORKER).max(1);
    let open_files = open_files_max(share);
    let queues = mounts.into_iter().map(|files| Mutex::new(ReadQueue::new(files, open_files)));
    let queues: Arc<[_]> = queues.collect();
    let (theirs, readers) = (Arc::clone(&queues), Arc::clone(&visitor));
    job.run_workers(queues.len() * workers, recheck, move |job, number| {
        let context = Context { job, options, visitor: &*readers };
        match theirs.get(number / workers) {
            Some(queue) => mount_worker::read(context, queue, workers, slots / workers),
            None => Ok(()),
        }
    })?;
    for queue in queues.iter() {
        let shrunk = queue.lock().take_shrunk();
        for (entry, failure) in shrunk {
            visitor.failed(&entry, failure);
        }
    }
    Ok(())
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

/// The number of files that each of `mounts` mounts may keep open, derived from `RLIMIT_NOFILE`.
fn open_files_max(mounts: usize) -> usize {
    let limit = getrlimit(Resource::Nofile).current;
    let free = limit.unwrap_or(u64::MAX).saturating_sub(DESCRIPTORS_RESERVED);
    usize::try_from(free / mounts as u64).unwrap_or(usize::MAX).max(1)
}
