//! Starting a read: finds or allocates the buffers of consecutive blocks, and issues one I/O for
//! them.
//!
//! ```text
//!   start(first, count)
//!     first block is valid ─────────▶ Hit: one block
//!     first block is being read ────▶ Joined: one block; the caller waits for that I/O
//!     otherwise, for as many following blocks as are not in the pool, within one segment:
//!       the segment's file          (being opened by a worker: NotOpen)
//!       an I/O handle               (none free: NoHandle)
//!       buffers for missing blocks  (none available: NoBuffer)
//!       claim block by block, until another session has claimed one
//!       issue ──────────────────────▶ Issued: `count` blocks
//! ```
//!
//! We acquire every resource that could be unavailable before we claim the first page
//! (`docs/postgres-lessons.md#lesson-21`). A session must never wait while it holds a claim,
//! because the session that holds the resource may itself be waiting for the claimed page. The
//! order is: pins, file, I/O handle, buffers, claims.
//!
//! None of these functions waits, except that a buffer that is used for the first time may have to
//! get its memory. If a resource is unavailable, we undo what we have done so far and report which
//! resource is missing, so that the caller can wait for it. The caller must already have reserved
//! the pins. We release the buffers of blocks that we could not claim, so that no state is carried
//! over to the next call (`docs/postgres-lessons.md#lesson-13`).
//!
//! After we've looked up a block, but before we claim it, another session may claim or even read
//! it. Because a claim is a compare-exchange, exactly one session reads each block. If another
//! session has claimed our first block, we join its read. If it has claimed a later block, our own
//! read ends just before that block.

use super::super::descriptor::{ReadClaim, flag};
use super::super::error::ReadError;
use super::super::frame::Transfer;
use super::super::manager::BufferManager;
use super::super::mapping::{Insertion, PinnedBuffer};
use super::super::replacement::ring_buffer::RingBuffer;
use super::super::statistics::Tally;
use super::completion::{ReadCallback, ReadPayload};
use super::policy::{PageCheck, PageChecks};
use super::request::{BlockResult, ReadRequest, ReadStart};
use crate::Location;
use crate::replay::Replay;
use crate::storage::SegmentOpener;
use crate::window::SlotWindow;
use trunkline_aio::facade::Arc;
use trunkline_aio::{File, MethodKind, Outcome, Session, Status, WaitRef};
use trunkline_format::{BLOCK_SIZE, BlockNo};

/// The page reads of one session or stream. The number of reads in flight and the size of each read
/// are limited.
#[derive(Debug)]
pub(crate) struct PageReads {
    manager: Arc<BufferManager>,
    window: SlotWindow<ReadPayload, PageRead>,
    /// Buffers allocated for the read that is being started.
    allocated: Vec<u32>,
    /// Opens the segments.
    opener: SegmentOpener,
    combine_max: u32,
}

/// One read in flight.
#[derive(Debug, Default)]
pub(crate) struct PageRead {
    first: BlockNo,
    buffers: Vec<u32>,
    file: Option<File>,
    /// The session executed the read itself, so it was waiting the whole time.
    by_session: bool,
}

impl PageReads {
    /// For `slots` reads in flight, of up to `combine_max` blocks each.
    pub(crate) fn new(manager: &Arc<BufferManager>, slots: usize, combine_max: u32) -> Self {
        let callback = Arc::new(ReadCallback::new(manager, combine_max));
        let mut window: SlotWindow<ReadPayload, PageRead> = SlotWindow::new(slots, vec![callback]);
        let blocks = combine_max as usize;
        for slot in 0..slots {
            window.payload(slot).reserve(blocks);
            window.item_mut(slot).buffers.reserve_exact(blocks);
        }
        let allocated = Vec::with_capacity(blocks);
        let opener = SegmentOpener::default();
        Self { manager: Arc::clone(manager), window, allocated, opener, combine_max }
    }

