//! Bulk writes: a load reuses the buffers of a ring, and flushes each of them shortly before it is
//! reused (PostgreSQL's `BAS_BULKWRITE`).
//!
//! ```text
//!   ring:  … filled long ago │ next ─▶ reused  │ in flight │ to be flushed │ just filled …
//!                                     want      └──── lead ────┘
//! ```
//!
//! When we get back to a buffer of the ring, its page is dirty, because the load filled it on the
//! previous pass. We therefore start to write pages out while they are still some slots ahead. We
//! combine neighbouring pages and keep many writes in flight, so the load rarely has to wait for a
//! write. All other pages remain in the pool, and other sessions don't have to flush any pages on
//! behalf of the load. If another session starts to use one of the pages, we remove its buffer from
//! the ring.
//!
//! PostgreSQL also uses a ring of 16 MB, but it doesn't flush a buffer until it wants to reuse it,
//! and then it has to wait for that write.

use super::backend::Backend;
use super::descriptor::flag;
use super::error::WriteError;
use super::manager::BufferManager;
use super::replacement::ring_buffer::{RingBuffer, Strategy};
use super::statistics::IoCounter;
use super::statistics::Tally;
use super::write::{PageWrites, WriteRequest, WriteResult, WriteStart};
use super::writeback::WritebackQueue;
use crate::storage::Relation;
use std::fmt;
use trunkline_aio::facade::Arc;
use trunkline_aio::{Class, Session};
use trunkline_format::BlockNo;

/// Maximum number of writes in flight.
const WRITES: usize = 16;

/// Maximum number of blocks in one write.
const COMBINE: u32 = 16;

/// How many slots ahead of the ring's current slot we flush pages. This is as many as can be in
/// flight.
const LEAD: usize = WRITES * COMBINE as usize;

/// The ring used for one bulk write (context `bulkwrite` in `pg_stat_io`), to be passed to
/// [`Backend::extend_in_bulk`].
///
/// Any pages that are still dirty at the end are written by a checkpoint, like all other dirty
/// pages. It's OK to drop the ring while it has writes in flight. They aren't cancelled, because
/// each write holds its own pins and can complete without the ring.
pub struct BulkWrite {
    manager: Arc<BufferManager>,
    session: u32,
    ring: RingBuffer,
    writes: PageWrites,
    /// Neighbouring buffers for the next combined write.
    run: Vec<u32>,
    combine: u32,
    /// How many of the slots ahead we have already examined. If a slot's page was dirty, we have
    /// started to write it.
    examined: usize,
    writeback: WritebackQueue,
    counter: IoCounter,
}

impl fmt::Debug for BulkWrite {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "BulkWrite({} buffers)", self.ring.size())
    }
}

impl Backend {
    /// Creates a ring for a bulk write by this session. Its size is 16 MB or an eighth of the pool,
    /// whichever is smaller.
    pub fn bulk_write(&self) -> BulkWrite {
        let manager = Arc::clone(self.manager());
        let size = Strategy::BulkWrite.ring_size(0, self.pool_buffers()).unwrap_or(1);
        let combine = COMBINE.min(self.iovecs() as u32).max(1);
        BulkWrite {
            session: self.session_id(),
            ring: RingBuffer::new(size),
            writes: PageWrites::new(&manager, WRITES, combine),
            run: Vec::with_capacity(combine as usize),
            combine,
            examined: 0,
            writeback: WritebackQueue::new(manager.clusters(), self.flush_after(), Class::Eviction),
            counter: IoCounter::new(self.statistics()),
            manager,
        }
    }
}

impl BulkWrite {
    /// Number of buffers of the ring.
    pub fn buffers(&self) -> u32 {
        self.ring.size()
    }

