//! The end of a recovery: what follows the log is erased, and a shutdown checkpoint closes it.

use std::path::Path;
use std::sync::Arc;

use trunkline_aio::{Aio, clock};
use trunkline_format::control::Checkpoint;
use trunkline_format::wal::SegmentSize;
use trunkline_format::{ClusterState, ControlFile, Lsn};

use super::error::RecoveryError;
use crate::control_writer::ControlWriter;
use crate::log::Log;
use crate::log_writer::{Inserter, Lane, LogWriter, LogWriterError, LogWriterOptions};
use crate::replay::ReplayReport;
use crate::storage::WritableFiles;

/// Everything is durable in the files: writes the checkpoint that says so, and the control file. Returns the control
/// file and the end of the log.
///
/// # Errors
/// [`RecoveryError::Log`].
pub(super) fn finish(
    aio: &Aio,
    files: &Arc<dyn WritableFiles>,
    root: &Path,
    (control, replayed): (&ControlFile, &ReplayReport),
    segment_size: SegmentSize,
) -> Result<(ControlFile, Lsn), RecoveryError> {
    let options = LogWriterOptions {
        last: replayed.last,
        // The log up to here has been synced.
        redo: replayed.end,
        buffers: 0,
        inserters: 1,
        ..LogWriterOptions::after_shutdown(control, segment_size, replayed.end)
    };
    let log = Arc::new(LogWriter::open(aio, Arc::clone(files), root, options)?);
    let mut session = aio
        .session()
        .map_err(|_| LogWriterError::Resources { what: "session of the I/O instance" })?;
    let place = log.next_record();
    let checkpoint = Checkpoint {
        location: place,
        redo: place,
        full_page_writes: true,
        wal_level: Some(control.wal_level),
        time: clock::unix_micros() / 1_000_000,
        oldest_active_xid: 0,
        ..control.checkpoint
    };
    let mut room = log.room(&mut session, 1, 256)?;
    let Some(mut inserter) = Inserter::new(&log) else {
        return Err(LogWriterError::Resources { what: "inserter" }.into());
    };
    let end = inserter.insert_shutdown(&mut room, &checkpoint)?.end;
    log.flush(&mut session, end).map_err(LogWriterError::flush)?;
    let control = ControlFile { state: ClusterState::ShutDown, checkpoint, ..*control };
    ControlWriter::new(files, root).write(&mut Lane::new(aio)?, &control)?;
    Ok((control, end))
}
