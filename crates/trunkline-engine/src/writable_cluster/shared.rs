//! What the sessions of a cluster share.

use std::sync::Arc;

use trunkline_aio::clock;
use trunkline_aio::facade::Mutex;
use trunkline_format::control::Checkpoint;
use trunkline_format::{ControlFile, Lsn, Oid};

use super::commit_gate::CommitGate;
use super::commit_log::CommitLog;
use super::ids::Ids;
use super::multixacts::PooledMultixacts;
use crate::control_writer::ControlWriter;
use crate::engine::Engine;
use crate::log_writer::{Lane, LogFlusher, LogWriter, LogWriterError};
use crate::storage::Storage;

/// What the sessions share. The fields are dropped in this order: the flusher's thread uses the log.
pub(super) struct Shared {
    pub(super) flusher: LogFlusher,
    pub(super) checkpoint: Mutex<CheckpointState>,
    pub(super) commit_log: CommitLog,
    pub(super) multixacts: PooledMultixacts,
    pub(super) commit_gate: CommitGate,
    pub(super) ids: Ids,
    pub(super) storage: Storage,
    pub(super) engine: Engine,
    pub(super) log: Arc<LogWriter>,
}

/// The control file, and what a checkpoint writes with. Its lock lets one checkpoint run at a time.
pub(super) struct CheckpointState {
    pub(super) control: ControlFile,
    pub(super) writer: ControlWriter,
    pub(super) lane: Lane,
}

impl CheckpointState {
    /// Replaces the control file.
    ///
    /// # Errors
    /// [`LogWriterError::File`].
    pub(super) fn write(&mut self, control: ControlFile) -> Result<(), LogWriterError> {
        self.writer.write(&mut self.lane, &control)?;
        self.control = control;
        Ok(())
    }
}

impl Shared {
    /// A checkpoint with the counters as they are now.
    pub(super) fn counters(&self, before: &Checkpoint, redo: Lsn, is_shutdown: bool) -> Checkpoint {
        let multixact = self.multixacts.next();
        Checkpoint {
            location: redo,
            redo,
            full_page_writes: self.log.options().full_page_writes,
            wal_level: Some(self.log.options().wal_level),
            next_xid: self.ids.next_xid(),
            next_oid: Oid(self.ids.next_oid(is_shutdown)),
            next_multi: multixact.number,
            next_multi_offset: multixact.member,
            time: clock::unix_micros() / 1_000_000,
            // With `wal_level` minimal, a server writes none.
            oldest_active_xid: 0,
            ..*before
        }
    }
}
