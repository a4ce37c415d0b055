//! The session table: the part of every session that other threads may touch.
//!
//! A completing thread must wake the session that issued the I/O, sessions that joined it, and a
//! session that waits for a free handle. It finds all of them here, by session number. The table is
//! allocated at start and outlives every session. A wake-up that arrives late therefore finds
//! either the session or a later one with the same number, which checks its condition and goes
//! back to sleep. A late `SetLatch` on a reused `PGPROC` is harmless for the same reason.

use crate::lock_free::event::Event;
use crate::lock_free::mailbox::Mailbox;
use crate::sync::atomic::{AtomicU32, AtomicU64, Ordering};

/// All session slots of an instance, by session number.
#[derive(Debug)]
pub(crate) struct SessionTable {
    slots: Box<[SessionSlot]>,
}

impl SessionTable {
    pub(crate) fn new(sessions: usize) -> Self {
        Self { slots: (0..sessions).map(|_| SessionSlot::new()).collect() }
    }

    pub(crate) fn slot(&self, session: u32) -> &SessionSlot {
        &self.slots[session as usize]
    }

    /// Wakes a session, whatever it waits for. Ignores a number that no session can have.
    pub(crate) fn signal(&self, session: u32) {
        if let Some(slot) = self.slots.get(session as usize) {
            slot.event.signal();
        }
    }
}

/// The shared part of one session.
#[derive(Debug)]
pub(crate) struct SessionSlot {
    /// Signalled for everything the session may wait for.
    event: Event,
    /// Where a ring driver assigns a reaped I/O to this session.
    mailbox: Mailbox,
    /// Counts the sessions that have used this slot. It identifies the current one, so that a
    /// canceller of an earlier session does not cancel a later one.
    incarnation: AtomicU64,
    /// The incarnation that was cancelled last. The current session is cancelled if the two are
    /// equal.
    cancelled: AtomicU64,
    /// Handles that the session holds, from HANDED_OUT to the end of the I/O. It may include I/O of
    /// an earlier session with the same number.
    in_use: AtomicU32,
}

impl SessionSlot {
    fn new() -> Self {
        Self {
            event: Event::new(),
            mailbox: Mailbox::new(),
            incarnation: AtomicU64::new(0),
            cancelled: AtomicU64::new(0),
            in_use: AtomicU32::new(0),
        }
    }

    pub(crate) fn event(&self) -> &Event {
        &self.event
    }

    pub(crate) fn mailbox(&self) -> &Mailbox {
        &self.mailbox
    }

    /// Prepares the slot for a new session. Every wait empties the mailbox at its end, so clearing
    /// it here loses nothing.
    pub(crate) fn begin_session(&self) {
        self.incarnation.fetch_add(1, Ordering::SeqCst);
        let _ = self.mailbox.take();
    }

    /// Number of handles the session holds.
    pub(crate) fn in_use(&self) -> u32 {
        self.in_use.load(Ordering::SeqCst)
    }

    pub(crate) fn count_handle(&self) {
        self.in_use.fetch_add(1, Ordering::SeqCst);
    }

    pub(crate) fn uncount_handle(&self) {
        self.in_use.fetch_sub(1, Ordering::SeqCst);
    }

    pub(crate) fn incarnation(&self) -> u64 {
        self.incarnation.load(Ordering::SeqCst)
    }

    /// Cancels the waits of one incarnation, and wakes it.
    pub(crate) fn cancel(&self, incarnation: u64) {
        // The maximum, because a late cancel of an older incarnation must not undo the cancel of a
        // newer one.
        self.cancelled.fetch_max(incarnation, Ordering::SeqCst);
        self.event.signal();
    }

    /// Allows the present session to wait again.
    pub(crate) fn clear_cancel(&self) {
        let mine = self.incarnation();
        // Any other value belongs to a session that has ended, and has no effect.
        let _ = self.cancelled.compare_exchange(mine, 0, Ordering::SeqCst, Ordering::SeqCst);
    }

    /// Whether the present session was cancelled.
    pub(crate) fn is_cancelled(&self) -> bool {
        self.cancelled.load(Ordering::SeqCst) == self.incarnation()
    }
}
