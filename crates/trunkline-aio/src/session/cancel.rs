//! Waking a session from another thread: cancels and notifications.
//!
//! Cancels and notifications both signal the session's event. The session then checks its condition
//! again, whether its thread was sleeping or its task is polling. Cancellers and notifiers only
//! reference the session table, so they don't keep the instance alive. They may outlive their
//! session, whose number may be reused; a canceller therefore also records the slot's incarnation.

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
    /// Distinguishes the session from others that have used the same number.
    incarnation: u64,
}

impl Canceller {
    /// Makes the session's current wait and all later waits end with [`Cancelled`], until
    /// [`Session::clear_cancel`]. It doesn't affect I/O in flight, or a later session with the same
    /// number. This is the counterpart of setting `QueryCancelPending` and the latch.
    pub fn cancel(&self) {
        self.sessions.slot(self.id).cancel(self.incarnation);
    }
}

/// Wakes an instance's sessions by number, from any thread. Meant for wait queues that record
/// session numbers, such as those of a buffer pool.
#[derive(Debug, Clone)]
pub struct Notifier {
    sessions: Arc<SessionTable>,
}

impl Notifier {
    pub(crate) fn new(sessions: Arc<SessionTable>) -> Self {
        Self { sessions }
    }

    /// Wakes the session with this number ([`Session::id`]), which then checks its condition again.
    /// It never blocks, and costs just one atomic addition if the session is not asleep. If the
    /// session has ended and its number was reused, the later session is woken spuriously.
    /// Out-of-range numbers are ignored.
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
