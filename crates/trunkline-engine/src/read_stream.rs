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
mod ends;
mod look_ahead;
mod options;
mod pace;
mod queue;
mod source;
mod stats;
mod wait;

pub use options::StreamOptions;
pub use source::{BlockList, BlockRange, BlockSource, ParallelRange};
pub use stats::StreamStats;

use crate::pool::read::Reads;
use crate::pool::{Backend, Cell, PinRef, Policy, ReadError, Ring, Shared, Tag, Tally};
use crate::storage::Relation;
use distance::Distances;
use pace::Pace;
use queue::{Queue, State};
use std::collections::VecDeque;
use std::fmt;
use std::task::{Context, Poll, ready};
use trunkline_aio::WaitRef;
use trunkline_aio::clock::{self, Time};
use trunkline_aio::sync::Arc;
use trunkline_format::BlockNo;
use wait::Blocked;

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
