//! Waits of a stream: what must happen before the next page can be returned.
//!
//! A thread sleeps here; a task is woken later ([`Waiting`]). If a task waits for a pin or a
//! victim, its session stays registered until the task polls again or the stream is dropped.

use super::ReadStream;
use super::blocked::Blocked;
use super::source::BlockSource;
use crate::pool::{Backend, ReadError};
use crate::waiting::Waiting;
use std::task::{Poll, ready};
use trunkline_aio::{Cancelled, Class, Outcome, clock};

impl<S: BlockSource> ReadStream<S> {
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

    /// Waits for the event that blocks the stream. While it waits, the backend counts into the
    /// stream's tally, so that evictions and waits are attributed to the stream's strategy.
    pub(super) fn wait(
        &mut self,
        waiting: &mut Waiting<'_, '_>,
        backend: &mut Backend,
        blocked: Blocked,
    ) -> Poll<Result<(), ReadError>> {
        if let Blocked::Joined(io) = blocked
            && self.joined.replace(io) != Some(io)
        {
            // The other session's read was not fast enough: look further ahead, as after a read of
            // our own.
            self.stats.waits += 1;
            self.distances.read_ended(true);
        }
        backend.swap_tally(self.counter.tally());
        let waited = match blocked {
            Blocked::Own(slot) => self.wait_for_own(waiting, backend, slot),
            Blocked::Any => self.wait_for_any(waiting, backend),
            Blocked::Pin => backend.reserve_pin(waiting).map_ok(|()| None),
            Blocked::Buffer => backend.wait_for_victim(waiting).map_ok(|()| None),
            Blocked::Handle => no_result(backend.wait_for_handle(waiting, Class::Foreground)),
            Blocked::Joined(io) => no_result(backend.wait_for_io(waiting, io)),
        };
        backend.swap_tally(self.counter.tally());
        if waited.is_pending() {
            self.registered = Some(blocked);
        }
        if let Some((slot, outcome)) = ready!(waited)? {
            self.read_ended(backend, slot, outcome);
        }
        // Keep the pin that was reserved. The next read uses it, or `release_ahead` returns it.
        self.reserved |= blocked == Blocked::Pin;
        Poll::Ready(Ok(()))
    }

    /// Waits for any read, and takes its result. The read that completes first counts as one the
    /// consumer had to wait for, unless it had already completed before this call.
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

    /// Waits for one read, and takes its result. A thread that must sleep anyway sleeps until a
    /// whole group of reads has completed, so that it's woken only once per group. If it still
    /// lacks this read, it then waits for the read itself, because the read may not have been part
    /// of that group.
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
