//! Completing an I/O: everything between the raw result in COMPLETED_IO and a free handle.
//!
//! ```text
//!  claim      of the threads that see COMPLETED_IO, exactly one gets the handle
//!  callbacks  in reverse order: raw result -> outcome         COMPLETED_IO -> COMPLETED_SHARED
//!  store      eight bytes into the issuer's slot              COMPLETED_SHARED -> COMPLETED_LOCAL
//!  free       the handle may be handed out again              COMPLETED_LOCAL -> IDLE
//!  publish    the issuer sees its result
//!  wake       the issuer, the joiners, a session that waits for a handle
//! ```
//!
//! In PostgreSQL the shared callbacks run in an I/O worker or in whichever backend waits for the
//! I/O, but the handle stays occupied until the issuing backend reclaims it. Here the completing
//! thread performs all the steps, including the local ones, and then frees the handle. An issuer
//! that has gone away therefore can't leak a handle.
//!
//! **Rules for the completing thread.** The thread may be a ring's only driver, in which case all
//! of that ring's I/O is waiting for it. It must not block, allocate or panic. If it turns out to
//! hold the last reference to a file or a slot table, it doesn't drop the reference but moves it to
//! `deferred`. The only exception is an issuer that executed its own I/O: it has just blocked for
//! that I/O, so it may as well block to close the file.
//!
//! **The ready set.** Callbacks that checksum pages are too expensive for a driver. Instead of
//! running them, the driver sets the handle's bit in the ready set and wakes a helper, which
//! completes the I/O. Since the ready set is a bitmap over all handles, it can't overflow. A bit
//! may be stale if another thread completed the I/O first, but then the helper's claim simply
//! fails.

use crate::completion::worker_pool::WorkerPool;
use crate::lock_free::bitmap::Bitmap;
use crate::lock_free::outcome::Outcome;
use crate::lock_free::state::State;
use crate::lock_free::wait_ref::WaitRef;
use crate::tables::admission::Admission;
use crate::tables::completer::Completer;
use crate::tables::deferred::DeferredDrops;
use crate::tables::handle::{Definition, Handle};
use crate::tables::handle_table::HandleTable;
use crate::tables::session_table::SessionTable;
use crate::tables::slots::IoFacts;
use crate::tables::statistics::Statistics;
use crate::tables::wake_batch::WakeBatch;
use std::sync::Arc;

/// Completes I/O. It owns the tables that a completion touches.
#[derive(Debug)]
pub(crate) struct Completions {
    handles: HandleTable,
    sessions: Arc<SessionTable>,
    admission: Admission,
    /// The ready set: handles in COMPLETED_IO waiting for a helper. A set bit is only a hint.
    ready: Bitmap,
    /// Files and slot tables that a completing thread must not drop itself.
    deferred: DeferredDrops,
    statistics: Statistics,
    pool: WorkerPool,
}

impl Completions {
    pub(crate) fn new(
        handles: HandleTable,
        sessions: Arc<SessionTable>,
        admission: Admission,
        pool: WorkerPool,
    ) -> Self {
        let count = handles.len();
        Self {
            handles,
            sessions,
            admission,
            ready: Bitmap::new(count),
            deferred: DeferredDrops::new(count),
            statistics: Statistics::new(),
            pool,
        }
    }

    pub(crate) fn handles(&self) -> &HandleTable {
        &self.handles
    }

    pub(crate) fn sessions(&self) -> &Arc<SessionTable> {
        &self.sessions
    }

    pub(crate) fn admission(&self) -> &Admission {
        &self.admission
    }

    pub(crate) fn deferred(&self) -> &DeferredDrops {
        &self.deferred
    }

    pub(crate) fn statistics(&self) -> &Statistics {
        &self.statistics
    }

    pub(crate) fn pool(&self) -> &WorkerPool {
        &self.pool
    }

    /// Whether the ready set contains any I/O. The answer may already be out of date when the
    /// caller gets it. A worker therefore checks again after marking itself idle, just before it
    /// sleeps, and the supervisor checks under the roster's lock.
    pub(crate) fn has_ready(&self) -> bool {
        !self.ready.is_empty()
    }

    /// Frees a handle that was acquired but never defined. The issuer may have published the wait
    /// reference already, in which case other sessions may have joined the I/O. We wake those
    /// sessions, which then see that the reference is stale and treat the I/O as complete.
    pub(crate) fn release(&self, io: WaitRef, session: u32) {
        self.handles.advance(io, State::HandedOut, State::Idle);
        self.sessions.slot(session).uncount_handle();
        self.handles.give(io.index());
        self.wake_joiners(self.handles.handle(io.index()));
        self.admission.handle_freed(&self.sessions);
    }

    /// Offers a reaped I/O to the issuing session, if that session is asleep waiting for it.
    /// Otherwise adds the I/O to the ready set and returns false; the caller must then wake a
    /// helper.
    ///
    /// We prefer the waiting session because it'll touch the pages next: computing the checksum
    /// brings them into its CPU cache, and we don't have to wake a third thread.
    pub(crate) fn hand_over(&self, io: WaitRef, session: u32) -> bool {
        // The handle is already in COMPLETED_IO, so another thread may complete and reuse it at any
        // moment from here on. An offer or ready bit with a stale generation does no harm, because
        // the receiving thread checks the generation.
        let slot = self.sessions.slot(session);
        if slot.mailbox().offer(io) {
            slot.event().signal();
            return true;
        }
        self.ready.insert(io.index());
        // Wake the joiners now, because a joiner can claim and complete the I/O itself without
        // waiting for a helper. Their bits stay set: if another thread wins the claim, its
        // completion must wake them again when the I/O is really complete.
        let joiners = self.handles.handle(io.index()).joiners();
        joiners.iter().for_each(|joiner| self.sessions.signal(joiner));
        false
    }

