//! A handle: the reusable description of one I/O in flight.
//!
//! A handle consists of three parts.
//! - The *state word* contains the state and generation, and determines which thread owns the
//!   handle.
//! - The *description* is a set of atomic fields that any thread may read at any time, for views.
//!   It is consistent only while the state and generation don't change.
//! - The *body* belongs to exactly one thread at a time: first to the session, from SUBMITTED on to
//!   the thread that executes or reaps the I/O, and from COMPLETED_IO until IDLE to the thread with
//!   the claim.
//!
//! PostgreSQL's counterpart is `PgAioHandle`. It doesn't have a separate body; instead, all of its
//! fields are in shared memory and are protected by the state.
//!
//! **Memory ordering.** Before we move a handle to a new state, we write the fields that become
//! valid with that state, using release stores. The transition itself is sequentially consistent,
//! so a thread that has read the new state also sees those fields. The only exception is the
//! SYNCHRONOUS flag, which a view may see late.

use crate::clock::Time;
use crate::facade::atomic::{AtomicBool, AtomicI64, AtomicU8, AtomicU32, AtomicU64, Ordering};
use crate::lock_free::bitmap::Bitmap;
use crate::lock_free::outcome::Outcome;
use crate::lock_free::state::StateWord;
use crate::lock_free::wait_ref::WaitRef;
use crate::storage::file::File;
use crate::storage::operation::Operation;
use crate::storage::request::{IoVecs, Request};
use crate::tables::class::Class;
use crate::tables::method_kind::MethodKind;
use crate::tables::probe::Observed;
use crate::tables::slots::{IoFacts, SlotTable};
use std::cell::UnsafeCell;
use std::sync::Arc;
use std::time::Duration;

/// The value of `raw` before there is a raw result. It can't be an errno or a length.
const NO_RESULT: i64 = i64::MIN;

/// Bits of [`Description::flags`].
mod flag {
    /// Executed by the issuing thread (`f_sync`).
    pub(super) const SYNCHRONOUS: u8 = 1;
    /// Goes through the page cache (`f_buffered`).
    pub(super) const BUFFERED: u8 = 2;
}

/// One handle of the table.
#[derive(Debug)]
pub(crate) struct Handle {
    /// Determines which thread owns the handle.
    word: StateWord,
    description: Description,
    /// Sessions other than the issuer that are waiting for this I/O, with one bit per session. They
    /// are woken when the I/O completes.
    joiners: Bitmap,
    /// The bitmap may contain a session. Most I/Os have no joiners, and the bitmap can be long.
    is_joined: AtomicBool,
    body: UnsafeCell<Body>,
}

/// The description of the I/O, stored in separate atomics. A reader that needs a consistent copy
/// must check that the state word is the same before and after copying the fields (see `snapshot`).
#[derive(Debug)]
struct Description {
    /// The session that acquired the handle, and the class it was acquired for.
    session: AtomicU32,
    class: AtomicU8,
    /// Valid from DEFINED on, like the following fields up to `file_id`.
    operation: AtomicU8,
    /// The method the I/O was submitted through. Valid from SUBMITTED on.
    method: AtomicU8,
    flags: AtomicU8,
    offset: AtomicU64,
    length: AtomicU32,
    /// Length of the issuer's payload, for `pg_aios.handle_data_len`.
    data_length: AtomicU32,
    /// An id rather than a path, because a path doesn't fit into an atomic. Views look up the path.
    file_id: AtomicU64,
    /// Bytes or minus errno, or [`NO_RESULT`]. Valid from COMPLETED_IO on.
    raw: AtomicI64,
    /// A packed [`Outcome`]. Valid from COMPLETED_SHARED on.
    outcome: AtomicU64,
    /// The time at which the storage received the I/O and the time at which the raw result arrived,
    /// in nanoseconds. The difference is the device time.
    started: AtomicU64,
    ended: AtomicU64,
}

/// The part of a handle that only its current owner may touch.
#[derive(Debug)]
pub(crate) struct Body {
    /// The I/O, from DEFINED until its completion takes it.
    definition: Option<Definition>,
    /// Allocated when the instance starts, and reused for every I/O of this handle.
    iovecs: IoVecs,
    /// How often a driver has resubmitted the I/O after EINTR or EAGAIN.
    attempts: u32,
}

/// What an I/O owns, apart from its memory, and how it uses that memory. We move this into the body
/// when the I/O is defined, and take it out again when the I/O completes.
#[derive(Debug)]
pub(crate) struct Definition {
    /// Keeps the descriptor open while the kernel may use it.
    pub(crate) file: File,
    /// The issuer's slot table. This reference keeps the slot's memory and callbacks alive even if
    /// the issuer drops its slots.
    pub(crate) table: Arc<SlotTable>,
    /// The slot within the table that receives the outcome.
    pub(crate) slot: u32,
    /// The memory is frames given by number, so the slot's memory isn't used.
    pub(crate) by_frames: bool,
    /// For a writeback: also wait for it to finish.
    pub(crate) awaits: bool,
    /// For a write: make the data durable.
    pub(crate) durable: bool,
}

