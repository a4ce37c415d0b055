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
//! In PostgreSQL, the shared callbacks are run either by an I/O worker or by a backend that waits
//! for the I/O, but the handle remains in use until the issuing backend reclaims it. In trunkline,
//! the completing thread performs all of the steps, including the local ones, and then frees the
//! handle. A handle therefore can't be leaked, even if its issuer no longer exists.
//!
//! **Rules for the completing thread.** The completing thread may be a ring's only driver, which
//! means that all of that ring's I/O is waiting for it. It must therefore not block, allocate or
//! panic. If it finds that it holds the last reference to a file or a slot table, it must not drop
//! that reference, and moves it to `deferred` instead. The only exception is an issuer that
//! executed its own I/O. It has already blocked for the I/O, so it's OK for it to block again to
//! close the file.
//!
//! **The ready set.** Callbacks that compute page checksums are too expensive for a driver. So
//! instead of running them itself, the driver sets the handle's bit in the ready set and wakes a
//! helper to complete the I/O. The ready set is a bitmap with one bit for every handle, so it can't
//! overflow. A bit can be stale because another thread has completed the I/O in the meantime; in
//! that case the helper just fails to claim the I/O.

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
    admission: Arc<Admission>,
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
            admission: Arc::new(admission),
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

    pub(crate) fn admission(&self) -> &Arc<Admission> {
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

    /// Returns true if there is any I/O in the ready set. Note that the answer may be out of date
    /// by the time the caller gets it. A worker therefore has to check again after marking itself
    /// idle and before going to sleep, and the supervisor checks while holding the roster's lock.
    pub(crate) fn has_ready(&self) -> bool {
        !self.ready.is_empty()
    }

    /// Frees a handle that was acquired but never defined. The issuer may already have published
    /// its wait reference, so other sessions may have joined the I/O. We must wake those sessions.
    /// They will then see that the reference is stale, and treat the I/O as complete.
    pub(crate) fn release(&self, io: WaitRef, session: u32) {
        self.handles.advance(io, State::HandedOut, State::Idle);
        self.sessions.slot(session).uncount_handle();
        self.handles.give(io.index());
        self.wake_joiners(self.handles.handle(io.index()));
        self.admission.handle_freed(&self.sessions);
    }

    /// Offers a reaped I/O to the issuing session, provided that session is asleep waiting for it.
    /// If it isn't, adds the I/O to the ready set and returns false, in which case the caller must
    /// wake a helper.
    ///
    /// We prefer to let the waiting session complete the I/O, because it will be the next to access
    /// the pages. Computing the checksums brings the pages into its CPU cache, and we also avoid
    /// waking a third thread.
    pub(crate) fn hand_over(&self, io: WaitRef, session: u32) -> bool {
        // The handle is already in COMPLETED_IO, so another thread may complete and reuse it at any
        // time. It's harmless to offer the I/O, or to set its ready bit, with a generation that has
        // become stale by then, because the thread that picks up the I/O checks the generation.
        let slot = self.sessions.slot(session);
        if slot.mailbox().offer(io) {
            slot.event().signal();
            return true;
        }
        self.ready.insert(io.index());
        // Wake the joiners now, because any of them can claim and complete the I/O without waiting
        // for a helper. We leave their bits set: if another thread claims the I/O first, it must
        // wake the joiners once more when the I/O is really complete.
        let handle = self.handles.handle(io.index());
        handle.for_each_joiner(|joiner| self.sessions.signal(joiner));
        false
    }

    /// Completes one I/O from the ready set, if the set isn't empty. Each helper passes a different
    /// `start`, so that helpers begin their search at different words of the bitmap and rarely
    /// compete for the same bit.
    pub(crate) fn help(&self, start: u32, completer: Completer) -> bool {
        while let Some(index) = self.ready.pop(start) {
            if self.try_complete(self.handles.wait_ref(index), completer) {
                return true;
            }
        }
        false
    }

    /// Completes the I/O if it's in COMPLETED_IO and hasn't been claimed yet, and returns true if
    /// it did so. Even the thread that has just changed the state to COMPLETED_IO must call this
    /// function, because a waiter may have claimed the I/O in the meantime. Waiters and helpers may
    /// call it regardless of the I/O's state.
    pub(crate) fn try_complete(&self, io: WaitRef, completer: Completer) -> bool {
        let claimed = self.handles.claim(io);
        if claimed {
            self.complete(io, completer);
        }
        claimed
    }

    /// Like [`Completions::try_complete`], but for a ring driver. Instead of waking the issuer
    /// immediately, we add it to `wakes`, and the driver wakes it together with the issuers of the
    /// batch's other I/Os.
    pub(crate) fn try_complete_reaped(&self, io: WaitRef, wakes: &mut WakeBatch) {
        if self.handles.claim(io) {
            wakes.add(self.complete_unsignalled(io, Completer::Reaper));
        }
    }

    /// Completes a claimed I/O and wakes all waiters, including the issuer.
    fn complete(&self, io: WaitRef, completer: Completer) {
        let issuer = self.complete_unsignalled(io, completer);
        self.sessions.slot(issuer).event().completed(1);
    }

    /// Runs the callbacks, delivers the result, frees the handle, and wakes all waiters except the
    /// issuer. The caller must have claimed the handle. Returns the number of the issuing session,
    /// which the caller must wake.
    ///
    /// The order of the steps is important for correctness; see the module documentation and the
    /// comments below.
    fn complete_unsignalled(&self, io: WaitRef, completer: Completer) -> u32 {
        let guard = AbortOnPanic;
        let handle = self.handles.handle(io.index());
        // SAFETY: the thread that has claimed the I/O owns the body until the handle is IDLE.
        let definition = unsafe { handle.body() }.take();
        let outcome = run_callbacks(io, handle, &definition);
        handle.set_outcome(outcome);
        self.handles.advance(io, State::CompletedIo, State::CompletedShared);

        let Definition { file, table, slot, .. } = definition;
        let issuer = handle.session();
        self.statistics.completed(io, handle, outcome.status, completer);
        table.store(slot, outcome, handle.device_time());
        self.handles.advance(io, State::CompletedShared, State::CompletedLocal);

        // We free the handle before we publish the slot, so that once an issuer sees its result, it
        // can rely on the handle being free. Once the state is IDLE, the handle may already be in
        // use for its next I/O, so from here on we may only touch its joiners. It's harmless to
        // wake a joiner of the next I/O, because a joiner checks the generation and goes back to
        // sleep.
        self.handles.advance(io, State::CompletedLocal, State::Idle);
        self.sessions.slot(issuer).uncount_handle();
        self.handles.give(io.index());
        let mut deferred = match completer {
            // The issuer executed the I/O itself, so it is allowed to block here. Besides, under
            // `sync` there is no other thread that could close the file.
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
            // There are no workers under `sync`. Even so, a session that completed another
            // session's I/O may have deferred a table, so we have to drop it here.
            self.deferred.drop_all();
        }
        issuer
    }

    fn wake_joiners(&self, handle: &Handle) {
        handle.take_joiners(|joiner| self.sessions.signal(joiner));
    }
}

/// Runs the completion callbacks of the handle's slot set on the raw result.
///
/// It's a bug if the handle doesn't have a raw result. In a release build we don't panic, because a
/// panic here would abort the process. We report EIO to the issuer instead.
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

/// Aborts the process if it is dropped during a panic. Once the code it guards can no longer panic,
/// that code calls `mem::forget` on the guard.
///
/// If a completion were to panic, its I/O would never complete, the handle would no longer have an
/// owner, and all sessions waiting for the I/O would hang. Callbacks must not panic, but if one
/// does, we abort the process right away, while the cause is still on the stack. PostgreSQL does
/// the same by running completion callbacks in a critical section, which promotes an ERROR to
/// PANIC.
pub(crate) struct AbortOnPanic;

impl Drop for AbortOnPanic {
    fn drop(&mut self) {
        std::process::abort();
    }
}
