//! Backend waits: waiting for a pin, a victim, an I/O handle, or the completion of an I/O.
//!
//! A wait either puts the thread to sleep or registers the waker of an async task ([`Waiting`]). To
//! wait for a pin or a victim, the session must also register itself in the set of sessions to
//! notify when one becomes available. When a sleeping thread wakes up, we remove it from that set.
//! A task that gets `Pending`, however, remains registered until it polls again or gives up, and
//! the stream has to keep track of that.
//!
//! When a pin or a victim becomes available, we wake all the registered sessions, and all tasks of
//! each of them. So if a task gives up after it was woken, the others don't miss anything. Only a
//! freed handle wakes just one session. If the task doesn't need the handle any more, its
//! [`PolledWait`] passes the wake-up on.
//!
//! All waits must obey the same rule: while a session waits, it may hold pins and granted permits,
//! but it must not have any staged I/O and must not hold a claim on a page. Resources must be
//! acquired in this order: pin, open file, I/O handle, victim, claim. If one of them isn't
//! available, the session can't be holding any of the later ones, and it must give back its I/O
//! handle before it waits. Because of these rules, there can't be a cycle of sessions waiting for
//! each other.

use super::super::error::{ReadError, WriteError};
use super::super::eviction::{EvictionWriter, WriteCounter};
use super::super::pin_limits::TooManyPins;
use super::Backend;
use crate::storage::SegmentOpener;
use crate::waiting::{Waiting, slept};
use std::task::{Poll, ready};
use trunkline_aio::clock;
use trunkline_aio::facade::Arc;
use trunkline_aio::{Cancelled, Class, PolledWait, WaitRef};

impl Backend {
    /// Creates a wait for a task that polls this backend's session.
    pub(crate) fn polled_wait(&self) -> PolledWait {
        self.session.polled_wait()
    }

    /// Reserves one pin, and waits for admission if necessary. If this returns `Pending`, the
    /// session remains registered with the pin limiter.
    pub(crate) fn reserve_pin(
        &mut self,
        waiting: &mut Waiting<'_, '_>,
    ) -> Poll<Result<(), ReadError>> {
        let (manager, id) = (Arc::clone(&self.manager), self.session.id());
        let limits = manager.limits();
        loop {
            match limits.reserve_or_grant(id) {
                Ok(true) => return Poll::Ready(Ok(())),
                // We haven't been admitted yet. If there are enough permits, `admit` takes them and
                // we try again. Otherwise we have to wait, but we don't hold any pins while we do.
                Ok(false) if limits.admit(id) => {}
                Ok(false) => {
                    limits.waiters().insert(id);
                    let waited = ready!(self.timed(waiting, |backend, waiting| {
                        waiting.until(&mut backend.session, || limits.admit(id))
                    }));
                    limits.waiters().remove(id);
                    waited?;
                }
                Err(TooManyPins(held)) => {
                    return Poll::Ready(Err(ReadError::TooManyPins { held }));
                }
            }
        }
    }

    /// Reserves one pin, sleeping if necessary.
    pub(crate) fn sleep_for_pin(&mut self) -> Result<(), ReadError> {
        slept(self.reserve_pin(&mut Waiting::Sleep))
    }

    /// Waits until there is a buffer that can be used as a victim. If there are no clean buffers,
    /// we first start to write out dirty pages. If this returns `Pending`, the session remains on
    /// the victim wait list.
    pub(crate) fn wait_for_victim(
        &mut self,
        waiting: &mut Waiting<'_, '_>,
    ) -> Poll<Result<(), ReadError>> {
        let (manager, id) = (Arc::clone(&self.manager), self.session.id());
        let waiters = manager.buffers().victim_waiters();
        // We must register before the first test, so that we get woken up if a write completes in
        // between.
        waiters.insert(id);
        let waited = match ready!(self.start_eviction_writes(waiting)) {
            Ok(true) => ready!(self.timed(waiting, |backend, waiting| {
                let Backend { session, eviction, .. } = backend;
                let eviction = eviction.as_ref();
                waiting.leave_queue();
                waiting.until(session, || match eviction {
                    Some(eviction) => eviction.may_have_victim(),
                    None => manager.has_victim() || manager.buffers().has_dirty_victim(),
                })
            }))
            .map_err(ReadError::from),
            Ok(false) => ready!(self.timed(waiting, Backend::wait_for_handle_or_victim))
                .map_err(ReadError::from),
            Err(error) => {
                waiting.leave_queue();
                Err(error)
            }
        };
        waiters.remove(id);
        if let Some(eviction) = &mut self.eviction {
            eviction.give_up_batch();
            eviction.take_ended();
            eviction.issue_writeback(&mut self.session);
        }
        Poll::Ready(waited)
    }