// SAFETY: the body is accessed only through the functions `body` and `request`, whose contracts
// ensure that it has one owner at a time. A new owner sees the previous owner's changes, because
// transitions of the state word are sequentially consistent. Everything else is atomic.
unsafe impl Sync for Handle {}
// SAFETY: the raw pointers in the body point into frames of the region. The region lives as long as
// the handle table, and can be used on any thread.
unsafe impl Send for Handle {}

impl Handle {
    pub(crate) fn new(iovecs: usize, sessions: usize) -> Self {
        Self {
            word: StateWord::new(),
            description: Description::new(),
            joiners: Bitmap::new(sessions),
            is_joined: AtomicBool::new(false),
            body: UnsafeCell::new(Body {
                definition: None,
                iovecs: IoVecs::new(iovecs),
                attempts: 0,
            }),
        }
    }

    pub(crate) fn word(&self) -> &StateWord {
        &self.word
    }

    /// Adds a session to the joiners. Afterwards, it must check once more whether the I/O is
    /// complete, because the thread that completes the I/O may have looked for joiners already.
    pub(crate) fn join(&self, session: u32) {
        self.joiners.insert(session);
        self.is_joined.store(true, Ordering::SeqCst);
    }

    /// Removes a session from the joiners. Returns whether it was one.
    pub(crate) fn leave(&self, session: u32) -> bool {
        self.joiners.contains(session) && self.joiners.remove(session)
    }

    /// Calls `f` for every joiner.
    pub(crate) fn for_each_joiner(&self, f: impl FnMut(u32)) {
        if self.is_joined.load(Ordering::SeqCst) {
            self.joiners.iter().for_each(f);
        }
    }

    /// Removes all joiners and calls `f` for each. A session that joins at the same time may be
    /// missed, and in this case it finds the I/O complete.
    pub(crate) fn take_joiners(&self, f: impl FnMut(u32)) {
        if self.is_joined.load(Ordering::SeqCst) {
            // Clear this first. If a session joins in between, it stays set.
            self.is_joined.store(false, Ordering::SeqCst);
            self.joiners.drain(f);
        }
    }

    /// The body.
    ///
    /// # Safety
    /// The caller must own the handle in its current state (see the module documentation), and must
    /// not hold any other reference to the handle's body.
    #[expect(clippy::mut_from_ref, reason = "exclusive by the handle's state, not by a borrow")]
    pub(crate) unsafe fn body(&self) -> &mut Body {
        // SAFETY: the caller's promise.
        unsafe { &mut *self.body.get() }
    }

