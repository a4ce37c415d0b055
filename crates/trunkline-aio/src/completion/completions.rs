//! Completion: from a raw result in COMPLETED_IO to a handle that is free again.
//!
//! ```text
//!  claim      one of the threads that see COMPLETED_IO gets the handle
//!  callbacks  last one added first: raw result -> outcome     COMPLETED_IO -> COMPLETED_SHARED
//!  store      eight bytes into the issuer's slot              COMPLETED_SHARED -> COMPLETED_LOCAL
//!  free       the handle may be handed out again              COMPLETED_LOCAL -> IDLE
//!  publish    the issuer sees its result
//!  wake       the issuer, the joiners, a session that waits for a handle
//! ```
//!
//! Any thread may do this, including the only driver of a ring, so nothing here blocks, allocates
//! or panics. Files and slot tables whose last user this thread is are dropped elsewhere
//! (`deferred`). The exception is an issuer that executed its own I/O: it has just blocked for that
//! I/O, so it may block to close the file.
//!
//! **The ready set.** A driver that reaped an expensive I/O leaves it here for helpers, and wakes
//! one. It is a bitmap over all handles, so it cannot overflow; a bit may be stale, which the claim
//! detects.

use crate::completion::worker_pool::WorkerPool;
use crate::lock_free::bitmap::Bitmap;
use crate::lock_free::outcome::Outcome;
use crate::lock_free::state::State;
use crate::lock_free::wait_ref::WaitRef;
use crate::tables::admission::Admission;
use crate::tables::completer::Completer;
use crate::tables::deferred::DeferredDrops;
use crate::tables::handle::{Handle, Parts};
use crate::tables::handle_table::HandleTable;
use crate::tables::session_table::SessionTable;
use crate::tables::slots::IoFacts;
use crate::tables::statistics::{CompletedIo, Statistics};
use crate::tables::wake_batch::WakeBatch;
use std::sync::Arc;

/// Completes I/O. Owns the tables that a completion touches.
#[derive(Debug)]
pub(crate) struct Completions {
    handles: HandleTable,
    sessions: Arc<SessionTable>,
    admission: Admission,
    /// Handles in COMPLETED_IO that wait for a helper.
    ready: Bitmap,
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

    /// Whether the ready set is not empty.
    pub(crate) fn has_ready(&self) -> bool {
        !self.ready.is_empty()
    }

    /// Frees a handle that was handed out and never defined. Sessions that joined the I/O that was
    /// to use it are woken: for them it is complete.
    pub(crate) fn release(&self, io: WaitRef, session: u32) {
        self.handles.advance(io, State::HandedOut, State::Idle);
        self.sessions.slot(session).uncount_handle();
        self.handles.give(io.index());
        self.wake_joiners(self.handles.handle(io.index()));
        self.admission.handle_freed(&self.sessions);
    }

    /// Offers a reaped I/O to the issuing session, if that sleeps waiting for it. Otherwise adds it
    /// to the ready set and returns false: the caller must then wake a helper.
    pub(crate) fn hand_over(&self, io: WaitRef, session: u32) -> bool {
        // Another thread may complete and reuse the handle at any moment from here on. An offer or
        // a ready bit for a stale generation is recognised by the thread that gets it.
        let slot = self.sessions.slot(session);
        if slot.mailbox().offer(io) {
            slot.event().signal();
            return true;
        }
        self.ready.insert(io.index());
        // A session that waits for exactly this I/O need not wait for a helper as well. Its bit
        // stays, so that it is woken once more by the completion if another thread gets the claim.
        let joiners = self.handles.handle(io.index()).joiners();
        joiners.for_each(|joiner| self.sessions.signal(joiner));
        false
    }

    /// Completes one I/O of the ready set, if there is one.
    pub(crate) fn help(&self, start: u32, completer: Completer) -> bool {
        while let Some(index) = self.ready.pop(start) {
            if self.try_complete(self.handles.wait_ref(index), completer) {
                return true;
            }
        }
        false
    }

