//! An instance as its sessions hold it: session numbers, open files, and the end.
//!
//! The last holder of an instance, be it an [`crate::Aio`] or a session, waits for the I/O in flight
//! and then ends the threads. I/O in flight may still write into the region, so nothing may be freed
//! before it has completed.

use crate::limits::SESSIONS_MAX;
use crate::method::dispatcher::Dispatcher;
use crate::storage::file::FileRegistry;
use crate::sync::{Mutex, thread};
use crate::tables::class::Class;
use std::sync::Arc;

/// The session number that the instance itself uses to wait for its end.
const OWN_SESSION: u32 = 0;

/// What sessions and [`crate::Aio`] share.
#[derive(Debug)]
pub(crate) struct Instance {
    dispatcher: Arc<Dispatcher>,
    files: Arc<FileRegistry>,
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

    /// Takes a free session number. It prefers one whose last session has no I/O in flight, because
    /// that I/O counts against the quota of the number.
    pub(crate) fn take_session(&self) -> Option<u32> {
        let sessions = self.dispatcher.in_flight().completions().sessions();
        let mut free = self.free_sessions.lock();
        let idle = |id: &u32| sessions.slot(*id).in_use() == 0;
        let at = free.iter().rposition(idle).or(free.len().checked_sub(1))?;
        Some(free.swap_remove(at))
    }

    pub(crate) fn session_ended(&self, id: u32) {
        self.free_sessions.lock().push(id);
    }
}

impl Drop for Instance {
    fn drop(&mut self) {
        let dispatcher = Arc::clone(&self.dispatcher);
        // A callback or a task may own the last holder, and may be dropped by one of the threads
        // that must be joined. Such a thread would wait for itself.
        if thread::is_internal() {
            let spawned = thread::spawn("aio end", move || end(&dispatcher));
            debug_assert!(spawned.is_ok(), "the threads of an instance are left running");
        } else {
            end(&dispatcher);
        }
    }
}

/// Waits for the I/O in flight and ends the threads.
fn end(dispatcher: &Dispatcher) {
    let completions = dispatcher.in_flight().completions();
    let (handles, admission) = (completions.handles(), completions.admission());
    let event = completions.sessions().slot(OWN_SESSION).event();
    // No session exists any more, so the number of handles in use only falls. The wait uses the queue
    // for free handles, since every freed handle wakes a waiter.
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
