//! Waiting for what stands in the way of the next page: asleep, or polled by a task.
//!
//! A read of the stream's own, somebody else's, a pin, a buffer, a handle. A stream that was polled and waits
//! for a pin or a buffer has a place in a queue, which it gives up when it wants something else.

use super::{BlockSource, ReadStream};
use crate::pool::{Backend, ReadError};
use std::task::{Context, Poll, ready};
use trunkline_aio::{Cancelled, Class, WaitRef, clock};

/// Why nothing can be handed out now.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Blocked {
    /// A read of this stream.
    Own(usize),
    /// Any read of this stream.
    Any,
    /// Somebody's read.
    Joined(WaitRef),
    /// No pin is granted.
    Pin,
    /// Every buffer is pinned.
    Buffer,
    /// Every handle is in use.
    Handle,
}

impl<S: BlockSource> ReadStream<S> {
    /// Gives up the place in a queue that an earlier poll has taken.
    pub(super) fn leave_queue(&mut self) {
        match self.queued.take() {
            Some(Blocked::Pin) => self.shared.limiter.waiting.remove(self.session),
            Some(Blocked::Buffer) => self.shared.hungry.remove(self.session),
            _ => {}
        }
    }

    /// A polled consumer gets what it waited for, if it had to wait.
    pub(super) fn count_polled_wait(&mut self) {
        if let Some(since) = self.blocked_since.take() {
            self.tally.waits += 1;
            let nanos = u64::try_from(clock::now().since(since).as_nanos());
            self.tally.wait_nanos += nanos.unwrap_or(u64::MAX);
        }
    }

    /// Sleeps.
    pub(super) fn wait(
        &mut self,
        backend: &mut Backend,
        blocked: Blocked,
    ) -> Result<(), ReadError> {
        backend.swap_tally(&mut self.tally);
        let waited = self.wait_uncounted(backend, blocked);
        backend.swap_tally(&mut self.tally);
        waited
    }

    pub(super) fn wait_uncounted(
        &mut self,
        backend: &mut Backend,
        blocked: Blocked,
    ) -> Result<(), ReadError> {
        match blocked {
            Blocked::Own(slot) => {
                let again = match &mut self.flights[slot] {
                    Some(flight) => std::mem::replace(&mut flight.waited, true),
                    None => true,
                };
                let group = self.pace.group() as usize;
                let in_flight = self.reads.in_flight();
                let operations = &mut self.reads.operations;
                if !again && group > 1 && group < in_flight {
                    return Ok(backend
                        .timed(|backend| (true, backend.session.wait_some(operations, group)))?);
                }
                let outcome =
                    backend.timed(|backend| (true, backend.session.wait(operations, slot)))?;
                // Into the tally that counts for this stream.
                backend.swap_tally(&mut self.tally);
                self.read_ended(backend, slot, outcome);
                backend.swap_tally(&mut self.tally);
            }
            Blocked::Any => {
                let operations = &mut self.reads.operations;
                let (slot, outcome) =
                    backend.timed(|backend| (true, backend.session.wait_any(operations)))?;
                self.any = true;
                backend.swap_tally(&mut self.tally);
                self.read_ended(backend, slot, outcome);
                backend.swap_tally(&mut self.tally);
            }
            Blocked::Joined(io) => {
                self.join_waited();
                backend.join(io)?;
            }
            Blocked::Pin => {
                backend.book()?;
                self.reserve = true;
            }
            Blocked::Buffer => backend.wait_for_buffer()?,
            Blocked::Handle => backend.wait_for_handle(Class::Foreground)?,
        }
        Ok(())
    }

    /// Somebody's read was not fast enough: look further ahead, as after one of our own.
    pub(super) fn join_waited(&mut self) {
        self.stats.waits += 1;
        self.distances.read_ended(true);
    }

    pub(super) fn poll_wait(
        &mut self,
        context: &mut Context<'_>,
        backend: &mut Backend,
        blocked: Blocked,
    ) -> Poll<Result<(), ReadError>> {
        let operations = &mut self.reads.operations;
        match blocked {
            Blocked::Own(slot) => {
                if let Some(flight) = &mut self.flights[slot] {
                    flight.waited = true;
                }
                let outcome = ready!(backend.session.poll(context, operations, slot))?;
                self.read_ended(backend, slot, outcome);
                Poll::Ready(Ok(()))
            }
            Blocked::Any => {
                self.any = true;
                let (slot, outcome) = ready!(backend.session.poll_any(context, operations))?;
                self.read_ended(backend, slot, outcome);
                Poll::Ready(Ok(()))
            }
            Blocked::Joined(io) => {
                if self.joined.replace(io) != Some(io) {
                    self.join_waited();
                }
                backend.session.poll_join(context, io).map_err(ReadError::from)
            }
            Blocked::Pin => {
                let polled = backend.poll_book(context);
                self.queued = polled.is_pending().then_some(blocked);
                ready!(polled)?;
                self.reserve = true;
                Poll::Ready(Ok(()))
            }
            Blocked::Buffer => {
                let polled = backend.poll_for_buffer(context);
                self.queued = polled.is_pending().then_some(blocked);
                polled
            }
            Blocked::Handle => {
                let acquired = backend.session.poll_acquire(context, Class::Foreground);
                acquired.map(|acquired| acquired.map(drop).map_err(|Cancelled| Cancelled.into()))
            }
        }
    }
}
