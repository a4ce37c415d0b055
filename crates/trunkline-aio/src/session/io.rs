//! A handle that was handed out, and how it becomes an I/O.
//!
//! HANDED_OUT to SUBMITTED, all in the issuing thread: define (file, range, memory), run the stage
//! callbacks, then send it the cheapest way: straight to the storage if it is needed at once and
//! nothing else is in flight, out of the page cache if it lies there, into it if the file system takes
//! writes at once, else to the method.

use super::Session;
use super::define::{DefineError, Transfer, check_range};
use crate::callback::Payload;
use crate::file::File;
use crate::handle::{NO_RESULT, flag};
use crate::request::Operation;
use crate::slots::{IoFacts, SlotSet, Slots};
use crate::state::State;
use crate::sync::Arc;
use crate::sync::atomic::Ordering;
use crate::wait::WaitRef;
use std::ops::{Deref, DerefMut};

/// Collects staged I/Os; dropping it submits them.
#[derive(Debug)]
pub struct IoBatch<'s> {
    session: &'s mut Session,
    /// Whether it lies within another batch.
    outer: bool,
}

impl<'s> IoBatch<'s> {
    pub(super) fn new(session: &'s mut Session, outer: bool) -> Self {
        Self { session, outer }
    }
}

impl Deref for IoBatch<'_> {
    type Target = Session;
    fn deref(&self) -> &Session {
        self.session
    }
}

impl DerefMut for IoBatch<'_> {
    fn deref_mut(&mut self) -> &mut Session {
        self.session
    }
}

impl Drop for IoBatch<'_> {
    fn drop(&mut self) {
        self.session.end_batch(self.outer);
    }
}

/// A handle in HANDED_OUT. Dropping it gives the handle back.
///
/// It borrows the session, so a second one cannot be acquired meanwhile:
/// ```compile_fail,E0499
/// # fn f(session: &mut trunkline_aio::Session) {
/// use trunkline_aio::Class;
/// let first = session.acquire(Class::Foreground);
/// let second = session.acquire(Class::Foreground);
/// drop(first);
/// # }
/// ```
#[derive(Debug)]
pub struct Io<'s> {
    pub(super) session: &'s mut Session,
    pub(super) io: WaitRef,
    needed_now: bool,
}

impl<'s> Io<'s> {
    pub(super) fn new(session: &'s mut Session, io: WaitRef) -> Self {
        Self { session, io, needed_now: false }
    }

    /// The reference by which others can wait for this I/O. Take it before issuing.
    pub fn wait_ref(&self) -> WaitRef {
        self.io
    }

    /// Says that the caller will wait for this I/O at once. With nothing else in flight it is
    /// executed in this thread, which saves a hop to another one.
    pub fn needed_now(mut self) -> Self {
        self.needed_now = true;
        self
    }

    /// Whether the frames of a lease are of the region that this I/O's frame numbers count in.
    pub fn owns(&self, lease: &crate::region::Lease) -> bool {
        self.session.core.region.owns(lease)
    }

    /// Gives the handle back unused.
    pub fn release(self) {
        drop(self);
    }

    /// Reads `length` bytes at `offset` into the memory of `slot`.
    ///
    /// # Errors
    /// See [`DefineError`]; nothing was issued.
    /// # Panics
    /// If the slot is not free.
    pub fn read<P: Payload>(
        self,
        file: &File,
        offset: u64,
        length: u32,
        slots: &mut Slots<P>,
        slot: usize,
    ) -> Result<WaitRef, DefineError> {
        let transfer = Transfer::of_range(Operation::Readv, file, offset, length);
        self.transfer(transfer, slots.set_mut(), slot)
    }

