//! Waiting: puts a thread to sleep, or registers an async task's waker.
//!
//! A stream can be used by a thread or by an async task. A thread sleeps until the next page is
//! available, while a task is polled again when the page may be available. We don't want to
//! implement every state machine twice, so each step that may have to wait takes a `Waiting`
//! argument. This argument determines whether the step blocks, or registers the task's waker and
//! returns [`Poll::Pending`].

use std::task::{Context, Poll};
use trunkline_aio::{Cancelled, Class, Outcome, Payload, PolledWait, Session, Slots, WaitRef};

/// How a step waits.
#[derive(Debug)]
pub(crate) enum Waiting<'a, 'c> {
    /// Put the thread to sleep. The step never returns `Pending`.
    Sleep,
    /// Wake the task of this context later, through its own [`PolledWait`]. Instead of waiting, the
    /// step returns `Pending`. When the task is polled again, the step starts from the beginning,
    /// so it must check again whether it has to wait.
    Wake(&'a mut Context<'c>, &'a mut PolledWait),
}

impl<'c> Waiting<'_, 'c> {
    /// The same way to wait, for a step that takes it by value.
    pub(crate) fn reborrow(&mut self) -> Waiting<'_, 'c> {
        match self {
            Self::Sleep => Waiting::Sleep,
            Self::Wake(context, wait) => Waiting::Wake(context, wait),
        }
    }

    /// Whether the thread sleeps.
    pub(crate) fn is_sleep(&self) -> bool {
        matches!(self, Self::Sleep)
    }

    /// Leaves the queue that an earlier poll has joined to wait for a handle, because the task no
    /// longer needs one. If a handle has been freed for this session in the meantime, the next
    /// session in the queue is woken.
    pub(crate) fn leave_queue(&mut self) {
        if let Self::Wake(_, wait) = self {
            wait.leave_queue();
        }
    }

    /// Waits until `done` returns true. The caller must have registered the session to be woken
    /// when that changes.
    pub(crate) fn until(
        &mut self,
        session: &mut Session,
        done: impl Fn() -> bool,
    ) -> Poll<Result<(), Cancelled>> {
        match self {
            Self::Sleep => Poll::Ready(session.wait_for(done)),
            Self::Wake(context, wait) => session.poll_for(context, wait, done),
        }
    }

    /// Waits until an I/O handle is free, but doesn't acquire it. The step that needs the handle
    /// must acquire it afterwards, and has to wait again if another session got there first.
    pub(crate) fn for_handle(
        &mut self,
        session: &mut Session,
        class: Class,
    ) -> Poll<Result<(), Cancelled>> {
        match self {
            Self::Sleep => Poll::Ready(session.acquire(class).map(drop)),
            Self::Wake(context, wait) => {
                session.poll_acquire(context, wait, class).map(|io| io.map(drop))
            }
        }
    }

    /// Like [`Waiting::for_handle`], but the wait also ends once `done` returns true. The caller
    /// must have registered the session to be woken when that changes.
    pub(crate) fn for_handle_unless(
        &mut self,
        session: &mut Session,
        class: Class,
        done: impl Fn() -> bool,
    ) -> Poll<Result<(), Cancelled>> {
        match self {
            Self::Sleep => Poll::Ready(session.acquire_unless(class, done).map(drop)),
            Self::Wake(context, wait) => {
                session.poll_acquire_unless(context, wait, class, done).map(|io| io.map(drop))
            }
        }
    }

    /// Waits until an I/O has completed, no matter which session issued it.
    pub(crate) fn for_io(
        &mut self,
        session: &mut Session,
        io: WaitRef,
    ) -> Poll<Result<(), Cancelled>> {
        match self {
            Self::Sleep => Poll::Ready(session.join(io)),
            Self::Wake(context, wait) => session.poll_join(context, wait, io),
        }
    }

    /// Waits until a slot's I/O has ended.
    pub(crate) fn for_slot<P: Payload>(
        &mut self,
        session: &mut Session,
        slots: &mut Slots<P>,
        slot: usize,
    ) -> Poll<Result<Outcome, Cancelled>> {
        match self {
            Self::Sleep => Poll::Ready(session.wait(slots, slot)),
            Self::Wake(context, wait) => session.poll(context, wait, slots, slot),
        }
    }

    /// Waits until any slot's I/O has ended.
    pub(crate) fn for_any_slot<P: Payload>(
        &mut self,
        session: &mut Session,
        slots: &mut Slots<P>,
    ) -> Poll<Result<(usize, Outcome), Cancelled>> {
        match self {
            Self::Sleep => Poll::Ready(session.wait_any(slots)),
            Self::Wake(context, wait) => session.poll_any(context, wait, slots),
        }
    }
}

/// The most pages that a task passes in one turn without having to wait. A page of an index with all
/// its matches takes a few microseconds, so a turn takes less than a millisecond.
const PAGES_PER_TURN: u32 = 64;

/// Ends the turns of a loop over pages that may all be cached. Such a loop never waits, so without
/// this it would neither notice a cancel nor let other tasks run.
#[derive(Debug, Default)]
pub(crate) struct Turns {
    /// The pages of the current turn.
    pages: u32,
}

impl Turns {
    /// Call this before each page. When the turn is over, a task is woken, so that it is polled again,
    /// and gets `Pending`, and so does a caller that must not wait (`None`). A thread doesn't share
    /// its turn.
    ///
    /// # Errors
    /// The session was cancelled.
    pub(crate) fn next_page(
        &mut self,
        session: &Session,
        waiting: Option<&mut Waiting<'_, '_>>,
    ) -> Poll<Result<(), Cancelled>> {
        if session.is_cancelled() {
            return Poll::Ready(Err(Cancelled));
        }
        self.pages += 1;
        if self.pages > PAGES_PER_TURN {
            self.pages = 0;
            match waiting {
                Some(Waiting::Sleep) => {}
                Some(Waiting::Wake(context, _)) => {
                    context.waker().wake_by_ref();
                    return Poll::Pending;
                }
                None => return Poll::Pending,
            }
        }
        Poll::Ready(Ok(()))
    }
}

/// The result of a step that was given [`Waiting::Sleep`].
pub(crate) fn slept<T>(poll: Poll<T>) -> T {
    match poll {
        Poll::Ready(value) => value,
        Poll::Pending => unreachable!("a step that sleeps returned Pending"),
    }
}
