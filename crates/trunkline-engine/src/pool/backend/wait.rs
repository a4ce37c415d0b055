//! Waits of a backend: for a pin, a victim, an I/O handle, an I/O.
//!
//! Each wait either sleeps or has a task woken ([`Waiting`]). Waits for a pin or a victim register
//! the session in a set. While a task waits, the session stays registered until the wait is
//! repeated or given up; the stream keeps track of that.

use super::super::error::ReadError;
use super::super::eviction::{EvictionWriter, WriteCounter};
use super::super::pin_limits::TooManyPins;
use super::Backend;
use crate::waiting::{Waiting, slept};
use std::task::{Context, Poll, Wake, Waker, ready};
use trunkline_aio::clock;
use trunkline_aio::sync::Arc;
use trunkline_aio::sync::atomic::{AtomicBool, Ordering};
use trunkline_aio::{Cancelled, Class, Notifier, WaitRef};

impl Backend {
    /// Reserves one pin, waiting for admission if need be. While it returns `Pending` the session
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

    /// Reserves one pin, sleeping if need be.
    pub(crate) fn sleep_for_pin(&mut self) -> Result<(), ReadError> {
        slept(self.reserve_pin(&mut Waiting::Sleep))
    }

    /// Waits until a buffer can be a victim, after starting to write dirty pages if there is no
    /// clean one. While it returns `Pending` the session stays registered among the waiters for a
    /// victim.
    pub(crate) fn wait_for_victim(
        &mut self,
        waiting: &mut Waiting<'_, '_>,
    ) -> Poll<Result<(), ReadError>> {
        let (manager, id) = (Arc::clone(&self.manager), self.session.id());
        let waiters = manager.buffers().victim_waiters();
        // Registered before the first test, so that the end of a write in between wakes the
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

    /// Starts to write dirty pages, unless a clean buffer can be taken. Waits for the log, and for
    /// the first write if the mount executes writes in the session. False: there was something to
    /// write, but no handle was free.
    ///
    /// # Errors
    /// A write of this session has failed, and there may never be a victim.
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

    /// Waits until a handle for a write is free, or a victim is there without one: if a mount
    /// hangs, its writes may have all the handles for ever, but another session can still release a
    /// pin.
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
                // Give up the place in the queue for handles. A handle that was assigned goes to
                // the next.
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

    /// Runs a step that waits, and counts the time if it sleeps. A task measures its waits itself,
    /// since it returns from here before the wait is over.
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
