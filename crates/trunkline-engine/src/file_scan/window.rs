//! The read window of a worker: a few leased buffers, each of which carries one read at a time.
//!
//! ```text
//!   Ok, Warning            all blocks were read
//!   Partial                whole blocks were read; the rest is read again
//!   Partial, no bytes      the file ends here: it has shrunk
//!   Partial, many times    never a whole block: an I/O error if the file goes on, else it has shrunk
//!   Error                  several blocks: each is read again alone; one block: it is reported
//! ```

use std::collections::BTreeMap;
use std::rc::Rc;

use rustix::io::Errno;
use trunkline_aio::{Cancelled, Io, Outcome, Session, Slots, Status};
use trunkline_format::BLOCK_SIZE;

use super::read_queue::{BlockRun, ReadQueue};
use super::visitor::{Context, ReadFailure, ReadPayload};
use crate::datadir::FileEntry;
use crate::job::JobError;

/// Reads in a row that may return only a part of a block before the block counts as unreadable.
const FRAGMENTS_MAX: u32 = 32;

pub(super) struct ReadWindow<'s> {
    context: Context<'s>,
    slots: Slots<ReadPayload>,
    /// The read that each slot carries.
    runs: Vec<Option<BlockRun>>,
    /// Files that have shrunk, by their ids, with the lowest missing block. Reported at the end,
    /// since reads behind the end of the file may complete before the read that reaches it.
    shrunk: BTreeMap<u64, (FileEntry, ReadFailure)>,
    /// Free slots. The slot used last is on top, since its memory is most likely in the CPU cache.
    idle: Vec<usize>,
}

impl<'s> ReadWindow<'s> {
    /// Leases up to `slots` buffers.
    pub(super) fn new(context: Context<'s>, slots: usize) -> Result<Self, JobError> {
        let blocks = context.options.combine_blocks;
        let region = context.job.aio().region();
        let leases: Vec<_> = (0..slots).map_while(|_| region.lease(blocks)).collect();
        if leases.is_empty() {
            return Err(JobError::Memory { blocks });
        }
        let mut slots = Slots::with_callbacks(leases.len(), context.visitor.callbacks());
        for (slot, lease) in leases.into_iter().enumerate() {
            if let Some(memory) = slots.memory(slot) {
                memory.push(lease);
            }
        }
        let idle = (0..slots.len()).rev().collect();
        let runs = vec![None; slots.len()];
        Ok(Self { context, slots, runs, shrunk: BTreeMap::new(), idle })
    }

    pub(super) fn capacity(&self) -> usize {
        self.runs.len()
    }

    pub(super) fn idle(&self) -> usize {
        self.idle.len()
    }

    pub(super) fn in_flight(&self) -> usize {
        self.slots.pending()
    }

    /// Issues a read into an idle slot.
    pub(super) fn issue(&mut self, io: Io<'_>, run: BlockRun, queue: &mut ReadQueue<'_>) {
        let Some(slot) = self.idle.pop() else {
            queue.put_back(run);
            return;
        };
        let file = Rc::clone(&run.file);
        let first = file.block_no(run.block);
        self.context.job.observer().reading(&file.entry.path, first, run.blocks);
        if let Some(payload) = self.slots.payload(slot) {
            *payload = ReadPayload { fork: file.entry.fork, first, bad: 0 };
        }
        let offset = u64::from(run.block) * BLOCK_SIZE as u64;
        let length = run.blocks * BLOCK_SIZE as u32;
        match io.read(&file.file, offset, length, &mut self.slots, slot) {
            Ok(_) => self.runs[slot] = Some(run),
            // The device needs a larger alignment than a block.
            Err(_) => {
                self.idle.push(slot);
                self.read_failed(run, Errno::INVAL.raw_os_error(), queue);
            }
        }
    }

    /// Waits for one read.
    pub(super) fn wait(
        &mut self,
        session: &mut Session,
        queue: &mut ReadQueue<'_>,
    ) -> Result<(), Cancelled> {
        let (slot, outcome) = session.wait_any(&mut self.slots)?;
        self.complete(slot, outcome, queue);
        Ok(())
    }

    /// Handles all reads that have completed.
    pub(super) fn complete_finished(&mut self, queue: &mut ReadQueue<'_>) {
        while let Some(slot) = self.slots.first_done()
            && let Some(outcome) = self.slots.take(slot)
        {
            self.complete(slot, outcome, queue);
        }
    }

    fn complete(&mut self, slot: usize, outcome: Outcome, queue: &mut ReadQueue<'_>) {
        self.idle.push(slot);
        let Some(run) = self.runs[slot].take() else { return };
        if outcome.status == Status::Error {
            self.read_failed(run, outcome.detail as i32, queue);
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
        let attempts = if whole > 0 { 0 } else { run.attempts + 1 };
        let rest = BlockRun { block, blocks, attempts, ..run };
        if whole == 0 && outcome.count == 0 {
            self.file_shrank(&rest);
        } else if attempts == FRAGMENTS_MAX {
            self.only_fragments(rest, queue);
        } else {
            queue.retry(rest);
        }
    }

    /// Passes the first `whole` blocks of a run to the visitor.
    fn visit(&mut self, slot: usize, run: &BlockRun, whole: u32) {
        let bad = self.slots.payload(slot).map_or(0, |payload| payload.bad);
        let first = run.file.block_no(run.block);
        let bytes = whole as usize * BLOCK_SIZE;
        let memory = self.slots.memory(slot).and_then(|memory| memory.first());
        if let Some(pages) = memory.and_then(|memory| memory.get(..bytes)) {
            self.context.visitor.blocks_read(&run.file.entry, first, pages, bad);
        }
    }

    fn read_failed(&self, run: BlockRun, errno: i32, queue: &mut ReadQueue<'_>) {
        let Context { job, visitor, .. } = self.context;
        if run.blocks > 1 {
            queue.retry(BlockRun { singly: true, ..run });
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

    /// The first block of a run can never be read whole. Either the file ends within it, or the
    /// block has an error and the kernel returns the bytes before the error.
    fn only_fragments(&mut self, run: BlockRun, queue: &mut ReadQueue<'_>) {
        let end = (u64::from(run.block) + 1) * BLOCK_SIZE as u64;
        if run.file.file.length().is_ok_and(|length| length < end) {
            self.file_shrank(&run);
            return;
        }
        if run.blocks > 1 {
            let (block, blocks) = (run.block + 1, run.blocks - 1);
            queue.retry(BlockRun { block, blocks, attempts: 0, ..run.clone() });
        }
        self.read_failed(BlockRun { blocks: 1, ..run }, Errno::IO.raw_os_error(), queue);
    }

    fn file_shrank(&mut self, rest: &BlockRun) {
        let BlockRun { file, block, blocks, .. } = rest;
        self.context.job.count(*blocks, 0);
        if file.truncate(*block) {
            // Some file systems still report the old length.
            let end = (u64::from(*block) + 1) * BLOCK_SIZE as u64;
            let found = file.file.length().unwrap_or_default();
            let found = if found < end { found } else { end - BLOCK_SIZE as u64 };
            let (block, expected) = (file.block_no(*block), file.entry.bytes);
            let failure = ReadFailure::Shrank { block, found, expected };
            self.shrunk.insert(file.file.id(), (file.entry.clone(), failure));
        }
    }

    /// Reports what is known only when all reads have completed.
    pub(super) fn finish(&mut self) {
        for (entry, failure) in std::mem::take(&mut self.shrunk).into_values() {
            self.context.visitor.failed(&entry, failure);
        }
    }
}
