//! Read streams: block numbers in, pinned pages out, with reads in flight for those to come.
//!
//! ```text
//!   source ──▶ queue: gathered │ reading, joined, ready ──▶ next(): one page at a time
//!                  look-ahead ─┘                            └▶ wait, only if it is not there
//! ```
//! Each time the consumer asks for a page the stream first looks ahead: it takes block numbers from
//! its source, gathers those in a row into reads, and starts them, as far ahead as its distances say
//! (`distance`). Then it hands out the next page, waiting for it if it must.
//!
//! # An example
//!
//! A table of 1000 blocks, none in the pool, 16 reads of 16 blocks allowed. `next` reads block 0 in
//! this thread and waits for it. So both distances double: blocks 1 and 2 in one read, then 4, then
//! 8, 16, and from then on as many reads of 16 as hide the time of the device. Had the consumer
//! stopped after the first page, one block would have been read.
//!
//! # Rules
//!
//! - Pages that others read are joined by reference: looking ahead goes on past them. If that read
//!   fails, the stream reads the page itself.
//! - A read that ends short, or fails as a whole, is retried from where it ended, or block by block;
//!   an error names the block that could not be had and comes when its turn has come. The stream
//!   can go on after it.
//! - Pins are booked for look-ahead only as far as the limiter grants them, and one page is always
//!   granted (`crate::pool`).
//! - The backend is lent to each call: several streams share one session, and a stream that is
//!   dropped, with reads in flight or not, leaves nothing pinned.
//! - [`ReadStream::let_go`] gives back everything that was pinned ahead, for a consumer that has to
//!   wait for something else; the stream reads it again when asked.

mod distance;
mod look_ahead;
mod pace;
mod queue;
mod source;
mod stats;

pub use source::{BlockList, BlockRange, BlockSource, ParallelRange};
pub use stats::StreamStats;

use crate::pool::read::{BlockEnd, Reads, error_of};
use crate::pool::{
    Backend, Cell, PinRef, Policy, ReadError, ReadWarning, Ring, Shared, Strategy, Tag, Tally, flag,
};
use crate::settings::Settings;
use crate::storage::Relation;
use distance::Distances;
use pace::Pace;
use queue::{Queue, State};
use std::collections::VecDeque;
use std::fmt;
use std::task::{Context, Poll, ready};
use trunkline_aio::clock::{self, Time};
use trunkline_aio::sync::Arc;
use trunkline_aio::{Cancelled, Class, Outcome, WaitRef};
use trunkline_format::{BlockNo, segment::segment_of};

/// How a stream reads.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct StreamOptions {
    /// Reads in flight at most (`effective_io_concurrency`), 0 to 1000; 0 reads when a page is
    /// wanted, in the consumer's thread.
    pub concurrency: u32,
    /// Blocks of one read at most (`io_combine_limit`), 1 to 128.
    pub combine: u32,
    /// Hand out whichever page is ready, where the order cannot show.
    pub unordered: bool,
    /// Everything will be read: no slow start.
    pub full: bool,
    /// Blocks mostly follow each other: leave it to the system, under `sync`, to see that.
    pub sequential: bool,
    /// Bulk work goes round in a few buffers.
    pub strategy: Strategy,
    /// What reads ahead are counted as.
    pub class: Class,
}

impl StreamOptions {
    /// As the settings say, in order, with a slow start.
    pub fn of(settings: &Settings) -> Self {
        Self {
            concurrency: settings.effective_io_concurrency(),
            combine: settings.io_combine_limit(),
            ..Self::default()
        }
    }

    /// For maintenance work: its own concurrency, and no slow start.
    pub fn maintenance(settings: &Settings) -> Self {
        Self {
            concurrency: settings.maintenance_io_concurrency(),
            full: true,
            class: Class::Maintenance,
            ..Self::of(settings)
        }
    }
}

impl Default for StreamOptions {
    /// PostgreSQL's defaults: 16 reads of up to 16 blocks.
    fn default() -> Self {
        Self {
            concurrency: 16,
            combine: 16,
            unordered: false,
            full: false,
            sequential: false,
            strategy: Strategy::Normal,
            class: Class::LookAhead,
        }
    }
}

