//! Starting a write and learning its end: where changed pages become I/O.
//!
//! ```text
//!   start(first, count)
//!     a handle                                  (may not be had: NoHandle)
//!     claim page by page, each under the exclusive lock, for the moment that its checksum takes
//!       clean, or gone ─────────────▶ the first: Clean       later: the write ends before it
//!       in use, or being written ───▶ the first: Busy        later: the write ends before it
//!       log not durable that far ───▶ the first: LogFirst    later: the write ends before it
//!     pass each lock, now share-exclusive, to the I/O, and issue ──▶ Issued: so many blocks
//! ```
//! Nothing here waits, and no lock is waited for while another one is held: the caller submits what it
//! has, and then waits for the one page that it needs. The completion gives the locks back.

use super::complete::HEADER;
use super::io_claim::{StartWrite as Claim, WriteEnd};
use super::shared::Shared;
use super::state::{BufferWord, flag};
use super::tag::Tag;
use super::written::{WriteCallback, is_written, page_word};
use crate::storage::{Located, Relation, SegmentName, StorageError};
use std::fmt;
use std::io;
use std::path::PathBuf;
use trunkline_aio::sync::Arc;
use trunkline_aio::{Cancelled, Class, DefineError, Outcome, Session, Slots, Status};
use trunkline_format::segment::segment_of;
use trunkline_format::{BLOCK_SIZE, BlockNo, Lsn, PageBytes, page, page_checksum};

/// Why pages could not be written. They are as dirty as before.
#[derive(Debug)]
pub enum WriteError {
    /// The file cannot be used.
    Storage(StorageError),
    /// The system could not write the block.
    Io {
        /// The file.
        path: PathBuf,
        /// The first block that was not written, counted over all segments.
        block: BlockNo,
        /// Blocks of the write from there on.
        blocks: u32,
        /// The system's answer.
        source: io::Error,
    },
    /// The file cannot be written in this way.
    Define {
        /// The file.
        path: PathBuf,
        /// Why not.
        source: DefineError,
    },
    /// The log could not be made durable, so the page must not be written.
    Log(crate::log::LogError),
    /// A segment could not be made durable: nothing may count on what was written to it.
    Sync {
        /// The file.
        path: PathBuf,
        /// The system's answer.
        source: io::Error,
    },
    /// There is a page with content where the relation was to be made longer.
    UnexpectedData {
        /// The file.
        path: PathBuf,
        /// The block, counted over all segments.
        block: BlockNo,
    },
    /// The session holds as many pages as it is guaranteed, and there are no more to be had now.
    TooManyPins {
        /// Pages that it holds.
        held: u32,
    },
    /// The session was cancelled.
    Cancelled,
}

impl fmt::Display for WriteError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Storage(error) => error.fmt(f),
            Self::Io { path, block, blocks: 1, source } => {
                write!(f, "could not write block {block} in file \"{}\": {source}", path.display())
            }
            Self::Io { path, block, blocks, source } => write!(
                f,
                "could not write blocks {block}..{} in file \"{}\": {source}",
                block + blocks - 1,
                path.display()
            ),
            Self::Define { path, source } => {
                write!(f, "could not write file \"{}\": {source}", path.display())
            }
            Self::Log(error) => error.fmt(f),
            Self::Sync { path, source } => {
                write!(f, "could not fsync file \"{}\": {source}", path.display())
            }
            Self::UnexpectedData { path, block } => write!(
                f,
                "unexpected data beyond the end, in block {block} of file \"{}\"",
                path.display()
            ),
            Self::TooManyPins { held } => write!(
                f,
                "the session holds {held} pages and every other buffer is promised to somebody else"
            ),
            Self::Cancelled => Cancelled.fmt(f),
        }
    }
}

impl std::error::Error for WriteError {
    fn source(&self) -> Option<&(dyn std::error::Error + 'static)> {
        match self {
            Self::Storage(error) => Some(error),
            Self::Io { source, .. } | Self::Sync { source, .. } => Some(source),
            Self::Define { source, .. } => Some(source),
            Self::Log(error) => Some(error),
            Self::UnexpectedData { .. } | Self::TooManyPins { .. } | Self::Cancelled => None,
        }
    }
}

impl From<StorageError> for WriteError {
    fn from(error: StorageError) -> Self {
        Self::Storage(error)
    }
}

impl From<Cancelled> for WriteError {
    fn from(_: Cancelled) -> Self {
        Self::Cancelled
    }
}

