//! Relation extension: adds blocks at the end of a fork, with zeroed pages in the pool and space on
//! disk.
//!
//! ```text
//!   reserve pins ▶ allocate buffers ▶ reserve block numbers (two sessions never get the same block)
//!     ▶ zeroed pages under their tags: pinned, valid and dirty, before any session can read them from disk
//!     ▶ space on disk: posix_fallocate, or zeros that are written now
//! ```
//!
//! This is PostgreSQL's `ExtendBufferedRelBy`, but without the relation extension lock. The block
//! numbers are reserved in one atomic step, so two sessions can extend a relation concurrently. A
//! new page is all zeros in memory and on disk, which PostgreSQL recognises as a new page
//! (`PageIsNew`). If the session exits before it has filled the pages, they remain in the relation
//! as empty pages, just as they do after a PostgreSQL crash.
//!
//! We insert the pages into the pool before we extend the file. If we did it the other way round,
//! another session could see the new file size and read a block from disk before we've inserted our
//! own buffer for that block.

use super::backend::Backend;
use super::bulk_write::BulkWrite;
use super::descriptor::flag;
use super::error::WriteError;
use super::mapping::Insertion;
use super::pin::{Pin, PinRef};
use super::tag::BufferTag;
use super::write::{PageWrites, WriteRequest, WriteStart};
use crate::settings::ExtendMethod;
use crate::storage::{Relation, StorageError};
use std::ops::Range;
use trunkline_aio::Class;
use trunkline_aio::facade::{Arc, thread};
use trunkline_format::BlockNo;
use trunkline_format::page::is_all_zero;

/// If we extend a relation by at most this many blocks, we always write zeros, regardless of the
/// configured extension method, because allocating space for only a few blocks at a time fragments
/// the file. PostgreSQL has the same threshold: `mdzeroextend` calls `posix_fallocate` only for
/// more than 8 blocks.
const FEW_BLOCKS: u32 = 8;

impl Backend {
    /// Extends a relation by at least one and at most `count` blocks. It adds fewer than `count`
    /// blocks if it reaches the end of the segment, or if not enough pins are available. Returns
    /// the new pages in block order. The pages are zeroed and pinned, but not locked.
    ///
    /// A scan can find the new pages before the caller has locked them. A caller that wants to put
    /// tuples into "the last page" must therefore lock the page first, and then check that it is
    /// still new ([`trunkline_format::page::is_new`]).
    ///
    /// # Errors
    /// The cluster is read-only, the disk is full, or the session was cancelled.
    /// # Panics
    /// If `count` is 0.
    pub fn extend(
        &mut self,
        relation: &Relation,
        count: u32,
        method: ExtendMethod,
    ) -> Result<Vec<Pin>, WriteError> {
        // Evictions that make room for the new pages are counted under this relation too.
        self.count_for(relation);
        self.extend_with(relation, count, method, None)
    }

    /// Like [`Backend::extend`], but for bulk writes. The new pages are put into the buffers of the
    /// bulk write's ring, and the old pages in those buffers are written out first. Extends the
    /// relation by at most half the ring's size.
    ///
    /// # Errors
    /// The same errors as for [`Backend::extend`]. In addition, writing one of the ring's old pages
    /// can fail, in which case the page stays dirty and the next call tries again.
    /// # Panics
    /// If `count` is 0, or the bulk write belongs to another session.
    pub fn extend_in_bulk(
        &mut self,
        bulk: &mut BulkWrite,
        relation: &Relation,
        count: u32,
        method: ExtendMethod,
    ) -> Result<Vec<Pin>, WriteError> {
        bulk.begin(self, relation);
        let extended = self.extend_with(relation, count.min(bulk.extend_max()), method, Some(bulk));
        bulk.end(self);
        extended
    }

    fn extend_with(
        &mut self,
        relation: &Relation,
        count: u32,
        method: ExtendMethod,
        bulk: Option<&mut BulkWrite>,
    ) -> Result<Vec<Pin>, WriteError> {
        assert!(count > 0, "a relation extended by 0 blocks");
        let (manager, id) = (Arc::clone(self.manager()), self.session_id());
        manager.clusters().allow_writes(relation.storage());
        self.sleep_for_pin().map_err(WriteError::waiting_for_buffer)?;
        let limits = manager.limits();
        limits.grant_ahead(id, count - 1);
        let reserved = 1 + limits.reserve_ahead(id, count - 1);
        let give_back = |count: u32| limits.give_back(id, count);
        let mut buffers =
            self.allocate_for_new(reserved, bulk).inspect_err(|_| give_back(reserved))?;
        let added = self.add_pages(relation, &mut buffers, method);
        let kept = added.as_ref().map_or(0, |blocks| blocks.end - blocks.start);
        for &buffer in &buffers[kept as usize..] {
            manager.unpin(buffer);
        }
        give_back(reserved - kept);
        added?;
        self.tally().extends += 1;
        self.tally().extended_blocks += u64::from(kept);
        buffers.truncate(kept as usize);
        Ok(buffers.iter().map(|&buffer| Pin::new(&manager, id, buffer)).collect())
    }

