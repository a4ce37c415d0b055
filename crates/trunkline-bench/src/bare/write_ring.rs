//! **Bare write ring**: one thread writes a list of ranges through an io_uring and then fsyncs the
//! files. This is the device work of a checkpoint, without any of its other work.
//!
//! The ring just writes whatever its memory contains. That's OK because a checkpoint rewrites the
//! same pages before anything reads them. If the memory is as large as the data to write, each page
//! is written from a different address and isn't in the CPU cache, as in a real checkpoint.

use super::files::Files;
use super::memory::{Memory, PIECE};
use super::ring_io::RingIo;
use super::write_behind::{Range, WriteBehind};
use io_uring::{opcode, types};
use std::io;

/// A ring that writes from its memory, front to back and then again.
pub(crate) struct WriteRing {
    ring: RingIo,
    /// Offset in the memory at which the next write begins.
    at: usize,
}

impl WriteRing {
    /// Sets up a ring for up to `depth` concurrent writes, with the given amount of registered
    /// memory. The files must have been opened for writing, and the memory must be large enough for
    /// at least one write.
    pub(crate) fn open(files: Files, depth: usize, bytes: u64) -> io::Result<Self> {
        Ok(Self { ring: RingIo::open(files, depth, bytes as usize)?, at: 0 })
    }

    /// Writes all ranges, keeping up to `depth` writes in flight, and then fsyncs all files. We
    /// issue writeback each time we have written another `behind` blocks, or leave it to the kernel
    /// if `behind` is 0.
    pub(crate) fn run(&mut self, ranges: &[Range], behind: u64) -> io::Result<()> {
        let mut behind = WriteBehind::new(behind);
        let at = &mut self.at;
        self.ring.run(
            ranges,
            |memory, _, range| {
                // Nothing ever changes the memory, so writes may share it.
                let start = memory.next(at, range.length as usize);
                let buffer = memory.all()[start..].as_ptr();
                let (file, piece) = (types::Fixed(range.file), (start / PIECE) as u16);
                let write = opcode::WriteFixed::new(file, buffer, range.length, piece);
                write.offset(range.offset).build()
            },
            |range| range.length as usize,
            |files, _, _, range| behind.ended(files, range),
        )?;
        behind.flush(&self.ring.files);
        let files: Vec<u32> = (0..self.ring.files.open.len() as u32).collect();
        let fsync = |_: &mut Memory, _, file| opcode::Fsync::new(types::Fixed(file)).build();
        self.ring.run(&files, fsync, |_| 0, |_, _, _, _| {})
    }
}
