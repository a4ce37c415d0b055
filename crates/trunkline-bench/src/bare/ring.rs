//! **Bare ring**: one thread submits reads to an io_uring and reaps its completions, with
//! registered buffers and files. The next read reuses a buffer as soon as the previous read
//! completes, so the loop adds almost nothing to the cost of the device and the kernel.

use super::memory::Memory;
use super::{Files, check};
use crate::work::{Done, Work};
use io_uring::{IoUring, opcode, types};
use std::io;
use std::os::fd::AsRawFd;

/// A ring, its registered buffers, and the registered files.
pub(crate) struct Ring {
    // Dropped before the memory, because a ring may still be writing to it until it has been torn
    // down.
    ring: IoUring,
    memory: Memory,
    _files: Files,
    depth: usize,
    segment: u64,
}

impl Ring {
    /// Sets up a ring for up to `depth` concurrent reads of up to `length` bytes, and registers
    /// buffers and files.
    pub(crate) fn open(files: Files, depth: usize, length: u32) -> io::Result<Self> {
        let entries = u32::try_from(depth.next_power_of_two()).unwrap_or(u32::MAX);
        let ring = IoUring::builder().setup_coop_taskrun().build(entries)?;
        let memory = Memory::map(depth * length as usize)?;
        let submitter = ring.submitter();
        // SAFETY: fields are dropped in order, so the memory stays mapped until the ring has been
        // destroyed.
        unsafe { submitter.register_buffers(&memory.iovecs()) }?;
        let descriptors: Vec<_> = files.open.iter().map(AsRawFd::as_raw_fd).collect();
        submitter.register_files(&descriptors)?;
        Ok(Self { ring, memory, segment: files.segment, _files: files, depth })
    }

    /// Executes all reads, with up to `depth` reads in flight.
    pub(crate) fn run(&mut self, work: &Work) -> io::Result<Done> {
        let length = work.length as usize;
        let mut free: Vec<usize> = (0..self.depth).rev().collect();
        let mut offsets = work.offsets.iter();
        let mut left = work.offsets.len();
        while left > 0 {
            while !free.is_empty()
                && let Some(&offset) = offsets.next()
                && let Some(slot) = free.pop()
            {
                self.push(slot, offset, length)?;
            }
            match self.ring.submit_and_wait(1) {
                Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
                result => drop(result?),
            }
            for entry in self.ring.completion() {
                check(i64::from(entry.result()), length)?;
                free.push(entry.user_data() as usize);
                left -= 1;
            }
        }
        Ok(Done::of(work))
    }

    fn push(&mut self, slot: usize, offset: u64, length: usize) -> io::Result<()> {
        let file = types::Fixed((offset / self.segment) as u32);
        let buffer = self.memory.buffer(slot, length);
        let entry = opcode::ReadFixed::new(file, buffer, length as u32, 0)
            .offset(offset % self.segment)
            .build()
            .user_data(slot as u64);
        // SAFETY: the slot owns the buffer until the read completes, and the buffer outlives the
        // ring. If a run fails midway, the ring is dropped first, which waits for the reads in
        // flight.
        unsafe { self.ring.submission().push(&entry) }.map_err(io::Error::other)
    }
}
