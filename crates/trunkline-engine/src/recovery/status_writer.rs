//! Writes the pages of the commit log and of multixacts that the log has changed.

use std::collections::BTreeMap;
use std::path::PathBuf;

use trunkline_aio::Aio;
use trunkline_format::PageBytes;

use super::error::RecoveryError;
use crate::durable_page::write_pages;
use crate::log_writer::Lane;
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
        write_pages(files, &mut lane, &path, &pages)?;
    }
    Ok(())
}
