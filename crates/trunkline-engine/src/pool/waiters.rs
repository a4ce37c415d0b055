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
//! To register, a session just changes some counters in arrays indexed by session number. Nothing
//! here blocks or allocates memory, so completion callbacks can safely notify waiters. To notify
//! them, we must look for them in the array. That's rare, because we only do so if a flag or the
//! total indicates that there are waiters, and there is a counter for each group of 64 sessions, so
//! we skip most of the sessions even if an instance has thousands of them.

use trunkline_aio::facade::atomic::{AtomicBool, AtomicU32, Ordering};
use trunkline_aio::{Cancelled, Notifier, Session};

/// Number of sessions in a group.
const GROUP: usize = 64;

/// A set of sessions, usually those waiting for one condition. A session can be registered more
/// than once, because each of its streams may be waiting.
#[derive(Debug)]
pub(crate) struct SessionSet {
    /// By session: how many of its streams are registered.
    registrations: Box<[AtomicU32]>,
    /// By group of sessions: the sum of their registrations. These are counters rather than bits,
    /// because a thread that clears a bit could undo what another thread has just set.
    groups: Box<[AtomicU32]>,
    /// Total number of registrations. If there are no waiters to wake, a release therefore needs
    /// only one load. We increment the total after registering a session, and decrement it after
    /// removing a registration.
    count: AtomicU32,
}

impl SessionSet {
    /// An empty set of session numbers below `sessions`.
    pub(crate) fn new(sessions: usize) -> Self {
        Self {
            registrations: counters(sessions),
            groups: counters(sessions.div_ceil(GROUP)),
            count: AtomicU32::new(0),
        }
    }

    /// Registers a session. The session must test its condition again afterwards.
    pub(crate) fn insert(&self, session: u32) {
        self.registrations[session as usize].fetch_add(1, Ordering::SeqCst);
        self.groups[session as usize / GROUP].fetch_add(1, Ordering::SeqCst);
        self.count.fetch_add(1, Ordering::SeqCst);
    }

    /// Removes one registration of a session.
    pub(crate) fn remove(&self, session: u32) {
        let old = self.registrations[session as usize].fetch_sub(1, Ordering::SeqCst);
        assert!(old > 0, "session {session} removed from a set that does not contain it");
        self.groups[session as usize / GROUP].fetch_sub(1, Ordering::SeqCst);
        self.count.fetch_sub(1, Ordering::SeqCst);
    }

    /// The registered sessions, lowest first.
    pub(crate) fn iter(&self) -> impl Iterator<Item = u32> {
        let is_set = |counter: &AtomicU32| counter.load(Ordering::SeqCst) > 0;
        let groups = self.registrations.chunks(GROUP).zip(&self.groups).enumerate();
        let registered = groups.filter(move |(_, (_, group))| is_set(group));
        registered.flat_map(move |(at, (sessions, _))| {
            let numbers = (at * GROUP) as u32..;
            numbers.zip(sessions).filter(move |(_, session)| is_set(session)).map(|(id, _)| id)
        })
    }

    /// Whether no session waits.
    pub(crate) fn is_empty(&self) -> bool {
        self.count.load(Ordering::SeqCst) == 0
    }

    /// Wakes all registered sessions, so that they test their conditions again. They remain
    /// registered. There is no queue: the sessions compete with each other, and those that lose go
    /// back to sleep.
    pub(crate) fn notify(&self, notifier: &Notifier) {
        if !self.is_empty() {
            self.iter().for_each(|session| notifier.notify(session));
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

/// The buffer that each session is waiting for, if any. A session's thread waits for at most one
/// buffer at a time, so one number per session is enough and we don't need a wait queue per buffer.
/// The tasks of a session may each wait for another buffer. We wake a session with such tasks
/// whatever buffer they wait for.
#[derive(Debug)]
pub(crate) struct BufferWaiters {
    /// The sessions that wait for any buffer.
    sessions: SessionSet,
    /// The sessions with tasks that wait for any buffer.
    polled: SessionSet,
    /// By session: the buffer number plus one, or 0.
    buffers: Box<[AtomicU32]>,
}

impl BufferWaiters {
    /// No session waits. Session numbers are below `sessions`.
    pub(crate) fn new(sessions: usize) -> Self {
        let [thread, polled] = [(), ()].map(|()| SessionSet::new(sessions));
        Self { sessions: thread, polled, buffers: counters(sessions) }
    }

    /// Registers a session. The session must then set `WAITERS` in the buffer word before it tests
    /// its condition. This order ensures that any thread that sees the flag also sees the
    /// registration.
    pub(crate) fn begin(&self, session: u32, buffer: u32) {
        self.buffers[session as usize].store(buffer + 1, Ordering::SeqCst);
        self.sessions.insert(session);
    }

    /// Removes the session.
    pub(crate) fn end(&self, session: u32) {
        self.sessions.remove(session);
        self.buffers[session as usize].store(0, Ordering::SeqCst);
    }

    /// The sessions with tasks that wait for any buffer. As after [`BufferWaiters::begin`], a task
    /// must set `WAITERS` after it has registered.
    pub(crate) fn polled(&self) -> &SessionSet {
        &self.polled
    }

    /// Wakes the sessions that wait for the buffer.
    pub(crate) fn notify(&self, buffer: u32, notifier: &Notifier) {
        self.polled.notify(notifier);
        for session in self.sessions.iter() {
            if self.buffers[session as usize].load(Ordering::SeqCst) == buffer + 1 {
                notifier.notify(session);
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
        let waiters = SessionSet::new(notifier.session_numbers());
        Self { held: AtomicBool::new(false), waiters, notifier }
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

fn counters(count: usize) -> Box<[AtomicU32]> {
    (0..count).map(|_| AtomicU32::new(0)).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_set_lists_its_sessions_once_however_often_they_are_registered() {
        let set = SessionSet::new(5001);
        for session in [0, 63, 64, 4000, 5000, 5000] {
            set.insert(session);
        }
        assert_eq!(set.iter().collect::<Vec<_>>(), [0, 63, 64, 4000, 5000]);
        for session in [63, 64, 5000] {
            set.remove(session);
        }
        assert_eq!(set.iter().collect::<Vec<_>>(), [0, 4000, 5000]);
        [0, 4000, 5000].into_iter().for_each(|session| set.remove(session));
        assert!(set.is_empty() && set.iter().next().is_none());
    }
}
