//! Waiting: by sleeping, or by having a task woken.
//!
//! A stream can be used by a thread, which sleeps until the next page is there, and by an async
//! task, which is polled again when it may be there. Both go through the same steps. This type is
//! the only difference: every step takes it, and either blocks or returns [`Poll::Pending`] after
//! registering the task's waker.

use std::task::{Context, Poll};
use trunkline_aio::{Cancelled, Class, Outcome, Payload, Session, Slots, WaitRef};

/// How a step waits.
#[derive(Debug)]
pub(crate) enum Waiting<'a, 'c> {
    /// The thread sleeps. The step never returns `Pending`.
    Sleep,
    /// The task of this context is woken. The step returns `Pending` instead of waiting.
    Wake(&'a mut Context<'c>),
}

impl Waiting<'_, '_> {
    /// Whether the thread sleeps.
    pub(crate) fn is_sleep(&self) -> bool {
        matches!(self, Self::Sleep)
    }

    /// Until `done` holds. The session must be notified when it may.
    pub(crate) fn until(
        &mut self,
        session: &mut Session,
        done: impl Fn() -> bool,
    ) -> Poll<Result<(), Cancelled>> {
        match self {
            Self::Sleep => Poll::Ready(session.wait_for(done)),
            Self::Wake(context) => session.poll_for(context, done),
        }
    }

    /// Until an I/O handle is free. The handle is given up again: the step that needs it acquires
    /// it.
    pub(crate) fn for_handle(
        &mut self,
        session: &mut Session,
        class: Class,
    ) -> Poll<Result<(), Cancelled>> {
        match self {
            Self::Sleep => Poll::Ready(session.acquire(class).map(drop)),
            Self::Wake(context) => session.poll_acquire(context, class).map(|io| io.map(drop)),
        }
    }

    /// Until an I/O has ended, whichever session issued it.
    pub(crate) fn for_io(
        &mut self,
        session: &mut Session,
        io: WaitRef,
    ) -> Poll<Result<(), Cancelled>> {
        match self {
            Self::Sleep => Poll::Ready(session.join(io)),
            Self::Wake(context) => session.poll_join(context, io),
        }
    }

    /// Until the I/O of a slot has ended.
    pub(crate) fn for_slot<P: Payload>(
        &mut self,
        session: &mut Session,
        slots: &mut Slots<P>,
        slot: usize,
    ) -> Poll<Result<Outcome, Cancelled>> {
        match self {
            Self::Sleep => Poll::Ready(session.wait(slots, slot)),
            Self::Wake(context) => session.poll(context, slots, slot),
        }
    }

    /// Until the I/O of any slot has ended.
    pub(crate) fn for_any_slot<P: Payload>(
        &mut self,
        session: &mut Session,
        slots: &mut Slots<P>,
    ) -> Poll<Result<(usize, Outcome), Cancelled>> {
        match self {
            Self::Sleep => Poll::Ready(session.wait_any(slots)),
            Self::Wake(context) => session.poll_any(context, slots),
        }
    }
}

/// The result of a step that was given [`Waiting::Sleep`].
pub(crate) fn slept<T>(poll: Poll<T>) -> T {
    match poll {
        Poll::Ready(value) => value,
        Poll::Pending => unreachable!("a step that sleeps returned Pending"),
    }
}
