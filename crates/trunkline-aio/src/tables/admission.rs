//! Admission control: which session may take a handle, and which sessions wait for one.
//!
//! Every I/O class has a limit on the number of handles in use. The difference between two classes'
//! limits is a reserve for the more important one, so that a log flush never has to wait behind
//! read-ahead. In addition every session has a quota, so that no single session can use up all the
//! handles available to its class; only the log is exempt. PostgreSQL instead divides handles
//! statically: each backend has its own `io_max_concurrency` handles.
//!
//! A session that isn't admitted joins its class's queue. It does so only once, even if several of
//! its tasks wait for a handle ([`HandleWait`]). Whenever a handle is freed, we remove one session
//! from the queue of the most important class that may take a handle now, and wake it. All waits of
//! that session then try to take the handle. If a wait ends after its session was woken, it must
//! pass the wake-up on. Otherwise, another session could keep sleeping even though a handle is
//! free.
//!
//! **Race.** We must not lose a wake-up if a handle is freed just as a session is about to wait.
//! The session therefore joins the queue first and then tries once more to take a handle, whereas a
//! completing thread frees the handle first and then reads the number of waiters. Either the
//! session gets the handle, or the completing thread sees the waiter and wakes it.
//!
//! The completing thread may find that a class is still at its limit and wake none of its sessions,
//! because another thread has taken a handle in the meantime. That is OK, because the other thread
//! comes here too when it frees its handle.

use crate::facade::Mutex;
use crate::facade::atomic::{AtomicU32, Ordering};
use crate::lock_free::freelist::FreeList;
use crate::tables::class::{CLASSES, Class};
use crate::tables::session_table::{SessionSlot, SessionTable};
use std::collections::VecDeque;
use std::sync::Arc;

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
    queues: Mutex<Queues>,
    /// The handle table's free list, which counts the handles in use.
    free: Arc<FreeList>,
}

#[derive(Debug)]
struct Queues {
    /// By class: sessions in the order of their arrival, each at most once.
    sessions: [VecDeque<u32>; CLASSES.len()],
    /// By session and class.
    waits: Box<[[Waits; CLASSES.len()]]>,
}

/// The waits of one session for handles of one class.
#[derive(Debug, Clone, Copy, Default)]
struct Waits {
    count: u32,
    /// The session is in the class's queue. Even if it has waits, it isn't if it was woken for a
    /// freed handle and none of its waits has tried again since then.
    queued: bool,
}

impl Admission {
    /// Each queue has room for `sessions` sessions, so that queueing never allocates.
    pub(crate) fn new(
        limits: [u32; CLASSES.len()],
        session_quota: u32,
        sessions: usize,
        free: Arc<FreeList>,
    ) -> Self {
        let queues = Queues {
            sessions: std::array::from_fn(|_| VecDeque::with_capacity(sessions)),
            waits: vec![[Waits::default(); CLASSES.len()]; sessions].into(),
        };
        let (waiting, queues) = (AtomicU32::new(0), Mutex::new(queues));
        Self { limits, session_quota, waiting, queues, free }
    }

    pub(crate) fn limit(&self, class: Class) -> u32 {
        self.limits[class as usize]
    }

    /// Whether the session has reached its quota.
    pub(crate) fn is_at_quota(&self, session: &SessionSlot, class: Class) -> bool {
        class != Class::Log && session.in_use() >= self.session_quota
    }

    /// Adds a session to its queue. The session must then try once more to take a handle before it
    /// sleeps. If the session is already in the queue, it keeps its position. `new` must be true if
    /// this is another wait of the session.
    fn register(&self, class: Class, session: u32, new: bool) {
        let mut queues = self.queues.lock();
        let waits = &mut queues.waits[session as usize][class as usize];
        waits.count += u32::from(new);
        if !std::mem::replace(&mut waits.queued, true) {
            queues.sessions[class as usize].push_back(session);
            self.waiting.fetch_add(1, Ordering::SeqCst);
        }
    }

