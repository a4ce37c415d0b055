//! Writes `global/pg_control` of our own clusters (PostgreSQL's `update_controlfile`).
//!
//! The file is overwritten in place and synced. Its contents fit into the first 512 bytes, which devices write as a
//! whole, so a crash leaves either the old or the new contents.

use std::io;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use trunkline_aio::clock;
use trunkline_format::ControlFile;

use crate::datadir::CONTROL_NAME;
use crate::log_writer::{Lane, LogWriterError};
use crate::storage::WritableFiles;

/// The control file of a cluster that is open for writing.
pub(crate) struct ControlWriter {
    files: Arc<dyn WritableFiles>,
    path: PathBuf,
}

impl ControlWriter {
    /// The control file of the cluster in `root`.
    pub(crate) fn new(files: &Arc<dyn WritableFiles>, root: &Path) -> Self {
        Self { files: Arc::clone(files), path: root.join(CONTROL_NAME) }
    }

    /// Replaces the contents, durably. The time of the last change becomes the current one.
    ///
    /// # Errors
    /// A system call failed. The file has the old or the new contents.
    pub(crate) fn write(
        &self,
        lane: &mut Lane,
        control: &ControlFile,
    ) -> Result<(), LogWriterError> {
        let failed =
            |operation, source: io::Error| LogWriterError::file(operation, &self.path, source);
        let file = self.files.open_for_writing(&self.path, false, false);
        let file = file.map_err(|source| failed("open", source))?;
        let bytes = ControlFile { time: clock::unix_micros() / 1_000_000, ..*control }.encode();
        let written = lane.write_bytes(&file, 0, &bytes[..]);
        written.map_err(|source| failed("write to", source))?;
        lane.sync(&file, true).map_err(|source| failed("fsync", source))
    }
}
