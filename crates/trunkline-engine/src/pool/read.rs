//! Starting a read and learning its end: where names of blocks become buffers and I/O.
//!
//! ```text
//!   start(first, count)
//!     first is valid ────────────────────────▶ Hit: one block
//!     somebody reads it ─────────────────────▶ Joined: one block, wait by reference
//!     else, as many as follow it that nobody has or reads, within one segment
//!       a handle                        (may not be had: NoHandle)
//!       buffers for the missing ones    (may not be had: NoBuffer)
//!       claim block by block, until one is somebody else's
//!       issue ───────────────────────────────▶ Issued: so many blocks
//! ```
//! Everything that can block or fail is had before the first page is claimed (facts: hard lesson
//! 21). Nothing here waits: the caller does, with its session. Pins are booked by the caller; those
//! of blocks that did not make it are given back here, so nothing is carried over to the next call
//! (hard lesson 13).

use super::complete::{HEADER, Policy, ReadCallback, code};
use super::error::ReadError;
use super::io_claim::StartRead;
use super::ring::Ring;
use super::shared::Shared;
use super::state::flag;
use super::stats::Tally;
use super::table::{Found, Insert};
use super::tag::Tag;
use crate::storage::{Located, Relation};
use std::io;
use trunkline_aio::sync::Arc;
use trunkline_aio::{Class, File, Outcome, Session, Slots, Status, WaitRef};
use trunkline_format::{BLOCK_SIZE, BlockNo, PageVerdict};

/// The reads of one issuer: so many at the same time, each of up to so many blocks.
#[derive(Debug)]
pub(crate) struct Reads {
    shared: Arc<Shared>,
    pub(crate) operations: Slots<Vec<u64>>,
    callback: Arc<ReadCallback>,
    runs: Vec<Run>,
    idle: Vec<usize>,
    empties: Vec<u32>,
    combine_max: u32,
}

/// One read under way.
#[derive(Debug)]
struct Run {
    first: BlockNo,
    buffers: Vec<u32>,
    file: Option<File>,
}

/// What is wanted.
#[derive(Debug)]
pub(crate) struct Want<'a> {
    pub(crate) relation: &'a Relation,
    /// The name of any block of it.
    pub(crate) tag: Tag,
    pub(crate) first: BlockNo,
    /// As many at most, from `first` on; so many pins are booked.
    pub(crate) count: u32,
    pub(crate) class: Class,
    /// The caller will wait for it at once.
    pub(crate) needed_now: bool,
    pub(crate) policy: Policy,
    pub(crate) usage_max: u32,
}

/// What was started. Buffers are pinned.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Start {
    /// The first block is in this buffer, valid.
    Hit(u32),
    /// Somebody, perhaps the same issuer, reads the first block into this buffer.
    Joined(u32, WaitRef),
    /// A read of so many blocks.
    Issued { slot: usize, count: u32 },
    /// Every buffer is pinned.
    NoBuffer,
    /// Every handle is in use.
    NoHandle,
}

/// What became of one block of a read.
#[derive(Debug)]
pub(crate) enum BlockEnd {
    /// It is there.
    Valid,
    /// It is there, though it was not sound.
    Warning { zeroed: bool, verdict: Option<PageVerdict> },
    /// It is not sound.
    Bad(Option<PageVerdict>),
    /// It was not read although nothing failed: read it again.
    Unread,
    /// The read failed; of the only block, or of several, of which some may be readable.
    Failed { errno: i32, alone: bool },
    /// The file ends within the block or before it.
    Short { bytes: u32 },
}

impl Reads {
    /// For `slots` reads of up to `combine_max` blocks at the same time.
    pub(crate) fn new(shared: &Arc<Shared>, slots: usize, combine_max: u32) -> Self {
        let callback = Arc::new(ReadCallback::new(shared, combine_max));
        let blocks = combine_max as usize;
        let mut operations: Slots<Vec<u64>> =
            Slots::with_callbacks(slots, vec![Arc::clone(&callback) as _]);
        for slot in 0..slots {
            if let Some(words) = operations.payload(slot) {
                words.reserve_exact(HEADER + blocks);
            }
        }
        let run = |_| Run { first: 0, buffers: Vec::with_capacity(blocks), file: None };
        Self {
            shared: Arc::clone(shared),
            operations,
            callback,
            runs: (0..slots).map(run).collect(),
            idle: (0..slots).rev().collect(),
            empties: Vec::with_capacity(blocks),
            combine_max,
        }
    }

    /// Whether another read can be started.
    pub(crate) fn has_idle(&self) -> bool {
        !self.idle.is_empty()
    }

    /// Reads under way.
    pub(crate) fn in_flight(&self) -> usize {
        self.runs.len() - self.idle.len()
    }