    /// Completes one I/O of the ready set, if there is one. Helpers pass different values of
    /// `start`, so that they begin at different words of the bitmap and rarely compete for the same
    /// bit.
    pub(crate) fn help(&self, start: u32, completer: Completer) -> bool {
        while let Some(index) = self.ready.pop(start) {
            if self.try_complete(self.handles.wait_ref(index), completer) {
                return true;
            }
        }
        false
    }

    /// Completes the I/O if it is in COMPLETED_IO and not claimed, and returns whether it did. Even
    /// the thread that has just moved the I/O to COMPLETED_IO must call this, because a waiter may
    /// have won the claim already. Waiters and helpers may call it for an I/O in any state.
    pub(crate) fn try_complete(&self, io: WaitRef, completer: Completer) -> bool {
        let claimed = self.handles.claim(io);
        if claimed {
            self.complete(io, completer);
        }
        claimed
    }

    /// Like [`Completions::try_complete`], but for a ring driver. The issuer is woken when
    /// `wakes` is dropped, together with the batch's other issuers.
    pub(crate) fn try_complete_reaped(&self, io: WaitRef, wakes: &mut WakeBatch<'_>) {
        if self.handles.claim(io) {
            wakes.add(self.complete_unsignalled(io, Completer::Reaper));
        }
    }

    /// Completes a claimed I/O and wakes all waiters, including the issuer.
    fn complete(&self, io: WaitRef, completer: Completer) {
        let issuer = self.complete_unsignalled(io, completer);
        self.sessions.slot(issuer).event().completed(1);
    }

    /// Runs the callbacks, delivers the result, frees the handle, and wakes every waiter except the
    /// issuer. Returns the issuer's session number. The caller must have claimed the handle.
    ///
    /// Correctness depends on the order of the steps; see the module documentation and the comments
    /// below.
    fn complete_unsignalled(&self, io: WaitRef, completer: Completer) -> u32 {
        let guard = AbortOnPanic;
        let handle = self.handles.handle(io.index());
        // SAFETY: the thread with the claim owns the body until IDLE.
        let definition = unsafe { handle.body() }.take();
        let outcome = run_callbacks(io, handle, &definition);
        handle.set_outcome(outcome);
        self.handles.advance(io, State::CompletedIo, State::CompletedShared);

        let Definition { file, table, slot, .. } = definition;
        let issuer = handle.session();
        self.statistics.completed(io, handle, outcome.status, completer);
        table.store(slot, outcome, handle.device_time());
        self.handles.advance(io, State::CompletedShared, State::CompletedLocal);

        // The handle is freed before the slot is published, so that an issuer that sees its result
        // can rely on finding the handle free. After IDLE the handle may already be used for its
        // next I/O, so from here on only its joiners may be touched. Waking a joiner of the next
        // I/O is harmless, because a joiner checks the generation and sleeps again.
        self.handles.advance(io, State::CompletedLocal, State::Idle);
        self.sessions.slot(issuer).uncount_handle();
        self.handles.give(io.index());
        let mut deferred = match completer {
            // The issuer executed the I/O itself and may block. Under `sync` there is also no other
            // thread that could close the file.
            Completer::Inline => {
                drop(file);
                false
            }
            _ => self.deferred.defer_file(file),
        };
        table.publish(slot);
        deferred |= self.deferred.defer_table(table);
        self.wake_joiners(handle);
        self.admission.handle_freed(&self.sessions);
        std::mem::forget(guard);
        if deferred && self.pool.is_running() {
            self.pool.kick();
        } else if deferred {
            // There are no workers under `sync`. A table can still be deferred if a session
            // completed another session's I/O, so drop it here.
            self.deferred.drop_all();
        }
        issuer
    }

    fn wake_joiners(&self, handle: &Handle) {
        handle.joiners().drain(|joiner| self.sessions.signal(joiner));
    }
}

/// Runs the completion callbacks of the handle's slot set on the raw result.
///
/// A handle without a raw result is a bug. A release build reports EIO to the issuer instead of
/// panicking, because a panic here would abort the process.
fn run_callbacks(io: WaitRef, handle: &Handle, definition: &Definition) -> Outcome {
    let raw = handle.raw();
    debug_assert!(raw.is_some(), "completed without a raw result");
    let (operation, length) = (handle.operation(), handle.length());
    let expected = if operation.transfers() { length } else { 0 };
    let outcome = Outcome::from_raw(raw.unwrap_or(-libc::EIO), expected);
    let Definition { file, table, slot, by_frames, .. } = definition;
    let facts = IoFacts { wait_ref: io, operation, file, offset: handle.offset(), length };
    // SAFETY: the slot is pending, and the caller owns the handle of its I/O.
    unsafe { table.complete(*slot, facts, *by_frames, outcome) }
}

/// Aborts the process if dropped during a panic. Once no panic can happen any more, the owner
/// forgets the guard.
///
/// If a completion panicked, the I/O would never complete, the handle would have no owner, and
/// every session waiting for the I/O would hang. Callbacks must not panic; if one does anyway, we
/// stop the process while the cause is still on the stack. PostgreSQL achieves the same with a
/// critical section, which promotes an ERROR in a completion callback to PANIC.
pub(crate) struct AbortOnPanic;

impl Drop for AbortOnPanic {
    fn drop(&mut self) {
        std::process::abort();
    }
}
