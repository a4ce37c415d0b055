//! Write streams: write sorted dirty pages with combined writes, many of them in flight.
//!
//! ```text
//!   write(relation, block, buffer) ──▶ collected: consecutive blocks ──▶ one write, up to the limit
//!                                          │ page is locked                 │
//!                                          ▼                                ▼
//!                                       deferred                   in flight, bounded
//! ```
//!
//! The caller adds pages sorted by tag, so that neighbours are combined. The stream keeps a bounded
//! number of writes in flight. Before it writes pages, it makes the log durable up to the LSN that
//! the next pages need, so one log flush serves many pages.
//!
//! A locked page is deferred, because the stream never waits for a lock while it collects pages. At
//! the end it waits for the deferred pages one by one if they *must* be written (a checkpoint), but
//! skips them otherwise (the background writer). A page that readers keep locked even then is
//! written from a copy, since new readers may keep arriving. Waiting for a lock at the end is safe:
//! writes in flight hold their pages' content locks, but they've been submitted and will complete
//! without this session.
//!
//! PostgreSQL's checkpointer writes one page at a time, synchronously (`SyncOneBuffer`).

mod deferred;
mod options;
mod write_deferred;

pub use self::options::{WriteOptions, WriteStats};
use crate::pool::{
    Backend, BufferManager, BufferTag, PageWrites, WriteCounter, WriteError, WriteRequest,
    WriteResult, WriteStart, WritebackQueue, flag,
};
use crate::storage::Relation;
use deferred::Deferred;
use std::collections::VecDeque;
use std::fmt;
use trunkline_aio::clock;
use trunkline_aio::facade::Arc;
use trunkline_aio::{Class, Session};
use trunkline_format::BlockNo;

/// A stream of page writes.
pub struct WriteStream {
    manager: Arc<BufferManager>,
    options: WriteOptions,
    writes: PageWrites,
    /// Runs of consecutive blocks that were collected but not issued. A group of them is submitted
    /// together.
    runs: VecDeque<Run>,
    deferred: Deferred,
    writeback: WritebackQueue,
    counter: WriteCounter,
    /// How many more writes to issue with reduced concurrency. Reset whenever other sessions' I/O
    /// is seen.
    yields: u32,
    /// Vectors of submitted runs, kept for reuse.
    spare: Vec<Vec<u32>>,
    stats: WriteStats,
    /// The first error. Later errors need not be kept, because the pages of those failed writes
    /// stay dirty too.
    failure: Option<WriteError>,
}

/// Consecutive blocks.
struct Run {
    relation: Relation,
    first: BufferTag,
    buffers: Vec<u32>,
}

/// Maximum number of a checkpoint's writes in flight while other sessions do I/O. More writes would
/// delay every read that queues behind them, but would hardly make the checkpoint faster.
const WRITES_BESIDE_OTHERS: usize = 8;

/// Writes after which a checkpoint assumes that it has the device to itself, if no other I/O was
/// seen.
const YIELDS: u32 = 64;

/// We submit the writes of a group together, and wait for them together. A group's size is the
/// concurrency divided by this number. Each submission wakes a thread, and may cost a virtual
/// machine an exit to its hypervisor.
const GROUP_PART: usize = 8;

impl fmt::Debug for WriteStream {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "WriteStream({} in flight, {:?})", self.writes.window().in_flight(), self.stats)
    }
}

impl WriteStream {
    /// Creates a stream of writes. Every call must be given the same `backend`.
    pub fn new(backend: &Backend, options: WriteOptions) -> Self {
        let manager = Arc::clone(backend.manager());
        let combine = options.combine.clamp(1, backend.iovecs() as u32);
        let slots = options.concurrency.clamp(1, 1000) as usize;
        Self {
            writes: PageWrites::new(&manager, slots, combine),
            options: WriteOptions { combine, ..options },
            runs: VecDeque::new(),
            deferred: Deferred::default(),
            counter: WriteCounter::new(backend.statistics(), backend.kind()),
            writeback: WritebackQueue::new(manager.clusters(), options.flush_after, options.class),
            yields: 0,
            spare: Vec::new(),
            stats: WriteStats::default(),
            failure: None,
            manager,
        }
    }

    /// What the stream has done so far.
    pub fn stats(&self) -> WriteStats {
        self.stats
    }

    /// Writes in flight.
    pub fn in_flight(&self) -> usize {
        self.writes.window().in_flight()
    }

