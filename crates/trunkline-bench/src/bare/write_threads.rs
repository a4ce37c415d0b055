//! **Bare `pwrite`**: threads take ranges from a shared list, write them with `pwrite` and then
//! fsync the files. This is the baseline for the `worker` method and, with just one thread, for
//! `sync`. The threads cycle through their memory in the same way as the bare ring.

use super::files::{Files, check};
use super::memory::Memory;
use super::threads::on_each;
use super::write_behind::{Range, WriteBehind};
use std::io;
use std::os::unix::fs::FileExt;
use trunkline_aio::facade::atomic::{AtomicUsize, Ordering};
use trunkline_format::BLOCK_SIZE;

/// The files, the memory that is written, and the number of threads.
pub(crate) struct WriteThreads {
    files: Files,
    memory: Memory,
    threads: usize,
}

impl WriteThreads {
    /// The files must have been opened for writing, and there must be at least one thread.
    /// Allocates `bytes` of memory, which must be enough for at least one write.
    pub(crate) fn open(files: Files, threads: usize, bytes: u64) -> io::Result<Self> {
        Ok(Self { files, memory: Memory::map(bytes as usize)?, threads })
    }

    /// Writes all ranges, then fsyncs all files. Each thread takes one range after another from the
    /// list, and then takes one file after another to fsync. The `behind` parameter has the same
    /// meaning as in [`WriteRing::run`](super::write_ring::WriteRing::run).
    pub(crate) fn run(&mut self, ranges: &[Range], behind: u64) -> io::Result<()> {
        let (files, next) = (&self.files, &AtomicUsize::new(0));
        let memory = &*self.memory.all();
        let at = &AtomicUsize::new(0);
        on_each(0..self.threads, &|_| {
            let mut behind = WriteBehind::new(behind);
            while let Some(&range) = ranges.get(next.fetch_add(1, Ordering::Relaxed)) {
                let length = range.length as usize;
                let start = at.fetch_add(length, Ordering::Relaxed) % (memory.len() - length + 1);
                let bytes = &memory[start & !(BLOCK_SIZE - 1)..][..length];
                let count = files.open[range.file as usize].write_at(bytes, range.offset)?;
                check(count as i64, bytes.len())?;
                behind.ended(files, range);
            }
            behind.flush(files);
            Ok(())
        })?;
        let next = &AtomicUsize::new(0);
        on_each(0..self.threads, &|_| {
            while let Some(file) = files.open.get(next.fetch_add(1, Ordering::Relaxed)) {
                file.sync_all()?;
            }
            Ok(())
        })
    }
}
