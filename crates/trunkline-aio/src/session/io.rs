//! Issuing an I/O: from an acquired handle to a submitted I/O.
//!
//! Every step from HANDED_OUT to SUBMITTED happens in the issuing thread: define the I/O (file,
//! range, memory), stage it, then choose the cheapest I/O path (see `dispatcher`). Before DEFINED,
//! an error just releases the handle. From DEFINED on, the I/O is always completed, because its
//! slot is pending and its callbacks may have pins and locks to release.

use super::Session;
use super::define::{DefineError, Transfer, point_at_frames, point_at_slot};
use crate::lock_free::state::State;
use crate::lock_free::wait_ref::WaitRef;
use crate::storage::file::File;
use crate::storage::operation::Operation;
use crate::storage::region::Lease;
use crate::tables::callback::Payload;
use crate::tables::handle::Definition;
use crate::tables::slots::{IoFacts, SlotSet, Slots};
use std::ops::{Deref, DerefMut};
use std::sync::Arc;

impl Session {
    /// Starts a batch: up to 32 I/Os are collected and submitted together when the batch is
    /// dropped. A nested batch becomes part of the outer one. PostgreSQL: `pgaio_enter_batchmode`.
    pub fn batch(&mut self) -> IoBatch<'_> {
        let outer = std::mem::replace(&mut self.batch, true);
        IoBatch { session: self, outer }
    }
}

/// Collects staged I/O. Dropping the batch submits it.
#[derive(Debug)]
pub struct IoBatch<'s> {
    session: &'s mut Session,
    /// Whether this is a nested batch. Only the outermost batch submits.
    outer: bool,
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
        self.session.batch = self.outer;
        if !self.outer {
            self.session.submit();
        }
    }
}

/// An acquired handle. Dropping it releases the handle.
///
/// It borrows the session, so a second one cannot be acquired at the same time:
/// ```compile_fail,E0499
/// # fn f(session: &mut trunkline_aio::Session) {
/// use trunkline_aio::Class;
/// let first = session.acquire(Class::Foreground);
/// let second = session.acquire(Class::Foreground);
/// drop(first);
/// # }
/// ```
///
/// The functions that issue an I/O take the slot for its result, and panic if the slot isn't free.
#[derive(Debug)]
pub struct Io<'s> {
    session: &'s mut Session,
    io: WaitRef,
    /// See [`Io::needed_now`].
    needed_now: bool,
}

impl<'s> Io<'s> {
    pub(super) fn new(session: &'s mut Session, io: WaitRef) -> Self {
        Self { session, io, needed_now: false }
    }

    /// The reference other sessions can use to wait for this I/O. It must be obtained before the
    /// I/O is issued.
    pub fn wait_ref(&self) -> WaitRef {
        self.io
    }

    /// Announces that the caller will wait for this I/O immediately. If the session has nothing
    /// else in flight, the calling thread executes the I/O itself, which avoids passing it to
    /// another thread. PostgreSQL: `READ_BUFFERS_SYNCHRONOUSLY`.
    pub fn needed_now(mut self) -> Self {
        self.needed_now = true;
        self
    }

    /// Whether the lease belongs to this instance's region. Frame numbers passed to this I/O refer
    /// to that region.
    pub fn owns(&self, lease: &Lease) -> bool {
        self.session.in_flight.region().owns(lease)
    }

    /// Releases the handle unused.
    pub fn release(self) {
        drop(self);
    }

    /// Reads `length` bytes at `offset` into `slot`'s memory.
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

    /// Writes `length` bytes of `slot`'s memory at `offset`.
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

