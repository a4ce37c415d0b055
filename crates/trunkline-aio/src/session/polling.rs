//! How a task waits: it looks, leaves a waker, and looks again.
//!
//! Whoever is told "pending" has left a waker in the session's one event, and the next signal of
//! whatever kind wakes it; a waker that is there stays there until then, so a task may poll for
//! several things in a row, and polls again for all of them when it is woken. A poll submits what is
//! staged, like every wait, and completes what lies ready rather than leaving it to others.

use super::waiting::{complete_first, issued, taken};
use super::{Cancelled, Class, Io, Session};
use crate::callback::Payload;
use crate::core::Completer;
use crate::outcome::Outcome;
use crate::slots::{SlotSet, Slots};
use crate::wait::WaitRef;
use std::task::{Context, Poll};

impl Session {
    /// Takes a handle if one can be had now; otherwise the task is woken when it may.
    ///
    /// # Errors
    /// The session was cancelled.
    pub fn poll_acquire(
        &mut self,
        context: &mut Context<'_>,
        class: Class,
    ) -> Poll<Result<Io<'_>, Cancelled>> {
        if self.queued != Some(class) {
            self.leave_queue();
        }
        self.prepare_acquire();
        let mut taken = self.take_handle(class);
        if taken.is_none() {
            self.submit();
            self.slot().event.register(context.waker());
            self.enter_queue(class);
            taken = self.take_handle(class);
        }
        let cancelled = self.slot().is_cancelled();
        if taken.is_none() && !cancelled {
            return Poll::Pending;
        }
        self.leave_queue();
        Poll::Ready(taken.map(|io| Io::new(self, io)).ok_or(Cancelled))
    }

    /// The result of a slot if it is there; otherwise the task is woken when it may be.
    ///
    /// # Errors
    /// The session was cancelled; the I/O goes on.
    /// # Panics
    /// If the slot was not issued.
    pub fn poll<P: Payload>(
        &mut self,
        context: &mut Context<'_>,
        slots: &mut Slots<P>,
        slot: usize,
    ) -> Poll<Result<Outcome, Cancelled>> {
        let slots = slots.set_mut();
        let (io, issuer) = issued(slots, slot);
        if issuer != self.id && !slots.is_done(slot) {
            self.core.handles[io.index as usize].joiners.insert(self.id);
            self.joined = true;
        }
        let ready = |slots: &SlotSet| slots.is_done(slot).then_some(slot);
        let polled = self.poll_until(context, slots, &[Some((io, issuer))], ready);
        polled.map_ok(|_| taken(slots, slot))
    }

    /// The slot and result of whichever of the set's I/Os has ended; otherwise the task is
    /// woken when one may have.
    ///
    /// # Errors
    /// The session was cancelled; the I/Os go on.
    /// # Panics
    /// If no slot is pending, or one was issued by another session.
    pub fn poll_any<P: Payload>(
        &mut self,
        context: &mut Context<'_>,
        slots: &mut Slots<P>,
    ) -> Poll<Result<(usize, Outcome), Cancelled>> {
        let slots = slots.set_mut();
        self.assert_mine(slots);
        let polled = self.poll_until(context, slots, slots.issued(), SlotSet::first_done);
        polled.map_ok(|slot| (slot, taken(slots, slot)))
    }

    fn poll_until(
        &mut self,
        context: &mut Context<'_>,
        slots: &SlotSet,
        refs: &[Option<(WaitRef, u32)>],
        ready: impl Fn(&SlotSet) -> Option<usize>,
    ) -> Poll<Result<usize, Cancelled>> {
        self.submit();
        if ready(slots).is_none() {
            complete_first(&self.core, refs);
        }
        if ready(slots).is_none() {
            self.slot().event.register(context.waker());
        }
        if let Some(slot) = ready(slots) {
            // The waker may stay: the task may have been told that something else is pending.
            return Poll::Ready(Ok(slot));
        }
        self.pending_unless_cancelled()
    }

    fn pending_unless_cancelled<T>(&self) -> Poll<Result<T, Cancelled>> {
        match self.slot().is_cancelled() {
            true => Poll::Ready(Err(Cancelled)),
            false => Poll::Pending,
        }
    }

    /// Whether somebody's I/O is complete, as [`Session::join`]; otherwise the task is woken when it
    /// may be. It completes the I/O itself if that is all it lacks. Any number of I/Os can be joined
    /// by polling each; who gives one up may be woken once more by it.
    ///
    /// # Errors
    /// The session was cancelled.
    pub fn poll_join(
        &mut self,
        context: &mut Context<'_>,
        io: WaitRef,
    ) -> Poll<Result<(), Cancelled>> {
        self.submit();
        if self.is_complete(io) {
            return Poll::Ready(Ok(()));
        }
        let handle = &self.core.handles[io.index as usize];
        handle.joiners.insert(self.id);
        self.slot().event.register(context.waker());
        self.core.try_complete(io, Completer::Waiter);
        let polled = match self.is_complete(io) {
            true => Poll::Ready(Ok(())),
            false => self.pending_unless_cancelled(),
        };
        if polled.is_pending() {
            self.joined = true;
        } else {
            // It was this I/O's bit: at the start the handle did not yet carry another one.
            handle.joiners.remove(self.id);
        }
        polled
    }

    /// Removes what joins that were given up have left in handles whose I/O still goes on.
    pub(super) fn leave_joined(&mut self) {
        if std::mem::take(&mut self.joined) {
            for handle in &self.core.handles {
                if handle.joiners.contains(self.id) {
                    handle.joiners.remove(self.id);
                }
            }
        }
    }

    /// Whether `done`, as [`Session::wait_for`]; otherwise the task is woken when it may be.
    ///
    /// # Errors
    /// The session was cancelled.
    pub fn poll_for(
        &mut self,
        context: &mut Context<'_>,
        done: impl Fn() -> bool,
    ) -> Poll<Result<(), Cancelled>> {
        self.submit();
        if done() {
            return Poll::Ready(Ok(()));
        }
        self.slot().event.register(context.waker());
        if done() {
            return Poll::Ready(Ok(()));
        }
        self.pending_unless_cancelled()
    }
}
