//! Waiting for a handle, for the session's own I/O, for other sessions' I/O, or for a notification.
//!
//! All waits share one loop, [`Session::pause_until`]. A thread sleeps in it, whereas a task of an
//! async runtime registers a waker and returns. Every wait goes through the same steps:
//!
//! ```text
//!   submit what is staged           so that no other session waits for I/O that is not submitted
//!   read the epoch of the event
//!   announce the wait               thread: in the mailbox     task: a waker in the event
//!   attempt                         complete the I/O, take the handle, look at the condition
//!   sleep until the epoch moves     thread: and complete what was put into the mailbox
//! ```
//!
//! Because we announce the wait before making the attempt, any event that occurs after the attempt
//! finds the announcement and signals the session, so no wake-up is lost.
//! `ConditionVariablePrepareToSleep` follows the same protocol.
//!
//! **The mailbox.** A thread that is about to sleep for an I/O announces this in its mailbox, so
//! that the driver that reaps the I/O can hand it over for completion. A task must not do this: it
//! might not be polled again for a long time, and the I/O would stay incomplete until then. Helpers
//! complete a task's I/O instead.
//!
//! **Wakers.** `poll_x` is the variant of `x` for tasks. A task that receives `Poll::Pending` is
//! woken by the next signal of any kind, and must then poll again for everything it waits for. The
//! waker stays registered until that signal, so a task may poll for several things in a row.

use super::Session;
use super::cancel::Cancelled;
use super::io::Io;
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
    Wake(&'w Waker),
}

impl Pause<'_> {
    fn sleeps(self) -> bool {
        matches!(self, Pause::Sleep)
    }
}

/// What a session waits for.
#[derive(Clone, Copy)]
enum Target<'a> {
    /// A condition that becomes true through a notification or a completion of the session's own
    /// I/O.
    Notification,
    /// An I/O this session issued.
    Own(WaitRef),
    /// An I/O another session issued.
    Join(WaitRef),
    /// Whichever of these I/Os completes first. All were issued by this session.
    AnyOf(&'a [Option<(WaitRef, u32)>]),
}

impl Session {
    /// Waits until `done` returns true. We call `done` again after every notification
    /// ([`crate::Notifier`]) and after every completion of the session's own I/O.
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
    pub fn poll_for(
        &mut self,
        context: &mut Context<'_>,
        done: impl Fn() -> bool,
    ) -> Poll<Result<(), Cancelled>> {
        self.wait_until(Pause::Wake(context.waker()), Target::Notification, |_| done())
    }

