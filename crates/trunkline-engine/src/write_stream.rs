//! Write streams: sorted pages in, combined writes in flight, nothing waited for that need not be.
//!
//! ```text
//!   write(relation, block, buffer) ──▶ gathered: neighbours in a row ──▶ one write, up to the limit
//!                                          │ page in use                    │
//!                                          ▼                                ▼
//!                                       left for later              in flight, bounded
//! ```
//! Pages are to come sorted by name, so that neighbours follow each other. The stream keeps a bounded
//! number of writes in flight, each of up to `io_combine_limit` blocks. Before it writes pages it has
//! the log made durable up to the last change of any page that it has gathered: once for many.
//!
//! A page that somebody uses at the moment is left for later: the stream never waits for a lock while
//! it gathers. What is left at the end is waited for page by page if it *must* be written (a
//! checkpoint), and else stays as it is (the background writer). A page that somebody reads even then
//! is written from a copy: readers may come one after the other for ever. Writes in flight hold the
//! locks of their pages, but they are submitted, and end whatever anybody does.

mod later;
mod options;

pub use self::options::{WriteOptions, WriteStats};
use crate::pool::write::{Dirty, StartWrite, WriteError, Writes, Written};
use crate::pool::write_behind::WriteBehind;
use crate::pool::write_counts::WriteCounts;
use crate::pool::{Backend, Shared, Tag, flag};
use crate::storage::Relation;
use later::Later;
use std::collections::VecDeque;
use std::fmt;
use trunkline_aio::clock;
use trunkline_aio::sync::Arc;
use trunkline_aio::{Class, Session};
use trunkline_format::BlockNo;

/// See the module.
pub struct WriteStream {
    shared: Arc<Shared>,
    options: WriteOptions,
    writes: Writes,
    /// Gathered, to be submitted together.
    rows: VecDeque<Row>,
    later: Later,
    behind: WriteBehind,
    counts: WriteCounts,
    /// Writes that are still to be issued until the stream has its room to itself again.
    yields: u32,
    /// Memory of rows that were submitted.
    spare: Vec<Vec<u32>>,
    stats: WriteStats,
    /// The first error; the others are not lost, their pages are as dirty as before.
    failure: Option<WriteError>,
}

/// Neighbours.
struct Row {
    relation: Relation,
    /// Of the first.
    tag: Tag,
    buffers: Vec<u32>,
}

/// Writes in flight of a checkpoint while others have I/O under way: more of them make every read wait
/// behind them, and are hardly any faster.
const BESIDE_OTHERS: usize = 8;

/// So many writes after others were seen last, the checkpoint has the device to itself.
const YIELDS: u32 = 64;

/// So much of what may be in flight is submitted, and waited for, at once: each submission wakes
/// somebody, and a device behind a hypervisor wants a kick for it.
const TOGETHER_PART: usize = 8;

impl fmt::Debug for WriteStream {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "WriteStream({} in flight, {:?})", self.writes.in_flight(), self.stats)
    }
}

impl WriteStream {
    /// A stream of writes by the means of `backend`, which every call is to be given.
    pub fn new(backend: &Backend, options: WriteOptions) -> Self {
        let shared = Arc::clone(&backend.shared);
        let combine = options.combine.clamp(1, backend.session.iovecs() as u32);
        let slots = options.concurrency.clamp(1, 1000) as usize;
        Self {
            writes: Writes::new(&shared, slots, combine),
            shared,
            options: WriteOptions { combine, ..options },
            rows: VecDeque::new(),
            later: Later::default(),
            counts: WriteCounts::new(backend),
            behind: WriteBehind::new(&backend.shared, options.flush_after, options.class),
            yields: 0,
            spare: Vec::new(),
            stats: WriteStats::default(),
            failure: None,
        }
    }

    /// What was done so far.
    pub fn stats(&self) -> WriteStats {
        self.stats
    }

    /// Writes under way.
    pub fn in_flight(&self) -> usize {
        self.writes.in_flight()
    }