    /// See the module.
    ///
    /// # Errors
    /// The file of the block cannot be used.
    pub(crate) fn start(
        &mut self,
        session: &mut Session,
        want: &Want<'_>,
        mut ring: Option<&mut Ring>,
        tally: &mut Tally,
    ) -> Result<Start, ReadError> {
        loop {
            let head = self.shared.pin(want.tag.at(want.first), want.usage_max);
            if let Some(found) = head {
                if found.seen.has(flag::VALID) {
                    tally.hits += 1;
                    return Ok(Start::Hit(found.buffer));
                }
                if found.seen.has(flag::IO_IN_PROGRESS) {
                    match self.somebody_elses(found, tally) {
                        Some(start) => return Ok(start),
                        None => continue,
                    }
                }
            }
            // None: somebody else was faster with the first block, and has failed since.
            if let Some(start) =
                self.start_missing(session, want, head, ring.as_deref_mut(), tally)?
            {
                return Ok(start);
            }
        }
    }

    /// What to do with a page that somebody else has or reads, and that is pinned; `None` if he has
    /// failed with it, and the pin is given back.
    fn somebody_elses(&self, found: Found, tally: &mut Tally) -> Option<Start> {
        let descriptor = &self.shared.buffers[found.buffer as usize];
        if let Some(io) = descriptor.io_in_progress() {
            return Some(Start::Joined(found.buffer, io));
        }
        if descriptor.word.load().has(flag::VALID) {
            tally.hits += 1;
            return Some(Start::Hit(found.buffer));
        }
        self.shared.unpin(found.buffer);
        None
    }

    /// Starts a read from a first block that is nobody's; `head` is its buffer if it has one.
    fn start_missing(
        &mut self,
        session: &mut Session,
        want: &Want<'_>,
        head: Option<Found>,
        ring: Option<&mut Ring>,
        tally: &mut Tally,
    ) -> Result<Option<Start>, ReadError> {
        let shared = Arc::clone(&self.shared);
        let give_back_head = || head.iter().for_each(|found| shared.unpin(found.buffer));
        if !want.relation.is_open(want.first) {
            // Opening a file may take long: what is staged must not wait for it.
            session.submit();
        }
        let located = match want.relation.locate(want.first) {
            Ok(located) => located,
            Err(error) => {
                give_back_head();
                return Err(error.into());
            }
        };
        let (count, missing) = self.extent(want, head.is_some(), located.blocks_left);
        let Some(&slot) = self.idle.last() else {
            unreachable!("a read started without an idle slot");
        };
        // First the handle: buffers that are taken lose their pages.
        let Some(mut handle) = session.try_acquire(want.class) else {
            give_back_head();
            return Ok(Some(Start::NoHandle));
        };
        assert!(shared.frames.are_for(&handle), "a session of another instance than the pool's");
        self.empties.clear();
        if missing > 0 {
            shared.take_empty(missing, ring, tally, &mut self.empties);
        }
        if self.empties.is_empty() && head.is_none() {
            return Ok(Some(Start::NoBuffer));
        }
        if want.needed_now {
            handle = handle.needed_now();
        }
        if let Some(found) = self.claim(want, head, count, slot, handle.wait_ref()) {
            drop(handle);
            return Ok(self.somebody_elses(found, tally));
        }
        let words = want.policy.word(want.relation.storage().checksums());
        self.describe(slot, want.first, words);
        let Located { file, offset, .. } = located;
        let run = &mut self.runs[slot];
        let issued =
            shared.read_into(handle, &file, offset, &run.buffers, &mut self.operations, slot);
        if let Err(source) = issued {
            for &buffer in &run.buffers {
                shared.finish_read(buffer, false);
                shared.unpin(buffer);
            }
            return Err(ReadError::Define { path: file.path().to_owned(), source });
        }
        run.first = want.first;
        run.file = Some(file);
        self.idle.pop();
        let count = run.buffers.len() as u32;
        tally.reads += 1;
        tally.read_blocks += u64::from(count);
        Ok(Some(Start::Issued { slot, count }))
    }

    /// How many blocks from the first on nobody has or reads, and how many of them need a buffer.
    fn extent(&self, want: &Want<'_>, has_head: bool, blocks_left: u32) -> (u32, u32) {
        let most = want.count.min(blocks_left).min(self.combine_max);
        let (mut count, mut missing) = (1, u32::from(!has_head));
        while count < most {
            match self.shared.table.peek(&self.shared.buffers, want.tag.at(want.first + count)) {
                Some(seen) if seen.any(flag::VALID | flag::IO_IN_PROGRESS) => break,
                Some(_) => {}
                None => missing += 1,
            }
            count += 1;
        }
        (count, missing)
    }

