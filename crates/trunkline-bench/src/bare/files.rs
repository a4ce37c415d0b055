//! **Segments of a bare loop**: open files of equal length that we address as one long file, and
//! the check that each transfer was complete.

use std::fs::{File, OpenOptions};
use std::io;
use std::os::unix::fs::OpenOptionsExt;
use std::path::PathBuf;

/// What the files are opened for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Access {
    Read,
    Write,
}

/// Open segments. To locate an offset, we divide it by the segment length. The quotient is the
/// number of the segment, and the remainder is the position within it.
#[derive(Debug)]
pub(crate) struct Files {
    pub(super) open: Vec<File>,
    pub(super) segment: u64,
}

impl Files {
    /// Opens the segments, with or without `O_DIRECT`. All are `segment` bytes long, except that
    /// the last may be shorter.
    pub(crate) fn open(
        paths: &[PathBuf],
        segment: u64,
        access: Access,
        direct: bool,
    ) -> io::Result<Self> {
        let mut options = OpenOptions::new();
        options.read(true).write(access == Access::Write);
        options.custom_flags(if direct { libc::O_DIRECT } else { 0 });
        let open = paths.iter().map(|path| options.open(path));
        Ok(Self { open: open.collect::<io::Result<_>>()?, segment })
    }
}

/// Fails on an error or a short transfer. If we didn't check this, a baseline that transferred less
/// than requested would look faster than it really is.
pub(super) fn check(result: i64, length: usize) -> io::Result<()> {
    if result < 0 {
        return Err(io::Error::from_raw_os_error(-result as i32));
    }
    if result as usize != length {
        return Err(io::Error::other(format!("{result} bytes of {length}")));
    }
    Ok(())
}