/// The writes of one issuer: so many at the same time, each of up to so many blocks.
#[derive(Debug)]
pub(crate) struct Writes {
    shared: Arc<Shared>,
    pub(crate) operations: Slots<Vec<u64>>,
    callback: Arc<WriteCallback>,
    runs: Vec<Run>,
    idle: Vec<usize>,
    combine_max: u32,
}

/// One write under way.
#[derive(Debug, Default)]
struct Run {
    /// The first block: names only, since an issuer may sit idle for long before it learns of the end, and
    /// must not keep a file that was removed, or a cluster that was closed.
    tag: Option<Tag>,
    buffers: Vec<u32>,
}

/// What a write that has ended has come to.
#[derive(Debug)]
pub(crate) struct Written {
    /// The first block.
    pub(crate) tag: Tag,
    /// Blocks that are with the system.
    pub(crate) blocks: u32,
    /// The buffers of those after them, which a short write has left, as dirty as before. Written
    /// again they meet what kept them.
    pub(crate) rest: Vec<u32>,
}

/// What is to be written.
#[derive(Debug)]
pub(crate) struct Dirty<'a> {
    pub(crate) relation: &'a Relation,
    /// The name of any block of it.
    pub(crate) tag: Tag,
    pub(crate) first: BlockNo,
    /// The buffers that are thought to hold `first` and those that follow.
    pub(crate) buffers: &'a [u32],
    pub(crate) class: Class,
    /// Flags that a page must have beside being dirty.
    pub(crate) needed: u64,
    /// The caller has nothing to do but wait for it: it is not handed over if it is alone.
    pub(crate) now: bool,
    /// Up to where the log is durable.
    pub(crate) durable: Lsn,
}

/// What was started.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum StartWrite {
    /// A write of so many blocks.
    Issued { count: u32 },
    /// There is nothing to write in the first.
    Clean,
    /// The first is in use.
    Busy,
    /// The log must be durable up to there first.
    LogFirst(Lsn),
    /// Every handle is in use.
    NoHandle,
}

impl Writes {
    /// For `slots` writes of up to `combine_max` blocks at the same time.
    pub(crate) fn new(shared: &Arc<Shared>, slots: usize, combine_max: u32) -> Self {
        let callback = Arc::new(WriteCallback::new(shared, slots));
        let blocks = combine_max as usize;
        let mut operations: Slots<Vec<u64>> =
            Slots::with_callbacks(slots, vec![Arc::clone(&callback) as _]);
        for slot in 0..slots {
            if let Some(words) = operations.payload(slot) {
                words.reserve_exact(HEADER + blocks);
            }
        }
        let run = |_| Run { buffers: Vec::with_capacity(blocks), ..Run::default() };
        Self {
            shared: Arc::clone(shared),
            operations,
            callback,
            runs: (0..slots).map(run).collect(),
            idle: (0..slots).rev().collect(),
            combine_max,
        }
    }

    /// Whether another write can be started.
    pub(crate) fn has_idle(&self) -> bool {
        !self.idle.is_empty()
    }

