//! Waiters: sessions that sleep until something in the pool changes.
//!
//! A session sleeps on one event, whatever it waits for (see `trunkline_aio::Session::wait_for`). Before it
//! sleeps it registers here, and then it tests its condition again. Code that changes the condition
//! afterwards finds the session registered and notifies it, so no wake-up is lost. PostgreSQL keeps wait
//! queues for the same purpose (`ProcWaitQueue`, condition variables).
//!
//! Registration is a store into an array indexed by session number. Nothing here blocks or allocates, so
//! completion callbacks may notify waiters.

use trunkline_aio::limits::SESSIONS_MAX;
use trunkline_aio::sync::atomic::{AtomicBool, AtomicU32, Ordering};
use trunkline_aio::{Cancelled, Notifier, Session};

/// Sessions that wait for one condition. A session can be registered several times, once for each of its
/// streams that waits.
#[derive(Debug)]
pub(crate) struct SessionSet {
    registrations: Box<[AtomicU32]>,
    count: AtomicU32,
}

impl SessionSet {
    /// An empty set.
    pub(crate) fn new() -> Self {
        let registrations = (0..SESSIONS_MAX).map(|_| AtomicU32::new(0)).collect();
        Self { registrations, count: AtomicU32::new(0) }
    }

    /// Registers a session. The session must test its condition again afterwards.
    pub(crate) fn insert(&self, session: u32) {
        self.registrations[session as usize].fetch_add(1, Ordering::SeqCst);
        self.count.fetch_add(1, Ordering::SeqCst);
    }

    /// Removes one registration of a session.
    pub(crate) fn remove(&self, session: u32) {
        let old = self.registrations[session as usize].fetch_sub(1, Ordering::SeqCst);
        assert!(old > 0, "session {session} removed from a set that does not contain it");
        self.count.fetch_sub(1, Ordering::SeqCst);
    }

    /// Whether no session waits.
    pub(crate) fn is_empty(&self) -> bool {
        self.count.load(Ordering::SeqCst) == 0
    }

    /// Makes every registered session test its condition again. The sessions stay registered.
    pub(crate) fn notify(&self, notifier: &Notifier) {
        if self.is_empty() {
            return;
        }
        for (session, registrations) in self.registrations.iter().enumerate() {
            if registrations.load(Ordering::SeqCst) > 0 {
                notifier.notify(session as u32);
            }
        }
    }

    /// Sleeps until `done` holds, registered in this set.
    ///
    /// # Errors
    /// The session was cancelled.
    pub(crate) fn wait(
        &self,
        session: &mut Session,
        done: impl Fn() -> bool,
    ) -> Result<(), Cancelled> {
        let id = session.id();
        self.insert(id);
        let waited = session.wait_for(done);
        self.remove(id);
        waited
    }
}

/// For each session the buffer whose state word it waits for, if any. A session waits for one buffer at a
/// time, so this needs no queue per buffer.
#[derive(Debug)]
pub(crate) struct BufferWaiters {
    /// By session: the buffer number plus one, or 0.
    buffers: Box<[AtomicU32]>,
}

impl BufferWaiters {
    /// No session waits.
    pub(crate) fn new() -> Self {
        Self { buffers: (0..SESSIONS_MAX).map(|_| AtomicU32::new(0)).collect() }
    }

    /// Registers a session. It must announce itself in the buffer word next, and then test its condition.
    pub(crate) fn begin(&self, session: u32, buffer: u32) {
        self.buffers[session as usize].store(buffer + 1, Ordering::SeqCst);
    }

    /// Removes the session.
    pub(crate) fn end(&self, session: u32) {
        self.buffers[session as usize].store(0, Ordering::SeqCst);
    }

    /// Wakes the sessions that wait for the buffer.
    pub(crate) fn notify(&self, buffer: u32, notifier: &Notifier) {
        for (session, waits_for) in self.buffers.iter().enumerate() {
            if waits_for.load(Ordering::SeqCst) == buffer + 1 {
                notifier.notify(session as u32);
            }
        }
    }
}

/// A mutex that a session waits for as for everything else: with its staged I/O submitted, and woken by
/// cancel. Used for `CheckpointLock`, which is held across I/O; a futex mutex must not be.
#[derive(Debug)]
pub(crate) struct SessionLock {
    held: AtomicBool,
    waiters: SessionSet,
    notifier: Notifier,
}

impl SessionLock {
    /// A free lock.
    pub(crate) fn new(notifier: Notifier) -> Self {
        Self { held: AtomicBool::new(false), waiters: SessionSet::new(), notifier }
    }

    /// Takes the lock, waiting for it if need be.
    ///
    /// # Errors
    /// The session was cancelled.
    pub(crate) fn acquire(&self, session: &mut Session) -> Result<SessionLockGuard<'_>, Cancelled> {
        let take = || {
            let taken = self.held.compare_exchange(false, true, Ordering::SeqCst, Ordering::SeqCst);
            taken.is_ok()
        };
        self.waiters.wait(session, take)?;
        Ok(SessionLockGuard(self))
    }
}

/// Releases a [`SessionLock`] when it is dropped.
#[derive(Debug)]
pub(crate) struct SessionLockGuard<'a>(&'a SessionLock);

impl Drop for SessionLockGuard<'_> {
    fn drop(&mut self) {
        self.0.held.store(false, Ordering::SeqCst);
        self.0.waiters.notify(&self.0.notifier);
    }
}
