//! Waiters: sessions that sleep until something in the pool changes.
//!
//! Regardless of what a session waits for, it sleeps on the same per-session event (see
//! `trunkline_aio::Session::wait_for`), much like a PostgreSQL backend sleeps on its process latch.
//! The registrations in this module determine which sessions must be woken.
//!
//! # No wake-up is lost
//!
//! A session that wants to wait first registers itself, then tests its condition, and then sleeps.
//! A thread that makes the condition true does so first, and then looks for registrations. Because
//! both use sequentially consistent accesses, either the waiter sees that the condition is true, or
//! the other thread sees the registration and wakes the waiter. PostgreSQL's condition variables
//! require the same order (`ConditionVariablePrepareToSleep` before the test).
//!
//! Wake-ups can be spurious. For example, several sessions may be woken although only one buffer is
//! free, so a waiter must always test its condition again.
//!
//! To register, a session just stores a value in an array indexed by session number. Nothing here
//! blocks or allocates memory, so completion callbacks can safely notify waiters. To notify them,
//! we must scan the whole array, but that's rare, because we only do so if a flag or the count
//! indicates that there are waiters.

use trunkline_aio::facade::atomic::{AtomicBool, AtomicU32, Ordering};
use trunkline_aio::limits::SESSIONS_MAX;
use trunkline_aio::{Cancelled, Notifier, Session};

/// The sessions waiting for one condition. A session can be registered more than once, because each
/// of its streams may be waiting.
#[derive(Debug)]
pub(crate) struct SessionSet {
    /// By session: how many of its streams are registered.
    registrations: Box<[AtomicU32]>,
    /// Total number of registrations. If there are no waiters to wake, a release therefore needs
    /// only one load. We increment the total after registering a session, and decrement it after
    /// removing a registration.
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

    /// Wakes all registered sessions, so that they test their conditions again. They remain
    /// registered. There is no queue: the sessions compete with each other, and those that lose go
    /// back to sleep.
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
        let _registered = Registered::new(self, session.id());
        session.wait_for(done)
    }
}

/// A session's registration in a set, until it is dropped. It ends even if the condition panics:
/// a registration left behind would keep other sessions from look-ahead for ever.
#[derive(Debug)]
struct Registered<'a> {
    set: &'a SessionSet,
    session: u32,
}

impl<'a> Registered<'a> {
    fn new(set: &'a SessionSet, session: u32) -> Self {
        set.insert(session);
        Self { set, session }
    }
}

impl Drop for Registered<'_> {
    fn drop(&mut self) {
        self.set.remove(self.session);
    }
}

/// The buffer that each session is waiting for, if any. A session waits for at most one buffer at a
/// time, so one number per session is enough and we don't need a wait queue per buffer.
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

    /// Registers a session. The session must then set `WAITERS` in the buffer word before it tests
    /// its condition. This order ensures that any thread that sees the flag also sees the
    /// registration.
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

/// A mutex for operations that do I/O while holding it, such as a checkpoint (PostgreSQL's
/// `CheckpointLock`). A session waits for this mutex as it does for any other event: it submits its
/// staged I/O before it sleeps, and a cancel request wakes it. With an ordinary mutex, a session
/// would sleep without submitting its staged I/O, and could not be cancelled.
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

    /// Takes the lock, waiting if it's held.
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
