//! Waiters: sessions that sleep until something in the pool changes.
//!
//! A session sleeps on a single event, whatever it waits for (see
//! `trunkline_aio::Session::wait_for`). PostgreSQL's process latch works the same way. The
//! registrations here decide which sessions an event concerns.
//!
//! # No wake-up is lost
//!
//! A waiter registers, then tests its condition, then sleeps. The code that changes the condition
//! changes it first, then looks for registrations. Both sides use sequentially consistent accesses,
//! so at least one of them sees the other: the waiter sees the condition hold, or the other thread
//! sees the registration and notifies it. PostgreSQL's condition variables require the same order
//! (`ConditionVariablePrepareToSleep` before the test).
//!
//! Wake-ups can be spurious. A waiter always tests its condition again, and several sessions may be
//! woken for one free buffer.
//!
//! Registration is a store into an array indexed by session number. Nothing here blocks or
//! allocates, so completion callbacks may notify waiters. A notification must scan the whole array,
//! but that's rare: a release notifies only if a flag or the count shows that there are waiters.

use trunkline_aio::facade::atomic::{AtomicBool, AtomicU32, Ordering};
use trunkline_aio::limits::SESSIONS_MAX;
use trunkline_aio::{Cancelled, Notifier, Session};

/// Sessions that wait for one condition. A session can be registered several times, once for each
/// of its waiting streams.
#[derive(Debug)]
pub(crate) struct SessionSet {
    /// By session: how many of its streams are registered.
    registrations: Box<[AtomicU32]>,
    /// Total number of registrations, so that a release without waiters costs one load. It is
    /// raised after a session has been registered, and lowered after a registration has been
    /// removed.
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

    /// Makes every registered session test its condition again. The sessions stay registered. There
    /// is no queue: the sessions compete, and those that lose sleep again.
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

/// For each session, the buffer that it's waiting for, if any. A session waits for at most one
/// buffer at a time, so one number per session replaces a wait queue per buffer.
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

    /// Registers a session. It must set `WAITERS` in the buffer word next, and then test its
    /// condition. A thread that finds the flag then also finds the registration.
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

/// A mutex for code that does I/O under it, such as a checkpoint (PostgreSQL's `CheckpointLock`). A
/// session waits for this mutex just as for any other event: its staged I/O is submitted before it
/// sleeps, and a cancel wakes it. An ordinary mutex must not be held across I/O, because a session
/// would sleep on it with staged I/O and could not be cancelled.
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
