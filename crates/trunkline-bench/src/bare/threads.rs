//! `pread` in a loop, by one thread or by several that share a list.
//! With one thread it is the reference of a read that is needed now; with as many as a device
//! serves at once it is that of a slow device, where a ring would need kernel threads as well.

use super::memory::Memory;
use super::{Files, check};
use crate::work::{Done, Work};
use std::io;
use std::os::unix::fs::FileExt;
use trunkline_aio::sync::atomic::{AtomicUsize, Ordering};

/// See the module.
pub(crate) struct Threads {
    files: Files,
    memories: Vec<Memory>,
}

/// What a thread does with each read, by offset.
pub(crate) type Look<'a> = dyn Fn(u64, &[u8]) + Sync + 'a;

impl Threads {
    /// Opens the files; `threads` is at least 1.
    pub(crate) fn open(files: Files, threads: usize, length: u32) -> io::Result<Self> {
        let memory = |_| Memory::map(length as usize);
        Ok(Self { files, memories: (0..threads).map(memory).collect::<io::Result<_>>()? })
    }

    /// Reads everything; each thread takes the next entry of the list.
    pub(crate) fn run(&mut self, work: &Work, look: &Look<'_>) -> io::Result<Done> {
        let (files, next) = (&self.files, &AtomicUsize::new(0));
        match &mut self.memories[..] {
            [one] => read_all(files, one, work, next, look)?,
            many => std::thread::scope(|scope| {
                let threads: Vec<_> = many
                    .iter_mut()
                    .map(|memory| scope.spawn(|| read_all(files, memory, work, next, look)))
                    .collect();
                let join = |thread: std::thread::ScopedJoinHandle<'_, io::Result<()>>| {
                    thread.join().unwrap_or_else(|_| Err(io::Error::other("a thread panicked")))
                };
                threads.into_iter().try_for_each(join)
            })?,
        }
        Ok(Done::of(work))
    }
}

fn read_all(
    files: &Files,
    memory: &mut Memory,
    work: &Work,
    next: &AtomicUsize,
    look: &Look<'_>,
) -> io::Result<()> {
    let length = work.length as usize;
    let buffer = &mut memory.all()[..length];
    while let Some(&offset) = work.offsets.get(next.fetch_add(1, Ordering::Relaxed)) {
        let file = &files.open[(offset / files.segment) as usize];
        let count = file.read_at(buffer, offset % files.segment)?;
        check(count as i64, length)?;
        look(offset, buffer);
    }
    Ok(())
}