    /// Waits for all writes in flight, and starts writeback for any blocks that haven't been passed
    /// to the kernel yet.
    ///
    /// # Errors
    /// A write failed, in which case its pages remain dirty, or the session was cancelled.
    pub fn finish(mut self, backend: &mut Backend) -> Result<(), WriteError> {
        let mut failed = None;
        while self.writes.window().in_flight() > 0 {
            let ended = self.writes.wait_ended(backend.session())?;
            let noted = Self::note(&mut self.writeback, self.counter.tally(), ended);
            failed = failed.or(noted.err());
        }
        let finished = self.writeback.finish(backend.session());
        self.counter.tally().writebacks += self.writeback.take_issued();
        self.counter.publish();
        finished?;
        failed = self.writeback.take_failure().or(failed);
        failed.map_or(Ok(()), Err)
    }

    /// Maximum number of pages to add in one extension. We use only half of the ring, because the
    /// pages in the other half are being written at the same time.
    pub(super) fn extend_max(&self) -> u32 {
        (self.ring.size() / 2).max(1)
    }

    /// Makes the backend count on behalf of this bulk write.
    ///
    /// # Panics
    /// If the bulk write belongs to another session.
    pub(super) fn begin(&mut self, backend: &mut Backend, relation: &Relation) {
        let mine = backend.is_of(&self.manager) && backend.session_id() == self.session;
        assert!(mine, "a bulk write of another session");
        self.counter.count_as(backend.key(relation, Strategy::BulkWrite));
        backend.swap_tally(self.counter.tally());
    }

    /// Makes the backend count for itself again.
    pub(super) fn end(&mut self, backend: &mut Backend) {
        backend.swap_tally(self.counter.tally());
        self.counter.publish();
    }

    /// Allocates up to `want` buffers. We use a buffer of the ring if no other session has used it,
    /// and a buffer of the pool otherwise. If there is no buffer available now, we allocate
    /// nothing.
    ///
    /// # Errors
    /// A write failed, the log could not be made durable, or the session was cancelled.
    pub(super) fn allocate(
        &mut self,
        backend: &mut Backend,
        want: u32,
        buffers: &mut Vec<u32>,
    ) -> Result<(), WriteError> {
        self.take_ended(backend)?;
        self.flush_ahead(backend, want as usize)?;
        // Make sure that the next `want` slots can be reused. Most of their pages are already
        // clean, because we started to flush them earlier. For the others, we have to wait here.
        for steps in 1..=want as usize {
            while let Some(buffer) = self.ring.ahead(steps)
                && self.is_reusable_after_flush(buffer)
            {
                if !self.flush(backend, steps, buffer)? {
                    break;
                }
                self.take_ended(backend)?;
            }
        }
        self.manager.allocate(want, Some(&mut self.ring), backend.tally(), buffers);
        self.examined = self.examined.saturating_sub(want as usize);
        Ok(())
    }

    /// Whether the ring could reuse this buffer if its page were clean.
    fn is_reusable_after_flush(&self, buffer: u32) -> bool {
        let state = self.manager.buffers().state(buffer);
        let pins_of_io = u32::from(state.has(flag::IO_IN_PROGRESS));
        state.has(flag::DIRTY) && state.pins() == pins_of_io && state.usage() <= 1
    }

    /// Whether a page is dirty, and neither used nor being written.
    fn is_flushable(&self, buffer: u32) -> bool {
        self.is_reusable_after_flush(buffer) && self.manager.buffers().state(buffer).pins() == 0
    }

    /// Flushes a page in the ring. If the page is already being written, waits for that write.
    /// Returns false if the page is locked by another session.
    fn flush(
        &mut self,
        backend: &mut Backend,
        steps: usize,
        buffer: u32,
    ) -> Result<bool, WriteError> {
        if let Some(io) = self.manager.buffers().descriptor(buffer).io_in_progress() {
            backend.sleep_for_io(io)?;
            return Ok(true);
        }
        if !self.writes.window().has_idle() {
            let ended = self.writes.wait_ended(backend.session())?;
            Self::note(&mut self.writeback, backend.tally(), ended)?;
            return Ok(true);
        }
        match self.start(backend.session(), steps, 1)? {
            WriteStart::Issued { .. } | WriteStart::Clean => Ok(true),
            WriteStart::Busy => Ok(false),
            WriteStart::LogFirst(lsn) => {
                backend.session().submit();
                self.manager.clusters().sleep_for_log(backend.session(), lsn)?;
                Ok(true)
            }
            WriteStart::NoHandle => {
                backend.sleep_for_handle(Class::Eviction)?;
                Ok(true)
            }
        }
    }

