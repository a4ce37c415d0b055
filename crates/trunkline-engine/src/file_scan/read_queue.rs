//! The queue of reads for one mount. It determines the order in which the reads are issued. All
//! workers of the mount take their reads from it.
//!
//! Retries are issued first: the rest of a short read, or the blocks of a failed run, one by one.
//! After that come the files, and each file is read from front to back. We don't open a file until
//! we are about to read its first block, and we close it when its last [`BlockRun`] is dropped.
//! This way, we only need a few open files at a time, no matter how large the cluster is.

use std::collections::{BTreeMap, VecDeque};
use std::io;

use rustix::io::Errno;
use trunkline_aio::facade::Arc;
use trunkline_aio::facade::atomic::{AtomicU32, Ordering};
use trunkline_aio::{File, OpenOptions};
use trunkline_format::{BLOCK_SIZE, BlockNo};

use super::visitor::{Context, ReadFailure};
use crate::datadir::FileEntry;

/// How many blocks of a file may fail before we skip the rest of it. On a dying disk, every failing
/// read can take several seconds, so it could take days to try all 131,072 blocks of a segment.
const FAILED_BLOCKS_MAX: u32 = 1024;

/// How many times we try to open a file if the process has run out of file descriptors and this
/// scan has no open files on the mount that it could close.
const OPEN_ATTEMPTS: u32 = 100;

/// A file that is being read. The runs of a file share it through an `Arc`, and the file is closed
/// when the last of them is dropped.
#[derive(Debug)]
pub(super) struct OpenFile {
    pub(super) entry: FileEntry,
    pub(super) file: File,
    /// The block to stop at (exclusive). We lower this if we find that the file has shrunk, or if
    /// too many of its blocks have failed. A worker that doesn't see the new value yet just reads a
    /// few more blocks, so relaxed ordering is enough for this and for `failed`.
    end: AtomicU32,
    /// Blocks that failed so far.
    failed: AtomicU32,
    /// Counts the open files of a queue; see [`ReadQueue::open_files`]. It comes after `file`, so
    /// that a file is closed before it no longer counts.
    _counted: Arc<()>,
}

impl OpenFile {
    /// Converts a block number within this file (a segment) to the block number within the
    /// relation.
    pub(super) fn block_no(&self, block: u32) -> BlockNo {
        self.entry.first_block().unwrap_or_default().saturating_add(block)
    }

    /// The block to stop at (exclusive).
    pub(super) fn end(&self) -> u32 {
        self.end.load(Ordering::Relaxed)
    }

    /// Lowers the end to `block`. Returns false if it was already at or below that block.
    pub(super) fn truncate(&self, block: u32) -> bool {
        block < self.end.fetch_min(block, Ordering::Relaxed)
    }

    /// Counts a failed block. Returns true when the limit is reached, but not for any further
    /// failures.
    pub(super) fn count_failure(&self) -> bool {
        self.failed.fetch_add(1, Ordering::Relaxed) + 1 == FAILED_BLOCKS_MAX
    }
}

/// Consecutive blocks of a file, for one read.
#[derive(Debug, Clone)]
pub(super) struct BlockRun {
    pub(super) file: Arc<OpenFile>,
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
pub(super) struct ReadQueue {
    files: std::vec::IntoIter<FileEntry>,
    retries: VecDeque<BlockRun>,
    /// Runs for which we have called `posix_fadvise` but haven't issued a read yet. Only the `sync`
    /// method uses this.
    advised: VecDeque<BlockRun>,
    /// The file that is being read, and its next block.
    current: Option<(Arc<OpenFile>, u32)>,
    /// A file that we could not open because there were no free file descriptors.
    deferred: Option<FileEntry>,
    /// Maximum number of files to keep open, so that the scan doesn't use up all of the process's
    /// file descriptors.
    open_files_max: usize,
    /// Each open file holds a clone of this.
    open_files: Arc<()>,
    /// Files that turned out to be shorter than expected, by file id, each with its lowest missing
    /// block. Since reads complete in any order, a later read may find that even more blocks are
    /// missing. That's why we don't report these files until the mount's last worker has ended.
    shrunk: BTreeMap<u64, (FileEntry, ReadFailure)>,
    /// Workers that have not ended yet.
    workers_left: usize,
    /// Whether a worker that has ended was able to start.
    any_started: bool,
}

/// What the last worker of a mount must report.
pub(super) struct LastWorker {
    /// Files that have shrunk.
    pub(super) shrunk: Vec<(FileEntry, ReadFailure)>,
    /// Whether any worker was able to start, so that the queue was read.
    pub(super) any_started: bool,
}

impl ReadQueue {
    /// A queue of `files` for `workers` workers.
    pub(super) fn new(files: Vec<FileEntry>, open_files_max: usize, workers: usize) -> Self {
        Self {
            files: files.into_iter(),
            retries: VecDeque::new(),
            advised: VecDeque::new(),
            current: None,
            deferred: None,
            open_files_max,
            open_files: Arc::new(()),
            shrunk: BTreeMap::new(),
            workers_left: workers,
            any_started: false,
        }
    }

    /// The number of files that are open, including those that are only kept open by reads in
    /// flight.
    fn open_files(&self) -> usize {
        Arc::strong_count(&self.open_files) - 1
    }