    /// The I/O's description for an executor.
    ///
    /// # Safety
    /// As for [`Handle::body`], for as long as the request exists.
    pub(crate) unsafe fn request(&self) -> Request<'_> {
        // SAFETY: the caller's promise.
        let body = unsafe { self.body() };
        let definition = body.definition.as_ref();
        let file = definition.map(|definition| &definition.file);
        Request {
            operation: self.operation(),
            offset: self.offset(),
            length: self.length(),
            file_id: self.file_id(),
            direct: !self.is_buffered(),
            local: file.is_some_and(File::is_local),
            awaits: definition.is_some_and(|definition| definition.awaits),
            durable: definition.is_some_and(|definition| definition.durable),
            fd: file.map_or(-1, File::raw_fd),
            iovecs: body.iovecs.used(),
        }
    }

    /// Records the session that acquired the handle.
    pub(crate) fn hand_out(&self, session: u32, class: Class) {
        self.description.session.store(session, Ordering::Release);
        self.description.class.store(class as u8, Ordering::Release);
    }

    /// Describes the I/O defined on the handle.
    pub(crate) fn describe(&self, io: &IoFacts<'_>, data_length: usize) {
        let fields = &self.description;
        fields.operation.store(io.operation as u8, Ordering::Release);
        fields.offset.store(io.offset, Ordering::Release);
        fields.length.store(io.length, Ordering::Release);
        fields.data_length.store(data_length as u32, Ordering::Release);
        fields.file_id.store(io.file.id(), Ordering::Release);
        // The handle still has the previous I/O's result. Reset it, so that no view shows it for
        // the new I/O.
        fields.raw.store(NO_RESULT, Ordering::Release);
        fields.outcome.store(0, Ordering::Release);
        let flags = if io.file.is_direct() { 0 } else { flag::BUFFERED };
        fields.flags.store(flags, Ordering::Release);
    }

    pub(crate) fn set_method(&self, method: MethodKind) {
        self.description.method.store(method as u8, Ordering::Release);
    }

    pub(crate) fn set_synchronous(&self) {
        self.description.flags.fetch_or(flag::SYNCHRONOUS, Ordering::Release);
    }

    /// Records when the I/O was passed to the storage.
    pub(crate) fn set_started(&self, now: Time) {
        self.description.started.store(now.nanos(), Ordering::Release);
    }

    /// Records the raw result and its arrival time. The transition to COMPLETED_IO follows.
    pub(crate) fn set_raw(&self, raw: i32, now: Time) {
        self.description.ended.store(now.nanos(), Ordering::Release);
        self.description.raw.store(i64::from(raw), Ordering::Release);
    }

    pub(crate) fn set_outcome(&self, outcome: Outcome) {
        self.description.outcome.store(outcome.pack(), Ordering::Release);
    }

    pub(crate) fn session(&self) -> u32 {
        self.description.session.load(Ordering::Acquire)
    }

    pub(crate) fn class(&self) -> Class {
        Class::from_number(self.description.class.load(Ordering::Acquire))
    }

    pub(crate) fn operation(&self) -> Operation {
        Operation::from_number(self.description.operation.load(Ordering::Acquire))
    }

    pub(crate) fn method(&self) -> MethodKind {
        MethodKind::from_number(self.description.method.load(Ordering::Acquire))
    }

    pub(crate) fn is_synchronous(&self) -> bool {
        self.description.flags.load(Ordering::Acquire) & flag::SYNCHRONOUS != 0
    }

    pub(crate) fn is_buffered(&self) -> bool {
        self.description.flags.load(Ordering::Acquire) & flag::BUFFERED != 0
    }

    pub(crate) fn offset(&self) -> u64 {
        self.description.offset.load(Ordering::Acquire)
    }

    pub(crate) fn length(&self) -> u32 {
        self.description.length.load(Ordering::Acquire)
    }

    pub(crate) fn data_length(&self) -> u32 {
        self.description.data_length.load(Ordering::Acquire)
    }

    pub(crate) fn file_id(&self) -> u64 {
        self.description.file_id.load(Ordering::Acquire)
    }

    /// The raw result: bytes, or minus errno.
    pub(crate) fn raw(&self) -> Option<i32> {
        let raw = self.description.raw.load(Ordering::Acquire);
        (raw != NO_RESULT).then_some(raw as i32)
    }

    pub(crate) fn outcome(&self) -> Outcome {
        Outcome::unpack(self.description.outcome.load(Ordering::Acquire))
    }

    /// The I/O's device time: how long the storage took to execute it.
    pub(crate) fn device_time(&self) -> Duration {
        let started = Time::from_nanos(self.description.started.load(Ordering::Acquire));
        Time::from_nanos(self.description.ended.load(Ordering::Acquire)).since(started)
    }

    /// The I/O as a probe sees it.
    pub(crate) fn observed(&self, io: WaitRef) -> Observed {
        Observed {
            io,
            session: self.session(),
            class: self.class(),
            operation: self.operation(),
            method: self.method(),
            synchronous: self.is_synchronous(),
            file_id: self.file_id(),
            offset: self.offset(),
            length: self.length(),
        }
    }
}

impl Description {
    fn new() -> Self {
        Self {
            session: AtomicU32::new(0),
            class: AtomicU8::new(0),
            operation: AtomicU8::new(0),
            method: AtomicU8::new(0),
            flags: AtomicU8::new(0),
            offset: AtomicU64::new(0),
            length: AtomicU32::new(0),
            data_length: AtomicU32::new(0),
            file_id: AtomicU64::new(0),
            raw: AtomicI64::new(NO_RESULT),
            outcome: AtomicU64::new(0),
            started: AtomicU64::new(0),
            ended: AtomicU64::new(0),
        }
    }
}

impl Body {
    /// The iovecs, to be pointed at the next I/O's memory.
    pub(crate) fn iovecs(&mut self) -> &mut IoVecs {
        &mut self.iovecs
    }

    /// Moves the I/O's resources into the body. From then on, the handle keeps the file open and
    /// the slot table alive, even if the issuer drops both.
    pub(crate) fn define(&mut self, definition: Definition) {
        self.definition = Some(definition);
        self.attempts = 0;
    }

    /// The lane of the file's mount.
    pub(crate) fn lane(&self) -> usize {
        self.definition.as_ref().map_or(0, |definition| definition.file.lane())
    }

    /// Whether completing the I/O is expensive.
    pub(crate) fn is_heavy(&self) -> bool {
        self.definition.as_ref().is_some_and(|definition| definition.table.is_heavy())
    }

    /// How often the I/O was resubmitted.
    pub(crate) fn attempts(&self) -> u32 {
        self.attempts
    }

    pub(crate) fn count_attempt(&mut self) {
        self.attempts += 1;
    }

    /// Takes the I/O's resources out of the body at completion, leaving it empty for the handle's
    /// next I/O.
    pub(crate) fn take(&mut self) -> Definition {
        let Some(definition) = self.definition.take() else {
            // There's at most one claim per generation, and `define` filled the field before
            // SUBMITTED.
            unreachable!("a submitted handle has a table and a file");
        };
        definition
    }
}
