//! A worker's reads: a window of leased buffers, each used by one read at a time, and the queue
//! that the reads come from.
//!
//! This module decides what to do with a read's outcome:
//!
//! ```text
//!   Ok, Warning            all blocks were read
//!   Partial                whole blocks were read; the rest is read again
//!   Partial, no bytes      the file ends here: it has shrunk
//!   Partial, many times    never a whole block: the file has shrunk into it, or an I/O error
//!   Error                  several blocks: each is read again alone; one block: it is reported
//! ```
//!
//! Note that a short read isn't an error. POSIX allows short reads at any position, and we do see
//! them in practice on network and FUSE file systems. We've reached the end of the file only if a
//! read returns zero bytes.

use std::collections::BTreeMap;
use std::rc::Rc;

use rustix::io::Errno;
use trunkline_aio::{Cancelled, Io, Outcome, Session, Status};
use trunkline_format::BLOCK_SIZE;

use super::read_queue::{BlockRun, ReadQueue};
use super::visitor::{Context, ReadFailure, ReadPayload};
use crate::datadir::FileEntry;
use crate::job::JobError;
use crate::window::SlotWindow;

/// How many times in a row a read may return less than one block before we give up and treat the
/// block as unreadable. Without this limit, the scan could loop forever on a file system that only
/// ever returns fragments.
const FRAGMENTS_MAX: u32 = 32;

/// All of a worker's reads: those that are in flight, and those that are still waiting to be
/// issued.
pub(super) struct FileReads<'s> {
    context: Context<'s>,
    queue: ReadQueue<'s>,
    /// Each slot keeps its leased buffer. The slot's item is the run that is being read into that
    /// buffer.
    window: SlotWindow<ReadPayload, Option<BlockRun>>,
    /// Files that turned out to be shorter than expected, by file id, each with its lowest missing
    /// block. Since reads complete in any order, a later read may find that even more blocks are
    /// missing. That's why we don't report these files until the end.
    shrunk: BTreeMap<u64, (FileEntry, ReadFailure)>,
}

impl<'s> FileReads<'s> {
    /// Leases up to `slots` buffers. We can work with fewer buffers, so it's only an error if we
    /// can't lease any at all.
    pub(super) fn new(
        context: Context<'s>,
        queue: ReadQueue<'s>,
        slots: usize,
    ) -> Result<Self, JobError> {
        let blocks = context.options.combine_blocks;
        let region = context.job.aio().region();
        // If we get less memory than we asked for, we just have fewer reads in flight.
        let leases: Vec<_> = (0..slots).map_while(|_| region.lease(blocks)).collect();
        if leases.is_empty() {
            return Err(JobError::Memory { blocks });
        }
        let mut window = SlotWindow::new(leases.len(), context.visitor.callbacks());
        for (slot, lease) in leases.into_iter().enumerate() {
            window.memory(slot).push(lease);
        }
        Ok(Self { context, queue, window, shrunk: BTreeMap::new() })
    }

