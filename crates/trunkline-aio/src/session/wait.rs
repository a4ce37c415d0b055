//! Waiting for the session's own I/O, for other sessions' I/O, or for a notification. Waiting for a
//! handle is in `acquire`.
//!
//! A thread sleeps in [`Session::sleep_until`], while a task of an async runtime registers a waker
//! and returns. The steps are the same for every wait:
//!
//! ```text
//!   submit what is staged           so that no other session waits for I/O that is not submitted
//!   read the epoch of the event
//!   announce the wait               thread: in the mailbox     task: its waker in the event
//!   attempt                         complete the I/O, take the handle, look at the condition
//!   sleep until the epoch moves     thread: and complete what was put into the mailbox
//! ```
//!
//! We always announce the wait before we make the attempt. So if an event occurs after the attempt,
//! the announcement is already visible and the session is signalled. This way, no wake-up can be
//! lost. PostgreSQL does the same with `ConditionVariablePrepareToSleep`.
//!
//! **The mailbox.** Before a thread goes to sleep waiting for an I/O, it announces this in its
//! mailbox. The driver that reaps the I/O can then hand it to this thread for completion. A task
//! must not do this, because it might not be polled again for a long time, and until then the I/O
//! would not be completed. For tasks, helpers complete the I/O instead.
//!
//! **Wakers.** The functions whose names begin with `poll` are the variants for tasks. Each task
//! passes its own [`PolledWait`], which stores the task's waker. If one of these functions returns
//! `Poll::Pending`, the next signal of any kind wakes the task, along with the session's other
//! tasks. The task must then poll again for everything it is waiting for. The waker remains
//! registered until that signal, so a task can poll for several things one after another.
//!
//! **Panics.** A condition passed to [`Session::wait_for`] is the caller's code and may panic. The
//! wait is then over, and the destructor of [`Announced`] completes the I/O that a driver may have
//! assigned to the session. Otherwise that I/O's handle would be lost.

use super::Session;
use super::cancel::Cancelled;
use super::polled_wait::PolledWait;
use crate::clock;
use crate::lock_free::mailbox::Wish;
use crate::lock_free::outcome::Outcome;
use crate::lock_free::wait_ref::WaitRef;
use crate::storage::operation::Operation;
use crate::tables::callback::Payload;
use crate::tables::class::Class;
use crate::tables::completer::Completer;
use crate::tables::slots::{SlotSet, Slots};
use std::task::{Context, Poll, Waker};

/// What a wait does while its condition is false.
#[derive(Clone, Copy)]
enum Pause<'w> {
    /// The thread sleeps.
    Sleep,
    /// The task returns `Poll::Pending` and is woken later.
    Wake(&'w Waker, &'w PolledWait),
}

impl Pause<'_> {
    fn sleeps(self) -> bool {
        matches!(self, Pause::Sleep)
    }
}

/// One iteration of a thread's wait, which has been announced in the mailbox. Dropping it ends the
/// iteration.
struct Announced<'s> {
    session: &'s mut Session,
    /// Whether the attempt has returned. If it hasn't, it has panicked.
    attempted: bool,
}

impl Drop for Announced<'_> {
    fn drop(&mut self) {
        // Empty the mailbox even if the wait is over for another reason. If a driver has assigned
        // an I/O to this session, no other thread will complete it.
        self.session.complete_assigned();
        if !self.attempted {
            self.session.handle_wait.leave();
        }
    }
}

/// What a session waits for.
#[derive(Clone, Copy)]
enum Target<'a> {
    /// A condition that becomes true when the session is notified, or when one of its own I/Os
    /// completes.
    Notification,
    /// An I/O this session issued.
    Own(WaitRef),
    /// An I/O another session issued.
    Join(WaitRef),
    /// Whichever of these I/Os completes first. All were issued by this session.
    AnyOf(&'a [Option<(WaitRef, u32)>]),
}

impl Session {
    /// Waits until `done` returns true. We call `done` again whenever the session is notified
    /// ([`crate::Notifier`]) and whenever one of its own I/Os completes.
    ///
    /// # Errors
    /// The session was cancelled.
    pub fn wait_for(&mut self, done: impl Fn() -> bool) -> Result<(), Cancelled> {
        slept(self.wait_until(Pause::Sleep, Target::Notification, |_| done()))
    }

