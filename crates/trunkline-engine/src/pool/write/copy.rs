//! Writing from a copy: flushes a page that readers keep locked all the time.
//!
//! A write needs the exclusive lock for a moment, to set the checksum in the page. New readers can
//! keep it from ever getting that lock. But a checkpoint must write the page eventually, so it
//! takes the lock in share-exclusive mode from the start, copies the page, and sets the checksum in
//! the copy. The lock is held until the write ends even though the kernel only reads the copy,
//! because otherwise a change made during the write would be lost: the end of the write clears
//! `DIRTY`. PostgreSQL copied every page that it wrote with checksums (`PageSetChecksumCopy`); here
//! the copy is the exception.

use super::super::descriptor::{BufferWord, WriteClaim, WriteEnd};
use super::super::error::WriteError;
use super::claim::{claim_with, prepare_page};
use super::request::{WriteRequest, WriteStart};
use super::start::{PageWrites, locate};
use trunkline_aio::facade::Arc;
use trunkline_aio::{Lease, Session};
use trunkline_format::BLOCK_SIZE;

/// The slot that copies are written from.
const SLOT: usize = 0;

impl PageWrites {
    /// Gives the first slot one frame of memory to copy pages into.
    pub(crate) fn set_copy_memory(&mut self, lease: Lease) {
        self.window_mut().memory(SLOT).push(lease);
    }

    /// Starts writing a copy of one page from the first slot, which must be idle and have memory.
    ///
    /// # Errors
    /// As for [`PageWrites::start`].
    pub(crate) fn start_copy(
        &mut self,
        session: &mut Session,
        request: &WriteRequest<'_>,
    ) -> Result<WriteStart, WriteError> {
        let manager = Arc::clone(self.manager());
        let (buffer, block) = (request.buffers[0], request.block());
        let Some(located) = locate(&manager, session, request)? else {
            return Ok(WriteStart::Clean);
        };
        let Some(handle) = session.try_acquire(request.class) else {
            return Ok(WriteStart::NoHandle);
        };
        manager.frames().assert_same_instance(&handle);
        let io = handle.wait_ref();
        let how = BufferWord::start_write_of_copy;
        let claimed = claim_with(&manager, request, buffer, block, io, how);
        if claimed != WriteClaim::Claimed {
            return Ok(claimed.into());
        }
        let give_up = || manager.buffers().finish_write(buffer, WriteEnd::NotIssued);
        // As in `PageWrites::start`: if the file was replaced before the claim, we have located the
        // old one.
        if !request.relation.is_current((&located.file, block)) {
            give_up();
            return Ok(WriteStart::Busy);
        }
        let memory = self.window_mut().memory(SLOT).first_mut();
        let Some(copy) = memory.and_then(|lease| lease.first_chunk_mut::<BLOCK_SIZE>()) else {
            unreachable!("a copy written without memory for it");
        };
        // Readers may have the page locked, but no session can change it: we hold the
        // share-exclusive lock. So the copy is consistent.
        manager.frames().with_written_page(buffer, io, |bytes| copy.copy_from_slice(bytes));
        let lsn = prepare_page(copy, block, request.relation.storage().checksums());
        if lsn > request.durable {
            give_up();
            return Ok(WriteStart::LogFirst(lsn));
        }
        self.set_buffers(SLOT, &[buffer]);
        self.issue(SLOT, request, &located, handle, true)?;
        Ok(WriteStart::Issued { count: 1 })
    }
}