    /// Starts to write the pages in the slots that we'll reuse next. This doesn't wait for the
    /// writes, but it may have to wait for a log flush.
    fn flush_ahead(&mut self, backend: &mut Backend, want: usize) -> Result<(), WriteError> {
        let size = self.ring.size() as usize;
        let lead = LEAD.min(size / 2);
        let goal = (want + lead).min(size - 1);
        // Don't do anything until half of the lead is used up. This way, we get longer runs and
        // fewer submissions.
        if self.examined >= (want + lead / 2).min(goal) {
            return Ok(());
        }
        loop {
            let refused = {
                let mut batch = backend.session().batch();
                self.start_runs(&mut batch, goal)?
            };
            match refused {
                Some(WriteStart::LogFirst(lsn)) => {
                    self.manager.clusters().sleep_for_log(backend.session(), lsn)?
                }
                _ => return Ok(()),
            }
        }
    }

    /// Starts to write pages that are up to `goal` slots ahead. If we can't start the next write,
    /// returns the reason.
    fn start_runs(
        &mut self,
        session: &mut Session,
        goal: usize,
    ) -> Result<Option<WriteStart>, WriteError> {
        while self.examined < goal && self.writes.window().has_idle() {
            match self.start(session, self.examined + 1, goal - self.examined)? {
                WriteStart::Issued { count } => self.examined += count as usize,
                WriteStart::Clean | WriteStart::Busy => self.examined += 1,
                refused => return Ok(Some(refused)),
            }
        }
        Ok(None)
    }

    /// Starts to write the page that is `steps` slots ahead. If the next slots contain neighbouring
    /// pages, these are included in the same write, up to `most` pages in total.
    fn start(
        &mut self,
        session: &mut Session,
        steps: usize,
        most: usize,
    ) -> Result<WriteStart, WriteError> {
        let Some(buffer) = self.ring.ahead(steps).filter(|&at| self.is_flushable(at)) else {
            return Ok(WriteStart::Clean);
        };
        let (buffers, clusters) = (self.manager.buffers(), self.manager.clusters());
        // We read the tag without a pin, so it may change. That's OK, because it is checked again
        // when we claim the page.
        let first = buffers.tag(buffer);
        let Some(relation) = clusters.relation(first) else {
            return Ok(WriteStart::Clean);
        };
        self.run.clear();
        self.run.push(buffer);
        while self.run.len() < most.min(self.combine as usize)
            && let Some(block) = first.block().checked_add(self.run.len() as BlockNo)
            && let Some(next) = self.ring.ahead(steps + self.run.len())
            && self.is_flushable(next)
            && buffers.tag(next) == first.at(block)
        {
            self.run.push(next);
        }
        let (manager, class) = (&self.manager, Class::Eviction);
        let request = WriteRequest::new(manager, &relation, first, &self.run, class);
        self.writes.start(session, &request)
    }

    /// Collects the results of completed writes. If it's time for that, also asks the kernel to
    /// start writeback.
    fn take_ended(&mut self, backend: &mut Backend) -> Result<(), WriteError> {
        while let Some(ended) = self.writes.take_ended() {
            Self::note(&mut self.writeback, backend.tally(), ended)?;
        }
        if self.writeback.is_due() {
            self.writeback.issue(backend.session());
            backend.tally().writebacks += self.writeback.take_issued();
        }
        Ok(())
    }

    fn note(
        writeback: &mut WritebackQueue,
        tally: &mut Tally,
        ended: Result<WriteResult, WriteError>,
    ) -> Result<(), WriteError> {
        // If the write was short, the remaining blocks are still dirty. We'll write them when we
        // come to them again.
        let WriteResult { first, blocks, .. } = ended?;
        tally.writes += 1;
        tally.written_blocks += u64::from(blocks);
        writeback.push(first, blocks);
        Ok(())
    }
}
