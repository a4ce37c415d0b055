//! Bulk writes: a load goes round in a ring of its own, and writes what it left there before it comes
//! by again.
//!
//! ```text
//!   ring:  … filled long ago │ next ─▶ taken again │ being written │ to be written │ just filled …
//!                                     want          └──── lead ────┘
//! ```
//! A ring's buffers are dirty when their turn comes again: that is what a load is. Their writes are
//! started some places ahead, neighbours together and many in flight, so that there is seldom one to
//! wait for; the rest of the pool keeps its pages, and nobody else has to write for the load. A page
//! that somebody else has come to use leaves the ring, as in any ring.

use super::backend::Backend;
use super::ring::{Ring, Strategy};
use super::shared::Shared;
use super::state::flag;
use super::stats::{Cell, IoKey, Tally};
use super::write::{Dirty, StartWrite, WriteError, Writes, Written};
use super::write_behind::WriteBehind;
use crate::storage::Relation;
use std::fmt;
use trunkline_aio::sync::Arc;
use trunkline_aio::{Class, Outcome, Session};
use trunkline_format::BlockNo;

/// Writes in flight.
const WRITES: usize = 16;

/// Blocks of one of them at most.
const COMBINE: u32 = 16;

/// Places of the ring whose pages are written ahead of their turn at most: as many as can be in flight.
const LEAD: usize = WRITES * COMBINE as usize;

/// The ring of one bulk write (context `bulkwrite` of `pg_stat_io`), for [`Backend::extend_in_bulk`].
/// What is left in it at the end is written by a checkpoint, like all that is dirty; writes that are
/// under way when it is dropped end by themselves.
pub struct BulkWrite {
    shared: Arc<Shared>,
    session: u32,
    ring: Ring,
    writes: Writes,
    /// A row of neighbours, gathered.
    row: Vec<u32>,
    combine: u32,
    /// Places ahead in the ring that were looked at: their writes were started, if there was one.
    looked: usize,
    behind: WriteBehind,
    tally: Tally,
    cell: Option<(IoKey, Arc<Cell>)>,
}

impl fmt::Debug for BulkWrite {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "BulkWrite({} buffers)", self.ring.size())
    }
}

impl Drop for BulkWrite {
    fn drop(&mut self) {
        // What was counted is to be seen, also if it was cut short.
        self.show_counts();
    }
}

impl Backend {
    /// A ring for a bulk write of this session: 16 MB, and never more than an eighth of the pool.
    pub fn bulk_write(&self) -> BulkWrite {
        let shared = Arc::clone(&self.shared);
        let size = Strategy::BulkWrite.ring_size(0, shared.count()).unwrap_or(1);
        let combine = COMBINE.min(self.session.iovecs() as u32).max(1);
        BulkWrite {
            session: self.session.id(),
            ring: Ring::new(size),
            writes: Writes::new(&shared, WRITES, combine),
            row: Vec::with_capacity(combine as usize),
            combine,
            looked: 0,
            behind: WriteBehind::new(&shared, self.flush_after(), Class::Eviction),
            tally: Tally::default(),
            cell: None,
            shared,
        }
    }
}

impl BulkWrite {
    /// Buffers of the ring.
    pub fn buffers(&self) -> u32 {
        self.ring.size()
    }

    /// Waits for the writes that are under way, and has the system write back the rest.
    ///
    /// # Errors
    /// One of them failed, its pages are as dirty as before; or the session was cancelled.
    pub fn finish(mut self, backend: &mut Backend) -> Result<(), WriteError> {
        let mut failed = None;
        while self.writes.in_flight() > 0 {
            let (slot, outcome) = backend.session.wait_any(&mut self.writes.operations)?;
            let mut tally = std::mem::take(&mut self.tally);
            let ended = self.note(slot, outcome, &mut tally);
            self.tally = tally;
            failed = failed.or(ended.err());
        }
        let told = self.behind.finish(&mut backend.session);
        self.tally.writebacks += self.behind.take_told();
        self.show_counts();
        told?;
        failed = self.behind.take_failure().or(failed);
        failed.map_or(Ok(()), Err)
    }

    /// Pages that one extension may have: the others of the ring are being written meanwhile.
    pub(super) fn at_once(&self) -> u32 {
        (self.ring.size() / 2).max(1)
    }

    /// What the backend counts from now on is this bulk write's.
    ///
    /// # Panics
    /// If it is another session's.
    pub(super) fn begin(&mut self, backend: &mut Backend, relation: &Relation) {
        let mine = backend.is_of(&self.shared) && backend.session_id() == self.session;
        assert!(mine, "a bulk write of another session");
        let key = backend.key(relation, Strategy::BulkWrite);
        if self.cell.as_ref().is_none_or(|(present, _)| *present != key) {
            self.show_counts();
            self.cell = Some((key, self.shared.stats.cell(key)));
        }
        backend.swap_tally(&mut self.tally);
    }

    /// The backend counts for itself again.
    pub(super) fn end(&mut self, backend: &mut Backend) {
        backend.swap_tally(&mut self.tally);
        self.show_counts();
    }

    fn show_counts(&mut self) {
        if let Some((_, cell)) = &self.cell {
            cell.absorb(&mut self.tally);
        }
    }

    /// Takes up to `want` buffers without a page, each pinned once: from the ring as long as only the
    /// load has used them, else from the pool. None if there are no more to be had now.
    ///
    /// # Errors
    /// A write failed, the log could not be made durable, or the session was cancelled.
    pub(super) fn take(
        &mut self,
        backend: &mut Backend,
        want: u32,
        taken: &mut Vec<u32>,
    ) -> Result<(), WriteError> {
        self.collect(backend)?;
        self.write_ahead(backend, want as usize)?;
        for places in 1..=want as usize {
            while let Some(buffer) = self.ring.ahead(places)
                && self.is_to_be_cleaned(buffer)
            {
                if !self.clean(backend, places, buffer)? {
                    break;
                }
                self.collect(backend)?;
            }
        }
        let shared = Arc::clone(&self.shared);
        shared.take_empty(want, Some(&mut self.ring), &mut backend.tally, taken);
        self.looked = self.looked.saturating_sub(want as usize);
        Ok(())
    }

