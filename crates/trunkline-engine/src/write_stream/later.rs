//! What a stream has left for later: pages that somebody used when their turn came.
//!
//! ```text
//!   in use ──▶ left ──▶ at the end, one by one: free ──▶ written like any other
//!                                               read all the while ──▶ a copy is written
//!                                               changed, or written by others ──▶ waited for
//! ```
//! Names only, since there may be very many of them. While a page is dirty somebody has its cluster, so
//! its relation is found again by its name; a cluster that is gone has nothing to write.

use super::WriteStream;
use crate::pool::write::{StartWrite, WriteError, Writes};
use crate::pool::{Backend, Tag};
use crate::storage::Relation;
use std::collections::VecDeque;

/// See the module.
#[derive(Debug, Default)]
pub(super) struct Later {
    /// With the buffers that they are thought to be in.
    pages: VecDeque<(Tag, u32)>,
    /// For pages that somebody reads all the while.
    copies: Option<Writes>,
}

impl Later {
    /// Leaves a page that is thought to be in `buffer`.
    pub(super) fn push(&mut self, tag: Tag, buffer: u32) {
        self.pages.push_back((tag, buffer));
    }

    /// Whether nothing is left.
    pub(super) fn is_empty(&self) -> bool {
        self.pages.is_empty()
    }
}

impl WriteStream {
    /// Writes what is left, one by one: if the session is cancelled, the others are still to be written.
    pub(super) fn write_later(&mut self, backend: &mut Backend) -> Result<(), WriteError> {
        while let Some((tag, buffer)) = self.later.pages.pop_front() {
            let written = match self.shared.relation(tag) {
                Some(relation) => self.write_in_the_end(backend, &relation, tag, buffer),
                None => {
                    self.stats.clean += 1;
                    Ok(())
                }
            };
            written.inspect_err(|_| self.later.pages.push_front((tag, buffer)))?;
        }
        Ok(())
    }

    /// Writes one page, waiting for whoever uses it. Holds no lock while it waits, but those of writes
    /// that are under way.
    fn write_in_the_end(
        &mut self,
        backend: &mut Backend,
        relation: &Relation,
        tag: Tag,
        buffer: u32,
    ) -> Result<(), WriteError> {
        loop {
            while !self.writes.has_idle() {
                self.wait_for_one(backend)?;
            }
            match self.start(&mut backend.session, relation, tag, &[buffer]) {
                StartWrite::Issued { .. } => return Ok(()),
                StartWrite::Clean => {
                    self.stats.clean += 1;
                    return Ok(());
                }
                StartWrite::Busy => {
                    backend.session.submit();
                    if self.write_copy(backend, relation, tag, buffer)? {
                        return Ok(());
                    }
                    self.stats.waits += 1;
                    backend.wait_for_page(buffer)?;
                }
                refused => self.settle(backend, refused)?,
            }
        }
    }

    /// Writes a page that somebody reads, from a copy, and waits for that. False: somebody changes it
    /// or writes it, or there is no memory for a copy.
    fn write_copy(
        &mut self,
        backend: &mut Backend,
        relation: &Relation,
        tag: Tag,
        buffer: u32,
    ) -> Result<bool, WriteError> {
        if self.later.copies.is_none() {
            let mut copies = Writes::new(&self.shared, 1, 1);
            let lease = backend.session.lease(1);
            if let (Some(lease), Some(memory)) = (lease, copies.operations.memory(0)) {
                memory.push(lease);
                self.later.copies = Some(copies);
            }
        }
        let Some(mut copies) = self.later.copies.take() else { return Ok(false) };
        let written = self.write_copy_with(&mut copies, backend, relation, tag, buffer);
        self.later.copies = Some(copies);
        written
    }

    fn write_copy_with(
        &mut self,
        copies: &mut Writes,
        backend: &mut Backend,
        relation: &Relation,
        tag: Tag,
        buffer: u32,
    ) -> Result<bool, WriteError> {
        // Perhaps one was left behind by a call that was cancelled.
        self.end_copy(copies, backend)?;
        loop {
            let started = {
                let dirty = self.dirty(relation, tag, std::slice::from_ref(&buffer));
                copies.start_copy(&mut backend.session, &dirty)
            };
            let started = match started {
                Ok(started) => started,
                Err(error) => {
                    // As of any other write: the rest of the work goes on.
                    self.fail(error);
                    return Ok(true);
                }
            };
            match started {
                StartWrite::Issued { .. } => {
                    self.stats.writes += 1;
                    self.stats.copies += 1;
                    self.end_copy(copies, backend)?;
                    return Ok(true);
                }
                StartWrite::Clean => {
                    self.stats.clean += 1;
                    return Ok(true);
                }
                StartWrite::Busy => return Ok(false),
                refused => self.settle(backend, refused)?,
            }
        }
    }

    /// Waits for the copy that is being written, if there is one.
    fn end_copy(&mut self, copies: &mut Writes, backend: &mut Backend) -> Result<(), WriteError> {
        while copies.in_flight() > 0 {
            let (slot, outcome) = backend.session.wait_any(&mut copies.operations)?;
            let written = copies.finish(slot, outcome);
            self.note(written);
        }
        Ok(())
    }
}
