//! Admission control: which session may take a handle, and which sessions wait for one.
//!
//! Every I/O class has a limit on the number of handles in use. The difference between two classes'
//! limits is a reserve for the more important one, so that a log flush never has to wait behind
//! read-ahead. In addition every session has a quota, so that no single session can use up all the
//! handles available to its class; only the log is exempt. PostgreSQL instead divides handles
//! statically: each backend has its own `io_max_concurrency` handles.
//!
//! A session that isn't admitted joins its class's queue. Whenever a handle is freed, we remove one
//! waiter from the queue of the most important class that has any, and wake it. If that waiter then
//! leaves without taking a handle, it must pass the wake-up on. Otherwise, another waiter could
//! keep sleeping even though a handle is free.
//!
//! **Race.** We must not lose a wake-up if a handle is freed just as a session is about to wait.
//! The session therefore joins the queue first and then tries once more to take a handle, whereas a
//! completing thread frees the handle first and then reads the number of waiters. Either the
//! session gets the handle, or the completing thread sees the waiter and wakes it.

use crate::facade::Mutex;
use crate::facade::atomic::{AtomicU32, Ordering};
use crate::tables::class::{CLASSES, Class};
use crate::tables::session_table::{SessionSlot, SessionTable};
use std::collections::VecDeque;

/// Limits, quotas and the queues of sessions waiting for a free handle.
#[derive(Debug)]
pub(crate) struct Admission {
    /// By class: the maximum number of handles in use, including the one being taken.
    limits: [u32; CLASSES.len()],
    /// Maximum number of handles per session; the log is exempt.
    session_quota: u32,
    /// Number of sessions in all queues. Lets us skip the locks when freeing a handle that no
    /// session is waiting for.
    waiting: AtomicU32,
    queues: Mutex<[VecDeque<u32>; CLASSES.len()]>,
}

impl Admission {
    /// Each queue has room for `sessions` sessions, so that queueing never allocates.
    pub(crate) fn new(limits: [u32; CLASSES.len()], session_quota: u32, sessions: usize) -> Self {
        let queues = std::array::from_fn(|_| VecDeque::with_capacity(sessions));
        Self { limits, session_quota, waiting: AtomicU32::new(0), queues: Mutex::new(queues) }
    }

    pub(crate) fn limit(&self, class: Class) -> u32 {
        self.limits[class as usize]
    }

    /// Whether the session has reached its quota.
    pub(crate) fn is_at_quota(&self, session: &SessionSlot, class: Class) -> bool {
        class != Class::Log && session.in_use() >= self.session_quota
    }

    /// Adds a session to its queue. The session must then try once more to take a handle before it
    /// sleeps. If the session is already in the queue, it keeps its position.
    pub(crate) fn register(&self, class: Class, session: u32) {
        let mut queues = self.queues.lock();
        let queue = &mut queues[class as usize];
        if !queue.contains(&session) {
            queue.push_back(session);
            self.waiting.fetch_add(1, Ordering::SeqCst);
        }
    }

    /// Removes a session from its queue, because it's no longer waiting.
    pub(crate) fn deregister(&self, class: Class, session: u32, sessions: &SessionTable) {
        let still_queued = {
            let mut queues = self.queues.lock();
            let queue = &mut queues[class as usize];
            let at = queue.iter().position(|&waiter| waiter == session);
            let found = at.is_some_and(|at| queue.remove(at).is_some());
            if found {
                self.waiting.fetch_sub(1, Ordering::SeqCst);
            }
            found
        };
        // If the session is no longer in the queue, it was woken because a handle was freed. That
        // handle may still be free even if this session has taken a handle, because it may have
        // taken a different one. We must therefore pass the wake-up on to another waiter. If that
        // turns out to be unnecessary, that waiter just queues itself again, without waking yet
        // another session.
        if !still_queued {
            self.handle_freed(sessions);
        }
    }

    /// Called when a handle has been freed, to wake one waiter: the session that has waited longest
    /// in the most important class with waiters. If that session is still over its limit, it goes
    /// back to the queue.
    pub(crate) fn handle_freed(&self, sessions: &SessionTable) {
        if self.waiting.load(Ordering::SeqCst) == 0 {
            return;
        }
        let next = {
            let mut queues = self.queues.lock();
            let next = queues.iter_mut().find_map(VecDeque::pop_front);
            if next.is_some() {
                self.waiting.fetch_sub(1, Ordering::SeqCst);
            }
            next
        };
        if let Some(session) = next {
            sessions.signal(session);
        }
    }
}