    /// Lowers the end of the run's file to `block`, its first missing block, and saves the failure
    /// so that it can be reported. If we later find that an even lower block is missing, that
    /// failure replaces this one.
    pub(super) fn file_shrank(&mut self, file: &OpenFile, block: u32) {
        if file.truncate(block) {
            // Some file systems still report the old length here, even though the read has shown
            // that the block isn't there. Cap the length, because otherwise the error message would
            // contradict itself.
            let end = (u64::from(block) + 1) * BLOCK_SIZE as u64;
            let found = file.file.length().unwrap_or_default();
            let found = if found < end { found } else { end - BLOCK_SIZE as u64 };
            let (block, expected) = (file.block_no(block), file.entry.bytes);
            let failure = ReadFailure::Shrank { block, found, expected };
            self.shrunk.insert(file.file.id(), (file.entry.clone(), failure));
        }
    }

    /// Counts a worker that has ended, perhaps because it could not start. The last one must report
    /// the files that have shrunk, because no further read can find that even more is missing.
    pub(super) fn worker_ended(&mut self, has_started: bool) -> Option<LastWorker> {
        self.workers_left -= 1;
        self.any_started |= has_started;
        (self.workers_left == 0).then(|| LastWorker {
            shrunk: std::mem::take(&mut self.shrunk).into_values().collect(),
            any_started: self.any_started,
        })
    }

    /// Queues a run to be read again.
    pub(super) fn retry(&mut self, run: BlockRun) {
        self.retries.push_back(run);
    }

    /// Takes back a run that couldn't be issued, and puts it at the front of the queue.
    pub(super) fn put_back(&mut self, run: BlockRun) {
        self.retries.push_front(run);
    }

    /// Returns the next run to read. Returns `None` if all files have been read. It also returns
    /// `None` when we've reached the limit on open files. In that case, the caller must wait for
    /// its reads to complete, so that their files can be closed. If it has none in flight, it can
    /// leave the rest to the workers that have.
    pub(super) fn next(&mut self, context: Context<'_>) -> Option<BlockRun> {
        let job = context.job;
        while let Some(mut run) = self.retries.pop_front() {
            // Since this run was queued, we've either found that the file is shorter than expected,
            // or given up on it.
            if run.block >= run.file.end() {
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
            if run.block < run.file.end() {
                return Some(run);
            }
            job.count(run.blocks, 0);
        }
        self.take(context)
    }

    /// Takes runs from the files until `runs` of them are ready, and calls `advise` for each new
    /// run.
    pub(super) fn look_ahead(
        &mut self,
        context: Context<'_>,
        runs: usize,
        advise: impl Fn(&BlockRun),
    ) {
        while self.advised.len() < runs {
            let Some(run) = self.take(context) else { return };
            advise(&run);
            self.advised.push_back(run);
        }
    }

    /// Takes the next run from the current file, or opens the next file. If a file can't be opened,
    /// it is reported and skipped.
    fn take(&mut self, context: Context<'_>) -> Option<BlockRun> {
        let Context { job, options, visitor, .. } = context;
        loop {
            if let Some((file, block)) = self.current.take() {
                let left = file.end().saturating_sub(block);
                if left > 0 {
                    let blocks = left.min(options.combine_blocks);
                    if left > blocks {
                        self.current = Some((Arc::clone(&file), block + blocks));
                    }
                    let (attempts, singly) = (0, false);
                    return Some(BlockRun { file, block, blocks, attempts, singly });
                }
                // The end has been lowered since the file was listed, so count the missing blocks
                // as processed.
                job.count(file.entry.blocks().saturating_sub(block), 0);
            }
            let entry = self.deferred.take().or_else(|| self.files.next())?;
            let opened = match self.open_files() < self.open_files_max {
                true => self.open(context, &entry),
                false => Ok(None),
            };
            match opened {
                Ok(Some(file)) => {
                    let (end, failed) = (AtomicU32::new(entry.blocks()), AtomicU32::new(0));
                    let first = visitor.skipped(&entry);
                    job.count(first, 0);
                    let _counted = Arc::clone(&self.open_files);
                    let file = OpenFile { entry, file, end, failed, _counted };
                    self.current = Some((Arc::new(file), first));
                }
                Ok(None) => {
                    self.deferred = Some(entry);
                    return None;
                }
                Err(error) => {
                    job.count(entry.blocks(), 0);
                    visitor.failed(&entry, ReadFailure::Open(error));
                }
            }
        }
    }

    /// Opens a file. Returns `None` if we've run out of file descriptors, in which case we must
    /// wait until one of our own files is closed.
    ///
    /// This doesn't follow symbolic links. A relation file is never a symbolic link, and following
    /// one could take us outside the data directory.
    fn open(&self, context: Context<'_>, entry: &FileEntry) -> io::Result<Option<File>> {
        let Context { job, options, .. } = context;
        let options =
            OpenOptions { direct: options.direct, no_follow: true, ..OpenOptions::default() };
        let mut attempt = 0;
        loop {
            match job.aio().open(&entry.path, options) {
                Ok(file) => return Ok(Some(file)),
                Err(error) if !is_descriptor_shortage(&error) => return Err(error),
                Err(_) if self.open_files() > 0 => return Ok(None),
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
