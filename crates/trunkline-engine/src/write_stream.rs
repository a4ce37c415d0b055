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

mod behind;

use crate::pool::write::{Dirty, StartWrite, WriteError, Writes, Written};
use crate::pool::write_counts::WriteCounts;
use crate::pool::{Backend, Shared, Tag, flag};
use crate::storage::Relation;
use behind::Behind;
use std::collections::VecDeque;
use std::fmt;
use std::time::Duration;
use trunkline_aio::clock;
use trunkline_aio::sync::Arc;
use trunkline_aio::{Class, Session};
use trunkline_format::{BLOCK_SIZE, BlockNo};

/// How a stream writes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct WriteOptions {
    /// Writes in flight at most, 1 to 1000.
    pub concurrency: u32,
    /// Blocks of one write at most (`io_max_combine_limit`), 1 to 128.
    pub combine: u32,
    /// What the writes are counted as.
    pub class: Class,
    /// Every page is written, however long somebody uses it; otherwise such a page is left.
    pub must: bool,
    /// Only pages that the running checkpoint needs.
    pub checkpoint: bool,
    /// Have the system begin to write back what it has cached whenever so many blocks were written
    /// (`checkpoint_flush_after`, `bgwriter_flush_after`); 0 leaves that to the system.
    pub flush_after: u32,
}

impl Default for WriteOptions {
    fn default() -> Self {
        Self {
            concurrency: 16,
            combine: 16,
            class: Class::WriteBack,
            must: false,
            checkpoint: false,
            flush_after: 0,
        }
    }
}

/// What a stream has done.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct WriteStats {
    /// Blocks written.
    pub blocks: u64,
    /// Writes issued.
    pub writes: u64,
    /// Pages that had been written by somebody else, or were gone.
    pub clean: u64,
    /// Pages left because somebody used them.
    pub skipped: u64,
    /// Pages written from a copy, because somebody read them all the while.
    pub copies: u64,
    /// Times that the log had to be made durable first.
    pub log_flushes: u64,
    /// Times that the stream slept.
    pub waits: u64,
    /// How long.
    pub wait_time: Duration,
    /// The most writes that were in flight.
    pub in_flight_max: u32,
    /// Writes in flight, the new one included, summed over the moments at which one was issued.
    pub in_flight_sum: u64,
    /// Ranges that the system was told to begin to write back.
    pub writebacks: u64,
}

impl WriteStats {
    /// Bytes written.
    pub fn bytes(&self) -> u64 {
        self.blocks * BLOCK_SIZE as u64
    }
}

