//! Starting a write: claims neighbouring dirty pages, and issues one I/O for them.
//!
//! ```text
//!   start(first, buffers)
//!     an I/O handle                             (none free: NoHandle)
//!     claim page by page, holding the exclusive lock just for the checksum
//!       clean, or evicted ──────────▶ the first: Clean       a later one: the write ends before it
//!       locked, or under I/O ───────▶ the first: Busy        a later one: the write ends before it
//!       log not durable that far ───▶ the first: LogFirst    a later one: the write ends before it
//!     pass the locks, now share-exclusive, to the I/O, and issue ──▶ Issued: `count` blocks
//! ```
//!
//! Nothing here waits. A session must not wait for one page's lock while it holds another page's
//! lock, because the session that it waits for may itself be waiting for the other page. So a
//! locked page merely ends the run. Before the caller waits for that page, it submits the writes it
//! has collected, and their completion releases the locks.
//!
//! # Why the file is checked after the claim
//!
//! The file is located before the page is claimed, because opening a file can block. In between,
//! another session may truncate or drop the relation and create a new file under the same name.
//! After the claim that's no longer possible: invalidation waits for I/O in progress. So once the
//! first page is claimed, we check that the located file is still the current one, and start over
//! if it isn't. Otherwise the page would be written to an unlinked file, and would count as clean.

use super::super::descriptor::WriteEnd;
use super::super::error::WriteError;
use super::super::frame::Transfer;
use super::super::manager::BufferManager;
use super::super::tag::BufferTag;
use super::claim::{claim, is_still_dirty};
use super::completion::{WriteCallback, WritePayload};
use super::request::{WriteRequest, WriteResult, WriteStart};
use crate::Location;
use crate::storage::{Located, PendingFsync, SegmentName};
use crate::window::SlotWindow;
use std::io;
use trunkline_aio::facade::Arc;
use trunkline_aio::{Io, Outcome, Session, Status};
use trunkline_format::BLOCK_SIZE;
use trunkline_format::segment::segment_of;

/// The page writes of one session or stream: a bounded number in flight, each of a bounded size.
#[derive(Debug)]
pub(crate) struct PageWrites {
    manager: Arc<BufferManager>,
    window: SlotWindow<WritePayload, PageWrite>,
    combine_max: u32,
}

/// One write in flight, as the issuer remembers it. The completion callback has its own data, in
/// the payload.
#[derive(Debug, Default)]
pub(crate) struct PageWrite {
    /// The first block. We keep only a tag, because the issuer may be idle for a long time before
    /// it takes the result, and it must not keep a removed file or a closed cluster open until
    /// then.
    first: Option<BufferTag>,
    buffers: Vec<u32>,
}

impl PageWrites {
    /// For `slots` writes in flight, of up to `combine_max` blocks each.
    pub(crate) fn new(manager: &Arc<BufferManager>, slots: usize, combine_max: u32) -> Self {
        let callback = Arc::new(WriteCallback::new(manager));
        let mut window: SlotWindow<WritePayload, PageWrite> =
            SlotWindow::new(slots, vec![callback]);
        let blocks = combine_max as usize;
        for slot in 0..slots {
            window.payload(slot).reserve(blocks);
            window.item_mut(slot).buffers.reserve_exact(blocks);
        }
        Self { manager: Arc::clone(manager), window, combine_max }
    }

    /// The pool whose pages are written.
    pub(super) fn manager(&self) -> &Arc<BufferManager> {
        &self.manager
    }

    /// The writes in flight.
    pub(crate) fn window(&self) -> &SlotWindow<WritePayload, PageWrite> {
        &self.window
    }

    /// The writes in flight, for a caller that waits for them.
    pub(crate) fn window_mut(&mut self) -> &mut SlotWindow<WritePayload, PageWrite> {
        &mut self.window
    }

    /// Starts to write the pages of a request. The caller must have an idle slot.
    ///
    /// # Errors
    /// The file of the block cannot be used.
    pub(crate) fn start(
        &mut self,
        session: &mut Session,
        request: &WriteRequest<'_>,
    ) -> Result<WriteStart, WriteError> {
        let manager = Arc::clone(&self.manager);
        let first = request.block();
        let Some(located) = locate(&manager, session, request)? else {
            return Ok(WriteStart::Clean);
        };
        let slot = self.window.expect_idle();
        // The handle comes before the claims. A session that waited for a handle while it held
        // content locks could wait for a session that wants one of these locks.
        let Some(handle) = session.try_acquire(request.class) else {
            return Ok(WriteStart::NoHandle);
        };
        let handle = if request.needed_now { handle.needed_now() } else { handle };
        manager.frames().assert_same_instance(&handle);
        let io = handle.wait_ref();
        let most = self.combine_max.min(located.blocks_left) as usize;
        // Claim pages in ascending block order and stop at the first one that is refused. No claim
        // waits, so the order can't cause a deadlock; it only decides where the write ends.
        let claimed = &mut self.window.item_mut(slot).buffers;
        claimed.clear();
        for (&buffer, block) in request.buffers.iter().take(most).zip(first..) {
            match claim(&manager, request, buffer, block, io) {
                // From here on the page can't be evicted, nor its relation dropped. But if the file
                // was replaced before the claim, we have located the old one.
                WriteStart::Issued { .. }
                    if claimed.is_empty()
                        && !request.relation.is_current((&located.file, first)) =>
                {
                    manager.buffers().finish_write(buffer, WriteEnd::NotIssued);
                    return Ok(WriteStart::Busy);
                }
                WriteStart::Issued { .. } => claimed.push(buffer),
                refused if claimed.is_empty() => return Ok(refused),
                _ => break,
            }
        }
        let count = claimed.len() as u32;
        self.issue(slot, request, &located, handle, false)?;
        Ok(WriteStart::Issued { count })
    }

