//! Issuing an I/O: from an acquired handle to a submitted I/O.
//!
//! The issuing thread performs all the steps from HANDED_OUT to SUBMITTED. It defines the I/O
//! (file, range, memory), stages it, and then picks the cheapest way to execute it (see
//! `dispatcher`). If there is an error before DEFINED, we just release the handle. Once the I/O is
//! DEFINED, it will always be completed, because its slot is pending and its callbacks may have to
//! release pins and locks.

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
    /// Starts a batch. It collects up to 32 I/Os, and when it is dropped, submits them all
    /// together. Batches can be nested, in which case the inner batch becomes part of the outer
    /// one. This corresponds to PostgreSQL's `pgaio_enter_batchmode`.
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
/// An `Io` borrows its session, so the session can't acquire a second one at the same time:
/// ```compile_fail,E0499
/// # fn f(session: &mut trunkline_aio::Session) {
/// use trunkline_aio::Class;
/// let first = session.acquire(Class::Foreground);
/// let second = session.acquire(Class::Foreground);
/// drop(first);
/// # }
/// ```
///
/// Each function that issues an I/O takes the slot that will receive the result, and panics if that
/// slot isn't free.
#[derive(Debug)]
pub struct Io<'s> {
    session: &'s mut Session,
    io: WaitRef,
    /// See [`Io::needed_now`].
    needed_now: bool,
    /// See [`Io::try_cached`].
    try_cached: bool,
    /// See [`Io::durable`].
    durable: bool,
}

impl<'s> Io<'s> {
    pub(super) fn new(session: &'s mut Session, io: WaitRef) -> Self {
        Self { session, io, needed_now: false, try_cached: false, durable: false }
    }

    /// Returns the reference that other sessions can use to wait for this I/O. It must be obtained
    /// before the I/O is issued.
    pub fn wait_ref(&self) -> WaitRef {
        self.io
    }

    /// Announces that the caller will wait for this I/O immediately after issuing it. If the
    /// session has nothing else in flight, the calling thread then executes the I/O itself, so that
    /// it doesn't have to be passed to another thread. PostgreSQL has `READ_BUFFERS_SYNCHRONOUSLY`
    /// for this.
    pub fn needed_now(mut self) -> Self {
        self.needed_now = true;
        self
    }

    /// If this I/O is a buffered read, the calling thread first tries to read the data from the page
    /// cache without waiting, even if the read is large. By default, only smaller reads are tried
    /// ([`Builder::try_cached_below`](crate::Builder::try_cached_below)), because copying many pages
    /// takes a while, and other threads can do that in parallel. This is for callers that have a
    /// thread on each CPU and use the pages as soon as they have been copied. Like all other reads,
    /// they are not tried under `sync` or if that setting is 0, and less often after many misses.
    pub fn try_cached(mut self) -> Self {
        self.try_cached = true;
        self
    }

    /// If this I/O is a write, it completes only when its data is durable, along with the metadata
    /// that is needed to read the data (`RWF_DSYNC`). This takes one I/O instead of a write and an
    /// fdatasync. Earlier writes to the file don't become durable. If the write is short, the part
    /// that was written is durable.
    ///
    /// If this I/O returns an error, the data may be lost, as after a failed fdatasync. Operations
    /// other than writes ignore this.
    pub fn durable(mut self) -> Self {
        self.durable = true;
        self
    }

    /// Returns true if the lease belongs to this instance's region. The frame numbers passed to
    /// this I/O always refer to that region.
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
    /// This function is intended for a buffer pool, which leases frames and shares them among
    /// sessions. You specify the frames by number (see [`Lease::first_frame`]), in the order of the
    /// transfer. Adjacent frames form a single piece. The slot's memory isn't used, so it may be
    /// empty.
    ///
    /// # Safety
    /// The following must hold from this call until the I/O's last completion callback has run,
    /// which may happen in any thread, and even if the slots or the session have been dropped:
    /// - nothing else reads or writes the frames, and no Rust reference to their bytes exists;
    /// - the caller keeps the frames leased (the region itself lives as long as the I/O).
    ///
    /// No frame may be specified twice. If this returns an error, the frames have not been touched
    /// and will not be.
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

    /// Writes frames of the instance's region at `offset`. In all other respects, this works like
    /// [`Io::read_frames`].
    ///
    /// # Safety
    /// The following must hold from this call until the I/O's last completion callback has run,
    /// which may happen in any thread, and even if the slots or the session have been dropped:
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

    /// Asks the kernel to start writing back the dirty page-cache pages in a range of `length`
    /// bytes at `offset`, without waiting for the writes (sync_file_range(2)). If `length` is 0,
    /// the range extends to the end of the file. This has no effect on files that bypass the page
    /// cache.
    ///
    /// If the I/O's outcome is an error, some cached pages could not be written, and their contents
    /// may be lost. Callers must handle it in the same way as a failed fsync, because the next
    /// fsync of this open file may not report the error again.
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

    /// Like [`Io::begin_writeback`], but completes only after the storage has received the pages,
    /// which allows the caller to limit the amount of dirty page cache. Note that this doesn't make
    /// anything durable either, because the storage's write cache isn't flushed. Any error returned
    /// here is the one that the next fsync of this open file would have reported. The kernel
    /// reports an error only once, so the fsync will no longer return it.
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
        mut transfer: Transfer<'_>,
        slots: &mut SlotSet,
        slot: usize,
    ) -> Result<WaitRef, DefineError> {
        transfer.check()?;
        transfer.durable = self.durable && transfer.operation == Operation::Writev;
        if !transfer.by_frames {
            // SAFETY: a handle in HANDED_OUT belongs to this session's thread.
            let body = unsafe { self.session.handles().handle(self.io.index()).body() };
            let region = self.session.in_flight.region();
            point_at_slot(body.iovecs(), region, transfer.length, slots, slot)?;
        }
        Ok(self.issue(&transfer, slots, slot))
    }

    /// Defines and stages the I/O, and then either submits it or adds it to the batch. We have
    /// already checked everything, so this can't fail.
    fn issue(mut self, transfer: &Transfer<'_>, slots: &mut SlotSet, slot: usize) -> WaitRef {
        let io = self.io;
        let &Transfer { operation, file, offset, length, by_frames, awaits, durable } = transfer;
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
            durable,
        });
        if !operation.transfers() {
            body.iovecs().clear();
        }
        handles.advance(io, State::HandedOut, State::Defined);
        // From here on, it's certain that the I/O will be completed and that its completion will
        // free the handle. We must therefore not release the handle when the `Io` is dropped.
        self.session.handed_out = None;
        self.session.handles().advance(io, State::Defined, State::Staged);
        self.send(file, transfer.waits_for_storage());
        io
    }

    /// Executes the staged I/O inline if that is cheaper, or adds it to the batch.
    ///
    /// The order of these cases matters. If an I/O is needed now, we execute it right away without
    /// trying the page cache first. A blocking read finds cached data as well, and needs only one
    /// system call.
    fn send(&mut self, file: &File, waits_for_storage: bool) {
        let (io, session) = (self.io, &mut *self.session);
        let alone = session.staged.is_empty() && session.in_flight() == 1;
        if self.needed_now && alone && session.may_block {
            session.dispatcher.execute_needed(io);
            return;
        }
        if session.looks_cached(io, self.try_cached) && session.dispatcher.execute_cached(io) {
            session.cache_misses = 0;
            return;
        }
        if !waits_for_storage && session.may_block && session.dispatcher.is_inline_write(io, file) {
            // Submit our staged I/O first, because other sessions may be waiting for it and this
            // write may turn out to be slow.
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
