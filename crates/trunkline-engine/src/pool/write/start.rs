//! Starting a write: claims dirty pages with consecutive block numbers, and issues one I/O for
//! them.
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
//! None of these functions waits for a page. A session that holds one page's lock must not wait for
//! another page's lock, because the session that it waits for might be waiting for the first page.
//! So if the next page is locked, we simply write only the pages before it. Before the caller waits
//! for the locked page, it submits the writes that it has collected, so that their locks are
//! released when they complete.
//!
//! # Why the file is checked after the claim
//!
//! We must locate the file before we claim the page, because opening a file can block. In between,
//! another session may truncate or drop the relation and create a new file with the same name.
//! After the claim that can no longer happen, because invalidation waits for I/O in progress. So
//! once we have claimed the first page, we check that the file we located is still the current one,
//! and start over if it isn't. Otherwise we would write the page to an unlinked file and mark it
//! clean.

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

/// The page writes of one session or stream. The number of writes in flight and the size of each
/// write are limited.
#[derive(Debug)]
pub(crate) struct PageWrites {
    manager: Arc<BufferManager>,
    window: SlotWindow<WritePayload, PageWrite>,
    combine_max: u32,
}

/// What the issuer remembers about one write in flight. The completion callback has its own data,
/// in the payload.
#[derive(Debug, Default)]
pub(crate) struct PageWrite {
    /// The write's first block. We store only its tag, because the issuer may not take the result
    /// for a long time, and until then it must not hold a reference to a file that has been removed
    /// or a cluster that has been closed.
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

    /// Starts writing the pages of a request. The caller must have an idle slot.
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
        // Acquire the handle before claiming any page. If we waited for a handle while holding
        // content locks, we might be waiting for a session that wants one of these locks.
        let Some(handle) = session.try_acquire(request.class) else {
            return Ok(WriteStart::NoHandle);
        };
        let handle = if request.needed_now { handle.needed_now() } else { handle };
        manager.frames().assert_same_instance(&handle);
        let io = handle.wait_ref();
        let most = self.combine_max.min(located.blocks_left) as usize;
        // Claim pages in ascending block order, and stop at the first page that we can't claim. We
        // never wait for a claim, so this order isn't needed to prevent deadlocks. It only
        // determines where the write ends.
        let claimed = &mut self.window.item_mut(slot).buffers;
        claimed.clear();
        for (&buffer, block) in request.buffers.iter().take(most).zip(first..) {
            match claim(&manager, request, buffer, block, io) {
                // From here on, the page can't be evicted and its relation can't be dropped.
                // However, if the file was replaced before the claim, the file we've located is the
                // old one.
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

    /// Issues a write of the pages that have been claimed for a slot, or of the page copy in the
    /// slot's memory. Before we issue the write, we register it with its segment. If an fsync of
    /// that segment starts during the write, we then know that the fsync may not cover it.
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

    /// Stores the list of buffers for a write that is about to be started in a slot.
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

    /// Interprets the result of a write. If a short write wrote at least one whole block, we report
    /// success for the blocks that were written, and leave the rest to the caller.
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
        // The path is missing only if the cluster has been closed, in which case the file can no
        // longer be in use.
        let relation = self.manager.clusters().relation(first);
        let path = relation.map(|of| of.path(of.segment_of(block).0)).unwrap_or_default();
        // If a write returns 0, we assume that the device is out of space, as PostgreSQL does. We
        // treat a write that ends within its first page the same way. We always write a page from
        // its beginning, so retrying such a write might never make any progress.
        let errno = outcome.errno().filter(|_| outcome.status == Status::Error);
        let errno = errno.unwrap_or(rustix::io::Errno::NOSPC.raw_os_error());
        Err(WriteError::Io {
            location: Location::new(path).at_block(block),
            blocks: left,
            source: io::Error::from_raw_os_error(errno),
        })
    }
}

/// Locates the file of the first block, unless the caller has done so. Returns `None` if the page
/// has been evicted, or dropped together with its file. If we read the tag while it was changing,
/// there may never have been such a page.
pub(super) fn locate(
    manager: &BufferManager,
    session: &mut Session,
    request: &WriteRequest<'_>,
) -> Result<Option<Located>, WriteError> {
    if let Some(located) = &request.located {
        return Ok(Some(located.clone()));
    }
    submit_before_open(session, request);
    match request.relation.locate(request.block()) {
        Ok(located) => Ok(Some(located)),
        Err(_) if !is_still_dirty(manager, request) => Ok(None),
        Err(error) => Err(error.into()),
    }
}

/// Submits staged writes before we open a file. Opening a file may block, even forever if the mount
/// hangs, and the content locks on the pages of staged writes are not released before those writes
/// complete.
fn submit_before_open(session: &mut Session, request: &WriteRequest<'_>) {
    if !request.relation.is_open(request.block()) {
        session.submit();
    }
}

/// Registers a write with its segment, so that the segment's next fsync must cover it (PostgreSQL's
/// `register_dirty_segment`). Called just before the write is issued.
fn begin_pending_fsync(request: &WriteRequest<'_>) -> Arc<PendingFsync> {
    let segment = request.relation.segment_of(request.block()).0;
    let name: SegmentName = (request.relation.locator(), request.relation.fork(), segment);
    request.relation.storage().pending_fsyncs().write_begins(name)
}