    /// The reads in flight.
    pub(crate) fn window(&self) -> &SlotWindow<ReadPayload, PageRead> {
        &self.window
    }

    /// The reads in flight, for a caller that waits for them.
    pub(crate) fn window_mut(&mut self) -> &mut SlotWindow<ReadPayload, PageRead> {
        &mut self.window
    }

    /// Gives up a file that was opened but not used yet.
    pub(crate) fn forget_opened(&mut self) {
        self.opener = SegmentOpener::default();
    }

    /// What a caller waits for after [`ReadStart::NotOpen`].
    pub(crate) fn opener(&self) -> &SegmentOpener {
        &self.opener
    }

    /// Starts reading the first blocks of the request, unless the first block is already in the
    /// pool. The caller must have an idle slot.
    ///
    /// # Errors
    /// The file of the block cannot be used.
    pub(crate) fn start(
        &mut self,
        session: &mut Session,
        request: &ReadRequest<'_>,
        ring: Option<&mut RingBuffer>,
        tally: &mut Tally,
    ) -> Result<ReadStart, ReadError> {
        let started = self.find_or_start(session, request, ring, tally);
        // Keep an opened file only if the caller is going to wait and then try again.
        use ReadStart::{NoBuffer, NoHandle, NotOpen};
        if !matches!(started, Ok(NotOpen | NoHandle | NoBuffer)) {
            self.opener.close();
        }
        started
    }

    /// [`PageReads::start`], with an opened file still at hand.
    fn find_or_start(
        &mut self,
        session: &mut Session,
        request: &ReadRequest<'_>,
        mut ring: Option<&mut RingBuffer>,
        tally: &mut Tally,
    ) -> Result<ReadStart, ReadError> {
        loop {
            let present = self.manager.pin(request.tag.at(request.first), request.usage_max);
            if let Some(pinned) = present {
                if pinned.state.has(flag::VALID) {
                    tally.hits += 1;
                    return Ok(ReadStart::Hit(pinned.buffer));
                }
                if pinned.state.has(flag::IO_IN_PROGRESS) {
                    match self.join(pinned, tally) {
                        Some(start) => return Ok(start),
                        None => continue,
                    }
                }
            }
            // `None` means that another session claimed the first block before us, but its read has
            // failed since. Start over.
            let started =
                self.start_missing(session, request, present, ring.as_deref_mut(), tally)?;
            if let Some(start) = started {
                return Ok(start);
            }
        }
    }

    /// Joins another session's read, or takes the page if that read has already ended. If the read
    /// has failed, this releases the pin and returns `None`.
    fn join(&self, pinned: PinnedBuffer, tally: &mut Tally) -> Option<ReadStart> {
        let descriptor = self.manager.buffers().descriptor(pinned.buffer);
        if let Some(io) = descriptor.io_in_progress() {
            return Some(ReadStart::Joined(pinned.buffer, io));
        }
        if descriptor.state().has(flag::VALID) {
            tally.hits += 1;
            return Some(ReadStart::Hit(pinned.buffer));
        }
        self.manager.unpin(pinned.buffer);
        None
    }

