//! The queue of reads for one mount. It determines the order in which the reads are issued.
//!
//! Retries are issued first: the rest of a short read, or the blocks of a failed run, one by one.
//! After that come the files, and each file is read from front to back. We don't open a file until
//! we are about to read its first block, and we close it when its last [`BlockRun`] is dropped.
//! This way, we only need a few open files at a time, no matter how large the cluster is.

use std::cell::Cell;
use std::collections::VecDeque;
use std::io;
use std::rc::Rc;

use rustix::io::Errno;
use trunkline_aio::{File, OpenOptions};
use trunkline_format::BlockNo;

use super::visitor::{Context, ReadFailure};
use crate::datadir::FileEntry;

/// How many blocks of a file may fail before we skip the rest of it. On a dying disk, every failing
/// read can take several seconds, so it could take days to try all 131,072 blocks of a segment.
const FAILED_BLOCKS_MAX: u32 = 1024;

/// How many times we try to open a file if the process has run out of file descriptors and this
/// worker has no open files that it could close.
const OPEN_ATTEMPTS: u32 = 100;

/// A file that is being read. The runs of a file share it through an `Rc`, and the file is closed
/// when the last of them is dropped.
#[derive(Debug)]
pub(super) struct OpenFile {
    pub(super) entry: FileEntry,
    pub(super) file: File,
    /// The block to stop at (exclusive). We lower this if we find that the file has shrunk, or if
    /// too many of its blocks have failed.
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

    /// Lowers the end to `block`. Returns false if it was already at or below that block.
    pub(super) fn truncate(&self, block: u32) -> bool {
        let shorter = block < self.end.get();
        self.end.set(self.end.get().min(block));
        shorter
    }

    /// Counts a failed block. Returns true when the limit is reached, but not for any further
    /// failures.
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
    /// Whether each block must be read separately, because an attempt to read the whole run has
    /// failed.
    pub(super) singly: bool,
}

/// One mount's unread files, and the runs to repeat.
pub(super) struct ReadQueue<'s> {
    context: Context<'s>,
    files: std::slice::Iter<'s, FileEntry>,
    retries: VecDeque<BlockRun>,
    /// Runs for which we have called `posix_fadvise` but haven't issued a read yet. Only the `sync`
    /// method uses this.
    advised: VecDeque<BlockRun>,
    /// The file that is being read, and its next block.
    current: Option<(Rc<OpenFile>, u32)>,
    /// A file that we could not open because there were no free file descriptors.
    deferred: Option<&'s FileEntry>,
    /// Maximum number of files to keep open, so that the scan doesn't use up all of the process's
    /// file descriptors.
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

    /// Returns the next run to read. `in_flight` is the number of runs in flight, each of which may
    /// be keeping a file open. Returns `None` if all files have been read. If there are runs in
    /// flight, it also returns `None` when we've reached the limit on open files. In that case, the
    /// caller must wait for a read to complete, so that its file can be closed.
    pub(super) fn next(&mut self, in_flight: usize) -> Option<BlockRun> {
        let job = self.context.job;
        while let Some(mut run) = self.retries.pop_front() {
            // Since this run was queued, we've either found that the file is shorter than expected,
            // or given up on it.
            if run.block >= run.file.end.get() {
                job.count(run.blocks, 0);
                continue;
            }
            // Split off the first block, and put the rest back at the front of the queue.
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

    /// Takes runs from the files until `runs` of them are ready, and calls `advise` for each new
    /// run.
    pub(super) fn look_ahead(&mut self, runs: usize, advise: impl Fn(&BlockRun)) {
        while self.advised.len() < runs {
            let Some(run) = self.take(self.advised.len()) else { return };
            advise(&run);
            self.advised.push_back(run);
        }
    }

    /// Takes the next run from the current file, or opens the next file. If a file can't be opened,
    /// it is reported and skipped.
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
                // The end has been lowered since the file was listed, so count the missing blocks
                // as processed.
                job.count(file.entry.blocks().saturating_sub(block), 0);
            }
            let entry = self.deferred.take().or_else(|| self.files.next())?;
            // Each run in flight may be keeping a different file open, so the number of runs is an
            // upper bound on the number of our open files.
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

    /// Opens a file. Returns `None` if we've run out of file descriptors, in which case we must
    /// wait until one of our own files is closed.
    ///
    /// This doesn't follow symbolic links. A relation file is never a symbolic link, and following
    /// one could take us outside the data directory.
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
                // All file descriptors are in use by other threads, so wait until one of these
                // threads exits.
                Err(_) => job.pause(),
            }
            attempt += 1;
        }
    }
}

/// Whether the process (`EMFILE`) or the whole system (`ENFILE`) has run out of file descriptors.
fn is_descriptor_shortage(error: &io::Error) -> bool {
    let errno = error.raw_os_error().map(Errno::from_raw_os_error);
    matches!(errno, Some(Errno::MFILE | Errno::NFILE))
}
