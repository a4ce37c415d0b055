//! Waking a session from another thread: cancels and notifications.
//!
//! Both signal the session's event. A session that sleeps for any reason, and a task that polled
//! for anything, then checks its condition again. Cancellers and notifiers refer only to the
//! session table, so they do not keep the instance alive. They may outlive their session, and its
//! number may have been reused; a canceller therefore also records the incarnation of the slot.

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
    /// Identifies the session among those that have used the number.
    incarnation: u64,
}

impl Canceller {
    /// Makes the current wait and all later waits of the session end with [`Cancelled`], until
    /// [`Session::clear_cancel`]. I/O in flight is not affected, nor is a later session with the
    /// same number. It is the counterpart of setting `QueryCancelPending` and the latch.
    pub fn cancel(&self) {
        self.sessions.slot(self.id).cancel(self.incarnation);
    }
}

/// Wakes sessions of one instance by their numbers, from any thread. It is meant for wait queues
/// that record session numbers, such as those of a buffer pool.
#[derive(Debug, Clone)]
pub struct Notifier {
    sessions: Arc<SessionTable>,
}

impl Notifier {
    pub(crate) fn new(sessions: Arc<SessionTable>) -> Self {
        Self { sessions }
    }

    /// Wakes the session with this number ([`Session::id`]), which then checks its condition again.
    /// It never blocks, and costs one atomic addition if the session does not sleep. If the session
    /// has ended and its number was reused, the later session is woken spuriously. A number that no
    /// session can have is ignored.
    pub fn notify(&self, session: u32) {
        self.sessions.signal(session);
    }
}

impl Session {
    /// Returns a canceller for this session, which any thread may use.
    pub fn canceller(&self) -> Canceller {
        let sessions = Arc::clone(self.completions().sessions());
        Canceller { sessions, id: self.id, incarnation: self.slot().incarnation() }
    }

    /// Allows waits again after a cancel.
    pub fn clear_cancel(&mut self) {
        self.slot().clear_cancel();
    }
}
