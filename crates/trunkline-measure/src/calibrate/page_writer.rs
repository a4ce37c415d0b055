//! **Page writer**: writes pages into the page cache and has the kernel write them back after some
//! bytes, as the checkpointer and the background writer do with their flush settings.

use std::fs::File as StdFile;
use std::ops::Range;
use std::os::unix::fs::FileExt;
use std::path::Path;

use trunkline_aio::{Class, File, Session, Slots, Status};

use super::load::PAGE;
use crate::error::MeasureError;

/// Whether to end is asked after every megabyte.
const ASKED_EVERY: u64 = 1 << 20;

/// Writes the pages of a range in order, or of a part of it if `ends` returns true, and begins their
/// writeback after every `after` bytes (0: never), then syncs the file, as a checkpoint does. Returns
/// why the writeback isn't possible, if it isn't. Both files are the same one. The blocks get stamps
/// after `stamp`, so that none is equal to another one.
pub(super) fn write_pages(
    session: &mut Session,
    (file, handle): (&StdFile, &File),
    range: Range<u64>,
    after: u64,
    mut stamp: u64,
    ends: &dyn Fn() -> bool,
) -> Result<Option<String>, MeasureError> {
    let fail = |error| MeasureError::file(Path::new("scratch file"), error);
    let mut page = vec![0xA5; PAGE as usize];
    let mut slots = Slots::new(1);
    let mut flushed = range.start;
    for at in range.clone().step_by(PAGE as usize) {
        for block in page.chunks_mut(4096) {
            stamp += 1;
            block[..16].copy_from_slice(&[at.to_le_bytes(), stamp.to_le_bytes()].concat());
        }
        file.write_all_at(&page, at).map_err(fail)?;
        let written = at + u64::from(PAGE);
        if after > 0 && written - flushed >= after {
            let io = session.acquire(Class::Checkpoint)?;
            // At most 2 MB.
            io.begin_writeback(handle, flushed, (written - flushed) as u32, &mut slots, 0);
            let outcome = session.wait(&mut slots, 0)?;
            if outcome.status != Status::Ok {
                return Ok(Some(format!("sync_file_range failed: {}", slots.describe(outcome))));
            }
            flushed = written;
        }
        if written.is_multiple_of(ASKED_EVERY) && ends() {
            break;
        }
    }
    file.sync_data().map_err(fail)?;
    Ok(None)
}