    /// Allocates at least one and at most `reserved` buffers.
    fn allocate_for_new(
        &mut self,
        reserved: u32,
        mut bulk: Option<&mut BulkWrite>,
    ) -> Result<Vec<u32>, WriteError> {
        let manager = Arc::clone(self.manager());
        let mut buffers = Vec::with_capacity(reserved as usize);
        loop {
            match &mut bulk {
                Some(bulk) => bulk.allocate(self, reserved, &mut buffers)?,
                None => manager.allocate(reserved, None, self.tally(), &mut buffers),
            }
            if !buffers.is_empty() {
                return Ok(buffers);
            }
            self.sleep_for_victim().map_err(WriteError::waiting_for_buffer)?;
        }
    }

    /// Reserves block numbers for the buffers, adds the pages to the pool, and allocates disk space
    /// for them. Returns the range of new blocks.
    fn add_pages(
        &mut self,
        relation: &Relation,
        buffers: &mut [u32],
        method: ExtendMethod,
    ) -> Result<Range<BlockNo>, WriteError> {
        let blocks = relation.reserve(buffers.len() as u32)?;
        let count = blocks.end - blocks.start;
        let mut write_zeros = method == ExtendMethod::WriteZeros || count <= FEW_BLOCKS;
        let tag = BufferTag::of(relation, 0);
        let mut added = self.insert_new_pages(relation, tag, &blocks, buffers);
        if added.is_ok() && !write_zeros {
            match relation.allocate(&blocks) {
                Err(StorageError::Io { source, .. }) if is_unsupported(&source) => {
                    write_zeros = true;
                }
                room => added = room.map_err(WriteError::from),
            }
        }
        if added.is_ok() && write_zeros {
            let first = tag.at(blocks.start);
            added = self.write_new_pages(relation, first, &buffers[..count as usize]);
        }
        if let Err(error) = added {
            self.remove_new_pages(relation, tag, &blocks, buffers);
            return Err(error);
        }
        Ok(blocks)
    }

    /// Removes the new pages again after a failed extension, for example if the disk is full. If
    /// another session has such a page pinned, it stays in the pool as an empty page, and no later
    /// extension returns it. We must also keep a page that has been filled, because a later
    /// extension may have made the fork longer, so that other sessions could find the page.
    fn remove_new_pages(
        &mut self,
        relation: &Relation,
        tag: BufferTag,
        blocks: &Range<BlockNo>,
        buffers: &[u32],
    ) {
        let manager = self.manager();
        let mut all_removed = true;
        for (&buffer, block) in buffers.iter().zip(blocks.clone()) {
            let ours = manager.buffers().tag(buffer) == tag.at(block);
            all_removed &= !ours || manager.discard_new(buffer);
        }
        if all_removed {
            relation.unreserve(blocks);
        }
    }

    /// Inserts the buffers with the new blocks' tags. If a block already has a buffer, we use that
    /// buffer instead of the allocated one.
    fn insert_new_pages(
        &mut self,
        relation: &Relation,
        tag: BufferTag,
        blocks: &Range<BlockNo>,
        buffers: &mut [u32],
    ) -> Result<(), WriteError> {
        let (segment, _) = relation.segment_of(blocks.start);
        relation.segment_for_writing(segment, blocks.start)?;
        let manager = Arc::clone(self.manager());
        for (place, block) in buffers.iter_mut().zip(blocks.clone()) {
            let Some(present) = self.insert_new_page(tag.at(block), *place)? else { continue };
            let page = self.read_lock(PinRef::new(manager.frames(), present));
            let new = page.map(|page| is_all_zero(&page));
            if new != Ok(true) {
                manager.unpin(present);
                new?;
                let location = relation.location(block);
                return Err(WriteError::UnexpectedData { location });
            }
            // Another session has read this block although it is beyond the end of the file. Its
            // page is all zeros, just like the one we would have added, so we use the existing
            // buffer.
            manager.unpin(*place);
            *place = present;
        }
        Ok(())
    }