    /// [`Session::wait_for`] for a task.
    ///
    /// # Errors
    /// The session was cancelled.
    /// # Panics
    /// If `wait` belongs to another session.
    pub fn poll_for(
        &mut self,
        context: &mut Context<'_>,
        wait: &mut PolledWait,
        done: impl Fn() -> bool,
    ) -> Poll<Result<(), Cancelled>> {
        self.wait_until(Pause::Wake(context.waker(), wait), Target::Notification, |_| done())
    }

    /// Waits for the I/O of a slot and takes its result.
    ///
    /// # Errors
    /// The session was cancelled. The I/O continues.
    /// # Panics
    /// If the slot was not issued.
    pub fn wait<P: Payload>(
        &mut self,
        slots: &mut Slots<P>,
        slot: usize,
    ) -> Result<Outcome, Cancelled> {
        slept(self.wait_for_slot(Pause::Sleep, slots.set_mut(), slot))
    }

    /// [`Session::wait`] for a task.
    ///
    /// # Errors
    /// The session was cancelled. The I/O continues.
    /// # Panics
    /// If the slot was not issued, or `wait` belongs to another session.
    pub fn poll<P: Payload>(
        &mut self,
        context: &mut Context<'_>,
        wait: &mut PolledWait,
        slots: &mut Slots<P>,
        slot: usize,
    ) -> Poll<Result<Outcome, Cancelled>> {
        self.wait_for_slot(Pause::Wake(context.waker(), wait), slots.set_mut(), slot)
    }

    /// Waits until one of the set's I/Os is complete. Returns its slot and result.
    ///
    /// # Errors
    /// The session was cancelled. The I/O continues.
    /// # Panics
    /// If no slot is pending, or one was issued by another session.
    pub fn wait_any<P: Payload>(
        &mut self,
        slots: &mut Slots<P>,
    ) -> Result<(usize, Outcome), Cancelled> {
        slept(self.wait_for_any(Pause::Sleep, slots.set_mut()))
    }

    /// [`Session::wait_any`] for a task.
    ///
    /// # Errors
    /// The session was cancelled. The I/O continues.
    /// # Panics
    /// If no slot is pending, or one was issued by another session, or `wait` belongs to another
    /// session.
    pub fn poll_any<P: Payload>(
        &mut self,
        context: &mut Context<'_>,
        wait: &mut PolledWait,
        slots: &mut Slots<P>,
    ) -> Poll<Result<(usize, Outcome), Cancelled>> {
        self.wait_for_any(Pause::Wake(context.waker(), wait), slots.set_mut())
    }

    /// Waits until `count` of the set's I/Os are done. If fewer are pending, waits for all of
    /// those. The results remain in the slots. The session is woken only once, so this is useful
    /// for an issuer that refills its window several I/Os at a time.
    ///
    /// # Errors
    /// The session was cancelled. The I/O continues.
    /// # Panics
    /// If a slot was issued by another session.
    pub fn wait_some<P: Payload>(
        &mut self,
        slots: &Slots<P>,
        count: usize,
    ) -> Result<(), Cancelled> {
        let set = slots.set();
        self.assert_issued_here(set);
        let count = count.min(set.pending());
        let target = Target::AnyOf(set.issued());
        let result = self.wait_until(Pause::Sleep, target, |session| {
            session.slot().event().has(count, || set.done_count())
        });
        self.slot().event().has_enough();
        slept(result)
    }

    /// Waits until an I/O is complete. Any session may have issued the I/O, but only the issuer
    /// receives its result. This corresponds to PostgreSQL's `pgaio_wref_wait`.
    ///
    /// # Errors
    /// The session was cancelled.
    pub fn join(&mut self, io: WaitRef) -> Result<(), Cancelled> {
        slept(self.wait_for_complete(Pause::Sleep, io))
    }

