//! Writes the deferred pages at the end of a stream. For each page, we either wait for its lock or
//! write a copy of the page.
//!
//! A page may also be deferred because its LSN advances all the time, so that it's never durable when we want to write
//! the page. We flush the log for such a page while we hold a share lock on it, and then write a copy. PostgreSQL flushes
//! the log under that lock for every page (`FlushBuffer`), so that sessions that want to change the page wait for the
//! flush.

use super::WriteStream;
use crate::pool::{Backend, BufferTag, PageWrites, PinRef, WriteError, WriteStart};
use crate::storage::Relation;
use trunkline_aio::facade::Arc;

impl WriteStream {
    /// Writes the deferred pages one by one. If the session is cancelled, the current page and all
    /// pages after it stay on the list and remain dirty.
    pub(super) fn write_deferred(&mut self, backend: &mut Backend) -> Result<(), WriteError> {
        while let Some((tag, buffer)) = self.deferred.pop() {
            let written = match self.manager.clusters().relation(tag) {
                Some(relation) => self.write_locked(backend, &relation, tag, buffer),
                None => {
                    self.stats.clean += 1;
                    Ok(())
                }
            };
            written.inspect_err(|_| self.deferred.push_front(tag, buffer))?;
        }
        Ok(())
    }

    /// Writes one page, waiting for the lock if necessary. While it waits, the session doesn't hold
    /// any locks except for those of its writes in flight.
    fn write_locked(
        &mut self,
        backend: &mut Backend,
        relation: &Relation,
        tag: BufferTag,
        buffer: u32,
    ) -> Result<(), WriteError> {
        loop {
            // We need a slot before we do anything else. It's safe to wait for one, because our
            // writes have been submitted.
            while !self.writes.window().has_idle() {
                self.wait_for_one(backend)?;
            }
            match self.start(backend.session(), relation, tag, &[buffer]) {
                WriteStart::Issued { .. } => return Ok(()),
                WriteStart::Clean => {
                    self.stats.clean += 1;
                    return Ok(());
                }
                WriteStart::Busy => {
                    // The page is locked or is already being written. We will have to wait, so
                    // submit all staged writes first: the session that holds the lock may be
                    // waiting for one of our pages.
                    backend.session().submit();
                    if self.write_copy(backend, relation, tag, buffer)? {
                        return Ok(());
                    }
                    // The page is locked exclusively, or an I/O on it is in progress. Neither takes
                    // long, so we sleep until the state word changes and then try again.
                    self.stats.waits += 1;
                    backend.wait_until_writable(buffer)?;
                }
                WriteStart::LogFirst(lsn) => {
                    if self.write_share_locked(backend, relation, tag, buffer)? {
                        return Ok(());
                    }
                    self.resolve(backend, WriteStart::LogFirst(lsn))?;
                }
                WriteStart::NoHandle => self.resolve(backend, WriteStart::NoHandle)?,
            }
        }
    }

    /// Holds a share lock on the page, so that its LSN can't advance, while flushing the log up to that LSN and writing
    /// a copy of the page. Returns false if an I/O on the page is in progress, or if there's no memory for a copy.
    fn write_share_locked(
        &mut self,
        backend: &mut Backend,
        relation: &Relation,
        tag: BufferTag,
        buffer: u32,
    ) -> Result<bool, WriteError> {
        backend.session().submit();
        let manager = Arc::clone(&self.manager);
        if !manager.pin_in(tag, buffer) {
            self.stats.clean += 1;
            return Ok(true);
        }
        let written = match backend.read_lock(PinRef::new(manager.frames(), buffer)) {
            Ok(_locked) => self.write_copy(backend, relation, tag, buffer),
            Err(cancelled) => Err(cancelled.into()),
        };
        manager.unpin(buffer);
        written
    }

    /// Writes a copy of a page that is locked by readers, and waits for the write to complete.
    /// Returns false if the page is locked exclusively or is already being written, or if there's
    /// no memory for a copy.
    fn write_copy(
        &mut self,
        backend: &mut Backend,
        relation: &Relation,
        tag: BufferTag,
        buffer: u32,
    ) -> Result<bool, WriteError> {
        if !self.deferred.has_copies()
            && let Some(lease) = backend.session().lease(1)
        {
            let mut copies = PageWrites::new(&self.manager, 1, 1);
            copies.set_copy_memory(lease);
            self.deferred.set_copies(copies);
        }
        let Some(mut copies) = self.deferred.take_copies() else { return Ok(false) };
        let written = self.write_copy_with(&mut copies, backend, relation, tag, buffer);
        self.deferred.set_copies(copies);
        written
    }

    fn write_copy_with(
        &mut self,
        copies: &mut PageWrites,
        backend: &mut Backend,
        relation: &Relation,
        tag: BufferTag,
        buffer: u32,
    ) -> Result<bool, WriteError> {
        // If an earlier call was cancelled, its copy may still be in flight.
        self.finish_copies(copies, backend)?;
        loop {
            let request = self.request(relation, tag, std::slice::from_ref(&buffer));
            let started = match copies.start_copy(backend.session(), &request) {
                Ok(started) => started,
                Err(error) => {
                    // As with any other write, record the error and continue with the other pages.
                    self.fail(error);
                    return Ok(true);
                }
            };
            match started {
                WriteStart::Issued { .. } => {
                    self.stats.writes += 1;
                    self.stats.copies += 1;
                    self.finish_copies(copies, backend)?;
                    return Ok(true);
                }
                WriteStart::Clean => {
                    self.stats.clean += 1;
                    return Ok(true);
                }
                WriteStart::Busy => return Ok(false),
                refused => self.resolve(backend, refused)?,
            }
        }
    }

    /// Waits for the copy in flight, if there is one.
    fn finish_copies(
        &mut self,
        copies: &mut PageWrites,
        backend: &mut Backend,
    ) -> Result<(), WriteError> {
        while copies.window().in_flight() > 0 {
            let ended = copies.wait_ended(backend.session())?;
            self.note(ended);
        }
        Ok(())
    }
}
