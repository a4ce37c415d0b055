//! Checkpoints of a cluster that is open for writing (`CreateCheckPoint`).
//!
//! ```text
//!   CHECKPOINT_REDO     from here on, the first change of a page is logged with an image
//!   counters, commits in progress, pages, of the commit log too
//!   CHECKPOINT_ONLINE   flushed
//!   control file        redo would now start at CHECKPOINT_REDO
//!   segments before it are recycled or removed
//! ```

use trunkline_format::control::Checkpoint;
use trunkline_format::{ClusterState, ControlFile};

use super::error::WritableClusterError;
use super::session::WriteSession;
use crate::checkpoint::CheckpointReport;
use crate::log::Log;
use crate::log_writer::LogWriterError;

/// The longest record of a checkpoint, without its header.
const RECORD: u64 = 128;

impl WriteSession {
    /// Writes everything that has changed so far, so that redo after a crash starts here.
    ///
    /// # Errors
    /// [`WritableClusterError`]. Redo would start at the checkpoint before, unless the error is that an old segment of
    /// the WAL could not be recycled or removed; the next checkpoint tries that again.
    pub fn checkpoint(&mut self) -> Result<CheckpointReport, WritableClusterError> {
        self.checkpoint_paced(|_| {})
    }

    /// [`WriteSession::checkpoint`] that `pace` may slow down, so that commits are not queued behind its writes, as in
    /// [`Engine::checkpoint_paced`](crate::engine::Engine::checkpoint_paced).
    ///
    /// # Errors
    /// As for [`WriteSession::checkpoint`].
    pub fn checkpoint_paced(
        &mut self,
        pace: impl FnMut(f64),
    ) -> Result<CheckpointReport, WritableClusterError> {
        let shared = std::sync::Arc::clone(&self.shared);
        let mut state = shared.checkpoint.lock();
        let mut room = self.changer.room(self.backend.session(), (1, 0, RECORD))?;
        let redo = self.changer.inserter().begin_checkpoint(&mut room)?.start;
        drop(room);
        // After the redo point: transactions that begin later are found by redo. This waits for one that is beginning a
        // page of the commit log or creating a multixact.
        let mut checkpoint = shared.counters(&state.control.checkpoint, redo, false);
        if !shared.commit_gate.wait_for_earlier() {
            return Err(WritableClusterError::PanickedCommit);
        }
        let report = shared.engine.checkpoint_paced(&mut self.backend, pace)?;
        let mut room = self.changer.room(self.backend.session(), (1, 0, RECORD))?;
        let place = self.changer.inserter().end_checkpoint(&mut room, &checkpoint)?;
        drop(room);
        shared.log.flush(self.backend.session(), place.end).map_err(LogWriterError::flush)?;
        checkpoint.location = place.start;
        let control = ControlFile { checkpoint, ..state.control };
        state.write(control)?;
        shared.log.recycle_before(redo)?;
        Ok(report)
    }

    /// The shutdown checkpoint. No other session exists.
    pub(super) fn shut_down(&mut self) -> Result<CheckpointReport, WritableClusterError> {
        let shared = std::sync::Arc::clone(&self.shared);
        let mut state = shared.checkpoint.lock();
        let stopping = ControlFile { state: ClusterState::ShuttingDown, ..state.control };
        state.write(stopping)?;
        if !shared.commit_gate.wait_for_earlier() {
            return Err(WritableClusterError::PanickedCommit);
        }
        shared.log.insert_no_more_fillers(self.backend.session())?;
        let redo = shared.log.next_record();
        let report = shared.engine.checkpoint(&mut self.backend)?;
        let mut room = self.changer.room(self.backend.session(), (1, 0, RECORD))?;
        // A change that came since is before the record, but may not be in the files.
        let checkpoint = shared.counters(&state.control.checkpoint, redo, true);
        let place = self.changer.inserter().insert_shutdown(&mut room, &checkpoint)?;
        drop(room);
        shared.log.flush(self.backend.session(), place.end).map_err(LogWriterError::flush)?;
        let checkpoint = Checkpoint { location: place.start, ..checkpoint };
        let control = ControlFile { state: ClusterState::ShutDown, checkpoint, ..state.control };
        state.write(control)?;
        // The next start removes all segments after the end, so recycling would be in vain.
        shared.log.remove_before(place.start)?;
        Ok(report)
    }
}
