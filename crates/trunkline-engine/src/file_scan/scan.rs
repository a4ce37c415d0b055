//! Starts the workers of a raw file scan, several for each mount.
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

/// A mount has at most one worker for this many reads in flight, so that each of them has a few. It
/// takes eight to submit more than one read per system call. We have measured only two workers with
/// eight reads each (decision 0017).
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
    // Divide half of the sessions as well. The other half is left to other users of the instance.
    let sessions = job.aio().sessions_max() as usize / (2 * share);
    let cpus = thread::available_parallelism();
    let workers = cpus.min(slots / SLOTS_PER_WORKER).min(sessions).max(1);
    let open_files = open_files_max(share);
    let queue = |files| Mutex::new(ReadQueue::new(files, open_files, workers));
    let queues: Vec<_> = mounts.into_iter().map(queue).collect();
    job.run_workers(queues.len() * workers, recheck, move |job, number| {
        let try_cached = workers == cpus;
        let context = Context { job, options, try_cached, visitor: &*visitor };
        let remainder = usize::from(number % workers < slots % workers);
        match queues.get(number / workers) {
            Some(queue) => mount_worker::read(context, queue, slots / workers + remainder),
            None => Ok(()),
        }
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

/// The number of files that each of `mounts` mounts may keep open, derived from `RLIMIT_NOFILE`.
fn open_files_max(mounts: usize) -> usize {
    let limit = getrlimit(Resource::Nofile).current;
    let free = limit.unwrap_or(u64::MAX).saturating_sub(DESCRIPTORS_RESERVED);
    usize::try_from(free / mounts as u64).unwrap_or(usize::MAX).max(1)
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use trunkline_aio::facade::{Futex, FutexWait};
    use trunkline_aio::{Builder, MethodKind};
    use trunkline_format::{BlockNo, Fork, Oid};

    use super::super::visitor::ReadFailure;
    use super::*;
    use crate::job::{End, Unobserved};

    const HELD: u64 = 1;
    const SHRUNK: u64 = 2;

    /// Holds all workers of one mount until a failure on the other mount has been reported.
    #[derive(Default)]
    struct HeldMount {
        failures: Mutex<Vec<(u64, ReadFailure)>>,
        reported: Futex,
        waited_in_vain: Mutex<bool>,
    }

    impl BlockVisitor for HeldMount {
        fn blocks_read(&self, file: &FileEntry, _first: BlockNo, _pages: &[u8], _bad: u128) {
            while file.device == HELD && self.reported.epoch() == 0 {
                if self.reported.wait(0, Some(Duration::from_secs(60))) == FutexWait::TimedOut {
                    *self.waited_in_vain.lock() = true;
                    return;
                }
            }
        }

        fn failed(&self, file: &FileEntry, failure: ReadFailure) {
            self.failures.lock().push((file.device, failure));
            self.reported.signal();
        }
    }

    #[test]
    fn a_mount_that_hangs_takes_no_findings_and_no_session_from_another() {
        let root = tempfile::tempdir().expect("a folder");
        let path = root.path().join("16384");
        std::fs::write(&path, [0; 8 * BLOCK_SIZE]).expect("written");
        // The second file ends four blocks earlier than it did when it was listed.
        let entry = |(device, blocks)| FileEntry {
            path: path.clone(),
            tablespace: Oid(1663),
            database: Oid(5),
            relfilenode: 16_384,
            fork: Fork::Main,
            segment: 0,
            bytes: blocks * BLOCK_SIZE as u64,
            device,
        };
        let files: Vec<_> = [(HELD, 8), (SHRUNK, 12)].map(entry).to_vec();
        let options = ReadOptions { direct: false, depth: 16, combine_blocks: 1 };
        for method in [MethodKind::Sync, MethodKind::Worker] {
            for sessions in [2, 100] {
                let aio = Builder::new().method(method).sessions(sessions).start();
                let aio = aio.expect("started");
                let visitor = Arc::new(HeldMount::default());
                let (files, theirs) = (files.clone(), Arc::clone(&visitor));
                let summary = Job::new(&aio, Arc::new(Unobserved))
                    .run::<JobError>(move |job| read_files(job, files, options, theirs, || Ok(())))
                    .expect("read");
                assert_eq!((summary.end, summary.blocks), (End::Complete, 16));
                assert!(!*visitor.waited_in_vain.lock(), "{method}, {sessions} sessions");
                let failures = visitor.failures.lock();
                let expected = ReadFailure::Shrank { block: 8, found: 65_536, expected: 98_304 };
                assert_eq!(format!("{:?}", *failures), format!("{:?}", [(SHRUNK, expected)]));
            }
        }
    }
}
