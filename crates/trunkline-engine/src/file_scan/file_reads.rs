//! A worker's reads: a window of leased buffers, each used by one read at a time, and the queue
//! that the reads come from, which it shares with the other workers of its mount.
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

use rustix::io::Errno;
use trunkline_aio::facade::{Arc, Mutex};
use trunkline_aio::{Cancelled, Io, Outcome, Session, Status};
use trunkline_format::BLOCK_SIZE;

use super::read_queue::{BlockRun, ReadQueue};
use super::visitor::{Context, ReadFailure, ReadPayload};
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
    /// The mount's queue. Unlike other locks, this one is also held while files are opened, advised
    /// and closed. If such a call hangs, so do all workers of the mount. That's OK, because what
    /// they wait for is on the same mount. Nothing on another mount may be accessed under this
    /// lock, and no other thread may take it. That includes the visitor: it is called under this
    /// lock to ask which blocks to skip, and to report a file that can't be opened.
    queue: &'s Mutex<ReadQueue>,
    /// Each slot keeps its leased buffer. The slot's item is the run that is being read into that
    /// buffer.
    window: SlotWindow<ReadPayload, Option<BlockRun>>,
}

impl<'s> FileReads<'s> {
    /// Leases up to `slots` buffers. We can work with fewer buffers, so it's only an error if we
    /// can't lease any at all.
    pub(super) fn new(
        context: Context<'s>,
        queue: &'s Mutex<ReadQueue>,
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
        Ok(Self { context, queue, window })
    }

    /// The reads in flight.
    pub(super) fn window(&self) -> &SlotWindow<ReadPayload, Option<BlockRun>> {
        &self.window
    }

    /// Returns the next run to read; see [`ReadQueue::next`].
    pub(super) fn next_run(&mut self) -> Option<BlockRun> {
        self.queue.lock().next(self.context)
    }

    /// Takes back a run that couldn't be issued, so that it is the next one to be read.
    pub(super) fn put_back(&mut self, run: BlockRun) {
        self.queue.lock().put_back(run);
    }

    /// Calls `advise` for up to `runs` runs before they are read; see [`ReadQueue::look_ahead`].
    pub(super) fn look_ahead(&mut self, runs: usize, advise: impl Fn(&BlockRun)) {
        self.queue.lock().look_ahead(self.context, runs, advise);
    }

    /// Issues a read into an idle slot.
    ///
    /// # Panics
    /// If there is no idle slot.
    pub(super) fn issue(&mut self, io: Io<'_>, run: BlockRun) {
        let slot = self.window.expect_idle();
        let file = Arc::clone(&run.file);
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
            self.queue.lock().retry(rest);
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
            self.queue.lock().retry(BlockRun { singly: true, ..run });
            return;
        }
        let BlockRun { file, block, .. } = run;
        job.count(1, 0);
        let number = file.block_no(block);
        visitor.failed(&file.entry, ReadFailure::Read { block: number, errno });
        if file.count_failure() && block + 1 < file.end() && file.truncate(block + 1) {
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
            self.queue.lock().retry(BlockRun { block, blocks, attempts: 0, ..run.clone() });
        }
        self.read_failed(BlockRun { blocks: 1, ..run }, Errno::IO.raw_os_error());
    }

    /// Records that a file ends before a run.
    fn file_shrank(&mut self, rest: &BlockRun) {
        self.context.job.count(rest.blocks, 0);
        self.queue.lock().file_shrank(&rest.file, rest.block);
    }
}