/// See the module.
pub struct ReadStream<S: BlockSource> {
    shared: Arc<Shared>,
    session: u32,
    relation: Relation,
    tag: Tag,
    policy: Policy,
    options: StreamOptions,
    source: S,
    ended: bool,
    /// A block that the source has given and the queue has not taken.
    unget: Option<(BlockNo, S::Data)>,
    queue: Queue<S::Data>,
    /// Sequence numbers of ready entries, for an unordered stream.
    ready: VecDeque<u64>,
    reads: Reads,
    /// By slot: the sequence number of the read's first entry; `None` once it was let go of.
    flights: Vec<Option<Flight>>,
    ring: Option<Ring>,
    distances: Distances,
    pace: Pace,
    /// Entries with a pin.
    pinned: u32,
    /// Those of them whose page another entry has brought.
    duplicates: u32,
    /// Reads that were let go of and are still under way.
    let_go_reads: usize,
    /// Entries of which the system was told in advance, and that are not read yet.
    advised: u32,
    /// The block after the last one that was started.
    next_in_row: Option<BlockNo>,
    /// A pin that is booked and not used yet.
    reserve: bool,
    /// The page that the consumer has.
    current: Option<Current<S::Data>>,
    /// Since when a polled consumer waits.
    blocked_since: Option<Time>,
    /// It waits, polled, for a pin or a buffer, and has a place in a queue for that.
    queued: Option<Blocked>,
    /// The I/O of somebody else for which it waits, polled.
    joined: Option<WaitRef>,
    /// It waits, polled, for any of its reads.
    any: bool,
    tally: Tally,
    cell: Arc<Cell>,
    stats: StreamStats,
}

#[derive(Debug, Clone, Copy)]
struct Flight {
    first: u64,
    /// The consumer's own thread has executed it, or has waited for it.
    waited: bool,
}

struct Current<D> {
    buffer: u32,
    block: BlockNo,
    data: D,
}

/// What the consumer gets, or what it must wait for.
enum Step {
    Page,
    End,
    Blocked(Blocked),
}

/// Why nothing can be handed out now.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Blocked {
    /// A read of this stream.
    Own(usize),
    /// Any read of this stream.
    Any,
    /// Somebody's read.
    Joined(WaitRef),
    /// No pin is granted.
    Pin,
    /// Every buffer is pinned.
    Buffer,
    /// Every handle is in use.
    Handle,
}

/// A page at hand, until the stream is asked for the next one.
#[derive(Debug)]
pub struct StreamPage<'s, D> {
    /// The page, pinned; lock it to look at it.
    pub pin: PinRef<'s>,
    /// The block.
    pub block: BlockNo,
    /// What the source gave with it.
    pub data: &'s mut D,
}

impl<S: BlockSource> fmt::Debug for ReadStream<S> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("ReadStream")
            .field("relation", &self.relation)
            .field("queued", &self.queue.len())
            .field("pinned", &self.pinned)
            .field("in_flight", &self.reads.in_flight())
            .finish_non_exhaustive()
    }
}

