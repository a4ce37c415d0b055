//! Checkpoint errors: why a checkpoint did not complete.

use crate::Location;
use crate::pool::WriteError;
use std::io;

/// Why a checkpoint failed. Pages that were not written are still dirty.
#[derive(Debug, thiserror::Error)]
pub enum CheckpointError {
    /// A write failed, or could not be started.
    #[error("checkpoint failed: {0}")]
    Write(#[source] WriteError),
    /// An fsync failed. Anything written since the last checkpoint may have been lost, and later
    /// writes may get lost without any error being reported. The process must exit and recover from
    /// its log.
    #[error("checkpoint failed: could not fsync {location}: {source}")]
    Sync {
        /// The file.
        location: Location,
        /// The kernel's error.
        source: io::Error,
    },
    /// An earlier fsync has failed; see [`CheckpointError::Sync`].
    #[error("checkpoint refused: an earlier fsync has failed")]
    EarlierSync,
}

impl CheckpointError {
    /// Whether an fsync has failed, in this checkpoint or earlier.
    pub fn is_sync_failure(&self) -> bool {
        matches!(self, Self::Sync { .. } | Self::EarlierSync)
    }
}

impl From<WriteError> for CheckpointError {
    fn from(error: WriteError) -> Self {
        match error {
            WriteError::Sync { location, source } => Self::Sync { location, source },
            error => Self::Write(error),
        }
    }
}
