//! Claiming a page for a write: takes the content lock, sets the checksum, and enforces WAL before
//! data.
//!
//! A write request refers to unpinned buffers, and it may be minutes old: a checkpoint lists all
//! dirty pages before it writes the first one. By the time of the write the buffer may hold another
//! page. So the claim must recheck the tag under a pin before it trusts the buffer, as
//! `SyncOneBuffer` rechecks the flags under the buffer header lock.

use super::super::descriptor::{BufferWord, WriteClaim, WriteEnd, flag};
use super::super::manager::BufferManager;
use super::request::{WriteRequest, WriteStart};
use trunkline_aio::WaitRef;
use trunkline_format::{BlockNo, Lsn, PageBytes, page, page_checksum};

/// Whether the first page of the request is still in its buffer, and dirty.
pub(super) fn is_still_dirty(manager: &BufferManager, request: &WriteRequest<'_>) -> bool {
    let Some(&buffer) = request.buffers.first() else { return false };
    let descriptor = manager.buffers().descriptor(buffer);
    let Some(state) = descriptor.word().pin(0) else { return false };
    let dirty = descriptor.tag() == request.first && state.has(flag::DIRTY);
    manager.unpin(buffer);
    dirty
}

/// Claims the write of `block` with `how`, if the buffer still holds that block. On success the I/O
/// owns its own pin and the content lock, so the temporary pin can be released.
pub(super) fn claim_with(
    manager: &BufferManager,
    request: &WriteRequest<'_>,
    buffer: u32,
    block: BlockNo,
    io: WaitRef,
    how: impl FnOnce(&BufferWord, u64) -> WriteClaim,
) -> WriteClaim {
    let descriptor = manager.buffers().descriptor(buffer);
    // Take a short pin, so that the tag is stable.
    if descriptor.word().pin(0).is_none() {
        return WriteClaim::Clean;
    }
    let claimed = match descriptor.tag() == request.first.at(block) {
        true => how(descriptor.word(), request.needed),
        false => WriteClaim::Clean,
    };
    if claimed == WriteClaim::Claimed {
        descriptor.set_io(io);
    }
    manager.unpin(buffer);
    claimed
}

/// Claims one page, sets its checksum, and lets readers in again. Returns `Issued` if the page is
/// ready to be written.
///
/// The LSN is tested under the exclusive lock. Testing it before the claim would be wrong: a
/// session could change the page and raise its LSN between the test and the write. If the log isn't
/// durable up to the LSN, we release the page instead of flushing the log here, because a flush can
/// take milliseconds and readers of the page would wait for it.
pub(super) fn claim(
    manager: &BufferManager,
    request: &WriteRequest<'_>,
    buffer: u32,
    block: BlockNo,
    io: WaitRef,
) -> WriteStart {
    let claimed = claim_with(manager, request, buffer, block, io, BufferWord::start_write);
    if claimed != WriteClaim::Claimed {
        return claimed.into();
    }
    let checksums = request.relation.storage().checksums();
    let frames = manager.frames();
    let lsn = frames.with_claimed_page(buffer, io, |bytes| prepare_page(bytes, block, checksums));
    if lsn > request.durable {
        manager.buffers().finish_write(buffer, WriteEnd::NotIssued);
        return WriteStart::LogFirst(lsn);
    }
    manager.buffers().begin_write(buffer);
    claimed.into()
}

/// Sets the checksum of a page that is about to be written, and returns its LSN (PostgreSQL's
/// `PageSetChecksumInplace`). A new page has no header yet and stays as it is. Without data
/// checksums the field is set to 0, so that no stale checksum reaches the disk.
pub(super) fn prepare_page(bytes: &mut PageBytes, block: BlockNo, checksums: bool) -> Lsn {
    if page::is_new(bytes) {
        return Lsn(0);
    }
    let sum = if checksums { page_checksum(bytes, block) } else { 0 };
    bytes[8..10].copy_from_slice(&sum.to_le_bytes());
    page::PageHeader::parse(bytes).lsn
}
