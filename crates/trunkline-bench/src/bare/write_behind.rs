//! Parts that the bare write loops share: ranges of files, writeback, and file extension.
//!
//! A checkpoint through the page cache issues writeback (`sync_file_range`), so that the fsync at the end finds
//! little to do. A reference without it would do different device work.

use super::Files;
use std::fs::File;
use std::io;
use std::os::fd::AsRawFd;
use std::os::unix::fs::FileExt;
use trunkline_format::BLOCK_SIZE;

/// Ranges at most this many bytes apart are written back by one call.
const GAP_MAX: u64 = 1 << 20;

/// A part of a file.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct Range {
    /// Which of the files.
    pub(crate) file: u32,
    /// Bytes.
    pub(crate) offset: u64,
    /// Bytes.
    pub(crate) length: u32,
}

/// See the module.
#[derive(Debug)]
pub(super) struct WriteBehind {
    blocks: u64,
    bytes: u64,
    ended: Vec<Range>,
}

impl WriteBehind {
    /// Writeback after every `blocks` blocks; never, if 0.
    pub(super) fn new(blocks: u64) -> Self {
        Self { blocks, bytes: 0, ended: Vec::new() }
    }

    /// A write has ended.
    pub(super) fn ended(&mut self, files: &Files, range: Range) {
        if self.blocks == 0 {
            return;
        }
        self.bytes += u64::from(range.length);
        self.ended.push(range);
        if self.bytes >= self.blocks * BLOCK_SIZE as u64 {
            self.flush(files);
        }
    }

    /// Starts writeback of the ranges written since the last call. Near ranges become one, as in the engine.
    pub(super) fn flush(&mut self, files: &Files) {
        self.bytes = 0;
        self.ended.sort_unstable();
        let mut ranges = self.ended.drain(..).peekable();
        while let Some(mut range) = ranges.next() {
            while let Some(next) = ranges.next_if(|next| {
                next.file == range.file
                    && next.offset - range.offset - u64::from(range.length) <= GAP_MAX
            }) {
                range.length = (next.offset - range.offset) as u32 + next.length;
            }
            let descriptor = files.open[range.file as usize].as_raw_fd();
            let (offset, length) = (range.offset as i64, i64::from(range.length));
            // SAFETY: the descriptor is open; the call touches no memory. The result is ignored,
            // because the fsync at the end reports errors.
            unsafe {
                libc::sync_file_range(descriptor, offset, length, libc::SYNC_FILE_RANGE_WRITE)
            };
        }
    }
}

/// Makes an empty file `bytes` long, `step` bytes at a time: by reserving them, or by writing zeros
/// from memory that is aligned for direct I/O.
pub(crate) fn lengthen(file: &File, bytes: u64, step: u64, reserve: bool) -> io::Result<()> {
    let mut zeros = super::memory::Memory::map(step as usize)?;
    zeros.all().fill(0);
    for at in (0..bytes).step_by(step as usize) {
        if reserve {
            // SAFETY: the descriptor is open; the call touches no memory.
            let answer = unsafe { libc::posix_fallocate(file.as_raw_fd(), at as i64, step as i64) };
            if answer != 0 {
                return Err(io::Error::from_raw_os_error(answer));
            }
        } else {
            file.write_all_at(&zeros.all()[..step as usize], at)?;
        }
    }
    Ok(())
}