    /// Reads at `offset` into frames of the instance's own region, given by number (as
    /// [`crate::Lease::first_frame`] counts) in the order of the transfer: as many bytes as the
    /// frames have. For memory that somebody else leases and shares out, like a buffer pool; the
    /// slot's own memory has no part in it, and may be empty. Neighbouring frames are one piece.
    ///
    /// # Safety
    /// From this call until the last completion callback of the I/O has run, whoever runs it and
    /// whatever becomes of the slot and the session:
    /// - nobody else reads or writes the frames, and no reference to their bytes exists;
    /// - the frames stay leased by the caller (the region itself lives as long as the I/O).
    ///
    /// No frame is given twice. If this returns an error, nothing was or will be touched.
    /// # Errors
    /// See [`DefineError`]; nothing was issued.
    /// # Panics
    /// If the slot is not free.
    pub unsafe fn read_frames<P: Payload>(
        self,
        file: &File,
        offset: u64,
        frames: impl IntoIterator<Item = u32>,
        slots: &mut Slots<P>,
        slot: usize,
    ) -> Result<WaitRef, DefineError> {
        let length = self.define_frames(frames.into_iter())?;
        let range = Transfer::of_range(Operation::Readv, file, offset, length);
        self.transfer(Transfer { by_frames: true, ..range }, slots.set_mut(), slot)
    }

    /// Writes frames of the instance's own region at `offset`; otherwise as [`Io::read_frames`].
    ///
    /// # Safety
    /// From this call until the last completion callback of the I/O has run, whoever runs it and
    /// whatever becomes of the slot and the session:
    /// - nobody modifies the frames, not even through atomics; reading them is free to everybody;
    /// - the frames stay leased by the caller (the region itself lives as long as the I/O).
    /// # Errors
    /// See [`DefineError`]; nothing was issued.
    /// # Panics
    /// If the slot is not free.
    pub unsafe fn write_frames<P: Payload>(
        self,
        file: &File,
        offset: u64,
        frames: impl IntoIterator<Item = u32>,
        slots: &mut Slots<P>,
        slot: usize,
    ) -> Result<WaitRef, DefineError> {
        let length = self.define_frames(frames.into_iter())?;
        let range = Transfer::of_range(Operation::Writev, file, offset, length);
        self.transfer(Transfer { by_frames: true, ..range }, slots.set_mut(), slot)
    }

    /// Writes `length` bytes of the slot's memory at `offset`.
    ///
    /// # Errors
    /// See [`DefineError`]; nothing was issued.
    /// # Panics
    /// If the slot is not free.
    pub fn write<P: Payload>(
        self,
        file: &File,
        offset: u64,
        length: u32,
        slots: &mut Slots<P>,
        slot: usize,
    ) -> Result<WaitRef, DefineError> {
        let transfer = Transfer::of_range(Operation::Writev, file, offset, length);
        self.transfer(transfer, slots.set_mut(), slot)
    }

    /// Makes the file's data and metadata durable.
    ///
    /// # Panics
    /// If the slot is not free.
    pub fn fsync<P: Payload>(self, file: &File, slots: &mut Slots<P>, slot: usize) -> WaitRef {
        self.issue(Transfer::nothing(Operation::Fsync, file), slots.set_mut(), slot)
    }

    /// Makes the file's data durable.
    ///
    /// # Panics
    /// If the slot is not free.
    pub fn fdatasync<P: Payload>(self, file: &File, slots: &mut Slots<P>, slot: usize) -> WaitRef {
        self.issue(Transfer::nothing(Operation::Fdatasync, file), slots.set_mut(), slot)
    }

    /// Has the system begin to write back what it has cached of `length` bytes at `offset`, without
    /// waiting for it (sync_file_range(2)); a length of 0 means up to the end of the file. For a file
    /// past the page cache it means nothing. An error says that cached pages could not be written and may
    /// be lost, and is to be taken as a sync that failed: this open file may not be told of it again.
    ///
    /// # Panics
    /// If the slot is not free, or the range does not fit file offsets.
    pub fn begin_writeback<P: Payload>(
        self,
        file: &File,
        offset: u64,
        length: u32,
        slots: &mut Slots<P>,
        slot: usize,
    ) -> WaitRef {
        let range = Transfer::of_range(Operation::BeginWriteback, file, offset, length);
        self.write_back(range, slots.set_mut(), slot)
    }