    /// Completes the I/O if it is in COMPLETED_IO and not claimed.
    pub(crate) fn try_complete(&self, io: WaitRef, completer: Completer) -> bool {
        let completes = self.handles.is_claimable(io) && self.handles.claim(io);
        if completes {
            self.complete(io, completer);
        }
        completes
    }

    /// Completes an I/O that is in COMPLETED_IO, unless another thread does. Issuers that executed
    /// it inline and workers come here.
    pub(crate) fn claim_and_complete(&self, io: WaitRef, completer: Completer) {
        if self.handles.claim(io) {
            self.complete(io, completer);
        }
    }

    /// The same for the driver of a ring: the issuer is woken when `wakes` is dropped.
    pub(crate) fn claim_and_complete_reaped(&self, io: WaitRef, wakes: &mut WakeBatch<'_>) {
        if self.handles.claim(io) {
            wakes.add(self.complete_unsignalled(io, Completer::Reaper));
        }
    }

    fn complete(&self, io: WaitRef, completer: Completer) {
        let issuer = self.complete_unsignalled(io, completer);
        self.sessions.slot(issuer).event().completed(1);
    }

    /// Runs the callbacks, delivers the result, frees the handle, and wakes everything but the
    /// issuer, whose number it returns. The caller has claimed the handle.
    fn complete_unsignalled(&self, io: WaitRef, completer: Completer) -> u32 {
        let guard = AbortOnPanic;
        let handle = self.handles.handle(io.index());
        // SAFETY: the thread with the claim owns the body until IDLE.
        let parts = unsafe { handle.body() }.take();
        let outcome = run_callbacks(io, handle, &parts);
        handle.set_outcome(outcome);
        self.handles.advance(io, State::CompletedIo, State::CompletedShared);

        let Parts { file, table, slot, .. } = parts;
        let device = handle.device_time();
        let issuer = handle.session();
        self.statistics.completed(&CompletedIo {
            index: io.index(),
            class: handle.class(),
            operation: handle.operation(),
            raw: handle.raw().unwrap_or_default(),
            status: outcome.status,
            device,
            completer,
        });
        table.store(slot, outcome, device);
        self.handles.advance(io, State::CompletedShared, State::CompletedLocal);

        // The handle is freed before the slot is published, so that an issuer that sees its result
        // also finds the handle free. After IDLE the handle may have its next I/O; only its joiners
        // may be touched, because a joiner that is woken in vain checks the generation.
        self.handles.advance(io, State::CompletedLocal, State::Idle);
        self.sessions.slot(issuer).uncount_handle();
        self.handles.give(io.index());
        let mut deferred = match completer {
            // Under `sync` there is no other thread that could close it.
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
            // Under `sync` a session may complete what another one executes, and there is no worker.
            self.deferred.drop_all();
        }
        issuer
    }

    fn wake_joiners(&self, handle: &Handle) {
        handle.joiners().drain(|joiner| self.sessions.signal(joiner));
    }
}

fn run_callbacks(io: WaitRef, handle: &Handle, parts: &Parts) -> Outcome {
    let raw = handle.raw();
    debug_assert!(raw.is_some(), "completed without a raw result");
    let (operation, length) = (handle.operation(), handle.length());
    let expected = if operation.transfers() { length } else { 0 };
    let outcome = Outcome::from_raw(raw.unwrap_or(-libc::EIO), expected);
    let offset = handle.offset();
    let facts = IoFacts { wait_ref: io, operation, file: &parts.file, offset, length };
    // SAFETY: the caller owns the handle that has the I/O of this pending slot.
    unsafe { parts.table.complete(parts.slot, facts, parts.by_frames, outcome) }
}

/// Aborts the process if it is dropped during a panic.
///
/// A panic in a completion would leave an I/O that never completes and a handle without an owner.
/// Callbacks must not panic; if one does, the process stops while the cause is still on the stack.
pub(crate) struct AbortOnPanic;

impl Drop for AbortOnPanic {
    fn drop(&mut self) {
        std::process::abort();
    }
}
