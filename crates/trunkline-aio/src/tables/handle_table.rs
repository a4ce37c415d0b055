//! The handle table: a fixed number of handles, and every change to their states.
//!
//! All state transitions of handles go through [`HandleTable::advance`], which checks that the
//! transition is legal and calls the probe. This gives us a single place for tracing, for setting a
//! breakpoint, and for pausing a thread in a test. The table also maintains the free list.
//!
//! The number of handles is fixed, which bounds the instance's memory. Every queue in the layers
//! above has room for all handles, so no queue can ever become full. PostgreSQL allocates
//! `io_max_concurrency` handles for each backend, whereas here all sessions share one table and the
//! admission code divides it among them.

use crate::lock_free::freelist::FreeList;
use crate::lock_free::state::State;
use crate::lock_free::wait_ref::WaitRef;
use crate::tables::class::Class;
use crate::tables::handle::Handle;
use crate::tables::probe::Probe;
use std::fmt;
use std::sync::Arc;

/// An instance's handles.
pub(crate) struct HandleTable {
    handles: Box<[Handle]>,
    /// Indexes of the IDLE handles. A handle becomes IDLE before we add it to this list, and is
    /// still IDLE when we remove it.
    free: Arc<FreeList>,
    iovecs: usize,
    /// Called at every transition. Only set in tests and in the simulator.
    probe: Option<Arc<dyn Probe>>,
}

impl fmt::Debug for HandleTable {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "HandleTable({} handles, {} in use)", self.len(), self.in_use())
    }
}

impl HandleTable {
    pub(crate) fn new(
        handles: u32,
        iovecs: usize,
        sessions: usize,
        probe: Option<Arc<dyn Probe>>,
    ) -> Self {
        Self {
            handles: (0..handles).map(|_| Handle::new(iovecs, sessions)).collect(),
            free: Arc::new(FreeList::new(handles)),
            iovecs,
            probe,
        }
    }

    pub(crate) fn len(&self) -> usize {
        self.handles.len()
    }

    /// The list of free handles.
    pub(crate) fn free(&self) -> &Arc<FreeList> {
        &self.free
    }

    /// Number of handles in use.
    pub(crate) fn in_use(&self) -> u32 {
        self.free.in_use()
    }

    /// Number of iovecs per handle.
    pub(crate) fn iovecs(&self) -> usize {
        self.iovecs
    }

    pub(crate) fn handle(&self, index: u32) -> &Handle {
        &self.handles[index as usize]
    }

    /// Returns a reference to the handle's current I/O. The caller must make sure that the handle
    /// isn't freed concurrently; otherwise the returned reference may already refer to the handle's
    /// next I/O.
    pub(crate) fn wait_ref(&self, index: u32) -> WaitRef {
        WaitRef::new(index, self.handle(index).word().load().generation)
    }

    /// Whether the I/O is complete, which is the case once its handle is in a later generation.
    pub(crate) fn is_complete(&self, io: WaitRef) -> bool {
        self.handle(io.index()).word().load().generation != io.generation()
    }

    /// Hands out a free handle, unless the number of handles in use has reached `limit`. We call
    /// the `taken` closure before the handle changes state, so that the session's count of handles
    /// is never too low.
    pub(crate) fn take(
        &self,
        limit: u32,
        session: u32,
        class: Class,
        taken: impl FnOnce(),
    ) -> Option<WaitRef> {
        let index = self.free.take(limit)?;
        taken();
        self.handle(index).hand_out(session, class);
        let io = self.wait_ref(index);
        self.advance(io, State::Idle, State::HandedOut);
        Some(io)
    }

    /// Returns a handle that has become IDLE to the free list.
    pub(crate) fn give(&self, index: u32) {
        self.free.give(index);
    }

    /// Changes a handle's state, and calls the probe.
    ///
    /// # Panics
    /// If the handle is not in state `from` of this generation.
    pub(crate) fn advance(&self, io: WaitRef, from: State, to: State) {
        let handle = self.handle(io.index());
        handle.word().advance(io.generation(), from, to);
        if let Some(probe) = &self.probe {
            // Called after the transition, by the thread that performed it. Note that after
            // SUBMITTED -> COMPLETED_IO, another thread may already be completing the I/O.
            probe.transition(&handle.observed(io), from, to);
        }
    }

    /// Claims the right to complete an I/O in COMPLETED_IO. Returns true for exactly one of several
    /// callers.
    pub(crate) fn claim(&self, io: WaitRef) -> bool {
        self.handle(io.index()).word().claim(io.generation())
    }

    /// Whether the I/O is in SUBMITTED.
    pub(crate) fn is_submitted(&self, io: WaitRef) -> bool {
        let word = self.handle(io.index()).word().load();
        word.generation == io.generation() && word.state == State::Submitted
    }

    /// Removes an ending session from every handle's joiners. Otherwise a later session with the
    /// same number would be woken spuriously.
    pub(crate) fn leave_all(&self, session: u32) {
        for handle in &self.handles {
            handle.leave(session);
        }
    }

    /// Passes a raw result to the probe, which may replace it.
    pub(crate) fn probe_raw_result(&self, io: WaitRef, raw: i32) -> i32 {
        match &self.probe {
            Some(probe) => probe.raw_result(&self.handle(io.index()).observed(io), raw),
            None => raw,
        }
    }

    /// Lets the probe inject a failure when a ring driver enters the kernel.
    pub(crate) fn probe_ring_enter(&self, submitting: usize) -> Option<i32> {
        self.probe.as_ref().and_then(|probe| probe.ring_enter(submitting))
    }
}