    /// Like [`Session::join`], but for a task. A task can join any number of I/Os by polling for
    /// each of them. If the task abandons a join, that I/O may still wake the session once.
    ///
    /// # Errors
    /// The session was cancelled.
    /// # Panics
    /// If `wait` belongs to another session.
    pub fn poll_join(
        &mut self,
        context: &mut Context<'_>,
        wait: &mut PolledWait,
        io: WaitRef,
    ) -> Poll<Result<(), Cancelled>> {
        self.wait_for_complete(Pause::Wake(context.waker(), wait), io)
    }

    /// Whether an I/O is complete. The I/O may belong to any session.
    pub fn is_complete(&self, io: WaitRef) -> bool {
        self.handles().is_complete(io)
    }

    fn wait_for_slot(
        &mut self,
        pause: Pause<'_>,
        slots: &mut SlotSet,
        slot: usize,
    ) -> Poll<Result<Outcome, Cancelled>> {
        let Some((io, issuer)) = slots.issued()[slot] else { not_issued(slot) };
        let target = if issuer == self.id { Target::Own(io) } else { Target::Join(io) };
        let waited = self.wait_until(pause, target, |_| slots.is_done(slot));
        waited.map_ok(|()| taken(slots, slot))
    }

    fn wait_for_any(
        &mut self,
        pause: Pause<'_>,
        slots: &mut SlotSet,
    ) -> Poll<Result<(usize, Outcome), Cancelled>> {
        assert!(slots.pending() > 0, "nothing to wait for");
        self.assert_issued_here(slots);
        let target = Target::AnyOf(slots.issued());
        let waited = self.wait_until(pause, target, |_| slots.first_done().is_some());
        waited.map_ok(|()| {
            let slot = slots.first_done().unwrap_or_default();
            (slot, taken(slots, slot))
        })
    }

    fn wait_for_complete(&mut self, pause: Pause<'_>, io: WaitRef) -> Poll<Result<(), Cancelled>> {
        self.wait_until(pause, Target::Join(io), |session| session.is_complete(io))
    }

    /// Panics if any of the I/Os was issued by another session. While a session waits for any of
    /// several I/Os, it is woken only when one of its own I/Os completes, so it must have issued
    /// them all itself.
    fn assert_issued_here(&self, slots: &SlotSet) {
        let mine = slots.issued().iter().flatten().all(|(_, issuer)| *issuer == self.id);
        assert!(mine, "waiting for any slot needs slots of this session");
    }

    /// Waits for I/O or a notification, until `done`.
    fn wait_until(
        &mut self,
        pause: Pause<'_>,
        target: Target<'_>,
        done: impl Fn(&Self) -> bool,
    ) -> Poll<Result<(), Cancelled>> {
        if let Pause::Wake(_, wait) = pause {
            self.assert_waits_here(wait);
        }
        // If a thread doesn't have to wait, its batch remains open. For a task we always submit,
        // because it may be a long time before the task is polled again.
        if pause.sleeps() && done(self) {
            return Poll::Ready(Ok(()));
        }
        self.submit();
        // Try once before announcing the wait. Otherwise, a task that completes its own I/O would
        // wake itself.
        if self.attempt(target, &done) {
            return Poll::Ready(Ok(()));
        }
        // Check whether the joiner bit we set below belongs to this I/O. If the I/O is already
        // complete, the handle may be in use for a new I/O, and this session may have set the bit
        // earlier when it polled to join that one. In that case we must not remove the bit.
        let joins = matches!(target, Target::Join(io) if !self.is_complete(io));
        let wish = match target {
            Target::Own(io) | Target::Join(io) => Wish::For(io),
            Target::AnyOf(_) | Target::Notification => Wish::Any,
        };
        let kind = self.kind_of(target);
        let attempt = |session: &mut Self| {
            if let Target::Join(io) = target {
                // We have to set the bit in every iteration. If the completion of the handle's
                // previous I/O is slow, it may remove this bit while waking its joiners. But then
                // it signals this session too, so we get here again.
                session.handles().handle(io.index()).join(session.id);
            }
            session.attempt(target, &done).then_some(())
        };
        let result = match pause {
            Pause::Sleep => Poll::Ready(self.sleep_until(wish, kind, attempt)),
            Pause::Wake(waker, wait) => {
                wait.register(waker);
                let got = attempt(self);
                self.polled(got)
            }
        };
        if let Target::Join(io) = target {
            if result.is_pending() {
                self.joined = true;
            } else if joins && self.handles().handle(io.index()).leave(self.id) {
                // All waits of the session share one bit, and another task may still be waiting for
                // this I/O. Wake it, so that it polls again and sets the bit again.
                self.slot().event().wake_tasks();
            }
        }
        result
    }

