//! I/O methods: the trait every method implements. It corresponds to PostgreSQL's `IoMethodOps`.
//!
//! The smallest implementation, `sync`, doesn't take anything from a batch, so the issuer executes
//! everything inline. The other methods are tested against it: the contract suite expects the same
//! outcomes from all of them.

pub(crate) mod dispatcher;
pub(crate) mod fallback;
pub(crate) mod in_force;
pub(crate) mod inline;
pub(crate) mod ring;
pub(crate) mod uring;
pub(crate) mod worker;

use crate::completion::in_flight::{InFlight, Submitted};
use std::sync::Arc;

/// A batch of submitted I/O offered to a method, which takes as much as it has room for.
#[derive(Debug)]
pub struct Batch<'a> {
    in_flight: &'a InFlight,
    indexes: &'a [u32],
    /// Number of I/Os taken. An I/O is either taken once or left for the issuer, never both.
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

    /// Takes the next I/O as a pair of lane and handle index, for methods that queue indexes. The
    /// thread that executes the I/O recreates the token from the index.
    pub(crate) fn take_index(&mut self) -> Option<(usize, u32)> {
        let io = self.take()?;
        Some((self.in_flight.lane(&io), io.index()))
    }

    /// The session that issued the batch.
    pub(crate) fn issuer(&self) -> Option<u32> {
        let first = self.indexes.first()?;
        Some(self.in_flight.completions().handles().handle(*first).session())
    }
}

/// An I/O method.
///
/// A method receives I/O in state SUBMITTED. It must pass each I/O to [`InFlight::execute`] or
/// [`InFlight::reap`] exactly once, without further help from the issuer. In PostgreSQL a method
/// may rely on the issuing backend to wait (`wait_one`); here the issuer may be gone.
///
/// All methods have the same contract. EINTR and EAGAIN are retried up to
/// [`RETRIES_MAX`](crate::limits::RETRIES_MAX) times, invisibly to the issuer: `execute` retries
/// itself, and `reap` asks the method to. Short transfers, errors and end of file are passed
/// through unchanged.
pub trait Method: Send + Sync {
    /// Takes as much I/O from the batch as there is room for; the session executes the rest. This
    /// function runs in the issuing session, so it must not block on I/O.
    fn submit(&self, in_flight: &Arc<InFlight>, batch: &mut Batch<'_>);

    /// Stops the method's threads and waits for them to end. Called once, when no I/O is in flight.
    fn shut_down(&self) {}
}