    /// Adds a page of zeros to the pool, in a buffer that the caller has allocated. If the page
    /// already has a valid buffer, returns that one instead, pinned.
    fn insert_new_page(&mut self, tag: BufferTag, buffer: u32) -> Result<Option<u32>, WriteError> {
        let manager = Arc::clone(self.manager());
        manager.frames().zero_empty(buffer);
        loop {
            // The page is dirty, so the zeros will be written by the next checkpoint at the latest.
            let pinned = match manager.insert_new(tag, buffer) {
                Insertion::Inserted => return Ok(None),
                Insertion::Present(pinned) => pinned,
            };
            if pinned.state.has(flag::VALID) {
                return Ok(Some(pinned.buffer));
            }
            // Another session is reading this block, or has tried to, although it is beyond the end
            // of the file. That read will fail or has already failed, so we can discard the buffer
            // after it has ended.
            let io = manager.buffers().descriptor(pinned.buffer).io_in_progress();
            let pinned_elsewhere = io.is_some() || !manager.discard(pinned.buffer);
            manager.unpin(pinned.buffer);
            match io {
                Some(io) => self.sleep_for_io(io)?,
                None if pinned_elsewhere => thread::yield_now(),
                None => {}
            }
        }
    }

    /// Pins a page that is about to be overwritten, without reading it (PostgreSQL's
    /// `RBM_ZERO_AND_LOCK`). Creates the file of its segment if necessary. If the page isn't in the
    /// pool, a page of zeros is added; otherwise the page is left as it is.
    ///
    /// `choose` returns the block and a guard. While the guard exists, the page in the file is not
    /// needed. `choose` may wait for another session's guard, since the session has no staged I/O and its
    /// pin is reserved: the holder of the guard doesn't have to wait for a pin. The caller must
    /// lock the page and overwrite it before it drops the guard.
    ///
    /// # Errors
    /// As for [`Backend::extend`].
    pub(crate) fn pin_to_overwrite<G>(
        &mut self,
        relation: &Relation,
        choose: impl FnOnce() -> Option<(BlockNo, G)>,
    ) -> Result<Option<(BlockNo, Pin, G)>, WriteError> {
        self.count_for(relation);
        let (manager, id) = (Arc::clone(self.manager()), self.session_id());
        self.sleep_for_pin().map_err(WriteError::waiting_for_buffer)?;
        self.session().submit();
        let Some((block, guard)) = choose() else {
            manager.limits().give_back(id, 1);
            return Ok(None);
        };
        let found = self.find_or_add(relation, block);
        let buffer = found.inspect_err(|_| manager.limits().give_back(id, 1))?;
        Ok(Some((block, Pin::new(&manager, id, buffer), guard)))
    }

    /// Pins a page if it is in the pool, or adds a page of zeros. The caller must have reserved the
    /// pin.
    fn find_or_add(&mut self, relation: &Relation, block: BlockNo) -> Result<u32, WriteError> {
        let (segment, _) = relation.segment_of(block);
        relation.segment_for_writing(segment, block)?;
        let allocated = self.allocate_for_new(1, None)?[0];
        let inserted = self.insert_new_page(BufferTag::of(relation, block), allocated);
        if !matches!(inserted, Ok(None)) {
            self.manager().unpin(allocated);
        }
        Ok(inserted?.unwrap_or(allocated))
    }

    /// Writes the new pages. They are all zeros, unless another session has already filled one of
    /// them.
    fn write_new_pages(
        &mut self,
        relation: &Relation,
        mut first: BufferTag,
        mut buffers: &[u32],
    ) -> Result<(), WriteError> {
        let manager = Arc::clone(self.manager());
        let mut writes = PageWrites::new(&manager, 1, self.iovecs() as u32);
        while !buffers.is_empty() {
            let class = Class::Eviction;
            // A page of zeros has no LSN, but another session may have filled the page in the
            // meantime, and then it does have one.
            let request = WriteRequest {
                needed_now: true,
                ..WriteRequest::new(&manager, relation, first, buffers, class)
            };
            let count = match writes.start(self.session(), &request)? {
                WriteStart::Issued { .. } => writes.wait_ended(self.session())??.blocks,
                // Another session has written the page already.
                WriteStart::Clean => 1,
                WriteStart::Busy => {
                    self.wait_until_writable(buffers[0])?;
                    0
                }
                WriteStart::LogFirst(lsn) => {
                    self.session().submit();
                    manager.clusters().sleep_for_log(self.session(), lsn)?;
                    0
                }
                WriteStart::NoHandle => {
                    self.sleep_for_handle(class)?;
                    0
                }
            };
            first = first.at(first.block() + count);
            buffers = &buffers[count as usize..];
        }
        Ok(())
    }
}

/// Whether the error means that the file system doesn't support `posix_fallocate`.
fn is_unsupported(error: &std::io::Error) -> bool {
    use rustix::io::Errno;
    let unsupported = [Errno::OPNOTSUPP, Errno::NOSYS, Errno::INVAL];
    Errno::from_io_error(error).is_some_and(|errno| unsupported.contains(&errno))
        || error.kind() == std::io::ErrorKind::Unsupported
}