    /// Writes under way.
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
        dirty: &Dirty<'_>,
    ) -> Result<StartWrite, WriteError> {
        let shared = &*self.shared;
        submit_before_open(session, dirty);
        let located = match dirty.relation.locate(dirty.first) {
            Ok(located) => located,
            // Gone since, with its file, or never there: a name that was read while it changed.
            Err(_) if !is_still_dirty(shared, dirty) => return Ok(StartWrite::Clean),
            Err(error) => return Err(error.into()),
        };
        let Located { file, offset, blocks_left } = located;
        let Some(&slot) = self.idle.last() else {
            unreachable!("a write started without an idle slot");
        };
        let Some(handle) = session.try_acquire(dirty.class) else {
            return Ok(StartWrite::NoHandle);
        };
        let handle = if dirty.now { handle.needed_now() } else { handle };
        assert!(shared.frames.are_for(&handle), "a session of another instance than the pool's");
        let io = handle.wait_ref();
        let most = self.combine_max.min(blocks_left) as usize;
        let checksums = dirty.relation.storage().checksums();
        let claimed = &mut self.runs[slot].buffers;
        claimed.clear();
        let place = (&file, dirty.first);
        for (&buffer, block) in dirty.buffers.iter().take(most).zip(dirty.first..) {
            match claim(shared, dirty, buffer, block, io, checksums) {
                // The page cannot go any more, nor its file: it must be the file that was found before.
                StartWrite::Issued { .. }
                    if claimed.is_empty() && !dirty.relation.is_current(place) =>
                {
                    shared.finish_write(buffer, WriteEnd::NotIssued);
                    return Ok(StartWrite::Busy);
                }
                StartWrite::Issued { .. } => claimed.push(buffer),
                refused if claimed.is_empty() => return Ok(refused),
                _ => break,
            }
        }
        if let Some(words) = self.operations.payload(slot) {
            words.clear();
            words.extend([slot as u64, u64::from(dirty.first)]);
            let pages = claimed.iter().zip(dirty.first..);
            words.extend(pages.map(|(&buffer, block)| page_word(shared, buffer, block, io)));
        }
        let segment = segment_of(dirty.first).0;
        let name: SegmentName = (dirty.relation.locator(), dirty.relation.fork(), segment);
        let sync = dirty.relation.storage().pending_fsyncs().write_begins(name);
        self.callback.note(slot, Arc::clone(&sync));
        let run = &mut self.runs[slot];
        let issued =
            shared.write_from(handle, &file, offset, &run.buffers, &mut self.operations, slot);
        if let Err(source) = issued {
            sync.write_ended();
            let end = WriteEnd::NotIssued;
            run.buffers.iter().for_each(|&buffer| shared.finish_write(buffer, end));
            return Err(WriteError::Define { path: file.path().to_owned(), source });
        }
        run.tag = Some(dirty.tag.at(dirty.first));
        self.idle.pop();
        Ok(StartWrite::Issued { count: run.buffers.len() as u32 })
    }

    /// Takes note of the end of a write, whose outcome has been taken. The slot is idle again.
    ///
    /// # Errors
    /// The write failed, or wrote nothing at all; its pages are as dirty as before.
    pub(crate) fn finish(&mut self, slot: usize, outcome: Outcome) -> Result<Written, WriteError> {
        self.idle.push(slot);
        let run = &mut self.runs[slot];
        let Some(tag) = run.tag.take() else {
            unreachable!("a write ended that was not issued");
        };
        let Some(words) = self.operations.payload(slot) else {
            unreachable!("the outcome of slot {slot} was taken");
        };
        let written = words[HEADER..].iter().take_while(|word| is_written(**word)).count();
        let blocks = written as u32;
        let whole = written == run.buffers.len();
        if whole || (outcome.status != Status::Error && written > 0) {
            let rest = run.buffers[written..].to_vec();
            return Ok(Written { tag, blocks, rest });
        }
        let relation = self.shared.relation(tag);
        let block = tag.block() + blocks;
        let errno = outcome.errno().filter(|_| outcome.status == Status::Error);
        Err(WriteError::Io {
            // Without a name only if nobody has the cluster any more.
            path: relation.map(|of| of.path(segment_of(block).0)).unwrap_or_default(),
            block,
            blocks: run.buffers.len() as u32 - blocks,
            // A write of nothing says that there is no room without saying so; PostgreSQL takes it so too. So
            // does, here, one that ends within its first page: a page is written from its start each time, so
            // to try again could go on for ever.
            source: io::Error::from_raw_os_error(
                errno.unwrap_or(rustix::io::Errno::NOSPC.raw_os_error()),
            ),
        })
    }

    /// Starts the write of one page that others read all the while, from a copy of it in the first
    /// slot's own memory of one frame, which the caller has put there.
    ///
    /// # Errors
    /// As [`Writes::start`].
    pub(crate) fn start_copy(
        &mut self,
        session: &mut Session,
        dirty: &Dirty<'_>,
    ) -> Result<StartWrite, WriteError> {
        let shared = Arc::clone(&self.shared);
        let (slot, buffer) = (0, dirty.buffers[0]);
        submit_before_open(session, dirty);
        let located = match dirty.relation.locate(dirty.first) {
            Ok(located) => located,
            Err(_) if !is_still_dirty(&shared, dirty) => return Ok(StartWrite::Clean),
            Err(error) => return Err(error.into()),
        };
        let Some(handle) = session.try_acquire(dirty.class) else {
            return Ok(StartWrite::NoHandle);
        };
        assert!(shared.frames.are_for(&handle), "a session of another instance than the pool's");
        let io = handle.wait_ref();
        let how = BufferWord::start_write_of_copy;
        let claimed = claim_with(&shared, dirty, buffer, dirty.first, io, how);
        if claimed != Claim::Claimed {
            return Ok(StartWrite::from_claim(claimed));
        }
        if !dirty.relation.is_current((&located.file, dirty.first)) {
            shared.finish_write(buffer, WriteEnd::NotIssued);
            return Ok(StartWrite::Busy);
        }
        let checksums = dirty.relation.storage().checksums();
        let memory = self.operations.memory(slot).and_then(|memory| memory.first_mut());
        let Some(copy) = memory.and_then(|lease| lease.first_chunk_mut::<BLOCK_SIZE>()) else {
            unreachable!("a copy written without memory for it");
        };
        shared.with_stable(buffer, io, |bytes| copy.copy_from_slice(bytes));
        let lsn = finish_page(copy, dirty.first, checksums);
        if lsn > dirty.durable {
            shared.finish_write(buffer, WriteEnd::NotIssued);
            return Ok(StartWrite::LogFirst(lsn));
        }
        if let Some(words) = self.operations.payload(slot) {
            words.clear();
            let first = dirty.first;
            words.extend([slot as u64, u64::from(first), page_word(&shared, buffer, first, io)]);
        }
        let segment = segment_of(dirty.first).0;
        let name: SegmentName = (dirty.relation.locator(), dirty.relation.fork(), segment);
        let sync = dirty.relation.storage().pending_fsyncs().write_begins(name);
        self.callback.note(slot, Arc::clone(&sync));
        let bytes = BLOCK_SIZE as u32;
        let issued = handle.write(&located.file, located.offset, bytes, &mut self.operations, slot);
        if let Err(source) = issued {
            sync.write_ended();
            shared.finish_write(buffer, WriteEnd::NotIssued);
            let path = located.file.path().to_owned();
            return Err(WriteError::Define { path, source });
        }
        let run = &mut self.runs[slot];
        run.buffers.clear();
        run.buffers.push(buffer);
        run.tag = Some(dirty.tag.at(dirty.first));
        self.idle.retain(|&idle| idle != slot);
        Ok(StartWrite::Issued { count: 1 })
    }
}