    /// Reads at `offset` into frames of the instance's region. The I/O's length is the total length
    /// of the frames.
    ///
    /// Meant for a buffer pool, which leases frames and shares them among sessions. Frames are
    /// given by number (see [`Lease::first_frame`]) in transfer order, and adjacent frames form one
    /// piece. The slot's memory isn't used and may be empty.
    ///
    /// # Safety
    /// From this call until the last completion callback of the I/O has run, on any thread, and
    /// even if the slots or the session are dropped:
    /// - nothing else reads or writes the frames, and no Rust reference to their bytes exists;
    /// - the caller keeps the frames leased (the region itself lives as long as the I/O).
    ///
    /// No frame may be given twice. If this returns an error, no frame was or will be touched.
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
        self.transfer_frames(Operation::Readv, file, offset, frames, slots.set_mut(), slot)
    }

    /// Writes frames of the instance's region at `offset`. Everything else is as for
    /// [`Io::read_frames`].
    ///
    /// # Safety
    /// From this call until the last completion callback of the I/O has run, on any
    /// thread, and even if the slots or the session are dropped:
    /// - nothing modifies the frames, not even through atomics; anything may read them;
    /// - the caller keeps the frames leased (the region itself lives as long as the I/O).
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
        self.transfer_frames(Operation::Writev, file, offset, frames, slots.set_mut(), slot)
    }

    /// Makes the file's data and metadata durable (fsync(2)).
    ///
    /// # Panics
    /// If the slot is not free.
    pub fn fsync<P: Payload>(self, file: &File, slots: &mut Slots<P>, slot: usize) -> WaitRef {
        self.issue(&Transfer::of_file(Operation::Fsync, file), slots.set_mut(), slot)
    }

    /// Makes the file's data durable (fdatasync(2)).
    ///
    /// # Panics
    /// If the slot is not free.
    pub fn fdatasync<P: Payload>(self, file: &File, slots: &mut Slots<P>, slot: usize) -> WaitRef {
        self.issue(&Transfer::of_file(Operation::Fdatasync, file), slots.set_mut(), slot)
    }

    /// Asks the kernel to start writing back its dirty page-cache pages of `length` bytes at
    /// `offset`, without waiting for the writes (sync_file_range(2)). A length of 0 means up to the
    /// end of the file. This has no effect on a file that bypasses the page cache.
    ///
    /// An error means that cached pages could not be written and may be lost. Callers must treat it
    /// like a failed fsync, because the next fsync of this open file may not report it again.
    ///
    /// # Panics
    /// If the slot is not free, or the range exceeds file offsets.
    pub fn begin_writeback<P: Payload>(
        self,
        file: &File,
        offset: u64,
        length: u32,
        slots: &mut Slots<P>,
        slot: usize,
    ) -> WaitRef {
        let range = Transfer::of_range(Operation::BeginWriteback, file, offset, length);
        self.writeback(&range, slots.set_mut(), slot)
    }

    /// Like [`Io::begin_writeback`], but completes only when the pages have reached the storage.
    /// This lets the caller bound the amount of dirty page cache. It doesn't make anything durable
    /// either, because it doesn't flush the storage's write cache. Any error returned here is the
    /// one the next fsync of this open file would have reported. The kernel reports an error only
    /// once, so that fsync won't see it.
    ///
    /// # Panics
    /// If the slot is not free, or the range exceeds file offsets.
    pub fn await_writeback<P: Payload>(
        self,
        file: &File,
        offset: u64,
        length: u32,
        slots: &mut Slots<P>,
        slot: usize,
    ) -> WaitRef {
        let range = Transfer::of_range(Operation::BeginWriteback, file, offset, length);
        self.writeback(&Transfer { awaits: true, ..range }, slots.set_mut(), slot)
    }

    fn writeback(self, range: &Transfer<'_>, slots: &mut SlotSet, slot: usize) -> WaitRef {
        assert!(range.ends_within_offsets(), "offset {} is beyond any file", range.offset);
        self.issue(range, slots, slot)
    }

    /// Fills the iovecs with frames and issues the transfer. The safety requirements are those of
    /// [`Io::read_frames`] and [`Io::write_frames`].
    fn transfer_frames(
        self,
        operation: Operation,
        file: &File,
        offset: u64,
        frames: impl IntoIterator<Item = u32>,
        slots: &mut SlotSet,
        slot: usize,
    ) -> Result<WaitRef, DefineError> {
        let in_flight = &self.session.in_flight;
        // SAFETY: a handle in HANDED_OUT belongs to this session's thread.
        let body = unsafe { self.session.handles().handle(self.io.index()).body() };
        let length = point_at_frames(body.iovecs(), in_flight.region(), frames.into_iter())?;
        let range = Transfer::of_range(operation, file, offset, length);
        self.transfer(Transfer { by_frames: true, ..range }, slots, slot)
    }

    /// Issues a read or a write, with the slot's memory unless frames were given.
    fn transfer(
        self,
        transfer: Transfer<'_>,
        slots: &mut SlotSet,
        slot: usize,
    ) -> Result<WaitRef, DefineError> {
        transfer.check()?;
        if !transfer.by_frames {
            // SAFETY: a handle in HANDED_OUT belongs to this session's thread.
            let body = unsafe { self.session.handles().handle(self.io.index()).body() };
            let region = self.session.in_flight.region();
            point_at_slot(body.iovecs(), region, transfer.length, slots, slot)?;
        }
        Ok(self.issue(&transfer, slots, slot))
    }

    /// Defines and stages the I/O, then submits it or adds it to the batch. This can't fail,
    /// because everything has been checked already.
    fn issue(mut self, transfer: &Transfer<'_>, slots: &mut SlotSet, slot: usize) -> WaitRef {
        let io = self.io;
        let &Transfer { operation, file, offset, length, by_frames, awaits } = transfer;
        let data_length = slots.data_len(slot);
        slots.begin(slot, io, self.session.id);
        let handles = self.session.handles();
        let handle = handles.handle(io.index());
        handle.describe(&IoFacts { wait_ref: io, operation, file, offset, length }, data_length);
        // SAFETY: a handle in HANDED_OUT belongs to this session's thread.
        let body = unsafe { handle.body() };
        body.define(Definition {
            file: file.clone(),
            table: Arc::clone(slots.table()),
            slot: slot as u32,
            by_frames,
            awaits,
        });
        if !operation.transfers() {
            body.iovecs().clear();
        }
        handles.advance(io, State::HandedOut, State::Defined);
        // From here on the I/O will be completed, and its completion frees the handle. So dropping
        // the `Io` must not release the handle.
        self.session.handed_out = None;
        self.session.handles().advance(io, State::Defined, State::Staged);
        self.send(file, awaits);
        io
    }

    /// Executes the staged I/O inline if that is cheaper, or adds it to the batch.
    ///
    /// The order of the cases matters: an I/O that is needed now is executed without trying the
    /// page cache first, because a blocking read also finds cached data and takes just one system
    /// call.
    fn send(&mut self, file: &File, awaits: bool) {
        let (io, session) = (self.io, &mut *self.session);
        let alone = session.staged.is_empty() && session.in_flight() == 1;
        if self.needed_now && alone && session.may_block {
            session.dispatcher.execute_needed(io);
            return;
        }
        if session.looks_cached(io) && session.dispatcher.execute_cached(io) {
            session.cache_misses = 0;
            return;
        }
        if !awaits && session.may_block && session.dispatcher.is_inline_write(io, file) {
            // The write may turn out to be slow, and other sessions may be waiting for the I/O we
            // have staged.
            session.submit();
            session.dispatcher.execute_write(io, file);
            return;
        }
        session.stage(io.index());
        if self.needed_now {
            session.submit();
        }
    }
}

impl Drop for Io<'_> {
    fn drop(&mut self) {
        // Does nothing once the handle has been defined, because `issue` has cleared `handed_out`.
        self.session.reclaim();
    }
}