    /// Ends one wait of a session. The session leaves the queue with its last wait. `is_mine` says
    /// whether the session is still the one that registered the wait.
    fn deregister(
        &self,
        class: Class,
        session: u32,
        sessions: &SessionTable,
        is_mine: impl FnOnce() -> bool,
    ) {
        let still_queued = {
            let mut queues = self.queues.lock();
            let waits = &mut queues.waits[session as usize][class as usize];
            if waits.count == 0 || !is_mine() {
                return;
            }
            waits.count -= 1;
            let queued = waits.queued;
            if waits.count == 0 && queued {
                waits.queued = false;
                queues.sessions[class as usize].retain(|&waiter| waiter != session);
                self.waiting.fetch_sub(1, Ordering::SeqCst);
            }
            queued
        };
        // If the session is no longer in the queue, it was woken because a handle was freed. That
        // handle may still be free even if this wait has taken a handle, because it may have taken
        // a different one. We must therefore pass the wake-up on to another waiter. If that turns
        // out to be unnecessary, that waiter just queues itself again, without waking yet another
        // session.
        if !still_queued {
            self.handle_freed(sessions);
        }
    }

    /// Ends all waits of a session that ends. Polled waits may outlive their session.
    pub(crate) fn session_ended(&self, session: u32, sessions: &SessionTable) {
        for class in CLASSES {
            let left = {
                let mut queues = self.queues.lock();
                let waits = &mut queues.waits[session as usize][class as usize];
                // Leave one wait for `deregister`, which removes the session from the queue.
                waits.count = waits.count.min(1);
                waits.count
            };
            if left > 0 {
                self.deregister(class, session, sessions, || true);
            }
        }
    }

    /// Called when a handle has been freed, to wake one waiter. Of the classes that are below their
    /// limits, it chooses the most important one with waiters, and in that class the session that
    /// has waited longest.
    ///
    /// We must not wake a session of a class that is still at its limit. Consider two tasks that
    /// wait for such a class. On each wake-up, a task may first take a handle of a more important
    /// class and give it back, which would wake the other task, and they would do so in turn.
    pub(crate) fn handle_freed(&self, sessions: &SessionTable) {
        if self.waiting.load(Ordering::SeqCst) == 0 {
            return;
        }
        let next = {
            let mut queues = self.queues.lock();
            let in_use = self.free.in_use();
            let mut classes = queues.sessions.iter_mut().zip(self.limits).enumerate();
            let next = classes.find_map(|(class, (queue, limit))| match in_use < limit {
                true => Some((class, queue.pop_front()?)),
                false => None,
            });
            next.map(|(class, session)| {
                queues.waits[session as usize][class].queued = false;
                self.waiting.fetch_sub(1, Ordering::SeqCst);
                session
            })
        };
        if let Some(session) = next {
            sessions.signal(session);
        }
    }
}

/// One wait for a handle. Its session is in the queue from [`HandleWait::enter`] until the wait is
/// dropped or [`HandleWait::leave`] is called. If the session has been woken for a handle by then,
/// another session is woken instead.
#[derive(Debug)]
pub(crate) struct HandleWait {
    admission: Arc<Admission>,
    sessions: Arc<SessionTable>,
    session: u32,
    /// The session's incarnation. After the session has ended, its number may belong to another.
    incarnation: u64,
    /// The class that we're waiting for, if the wait has begun.
    class: Option<Class>,
}

impl HandleWait {
    pub(crate) fn new(
        admission: &Arc<Admission>,
        sessions: &Arc<SessionTable>,
        session: u32,
    ) -> Self {
        Self {
            admission: Arc::clone(admission),
            sessions: Arc::clone(sessions),
            session,
            incarnation: sessions.slot(session).incarnation(),
            class: None,
        }
    }

    /// Whether the wait belongs to this session and not to an earlier one with its number.
    pub(crate) fn is_of(&self, sessions: &Arc<SessionTable>, session: u32) -> bool {
        let incarnation = sessions.slot(session).incarnation();
        Arc::ptr_eq(&self.sessions, sessions)
            && (self.session, self.incarnation) == (session, incarnation)
    }

    /// Adds the session to the queue of the class. If it's already there, it keeps its position.
    /// The caller must then try once more to take a handle.
    pub(crate) fn enter(&mut self, class: Class) {
        if self.class != Some(class) {
            self.leave();
        }
        let new = self.class.replace(class).is_none();
        self.admission.register(class, self.session, new);
    }

    /// Ends the wait, if it has begun.
    pub(crate) fn leave(&mut self) {
        if let Some(class) = self.class.take() {
            let is_mine = || self.sessions.slot(self.session).incarnation() == self.incarnation;
            self.admission.deregister(class, self.session, &self.sessions, is_mine);
        }
    }
}

impl Drop for HandleWait {
    fn drop(&mut self) {
        self.leave();
    }
}