    /// Whether the ring could have a buffer again if its page were written.
    fn is_to_be_cleaned(&self, buffer: u32) -> bool {
        let seen = self.shared.word(buffer).load();
        let of_io = u32::from(seen.has(flag::IO_IN_PROGRESS));
        seen.has(flag::DIRTY) && seen.pins() == of_io && seen.usage() <= 1
    }

    /// Waits for the write of the page in a place of the ring, or writes it. False: somebody uses it.
    fn clean(
        &mut self,
        backend: &mut Backend,
        places: usize,
        buffer: u32,
    ) -> Result<bool, WriteError> {
        if let Some(io) = self.shared.buffers[buffer as usize].io_in_progress() {
            backend.join(io)?;
            return Ok(true);
        }
        if !self.writes.has_idle() {
            let (slot, outcome) = backend.session.wait_any(&mut self.writes.operations)?;
            self.note(slot, outcome, &mut backend.tally)?;
            return Ok(true);
        }
        match self.start(&mut backend.session, places, 1)? {
            StartWrite::Issued { .. } | StartWrite::Clean => Ok(true),
            StartWrite::Busy => Ok(false),
            StartWrite::LogFirst(lsn) => {
                backend.session.submit();
                self.shared.flush_log(lsn)?;
                Ok(true)
            }
            StartWrite::NoHandle => {
                backend.wait_for_handle(Class::Eviction)?;
                Ok(true)
            }
        }
    }

    /// Starts the writes of what the ring comes to soon. Waits for nothing but the log.
    fn write_ahead(&mut self, backend: &mut Backend, want: usize) -> Result<(), WriteError> {
        let size = self.ring.size() as usize;
        let lead = LEAD.min(size / 2);
        let goal = (want + lead).min(size - 1);
        // Many places at a time, so that rows are long and submissions few.
        if self.looked >= (want + lead / 2).min(goal) {
            return Ok(());
        }
        loop {
            let refused = {
                let mut batch = backend.session.batch();
                self.start_rows(&mut batch, goal)?
            };
            match refused {
                Some(StartWrite::LogFirst(lsn)) => self.shared.flush_log(lsn)?,
                _ => return Ok(()),
            }
        }
    }

    /// Starts writes up to a place ahead as long as they can be started; what stands in the way.
    fn start_rows(
        &mut self,
        session: &mut Session,
        goal: usize,
    ) -> Result<Option<StartWrite>, WriteError> {
        while self.looked < goal && self.writes.has_idle() {
            match self.start(session, self.looked + 1, goal - self.looked)? {
                StartWrite::Issued { count } => self.looked += count as usize,
                StartWrite::Clean | StartWrite::Busy => self.looked += 1,
                refused => return Ok(Some(refused)),
            }
        }
        Ok(None)
    }

    /// Starts the write of the page in a place of the ring, and of its neighbours in the next places,
    /// `most` in all.
    fn start(
        &mut self,
        session: &mut Session,
        places: usize,
        most: usize,
    ) -> Result<StartWrite, WriteError> {
        let Some(buffer) = self.ring.ahead(places).filter(|&at| self.is_left(at)) else {
            return Ok(StartWrite::Clean);
        };
        // Read without a pin: whoever claims the page for the write looks again.
        let tag = self.shared.buffers[buffer as usize].tag();
        let Some(storage) = self.shared.storage(tag.cluster()) else {
            return Ok(StartWrite::Clean);
        };
        self.row.clear();
        self.row.push(buffer);
        while self.row.len() < most.min(self.combine as usize)
            && let Some(block) = tag.block().checked_add(self.row.len() as BlockNo)
            && let Some(next) = self.ring.ahead(places + self.row.len())
            && self.is_left(next)
            && self.shared.buffers[next as usize].tag() == tag.at(block)
        {
            self.row.push(next);
        }
        let relation = storage.relation(tag.locator(), tag.fork());
        let dirty = Dirty {
            relation: &relation,
            tag,
            first: tag.block(),
            buffers: &self.row,
            class: Class::Eviction,
            needed: 0,
            now: false,
            durable: self.shared.log.durable(),
        };
        self.writes.start(session, &dirty)
    }

    /// Whether a page has something to write, and nobody uses it or writes it.
    fn is_left(&self, buffer: u32) -> bool {
        self.is_to_be_cleaned(buffer) && self.shared.word(buffer).load().pins() == 0
    }

    /// Takes note of the writes that have ended. Has the system write them back when it is time to.
    fn collect(&mut self, backend: &mut Backend) -> Result<(), WriteError> {
        while let Some(slot) = self.writes.operations.first_done()
            && let Some(outcome) = self.writes.operations.take(slot)
        {
            self.note(slot, outcome, &mut backend.tally)?;
        }
        if self.behind.is_due() {
            self.behind.tell(&mut backend.session);
            backend.tally.writebacks += self.behind.take_told();
        }
        Ok(())
    }

    fn note(&mut self, slot: usize, outcome: Outcome, tally: &mut Tally) -> Result<(), WriteError> {
        // What a short write leaves is as dirty as before, and written when its turn comes.
        let Written { tag, blocks, .. } = self.writes.finish(slot, outcome)?;
        tally.writes += 1;
        tally.written_blocks += u64::from(blocks);
        self.behind.note(tag, blocks);
        Ok(())
    }
}