impl StartWrite {
    fn from_claim(claim: Claim) -> Self {
        match claim {
            Claim::Claimed => Self::Issued { count: 1 },
            Claim::Clean => Self::Clean,
            Claim::Busy => Self::Busy,
        }
    }
}

/// Opening a file may block, for ever on a mount that hangs: nobody does so while writes of other
/// pages are staged, which hold the locks of those pages.
fn submit_before_open(session: &mut Session, dirty: &Dirty<'_>) {
    if !dirty.relation.is_open(dirty.first) {
        session.submit();
    }
}

/// Whether the first page is where it is thought to be, with something to write.
fn is_still_dirty(shared: &Shared, dirty: &Dirty<'_>) -> bool {
    let Some(&buffer) = dirty.buffers.first() else { return false };
    let descriptor = &shared.buffers[buffer as usize];
    let Some(seen) = descriptor.word.pin(0) else { return false };
    let same = descriptor.tag() == dirty.tag.at(dirty.first) && seen.has(flag::DIRTY);
    shared.unpin(buffer);
    same
}

/// Claims a page if it is the one that is thought to be there.
fn claim_with(
    shared: &Shared,
    dirty: &Dirty<'_>,
    buffer: u32,
    block: BlockNo,
    io: trunkline_aio::WaitRef,
    how: impl FnOnce(&BufferWord, u64) -> Claim,
) -> Claim {
    let descriptor = &shared.buffers[buffer as usize];
    // A pin for the moment, so that the tag can be trusted.
    if descriptor.word.pin(0).is_none() {
        return Claim::Clean;
    }
    let claimed = match descriptor.tag() == dirty.tag.at(block) {
        true => how(&descriptor.word, dirty.needed),
        false => Claim::Clean,
    };
    if claimed == Claim::Claimed {
        descriptor.set_io(io);
    }
    shared.unpin(buffer);
    claimed
}

/// Claims one page for the write; `Issued` if that went well.
fn claim(
    shared: &Shared,
    dirty: &Dirty<'_>,
    buffer: u32,
    block: BlockNo,
    io: trunkline_aio::WaitRef,
    checksums: bool,
) -> StartWrite {
    let claimed = claim_with(shared, dirty, buffer, block, io, BufferWord::start_write);
    if claimed != Claim::Claimed {
        return StartWrite::from_claim(claimed);
    }
    let lsn = shared.with_claimed(buffer, io, |bytes| finish_page(bytes, block, checksums));
    if lsn > dirty.durable {
        shared.finish_write(buffer, WriteEnd::NotIssued);
        return StartWrite::LogFirst(lsn);
    }
    shared.begin_write(buffer);
    StartWrite::Issued { count: 1 }
}

/// Gives a page its checksum; its position in the log.
fn finish_page(bytes: &mut PageBytes, block: BlockNo, checksums: bool) -> Lsn {
    if page::is_new(bytes) {
        return Lsn(0);
    }
    let sum = if checksums { page_checksum(bytes, block) } else { 0 };
    bytes[8..10].copy_from_slice(&sum.to_le_bytes());
    page::PageHeader::parse(bytes).lsn
}
