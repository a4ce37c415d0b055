//! **Bare write ring**: one thread writes a list of ranges through an io_uring and then fsyncs the
//! files. This is a checkpoint's device work without anything else.
//!
//! It writes whatever its memory contains. That is safe because a checkpoint rewrites the same
//! pages before anything reads them. If the memory is as large as the data it writes, each page
//! comes from a different address and is not in the CPU cache, as in a real checkpoint.

use super::memory::{Memory, PIECE};
use super::{Files, Range, WriteBehind, check};
use io_uring::{IoUring, opcode, squeue, types};
use std::io;
use std::os::fd::AsRawFd;

/// A ring, its registered memory, and the registered files.
pub(crate) struct WriteRing {
    // Dropped before the memory, because a ring may still be reading it until it has been torn
    // down.
    ring: IoUring,
    memory: Memory,
    files: Files,
    depth: usize,
    /// Offset in the memory at which the next write begins.
    at: usize,
}

impl WriteRing {
    /// Sets up a ring for up to `depth` concurrent writes with `bytes` of registered memory. The
    /// files must be open for writing, and the memory must have room for at least one write.
    pub(crate) fn open(files: Files, depth: usize, bytes: u64) -> io::Result<Self> {
        let entries = u32::try_from(depth.next_power_of_two()).unwrap_or(u32::MAX);
        let ring = IoUring::builder().setup_coop_taskrun().build(entries)?;
        let memory = Memory::map(bytes as usize)?;
        let submitter = ring.submitter();
        // SAFETY: fields are dropped in order, so the memory stays mapped until the ring has been
        // destroyed.
        unsafe { submitter.register_buffers(&memory.iovecs()) }?;
        let descriptors: Vec<_> = files.open.iter().map(AsRawFd::as_raw_fd).collect();
        submitter.register_files(&descriptors)?;
        Ok(Self { ring, memory, files, depth, at: 0 })
    }

    /// Writes all ranges with up to `depth` writes in flight, then fsyncs all files. Issues
    /// writeback after every `behind` written blocks; with 0, it leaves writeback to the kernel.
    pub(crate) fn run(&mut self, ranges: &[Range], behind: u64) -> io::Result<()> {
        let mut free: Vec<usize> = (0..self.depth).rev().collect();
        let mut slots = vec![Range::default(); self.depth];
        let mut behind = WriteBehind::new(behind);
        let mut waiting = ranges.iter();
        let mut left = ranges.len();
        while left > 0 {
            while !free.is_empty()
                && let Some(&range) = waiting.next()
                && let Some(slot) = free.pop()
            {
                slots[slot] = range;
                self.push_write(slot, range)?;
            }
            self.wait()?;
            for entry in self.ring.completion() {
                let slot = entry.user_data() as usize;
                check(i64::from(entry.result()), slots[slot].length as usize)?;
                behind.ended(&self.files, slots[slot]);
                free.push(slot);
                left -= 1;
            }
        }
        behind.flush(&self.files);
        self.sync()
    }

    fn push_write(&mut self, slot: usize, range: Range) -> io::Result<()> {
        let start = self.memory.next(&mut self.at, range.length as usize);
        let buffer = self.memory.all()[start..].as_ptr();
        let file = types::Fixed(range.file);
        let piece = (start / PIECE) as u16;
        let entry = opcode::WriteFixed::new(file, buffer, range.length, piece)
            .offset(range.offset)
            .build()
            .user_data(slot as u64);
        self.push(&entry)
    }

    fn push(&mut self, entry: &squeue::Entry) -> io::Result<()> {
        // SAFETY: the memory an entry points to is never modified, and outlives the ring.
        unsafe { self.ring.submission().push(entry) }.map_err(io::Error::other)
    }

    fn wait(&mut self) -> io::Result<()> {
        match self.ring.submit_and_wait(1) {
            Err(error) if error.kind() == io::ErrorKind::Interrupted => Ok(()),
            result => result.map(drop),
        }
    }

    fn sync(&mut self) -> io::Result<()> {
        let files = self.files.open.len();
        for group in (0..files as u32).collect::<Vec<_>>().chunks(self.depth) {
            for &file in group {
                self.push(&opcode::Fsync::new(types::Fixed(file)).build())?;
            }
            let mut left = group.len();
            while left > 0 {
                self.wait()?;
                for entry in self.ring.completion() {
                    check(i64::from(entry.result()), 0)?;
                    left -= 1;
                }
            }
        }
        Ok(())
    }
}