    /// Adds a page that is thought to be in `buffer`, numbered from 0, and dirty. Errors of writes are
    /// told at the end.
    ///
    /// # Errors
    /// The log could not be made durable, or the session was cancelled: nothing more is written.
    pub fn write(
        &mut self,
        backend: &mut Backend,
        relation: &Relation,
        block: BlockNo,
        buffer: u32,
    ) -> Result<(), WriteError> {
        let (combine, tag) = (self.options.combine as usize, Tag::of(relation, block));
        let follows = self.rows.back().is_some_and(|row| {
            row.buffers.len() < combine
                && row.tag.same_fork(tag)
                && row.tag.block().checked_add(row.buffers.len() as u32) == Some(block)
        });
        if !follows {
            if self.rows.len() >= self.together() {
                self.write_rows(backend)?;
            }
            let buffers = self.spare.pop().unwrap_or_else(|| Vec::with_capacity(combine));
            self.rows.push_back(Row { relation: relation.clone(), tag, buffers });
        }
        if let Some(row) = self.rows.back_mut() {
            row.buffers.push(buffer);
        }
        Ok(())
    }

    /// Writes what is gathered, and what was in use if it must be, and waits for all writes.
    ///
    /// # Errors
    /// The first error of any write: those pages are as dirty as before.
    pub fn finish(&mut self, backend: &mut Backend) -> Result<WriteStats, WriteError> {
        self.write_rows(backend)?;
        // What a short write leaves comes back here.
        while !self.later.is_empty() || self.writes.in_flight() > 0 {
            self.write_later(backend)?;
            if self.writes.in_flight() > 0 {
                self.wait_for_one(backend)?;
            }
        }
        let told = self.behind.finish(&mut backend.session);
        self.count_told();
        self.counts.show();
        told?;
        // Worse than a write that failed: those pages are thought to be clean.
        if let Some(lost) = self.behind.take_failure() {
            return Err(lost);
        }
        self.failure.take().map_or(Ok(self.stats), Err)
    }

    /// Writes submitted, and waited for, at once.
    fn together(&self) -> usize {
        (self.options.concurrency as usize / TOGETHER_PART).max(1)
    }

    /// Looks whether others have I/O under way, which a checkpoint makes room for; whether there is a
    /// place for another write.
    fn has_room(&mut self, session: &Session) -> bool {
        if self.options.class == Class::Checkpoint {
            let others = session.others_in_flight() > 0;
            self.yields = if others { YIELDS } else { self.yields.saturating_sub(1) };
        }
        self.writes.has_idle() && (self.yields == 0 || self.writes.in_flight() < BESIDE_OTHERS)
    }

    fn write_rows(&mut self, backend: &mut Backend) -> Result<(), WriteError> {
        while !self.rows.is_empty() {
            if !self.has_room(&backend.session) {
                self.wait_for_some(backend)?;
            }
            let mut batch = backend.session.batch();
            let refused = self.issue(&mut batch);
            drop(batch);
            if let Some(refused) = refused? {
                self.settle(backend, refused)?;
            }
        }
        Ok(())
    }

    /// Starts writes of what is gathered as long as there is a place for one; what else stands in the
    /// way.
    ///
    /// # Errors
    /// The session was cancelled.
    fn issue(&mut self, session: &mut Session) -> Result<Option<StartWrite>, WriteError> {
        while self.has_room(session)
            && let Some(mut row) = self.rows.pop_front()
        {
            let count = match self.start(session, &row.relation, row.tag, &row.buffers) {
                StartWrite::Issued { count } => count,
                StartWrite::Clean => {
                    self.stats.clean += 1;
                    1
                }
                StartWrite::Busy if self.options.must => {
                    self.later.push(row.tag, row.buffers[0]);
                    1
                }
                StartWrite::Busy => {
                    self.stats.skipped += 1;
                    1
                }
                refused => {
                    self.rows.push_front(row);
                    return Ok(Some(refused));
                }
            };
            if (count as usize) < row.buffers.len() {
                row.tag = row.tag.at(row.tag.block() + count);
                row.buffers.drain(..count as usize);
                self.rows.push_front(row);
            } else {
                row.buffers.clear();
                self.spare.push(row.buffers);
            }
            self.collect(session)?;
        }
        Ok(None)
    }