    /// Returns true if the wait is over. If it isn't, looks for one of the target's I/Os that has a
    /// raw result and hasn't been claimed by any thread, completes it, and checks again.
    fn attempt(&self, target: Target<'_>, done: impl Fn(&Self) -> bool) -> bool {
        if done(self) {
            return true;
        }
        let complete = |io| self.completions().try_complete(io, Completer::Waiter);
        let completed = match target {
            Target::Own(io) | Target::Join(io) => complete(io),
            Target::AnyOf(issued) => issued.iter().flatten().any(|&(io, _)| complete(io)),
            Target::Notification => false,
        };
        completed && done(self)
    }

    /// This is the only place where a session sleeps. It returns once `attempt` returns something
    /// or the session is cancelled. The caller must have submitted all staged I/O.
    pub(super) fn sleep_until<T>(
        &mut self,
        wish: Wish,
        kind: Option<(Class, Operation)>,
        mut attempt: impl FnMut(&mut Self) -> Option<T>,
    ) -> Result<T, Cancelled> {
        let (started, mut slept) = (clock::now(), false);
        let result = loop {
            let seen = self.slot().event().epoch();
            self.slot().mailbox().post(wish);
            let mut round = Announced { session: &mut *self, attempted: false };
            let got = attempt(round.session);
            round.attempted = true;
            // Check for a cancel only after the attempt. If the attempt succeeded, we must return
            // its result even if the session was cancelled, because otherwise an acquired handle
            // would be lost.
            let over = got.is_some() || round.session.slot().is_cancelled();
            if !over {
                slept = true;
                round.session.slot().event().wait(seen, None);
            }
            drop(round);
            if over {
                break got.ok_or(Cancelled);
            }
        };
        if slept {
            let waited = clock::now().since(started);
            self.waits += 1;
            self.wait_time += waited;
            self.completions().statistics().waited(self.id, kind, waited);
        }
        result
    }

    /// What a poll returns after its attempt. The cancel comes second, as in `sleep_until`.
    pub(super) fn polled<T>(&self, got: Option<T>) -> Poll<Result<T, Cancelled>> {
        match got {
            Some(got) => Poll::Ready(Ok(got)),
            None if self.slot().is_cancelled() => Poll::Ready(Err(Cancelled)),
            None => Poll::Pending,
        }
    }

    /// Completes the I/O a driver has assigned to this session, if any.
    fn complete_assigned(&self) {
        if let Some(index) = self.slot().mailbox().take() {
            let io = self.handles().wait_ref(index);
            self.completions().try_complete(io, Completer::Waiter);
        }
    }

    /// Returns the class and operation of the I/O that the session is waiting for, which we need
    /// for the statistics. If it's waiting for several I/Os, we use the first one.
    fn kind_of(&self, target: Target<'_>) -> Option<(Class, Operation)> {
        let io = match target {
            Target::Own(io) | Target::Join(io) => io,
            Target::AnyOf(issued) => issued.iter().flatten().next()?.0,
            Target::Notification => return None,
        };
        let handle = self.handles().handle(io.index());
        Some((handle.class(), handle.operation()))
    }
}

/// Unwraps the result of a wait with [`Pause::Sleep`], which never returns `Pending`.
fn slept<T>(result: Poll<T>) -> T {
    match result {
        Poll::Ready(result) => result,
        Poll::Pending => unreachable!("a thread sleeps until its wait is over"),
    }
}

#[cold]
#[expect(clippy::panic, reason = "documented: waiting for a slot that was not issued")]
fn not_issued(slot: usize) -> ! {
    panic!("slot {slot} has no I/O to wait for")
}

fn taken(slots: &mut SlotSet, slot: usize) -> Outcome {
    let outcome = slots.take(slot);
    assert!(outcome.is_some(), "slot {slot} was found done");
    outcome.unwrap_or_default()
}
