//! The method seam: the trait that every I/O method implements.
//!
//! The smallest implementation, `sync`, takes nothing from the batch, so the issuer executes
//! everything inline. It is the specification that the other methods are tested against.

pub(crate) mod dispatcher;
pub(crate) mod fallback;
pub(crate) mod in_force;
pub(crate) mod inline;
pub(crate) mod ring;
pub(crate) mod uring;
pub(crate) mod worker;

use crate::completion::in_flight::{InFlight, Submitted};
use std::sync::Arc;

/// A batch of submitted I/O on its way to a method.
#[derive(Debug)]
pub struct Batch<'a> {
    in_flight: &'a InFlight,
    indexes: &'a [u32],
    taken: usize,
}

impl<'a> Batch<'a> {
    /// A batch of handles that the calling session has just submitted.
    pub(crate) fn new(in_flight: &'a InFlight, indexes: &'a [u32]) -> Self {
        Self { in_flight, indexes, taken: 0 }
    }

    /// Number of I/Os left in the batch.
    pub fn remaining(&self) -> usize {
        self.indexes.len() - self.taken
    }

    /// Takes the next I/O. The issuer executes what is left in the batch.
    pub fn take(&mut self) -> Option<Submitted> {
        let index = self.indexes.get(self.taken)?;
        self.taken += 1;
        Some(self.in_flight.token(*index))
    }

    /// Takes the next I/O as its lane and its handle index.
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
/// A method receives I/O that is SUBMITTED, and must bring each of it to [`InFlight::execute`] or
/// [`InFlight::reap`] exactly once, without further help from the issuer.
///
/// All methods have the same contract. EINTR and EAGAIN are retried up to
/// [`RETRIES_MAX`](crate::limits::RETRIES_MAX) times and the issuer does not see them (`execute`
/// retries, `reap` asks for it). Short transfers, errors and the end of a file are reported as they
/// are.
pub trait Method: Send + Sync {
    /// Takes I/O from the batch, as much as there is room for. The session executes what is left.
    /// This must not block on I/O.
    fn submit(&self, in_flight: &Arc<InFlight>, batch: &mut Batch<'_>);

    /// Stops the threads of the method and waits for their end. Called once, when no I/O is in
    /// flight.
    fn shut_down(&self) {}
}
