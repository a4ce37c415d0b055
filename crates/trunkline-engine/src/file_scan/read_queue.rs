//! The queue of reads for one mount, in the order in which they are issued.
//!
//! Retries come first: the rest of a short read, or the blocks of a failed run, one by one. After
//! the retries come the files, each read from front to back. A file is opened only when its first
//! block is due, and is closed when its last [`BlockRun`] is dropped. We therefore need just a few
//! open files at a time, no matter how large the cluster is.

use std::cell::Cell;
use std::collections::VecDeque;
use std::io;
use std::rc::Rc;

use rustix::io::Errno;
use trunkline_aio::{File, OpenOptions};
use trunkline_format::BlockNo;

use super::visitor::{Context, ReadFailure};
use crate::datadir::FileEntry;

/// How many blocks of a file may fail before we skip the rest of the file. A dying disk can take
/// seconds for each failing read, so trying all 131,072 blocks of a segment could take days.
const FAILED_BLOCKS_MAX: u32 = 1024;

/// How often we try to open a file while the process has no free descriptor and this worker doesn't
/// hold any either.
const OPEN_ATTEMPTS: u32 = 100;

/// A file that is being read. Runs share it through `Rc`; dropping the last one closes the file.
#[derive(Debug)]
pub(super) struct OpenFile {
    pub(super) entry: FileEntry,
    pub(super) file: File,
    /// The block to stop at, exclusive. We lower it if the file has shrunk, or if too many of its
    /// blocks failed.
    pub(super) end: Cell<u32>,
    /// Blocks that failed so far.
    failed: Cell<u32>,
}

impl OpenFile {
    /// Converts a block number within this file (a segment) to the block number within the
    /// relation.
    pub(super) fn block_no(&self, block: u32) -> BlockNo {
        self.entry.first_block().unwrap_or_default().saturating_add(block)
    }

    /// Lowers the end to `block`. Returns false if the end was already there or before.
    pub(super) fn truncate(&self, block: u32) -> bool {
        let shorter = block < self.end.get();
        self.end.set(self.end.get().min(block));
        shorter
    }

    /// Counts a failed block. Returns true exactly once, when the limit is reached.
    pub(super) fn count_failure(&self) -> bool {
        self.failed.set(self.failed.get() + 1);
        self.failed.get() == FAILED_BLOCKS_MAX
    }
}

/// Consecutive blocks of a file, for one read.
#[derive(Debug, Clone)]
pub(super) struct BlockRun {
    pub(super) file: Rc<OpenFile>,
    /// The first block, relative to the file.
    pub(super) block: u32,
    pub(super) blocks: u32,
    /// Consecutive reads that returned less than one block.
    pub(super) attempts: u32,
    /// Whether to read each block on its own, because a read of the whole run failed.
    pub(super) singly: bool,
}

/// One mount's unread files, and the runs to repeat.
pub(super) struct ReadQueue<'s> {
    context: Context<'s>,
    files: std::slice::Iter<'s, FileEntry>,
    retries: VecDeque<BlockRun>,
    /// Runs for which we've issued `posix_fadvise` but no read yet. Only used by the `sync` method.
    advised: VecDeque<BlockRun>,
    /// The file that is being read, and its next block.
    current: Option<(Rc<OpenFile>, u32)>,
    /// A file that could not be opened because no descriptor was free.
    deferred: Option<&'s FileEntry>,
    /// Limit on open files, so that the scan does not exhaust the process's descriptors.
    open_files_max: usize,
}

impl<'s> ReadQueue<'s> {
    pub(super) fn new(context: Context<'s>, files: &'s [FileEntry], open_files_max: usize) -> Self {
        Self {
            context,
            files: files.iter(),
            retries: VecDeque::new(),
            advised: VecDeque::new(),
            current: None,
            deferred: None,
            open_files_max,
        }
    }

    /// Queues a run to be read again.
    pub(super) fn retry(&mut self, run: BlockRun) {
        self.retries.push_back(run);
    }

    /// Takes back a run that couldn't be issued, and puts it at the front of the queue.
    pub(super) fn put_back(&mut self, run: BlockRun) {
        self.retries.push_front(run);
    }

