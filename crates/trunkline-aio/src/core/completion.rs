//! Completion: from a raw result in COMPLETED_IO to a handle that is free again.
//!
//! ```text
//!  claim      of all that see COMPLETED_IO one gets the handle
//!  callbacks  last one added first: raw result -> outcome     COMPLETED_IO -> COMPLETED_SHARED
//!  store      eight bytes into the issuer's slot              COMPLETED_SHARED -> COMPLETED_LOCAL
//!  free       the handle may be handed out again              COMPLETED_LOCAL -> IDLE
//!  publish    the issuer sees its result
//!  wake       who waits: the issuer, joiners, sessions that want a handle
//! ```
//! Any thread may do this, also the one driver of a ring, so nothing here blocks, allocates or
//! raises: files and tables whose last holder this is go elsewhere to be closed (`graveyard`). Only
//! an issuer that executed its own I/O closes the file itself: it has just blocked for it anyway.

use super::Core;
use crate::file::File;
use crate::handle::{Body, NO_RESULT};
use crate::outcome::Outcome;
use crate::slots::{IoFacts, SlotTable};
use crate::state::State;
use crate::sync::atomic::Ordering;
use crate::wait::WaitRef;

/// Who ran a completion.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
#[repr(u8)]
pub enum Completer {
    /// The session that issued the I/O, after executing it inline.
    Inline = 0,
    /// A session that waited, the issuer or a joiner.
    Waiter = 1,
    /// The worker that executed it.
    Worker = 2,
    /// A worker that found it ready.
    Helper = 3,
    /// The driver that reaped it.
    Reaper = 4,
}

/// All completers.
pub const COMPLETERS: [Completer; 5] =
    [Completer::Inline, Completer::Waiter, Completer::Worker, Completer::Helper, Completer::Reaper];

impl Core {
    /// Completes one I/O that is ready, if there is one.
    pub(crate) fn help(&self, start: u32, completer: Completer) -> bool {
        while let Some(index) = self.ready.pop(start) {
            let reference = self.wait_ref(index);
            if self.try_complete(reference, completer) {
                return true;
            }
        }
        false
    }

    /// Completes the I/O if it is in COMPLETED_IO and nobody has claimed it.
    pub(crate) fn try_complete(&self, io: WaitRef, completer: Completer) -> bool {
        let handle = &self.handles[io.index as usize];
        let seen = handle.word.load();
        if seen.generation != io.generation || seen.state != State::CompletedIo || seen.claimed {
            return false;
        }
        if !handle.word.claim(io.generation) {
            return false;
        }
        self.complete(io, completer);
        true
    }

    /// Runs the callbacks, delivers the result, frees the handle and wakes who waits. The caller
    /// has claimed the handle. Never blocks, allocates or raises.
    pub(super) fn complete(&self, io: WaitRef, completer: Completer) {
        let session = self.complete_unsignalled(io, completer);
        self.sessions[session as usize].event.completed(1);
    }

    /// The same but for the session that issued the I/O, which is still to be woken.
    pub(super) fn complete_unsignalled(&self, io: WaitRef, completer: Completer) -> u32 {
        let guard = AbortOnPanic;
        let handle = &self.handles[io.index as usize];
        let view = &handle.view;
        // SAFETY: the claimer of a COMPLETED_IO handle owns its body until IDLE.
        let body = unsafe { handle.body() };
        let (Some(table), Some(file)) = (body.table.take(), body.file.take()) else {
            unreachable!("a submitted handle has a table and a file");
        };
        let slot = body.slot;
        let outcome = self.run_callbacks(io, &table, body, &file);
        view.outcome.store(outcome.pack(), Ordering::Release);
        self.advance(io, State::CompletedIo, State::CompletedShared);

        let device = view.device_time();
        let issuer = view.session.load(Ordering::Relaxed);
        let session = &self.sessions[issuer as usize];
        self.stats.completed(io.index, view, outcome, device, completer);
        table.store(slot, outcome, device);
        self.advance(io, State::CompletedShared, State::CompletedLocal);

        // The handle is freed before the slot is published, so that an issuer that sees its result
        // finds the handle free again. After IDLE nothing of the handle may be touched but the
        // joiners, who look at the generation themselves.
        self.advance(io, State::CompletedLocal, State::Idle);
        session.in_use.fetch_sub(1, Ordering::SeqCst);
        self.free.give(io.index);
        let mut buried = match completer {
            // The issuer, who has just blocked for the I/O itself; under `sync` there is nobody else.
            Completer::Inline => {
                drop(file);
                false
            }
            _ => self.graveyard.bury_file(file),
        };
        table.publish(slot);
        buried |= self.graveyard.bury_table(table);
        handle.joiners.drain(|joiner| self.sessions[joiner as usize].event.signal());
        self.capacity.freed(&self.sessions);
        std::mem::forget(guard);
        if buried && self.methods.pool().is_running() {
            self.methods.pool().kick();
        } else if buried {
            // Under `sync` a session may complete what another one executes; nobody else digs.
            self.graveyard.clear();
        }
        issuer
    }

    fn run_callbacks(&self, io: WaitRef, table: &SlotTable, handle: &Body, file: &File) -> Outcome {
        let view = &self.handles[io.index as usize].view;
        let raw = view.raw.load(Ordering::Relaxed);
        debug_assert_ne!(raw, NO_RESULT, "completed without a raw result");
        let length = view.length.load(Ordering::Relaxed);
        let expected = if view.operation().transfers() { length } else { 0 };
        let facts = IoFacts {
            wait_ref: io,
            operation: view.operation(),
            file,
            offset: view.offset.load(Ordering::Relaxed),
            length,
        };
        // SAFETY: the slot is pending and we own the handle that carries its I/O.
        unsafe {
            table.complete(
                handle.slot,
                facts,
                handle.by_frames,
                Outcome::from_raw(raw as i32, expected),
            )
        }
    }
}

/// A panic in a completion would leave an I/O that never ends and a handle without an owner. A
/// completion callback must not panic; if one does, the process stops here, where the cause is
/// still on the stack.
pub(super) struct AbortOnPanic;

impl Drop for AbortOnPanic {
    fn drop(&mut self) {
        std::process::abort();
    }
}
