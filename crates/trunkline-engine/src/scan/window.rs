//! The window: a few runs of frames, each carrying one read at a time, and what becomes of a read.
//!
//! ```text
//!   Ok, Warning      all blocks arrived
//!   Partial          whole blocks arrived; the rest is read again
//!   Partial, 0       the file ends here: it shrank
//!   Partial, again   never a whole block: it is lost if the file goes on behind it, else it shrank
//!   Error            more than one block: each is read again alone; one: it is lost, the job goes on
//! ```

use std::collections::BTreeMap;
use std::rc::Rc;

use rustix::io::Errno;
use trunkline_aio::{Cancelled, Io, Outcome, Session, Slots, Status};
use trunkline_format::BLOCK_SIZE;

use super::feed::{Feed, Piece};
use super::job::Job;
use super::{JobError, Trouble, Words};
use crate::datadir::FileEntry;

/// Reads in a row that may bring a part of a block, before that counts as all there is to have.
const FRAGMENTS_MAX: u32 = 32;

pub(super) struct Window<'j> {
    job: &'j Job,
    operations: Slots<Vec<u64>>,
    /// What each slot carries.
    pieces: Vec<Option<Piece>>,
    /// Files that ended early, by their ids, with the least block that was missing: reads behind the
    /// end may come back before the one that meets it.
    shrunk: BTreeMap<u64, (FileEntry, Trouble)>,
    /// Free slots, the one used last on top: its memory is most likely in the cache.
    idle: Vec<usize>,
}

impl<'j> Window<'j> {
    /// Leases as many of `slots` runs as there are.
    pub(super) fn new(job: &'j Job, slots: usize) -> Result<Self, JobError> {
        let blocks = job.options.combine_blocks;
        let region = job.aio.region();
        let leases: Vec<_> = (0..slots).map_while(|_| region.lease(blocks)).collect();
        if leases.is_empty() {
            return Err(JobError::Memory { blocks });
        }
        let slots = leases.len();
        let mut operations = Slots::with_callbacks(slots, job.visitor.callbacks());
        for (slot, lease) in leases.into_iter().enumerate() {
            if let Some(memory) = operations.memory(slot) {
                memory.push(lease);
            }
            if let Some(data) = operations.payload(slot) {
                data.extend(Words::default());
            }
        }
        let idle = (0..slots).rev().collect();
        Ok(Self { job, operations, pieces: vec![None; slots], shrunk: BTreeMap::new(), idle })
    }

    pub(super) fn slots(&self) -> usize {
        self.pieces.len()
    }

    pub(super) fn idle(&self) -> usize {
        self.idle.len()
    }

    pub(super) fn in_flight(&self) -> usize {
        self.operations.pending()
    }

    /// Starts to read a piece into an idle slot.
    pub(super) fn issue(&mut self, io: Io<'_>, piece: Piece, feed: &mut Feed) {
        let Some(slot) = self.idle.pop() else {
            feed.put_back(piece);
            return;
        };
        let reading = Rc::clone(&piece.reading);
        let first = reading.block_no(piece.block);
        self.job.observer.reading(&reading.entry.path, first, piece.blocks);
        if let Some(data) = self.operations.payload(slot) {
            data.copy_from_slice(&self.job.visitor.words(&reading.entry, first));
        }
        let offset = u64::from(piece.block) * BLOCK_SIZE as u64;
        let length = piece.blocks * BLOCK_SIZE as u32;
        match io.read(&reading.file, offset, length, &mut self.operations, slot) {
            Ok(_) => self.pieces[slot] = Some(piece),
            // A device that needs more than a block's alignment.
            Err(_) => {
                self.idle.push(slot);
                self.failed(piece, Errno::INVAL.raw_os_error(), feed);
            }
        }
    }

    /// Waits for one read.
    pub(super) fn wait(&mut self, session: &mut Session, feed: &mut Feed) -> Result<(), Cancelled> {
        let (slot, outcome) = session.wait_any(&mut self.operations)?;
        self.settle(slot, outcome, feed);
        Ok(())
    }

