//! Waking a session from another thread: cancels and notifications.
//!
//! Both move the session's event, so a session that sleeps for anything, and a task that polled for
//! anything, looks again. Cancellers and notifiers hold only the session table. They may outlive
//! their session, whose number another session may have by then, and they do not keep the instance
//! from ending.

use super::Session;
use crate::tables::session_table::SessionTable;
use std::sync::Arc;

/// The wait was cancelled. The I/O continues, and other threads complete it.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error("cancelled")]
pub struct Cancelled;

/// Ends the waits of a session from another thread.
#[derive(Debug, Clone)]
pub struct Canceller {
    sessions: Arc<SessionTable>,
    id: u32,
    incarnation: u64,
}

impl Canceller {
    /// Makes the present and future waits of the session end with [`Cancelled`], until
    /// [`Session::clear_cancel`]. I/O in flight is not affected, nor is a later session with the
    /// same number.
    pub fn cancel(&self) {
        self.sessions.slot(self.id).cancel(self.incarnation);
    }
}

/// Wakes sessions of one instance by their numbers, from any thread: for owners of queues that
/// record which sessions wait.
#[derive(Debug, Clone)]
pub struct Notifier {
    sessions: Arc<SessionTable>,
}

impl Notifier {
    pub(crate) fn new(sessions: Arc<SessionTable>) -> Self {
        Self { sessions }
    }

    /// Makes the session with this number ([`Session::id`]) check again what it waits for. Never
    /// blocks, and costs one atomic addition if the session does not sleep. If the session has
    /// ended and another one has its number, that one is woken in vain. A number that no session
    /// can have is ignored.
    pub fn notify(&self, session: u32) {
        self.sessions.signal(session);
    }
}

impl Session {
    /// A way to cancel the waits of this session.
    pub fn canceller(&self) -> Canceller {
        let sessions = Arc::clone(self.completions().sessions());
        Canceller { sessions, id: self.id, incarnation: self.slot().incarnation() }
    }

    /// Allows waits again after a cancel.
    pub fn clear_cancel(&mut self) {
        self.slot().clear_cancel();
    }
}
