//! Waiting in a stream: waits for whatever must happen before the stream can return the next page.
//!
//! A thread sleeps in one of these functions, whereas a task returns and is woken later
//! ([`Waiting`]). If a task is waiting for a pin or a victim, its session stays registered until
//! the task uses the stream again in any way, or drops it.

use super::ReadStream;
use super::blocked::Blocked;
use super::source::{BlockSource, SourceWait, Supply};
use crate::pool::{Backend, ReadError};
use crate::waiting::Waiting;
use std::task::{Poll, ready};
use trunkline_aio::{Cancelled, Class, Outcome, clock};

impl<S: BlockSource> ReadStream<S> {
    /// Gives up what an earlier poll was waiting for, because the consumer is about to do something
    /// else. If the session was woken for a handle that it now won't take, another session is woken
    /// instead.
    pub(crate) fn give_up_wait(&mut self) {
        // The wait ends here. Whatever the consumer does next must not count as waiting.
        self.count_polled_wait();
        self.unregister();
        if let Some(wait) = &mut self.wait {
            wait.leave_queue();
        }
    }

    /// Ends the registration of an earlier poll.
    pub(super) fn unregister(&mut self) {
        match self.registered.take() {
            Some(Blocked::Pin) => self.manager.limits().waiters().remove(self.session),
            Some(Blocked::Buffer) => self.manager.buffers().victim_waiters().remove(self.session),
            _ => {}
        }
    }

    /// Counts a polled consumer's wait, if there was one.
    pub(super) fn count_polled_wait(&mut self) {
        if let Some(since) = self.blocked_since.take() {
            self.counter.tally().add_wait(clock::now().since(since));
        }
    }

    /// Waits for whatever is blocking the stream. During the wait, the backend counts evictions and
    /// waits in the stream's tally, so that they are attributed to the stream's strategy.
    pub(super) fn wait(
        &mut self,
        waiting: &mut Waiting<'_, '_>,
        backend: &mut Backend,
        blocked: Blocked,
    ) -> Poll<Result<(), ReadError>> {
        if blocked == Blocked::Source {
            return self.wait_for_source(waiting, backend);
        }
        if let Blocked::Joined(io) = blocked
            && self.joined.replace(io) != Some(io)
        {
            // The other session's read wasn't fast enough, so look further ahead, as we do after
            // one of our own reads.
            self.stats.waits += 1;
            self.distances.read_ended(true);
        }
        backend.swap_tally(self.counter.tally());
        let waited = match blocked {
            Blocked::Own(slot) => self.wait_for_own(waiting, backend, slot),
            Blocked::Any => self.wait_for_any(waiting, backend),
            Blocked::Pin => backend.reserve_pin(waiting).map_ok(|()| None),
            Blocked::Buffer => backend.wait_for_victim(waiting).map_ok(|()| None),
            Blocked::Open => no_result(backend.wait_for_open(waiting, self.reads.opener())),
            Blocked::Handle => no_result(backend.wait_for_handle(waiting, Class::Foreground)),
            Blocked::Joined(io) => no_result(backend.wait_for_io(waiting, io)),
            Blocked::Source => unreachable!("handled above"),
        };
        backend.swap_tally(self.counter.tally());
        if waited.is_pending() {
            self.registered = Some(blocked);
        }
        if let Some((slot, outcome)) = ready!(waited)? {
            self.read_ended(backend, slot, outcome);
        }
        // Keep the pin that we've reserved. Either the next read uses it, or `release_ahead`
        // returns it.
        self.reserved |= blocked == Blocked::Pin;
        Poll::Ready(Ok(()))
    }

    /// Waits until the source can continue. Its own streams count the wait, and if one of them
    /// remains registered for a pin or a victim, it ends that itself.
    fn wait_for_source(
        &mut self,
        waiting: &mut Waiting<'_, '_>,
        backend: &mut Backend,
    ) -> Poll<Result<(), ReadError>> {
        let distance = self.distances.ahead();
        let mut wait = SourceWait::of_consumer(waiting.reborrow()).with_distance(distance);
        ready!(self.source.fetch(backend, &mut wait))?;
        self.supply = Supply::Blocks;
        Poll::Ready(Ok(()))
    }

    /// Waits until any read has completed, and takes its result. We count this as a wait by the
    /// consumer, unless the read had already completed before this call.
    fn wait_for_any(
        &mut self,
        waiting: &mut Waiting<'_, '_>,
        backend: &mut Backend,
    ) -> Poll<Result<Option<(usize, Outcome)>, ReadError>> {
        let window = self.reads.window_mut();
        if let Some(ended) = window.take_any() {
            return Poll::Ready(Ok(Some(ended)));
        }
        self.waited_for_any = true;
        let ended =
            backend.timed(waiting, |backend, waiting| window.wait_any(backend.session(), waiting));
        ended.map_ok(Some).map_err(ReadError::from)
    }

    /// Waits for one particular read, and takes its result. If the thread has to sleep anyway, it
    /// sleeps until a whole group of reads has completed, so that it's woken only once per group.
    /// That group may not include the read we need, in which case we wait for that read as well.
    fn wait_for_own(
        &mut self,
        waiting: &mut Waiting<'_, '_>,
        backend: &mut Backend,
        slot: usize,
    ) -> Poll<Result<Option<(usize, Outcome)>, ReadError>> {
        let again = match &mut self.in_flight[slot] {
            Some(read) => std::mem::replace(&mut read.waited, true),
            None => true,
        };
        let group = self.group.size() as usize;
        let in_flight = self.reads.window().in_flight();
        let sleeps_for_group = waiting.is_sleep() && !again && group > 1 && group < in_flight;
        let window = self.reads.window_mut();
        let ended = backend.timed(waiting, |backend, waiting| match sleeps_for_group {
            true => Poll::Ready(window.sleep_some(backend.session(), group).map(|()| None)),
            false => window.wait(backend.session(), waiting, slot).map_ok(Some),
        });
        ended.map_ok(|ended| ended.map(|outcome| (slot, outcome))).map_err(ReadError::from)
    }
}

/// The result of a wait that takes no read's result.
fn no_result<T>(waited: Poll<Result<(), Cancelled>>) -> Poll<Result<Option<T>, ReadError>> {
    waited.map_ok(|()| None).map_err(ReadError::from)
}
