//! **Bare loops**: the baselines. Each is the smallest program that performs the same I/O on the
//! same device.
//!
//! The bare loops share no code with the I/O core that they're compared with: they have their own
//! memory mapping, their own ring and their own threads. The gap between a bare loop and the core
//! is therefore the overhead of handles, sessions and counters.

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

/// Open segments of equal length, addressed as one file. An offset divided by the segment length
/// gives the segment, and the remainder is the position in that segment.
#[derive(Debug)]
pub(crate) struct Files {
    open: Vec<File>,
    segment: u64,
}

impl Files {
    /// Opens the segments read-only. All are `segment` bytes long, except that the last may be
    /// shorter.
    pub(crate) fn open(paths: &[PathBuf], segment: u64, direct: bool) -> io::Result<Self> {
        let flags = if direct { libc::O_DIRECT } else { 0 };
        let open = |path| OpenOptions::new().read(true).custom_flags(flags).open(path);
        Ok(Self { open: paths.iter().map(open).collect::<io::Result<_>>()?, segment })
    }
}

impl Files {
    /// Opens the segments for writing, with or without `O_DIRECT`.
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

/// Fails on an error or a short transfer. Without this check, a baseline that transferred less
/// than it was asked to would look fast.
fn check(result: i64, length: usize) -> io::Result<()> {
    if result < 0 {
        return Err(io::Error::from_raw_os_error(-result as i32));
    }
    if result as usize != length {
        return Err(io::Error::other(format!("{result} bytes of {length}")));
    }
    Ok(())
}
