//! Writing from a copy: flushes a page even if readers keep it locked all the time.
//!
//! To write a page, we need the exclusive lock for a moment, to set the checksum in the page. If
//! new readers keep arriving, we might never get that lock. But a checkpoint must write the page
//! eventually, so in that case it takes only the share-exclusive lock, copies the page, and sets
//! the checksum in the copy. We hold the lock until the write ends, although the kernel reads only
//! from the copy. Otherwise another session could change the page during the write, and that change
//! would be lost when we clear `DIRTY` at the end. PostgreSQL used to copy every page before
//! writing it with a checksum (`PageSetChecksumCopy`), but we do this only as a last resort.

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

    /// Copies one page and starts writing the copy from the first slot. The slot must be idle and
    /// must have memory.
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
        // As in `PageWrites::start`, the file may have been replaced before the claim, in which
        // case we have located the old one.
        if !request.relation.is_current((&located.file, block)) {
            give_up();
            return Ok(WriteStart::Busy);
        }
        let memory = self.window_mut().memory(SLOT).first_mut();
        let Some(copy) = memory.and_then(|lease| lease.first_chunk_mut::<BLOCK_SIZE>()) else {
            unreachable!("a copy written without memory for it");
        };
        // Other sessions may be reading the page, but they can't change it while we hold the
        // share-exclusive lock, so our copy is consistent.
        manager.frames().with_written_page(buffer, io, |bytes| copy.copy_from_slice(bytes));
        let lsn = prepare_page(copy, block, request);
        let lsn = lsn.max(manager.buffers().descriptor(buffer).lsn());
        if lsn > request.durable {
            give_up();
            return Ok(WriteStart::LogFirst(lsn));
        }
        self.set_buffers(SLOT, &[buffer]);
        self.issue(SLOT, request, &located, handle, true)?;
        Ok(WriteStart::Issued { count: 1 })
    }
}
