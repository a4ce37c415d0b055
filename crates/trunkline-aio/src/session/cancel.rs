//! Waking a session from another thread: cancels and notifications.
//!
//! Both cancels and notifications signal the session's event, which makes the session check its
//! condition again. This works for a thread that sleeps as well as for a task that polls. A
//! canceller or notifier holds a reference to the session table only, so it doesn't keep the
//! instance alive. It may exist longer than the session, whose number may then be reused by another
//! session. For that reason, a canceller also remembers the incarnation of the session's slot.

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
    /// Distinguishes the session from earlier and later ones with the same number.
    incarnation: u64,
}

impl Canceller {
    /// Makes the session's current wait and all its later waits return [`Cancelled`], until
    /// [`Session::clear_cancel`] is called. I/O in flight is not affected, and neither is a later
    /// session with the same number. In PostgreSQL, the equivalent is to set `QueryCancelPending`
    /// and the latch.
    pub fn cancel(&self) {
        self.sessions.slot(self.id).cancel(self.incarnation);
    }
}

/// Lets any thread wake an instance's sessions by number. This is intended for wait queues that
/// contain session numbers, such as those of a buffer pool.
#[derive(Debug, Clone)]
pub struct Notifier {
    sessions: Arc<SessionTable>,
}

impl Notifier {
    pub(crate) fn new(sessions: Arc<SessionTable>) -> Self {
        Self { sessions }
    }

    /// Number of session numbers: [`Session::id`] is always lower than this. A wait queue can use
    /// it as the size of a table.
    pub fn session_numbers(&self) -> usize {
        self.sessions.len() as usize
    }

    /// Wakes the session with the given number ([`Session::id`]), which then checks its condition
    /// again. This function never blocks, and if the session isn't asleep, it costs only one atomic
    /// addition. If the session has ended and another session now has its number, that session is
    /// woken spuriously. Numbers that are out of range are ignored.
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

    /// Whether the session was cancelled since the last [`Session::clear_cancel`]. Waits find this out
    /// by themselves. A long loop that seldom has to wait must ask.
    pub fn is_cancelled(&self) -> bool {
        self.slot().is_cancelled()
    }

    /// Allows waits again after a cancel.
    pub fn clear_cancel(&mut self) {
        self.slot().clear_cancel();
    }
}