/// See the module.
pub struct WriteStream {
    shared: Arc<Shared>,
    options: WriteOptions,
    writes: Writes,
    /// Gathered, to be submitted together.
    rows: VecDeque<Row>,
    /// For pages that somebody reads all the while.
    copies: Option<Writes>,
    /// Pages that were in use.
    later: VecDeque<(Relation, BlockNo, u32)>,
    behind: Behind,
    counts: WriteCounts,
    /// Ranges that the counts know of.
    told: u64,
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
    tag: Tag,
    first: BlockNo,
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
            copies: None,
            later: VecDeque::new(),
            counts: WriteCounts::new(backend),
            told: 0,
            behind: Behind::new(options.flush_after, options.class),
            yields: 0,
            spare: Vec::new(),
            stats: WriteStats::default(),
            failure: None,
        }
    }

    /// What was done so far.
    pub fn stats(&self) -> WriteStats {
        WriteStats { writebacks: self.behind.begun(), ..self.stats }
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
        let combine = self.options.combine as usize;
        let follows = self.rows.back().is_some_and(|row| {
            row.buffers.len() < combine
                && row.tag.at(block) == Tag::of(relation, block)
                && row.first.checked_add(row.buffers.len() as u32) == Some(block)
        });
        if !follows {
            if self.rows.len() >= self.together() {
                self.write_rows(backend)?;
            }
            let tag = Tag::of(relation, block);
            let buffers = self.spare.pop().unwrap_or_else(|| Vec::with_capacity(combine));
            self.rows.push_back(Row { relation: relation.clone(), tag, first: block, buffers });
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
            // One by one: if the session is cancelled, the others are still to be written.
            while let Some((relation, block, buffer)) = self.later.pop_front() {
                let written = self.write_in_the_end(backend, &relation, block, buffer);
                written.inspect_err(|_| self.later.push_front((relation, block, buffer)))?;
            }
            if self.writes.in_flight() > 0 {
                self.wait_for_one(backend)?;
            }
        }
        self.behind.finish(&mut backend.session)?;
        let begun = self.behind.begun();
        self.counts.told(begun - std::mem::replace(&mut self.told, begun));
        self.counts.show();
        self.failure.take().map_or(Ok(self.stats()), Err)
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
            let Row { relation, first, buffers, .. } = &row;
            let count = match self.start(session, relation, *first, buffers) {
                StartWrite::Issued { count } => count,
                StartWrite::Clean => {
                    self.stats.clean += 1;
                    1
                }
                StartWrite::Busy if self.options.must => {
                    self.later.push_back((relation.clone(), *first, buffers[0]));
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
                row.first += count;
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
        first: BlockNo,
        buffers: &[u32],
    ) -> StartWrite {
        let dirty = Dirty {
            relation,
            tag: Tag::of(relation, first),
            first,
            buffers,
            class: self.options.class,
            needed: if self.options.checkpoint { flag::CHECKPOINT_NEEDED } else { 0 },
            now: false,
            durable: self.shared.log.durable(),
        };
        match self.writes.start(session, &dirty) {
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

    /// Writes one page, waiting for whoever uses it. Holds no lock while it waits, but those of writes
    /// that are under way.
    fn write_in_the_end(
        &mut self,
        backend: &mut Backend,
        relation: &Relation,
        block: BlockNo,
        buffer: u32,
    ) -> Result<(), WriteError> {
        loop {
            while !self.writes.has_idle() {
                self.wait_for_one(backend)?;
            }
            match self.start(&mut backend.session, relation, block, &[buffer]) {
                StartWrite::Issued { .. } => return Ok(()),
                StartWrite::Clean => {
                    self.stats.clean += 1;
                    return Ok(());
                }
                StartWrite::Busy => {
                    backend.session.submit();
                    if self.write_copy(backend, relation, block, buffer)? {
                        return Ok(());
                    }
                    self.stats.waits += 1;
                    backend.wait_for_page(buffer)?;
                }
                refused => self.settle(backend, refused)?,
            }
        }
    }

    /// Writes a page that somebody reads, from a copy, and waits for that. False: somebody changes it
    /// or writes it, or there is no memory for a copy.
    fn write_copy(
        &mut self,
        backend: &mut Backend,
        relation: &Relation,
        block: BlockNo,
        buffer: u32,
    ) -> Result<bool, WriteError> {
        if self.copies.is_none() {
            let mut copies = Writes::new(&self.shared, 1, 1);
            let lease = backend.session.lease(1);
            if let (Some(lease), Some(memory)) = (lease, copies.operations.memory(0)) {
                memory.push(lease);
                self.copies = Some(copies);
            }
        }
        let Some(mut copies) = self.copies.take() else { return Ok(false) };
        let written = self.write_copy_with(&mut copies, backend, relation, block, buffer);
        self.copies = Some(copies);
        written
    }

    fn write_copy_with(
        &mut self,
        copies: &mut Writes,
        backend: &mut Backend,
        relation: &Relation,
        block: BlockNo,
        buffer: u32,
    ) -> Result<bool, WriteError> {
        let mut durable = self.shared.log.durable();
        while copies.in_flight() > 0 {
            // Left behind by a call that was cancelled.
            let (slot, outcome) = backend.session.wait_any(&mut copies.operations)?;
            let written = copies.finish(slot, outcome);
            self.note(written);
        }
        loop {
            let dirty = Dirty {
                relation,
                tag: Tag::of(relation, block),
                first: block,
                buffers: &[buffer],
                class: self.options.class,
                needed: if self.options.checkpoint { flag::CHECKPOINT_NEEDED } else { 0 },
                now: false,
                durable,
            };
            match copies.start_copy(&mut backend.session, &dirty)? {
                StartWrite::Issued { .. } => {
                    self.stats.writes += 1;
                    self.stats.copies += 1;
                    let (slot, outcome) = backend.session.wait_any(&mut copies.operations)?;
                    let written = copies.finish(slot, outcome);
                    self.note(written);
                    return Ok(true);
                }
                StartWrite::Clean => {
                    self.stats.clean += 1;
                    return Ok(true);
                }
                StartWrite::Busy => return Ok(false),
                StartWrite::LogFirst(lsn) => {
                    self.stats.log_flushes += 1;
                    self.shared.flush_log(lsn)?;
                    durable = self.shared.log.durable();
                }
                StartWrite::NoHandle if self.writes.in_flight() > 0 => {
                    self.wait_for_one(backend)?
                }
                StartWrite::NoHandle => backend.wait_for_handle(self.options.class)?,
            }
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
        if self.behind.is_due() {
            self.behind.flush(session, self.yields > 0)?;
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
                if self.behind.is_on() || !rest.is_empty() {
                    self.note_relation(tag, blocks, rest);
                }
            }
            Err(error) => self.fail(error),
        }
    }

    /// What needs more than the name of what was written.
    fn note_relation(&mut self, tag: Tag, blocks: u32, rest: Vec<u32>) {
        let Some(relation) = self.shared.relation(tag) else { return };
        if self.options.must {
            let rest = rest.into_iter().zip(tag.block() + blocks..);
            let rest = rest.map(|(buffer, block)| (relation.clone(), block, buffer));
            self.later.extend(rest);
        } else {
            self.stats.skipped += rest.len() as u64;
        }
        if self.behind.is_on()
            && let Ok(located) = relation.locate(tag.block())
        {
            self.behind.note(&located.file, located.offset, blocks);
        }
    }

    fn fail(&mut self, error: WriteError) {
        self.failure.get_or_insert(error);
    }
}