    /// Starts a read at a block that is neither valid nor being read. If an earlier read of the
    /// block failed, the block still has a buffer, which is passed in `present`.
    fn start_missing(
        &mut self,
        session: &mut Session,
        request: &ReadRequest<'_>,
        present: Option<PinnedBuffer>,
        ring: Option<&mut RingBuffer>,
        tally: &mut Tally,
    ) -> Result<Option<ReadStart>, ReadError> {
        let manager = Arc::clone(&self.manager);
        let unpin_present = || present.iter().for_each(|pinned| manager.unpin(pinned.buffer));
        let located = match self.opener.locate(session, request.relation, request.first) {
            Ok(Some(located)) => located,
            Ok(None) => {
                unpin_present();
                return Ok(Some(ReadStart::NotOpen));
            }
            Err(error) => {
                unpin_present();
                return Err(error.into());
            }
        };
        // Decide how many blocks to read before taking any resources. Otherwise we might evict
        // pages to get buffers that we don't need after all.
        let (count, missing) = self.extent(request, present.is_some(), located.blocks_left);
        let slot = self.window.expect_idle();
        // The handle comes before the buffers: allocating buffers evicts pages.
        let Some(mut handle) = session.try_acquire(request.class) else {
            unpin_present();
            return Ok(Some(ReadStart::NoHandle));
        };
        manager.frames().assert_same_instance(&handle);
        self.allocated.clear();
        if missing > 0 {
            manager.allocate(missing, ring, tally, &mut self.allocated);
        }
        // We can't read anything without a buffer for the first block. If we only get some of the
        // other buffers, we just read fewer blocks.
        if self.allocated.is_empty() && present.is_none() {
            return Ok(Some(ReadStart::NoBuffer));
        }
        if request.needed_now {
            handle = handle.needed_now();
        }
        // Once we have claimed a block, other sessions may wait for this handle's I/O. So from here
        // on, we must either issue the I/O or end all the claims.
        if let Some(pinned) = self.claim(request, present, count, slot, handle.wait_ref()) {
            drop(handle);
            return Ok(self.join(pinned, tally));
        }
        let checks = PageChecks {
            policy: request.policy,
            checksums: request.relation.storage().checksums(),
            newest: request.relation.storage().replay().and_then(Replay::newest),
            is_headerless: !request.tag.has_header(),
        };
        // From here on only the definition of the I/O itself can fail.
        let (read, slots) = self.window.item_and_slots(slot);
        if let Some(payload) = slots.payload(slot) {
            payload.set(checks, request.first, &read.buffers);
        }
        // If the I/O can't be defined, for example because direct I/O rejects the offset, we end
        // the claims just as if the read had failed. Sessions that have joined the read will retry
        // it themselves.
        let (frames, into) = (manager.frames(), (slots, slot));
        if let Err(source) = frames.issue(handle, Transfer::Read, &located, &read.buffers, into) {
            for &buffer in &read.buffers {
                manager.buffers().finish_read(buffer, false);
                manager.unpin(buffer);
            }
            let location = Location::new(located.file.path());
            return Err(ReadError::Define { location, source });
        }
        read.first = request.first;
        read.file = Some(located.file);
        let count = read.buffers.len() as u32;
        self.window.issued(slot);
        let done = self.window.results().is_done(slot);
        let by_session = session.method() == MethodKind::Sync || (request.needed_now && done);
        self.window.item_mut(slot).by_session = by_session;
        tally.reads += 1;
        tally.read_blocks += u64::from(count);
        Ok(Some(ReadStart::Issued { slot, count }))
    }

    /// Counts how many blocks, starting with the first, are neither valid nor being read, and how
    /// many of those have no buffer. We don't pin anything here, so the result is only an estimate.
    /// We use it to decide how many buffers to allocate, but which blocks are actually read depends
    /// on the claims.
    fn extent(&self, request: &ReadRequest<'_>, present: bool, blocks_left: u32) -> (u32, u32) {
        let most = request.count.min(blocks_left).min(self.combine_max);
        let (mut count, mut missing) = (1, u32::from(!present));
        while count < most {
            match self.manager.peek(request.tag.at(request.first + count)) {
                Some(state) if state.is_valid_or_in_progress() => break,
                Some(_) => {}
                None => missing += 1,
            }
            count += 1;
        }
        (count, missing)
    }

