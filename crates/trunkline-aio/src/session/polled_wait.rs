//! Polled waits: what a task needs to wait in a session, which is a place for its waker and a wait
//! for a handle.
//!
//! Several tasks can poll the same session. Each of them uses its own [`PolledWait`], so a task is
//! woken no matter what the other tasks poll for, and a task that gives up doesn't use up a wake-up
//! that another one needs.

use super::Session;
use crate::tables::admission::HandleWait;
use crate::tables::class::Class;
use crate::tables::session_table::SessionTable;
use std::sync::Arc;
use std::task::Waker;

/// The wait of a task that polls a session. It is created by [`Session::polled_wait`].
///
/// A task that gets `Poll::Pending` is woken by the next signal of any kind to its session. It must
/// then poll again for everything it is waiting for. A task can use the same `PolledWait` to poll
/// for several things, but two tasks need two of them, because a wait remembers only the waker of
/// its last poll.
///
/// A session can have any number of polled waits. All the memory that a wait needs is allocated
/// when it is created, so polling never allocates any.
///
/// Dropping the `PolledWait` ends the wait. If the session was woken for a free handle because of
/// this wait, the next session in the queue is woken instead.
#[derive(Debug)]
pub struct PolledWait {
    sessions: Arc<SessionTable>,
    session: u32,
    /// The waker's place in the session's event.
    place: u32,
    handle: HandleWait,
}

impl Session {
    /// Creates a wait for a task that polls this session. This may allocate.
    pub fn polled_wait(&self) -> PolledWait {
        let completions = self.completions();
        let sessions = Arc::clone(completions.sessions());
        let handle = HandleWait::new(completions.admission(), &sessions, self.id);
        let place = sessions.slot(self.id).event().wakers().open();
        PolledWait { sessions, session: self.id, place, handle }
    }

    /// # Panics
    /// If the wait belongs to another session.
    pub(super) fn assert_waits_here(&self, wait: &PolledWait) {
        let mine = wait.handle.is_of(self.completions().sessions(), self.id);
        assert!(mine, "a session was polled with the wait of another session");
    }
}

impl PolledWait {
    /// Ends the wait for a handle, just as dropping does, but the `PolledWait` can still be used. A
    /// task should call this if it has polled for a handle that it no longer needs.
    pub fn leave_queue(&mut self) {
        self.handle.leave();
    }

    /// Wakes the tasks of the session, so that they poll again. This is for a thread that has ended
    /// what one of them was waiting for, for example its place in a queue.
    pub fn wake_tasks(&self) {
        self.sessions.slot(self.session).event().wake_tasks();
    }

    /// Joins the queue for a handle.
    pub(super) fn enter_queue(&mut self, class: Class) {
        self.handle.enter(class);
    }

    /// Registers the waker for the session's next signal.
    pub(super) fn register(&self, waker: &Waker) {
        self.sessions.slot(self.session).event().register(self.place, waker);
    }
}

impl Drop for PolledWait {
    fn drop(&mut self) {
        // The destructor of `handle` leaves the queue.
        self.sessions.slot(self.session).event().wakers().close(self.place);
    }
}