impl<S: BlockSource> ReadStream<S> {
    /// A stream over the blocks that `source` names, by the means of `backend`, which every call is
    /// to be given. Policy and options are captured now.
    pub fn new(backend: &Backend, relation: &Relation, source: S, options: StreamOptions) -> Self {
        let shared = Arc::clone(&backend.shared);
        // Frames that are no neighbours take an iovec each.
        let combine = options.combine.clamp(1, backend.session.iovecs() as u32);
        let reads = options.concurrency.clamp(1, 1000);
        // As many as can be in flight once more: where results come in bursts, others are to be in
        // flight while the consumer goes through the pages that are there.
        let blocks = (2 * options.concurrency.min(1000) + 1).saturating_mul(combine);
        let ring = options.strategy.ring_size(blocks, shared.count()).map(Ring::new);
        let ring_max = ring.as_ref().map_or(u32::MAX, Ring::size);
        let ahead = blocks.min(shared.limiter.ahead_max()).min(ring_max);
        let distances = Distances::new(ahead, combine, options.full);
        let capacity = look_ahead::queue_capacity(&distances);
        shared.allow_writes(relation.storage());
        let key = backend.key(relation, options.strategy);
        Self {
            session: backend.session_id(),
            relation: relation.clone(),
            tag: Tag::of(relation, 0),
            policy: backend.policy(),
            options,
            source,
            ended: false,
            unget: None,
            queue: Queue::with_capacity(capacity),
            ready: VecDeque::with_capacity(if options.unordered { capacity } else { 0 }),
            reads: Reads::new(&shared, reads as usize, distances.combine_max()),
            flights: vec![None; reads as usize],
            ring,
            distances,
            pace: Pace::new(options.concurrency),
            pinned: 0,
            duplicates: 0,
            let_go_reads: 0,
            advised: 0,
            next_in_row: None,
            reserve: false,
            current: None,
            blocked_since: None,
            queued: None,
            joined: None,
            any: false,
            tally: Tally::default(),
            cell: shared.stats.cell(key),
            stats: StreamStats { capacity: distances.ahead_max(), ..StreamStats::default() },
            shared,
        }
    }

    /// What the stream has done so far.
    pub fn stats(&self) -> StreamStats {
        self.stats
    }

    /// The relation that it reads.
    pub fn relation(&self) -> &Relation {
        &self.relation
    }

    /// Pages pinned ahead now, reads under way included.
    pub fn pinned(&self) -> u32 {
        self.pinned
    }