    /// Settles all reads that are done.
    pub(super) fn drain(&mut self, feed: &mut Feed) {
        while let Some(slot) = self.operations.first_done()
            && let Some(outcome) = self.operations.take(slot)
        {
            self.settle(slot, outcome, feed);
        }
    }

    fn settle(&mut self, slot: usize, outcome: Outcome, feed: &mut Feed) {
        self.idle.push(slot);
        let Some(piece) = self.pieces[slot].take() else { return };
        if outcome.status == Status::Error {
            self.failed(piece, outcome.detail as i32, feed);
            return;
        }
        let whole = (outcome.count / BLOCK_SIZE as u32).min(piece.blocks);
        if whole > 0 {
            self.hand_over(slot, &piece, whole);
        }
        self.job.count(whole, whole);
        if whole == piece.blocks {
            return;
        }
        let (block, blocks) = (piece.block + whole, piece.blocks - whole);
        let attempts = if whole > 0 { 0 } else { piece.attempts + 1 };
        let rest = Piece { block, blocks, attempts, ..piece };
        if whole == 0 && outcome.count == 0 {
            self.shrank(&rest);
        } else if attempts == FRAGMENTS_MAX {
            self.fragment(rest, feed);
        } else {
            feed.again(rest);
        }
    }

    /// Shows the first `whole` blocks of a piece to the visitor.
    fn hand_over(&mut self, slot: usize, piece: &Piece, whole: u32) {
        let mut words = Words::default();
        if let Some(data) = self.operations.payload(slot) {
            words.copy_from_slice(data);
        }
        let first = piece.reading.block_no(piece.block);
        let bytes = whole as usize * BLOCK_SIZE;
        let memory = self.operations.memory(slot).and_then(|memory| memory.first());
        if let Some(pages) = memory.and_then(|memory| memory.get(..bytes)) {
            self.job.visitor.arrived(&piece.reading.entry, first, pages, words);
        }
    }

    fn failed(&self, piece: Piece, errno: i32, feed: &mut Feed) {
        if piece.blocks > 1 {
            feed.again(Piece { singly: true, ..piece });
            return;
        }
        let Piece { reading, block, .. } = piece;
        self.job.count(1, 0);
        let number = reading.block_no(block);
        let trouble = Trouble::Read { block: number, errno };
        self.job.visitor.trouble(&reading.entry, trouble);
        if reading.has_failed() && block + 1 < reading.end.get() && reading.ends_at(block + 1) {
            let trouble = Trouble::GaveUp { block: number.saturating_add(1) };
            self.job.visitor.trouble(&reading.entry, trouble);
        }
    }

    /// The first block of a piece is never had whole: the file ends in it, or an error is in it and
    /// the kernel gives what is before the error.
    fn fragment(&mut self, piece: Piece, feed: &mut Feed) {
        let end = (u64::from(piece.block) + 1) * BLOCK_SIZE as u64;
        if piece.reading.file.length().is_ok_and(|length| length < end) {
            self.shrank(&piece);
            return;
        }
        if piece.blocks > 1 {
            let (block, blocks) = (piece.block + 1, piece.blocks - 1);
            feed.again(Piece { block, blocks, attempts: 0, ..piece.clone() });
        }
        self.failed(Piece { blocks: 1, ..piece }, Errno::IO.raw_os_error(), feed);
    }

    fn shrank(&mut self, rest: &Piece) {
        let Piece { reading, block, blocks, .. } = rest;
        self.job.count(*blocks, 0);
        if reading.ends_at(*block) {
            // A file system may still claim more than there is.
            let end = (u64::from(*block) + 1) * BLOCK_SIZE as u64;
            let found = reading.file.length().unwrap_or_default();
            let found = if found < end { found } else { end - BLOCK_SIZE as u64 };
            let block = reading.block_no(*block);
            let expected = reading.entry.bytes;
            let trouble = Trouble::Shrank { block, found, expected };
            self.shrunk.insert(reading.file.id(), (reading.entry.clone(), trouble));
        }
    }

    /// Tells what is known only when no more reads come back.
    pub(super) fn finish(&mut self) {
        for (entry, trouble) in std::mem::take(&mut self.shrunk).into_values() {
            self.job.visitor.trouble(&entry, trouble);
        }
    }
}
