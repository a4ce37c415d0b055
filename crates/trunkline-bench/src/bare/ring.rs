//! **Bare ring**: one thread submits reads to an io_uring with registered buffers and files, and
//! reaps the completions. As soon as a read completes, we reuse its buffer for the next read, so
//! the loop adds almost nothing to the cost of the device and the kernel.

use super::files::Files;
use super::ring_io::RingIo;
use super::threads::Look;
use crate::work::{Done, Work};
use io_uring::{opcode, types};
use std::io;

/// A ring with a buffer for each read in flight.
pub(crate) struct Ring(RingIo);

impl Ring {
    /// Sets up a ring for up to `depth` concurrent reads of up to `length` bytes.
    pub(crate) fn open(files: Files, depth: usize, length: u32) -> io::Result<Self> {
        Ok(Self(RingIo::open(files, depth, depth * length as usize)?))
    }

    /// Executes all reads, with up to `depth` reads in flight, and calls `look` for each read as
    /// soon as it has completed.
    pub(crate) fn run(&mut self, work: &Work, look: &Look<'_>) -> io::Result<Done> {
        let (segment, length) = (self.0.files.segment, work.length as usize);
        self.0.run(
            &work.offsets,
            |memory, slot, offset| {
                let file = types::Fixed((offset / segment) as u32);
                let buffer = memory.buffer(slot, length);
                let read = opcode::ReadFixed::new(file, buffer, work.length, 0);
                read.offset(offset % segment).build()
            },
            |_| length,
            |_, memory, slot, offset| look(offset, memory.filled(slot, length)),
        )?;
        Ok(Done::of(work))
    }
}