    /// Sleeps until a buffer can be a victim.
    pub(crate) fn sleep_for_victim(&mut self) -> Result<(), ReadError> {
        slept(self.wait_for_victim(&mut Waiting::Sleep))
    }

    /// If there are no clean buffers, starts to write out dirty pages. This may have to wait for a
    /// WAL flush, or until a segment is open. On a mount where the session executes its writes
    /// itself, it may also have to wait for the first write. Returns false if there is something to
    /// write but no I/O handle is free.
    ///
    /// # Errors
    /// A write that this session started has failed, so there may never be a victim.
    pub(crate) fn start_eviction_writes(
        &mut self,
        waiting: &mut Waiting<'_, '_>,
    ) -> Poll<Result<bool, ReadError>> {
        if self.manager.has_victim() {
            return Poll::Ready(Ok(true));
        }
        let Self { manager, session, counter, eviction, kind, flush_after, .. } = self;
        let eviction = eviction.get_or_insert_with(|| {
            let counter = WriteCounter::new(counter.statistics(), *kind);
            Box::new(EvictionWriter::new(manager, counter, session.iovecs(), *flush_after))
        });
        let started = eviction.start(session, waiting);
        started.map_err(|error| match error {
            WriteError::Cancelled => ReadError::Cancelled,
            error => ReadError::Eviction(Box::new(error)),
        })
    }

    /// Waits until we have an I/O handle for a write, or until there is a victim and we no longer
    /// need to write anything. It would be wrong to wait only for a handle. If a mount hangs, the
    /// writes to it may never give back their handles, but we can still get a victim when another
    /// session releases a pin.
    fn wait_for_handle_or_victim(
        &mut self,
        waiting: &mut Waiting<'_, '_>,
    ) -> Poll<Result<(), Cancelled>> {
        let Self { session, manager, .. } = self;
        waiting.for_handle_unless(session, Class::Eviction, || manager.has_victim())
    }

    /// Waits until a handle of the class is free.
    pub(crate) fn wait_for_handle(
        &mut self,
        waiting: &mut Waiting<'_, '_>,
        class: Class,
    ) -> Poll<Result<(), Cancelled>> {
        self.timed(waiting, |backend, waiting| waiting.for_handle(&mut backend.session, class))
    }

    /// Sleeps until a handle of the class is free.
    pub(crate) fn sleep_for_handle(&mut self, class: Class) -> Result<(), Cancelled> {
        slept(self.wait_for_handle(&mut Waiting::Sleep, class))
    }

    /// Waits until a worker has opened a segment.
    pub(crate) fn wait_for_open(
        &mut self,
        waiting: &mut Waiting<'_, '_>,
        opener: &SegmentOpener,
    ) -> Poll<Result<(), Cancelled>> {
        self.timed(waiting, |backend, waiting| {
            waiting.until(&mut backend.session, || opener.is_done())
        })
    }

    /// Waits until an I/O has ended, whichever session issued it.
    pub(crate) fn wait_for_io(
        &mut self,
        waiting: &mut Waiting<'_, '_>,
        io: WaitRef,
    ) -> Poll<Result<(), Cancelled>> {
        if waiting.is_sleep() && self.session.is_complete(io) {
            return Poll::Ready(self.session.join(io));
        }
        self.timed(waiting, |backend, waiting| waiting.for_io(&mut backend.session, io))
    }

    /// Sleeps until an I/O has ended.
    pub(crate) fn sleep_for_io(&mut self, io: WaitRef) -> Result<(), Cancelled> {
        slept(self.wait_for_io(&mut Waiting::Sleep, io))
    }

    /// Runs a step that may have to wait. If it sleeps, the time is added to our wait time. We
    /// can't do that for an async task, because the step returns `Pending` before the wait is over,
    /// so the task must measure the time itself.
    pub(crate) fn timed<'w, 'a, 'c, T>(
        &mut self,
        waiting: &'w mut Waiting<'a, 'c>,
        step: impl FnOnce(&mut Self, &'w mut Waiting<'a, 'c>) -> T,
    ) -> T {
        if !waiting.is_sleep() {
            return step(self, waiting);
        }
        let started = clock::now();
        let value = step(self, waiting);
        self.counter.tally().add_wait(clock::now().since(started));
        value
    }
}