    /// The same, and the I/O is over when the storage has what was to be written back. For who wants
    /// to know how much is under way: nothing is durable by it either. An error is the one that the next
    /// sync by this open file would have told, and will not tell now (the kernel tells it once).
    ///
    /// # Panics
    /// If the slot is not free, or the range does not fit file offsets.
    pub fn await_writeback<P: Payload>(
        self,
        file: &File,
        offset: u64,
        length: u32,
        slots: &mut Slots<P>,
        slot: usize,
    ) -> WaitRef {
        let range = Transfer::of_range(Operation::BeginWriteback, file, offset, length);
        self.write_back(Transfer { awaits: true, ..range }, slots.set_mut(), slot)
    }

    fn write_back(self, range: Transfer<'_>, slots: &mut SlotSet, slot: usize) -> WaitRef {
        let Transfer { offset, length, .. } = range;
        let end = offset.checked_add(u64::from(length));
        assert!(end.is_some_and(|end| i64::try_from(end).is_ok()), "beyond any file: {offset}");
        self.issue(range, slots, slot)
    }

    /// Issues what has memory: that of the slot, unless frames were defined.
    fn transfer(
        self,
        transfer: Transfer<'_>,
        slots: &mut SlotSet,
        slot: usize,
    ) -> Result<WaitRef, DefineError> {
        check_range(transfer.file, transfer.offset, transfer.length)?;
        if !transfer.by_frames {
            self.define_memory(transfer.length, slots, slot)?;
        }
        Ok(self.issue(transfer, slots, slot))
    }

    fn issue(mut self, transfer: Transfer<'_>, slots: &mut SlotSet, slot: usize) -> WaitRef {
        let io = self.io;
        let Transfer { operation, file, offset, length, by_frames, awaits } = transfer;
        let core = Arc::clone(&self.session.core);
        let data_length = slots.data_len(slot);
        slots.begin(slot, io, self.session.id);
        let handle = &core.handles[io.index as usize];
        let view = &handle.view;
        view.operation.store(operation as u8, Ordering::Release);
        view.offset.store(offset, Ordering::Release);
        view.length.store(length, Ordering::Release);
        view.data_length.store(data_length as u32, Ordering::Release);
        view.file_id.store(file.id(), Ordering::Release);
        view.raw.store(NO_RESULT, Ordering::Release);
        view.outcome.store(0, Ordering::Release);
        view.flags.store(if file.is_direct() { 0 } else { flag::BUFFERED }, Ordering::Release);
        // SAFETY: a handle in HANDED_OUT belongs to this session's thread.
        let body = unsafe { handle.body() };
        body.file = Some(file.clone());
        body.table = Some(Arc::clone(slots.table()));
        body.slot = slot as u32;
        body.by_frames = by_frames;
        body.attempts = 0;
        body.awaits = awaits;
        if !operation.transfers() {
            body.iovec_count = 0;
        }
        core.advance(io, State::HandedOut, State::Defined);
        self.session.handed_out = None;

        let facts = IoFacts { wait_ref: io, operation, file, offset, length };
        // SAFETY: the slot is pending and its handle is ours until it is submitted.
        unsafe { slots.table().stage(slot as u32, facts) };
        core.advance(io, State::Defined, State::Staged);
        self.send(io, file, awaits);
        io
    }

    /// To the method, or, for a single needed I/O, straight to the storage.
    fn send(&mut self, io: WaitRef, file: &File, awaits: bool) {
        let session = &mut *self.session;
        let alone = session.staged.is_empty() && session.in_flight() == 1;
        if self.needed_now && alone && session.may_block {
            session.core.execute_now(io);
            return;
        }
        if session.looks_cached(io.index) && session.core.read_cached(io.index) {
            session.cache_misses = 0;
            return;
        }
        if !awaits && session.writes_at_once(io.index, file) {
            // It may take long all the same, and others may wait for what is staged.
            session.submit();
            session.core.inline_write(io, file);
            return;
        }
        session.stage(io.index);
        if self.needed_now {
            session.submit();
        }
    }
}

impl Drop for Io<'_> {
    fn drop(&mut self) {
        // None once the handle has been defined.
        self.session.reclaim_forgotten();
    }
}
