//! I/O methods: the trait every method implements. It corresponds to PostgreSQL's `IoMethodOps`.
//!
//! The simplest method is `sync`. It doesn't take any I/O from a batch, so the issuer has to
//! execute everything inline. We use it as the reference when testing the other methods: the
//! contract test suite checks that all methods produce the same outcomes.

pub(crate) mod dispatcher;
pub(crate) mod fallback;
pub(crate) mod in_force;
pub(crate) mod inline;
pub(crate) mod registration;
pub(crate) mod ring;
pub(crate) mod uring;
pub(crate) mod uring_probe;
pub(crate) mod worker;

use crate::completion::in_flight::{InFlight, Submitted};
use crate::completion::lanes::Queued;
use std::sync::Arc;

/// A batch of submitted I/O. It is offered to a method, which takes as much of it as it has room
/// for.
#[derive(Debug)]
pub struct Batch<'a> {
    in_flight: &'a InFlight,
    indexes: &'a [u32],
    /// Number of I/Os the method has taken. Each I/O is either taken exactly once or left for the
    /// issuer.
    taken: usize,
}

impl<'a> Batch<'a> {
    /// A batch of handles the calling session has just submitted.
    pub(crate) fn new(in_flight: &'a InFlight, indexes: &'a [u32]) -> Self {
        Self { in_flight, indexes, taken: 0 }
    }

    /// Number of I/Os left in the batch.
    pub fn remaining(&self) -> usize {
        self.indexes.len() - self.taken
    }

    /// Takes the next I/O, which the method must then complete. The issuer executes whatever is
    /// left in the batch.
    pub fn take(&mut self) -> Option<Submitted> {
        let index = self.indexes.get(self.taken)?;
        self.taken += 1;
        Some(self.in_flight.token(*index))
    }

    /// Takes the next I/O, for methods whose queues contain handle indexes. The thread that will
    /// execute the I/O recreates its token from the index.
    pub(crate) fn take_queued(&mut self) -> Option<Queued> {
        let io = self.take()?;
        Some(self.in_flight.queued(&io))
    }

    /// The session that issued the batch.
    pub(crate) fn issuer(&self) -> Option<u32> {
        let first = self.indexes.first()?;
        Some(self.in_flight.completions().handles().handle(*first).session())
    }
}

/// An I/O method.
///
/// When a method receives an I/O, the I/O is in state SUBMITTED. The method must pass it to
/// [`InFlight::execute`] or [`InFlight::reap`] exactly once, and must not rely on the issuer for
/// that. In PostgreSQL, a method can count on the issuing backend to wait for the I/O (`wait_one`),
/// but here the issuer may no longer exist.
///
/// The same contract applies to all methods. An I/O that returns EINTR or EAGAIN is retried up to
/// [`RETRIES_MAX`](crate::limits::RETRIES_MAX) times without the issuer noticing: `execute` retries
/// it itself, while `reap` asks the method to retry it. Short transfers, errors and end of file are
/// passed on as is.
pub trait Method: Send + Sync {
    /// Takes I/O from the batch until the method has no more room, and leaves the rest for the
    /// session to execute. This function is called in the issuing session, so it must not block on
    /// I/O.
    fn submit(&self, in_flight: &Arc<InFlight>, batch: &mut Batch<'_>);

    /// Stops the method's threads and waits for them to end. Called once, when no I/O is in flight.
    fn shut_down(&self) {}
}
