//! **Ring of a bare loop**: an io_uring with registered buffers and files, and the loop that keeps
//! it busy. Reads, writes and fsyncs all use this loop, and differ only in the entries they submit.

use super::files::{Files, check};
use super::memory::Memory;
use io_uring::{IoUring, squeue};
use std::io;
use std::os::fd::AsRawFd;

/// A ring, its registered memory, and the registered files.
pub(super) struct RingIo {
    // Dropped before the memory, because a ring may still be using it until it has been torn down.
    ring: IoUring,
    memory: Memory,
    pub(super) files: Files,
    depth: usize,
}

impl RingIo {
    /// Sets up a ring for up to `depth` concurrent operations, and registers the files and `bytes`
    /// of memory.
    pub(super) fn open(files: Files, depth: usize, bytes: usize) -> io::Result<Self> {
        let entries = u32::try_from(depth.next_power_of_two()).unwrap_or(u32::MAX);
        let ring = IoUring::builder().setup_coop_taskrun().build(entries)?;
        let memory = Memory::map(bytes)?;
        let submitter = ring.submitter();
        // SAFETY: fields are dropped in order, so the memory stays mapped until the ring has been
        // destroyed.
        unsafe { submitter.register_buffers(&memory.iovecs()) }?;
        let descriptors: Vec<_> = files.open.iter().map(AsRawFd::as_raw_fd).collect();
        submitter.register_files(&descriptors)?;
        Ok(Self { ring, memory, files, depth })
    }

    /// Executes one operation per item, keeping up to `depth` of them in flight. The `entry`
    /// closure builds the operation for an item in a given slot. The operation may reference only
    /// the given memory, and operations in different slots must not read into the same bytes. The
    /// `length` closure returns how many bytes an operation must transfer, and `ended` is called
    /// once it has completed, with the slot and the item.
    pub(super) fn run<T: Copy + Default>(
        &mut self,
        items: &[T],
        mut entry: impl FnMut(&mut Memory, usize, T) -> squeue::Entry,
        length: impl Fn(T) -> usize,
        mut ended: impl FnMut(&Files, &Memory, usize, T),
    ) -> io::Result<()> {
        let mut free: Vec<usize> = (0..self.depth).rev().collect();
        let mut slots = vec![T::default(); self.depth];
        let mut waiting = items.iter();
        let mut left = items.len();
        while left > 0 {
            while !free.is_empty()
                && let Some(&item) = waiting.next()
                && let Some(slot) = free.pop()
            {
                slots[slot] = item;
                let entry = entry(&mut self.memory, slot, item).user_data(slot as u64);
                // SAFETY: the memory that the entry references outlives the ring, and no other slot
                // uses the bytes that a read is filling until that read completes. If a run fails
                // midway, we drop the ring before the memory, and dropping the ring waits for all
                // operations in flight.
                unsafe { self.ring.submission().push(&entry) }.map_err(io::Error::other)?;
            }
            match self.ring.submit_and_wait(1) {
                Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
                result => drop(result?),
            }
            for entry in self.ring.completion() {
                let slot = entry.user_data() as usize;
                check(i64::from(entry.result()), length(slots[slot]))?;
                ended(&self.files, &self.memory, slot, slots[slot]);
                free.push(slot);
                left -= 1;
            }
        }
        Ok(())
    }
}
