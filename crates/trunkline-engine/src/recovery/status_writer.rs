//! Writes the pages of the commit log and of multixacts that the log has changed. They have no header.

use std::collections::BTreeMap;
use std::io;
use std::path::{Path, PathBuf};

use trunkline_aio::Aio;
use trunkline_format::PageBytes;

use super::error::RecoveryError;
use crate::log_writer::{Lane, LogWriterError};
use crate::replay::Replay;
use crate::storage::WritableFiles;

/// Writes all of them, durably.
///
/// # Errors
/// [`RecoveryError`].
pub(super) fn write_status_pages(
    aio: &Aio,
    replay: &Replay,
    files: &dyn WritableFiles,
) -> Result<(), RecoveryError> {
    let mut by_file: BTreeMap<PathBuf, Vec<(u64, &PageBytes)>> = BTreeMap::new();
    for (path, offset, page) in replay.status_pages() {
        by_file.entry(path).or_default().push((offset, page));
    }
    let mut lane = Lane::new(aio)?;
    for (path, mut pages) in by_file {
        // In order, so that the file never has a hole that later pages would leave.
        pages.sort_unstable_by_key(|(offset, _)| *offset);
        write_file(files, &mut lane, &path, &pages)?;
    }
    Ok(())
}

/// Writes pages at their offsets, creates the file if necessary, and fsyncs it and its directory.
fn write_file(
    files: &dyn WritableFiles,
    lane: &mut Lane,
    path: &Path,
    pages: &[(u64, &PageBytes)],
) -> Result<(), LogWriterError> {
    let failed = |operation: &'static str| {
        move |source: io::Error| LogWriterError::file(operation, path, source)
    };
    let file = files.open_for_writing(path, false, true).map_err(failed("open or create"))?;
    for (offset, page) in pages {
        lane.write_bytes(&file, *offset, &page[..]).map_err(failed("write to"))?;
    }
    lane.sync(&file, true).map_err(failed("fsync"))?;
    files.sync_directory_of(path).map_err(failed("fsync the directory of"))
}