    /// Issues the write of the pages that were claimed in a slot, or of the copy of a page in the
    /// slot's memory. The segment is registered as being written first, so that an fsync which
    /// starts during the write is known not to cover it.
    pub(super) fn issue(
        &mut self,
        slot: usize,
        request: &WriteRequest<'_>,
        located: &Located,
        handle: Io<'_>,
        copied: bool,
    ) -> Result<(), WriteError> {
        let (manager, io) = (&self.manager, handle.wait_ref());
        let (write, slots) = self.window.item_and_slots(slot);
        let fsync = begin_pending_fsync(request);
        if let Some(payload) = slots.payload(slot) {
            payload.set(manager, Arc::clone(&fsync), request.block(), &write.buffers, io);
        }
        let issued = match copied {
            true => handle.write(&located.file, located.offset, BLOCK_SIZE as u32, slots, slot),
            false => {
                let (frames, from) = (manager.frames(), (slots, slot));
                frames.issue(handle, Transfer::Write, located, &write.buffers, from)
            }
        };
        if let Err(source) = issued {
            fsync.write_ended();
            let end = WriteEnd::NotIssued;
            write.buffers.iter().for_each(|&buffer| manager.buffers().finish_write(buffer, end));
            return Err(WriteError::Define {
                location: Location::new(located.file.path()),
                source,
            });
        }
        write.first = Some(request.first);
        self.window.issued(slot);
        Ok(())
    }

    /// Stores the buffers of the write that is being started in a slot.
    pub(super) fn set_buffers(&mut self, slot: usize, buffers: &[u32]) {
        let claimed = &mut self.window.item_mut(slot).buffers;
        claimed.clear();
        claimed.extend_from_slice(buffers);
    }

    /// Takes the result of some write that has ended.
    pub(crate) fn take_ended(&mut self) -> Option<Result<WriteResult, WriteError>> {
        let (slot, outcome) = self.window.take_any()?;
        Some(self.finish(slot, outcome))
    }

    /// Waits until some write has ended, and takes its result.
    ///
    /// # Errors
    /// The session was cancelled. A failed write is the inner error.
    pub(crate) fn wait_ended(
        &mut self,
        session: &mut Session,
    ) -> Result<Result<WriteResult, WriteError>, WriteError> {
        let (slot, outcome) = self.window.sleep_any(session)?;
        Ok(self.finish(slot, outcome))
    }

    /// Interprets the outcome of a write. A short write with at least one whole block is a success
    /// for those blocks, and the caller writes the rest again.
    fn finish(&mut self, slot: usize, outcome: Outcome) -> Result<WriteResult, WriteError> {
        let (write, slots) = self.window.item_and_slots(slot);
        let (Some(first), Some(payload)) = (write.first.take(), slots.payload(slot)) else {
            unreachable!("a write ended in slot {slot} that was not issued");
        };
        // The callback has recorded which pages are clean now.
        let written = payload.written();
        let blocks = written as u32;
        let whole = written == write.buffers.len();
        if whole || (outcome.status != Status::Error && written > 0) {
            let rest = write.buffers[written..].to_vec();
            return Ok(WriteResult { first, blocks, rest });
        }
        let block = first.block() + blocks;
        let left = write.buffers.len() as u32 - blocks;
        // The path is missing only if the cluster was closed, in which case nothing can use the
        // file any more.
        let relation = self.manager.clusters().relation(first);
        let path = relation.map(|of| of.path(segment_of(block).0)).unwrap_or_default();
        // A write that returns 0 means that the device is out of space, as PostgreSQL assumes too.
        // We treat a write that ends within its first page the same way. Since a page is always
        // written from its start, a retry might never make progress.
        let errno = outcome.errno().filter(|_| outcome.status == Status::Error);
        let errno = errno.unwrap_or(rustix::io::Errno::NOSPC.raw_os_error());
        Err(WriteError::Io {
            location: Location::new(path).at_block(block),
            blocks: left,
            source: io::Error::from_raw_os_error(errno),
        })
    }
}

/// Locates the first block's file. Returns `None` if the page was evicted or was dropped together
/// with its file. It may also never have existed, if its tag was read while the tag was changing.
pub(super) fn locate(
    manager: &BufferManager,
    session: &mut Session,
    request: &WriteRequest<'_>,
) -> Result<Option<Located>, WriteError> {
    submit_before_open(session, request);
    match request.relation.locate(request.block()) {
        Ok(located) => Ok(Some(located)),
        Err(_) if !is_still_dirty(manager, request) => Ok(None),
        Err(error) => Err(error.into()),
    }
}

/// Submits staged writes before a file is opened. Opening a file may block, on a hung mount even
/// forever, and staged writes hold the content locks of their pages.
fn submit_before_open(session: &mut Session, request: &WriteRequest<'_>) {
    if !request.relation.is_open(request.block()) {
        session.submit();
    }
}

/// Registers the write that is about to be issued with its segment, so that the segment's next
/// fsync must cover it (PostgreSQL's `register_dirty_segment`).
fn begin_pending_fsync(request: &WriteRequest<'_>) -> Arc<PendingFsync> {
    let segment = segment_of(request.block()).0;
    let name: SegmentName = (request.relation.locator(), request.relation.fork(), segment);
    request.relation.storage().pending_fsyncs().write_begins(name)
}
