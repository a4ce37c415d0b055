//! How a session is woken from outside: cancelled, or told to look again.
//!
//! What wakes a session always moves its one event, so that a session that sleeps for anything and
//! a task that was told to wait for anything look again. All of these hold the core only: they may
//! outlive their session, whose number another one may have by then, and the instance.

use super::Session;
use crate::core::Core;
use crate::sync::Arc;
use crate::sync::atomic::Ordering;
use std::fmt;

/// The wait was cancelled. The I/O goes on and will be completed by others.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Cancelled;

impl fmt::Display for Cancelled {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("cancelled")
    }
}

impl std::error::Error for Cancelled {}

/// Ends a session's waits from another thread.
#[derive(Debug, Clone)]
pub struct Canceller {
    core: Arc<Core>,
    id: u32,
    incarnation: u64,
}

impl Canceller {
    /// Makes the session's present and coming waits end with [`Cancelled`], until
    /// [`Session::clear_cancel`]. Submitted I/O is not touched, nor is a later session that got
    /// the same number.
    pub fn cancel(&self) {
        let slot = &self.core.sessions[self.id as usize];
        // Not back to an older incarnation, which would undo a newer cancel.
        slot.cancelled.fetch_max(self.incarnation, Ordering::SeqCst);
        slot.event.signal();
    }
}

/// Wakes sessions of one instance by their numbers, from anywhere: for owners of queues that note
/// who waits. Holds nothing that keeps the instance from ending.
#[derive(Debug, Clone)]
pub struct Notifier {
    core: Arc<Core>,
}

impl Notifier {
    pub(crate) fn new(core: Arc<Core>) -> Self {
        Self { core }
    }

    /// Makes the session with this number ([`Session::id`]) look again, wherever it waits. Never
    /// blocks; a session that does not sleep pays nothing, one that has ended and left its number
    /// to another wakes that one in vain, and a number that no session can have is ignored.
    pub fn notify(&self, session: u32) {
        if let Some(slot) = self.core.sessions.get(session as usize) {
            slot.event.signal();
        }
    }
}

impl Session {
    /// A way to cancel this session's waits.
    pub fn canceller(&self) -> Canceller {
        let incarnation = self.slot().incarnation.load(Ordering::SeqCst);
        Canceller { core: Arc::clone(&self.core), id: self.id, incarnation }
    }

    /// Allows waits again after a cancel.
    pub fn clear_cancel(&mut self) {
        let slot = self.slot();
        let mine = slot.incarnation.load(Ordering::SeqCst);
        // Only our own: anything else there belongs to a session that has ended.
        let _ = slot.cancelled.compare_exchange(mine, 0, Ordering::SeqCst, Ordering::SeqCst);
    }
}
