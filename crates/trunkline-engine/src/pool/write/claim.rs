//! Claiming a page for a write: takes the content lock, sets the checksum, and enforces WAL before
//! data.
//!
//! A write request lists buffers that are not pinned, and it may be several minutes old, because a
//! checkpoint lists all dirty pages before it writes the first one. By the time we write a page,
//! its buffer may contain a different page. We must therefore pin the buffer and recheck its tag
//! before we claim it, just as `SyncOneBuffer` rechecks the flags while holding the buffer header
//! lock.

use super::super::descriptor::{BufferWord, WriteClaim, WriteEnd, flag};
use super::super::manager::BufferManager;
use super::request::{WriteRequest, WriteStart};
use trunkline_aio::WaitRef;
use trunkline_format::{BlockNo, Lsn, PageBytes, page, set_checksum};

/// Whether the request's first page is still in its buffer and still dirty.
pub(super) fn is_still_dirty(manager: &BufferManager, request: &WriteRequest<'_>) -> bool {
    let Some(&buffer) = request.buffers.first() else { return false };
    if !manager.pin_in(request.first, buffer) {
        return false;
    }
    let dirty = manager.buffers().state(buffer).has(flag::DIRTY);
    manager.unpin(buffer);
    dirty
}

/// Calls `how` to claim `block` for writing, provided that the buffer still contains that block.
/// After a successful claim, the I/O has its own pin and holds the content lock, so we can release
/// our temporary pin.
pub(super) fn claim_with(
    manager: &BufferManager,
    request: &WriteRequest<'_>,
    buffer: u32,
    block: BlockNo,
    io: WaitRef,
    how: impl FnOnce(&BufferWord, u64) -> WriteClaim,
) -> WriteClaim {
    // Take a short pin, so that the tag is stable.
    if !manager.pin_in(request.first.at(block), buffer) {
        return WriteClaim::Clean;
    }
    let descriptor = manager.buffers().descriptor(buffer);
    let claimed = how(descriptor.word(), request.needed);
    if claimed == WriteClaim::Claimed {
        descriptor.set_io(io);
    }
    manager.unpin(buffer);
    claimed
}

/// Claims one page, sets its checksum, and allows other sessions to read the page again. Returns
/// `Issued` if the page is ready to be written.
///
/// We must check the LSN while holding the exclusive lock. If we checked it before the claim,
/// another session could change the page and advance its LSN after the check. If the WAL hasn't
/// been flushed up to the LSN yet, we release the page rather than flushing the WAL here, because a
/// flush can take milliseconds, and readers of the page would have to wait for it.
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
    let frames = manager.frames();
    let lsn = frames.with_claimed_page(buffer, io, |bytes| prepare_page(bytes, block, request));
    let lsn = lsn.max(manager.buffers().descriptor(buffer).lsn());
    if lsn > request.durable {
        manager.buffers().finish_write(buffer, WriteEnd::NotIssued);
        return WriteStart::LogFirst(lsn);
    }
    manager.buffers().begin_write(buffer);
    claimed.into()
}

/// Sets the checksum of a page that is about to be written, and returns the LSN in its header. A new page has none, and
/// neither has a page without a header.
pub(super) fn prepare_page(
    bytes: &mut PageBytes,
    block: BlockNo,
    request: &WriteRequest<'_>,
) -> Lsn {
    if !request.first.has_header() {
        return Lsn(0);
    }
    set_checksum(bytes, block, request.relation.storage().checksums());
    if page::is_new(bytes) { Lsn(0) } else { page::PageHeader::parse(bytes).lsn }
}
