//! Backend waits: for a pin, a victim, an I/O handle, or the completion of an I/O.
//!
//! Each wait either puts the thread to sleep or registers an async task's waker ([`Waiting`]). To
//! wait for a pin or a victim, the session must also be registered in the set of sessions that are
//! notified when one becomes available. A sleeping thread is removed from the set when it wakes up.
//! A task that receives `Pending` stays registered until it polls again or gives up, and the stream
//! must keep track of that.
//!
//! The same rule applies to every wait: a waiting session may hold pins and granted permits, but it
//! must not have staged I/O and must not hold a claim on a page. The resources are acquired in a
//! fixed order: pin, I/O handle, victim, claim. If one resource is unavailable, the session hasn't
//! taken any of the later resources yet, and it returns its handle before it waits. So no cycle of
//! waits can form.

use super::super::error::ReadError;
use super::super::eviction::{EvictionWriter, WriteCounter};
use super::super::pin_limits::TooManyPins;
use super::Backend;
use crate::waiting::{Waiting, slept};
use std::task::{Context, Poll, Wake, Waker, ready};
use trunkline_aio::clock;
use trunkline_aio::facade::Arc;
use trunkline_aio::facade::atomic::{AtomicBool, Ordering};
use trunkline_aio::{Cancelled, Class, Notifier, WaitRef};

impl Backend {
    /// Reserves one pin, waiting for admission if necessary. If it returns `Pending`, the session
    /// stays registered with the pin limiter.
    pub(crate) fn reserve_pin(
        &mut self,
        waiting: &mut Waiting<'_, '_>,
    ) -> Poll<Result<(), ReadError>> {
        let (manager, id) = (Arc::clone(&self.manager), self.session.id());
        let limits = manager.limits();
        loop {
            match limits.reserve_or_grant(id) {
                Ok(true) => return Poll::Ready(Ok(())),
                // Not admitted yet. If permits are available, `admit` takes them and we try again;
                // otherwise we wait without holding any pin.
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

    /// Waits until a buffer can be a victim. If there is no clean buffer, starts writing dirty
    /// pages first. If it returns `Pending`, the session stays on the victim wait list.
    pub(crate) fn wait_for_victim(
        &mut self,
        waiting: &mut Waiting<'_, '_>,
    ) -> Poll<Result<(), ReadError>> {
        let (manager, id) = (Arc::clone(&self.manager), self.session.id());
        let waiters = manager.buffers().victim_waiters();
        // Register before the first test, so that a write that completes in between wakes the
        // session.
        waiters.insert(id);
        let waited = match self.start_eviction_writes() {
            Ok(true) => ready!(self.timed(waiting, |backend, waiting| {
                let Backend { session, eviction, .. } = backend;
                let eviction = eviction.as_ref();
                waiting.until(session, || match eviction {
                    Some(eviction) => eviction.may_have_victim(),
                    None => manager.has_victim() || manager.buffers().has_dirty_victim(),
                })
            }))
            .map_err(ReadError::from),
            Ok(false) => ready!(self.timed(waiting, Backend::wait_for_handle_or_victim))
                .map_err(ReadError::from),
            Err(error) => Err(error),
        };
        waiters.remove(id);
        if let Some(eviction) = &mut self.eviction {
            eviction.take_ended();
            eviction.issue_writeback(&mut self.session);
        }
        Poll::Ready(waited)
    }

    /// Sleeps until a buffer can be a victim.
    pub(crate) fn sleep_for_victim(&mut self) -> Result<(), ReadError> {
        slept(self.wait_for_victim(&mut Waiting::Sleep))
    }

    /// Starts writing dirty pages, unless a clean buffer is available. May wait for a WAL flush,
    /// and for the first write if the mount executes writes in the session. Returns false if there
    /// was something to write but no free handle.
    ///
    /// # Errors
    /// One of this session's writes has failed, so there may never be a victim.
    pub(crate) fn start_eviction_writes(&mut self) -> Result<bool, ReadError> {
        if self.manager.has_victim() {
            return Ok(true);
        }
        let Self { manager, session, counter, eviction, kind, flush_after, .. } = self;
        let eviction = eviction.get_or_insert_with(|| {
            let counter = WriteCounter::new(counter.statistics(), *kind);
            Box::new(EvictionWriter::new(manager, counter, session.iovecs(), *flush_after))
        });
        let started = eviction.start(session);
        started.map_err(|error| ReadError::Eviction(Box::new(error)))
    }

    /// Waits until an I/O handle is free for a write, or until there is a victim, in which case no
    /// write is needed. Waiting for just a handle would not be enough: if a mount hangs, its writes
    /// may never return their handles, but another session can still release a pin.
    fn wait_for_handle_or_victim(
        &mut self,
        waiting: &mut Waiting<'_, '_>,
    ) -> Poll<Result<(), Cancelled>> {
        if !waiting.is_sleep() {
            return waiting.for_handle(&mut self.session, Class::Eviction);
        }
        loop {
            let woken = Arc::new(ParkedWaker {
                woken: AtomicBool::new(false),
                session: self.session.id(),
                notifier: self.manager.buffers().notifier().clone(),
            });
            let waker = Waker::from(Arc::clone(&woken));
            let mut context = Context::from_waker(&waker);
            if let Poll::Ready(io) = self.session.poll_acquire(&mut context, Class::Eviction) {
                return Poll::Ready(io.map(drop));
            }
            let manager = &self.manager;
            let waited = self
                .session
                .wait_for(|| woken.woken.load(Ordering::SeqCst) || manager.has_victim());
            if waited.is_err() || self.manager.has_victim() {
                // Leave the queue for handles. If a handle was assigned to us in the meantime, it
                // goes to the next session in the queue.
                drop(self.session.try_acquire(Class::Eviction));
                return Poll::Ready(waited);
            }
        }
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

    /// Runs a step that may wait, and counts the wait time if it sleeps. An async task must measure
    /// its waits itself, because the step returns `Pending` before the wait is over.
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

/// Wakes a parked session. The flag lets the session tell a wake-up that arrived before it parked
/// from a spurious one.
struct ParkedWaker {
    woken: AtomicBool,
    session: u32,
    notifier: Notifier,
}

impl Wake for ParkedWaker {
    fn wake(self: Arc<Self>) {
        self.woken.store(true, Ordering::SeqCst);
        self.notifier.notify(self.session);
    }
}
