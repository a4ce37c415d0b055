//! Making a relation longer: new pages in the pool, room for them on disk.
//!
//! ```text
//!   book pins ▶ take buffers ▶ blocks are given out (two sessions never get the same)
//!     ▶ pages of zeros under their names, pinned, valid, before anybody can read them from disk
//!     ▶ room on disk: posix_fallocate, or zeros that are written now
//! ```
//! A page that nobody has filled is all zeros on disk and in memory, which PostgreSQL takes for new.
//! Should the session vanish before it has filled them, empty pages are left, as after a crash.

use super::backend::Backend;
use super::bulk_write::BulkWrite;
use super::pin::Pin;
use super::pin::PinRef;
use super::table::Insert;
use super::tag::Tag;
use super::write::{Dirty, StartWrite, WriteError, Writes};
use super::{ReadError, flag};
pub use crate::settings::ExtendMethod;
use crate::storage::{Relation, StorageError};
use std::ops::Range;
use trunkline_aio::Class;
use trunkline_aio::sync::{Arc, thread};
use trunkline_format::BlockNo;
use trunkline_format::page::is_all_zero;

/// Up to so many blocks zeros are written whatever the method: reserving few blocks at a time makes
/// files fragmented (PostgreSQL's number).
const FEW_BLOCKS: u32 = 8;

impl Backend {
    /// Makes a relation longer by up to `count` blocks, at least by one: fewer where a segment ends or
    /// no more pins are granted. The new pages are zeros, pinned, in order.
    ///
    /// Nobody has them locked: whoever scans the relation may find them, and lock them, before the
    /// caller does. Who takes "the last page" for his rows therefore locks it first and then looks
    /// whether it is still new ([`trunkline_format::page::is_new`]), as after any wait.
    ///
    /// # Errors
    /// The cluster is not for writing, there is no room, or the session was cancelled.
    /// # Panics
    /// If `count` is 0.
    pub fn extend(
        &mut self,
        relation: &Relation,
        count: u32,
        method: ExtendMethod,
    ) -> Result<Vec<Pin>, WriteError> {
        // Pages that go for new ones are evictions too.
        self.count_for(relation);
        self.extend_with(relation, count, method, None)
    }

    /// The same for a load: new pages go round in the load's own ring, whose old ones are written
    /// first. By half the ring at most.
    ///
    /// # Errors
    /// As [`Backend::extend`]; and a page of the ring could not be written, which stays dirty: the next
    /// call tries again.
    /// # Panics
    /// If `count` is 0, or the bulk write is another session's.
    pub fn extend_in_bulk(
        &mut self,
        bulk: &mut BulkWrite,
        relation: &Relation,
        count: u32,
        method: ExtendMethod,
    ) -> Result<Vec<Pin>, WriteError> {
        bulk.begin(self, relation);
        let extended = self.extend_with(relation, count.min(bulk.at_once()), method, Some(bulk));
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
        assert!(count > 0, "a relation made longer by no block");
        self.shared.allow_writes(relation.storage());
        let (shared, id) = (Arc::clone(&self.shared), self.session.id());
        self.book().map_err(not_a_read)?;
        let limiter = &shared.limiter;
        limiter.extend(id, count - 1, &shared.notifiers);
        let booked = 1 + limiter.pin_ahead(id, count - 1);
        let give_back = |count: u32| limiter.unpin(id, count, &shared.notifiers);
        let mut taken = self.take_for_new(booked, bulk).inspect_err(|_| give_back(booked))?;
        let made = self.make_pages(relation, &mut taken, method);
        let kept = made.as_ref().map_or(0, |blocks| blocks.end - blocks.start);
        for &buffer in &taken[kept as usize..] {
            shared.unpin(buffer);
        }
        give_back(booked - kept);
        made?;
        self.tally.extends += 1;
        self.tally.extended_blocks += u64::from(kept);
        taken.truncate(kept as usize);
        Ok(taken.iter().map(|&buffer| Pin::new(Arc::clone(&shared), id, buffer)).collect())
    }

    /// Takes buffers without a page, at least one, for pins that are booked.
    fn take_for_new(
        &mut self,
        booked: u32,
        mut bulk: Option<&mut BulkWrite>,
    ) -> Result<Vec<u32>, WriteError> {
        let shared = Arc::clone(&self.shared);
        let mut taken = Vec::with_capacity(booked as usize);
        loop {
            match &mut bulk {
                Some(bulk) => bulk.take(self, booked, &mut taken)?,
                None => shared.take_empty(booked, None, &mut self.tally, &mut taken),
            }
            if !taken.is_empty() {
                return Ok(taken);
            }
            self.wait_for_buffer().map_err(not_a_read)?;
        }
    }