    /// Adds a page that is probably still in `buffer` (numbered from 0) and probably still dirty.
    /// Errors of writes are returned by [`WriteStream::finish`].
    ///
    /// # Errors
    /// The log could not be made durable, or the session was cancelled. In either case, nothing
    /// more is written.
    pub fn write(
        &mut self,
        backend: &mut Backend,
        relation: &Relation,
        block: BlockNo,
        buffer: u32,
    ) -> Result<(), WriteError> {
        let (combine, tag) = (self.options.combine as usize, BufferTag::of(relation, block));
        let continues = self.runs.back().is_some_and(|run| {
            run.buffers.len() < combine
                && run.first.same_fork(tag)
                && run.first.block().checked_add(run.buffers.len() as u32) == Some(block)
        });
        if !continues {
            if self.runs.len() >= self.group() {
                self.write_runs(backend)?;
            }
            let buffers = self.spare.pop().unwrap_or_else(|| Vec::with_capacity(combine));
            self.runs.push_back(Run { relation: relation.clone(), first: tag, buffers });
        }
        if let Some(run) = self.runs.back_mut() {
            run.buffers.push(buffer);
        }
        Ok(())
    }

    /// Writes the collected pages, and also the deferred pages if they must be written. Then waits
    /// for all writes.
    ///
    /// # Errors
    /// The first error of any write. The pages of failed writes are still dirty.
    pub fn finish(&mut self, backend: &mut Backend) -> Result<WriteStats, WriteError> {
        self.write_runs(backend)?;
        // The rest of a short write is deferred, so one pass may not be enough.
        while !self.deferred.is_empty() || self.writes.window().in_flight() > 0 {
            self.write_deferred(backend)?;
            if self.writes.window().in_flight() > 0 {
                self.wait_for_one(backend)?;
            }
        }
        let finished = self.writeback.finish(backend.session());
        self.count_writebacks();
        self.counter.publish();
        finished?;
        // A failed writeback is worse than a failed write. After a failed write the pages are still
        // dirty, but these pages are already clean, so their contents may be lost.
        if let Some(lost) = self.writeback.take_failure() {
            return Err(lost);
        }
        self.failure.take().map_or(Ok(self.stats), Err)
    }

    /// Number of writes that are submitted, and waited for, together.
    fn group(&self) -> usize {
        (self.options.concurrency as usize / GROUP_PART).max(1)
    }

    /// Whether another write may start. A checkpoint throttles itself while other sessions do I/O:
    /// a device works on its whole queue at the same time, so a read that is queued behind 128
    /// writes waits for all of them. PostgreSQL's checkpointer can't flood the device like this,
    /// since it issues one write at a time.
    fn has_room(&mut self, session: &Session) -> bool {
        if self.options.class == Class::Checkpoint {
            let others = session.others_in_flight() > 0;
            self.yields = if others { YIELDS } else { self.yields.saturating_sub(1) };
        }
        self.writes.window().has_idle()
            && (self.yields == 0 || self.writes.window().in_flight() < WRITES_BESIDE_OTHERS)
    }

    fn write_runs(&mut self, backend: &mut Backend) -> Result<(), WriteError> {
        while !self.runs.is_empty() {
            if !self.has_room(backend.session()) {
                self.wait_for_group(backend)?;
            }
            let mut batch = backend.session().batch();
            let refused = self.issue(&mut batch);
            drop(batch);
            if let Some(refused) = refused? {
                self.resolve(backend, refused)?;
            }
        }
        Ok(())
    }

    /// Starts writes of the collected runs while there is room. Returns what prevents the next
    /// write. A write may cover only the first part of a run, in which case the rest goes back to
    /// the front of the queue.
    ///
    /// # Errors
    /// The session was cancelled.
    fn issue(&mut self, session: &mut Session) -> Result<Option<WriteStart>, WriteError> {
        while self.has_room(session)
            && let Some(mut run) = self.runs.pop_front()
        {
            let count = match self.start(session, &run.relation, run.first, &run.buffers) {
                WriteStart::Issued { count } => count,
                WriteStart::Clean => {
                    self.stats.clean += 1;
                    1
                }
                WriteStart::Busy if self.options.must => {
                    self.deferred.push(run.first, run.buffers[0]);
                    1
                }
                WriteStart::Busy => {
                    self.stats.skipped += 1;
                    1
                }
                refused => {
                    self.runs.push_front(run);
                    return Ok(Some(refused));
                }
            };
            if (count as usize) < run.buffers.len() {
                run.first = run.first.at(run.first.block() + count);
                run.buffers.drain(..count as usize);
                self.runs.push_front(run);
            } else {
                run.buffers.clear();
                self.spare.push(run.buffers);
            }
            self.take_ended(session)?;
        }
        Ok(None)
    }

