//! What the computation of a partition must not forget: a cancel, and the memory that it takes.

use datafusion::execution::memory_pool::MemoryReservation;
use trunkline_sql::SqlError;

use crate::error::from_datafusion;
use crate::operator::definition::Streams;
use crate::scan::Cancellation;

/// The computation of one partition. Dropping it releases its memory.
pub(super) struct Work {
    /// What is held until the last row has been returned.
    kept: MemoryReservation,
    /// What is held while a function is computed.
    states: MemoryReservation,
    cancellation: Cancellation,
}

impl Work {
    pub(super) fn new(streams: &Streams) -> Self {
        let (kept, states) = (streams.memory.new_empty(), streams.memory.new_empty());
        Self { kept, states, cancellation: streams.cancellation.clone() }
    }

    /// Fails if the statement was cancelled.
    pub(super) fn check(&self) -> Result<(), SqlError> {
        self.cancellation.check()
    }

    /// Accounts for memory that is kept.
    pub(super) fn keep(&self, bytes: usize) -> Result<(), SqlError> {
        self.kept.try_grow(bytes).map_err(|error| from_datafusion(&error))
    }

    /// Accounts for the states and results of the current function, of this size together.
    pub(super) fn hold(&self, bytes: usize) -> Result<(), SqlError> {
        self.states.try_resize(bytes).map_err(|error| from_datafusion(&error))
    }
}
