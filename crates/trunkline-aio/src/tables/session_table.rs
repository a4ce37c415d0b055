//! The session table: the part of every session that other threads may touch.
//!
//! A completing thread must wake the session that issued the I/O, sessions that joined it, and
//! possibly a session waiting for a free handle. It finds all of them here, by session number. The
//! table is allocated at start and outlives every session. A late wake-up therefore finds either
//! the session or a later session with the same number, which checks its condition and goes back to
//! sleep. A late `SetLatch` on a reused `PGPROC` is harmless for the same reason.

use crate::facade::atomic::{AtomicU32, AtomicU64, Ordering};
use crate::lock_free::event::Event;
use crate::lock_free::mailbox::Mailbox;

/// All session slots of an instance, by session number.
#[derive(Debug)]
pub(crate) struct SessionTable {
    slots: Box<[SessionSlot]>,
}

impl SessionTable {
    pub(crate) fn new(sessions: usize) -> Self {
        Self { slots: (0..sessions).map(|_| SessionSlot::new()).collect() }
    }

    /// Number of slots: every session number is lower.
    pub(crate) fn len(&self) -> u32 {
        self.slots.len() as u32
    }

    pub(crate) fn slot(&self, session: u32) -> &SessionSlot {
        &self.slots[session as usize]
    }

    /// Wakes a session, whatever it's waiting for. Ignores out-of-range numbers.
    pub(crate) fn signal(&self, session: u32) {
        if let Some(slot) = self.slots.get(session as usize) {
            slot.event.signal();
        }
    }
}

/// The shared part of one session.
#[derive(Debug)]
pub(crate) struct SessionSlot {
    /// Signalled for everything the session can wait for.
    event: Event,
    /// Where a ring driver assigns a reaped I/O to this session.
    mailbox: Mailbox,
    /// Number of sessions that have used this slot so far, which also identifies the current
    /// session. Without it, a canceller that belongs to an earlier session could cancel a later
    /// session that uses the same slot.
    incarnation: AtomicU64,
    /// The most recently cancelled incarnation. The current session is cancelled if the two are
    /// equal.
    cancelled: AtomicU64,
    /// Number of handles the session holds. A handle is included from HANDED_OUT until its I/O
    /// completes. If an earlier session had the same number, that session's unfinished I/O may be
    /// included too.
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

    /// Prepares the slot for a new session. We don't lose anything by clearing the mailbox here,
    /// because a session empties it at the end of every wait.
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

    /// Cancels an incarnation's waits, and wakes its session.
    pub(crate) fn cancel(&self, incarnation: u64) {
        // Take the maximum, because a late cancel of an older incarnation must not undo a newer
        // incarnation's cancel.
        self.cancelled.fetch_max(incarnation, Ordering::SeqCst);
        self.event.signal();
    }

    /// Allows the current session to wait again.
    pub(crate) fn clear_cancel(&self) {
        let mine = self.incarnation();
        // Any other value belongs to a session that has ended, and doesn't have any effect.
        let _ = self.cancelled.compare_exchange(mine, 0, Ordering::SeqCst, Ordering::SeqCst);
    }

    /// Whether the current session was cancelled.
    pub(crate) fn is_cancelled(&self) -> bool {
        self.cancelled.load(Ordering::SeqCst) == self.incarnation()
    }
}
