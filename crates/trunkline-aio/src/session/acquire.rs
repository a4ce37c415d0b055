//! Acquiring a handle, and waiting for one.
//!
//! The steps of the wait are those described in `wait`: the session first joins the queue of its
//! class (`tables/admission.rs`), and then tries once more to take a handle. Its thread and each of
//! its tasks have separate waits. So if one of them no longer needs a handle, the session keeps its
//! position in the queue for the others.

use super::Session;
use super::cancel::Cancelled;
use super::io::Io;
use super::polled_wait::PolledWait;
use crate::lock_free::mailbox::Wish;
use crate::lock_free::wait_ref::WaitRef;
use crate::tables::class::Class;
use std::task::{Context, Poll, Waker};

impl Session {
    /// Acquires a handle. Waits if the class limit or the session's quota has been reached.
    ///
    /// # Errors
    /// The session was cancelled.
    pub fn acquire(&mut self, class: Class) -> Result<Io<'_>, Cancelled> {
        let io = loop {
            // Without a condition the wait ends only with a handle.
            if let Some(io) = self.wait_for_handle(class, || false)? {
                break io;
            }
        };
        Ok(Io::new(self, io))
    }

    /// Like [`Session::acquire`], but gives up and returns `None` if `done` returns true before
    /// there is a handle. We call `done` again whenever [`Session::wait_for`] would.
    ///
    /// # Errors
    /// The session was cancelled.
    pub fn acquire_unless(
        &mut self,
        class: Class,
        done: impl Fn() -> bool,
    ) -> Result<Option<Io<'_>>, Cancelled> {
        let io = self.wait_for_handle(class, done)?;
        Ok(io.map(|io| Io::new(self, io)))
    }

    /// Like [`Session::acquire`], but for a task. Between polls, the session keeps its position in
    /// the queue, until the task gets a handle, calls [`PolledWait::leave_queue`] or drops the
    /// wait.
    ///
    /// # Errors
    /// The session was cancelled.
    /// # Panics
    /// If `wait` belongs to another session.
    pub fn poll_acquire(
        &mut self,
        context: &mut Context<'_>,
        wait: &mut PolledWait,
        class: Class,
    ) -> Poll<Result<Io<'_>, Cancelled>> {
        match self.poll_acquire_unless(context, wait, class, || false) {
            Poll::Ready(Ok(Some(io))) => Poll::Ready(Ok(io)),
            Poll::Ready(Ok(None)) => unreachable!("there was no condition to end the wait"),
            Poll::Ready(Err(cancelled)) => Poll::Ready(Err(cancelled)),
            Poll::Pending => Poll::Pending,
        }
    }

    /// Like [`Session::acquire_unless`], but for a task. If `done` returns true, the session also
    /// leaves the queue.
    ///
    /// # Errors
    /// The session was cancelled.
    /// # Panics
    /// If `wait` belongs to another session.
    pub fn poll_acquire_unless(
        &mut self,
        context: &mut Context<'_>,
        wait: &mut PolledWait,
        class: Class,
        done: impl Fn() -> bool,
    ) -> Poll<Result<Option<Io<'_>>, Cancelled>> {
        self.assert_waits_here(wait);
        let polled = self.poll_for_handle(context.waker(), wait, class, done);
        polled.map_ok(|io| io.map(|io| Io::new(self, io)))
    }

    /// Acquires a handle if one is available right now.
    pub fn try_acquire(&mut self, class: Class) -> Option<Io<'_>> {
        self.prepare_acquire();
        let io = self.take_handle(class)?;
        Some(Io::new(self, io))
    }

    /// Waits for a handle in the given class, or until `done` returns true.
    fn wait_for_handle(
        &mut self,
        class: Class,
        done: impl Fn() -> bool,
    ) -> Result<Option<WaitRef>, Cancelled> {
        self.prepare_acquire();
        if let Some(io) = self.take_handle(class) {
            return Ok(Some(io));
        }
        self.submit();
        let result = self.sleep_until(Wish::Any, None, |session| {
            // A session that has reached its quota doesn't join the queue. It will be woken by its
            // own completions, and must not use up a wake-up that is meant for a session that can
            // take the handle.
            match session.is_at_quota(class) {
                true => session.handle_wait.leave(),
                false => session.handle_wait.enter(class),
            }
            session.take_handle_unless(class, &done)
        });
        self.handle_wait.leave();
        result
    }

    /// Like [`Session::wait_for_handle`], but for a task.
    fn poll_for_handle(
        &mut self,
        waker: &Waker,
        wait: &mut PolledWait,
        class: Class,
        done: impl Fn() -> bool,
    ) -> Poll<Result<Option<WaitRef>, Cancelled>> {
        self.prepare_acquire();
        if let Some(io) = self.take_handle(class) {
            wait.leave_queue();
            return Poll::Ready(Ok(Some(io)));
        }
        self.submit();
        // Register the waker first, because once the session is in the queue, it may be woken for a
        // freed handle.
        wait.register(waker);
        match self.is_at_quota(class) {
            true => wait.leave_queue(),
            false => wait.enter_queue(class),
        }
        let got = self.take_handle_unless(class, &done);
        let result = self.polled(got);
        if result.is_ready() {
            wait.leave_queue();
        }
        result
    }

    /// One attempt of a wait: takes a handle if possible, or else looks at the condition. Returns
    /// `None` if the wait must go on.
    fn take_handle_unless(
        &mut self,
        class: Class,
        done: impl Fn() -> bool,
    ) -> Option<Option<WaitRef>> {
        match self.take_handle(class) {
            None => done().then_some(None),
            io => Some(io),
        }
    }

    fn is_at_quota(&self, class: Class) -> bool {
        self.completions().admission().is_at_quota(self.slot(), class)
    }

    fn prepare_acquire(&mut self) {
        // A leaked `Io` (`mem::forget`) must not occupy a handle permanently.
        if self.reclaim() {
            self.completions().statistics().general().leaked.add(1);
        }
        self.submit_if_old();
    }

    /// Takes a free handle without waiting, provided neither the quota nor the class limit has been
    /// reached. We add the handle to the quota's count before we hand it out, so that the count is
    /// never too low.
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
}
