//! The instance state all sessions share: session numbers, open files, and shutdown.
//!
//! When the last [`crate::Aio`] and the last session of an instance have been dropped, we first
//! wait for the I/O in flight and then stop the threads. We can't free anything before that,
//! because I/O in flight may still write into the region.
//!
//! PostgreSQL doesn't need anything like this, because its postmaster releases the shared memory
//! only after all backends and I/O workers have exited.

use crate::facade::{Mutex, thread};
use crate::method::dispatcher::Dispatcher;
use crate::storage::file::FileRegistry;
use crate::storage::region::Populator;
use crate::tables::admission::HandleWait;
use crate::tables::class::Class;
use std::sync::Arc;

/// The session number the instance itself uses to wait during shutdown.
const OWN_SESSION: u32 = 0;

/// The state that sessions and [`crate::Aio`] share.
#[derive(Debug)]
pub(crate) struct Instance {
    dispatcher: Arc<Dispatcher>,
    files: Arc<FileRegistry>,
    /// Unused session numbers. Number 0 is never in this list.
    free_sessions: Mutex<Vec<u32>>,
    /// Its thread ends when the instance is dropped.
    _populator: Populator,
}

impl Instance {
    pub(crate) fn new(dispatcher: Dispatcher, populator: Populator) -> Self {
        let sessions = dispatcher.in_flight().completions().sessions().len();
        let free_sessions = (OWN_SESSION + 1..sessions).rev().collect();
        Self {
            dispatcher: Arc::new(dispatcher),
            files: Arc::default(),
            free_sessions: Mutex::new(free_sessions),
            _populator: populator,
        }
    }

    pub(crate) fn dispatcher(&self) -> &Arc<Dispatcher> {
        &self.dispatcher
    }

    pub(crate) fn files(&self) -> &Arc<FileRegistry> {
        &self.files
    }

    /// Takes a free session number. If possible, we pick a number whose previous session doesn't
    /// have any I/O left in flight. I/O of a dropped session still counts towards the quota of its
    /// number, so a new session with the same number would start out with a smaller quota.
    pub(crate) fn take_session(&self) -> Option<u32> {
        let sessions = self.dispatcher.in_flight().completions().sessions();
        let mut free = self.free_sessions.lock();
        let idle = |id: &u32| sessions.slot(*id).in_use() == 0;
        let at = free.iter().rposition(idle).or(free.len().checked_sub(1))?;
        Some(free.swap_remove(at))
    }

    /// Makes a session number available again. Note that the session may still have I/O in flight.
    /// When that I/O completes, it may wake a later session with the same number, which is
    /// harmless.
    pub(crate) fn session_ended(&self, id: u32) {
        self.free_sessions.lock().push(id);
    }
}

impl Drop for Instance {
    fn drop(&mut self) {
        let dispatcher = Arc::clone(&self.dispatcher);
        // The last reference may be held by a callback or a task, and may be dropped in one of the
        // instance's own threads. That thread can't shut down the instance, because it would have
        // to join itself and would wait forever. So we start a new thread to do the shutdown.
        if thread::is_internal() {
            let spawned = thread::spawn("aio end", move || end(&dispatcher));
            debug_assert!(spawned.is_ok(), "the threads of an instance are left running");
        } else {
            end(&dispatcher);
        }
    }
}

/// Waits for the I/O in flight and then stops the threads.
///
/// The drivers and workers must outlive the I/O, because they complete it.
fn end(dispatcher: &Dispatcher) {
    let completions = dispatcher.in_flight().completions();
    let (handles, admission) = (completions.handles(), completions.admission());
    let event = completions.sessions().slot(OWN_SESSION).event();
    let mut wait = HandleWait::new(admission, completions.sessions(), OWN_SESSION);
    // There are no sessions left, so the number of handles in use can only decrease. We wait in the
    // admission queue for free handles, because every handle that is freed wakes one of the queue's
    // waiters. After entering the queue we must check `in_use` again, or else we could miss a
    // handle that was freed just before.
    while handles.in_use() > 0 {
        let seen = event.epoch();
        wait.enter(Class::Maintenance);
        if handles.in_use() > 0 {
            event.wait(seen, None);
        }
    }
    wait.leave();
    dispatcher.shut_down();
    completions.deferred().close_all();
}
