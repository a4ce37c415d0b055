//! Reads pages of a file into memory of its own, outside of the pool, many at a time.
//!
//! Recovery uses it to read the pages that records are applied to.

use std::io;

use trunkline_aio::{Aio, Class, File, Session, Slots};
use trunkline_format::{BLOCK_SIZE, PageBytes};

use crate::log_writer::LogWriterError;

/// A session, and memory for the pages.
pub(crate) struct PageReader {
    session: Session,
    slots: Slots<()>,
    /// For each slot, how many bytes were read.
    counts: Vec<u32>,
}

impl PageReader {
    /// A reader of up to `pages` pages at a time.
    ///
    /// # Errors
    /// [`LogWriterError::Resources`].
    pub(crate) fn new(aio: &Aio, pages: usize) -> Result<Self, LogWriterError> {
        let missing = |what| LogWriterError::Resources { what };
        let session = aio.session().map_err(|_| missing("session of the I/O instance"))?;
        let mut slots = Slots::new(pages);
        for slot in 0..pages {
            let lease = aio.region().lease(1).ok_or(missing("memory of the page region"))?;
            if let Some(memory) = slots.memory(slot) {
                memory.push(lease);
            }
        }
        Ok(Self { session, slots, counts: vec![0; pages] })
    }

    /// Reads the pages at these offsets, at most as many as the reader has memory for. They are then [`PageReader::page`] 0, 1, and so on.
    ///
    /// # Errors
    /// A read failed.
    pub(crate) fn read(&mut self, file: &File, offsets: &[u64]) -> io::Result<()> {
        self.counts.fill(0);
        let mut issued = 0;
        while issued < offsets.len() {
            let first = issued;
            let mut batch = self.session.batch();
            while let Some(offset) = offsets.get(issued) {
                // Only the first may block: no session blocks while it has staged I/O.
                let io = match issued == first {
                    true => batch.acquire(Class::Maintenance).map_err(io::Error::other)?,
                    false => match batch.try_acquire(Class::Maintenance) {
                        Some(io) => io,
                        None => break,
                    },
                };
                let length = BLOCK_SIZE as u32;
                io.read(file, *offset, length, &mut self.slots, issued)
                    .map_err(io::Error::other)?;
                issued += 1;
            }
            drop(batch);
            self.wait_for(first..issued)?;
        }
        // A short read is the end of the file only if it is so again.
        for (slot, offset) in offsets.iter().enumerate() {
            while (1..BLOCK_SIZE as u32).contains(&self.counts[slot]) {
                let before = self.counts[slot];
                let io = self.session.acquire(Class::Maintenance).map_err(io::Error::other)?;
                io.read(file, *offset, BLOCK_SIZE as u32, &mut self.slots, slot)
                    .map_err(io::Error::other)?;
                self.wait_for(slot..slot + 1)?;
                if self.counts[slot] <= before {
                    break;
                }
            }
        }
        Ok(())
    }

    /// Waits for all of these reads, even if one fails.
    fn wait_for(&mut self, slots: std::ops::Range<usize>) -> io::Result<()> {
        let mut failed = Ok(());
        for slot in slots {
            let outcome = self.session.wait(&mut self.slots, slot).map_err(io::Error::other)?;
            match outcome.errno() {
                None => self.counts[slot] = outcome.count,
                Some(errno) => failed = Err(io::Error::from_raw_os_error(errno)),
            }
        }
        failed
    }

    /// A page that was read. `None` if the file ends before the end of it.
    pub(crate) fn page(&mut self, at: usize) -> Option<Box<PageBytes>> {
        if *self.counts.get(at)? < BLOCK_SIZE as u32 {
            return None;
        }
        let memory = self.slots.memory(at).and_then(|memory| memory.first());
        let page: &PageBytes = memory.and_then(|lease| lease.first_chunk())?;
        Some(Box::new(*page))
    }
}
