//! **Bare `pread`**: one or more threads take reads from a shared list and execute them
//! synchronously.
//!
//! With one thread, this is the baseline for reads whose result is needed immediately. On a slow
//! device, we use one thread for each read in flight. A ring would also need kernel threads there,
//! so it would not be a better baseline.

use super::files::{Files, check};
use super::memory::Memory;
use crate::work::{Done, Work};
use std::io;
use std::os::unix::fs::FileExt;
use trunkline_aio::facade::atomic::{AtomicUsize, Ordering};

/// The files, one buffer per thread, and the number of threads.
pub(crate) struct Threads {
    files: Files,
    memory: Memory,
    threads: usize,
}

/// Callback for each completed read, with its offset and bytes.
pub(crate) type Look<'a> = dyn Fn(u64, &[u8]) + Sync + 'a;

impl Threads {
    /// Allocates one buffer of `length` bytes per thread. `threads` must be at least 1.
    pub(crate) fn open(files: Files, threads: usize, length: u32) -> io::Result<Self> {
        Ok(Self { files, memory: Memory::map(threads * length as usize)?, threads })
    }

    /// Executes all reads. Each thread takes the next entry from the list, so that a slow read
    /// delays only its own thread.
    pub(crate) fn run(&mut self, work: &Work, look: &Look<'_>) -> io::Result<Done> {
        let (files, next) = (&self.files, &AtomicUsize::new(0));
        let buffers = self.memory.all().chunks_exact_mut(work.length as usize);
        on_each(buffers.take(self.threads), &|buffer| read_all(files, buffer, work, next, look))?;
        Ok(Done::of(work))
    }
}

/// Calls `body` for each item in a separate thread; a single item runs in the calling thread.
pub(super) fn on_each<T: Send>(
    mut items: impl ExactSizeIterator<Item = T>,
    body: &(dyn Fn(T) -> io::Result<()> + Sync),
) -> io::Result<()> {
    if items.len() == 1 {
        return items.try_for_each(body);
    }
    std::thread::scope(|scope| {
        let threads: Vec<_> = items.map(|item| scope.spawn(move || body(item))).collect();
        let join = |thread: std::thread::ScopedJoinHandle<'_, io::Result<()>>| {
            thread.join().unwrap_or_else(|_| Err(io::Error::other("a thread panicked")))
        };
        threads.into_iter().try_for_each(join)
    })
}

fn read_all(
    files: &Files,
    buffer: &mut [u8],
    work: &Work,
    next: &AtomicUsize,
    look: &Look<'_>,
) -> io::Result<()> {
    let length = work.length as usize;
    while let Some(&offset) = work.offsets.get(next.fetch_add(1, Ordering::Relaxed)) {
        let file = &files.open[(offset / files.segment) as usize];
        let count = file.read_at(buffer, offset % files.segment)?;
        check(count as i64, length)?;
        look(offset, buffer);
    }
    Ok(())
}
