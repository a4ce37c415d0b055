//! The instance state all sessions share: session numbers, open files, and shutdown.
//!
//! Dropping an instance's last [`crate::Aio`] or session first waits for the I/O in flight and then
//! stops the threads. I/O in flight may still write into the region, so nothing may be freed before
//! it completes.
//!
//! PostgreSQL has no counterpart to this shutdown: its postmaster tears down shared memory only
//! after every backend and I/O worker has exited.

use crate::facade::{Mutex, thread};
use crate::limits::SESSIONS_MAX;
use crate::method::dispatcher::Dispatcher;
use crate::storage::file::FileRegistry;
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
}

impl Instance {
    pub(crate) fn new(dispatcher: Dispatcher) -> Self {
        let free_sessions = (1..SESSIONS_MAX as u32).rev().collect();
        Self {
            dispatcher: Arc::new(dispatcher),
            files: Arc::default(),
            free_sessions: Mutex::new(free_sessions),
        }
    }

    pub(crate) fn dispatcher(&self) -> &Arc<Dispatcher> {
        &self.dispatcher
    }

    pub(crate) fn files(&self) -> &Arc<FileRegistry> {
        &self.files
    }

    /// Takes a free session number, preferably one whose previous session has no I/O left in
    /// flight. A dropped session's I/O still counts against its number's quota, so a new session
    /// with the same number would start with a smaller quota.
    pub(crate) fn take_session(&self) -> Option<u32> {
        let sessions = self.dispatcher.in_flight().completions().sessions();
        let mut free = self.free_sessions.lock();
        let idle = |id: &u32| sessions.slot(*id).in_use() == 0;
        let at = free.iter().rposition(idle).or(free.len().checked_sub(1))?;
        Some(free.swap_remove(at))
    }

    /// Makes a session number available again. The ended session's I/O may still be in flight, so
    /// its completions may spuriously wake a later session with the same number.
    pub(crate) fn session_ended(&self, id: u32) {
        self.free_sessions.lock().push(id);
    }
}

impl Drop for Instance {
    fn drop(&mut self) {
        let dispatcher = Arc::clone(&self.dispatcher);
        // The last reference may belong to a callback or task that one of the instance's own
        // threads drops. If that thread performed the shutdown, it would have to join itself and
        // would wait forever. A new thread therefore performs the shutdown instead.
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
    // No session exists any more, so the number of handles in use can only fall. We wait on the
    // admission queue for free handles, because every freed handle wakes one of its waiters. Check
    // `in_use` again after queueing, so that we don't miss a handle freed in between.
    while handles.in_use() > 0 {
        let seen = event.epoch();
        admission.register(Class::Maintenance, OWN_SESSION);
        if handles.in_use() > 0 {
            event.wait(seen, None);
        }
    }
    admission.deregister(Class::Maintenance, OWN_SESSION, completions.sessions());
    dispatcher.shut_down();
    completions.deferred().close_all();
}
