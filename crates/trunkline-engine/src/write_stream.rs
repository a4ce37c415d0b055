//! Write streams: write sorted dirty pages, combining adjacent pages and keeping many writes in
//! flight.
//!
//! ```text
//!   write(relation, block, buffer) ──▶ collected: consecutive blocks ──▶ one write, up to the limit
//!                                          │ page is locked                 │
//!                                          ▼                                ▼
//!                                       deferred                   in flight, bounded
//! ```
//!
//! The caller adds pages in tag order, so that the stream can combine neighbouring blocks into one
//! write. The number of writes in flight is limited. Before the stream writes a page, it must make
//! the log durable up to the page's LSN. It flushes the log up to the LSN that the next few pages
//! need, so that one log flush is enough for many pages.
//!
//! While the stream collects pages, it never waits for a lock. If a page is locked, the stream
//! defers it instead. At the end, a checkpoint *must* write the deferred pages, so it waits for
//! them one by one, while the background writer just skips them. If readers still hold the lock at
//! that point, we write a copy of the page, because new readers might keep arriving forever. It's
//! safe to wait for a lock at the end. Our writes in flight do hold the content locks of their
//! pages, but they have been submitted and will complete without any help from this session.
//!
//! If a page's LSN is again not durable after we have flushed the log for it, we defer the page as
//! well. A page that changes all the time, such as the newest page of the commit log, could
//! otherwise hold up a checkpoint for as long as it changes.
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
    /// Runs of consecutive blocks that have been collected but not issued yet. Several of them are
    /// submitted together as a group.
    runs: VecDeque<Run>,
    deferred: Deferred,
    /// The page for which we last flushed the log, before its write was started.
    flushed_for: Option<BufferTag>,
    writeback: WritebackQueue,
    counter: WriteCounter,
    /// Number of writes we still have to issue at reduced concurrency. Reset to its maximum
    /// whenever we see that another session has I/O in flight.
    yields: u32,
    /// Vectors of submitted runs, kept for reuse.
    spare: Vec<Vec<u32>>,
    stats: WriteStats,
    /// The first error. We don't need to keep later errors, because all pages that couldn't be
    /// written stay dirty anyway.
    failure: Option<WriteError>,
}

/// Consecutive blocks.
struct Run {
    relation: Relation,
    first: BufferTag,
    buffers: Vec<u32>,
}

/// Maximum number of writes that a checkpoint has in flight while other sessions are doing I/O.
/// With more writes in flight, every read would have to queue behind them, but the checkpoint would
/// hardly be any faster.
const WRITES_BESIDE_OTHERS: usize = 8;

/// If a checkpoint has issued this many writes without seeing any other I/O, it assumes that it has
/// the device to itself.
const YIELDS: u32 = 64;

/// We submit writes in groups and also wait for them in groups. The size of a group is the
/// concurrency divided by this number. We do this because each submission has to wake a thread, and
/// in a virtual machine it may also cause an exit to the hypervisor.
const GROUP_PART: usize = 8;

impl fmt::Debug for WriteStream {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "WriteStream({} in flight, {:?})", self.writes.window().in_flight(), self.stats)
    }
}

impl WriteStream {
    /// Creates a write stream. The caller must pass the same `backend` to all of its methods.
    pub fn new(backend: &Backend, options: WriteOptions) -> Self {
        let manager = Arc::clone(backend.manager());
        let combine = options.combine.clamp(1, backend.iovecs() as u32);
        let slots = options.concurrency.clamp(1, 1000) as usize;
        Self {
            writes: PageWrites::new(&manager, slots, combine),
            options: WriteOptions { combine, ..options },
            runs: VecDeque::new(),
            deferred: Deferred::default(),
            flushed_for: None,
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

    /// Adds a page to write. The page is probably still in `buffer` (numbered from 0) and probably
    /// still dirty, but needn't be. If a write fails, the error is returned by
    /// [`WriteStream::finish`].
    ///
    /// # Errors
    /// We couldn't make the log durable, or the session was cancelled. In both cases, no further
    /// pages are written.
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

    /// Writes the collected pages and, if they must be written, the deferred pages. Then waits for
    /// all writes to complete.
    ///
    /// # Errors
    /// The first error that any of the writes returned. Pages that couldn't be written are still
    /// dirty.
    pub fn finish(&mut self, backend: &mut Backend) -> Result<WriteStats, WriteError> {
        self.write_runs(backend)?;
        // If a write is short, we defer the pages it didn't write, so we may need more than one
        // pass.
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
        // Report a failed writeback first, because it is worse than a failed write. If a write
        // fails, the pages stay dirty and can be written again. But if writeback fails, the pages
        // have already been marked clean, so their contents may be lost.
        if let Some(lost) = self.writeback.take_failure() {
            return Err(lost);
        }
        self.failure.take().map_or(Ok(self.stats), Err)
    }

    /// Number of writes that we submit, and wait for, as a group.
    fn group(&self) -> usize {
        (self.options.concurrency as usize / GROUP_PART).max(1)
    }

    /// Whether we may start another write. A checkpoint issues fewer writes while other sessions
    /// are doing I/O, because a device works on all requests in its queue at the same time. A read
    /// that is queued behind 128 writes would have to wait for all of them. PostgreSQL doesn't have
    /// this problem, because its checkpointer only issues one write at a time.
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

    /// Starts writing the collected runs, as long as there is room. Returns the reason if it
    /// couldn't start the next write. A write may cover only the first part of a run. In that case,
    /// we put the rest of the run back at the front of the queue.
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
                // Its LSN has advanced since we flushed the log for this page.
                WriteStart::LogFirst(_) if self.flushed_for.take() == Some(run.first) => {
                    match self.options.must {
                        true => self.deferred.push(run.first, run.buffers[0]),
                        false => self.stats.skipped += 1,
                    }
                    1
                }
                refused => {
                    if matches!(refused, WriteStart::LogFirst(_)) {
                        self.flushed_for = Some(run.first);
                    }
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
                // We couldn't write any of these pages. They stay dirty, and we continue with the
                // other pages, because those should reach the disk even if a single file is bad.
                self.fail(error);
                WriteStart::Issued { count: buffers.len() as u32 }
            }
        }
    }

    /// Builds a request to write the given pages, starting with `first`. The pages are probably
    /// dirty, but needn't be.
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

    /// Makes the next write possible by flushing the log or waiting for an I/O handle, depending on
    /// what is holding it up. Does nothing if the page is locked. We must submit any staged writes
    /// before flushing or waiting, because they hold content locks.
    fn resolve(&mut self, backend: &mut Backend, refused: WriteStart) -> Result<(), WriteError> {
        match refused {
            WriteStart::LogFirst(lsn) => {
                backend.session().submit();
                self.stats.log_flushes += 1;
                self.manager.clusters().sleep_for_log(backend.session(), lsn)
            }
            WriteStart::NoHandle if self.writes.window().in_flight() > 0 => {
                self.wait_for_one(backend)
            }
            WriteStart::NoHandle => Ok(backend.sleep_for_handle(self.options.class)?),
            WriteStart::Issued { .. } | WriteStart::Clean | WriteStart::Busy => Ok(()),
        }
    }

    /// Waits until enough writes have completed to make another submission worthwhile.
    fn wait_for_group(&mut self, backend: &mut Backend) -> Result<(), WriteError> {
        // While other sessions are doing I/O, we don't have enough writes in flight to form a
        // group.
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

    /// Takes the results of all completed writes, including those that the session has executed
    /// itself. Also issues writeback requests if it's time to do so.
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
                // Submit the staged writeback requests now, because there may be no later write
                // that would submit them.
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