    /// Gives the buffers to new blocks; which.
    fn make_pages(
        &mut self,
        relation: &Relation,
        taken: &mut [u32],
        method: ExtendMethod,
    ) -> Result<Range<BlockNo>, WriteError> {
        let blocks = relation.reserve(taken.len() as u32)?;
        let count = blocks.end - blocks.start;
        let few = count <= FEW_BLOCKS;
        let tag = Tag::of(relation, 0);
        let mut made = self.insert_new_pages(relation, tag, &blocks, taken);
        let mut zeros = method == ExtendMethod::WriteZeros || few;
        if made.is_ok() && !zeros {
            match relation.allocate(&blocks) {
                Err(StorageError::Io { source, .. }) if is_unsupported(&source) => zeros = true,
                room => made = room.map_err(WriteError::from),
            }
        }
        if made.is_ok() && zeros {
            made = self.write_zeros(relation, tag, blocks.start, &taken[..count as usize]);
        }
        if let Err(error) = made {
            // What is not there must not be found. What is being used or written stays, as an empty
            // page that nobody gets again; and what somebody has filled meanwhile, who found it because
            // a later extension was quicker, is his.
            let mut all_gone = true;
            for (&buffer, block) in taken.iter().zip(blocks.clone()) {
                let ours = self.shared.buffers[buffer as usize].tag() == tag.at(block);
                all_gone &= !ours || self.shared.discard_new(buffer);
            }
            if all_gone {
                relation.unreserve(&blocks);
            }
            return Err(error);
        }
        Ok(blocks)
    }

    /// Gives the buffers to the new blocks; where a block has one already, that is taken in its place.
    fn insert_new_pages(
        &mut self,
        relation: &Relation,
        tag: Tag,
        blocks: &Range<BlockNo>,
        taken: &mut [u32],
    ) -> Result<(), WriteError> {
        let (segment, _) = trunkline_format::segment::segment_of(blocks.start);
        relation.segment_for_writing(segment, blocks.start)?;
        let shared = Arc::clone(&self.shared);
        for (place, block) in taken.iter_mut().zip(blocks.clone()) {
            shared.clear_empty(*place);
            loop {
                // Dirty: the zeros reach the disk by a checkpoint at the latest.
                match shared.table.insert_new(&shared.buffers, tag.at(block), *place, true) {
                    Insert::Inserted => break,
                    Insert::Present(found) if found.seen.has(flag::VALID) => {
                        let page = self.read_lock(PinRef::new(&shared, found.buffer));
                        let new = page.map(|page| is_all_zero(&page));
                        if new != Ok(true) {
                            shared.unpin(found.buffer);
                            new?;
                            return Err(WriteError::UnexpectedData {
                                path: relation.path(segment),
                                block,
                            });
                        }
                        // Somebody has read it before it was ours: it is the page that is wanted.
                        shared.unpin(*place);
                        *place = found.buffer;
                        break;
                    }
                    Insert::Present(found) => {
                        // Being read beyond the end, which will fail, or what is left of that.
                        let io = shared.buffers[found.buffer as usize].io_in_progress();
                        let left = io.is_some() || !shared.discard(found.buffer);
                        shared.unpin(found.buffer);
                        match io {
                            Some(io) => self.join(io)?,
                            None if left => thread::yield_now(),
                            None => {}
                        }
                    }
                }
            }
        }
        Ok(())
    }

    fn write_zeros(
        &mut self,
        relation: &Relation,
        tag: Tag,
        mut first: BlockNo,
        mut buffers: &[u32],
    ) -> Result<(), WriteError> {
        let combine = self.session.iovecs() as u32;
        let mut writes = Writes::new(&self.shared, 1, combine);
        while !buffers.is_empty() {
            let class = Class::Eviction;
            let dirty = Dirty {
                relation,
                tag,
                first,
                buffers,
                class,
                needed: 0,
                now: true,
                // Zeros have no position; what somebody has made of them meanwhile has.
                durable: self.shared.log.durable(),
            };
            let count = match writes.start(&mut self.session, &dirty)? {
                StartWrite::Issued { .. } => {
                    let (slot, outcome) = self.session.wait_any(&mut writes.operations)?;
                    writes.finish(slot, outcome)?.blocks
                }
                // Somebody else has written it already.
                StartWrite::Clean => 1,
                StartWrite::Busy => {
                    self.wait_for_page(buffers[0])?;
                    0
                }
                StartWrite::LogFirst(lsn) => {
                    self.session.submit();
                    self.shared.flush_log(lsn)?;
                    0
                }
                StartWrite::NoHandle => {
                    self.wait_for_handle(class)?;
                    0
                }
            };
            first += count;
            buffers = &buffers[count as usize..];
        }
        Ok(())
    }
}

fn is_unsupported(error: &std::io::Error) -> bool {
    use rustix::io::Errno;
    let unsupported = [Errno::OPNOTSUPP, Errno::NOSYS, Errno::INVAL];
    Errno::from_io_error(error).is_some_and(|errno| unsupported.contains(&errno))
        || error.kind() == std::io::ErrorKind::Unsupported
}

/// What can keep a session from getting a buffer, for one that writes.
fn not_a_read(error: ReadError) -> WriteError {
    match error {
        ReadError::WriteBack(error) => *error,
        ReadError::Storage(error) => error.into(),
        ReadError::TooManyPins { held } => WriteError::TooManyPins { held },
        _ => WriteError::Cancelled,
    }
}
