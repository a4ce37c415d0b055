//! **Raw file scan.** Reads relation files whole, around the buffer pool and in any order.
//!
//! ```text
//!   files, by mount ──▶ one worker per mount: a session and a window of buffers
//!                        ReadQueue: next run of blocks (≤ io_combine_limit) ──▶ read ──▶ visitor
//!                              ▲ rest of a short read, blocks of a failed read ◀──┘
//! ```
//!
//! Verification and prewarming of the page cache use this scan. They look at each page once, so
//! passing the pages through the pool would only evict what others need. A worker owns a small
//! window of leased buffers instead. It reuses the buffer that was used last, whose memory is most
//! likely still in the CPU cache.
//!
//! Each mount has its own worker, so a file system that hangs does not stop the others.

mod mount_worker;
mod read_queue;
mod window;

use std::io;

use rustix::process::{Resource, getrlimit};
use trunkline_aio::sync::Arc;
use trunkline_aio::{Callback, OpenOptions, Payload, file_system_name};
use trunkline_format::{BLOCK_SIZE, BlockNo, Fork};

use crate::datadir::FileEntry;
use crate::job::{Job, JobError, by_mount};
use crate::settings::Settings;

/// File descriptors reserved for other uses: standard streams, rings, the data directory's own
/// files.
const DESCRIPTORS_RESERVED: u64 = 20;

/// How to read files.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct ReadOptions {
    /// Whether to bypass the operating system's page cache (`O_DIRECT`).
    pub direct: bool,
    /// Reads kept in flight on each mount. With 0, the worker executes one read after the other
    /// itself.
    pub depth: u32,
    /// Blocks combined into one read, 1 to 128.
    pub combine_blocks: u32,
}

impl ReadOptions {
    /// The options that the settings ask for.
    pub fn of(settings: &Settings) -> Self {
        Self {
            direct: settings.io_direct_data(),
            depth: settings.effective_io_concurrency(),
            combine_blocks: settings.io_combine_limit(),
        }
    }

    /// Buffers in one mount's window: one for each read in flight.
    fn slots(self) -> usize {
        self.depth.max(1) as usize
    }

    /// Memory that a scan of `mounts` mounts wants for its windows, in bytes. With less, fewer
    /// reads are in flight.
    pub fn region_bytes(self, mounts: usize) -> usize {
        self.slots() * self.combine_blocks as usize * BLOCK_SIZE * mounts.max(1)
    }
}

/// Receives the blocks of a scan. The workers of all mounts call it.
pub(crate) trait BlockVisitor: Send + Sync {
    /// The number of blocks to skip at the beginning of a file.
    fn skipped(&self, _file: &FileEntry) -> u32 {
        0
    }

    /// Completion callbacks to run for every read.
    fn callbacks(&self) -> Vec<Arc<dyn Callback<ReadPayload>>> {
        Vec::new()
    }

    /// Whole blocks were read, and the callbacks have run. `bad` has a bit for each block that a
    /// callback marked.
    fn blocks_read(&self, _file: &FileEntry, _first: BlockNo, _pages: &[u8], _bad: u128) {}

    /// Something could not be read. The scan goes on.
    fn failed(&self, _file: &FileEntry, _failure: ReadFailure) {}
}

/// The payload of one read, for its callbacks. A callback can run in any thread, so it has no other
/// access to the job.
#[derive(Debug, Default)]
pub(crate) struct ReadPayload {
    pub(crate) fork: Fork,
    /// The number of the first block.
    pub(crate) first: BlockNo,
    /// Callbacks set a bit for each bad block. A read has at most 128 blocks.
    pub(crate) bad: u128,
}

impl Payload for ReadPayload {}

/// Why blocks of a file were not read.
#[derive(Debug)]
pub(crate) enum ReadFailure {
    /// The file could not be opened.
    Open(io::Error),
    /// One block could not be read.
    Read { block: BlockNo, errno: i32 },
    /// Too many blocks of the file failed. This block and those after it were skipped.
    GaveUp { block: BlockNo },
    /// The file is shorter than it was when it was listed.
    Shrank { block: BlockNo, found: u64, expected: u64 },
}

/// What the parts of a worker share.
#[derive(Clone, Copy)]
struct Context<'s> {
    job: &'s Job,
    options: ReadOptions,
    visitor: &'s dyn BlockVisitor,
}

/// Reads all blocks of `files`, with a worker for each mount. Calls `recheck` now and then, and at
/// the end.
pub(crate) fn read_files(
    job: &Arc<Job>,
    files: Vec<FileEntry>,
    options: ReadOptions,
    visitor: Arc<dyn BlockVisitor>,
    recheck: impl Fn() -> Result<(), JobError>,
) -> Result<(), JobError> {
    let bytes = files.iter().map(|file| u64::from(file.blocks()) * BLOCK_SIZE as u64).sum();
    job.observer().begins(files.len(), bytes);
    let files = files.into_iter().filter(|file| file.blocks() > 0);
    let mounts = by_mount(files, |file| file.device);
    if options.direct {
        mounts.iter().try_for_each(|files| probe_direct(job, files))?;
    }
    // Descriptors and memory are divided evenly, since any of the workers may hang.
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

/// Opens one file for direct I/O, so that a file system without it is reported before anything is
/// read. Other errors concern single files and are reported when the file is read.
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

/// The number of files that one of `workers` workers may have open.
fn open_files_max(workers: usize) -> usize {
    let limit = getrlimit(Resource::Nofile).current;
    let free = limit.unwrap_or(u64::MAX).saturating_sub(DESCRIPTORS_RESERVED);
    usize::try_from(free / workers as u64).unwrap_or(usize::MAX).max(1)
}