    /// The reads that are still to be issued.
    pub(super) fn queue(&mut self) -> &mut ReadQueue<'s> {
        &mut self.queue
    }

    /// The reads in flight.
    pub(super) fn window(&self) -> &SlotWindow<ReadPayload, Option<BlockRun>> {
        &self.window
    }

    /// Returns the next run to read. Returns `None` if there is nothing left to read, or if we
    /// can't open the next file until one of the files that are still being read has been closed.
    pub(super) fn next_run(&mut self) -> Option<BlockRun> {
        self.queue.next(self.window.in_flight())
    }

    /// Issues a read into an idle slot.
    ///
    /// # Panics
    /// If there is no idle slot.
    pub(super) fn issue(&mut self, io: Io<'_>, run: BlockRun) {
        let slot = self.window.expect_idle();
        let file = Rc::clone(&run.file);
        let first = file.block_no(run.block);
        self.context.job.observer().reading(&file.entry.path, first, run.blocks);
        *self.window.payload(slot) = ReadPayload { fork: file.entry.fork, first, bad: 0 };
        let offset = u64::from(run.block) * BLOCK_SIZE as u64;
        let length = run.blocks * BLOCK_SIZE as u32;
        match io.read(&file.file, offset, length, self.window.slots(), slot) {
            Ok(_) => {
                *self.window.item_mut(slot) = Some(run);
                self.window.issued(slot);
            }
            // The device requires a larger alignment than our block size, so the read was refused
            // before it was even submitted.
            Err(_) => self.read_failed(run, Errno::INVAL.raw_os_error()),
        }
    }

    /// Waits for any one read and handles its outcome.
    pub(super) fn wait(&mut self, session: &mut Session) -> Result<(), Cancelled> {
        let (slot, outcome) = self.window.sleep_any(session)?;
        self.complete(slot, outcome);
        Ok(())
    }

    /// Handles all reads that have completed, without waiting.
    pub(super) fn complete_finished(&mut self) {
        while let Some((slot, outcome)) = self.window.take_any() {
            self.complete(slot, outcome);
        }
    }

    /// Handles the result of one read, as described by the table in the module header. At this
    /// point the slot is already idle, but its memory remains valid until the next read is issued
    /// into it.
    fn complete(&mut self, slot: usize, outcome: Outcome) {
        let Some(run) = self.window.item_mut(slot).take() else { return };
        // We must treat all blocks of the run as failed, because the kernel doesn't report how far
        // it got.
        if outcome.status == Status::Error {
            self.read_failed(run, outcome.detail as i32);
            return;
        }
        let whole = (outcome.count / BLOCK_SIZE as u32).min(run.blocks);
        if whole > 0 {
            self.visit(slot, &run, whole);
        }
        self.context.job.count(whole, whole);
        if whole == run.blocks {
            return;
        }
        let (block, blocks) = (run.block + whole, run.blocks - whole);
        // Any whole block is progress and resets the count.
        let attempts = if whole > 0 { 0 } else { run.attempts + 1 };
        let rest = BlockRun { block, blocks, attempts, ..run };
        // If a read returns zero bytes without an error, we've reached the end of the file.
        if whole == 0 && outcome.count == 0 {
            self.file_shrank(&rest);
        } else if attempts == FRAGMENTS_MAX {
            self.only_fragments(rest);
        } else {
            self.queue.retry(rest);
        }
    }

    /// Passes the first `whole` blocks of a run to the visitor.
    fn visit(&mut self, slot: usize, run: &BlockRun, whole: u32) {
        let bad = self.window.payload(slot).bad;
        let first = run.file.block_no(run.block);
        let bytes = whole as usize * BLOCK_SIZE;
        if let Some(pages) = self.window.memory(slot)[0].get(..bytes) {
            self.context.visitor.blocks_read(&run.file.entry, first, pages, bad);
        }
    }

    /// Handles a failed read. If the run consists of several blocks, we read them again one by one,
    /// because the kernel doesn't tell us which of them failed. If it's just a single block, we
    /// report that block as unreadable.
    fn read_failed(&mut self, run: BlockRun, errno: i32) {
        let Context { job, visitor, .. } = self.context;
        if run.blocks > 1 {
            self.queue.retry(BlockRun { singly: true, ..run });
            return;
        }
        let BlockRun { file, block, .. } = run;
        job.count(1, 0);
        let number = file.block_no(block);
        visitor.failed(&file.entry, ReadFailure::Read { block: number, errno });
        if file.count_failure() && block + 1 < file.end.get() && file.truncate(block + 1) {
            let block = number.saturating_add(1);
            visitor.failed(&file.entry, ReadFailure::GaveUp { block });
        }
    }

    /// Called if the first block of a run still comes back short after several attempts. Either the
    /// file ends mid-block, or there is an I/O error within the block and the kernel just returns
    /// the bytes that precede the error.
    fn only_fragments(&mut self, run: BlockRun) {
        let end = (u64::from(run.block) + 1) * BLOCK_SIZE as u64;
        if run.file.file.length().is_ok_and(|length| length < end) {
            self.file_shrank(&run);
            return;
        }
        if run.blocks > 1 {
            let (block, blocks) = (run.block + 1, run.blocks - 1);
            self.queue.retry(BlockRun { block, blocks, attempts: 0, ..run.clone() });
        }
        self.read_failed(BlockRun { blocks: 1, ..run }, Errno::IO.raw_os_error());
    }

    /// Lowers the end of the file to the first missing block, and saves the failure so that
    /// [`Self::finish`] can report it. If we later find that an even lower block is missing, that
    /// failure replaces this one.
    fn file_shrank(&mut self, rest: &BlockRun) {
        let BlockRun { file, block, blocks, .. } = rest;
        self.context.job.count(*blocks, 0);
        if file.truncate(*block) {
            // Some file systems still report the old length here, even though the read has shown
            // that the block isn't there. Cap the length, because otherwise the error message would
            // contradict itself.
            let end = (u64::from(*block) + 1) * BLOCK_SIZE as u64;
            let found = file.file.length().unwrap_or_default();
            let found = if found < end { found } else { end - BLOCK_SIZE as u64 };
            let (block, expected) = (file.block_no(*block), file.entry.bytes);
            let failure = ReadFailure::Shrank { block, found, expected };
            self.shrunk.insert(file.file.id(), (file.entry.clone(), failure));
        }
    }

    /// Reports the files that have shrunk. Must be called only after all reads have completed.
    pub(super) fn finish(&mut self) {
        for (entry, failure) in std::mem::take(&mut self.shrunk).into_values() {
            self.context.visitor.failed(&entry, failure);
        }
    }
}