    /// Claims one block after another for the I/O, until we reach a block that another session has
    /// claimed or we run out of buffers. Unused buffers are released. If another session is already
    /// reading the first block, we pin and return that block's buffer instead.
    ///
    /// We claim blocks in ascending order and never wait for a claim, so two sessions that read
    /// overlapping ranges can't deadlock.
    fn claim(
        &mut self,
        request: &ReadRequest<'_>,
        present: Option<PinnedBuffer>,
        count: u32,
        slot: usize,
        io: WaitRef,
    ) -> Option<PinnedBuffer> {
        let manager = &self.manager;
        let claimed = &mut self.window.item_mut(slot).buffers;
        claimed.clear();
        let mut allocated = self.allocated.drain(..);
        let mut spare = allocated.next();
        let mut first_taken = None;
        for at in 0..count {
            let tag = request.tag.at(request.first + at);
            // Another session may have inserted the page since `extent` looked for it. If so, we
            // must use that session's buffer, because a page must never have two buffers.
            let known = match present {
                Some(pinned) if at == 0 => Some(pinned),
                _ => manager.pin(tag, request.usage_max),
            };
            let known = match (known, spare) {
                (Some(pinned), _) => pinned,
                (None, None) => break,
                (None, Some(buffer)) => {
                    match manager.insert_for_read(tag, buffer, request.usage_max, io) {
                        Insertion::Inserted => {
                            claimed.push(buffer);
                            spare = allocated.next();
                            continue;
                        }
                        Insertion::Present(pinned) => pinned,
                    }
                }
            };
            // The page has a buffer but isn't valid, so try to claim it. Claiming it adds a pin for
            // the I/O, in addition to ours.
            let descriptor = manager.buffers().descriptor(known.buffer);
            if descriptor.word().start_read() != ReadClaim::Claimed {
                if at == 0 {
                    first_taken = Some(known);
                } else {
                    manager.unpin(known.buffer);
                }
                break;
            }
            descriptor.set_io(io);
            claimed.push(known.buffer);
        }
        spare.into_iter().chain(allocated).for_each(|buffer| manager.unpin(buffer));
        first_taken
    }

    /// Reports the result for each block of a completed read, together with its buffer. The issuer
    /// still has the buffers pinned.
    pub(crate) fn finish(
        &mut self,
        slot: usize,
        outcome: Outcome,
        tally: &mut Tally,
        mut each: impl FnMut(BlockNo, u32, BlockResult),
    ) {
        let device_time = self.window.results().device_time(slot);
        tally.add_device_time(device_time);
        let (read, slots) = self.window.item_and_slots(slot);
        if std::mem::take(&mut read.by_session) {
            tally.add_wait(device_time);
        }
        read.file = None;
        let failed = if outcome.status == Status::Error { outcome.errno() } else { None };
        let alone = read.buffers.len() == 1;
        let whole = outcome.count as usize / BLOCK_SIZE;
        let Some(payload) = slots.payload(slot) else {
            unreachable!("the outcome of slot {slot} was taken");
        };
        for (at, (&buffer, block)) in read.buffers.iter().zip(payload.blocks()).enumerate() {
            let check = block.check();
            let checksum_failed =
                check.verdict().is_some_and(|verdict| verdict.is_checksum_failure());
            tally.checksum_failures += u64::from(checksum_failed);
            let result = match (check, failed) {
                (_, Some(errno)) => BlockResult::Failed { errno, alone },
                (PageCheck::Valid, _) => BlockResult::Valid,
                (PageCheck::Zeroed(verdict), _) => BlockResult::Damaged { zeroed: true, verdict },
                (PageCheck::Ignored(verdict), _) => BlockResult::Damaged { zeroed: false, verdict },
                (PageCheck::Bad(verdict), _) => BlockResult::Bad(verdict),
                (PageCheck::Newer(lsn), _) => BlockResult::Newer(lsn),
                // We couldn't read even one whole block. Trying again would give the same result,
                // so treat it as an error.
                _ if at == 0 && whole == 0 => BlockResult::Short { bytes: outcome.count },
                _ => BlockResult::Unread,
            };
            each(read.first + at as BlockNo, buffer, result);
        }
    }

    /// The buffers of a read in flight.
    pub(crate) fn buffers(&self, slot: usize) -> &[u32] {
        &self.window.item(slot).buffers
    }
}
