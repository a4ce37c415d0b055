//! Durable writes of SLRU pages: those of the commit log and of multixacts, which have no checksum or LSN.

use std::io;
use std::path::Path;

use trunkline_format::PageBytes;

use crate::log_writer::{Lane, LogWriterError};
use crate::storage::WritableFiles;

/// Writes pages at their offsets, creates the file if necessary, and fsyncs it and its directory.
///
/// # Errors
/// [`LogWriterError::File`].
pub(crate) fn write_pages(
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