    /// Starts one write, for which there is a place.
    fn start(
        &mut self,
        session: &mut Session,
        relation: &Relation,
        first: Tag,
        buffers: &[u32],
    ) -> StartWrite {
        match self.writes.start(session, &self.dirty(relation, first, buffers)) {
            Ok(started) => {
                if matches!(started, StartWrite::Issued { .. }) {
                    let in_flight = self.writes.in_flight() as u32;
                    self.stats.writes += 1;
                    self.stats.in_flight_sum += u64::from(in_flight);
                    self.stats.in_flight_max = self.stats.in_flight_max.max(in_flight);
                }
                started
            }
            Err(error) => {
                // Nothing of this run can be written; the rest of the work goes on.
                self.fail(error);
                StartWrite::Issued { count: buffers.len() as u32 }
            }
        }
    }

    /// Pages that are thought to have something to write, from `first` on.
    fn dirty<'a>(&self, relation: &'a Relation, first: Tag, buffers: &'a [u32]) -> Dirty<'a> {
        Dirty {
            relation,
            tag: first,
            first: first.block(),
            buffers,
            class: self.options.class,
            needed: if self.options.checkpoint { flag::CHECKPOINT_NEEDED } else { 0 },
            now: false,
            durable: self.shared.log.durable(),
        }
    }

    /// Gets what stands in the way of a write out of it, unless that is somebody who uses the page.
    fn settle(&mut self, backend: &mut Backend, refused: StartWrite) -> Result<(), WriteError> {
        match refused {
            StartWrite::LogFirst(lsn) => {
                backend.session.submit();
                self.stats.log_flushes += 1;
                self.shared.flush_log(lsn)
            }
            StartWrite::NoHandle if self.writes.in_flight() > 0 => self.wait_for_one(backend),
            StartWrite::NoHandle => Ok(backend.wait_for_handle(self.options.class)?),
            StartWrite::Issued { .. } | StartWrite::Clean | StartWrite::Busy => Ok(()),
        }
    }

    /// Waits until so many writes have ended that a submission is worth it.
    fn wait_for_some(&mut self, backend: &mut Backend) -> Result<(), WriteError> {
        let (slept, started) = (self.writes.operations.first_done().is_none(), clock::now());
        // Beside others there are too few for a group.
        let count = if self.yields > 0 { 1 } else { self.together() };
        backend.session.wait_some(&self.writes.operations, count)?;
        if slept {
            self.stats.waits += 1;
            self.stats.wait_time += clock::now().since(started);
        }
        self.collect(&mut backend.session)
    }

    fn wait_for_one(&mut self, backend: &mut Backend) -> Result<(), WriteError> {
        let slept = self.writes.operations.first_done().is_none();
        let started = clock::now();
        let (slot, outcome) = backend.session.wait_any(&mut self.writes.operations)?;
        if slept {
            self.stats.waits += 1;
            self.stats.wait_time += clock::now().since(started);
        }
        let written = self.writes.finish(slot, outcome);
        self.note(written);
        self.collect(&mut backend.session)
    }

    /// Takes the results that are there: of writes that the session has made itself at once. Has the
    /// system write them back when it is time to.
    fn collect(&mut self, session: &mut Session) -> Result<(), WriteError> {
        while let Some(slot) = self.writes.operations.first_done()
            && let Some(outcome) = self.writes.operations.take(slot)
        {
            let written = self.writes.finish(slot, outcome);
            self.note(written);
        }
        let beside_others = self.yields > 0;
        let due = match beside_others {
            true => self.behind.is_due(),
            false => self.behind.is_due_alone(),
        };
        if due {
            let told = self.behind.tell_all(session, beside_others);
            self.count_told();
            told?;
            if self.writes.in_flight() == 0 {
                // There is nothing that it could go along with.
                session.submit();
            }
        }
        Ok(())
    }

    fn note(&mut self, written: Result<Written, WriteError>) {
        match written {
            Ok(Written { tag, blocks, rest }) => {
                self.stats.blocks += u64::from(blocks);
                self.counts.note(tag, blocks);
                self.behind.note(tag, blocks);
                if self.options.must {
                    let rest = rest.into_iter().zip(tag.block() + blocks..);
                    rest.for_each(|(buffer, block)| self.later.push(tag.at(block), buffer));
                } else {
                    self.stats.skipped += rest.len() as u64;
                }
            }
            Err(error) => self.fail(error),
        }
    }

    /// Ranges that the system was told of.
    fn count_told(&mut self) {
        let told = self.behind.take_told();
        self.stats.writebacks += told;
        self.counts.told(told);
    }

    fn fail(&mut self, error: WriteError) {
        self.failure.get_or_insert(error);
    }
}