    /// Starts one write. The caller must have checked that there is room for it.
    fn start(
        &mut self,
        session: &mut Session,
        relation: &Relation,
        first: BufferTag,
        buffers: &[u32],
    ) -> WriteStart {
        match self.writes.start(session, &self.request(relation, first, buffers)) {
            Ok(started) => {
                if matches!(started, WriteStart::Issued { .. }) {
                    let in_flight = self.writes.window().in_flight() as u32;
                    self.stats.writes += 1;
                    self.stats.in_flight_sum += u64::from(in_flight);
                    self.stats.in_flight_max = self.stats.in_flight_max.max(in_flight);
                }
                started
            }
            Err(error) => {
                // None of these pages can be written. They stay dirty and the stream continues, so
                // that a single bad file doesn't keep all other pages from disk.
                self.fail(error);
                WriteStart::Issued { count: buffers.len() as u32 }
            }
        }
    }

    /// The request to write pages that are probably dirty, from `first` on.
    fn request<'a>(
        &self,
        relation: &'a Relation,
        first: BufferTag,
        buffers: &'a [u32],
    ) -> WriteRequest<'a> {
        WriteRequest {
            needed: if self.options.checkpoint { flag::CHECKPOINT_NEEDED } else { 0 },
            ..WriteRequest::new(&self.manager, relation, first, buffers, self.options.class)
        }
    }

    /// Removes whatever prevents the next write, unless that is a lock: flushes the log, or waits
    /// for an I/O handle. In both cases staged writes must be submitted first, because they hold
    /// content locks.
    fn resolve(&mut self, backend: &mut Backend, refused: WriteStart) -> Result<(), WriteError> {
        match refused {
            WriteStart::LogFirst(lsn) => {
                backend.session().submit();
                self.stats.log_flushes += 1;
                self.manager.clusters().flush_log(lsn)
            }
            WriteStart::NoHandle if self.writes.window().in_flight() > 0 => {
                self.wait_for_one(backend)
            }
            WriteStart::NoHandle => Ok(backend.sleep_for_handle(self.options.class)?),
            WriteStart::Issued { .. } | WriteStart::Clean | WriteStart::Busy => Ok(()),
        }
    }

    /// Waits until enough writes have ended to make another submission worthwhile.
    fn wait_for_group(&mut self, backend: &mut Backend) -> Result<(), WriteError> {
        // While other sessions do I/O there are too few writes in flight for a group.
        let count = if self.yields > 0 { 1 } else { self.group() };
        let (slept, started) = (!self.writes.window().has_done(), clock::now());
        self.writes.window().sleep_some(backend.session(), count)?;
        self.count_wait(slept, started);
        self.take_ended(backend.session())
    }

    fn wait_for_one(&mut self, backend: &mut Backend) -> Result<(), WriteError> {
        let (slept, started) = (!self.writes.window().has_done(), clock::now());
        let ended = self.writes.wait_ended(backend.session())?;
        self.count_wait(slept, started);
        self.note(ended);
        self.take_ended(backend.session())
    }

    fn count_wait(&mut self, slept: bool, started: clock::Time) {
        if slept {
            self.stats.waits += 1;
            self.stats.wait_time += clock::now().since(started);
        }
    }

    /// Takes the results of completed writes, including writes that the session has executed
    /// itself. Issues writeback if it is due.
    fn take_ended(&mut self, session: &mut Session) -> Result<(), WriteError> {
        while let Some(ended) = self.writes.take_ended() {
            self.note(ended);
        }
        let beside_others = self.yields > 0;
        let due = match beside_others {
            true => self.writeback.is_due(),
            false => self.writeback.is_due_alone(),
        };
        if due {
            let issued = self.writeback.issue_all(session, beside_others);
            self.count_writebacks();
            issued?;
            if self.writes.window().in_flight() == 0 {
                // No later write would submit the staged ranges.
                session.submit();
            }
        }
        Ok(())
    }

    fn note(&mut self, ended: Result<WriteResult, WriteError>) {
        match ended {
            Ok(WriteResult { first, blocks, rest }) => {
                self.stats.blocks += u64::from(blocks);
                self.counter.add(first, blocks);
                self.writeback.push(first, blocks);
                if self.options.must {
                    let rest = rest.into_iter().zip(first.block() + blocks..);
                    rest.for_each(|(buffer, block)| self.deferred.push(first.at(block), buffer));
                } else {
                    self.stats.skipped += rest.len() as u64;
                }
            }
            Err(error) => self.fail(error),
        }
    }

    fn count_writebacks(&mut self) {
        let issued = self.writeback.take_issued();
        self.stats.writebacks += issued;
        self.counter.add_writebacks(issued);
    }

    fn fail(&mut self, error: WriteError) {
        self.failure.get_or_insert(error);
    }
}
