//! The references: the smallest programs that do the same work on the same device.
//!
//! They share no code with the I/O core that they judge. They have their own mapping, their own ring and their own
//! threads. The distance to them is the cost of a core with handles, sessions and counters.

#![expect(unsafe_code, reason = "a reference must not go through the core that it is to judge")]

mod futex;
mod memory;
mod ring;
mod threads;
mod write_behind;
mod write_ring;
mod write_threads;

pub(crate) use futex::{Placement, ping_pong};
pub(crate) use ring::Ring;
pub(crate) use threads::{Look, Threads};
use write_behind::WriteBehind;
pub(crate) use write_behind::{Range, lengthen};
pub(crate) use write_ring::WriteRing;
pub(crate) use write_threads::WriteThreads;

use std::fs::{File, OpenOptions};
use std::io;
use std::os::unix::fs::OpenOptionsExt;
use std::path::PathBuf;

/// Open segments of equal length, addressed by offsets that run through all of them.
#[derive(Debug)]
pub(crate) struct Files {
    open: Vec<File>,
    segment: u64,
}

impl Files {
    /// Opens the segments, each `segment` bytes long but the last.
    pub(crate) fn open(paths: &[PathBuf], segment: u64, direct: bool) -> io::Result<Self> {
        let flags = if direct { libc::O_DIRECT } else { 0 };
        let open = |path| OpenOptions::new().read(true).custom_flags(flags).open(path);
        Ok(Self { open: paths.iter().map(open).collect::<io::Result<_>>()?, segment })
    }
}

impl Files {
    /// Opens the segments for writing.
    pub(crate) fn open_for_writing(
        paths: &[PathBuf],
        segment: u64,
        direct: bool,
    ) -> io::Result<Self> {
        let flags = if direct { libc::O_DIRECT } else { 0 };
        let open = |path| OpenOptions::new().read(true).write(true).custom_flags(flags).open(path);
        Ok(Self { open: paths.iter().map(open).collect::<io::Result<_>>()?, segment })
    }
}

/// A transfer that is short or failed would make a reference fast for the wrong reason.
fn check(result: i64, length: usize) -> io::Result<()> {
    if result < 0 {
        return Err(io::Error::from_raw_os_error(-result as i32));
    }
    if result as usize != length {
        return Err(io::Error::other(format!("{result} bytes of {length}")));
    }
    Ok(())
}