    /// Acquires a handle. Waits if the class limit or the session's quota has been reached.
    ///
    /// # Errors
    /// The session was cancelled.
    pub fn acquire(&mut self, class: Class) -> Result<Io<'_>, Cancelled> {
        self.leave_queue();
        let io = slept(self.wait_for_handle(Pause::Sleep, class))?;
        Ok(Io::new(self, io))
    }

    /// [`Session::acquire`] for a task. The session keeps its position in the queue between polls.
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
        let polled = self.wait_for_handle(Pause::Wake(context.waker()), class);
        polled.map_ok(|io| Io::new(self, io))
    }

    /// Acquires a handle if one is available now. If a task of this session has polled for a
    /// handle, the session loses its position in the queue.
    pub fn try_acquire(&mut self, class: Class) -> Option<Io<'_>> {
        self.leave_queue();
        self.prepare_acquire();
        let io = self.take_handle(class)?;
        Some(Io::new(self, io))
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
    /// If the slot was not issued.
    pub fn poll<P: Payload>(
        &mut self,
        context: &mut Context<'_>,
        slots: &mut Slots<P>,
        slot: usize,
    ) -> Poll<Result<Outcome, Cancelled>> {
        self.wait_for_slot(Pause::Wake(context.waker()), slots.set_mut(), slot)
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
    /// If no slot is pending, or one was issued by another session.
    pub fn poll_any<P: Payload>(
        &mut self,
        context: &mut Context<'_>,
        slots: &mut Slots<P>,
    ) -> Poll<Result<(usize, Outcome), Cancelled>> {
        self.wait_for_any(Pause::Wake(context.waker()), slots.set_mut())
    }

    /// Waits until `count` of the set's I/Os are done, or all pending I/Os if there are fewer. The
    /// results stay in the slots. The session is woken just once, which suits an issuer that
    /// refills its window in groups.
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

    /// Waits until an I/O is complete. The I/O may belong to any session, and its result goes only
    /// to its issuer. PostgreSQL: `pgaio_wref_wait`.
    ///
    /// # Errors
    /// The session was cancelled.
    pub fn join(&mut self, io: WaitRef) -> Result<(), Cancelled> {
        slept(self.wait_for_complete(Pause::Sleep, io))
    }

    /// [`Session::join`] for a task. A task may join any number of I/Os by polling for each of
    /// them. If it abandons a join, that I/O may still wake it once.
    ///
    /// # Errors
    /// The session was cancelled.
    pub fn poll_join(
        &mut self,
        context: &mut Context<'_>,
        io: WaitRef,
    ) -> Poll<Result<(), Cancelled>> {
        self.wait_for_complete(Pause::Wake(context.waker()), io)
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

    /// Panics if another session issued one of the I/Os. A session waiting for any of several I/Os
    /// is woken only by its own I/Os' completions, so it must have issued all of them itself.
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
        // A thread that doesn't have to wait keeps its batch open. A task always submits, because
        // it may not be polled again for a long time.
        if pause.sleeps() && done(self) {
            return Poll::Ready(Ok(()));
        }
        self.submit();
        // Try once before announcing the wait: a task that completes its own I/O would otherwise
        // wake itself.
        if self.attempt(target, &done) {
            return Poll::Ready(Ok(()));
        }
        // Whether the joiner bit set below belongs to this I/O. If the I/O is already complete, the
        // handle may have been reused, and an earlier polled join of the handle's new I/O may have
        // set the bit. In that case we must not remove it.
        let joins = matches!(target, Target::Join(io) if !self.is_complete(io));
        let wish = match target {
            Target::Own(io) | Target::Join(io) => Wish::For(io),
            Target::AnyOf(_) | Target::Notification => Wish::Any,
        };
        let kind = self.kind_of(target);
        let result = self.pause_until(pause, wish, kind, |session| {
            if let Target::Join(io) = target {
                // Set the bit in every round. The completion of the handle's previous I/O may be
                // slow to drain the joiners and remove this bit, but then it also signals this
                // session.
                session.handles().handle(io.index()).joiners().insert(session.id);
            }
            session.attempt(target, &done).then_some(())
        });
        if let Target::Join(io) = target {
            if result.is_pending() {
                self.joined = true;
            } else if joins {
                self.handles().handle(io.index()).joiners().remove(self.id);
            }
        }
        result
    }

    /// Whether the wait is over. If not, completes an I/O of the target that has a raw result but
    /// hasn't been claimed by any thread, and looks again.
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

    /// Waits for a handle in the given class.
    fn wait_for_handle(
        &mut self,
        pause: Pause<'_>,
        class: Class,
    ) -> Poll<Result<WaitRef, Cancelled>> {
        self.prepare_acquire();
        if let Some(io) = self.take_handle(class) {
            self.leave_queue();
            return Poll::Ready(Ok(io));
        }
        self.submit();
        let result = self.pause_until(pause, Wish::Any, None, |session| {
            session.enter_queue(class);
            session.take_handle(class)
        });
        if result.is_ready() {
            self.leave_queue();
        }
        result
    }

    /// The only place where a session sleeps: until `attempt` returns something, or the session is
    /// cancelled. The caller must have submitted its staged I/O.
    fn pause_until<T>(
        &mut self,
        pause: Pause<'_>,
        wish: Wish,
        kind: Option<(Class, Operation)>,
        mut attempt: impl FnMut(&mut Self) -> Option<T>,
    ) -> Poll<Result<T, Cancelled>> {
        // A task that polls never sleeps, so it needn't read the clock.
        let (started, mut slept) = (pause.sleeps().then(clock::now), false);
        let result = loop {
            let seen = self.slot().event().epoch();
            match pause {
                Pause::Sleep => self.slot().mailbox().post(wish),
                Pause::Wake(waker) => self.slot().event().register(waker),
            }
            let got = attempt(self);
            // Check for a cancel only after the attempt. If the attempt succeeded, we return its
            // result even after a cancel, so that an acquired handle isn't lost.
            let cancelled = self.slot().is_cancelled();
            let over = got.is_some() || cancelled;
            if !pause.sleeps() {
                if !over {
                    return Poll::Pending;
                }
            } else {
                if !over {
                    slept = true;
                    self.slot().event().wait(seen, None);
                }
                // Take the mailbox even if the wait is over for another reason. If a driver has
                // assigned an I/O to this session, no other thread will complete it.
                self.complete_assigned();
            }
            if over {
                break got.ok_or(Cancelled);
            }
        };
        if let Some(started) = started.filter(|_| slept) {
            let waited = clock::now().since(started);
            self.waits += 1;
            self.wait_time += waited;
            self.completions().statistics().waited(self.id, kind, waited);
        }
        Poll::Ready(result)
    }

    /// Completes the I/O a driver has assigned to this session, if any.
    fn complete_assigned(&self) {
        if let Some(index) = self.slot().mailbox().take() {
            let io = self.handles().wait_ref(index);
            self.completions().try_complete(io, Completer::Waiter);
        }
    }

    /// Joins the queue for a free handle, or keeps its position there. A session at its quota
    /// doesn't queue: its own completions wake it, and it must not consume a wake-up meant for a
    /// session that could use the handle.
    fn enter_queue(&mut self, class: Class) {
        let admission = self.completions().admission();
        if !admission.is_at_quota(self.slot(), class) {
            admission.register(class, self.id);
            self.queued = Some(class);
        }
    }

    fn prepare_acquire(&mut self) {
        // A leaked `Io` (`mem::forget`) must not occupy a handle permanently.
        if self.reclaim() {
            self.completions().statistics().general().leaked.add(1);
        }
        self.submit_if_old();
    }

    /// Takes a free handle without waiting, if the quota and the limit permit. We count the handle
    /// towards the quota before handing it out, so the count is never too low.
    fn take_handle(&mut self, class: Class) -> Option<WaitRef> {
        let admission = self.completions().admission();
        if admission.is_at_quota(self.slot(), class) {
            return None;
        }
        let io = self.handles().take(admission.limit(class), self.id, class, || {
            self.slot().count_handle();
        })?;
        self.handed_out = Some(io);
        Some(io)
    }

    /// Class and operation of the I/O the session is waiting for, for the statistics. If it is
    /// waiting for more than one I/O, the first one counts.
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