    /// The next page; `None` at the end. The one before is let go of first.
    ///
    /// # Errors
    /// The block whose turn it is could not be had, or the session was cancelled. The stream can be
    /// asked again: for what follows, or after a cancel for the same page.
    /// # Panics
    /// If the backend is not the one that the stream was made with.
    pub fn next(
        &mut self,
        backend: &mut Backend,
    ) -> Result<Option<StreamPage<'_, S::Data>>, ReadError> {
        self.let_current_go();
        loop {
            match self.step(backend)? {
                Step::Page => return Ok(self.page()),
                Step::End => return Ok(None),
                Step::Blocked(blocked) => self.wait(backend, blocked)?,
            }
        }
    }

    /// The next page if it is there; otherwise the task is woken when it may be.
    ///
    /// # Errors
    /// As [`ReadStream::next`].
    /// # Panics
    /// As [`ReadStream::next`].
    pub fn poll_next(
        &mut self,
        context: &mut Context<'_>,
        backend: &mut Backend,
    ) -> Poll<Result<Option<StreamPage<'_, S::Data>>, ReadError>> {
        self.let_current_go();
        self.leave_queue();
        loop {
            let step = self.step(backend);
            if !matches!(step, Ok(Step::Blocked(_))) {
                self.count_polled_wait();
            }
            let blocked = match step? {
                Step::Page => return Poll::Ready(Ok(self.page())),
                Step::End => return Poll::Ready(Ok(None)),
                Step::Blocked(blocked) => blocked,
            };
            self.blocked_since.get_or_insert_with(clock::now);
            ready!(self.poll_wait(context, backend, blocked))?;
        }
    }

    /// Gives up the place in a queue that an earlier poll has taken.
    fn leave_queue(&mut self) {
        match self.queued.take() {
            Some(Blocked::Pin) => self.shared.limiter.waiting.remove(self.session),
            Some(Blocked::Buffer) => self.shared.hungry.remove(self.session),
            _ => {}
        }
    }

    /// A polled consumer gets what it waited for, if it had to wait.
    fn count_polled_wait(&mut self) {
        if let Some(since) = self.blocked_since.take() {
            self.tally.waits += 1;
            let nanos = u64::try_from(clock::now().since(since).as_nanos());
            self.tally.wait_nanos += nanos.unwrap_or(u64::MAX);
        }
    }

    /// Gives back every pin that was taken ahead, the page at hand included, and forgets nothing:
    /// what was let go of is read again when its turn comes. For a consumer that has to wait for
    /// something else for long.
    pub fn let_go(&mut self) {
        self.let_current_go();
        self.let_ahead_go();
        let (shared, session) = (&self.shared, self.session);
        if std::mem::take(&mut self.reserve) {
            shared.limiter.unpin(session, 1, &shared.notifiers);
        }
        shared.limiter.give_up(session, &shared.notifiers);
    }

    /// Gives back the pins of every page ahead.
    fn let_ahead_go(&mut self) {
        let (shared, session) = (Arc::clone(&self.shared), self.session);
        for entry in self.queue.iter_mut() {
            match entry.state {
                State::Ready { buffer } | State::Joined { buffer, .. } => {
                    shared.release(buffer, session);
                    entry.state = State::Unread { advised: false };
                }
                // The pin is the read's; given back with it below.
                State::Reading { .. } => entry.state = State::Unread { advised: false },
                State::Unread { .. } | State::Failed(_) | State::Taken => {}
            }
        }
        for (slot, flight) in self.flights.iter_mut().enumerate() {
            if flight.take().is_some() {
                self.let_go_reads += 1;
                let buffers = self.reads.buffers(slot);
                buffers.iter().for_each(|&buffer| shared.release(buffer, session));
            }
        }
        self.ready.clear();
        self.pinned = 0;
        self.forget_duplicates();
    }

    /// Starts anew with the blocks of another source. What was read ahead is let go of; distances
    /// and counts stay.
    pub fn reset(&mut self, source: S) {
        self.let_go();
        self.queue.drain().for_each(drop);
        self.unget = None;
        self.advised = 0;
        self.ended = false;
        self.next_in_row = None;
        self.source = source;
    }

    fn page(&mut self) -> Option<StreamPage<'_, S::Data>> {
        let Current { buffer, block, data } = self.current.as_mut()?;
        Some(StreamPage { pin: PinRef::new(&self.shared, *buffer), block: *block, data })
    }

    fn let_current_go(&mut self) {
        if let Some(current) = self.current.take() {
            self.shared.release(current.buffer, self.session);
        }
    }

    /// Goes on as far as it can without waiting.
    fn step(&mut self, backend: &mut Backend) -> Result<Step, ReadError> {
        let mine = backend.session_id() == self.session && backend.is_of(&self.shared);
        assert!(mine, "a stream was lent another backend than its own");
        loop {
            let refused = self.start_overdue(backend).or_else(|| self.look_ahead(backend));
            let at = if self.options.unordered { self.first_usable() } else { 0 };
            if self.queue.is_empty() {
                return Ok(match refused {
                    Some(blocked) => Step::Blocked(blocked),
                    None if self.is_exhausted() => Step::End,
                    // Every slot has a read that was let go of: the source was not even asked.
                    None => Step::Blocked(Blocked::Any),
                });
            }
            match self.queue.at(at).state {
                State::Ready { .. } => {
                    self.take(at);
                    return Ok(Step::Page);
                }
                State::Failed(_) => {
                    let (State::Failed(error), ..) = self.queue.take(at) else {
                        unreachable!("just looked at");
                    };
                    return Err(*error);
                }
                State::Reading { slot } => match self.reads.operations.take(slot) {
                    Some(outcome) => self.read_ended(backend, slot, outcome),
                    None if self.options.unordered => return Ok(Step::Blocked(Blocked::Any)),
                    None => return Ok(Step::Blocked(Blocked::Own(slot))),
                },
                State::Joined { io, .. } => {
                    if !backend.session.is_complete(io) {
                        if self.options.unordered && self.flights.iter().any(Option::is_some) {
                            return Ok(Step::Blocked(Blocked::Any));
                        }
                        return Ok(Step::Blocked(Blocked::Joined(io)));
                    }
                    self.join_ended(at);
                }
                State::Unread { .. } => {
                    if let Some(blocked) = refused.or_else(|| self.start_front(backend, at)) {
                        return Ok(Step::Blocked(blocked));
                    }
                }
                State::Taken => unreachable!("the front of the queue was taken"),
            }
        }
    }

    /// The entry of an unordered stream that is nearest to being handed out.
    fn first_usable(&mut self) -> usize {
        let ready = self.ready.pop_front().or_else(|| {
            let done = self.reads.operations.first_done()?;
            Some(self.flights[done]?.first)
        });
        ready.map_or(0, |sequence| (sequence - self.queue.sequence(0)) as usize)
    }

    fn forget_duplicates(&mut self) {
        if std::mem::take(&mut self.duplicates) > 0 {
            self.queue.iter_mut().for_each(|entry| entry.duplicate = false);
        }
    }

    /// An entry's pin is no longer one of those taken ahead.
    fn unpinned(&mut self, at: usize) {
        self.pinned -= 1;
        if std::mem::take(&mut self.queue.at_mut(at).duplicate) {
            self.duplicates -= 1;
        }
    }

    /// Makes a ready entry the page at hand.
    fn take(&mut self, at: usize) {
        self.unpinned(at);
        let (State::Ready { buffer }, block, Some(data)) = self.queue.take(at) else {
            unreachable!("an entry taken that was not ready");
        };
        self.current = Some(Current { buffer, block, data });
        self.stats.pages += 1;
        let pinned = self.pinned + 1;
        self.stats.distance_sum += u64::from(pinned);
        self.stats.distance_max = self.stats.distance_max.max(pinned);
    }

    /// A read of this stream has ended.
    fn read_ended(&mut self, backend: &mut Backend, slot: usize, outcome: Outcome) {
        let (shared, session) = (Arc::clone(&self.shared), self.session);
        let Some(flight) = self.flights[slot].take() else {
            // Let go of while it was under way: its pins are given back already.
            self.let_go_reads -= 1;
            self.reads.finish(slot, outcome, &mut self.tally, |_, _, _| {});
            return;
        };
        let waited = flight.waited || std::mem::take(&mut self.any);
        let (queue, relation) = (&mut self.queue, &self.relation);
        let (ready, unordered) = (&mut self.ready, self.options.unordered);
        let pinned = &mut self.pinned;
        let mut sequence = flight.first;
        self.reads.finish(slot, outcome, &mut self.tally, |block, buffer, end| {
            let entry = queue.by_sequence(sequence);
            let state = match &end {
                BlockEnd::Valid => State::Ready { buffer },
                BlockEnd::Warning { zeroed, verdict } => {
                    let path = relation.path(segment_of(block).0);
                    let (zeroed, verdict) = (*zeroed, *verdict);
                    backend.warn(ReadWarning { path, block, zeroed, verdict });
                    State::Ready { buffer }
                }
                BlockEnd::Unread => State::Unread { advised: false },
                BlockEnd::Failed { alone: false, .. } => {
                    entry.alone = true;
                    State::Unread { advised: false }
                }
                BlockEnd::Bad(_) | BlockEnd::Failed { .. } | BlockEnd::Short { .. } => {
                    match error_of(relation, block, &end) {
                        Some(error) => State::Failed(Box::new(error)),
                        None => State::Unread { advised: false },
                    }
                }
            };
            if matches!(state, State::Ready { .. }) {
                if unordered {
                    ready.push_back(sequence);
                }
            } else {
                shared.release(buffer, session);
                *pinned -= 1;
            }
            entry.state = state;
            sequence += 1;
        });
        self.pace.read_ended();
        self.distances.read_ended(waited);
        self.stats.waits += u64::from(waited);
    }

    /// Somebody's read that brings an entry's page has ended.
    fn join_ended(&mut self, at: usize) {
        let State::Joined { buffer, .. } = self.queue.at(at).state else { return };
        if self.shared.word(buffer).load().has(flag::VALID) {
            self.tally.hits += 1;
            self.tally.joins += 1;
            self.queue.at_mut(at).state = State::Ready { buffer };
            if self.options.unordered {
                self.ready.push_back(self.queue.sequence(at));
            }
        } else {
            // It failed for them; that says nothing about us.
            self.shared.release(buffer, self.session);
            self.unpinned(at);
            self.queue.at_mut(at).state = State::Unread { advised: false };
        }
    }

    /// Sleeps.
    fn wait(&mut self, backend: &mut Backend, blocked: Blocked) -> Result<(), ReadError> {
        backend.swap_tally(&mut self.tally);
        let waited = self.wait_uncounted(backend, blocked);
        backend.swap_tally(&mut self.tally);
        waited
    }

    fn wait_uncounted(&mut self, backend: &mut Backend, blocked: Blocked) -> Result<(), ReadError> {
        match blocked {
            Blocked::Own(slot) => {
                let again = match &mut self.flights[slot] {
                    Some(flight) => std::mem::replace(&mut flight.waited, true),
                    None => true,
                };
                let group = self.pace.group() as usize;
                let in_flight = self.reads.in_flight();
                let operations = &mut self.reads.operations;
                if !again && group > 1 && group < in_flight {
                    return Ok(backend
                        .timed(|backend| (true, backend.session.wait_some(operations, group)))?);
                }
                let outcome =
                    backend.timed(|backend| (true, backend.session.wait(operations, slot)))?;
                // Into the tally that counts for this stream.
                backend.swap_tally(&mut self.tally);
                self.read_ended(backend, slot, outcome);
                backend.swap_tally(&mut self.tally);
            }
            Blocked::Any => {
                let operations = &mut self.reads.operations;
                let (slot, outcome) =
                    backend.timed(|backend| (true, backend.session.wait_any(operations)))?;
                self.any = true;
                backend.swap_tally(&mut self.tally);
                self.read_ended(backend, slot, outcome);
                backend.swap_tally(&mut self.tally);
            }
            Blocked::Joined(io) => {
                self.join_waited();
                backend.join(io)?;
            }
            Blocked::Pin => {
                backend.book()?;
                self.reserve = true;
            }
            Blocked::Buffer => backend.wait_for_buffer()?,
            Blocked::Handle => backend.wait_for_handle(Class::Foreground)?,
        }
        Ok(())
    }

    /// Somebody's read was not fast enough: look further ahead, as after one of our own.
    fn join_waited(&mut self) {
        self.stats.waits += 1;
        self.distances.read_ended(true);
    }

    fn poll_wait(
        &mut self,
        context: &mut Context<'_>,
        backend: &mut Backend,
        blocked: Blocked,
    ) -> Poll<Result<(), ReadError>> {
        let operations = &mut self.reads.operations;
        match blocked {
            Blocked::Own(slot) => {
                if let Some(flight) = &mut self.flights[slot] {
                    flight.waited = true;
                }
                let outcome = ready!(backend.session.poll(context, operations, slot))?;
                self.read_ended(backend, slot, outcome);
                Poll::Ready(Ok(()))
            }
            Blocked::Any => {
                self.any = true;
                let (slot, outcome) = ready!(backend.session.poll_any(context, operations))?;
                self.read_ended(backend, slot, outcome);
                Poll::Ready(Ok(()))
            }
            Blocked::Joined(io) => {
                if self.joined.replace(io) != Some(io) {
                    self.join_waited();
                }
                backend.session.poll_join(context, io).map_err(ReadError::from)
            }
            Blocked::Pin => {
                let polled = backend.poll_book(context);
                self.queued = polled.is_pending().then_some(blocked);
                ready!(polled)?;
                self.reserve = true;
                Poll::Ready(Ok(()))
            }
            Blocked::Buffer => {
                let polled = backend.poll_for_buffer(context);
                self.queued = polled.is_pending().then_some(blocked);
                polled
            }
            Blocked::Handle => {
                let acquired = backend.session.poll_acquire(context, Class::Foreground);
                acquired.map(|acquired| acquired.map(drop).map_err(|Cancelled| Cancelled.into()))
            }
        }
    }

    fn show_counts(&mut self) {
        self.cell.absorb(&mut self.tally);
    }
}

impl<S: BlockSource> Drop for ReadStream<S> {
    fn drop(&mut self) {
        self.let_go();
        self.show_counts();
        self.leave_queue();
    }
}
