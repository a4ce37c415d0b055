//! Code shared by the bare write loops: file ranges, **writeback**, and relation extension.
//!
//! A buffered checkpoint issues writeback (`sync_file_range`) as it goes along, so that its final
//! fsync finds little left to write. The baseline must do the same, because otherwise it would put
//! a different load on the device.

use super::files::Files;
use super::memory::Memory;
use std::fs::File;
use std::io;
use std::os::fd::AsRawFd;
use std::os::unix::fs::FileExt;
use trunkline_format::BLOCK_SIZE;

/// Ranges with a gap of at most this many bytes are merged into one `sync_file_range` call.
const GAP_MAX: u64 = 1 << 20;

/// A byte range of one file.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct Range {
    /// Index of the file.
    pub(crate) file: u32,
    /// Bytes.
    pub(crate) offset: u64,
    /// Bytes.
    pub(crate) length: u32,
}

/// Writes that have completed since writeback was last issued.
#[derive(Debug)]
pub(super) struct WriteBehind {
    blocks: u64,
    bytes: u64,
    ended: Vec<Range>,
}

impl WriteBehind {
    /// Issues writeback after every `blocks` written blocks; 0 disables it.
    pub(super) fn new(blocks: u64) -> Self {
        Self { blocks, bytes: 0, ended: Vec::new() }
    }

    /// Records a completed write, and issues writeback if enough blocks have accumulated.
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

    /// Starts writeback of the ranges written since the last call. Nearby ranges are merged, as in
    /// the engine.
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
            // SAFETY: the descriptor is open, and the call doesn't access any of our memory. We can
            // ignore the result, because the final fsync reports any error.
            unsafe {
                libc::sync_file_range(descriptor, offset, length, libc::SYNC_FILE_RANGE_WRITE)
            };
        }
    }
}

/// Extends an empty file to the given size, `step` bytes at a time. If `reserve` is set, we call
/// `posix_fallocate`; otherwise we write zeros from memory that is aligned for direct I/O.
pub(crate) fn lengthen(file: &File, bytes: u64, step: u64, reserve: bool) -> io::Result<()> {
    let mut zeros = Memory::map(step as usize)?;
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