    /// Returns the next run to read. `in_flight` is the number of runs that currently keep files
    /// open. Returns `None` if all files have been read. While reads are in flight, `None` can also
    /// mean that we've reached the limit on open files, in which case a read must complete first,
    /// so that its file is closed.
    pub(super) fn next(&mut self, in_flight: usize) -> Option<BlockRun> {
        let job = self.context.job;
        while let Some(mut run) = self.retries.pop_front() {
            // After this run was queued, the file turned out to be shorter, or we gave up on it.
            if run.block >= run.file.end.get() {
                job.count(run.blocks, 0);
                continue;
            }
            // Split off the first block and leave the rest at the front of the queue.
            if run.singly && run.blocks > 1 {
                let (block, blocks) = (run.block + 1, run.blocks - 1);
                self.retries.push_front(BlockRun { block, blocks, ..run.clone() });
                run.blocks = 1;
            }
            return Some(run);
        }
        while let Some(run) = self.advised.pop_front() {
            if run.block < run.file.end.get() {
                return Some(run);
            }
            job.count(run.blocks, 0);
        }
        self.take(in_flight)
    }

    /// Takes runs from the files until `runs` of them are ready, and passes each new run to
    /// `advise`.
    pub(super) fn look_ahead(&mut self, runs: usize, advise: impl Fn(&BlockRun)) {
        while self.advised.len() < runs {
            let Some(run) = self.take(self.advised.len()) else { return };
            advise(&run);
            self.advised.push_back(run);
        }
    }

    /// Takes the next run off the current file, or opens the next file. Files that cannot be opened
    /// are reported and skipped.
    fn take(&mut self, in_flight: usize) -> Option<BlockRun> {
        let Context { job, options, visitor } = self.context;
        loop {
            if let Some((file, block)) = self.current.take() {
                let left = file.end.get().saturating_sub(block);
                if left > 0 {
                    let blocks = left.min(options.combine_blocks);
                    if left > blocks {
                        self.current = Some((Rc::clone(&file), block + blocks));
                    }
                    let (attempts, singly) = (0, false);
                    return Some(BlockRun { file, block, blocks, attempts, singly });
                }
                // The end was lowered below the listed length, so count the missing blocks as
                // processed.
                job.count(file.entry.blocks().saturating_sub(block), 0);
            }
            let entry = self.deferred.take().or_else(|| self.files.next())?;
            // Every run in flight may hold a different file open, so the number of runs is an upper
            // bound for our open files.
            let opened = match in_flight < self.open_files_max {
                true => self.open(entry, in_flight),
                false => Ok(None),
            };
            match opened {
                Ok(Some(file)) => {
                    let (end, failed) = (Cell::new(entry.blocks()), Cell::new(0));
                    let first = visitor.skipped(entry);
                    job.count(first, 0);
                    let file = OpenFile { entry: entry.clone(), file, end, failed };
                    self.current = Some((Rc::new(file), first));
                }
                Ok(None) => {
                    self.deferred = Some(entry);
                    return None;
                }
                Err(error) => {
                    job.count(entry.blocks(), 0);
                    visitor.failed(entry, ReadFailure::Open(error));
                }
            }
        }
    }

    /// Opens a file. Returns `None` if we've run out of file descriptors and must first wait for
    /// one of our own files to be closed.
    ///
    /// Doesn't follow symbolic links: a relation file is never a symbolic link, and following one
    /// could lead us out of the data directory.
    fn open(&self, entry: &FileEntry, in_flight: usize) -> io::Result<Option<File>> {
        let Context { job, options, .. } = self.context;
        let options =
            OpenOptions { direct: options.direct, no_follow: true, ..OpenOptions::default() };
        let mut attempt = 0;
        loop {
            match job.aio().open(&entry.path, options) {
                Ok(file) => return Ok(Some(file)),
                Err(error) if !is_descriptor_shortage(&error) => return Err(error),
                Err(_) if in_flight > 0 => return Ok(None),
                Err(error) if attempt == OPEN_ATTEMPTS || job.is_stopping() => return Err(error),
                // Other threads hold all the descriptors. Wait until one of these threads exits.
                Err(_) => job.pause(),
            }
            attempt += 1;
        }
    }
}

/// Whether no descriptor is free in the process (`EMFILE`) or in the system (`ENFILE`).
fn is_descriptor_shortage(error: &io::Error) -> bool {
    let errno = error.raw_os_error().map(Errno::from_raw_os_error);
    matches!(errno, Some(Errno::MFILE | Errno::NFILE))
}