    /// Claims block after block for the I/O until one is somebody else's or buffers run out. What
    /// was not needed is given back. If it is the first that is somebody else's: that, pinned.
    fn claim(
        &mut self,
        want: &Want<'_>,
        head: Option<Found>,
        count: u32,
        slot: usize,
        io: WaitRef,
    ) -> Option<Found> {
        let shared = &self.shared;
        let claimed = &mut self.runs[slot].buffers;
        claimed.clear();
        let mut empties = self.empties.drain(..);
        let mut spare = empties.next();
        let mut first_is_taken = None;
        for at in 0..count {
            let tag = want.tag.at(want.first + at);
            let known = match head {
                Some(found) if at == 0 => Some(found),
                _ => shared.pin(tag, want.usage_max),
            };
            let known = match (known, spare) {
                (Some(found), _) => found,
                (None, None) => break,
                (None, Some(buffer)) => {
                    let note = |descriptor: &super::descriptor::Descriptor| descriptor.set_io(io);
                    let table = &shared.table;
                    match table.insert(&shared.buffers, tag, buffer, want.usage_max, note) {
                        Insert::Inserted => {
                            claimed.push(buffer);
                            spare = empties.next();
                            continue;
                        }
                        Insert::Present(found) => found,
                    }
                }
            };
            let descriptor = &shared.buffers[known.buffer as usize];
            if descriptor.word.start_read() != StartRead::Claimed {
                if at == 0 {
                    first_is_taken = Some(known);
                } else {
                    shared.unpin(known.buffer);
                }
                break;
            }
            descriptor.set_io(io);
            claimed.push(known.buffer);
        }
        spare.into_iter().chain(empties).for_each(|buffer| shared.unpin(buffer));
        first_is_taken
    }

    /// Writes the data words for the callback.
    fn describe(&mut self, slot: usize, first: BlockNo, policy: u64) {
        let buffers = &self.runs[slot].buffers;
        if let Some(words) = self.operations.payload(slot) {
            words.clear();
            words.extend([policy, u64::from(first)]);
            words.extend(buffers.iter().map(|&buffer| u64::from(buffer)));
        }
    }

    /// Takes note of the end of a read, whose outcome has been taken: tells what became of each
    /// block, with its buffer, which still has the issuer's pin. The slot is idle again.
    pub(crate) fn finish(
        &mut self,
        slot: usize,
        outcome: Outcome,
        tally: &mut Tally,
        mut each: impl FnMut(BlockNo, u32, BlockEnd),
    ) {
        let nanos = u64::try_from(self.operations.device_time(slot).as_nanos());
        tally.device_nanos += nanos.unwrap_or(u64::MAX);
        self.idle.push(slot);
        let run = &mut self.runs[slot];
        run.file = None;
        let failed = if outcome.status == Status::Error { outcome.errno() } else { None };
        let alone = run.buffers.len() == 1;
        let whole = outcome.count as usize / BLOCK_SIZE;
        let Some(words) = self.operations.payload(slot) else {
            unreachable!("the outcome of slot {slot} was taken");
        };
        for (at, &buffer) in run.buffers.iter().enumerate() {
            let word = (words[HEADER + at] >> 32) as u32;
            let code = word & !code::CHECKSUM_FAILED;
            let verdict = match code {
                code::UNREAD | code::VALID => None,
                _ => self.callback.take_verdict(buffer),
            };
            tally.checksum_failures += u64::from(word & code::CHECKSUM_FAILED != 0);
            let end = match (code, failed) {
                (_, Some(errno)) => BlockEnd::Failed { errno, alone },
                (code::VALID, _) => BlockEnd::Valid,
                (code::ZEROED, _) => BlockEnd::Warning { zeroed: true, verdict },
                (code::IGNORED, _) => BlockEnd::Warning { zeroed: false, verdict },
                (code::BAD, _) => BlockEnd::Bad(verdict),
                // Nothing at all would be the same the next time.
                _ if at == 0 && whole == 0 => BlockEnd::Short { bytes: outcome.count },
                _ => BlockEnd::Unread,
            };
            each(run.first + at as BlockNo, buffer, end);
        }
    }

    /// The buffers of a read under way.
    pub(crate) fn buffers(&self, slot: usize) -> &[u32] {
        &self.runs[slot].buffers
    }
}

/// The error for a block that could not be had; `None` for one that was or will be.
pub(crate) fn error_of(relation: &Relation, block: BlockNo, end: &BlockEnd) -> Option<ReadError> {
    let path = || relation.path(trunkline_format::segment::segment_of(block).0);
    match *end {
        BlockEnd::Valid | BlockEnd::Warning { .. } | BlockEnd::Unread => None,
        BlockEnd::Bad(verdict) => Some(ReadError::Corrupt { path: path(), block, verdict }),
        BlockEnd::Failed { errno, .. } => {
            let source = io::Error::from_raw_os_error(errno);
            Some(ReadError::Io { path: path(), block, source })
        }
        BlockEnd::Short { bytes } => Some(ReadError::Short { path: path(), block, bytes }),
    }
}
