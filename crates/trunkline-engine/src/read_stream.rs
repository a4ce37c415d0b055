//! Read streams: read a sequence of blocks ahead of their consumer, and return pinned pages in
//! order.
//!
//! ```text
//!   source ──▶ queue: pending │ reading, joined, ready ──▶ next(): one page at a time
//!                 look-ahead ─┘                           └▶ wait, only if the page isn't ready
//! ```
//!
//! This is PostgreSQL's `read_stream.c`. Each time the consumer asks for a page, the stream first
//! looks ahead: it gets block numbers from its source, combines consecutive blocks into reads, and
//! starts these reads, as far ahead as its distances allow (`distance`). Then it returns the next
//! page, waiting for it if necessary.
//!
//! # An example
//!
//! For example, consider a table of 1000 blocks, none of which are in the pool, and a stream that
//! may have 16 reads of 16 blocks in flight. `next` reads block 0 in this thread and waits for it.
//! Because the consumer had to wait, both distances double: the next read is of blocks 1 and 2,
//! then come reads of 4, 8 and 16 blocks, and from then on there are as many concurrent reads of 16
//! blocks as it takes to hide the device's latency. If the consumer had stopped after the first
//! page, we would have read only one block.
//!
//! # Rules
//!
//! - If another session is already reading a page, the stream joins that read by keeping a
//!   reference to it, and continues to look ahead (`docs/postgres-lessons.md#lesson-15`). If the
//!   other session's read fails, the stream reads the page itself.
//! - If a segment isn't open, a worker opens it for a session that must not block. Until it is
//!   open, the stream returns the pages that it has.
//! - If a read is short, the stream continues it where it ended. If a read fails, the stream
//!   retries it block by block to find the bad block. The error names that block, and is returned
//!   only after all the pages that precede it. The stream can continue after an error.
//! - The pin limiter limits how far the stream can look ahead, but it always allows one page to be
//!   pinned, so the stream always makes progress.
//! - The backend is passed to each call, so several streams can share one session, and different
//!   tasks can poll them. Dropping a stream releases all of its pins, even with reads in flight. If
//!   the stream was woken for a free handle that it doesn't need any more, another session is woken
//!   instead.
//! - The source may have to wait too, for example because it reads pages through a stream of its
//!   own. The stream then returns the pages it has, while both streams look ahead (`source`).
//! - [`ReadStream::release_ahead`] releases all the pages that were pinned ahead. A consumer should
//!   call it before it waits for something else. The stream looks up the released blocks again
//!   later, when the consumer needs them.

mod blocked;
mod distance;
mod group;
mod load_upcoming;
mod look_ahead;
mod options;
mod queue;
mod results;
mod source;
mod statement;
mod stats;
mod upcoming;
mod wait;

pub use options::StreamOptions;
pub use source::{BlockList, BlockRange, BlockSource, Expected, ParallelRange, SourceWait};
pub use statement::{RegisteredStream, RegisteredStreamGuard, ReleaseAhead, StatementStreams};
pub use stats::StreamStats;
pub use upcoming::Upcoming;

use crate::pool::{
    Backend, BufferManager, BufferTag, IoCounter, PageReads, PinRef, Policy, ReadError, RingBuffer,
    Tally,
};
use crate::settings::Settings;
use crate::storage::Relation;
use crate::waiting::{Waiting, slept};
use blocked::{Blocked, ReadInFlight, Tries};
use distance::Distances;
use group::GroupSize;
use queue::{EntryState, Queue};
use source::Supply;
use std::collections::VecDeque;
use std::fmt;
use std::task::{Context, Poll, ready};
use trunkline_aio::clock::{self, Time};
use trunkline_aio::facade::Arc;
use trunkline_aio::{PolledWait, WaitRef};
use trunkline_format::BlockNo;
use upcoming::UpcomingBuffers;

/// A stream of pages. It pins and reads blocks ahead of its consumer.
pub struct ReadStream<S: BlockSource> {
    manager: Arc<BufferManager>,
    session: u32,
    relation: Relation,
    tag: BufferTag,
    policy: Policy,
    options: StreamOptions,
    source: S,
    supply: Supply,
    tries: Tries,
    /// A block that the source has returned but that we could not yet add to the queue.
    unget: Option<(BlockNo, S::Data)>,
    /// How sure it is that the consumer takes that block.
    unget_expected: Expected,
    /// The last pending block is expected.
    pending_expected: bool,
    queue: Queue<S::Data>,
    /// Sequence numbers of ready entries, for an unordered stream.
    ready: VecDeque<u64>,
    reads: PageReads,
    /// The read in flight in each slot. This is `None` if the slot is idle, and also if we have
    /// released the read's pages while it is still in flight.
    in_flight: Vec<Option<ReadInFlight>>,
    ring: Option<RingBuffer>,
    distances: Distances,
    group: GroupSize,
    /// Entries with a pin.
    pinned: u32,
    /// How many of the pins in `pinned` are on a page that another entry of this stream has also
    /// pinned.
    duplicates: u32,
    /// Reads in flight after their pages were released. They still occupy slots.
    released_reads: usize,
    /// Entries for which `posix_fadvise` was issued, and which are not read yet.
    advised: u32,
    /// The block after the last one that was started.
    next_sequential: Option<BlockNo>,
    /// A pin is reserved but not used yet.
    reserved: bool,
    upcoming: UpcomingBuffers,
    /// The page that the consumer is using.
    current: Option<Current<S::Data>>,
    /// When a polled consumer began to wait.
    blocked_since: Option<Time>,
    /// What a polled consumer is waiting for, if the session is registered as waiting for a pin or
    /// a victim. We must remove the registration before the stream does anything else, because as
    /// long as it exists, other sessions may not be able to look ahead.
    registered: Option<Blocked>,
    /// The wait of a polled consumer. It is created by the first poll.
    wait: Option<PolledWait>,
    /// The last I/O of another session that the consumer has waited for. We remember it so that we
    /// don't count the same wait twice.
    joined: Option<WaitRef>,
    /// The consumer has waited for any read.
    waited_for_any: bool,
    counter: IoCounter,
    stats: StreamStats,
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

/// A page. It stays pinned until the consumer asks the stream for the next page.
#[derive(Debug)]
pub struct StreamPage<'s, D> {
    /// The page, pinned. Lock it to read it.
    pub pin: PinRef<'s>,
    /// The block.
    pub block: BlockNo,
    /// What the source returned with the block.
    pub data: &'s mut D,
}

impl<S: BlockSource> fmt::Debug for ReadStream<S> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("ReadStream")
            .field("relation", &self.relation)
            .field("queued", &self.queue.len())
            .field("pinned", &self.pinned)
            .field("in_flight", &self.reads.window().in_flight())
            .finish_non_exhaustive()
    }
}

impl<S: BlockSource> ReadStream<S> {
    /// Creates a stream over the blocks that `source` returns. All later calls must pass the same
    /// `backend`. The damaged-page policy and the options can't be changed afterwards.
    pub fn new(backend: &Backend, relation: &Relation, source: S, options: StreamOptions) -> Self {
        let manager = Arc::clone(backend.manager());
        // Each run of adjacent frames needs one iovec. In the worst case, no two frames are
        // adjacent.
        let combine = options.combine.clamp(1, backend.iovecs() as u32);
        let reads = Settings::stream_slots(options.concurrency);
        // Allow for about twice as many pages as can be in flight. If results arrive in bursts, the
        // next reads should already be in flight while the consumer is still processing the last burst.
        let blocks = (2 * options.concurrency.min(1000) + 1).saturating_mul(combine);
        let ring = options.strategy.ring_size(blocks, backend.pool_buffers()).map(RingBuffer::new);
        let ring_max = ring.as_ref().map_or(u32::MAX, RingBuffer::size);
        let ahead = blocks.min(manager.limits().ahead_max()).min(ring_max);
        let distances = Distances::new(ahead, combine, options.full);
        let capacity = distances.queue_capacity();
        manager.clusters().allow_writes(relation.storage());
        let mut counter = IoCounter::new(backend.statistics());
        counter.count_as(backend.key(relation, options.strategy));
        Self {
            session: backend.session_id(),
            relation: relation.clone(),
            tag: BufferTag::of(relation, 0),
            policy: backend.policy(),
            options,
            source,
            supply: Supply::Blocks,
            tries: Tries::No,
            unget: None,
            unget_expected: Expected::Unknown,
            pending_expected: false,
            queue: Queue::with_capacity(capacity),
            ready: VecDeque::with_capacity(if options.unordered { capacity } else { 0 }),
            reads: PageReads::new(&manager, reads as usize, distances.combine_max()),
            in_flight: vec![None; reads as usize],
            ring,
            distances,
            group: GroupSize::new(options.concurrency),
            pinned: 0,
            duplicates: 0,
            released_reads: 0,
            advised: 0,
            next_sequential: None,
            reserved: false,
            upcoming: UpcomingBuffers::default(),
            current: None,
            blocked_since: None,
            registered: None,
            wait: None,
            joined: None,
            waited_for_any: false,
            counter,
            stats: StreamStats { capacity: distances.ahead_max(), ..StreamStats::default() },
            manager,
        }
    }

    /// What the stream has done so far.
    pub fn stats(&self) -> StreamStats {
        self.stats
    }

    /// Hits, reads and times of this stream alone (PostgreSQL's `BufferUsage` of a plan node).
    /// These are the same counts that the stream adds to the pool's statistics, so they can be used
    /// while other streams share the session. A hit is counted without reading the clock: all times
    /// come from waits and from reads that have completed.
    pub fn buffer_usage(&self) -> Tally {
        self.counter.total()
    }

    /// The source, for example to get the statistics of a stream that it reads from.
    pub fn source(&self) -> &S {
        &self.source
    }

    /// The relation that is read.
    pub fn relation(&self) -> &Relation {
        &self.relation
    }

    /// The source, for a consumer that shares work with it.
    pub(crate) fn source_mut(&mut self) -> &mut S {
        &mut self.source
    }

    /// The number of pages that the stream would pin ahead now. It is 1 as long as the consumer
    /// hasn't had to wait.
    pub(crate) fn distance(&self) -> u32 {
        self.distances.ahead()
    }

    /// Asks the source again, although it has returned its last block. Call this after adding blocks
    /// to a source that ends whenever it has none.
    pub(crate) fn go_on(&mut self) {
        if matches!(self.supply, Supply::Ended) {
            self.supply = Supply::Blocks;
        }
    }

    /// Number of pages pinned ahead, including those of reads in flight.
    pub fn pinned(&self) -> u32 {
        self.pinned
    }

    /// Returns the next page, or `None` at the end of the stream. Releases the previous page.
    ///
    /// # Errors
    /// The block could not be read, or the session was cancelled. The caller can call this again.
    /// After a failed block, it returns the page after that block, and after a cancellation, it
    /// returns the page that it was waiting for.
    /// # Panics
    /// If `backend` is not the backend the stream was created with.
    pub fn next(
        &mut self,
        backend: &mut Backend,
    ) -> Result<Option<StreamPage<'_, S::Data>>, ReadError> {
        self.give_up_wait();
        if slept(self.advance(&mut Waiting::Sleep, backend))? { Ok(self.page()) } else { Ok(None) }
    }

    /// Returns the next page if it's available. Otherwise returns `Pending`, and the task is woken
    /// when the page may have become available. Each stream remembers the waker of its last poll,
    /// so the streams of one session can be polled by different tasks.
    ///
    /// # Errors
    /// As for [`ReadStream::next`].
    /// # Panics
    /// As for [`ReadStream::next`].
    pub fn poll_next(
        &mut self,
        context: &mut Context<'_>,
        backend: &mut Backend,
    ) -> Poll<Result<Option<StreamPage<'_, S::Data>>, ReadError>> {
        let mut wait = self.wait.take().unwrap_or_else(|| backend.polled_wait());
        let advanced = self.advance(&mut Waiting::Wake(context, &mut wait), backend);
        self.wait = Some(wait);
        let more = ready!(advanced)?;
        Poll::Ready(Ok(if more { self.page() } else { None }))
    }

    /// Like [`ReadStream::next`], but for [`BlockSource::fetch`] of a source that reads from this
    /// stream. If there is no page yet and `wait` says not to wait, this returns `Pending`. In this
    /// case, the read of the page is in flight afterwards if possible, and the stream will look
    /// further ahead, because its consumer could have used the page.
    ///
    /// # Errors
    /// As for [`ReadStream::next`].
    /// # Panics
    /// As for [`ReadStream::next`].
    pub fn next_from_source(
        &mut self,
        backend: &mut Backend,
        wait: &mut SourceWait<'_, '_>,
    ) -> Poll<Result<Option<StreamPage<'_, S::Data>>, ReadError>> {
        let more = match wait.waiting() {
            Some(waiting) => ready!(self.advance(waiting, backend))?,
            None => ready!(self.try_advance(backend))?,
        };
        Poll::Ready(Ok(if more { self.page() } else { None }))
    }

    /// [`ReadStream::advance`] without waiting.
    fn try_advance(&mut self, backend: &mut Backend) -> Poll<Result<bool, ReadError>> {
        self.give_up_wait();
        self.release_current();
        let advised = !self.queue.is_empty()
            && matches!(self.queue.at(0).state, EntryState::Unread { advised: true });
        self.tries = if advised { Tries::Reads } else { Tries::Advises };
        let step = self.step(backend);
        self.tries = Tries::No;
        match step? {
            Step::Page => Poll::Ready(Ok(true)),
            Step::End => Poll::Ready(Ok(false)),
            Step::Blocked(blocked) => {
                if let Blocked::Own(slot) = blocked
                    && let Some(read) = &mut self.in_flight[slot]
                {
                    read.waited = true;
                }
                Poll::Pending
            }
        }
    }

    /// Makes the next page the current one. False at the end.
    fn advance(
        &mut self,
        waiting: &mut Waiting<'_, '_>,
        backend: &mut Backend,
    ) -> Poll<Result<bool, ReadError>> {
        self.release_current();
        self.unregister();
        loop {
            let step = self.step(backend);
            // The source shares our place in the queue.
            let in_queue =
                |blocked| matches!(blocked, Blocked::Handle | Blocked::Buffer | Blocked::Source);
            if !matches!(step, Ok(Step::Blocked(blocked)) if in_queue(blocked)) {
                waiting.leave_queue();
            }
            // The source's own streams count how long they wait.
            let waits = matches!(step, Ok(Step::Blocked(blocked)) if blocked != Blocked::Source);
            if !waits {
                self.count_polled_wait();
            }
            let blocked = match step? {
                Step::Page => return Poll::Ready(Ok(true)),
                Step::End => return Poll::Ready(Ok(false)),
                Step::Blocked(blocked) => blocked,
            };
            if waits && !waiting.is_sleep() {
                self.blocked_since.get_or_insert_with(clock::now);
            }
            ready!(self.wait(waiting, backend, blocked))?;
        }
    }

    /// Releases the pins on the current page and on all pages that were pinned ahead, and those of
    /// the source. A consumer that is about to wait for something else should call this, because
    /// other sessions may need the buffers. No blocks are skipped: the stream reads the released
    /// blocks again when the consumer needs them, and it usually finds them still in the pool.
    pub fn release_ahead(&mut self) {
        self.give_up_wait();
        self.release_current();
        self.release_queue();
        self.source.release_ahead();
        self.reads.forget_opened();
        let limits = self.manager.limits();
        if std::mem::take(&mut self.reserved) {
            limits.give_back(self.session, 1);
        }
        limits.return_permits(self.session);
    }

    /// Returns the page that the last call returned, if it hasn't been released.
    pub(crate) fn current(&mut self) -> Option<StreamPage<'_, S::Data>> {
        self.page()
    }

    /// Releases the page that the last call returned, but not those that were pinned ahead.
    pub(crate) fn release_page(&mut self) {
        self.release_current();
    }

    /// [`ReadStream::release_ahead`] for a consumer that isn't done with the current page. The next
    /// call returns it again.
    pub(crate) fn release_all(&mut self) {
        if let Some(Current { buffer, block, data }) = self.current.take() {
            self.manager.release(buffer, self.session);
            self.queue.put_back(block, data);
        }
        self.release_ahead();
    }

    /// Releases the pins of all entries.
    fn release_queue(&mut self) {
        let (manager, session) = (&self.manager, self.session);
        for entry in self.queue.iter_mut() {
            match entry.state {
                EntryState::Ready { buffer } | EntryState::Joined { buffer, .. } => {
                    manager.release(buffer, session);
                    entry.state = EntryState::Unread { advised: false };
                }
                // The pins of a read are released with the read, below.
                EntryState::Reading { .. } => entry.state = EntryState::Unread { advised: false },
                EntryState::Unread { .. } | EntryState::Failed(_) | EntryState::Taken => {}
            }
        }
        for (slot, read) in self.in_flight.iter_mut().enumerate() {
            if read.take().is_some() {
                self.released_reads += 1;
                let buffers = self.reads.buffers(slot);
                buffers.iter().for_each(|&buffer| manager.release(buffer, session));
            }
        }
        self.ready.clear();
        self.pinned = 0;
        self.forget_duplicates();
    }

    /// Starts again with another source. Pages that were read ahead are released, but the distances
    /// and counts are kept.
    pub fn reset(&mut self, source: S) {
        self.restart();
        self.source = source;
    }

    /// [`ReadStream::reset`] for a source that starts again by itself.
    pub(crate) fn restart(&mut self) {
        self.release_ahead();
        self.queue.drain().for_each(drop);
        self.unget = None;
        self.advised = 0;
        self.supply = Supply::Blocks;
        self.next_sequential = None;
    }

    fn page(&mut self) -> Option<StreamPage<'_, S::Data>> {
        let Current { buffer, block, data } = self.current.as_mut()?;
        Some(StreamPage { pin: PinRef::new(self.manager.frames(), *buffer), block: *block, data })
    }

    fn release_current(&mut self) {
        if let Some(current) = self.current.take() {
            self.manager.release(current.buffer, self.session);
        }
    }

    /// Advances the stream without waiting. First looks ahead, then examines the entry that the
    /// consumer needs next, and repeats both steps until there is a page, an error, the end of the
    /// stream, or something to wait for.
    fn step(&mut self, backend: &mut Backend) -> Result<Step, ReadError> {
        let mine = backend.session_id() == self.session && backend.is_of(&self.manager);
        assert!(mine, "a stream was given a backend that it was not made with");
        loop {
            // Look ahead first, even if the next page is ready, so that the device is busy while
            // the consumer processes that page.
            let refused = self.start_overdue(backend).or_else(|| self.look_ahead(backend));
            let at = if self.options.unordered { self.first_usable() } else { 0 };
            if self.queue.is_empty() {
                if self.unget.is_none() && matches!(self.supply, Supply::Failed(_)) {
                    let failed = std::mem::replace(&mut self.supply, Supply::Waits);
                    let Supply::Failed(error) = failed else { unreachable!("just found failed") };
                    return Err(*error);
                }
                return Ok(match refused {
                    Some(blocked) => Step::Blocked(blocked),
                    None if self.is_exhausted() => Step::End,
                    None if self.unget.is_none() && matches!(self.supply, Supply::Waits) => {
                        Step::Blocked(Blocked::Source)
                    }
                    // Every slot is occupied by a read whose pages have been released, so we
                    // haven't even asked the source for a block.
                    None => Step::Blocked(Blocked::Any),
                });
            }
            match self.queue.at(at).state {
                EntryState::Ready { .. } => {
                    self.take(at);
                    return Ok(Step::Page);
                }
                EntryState::Failed(_) => {
                    let (EntryState::Failed(error), ..) = self.queue.take(at) else {
                        unreachable!("the entry was just found to be failed");
                    };
                    return Err(*error);
                }
                EntryState::Reading { slot } => match self.reads.window_mut().take(slot) {
                    Some(outcome) => self.read_ended(backend, slot, outcome),
                    None if self.options.unordered => return Ok(Step::Blocked(Blocked::Any)),
                    None => return Ok(Step::Blocked(Blocked::Own(slot))),
                },
                EntryState::Joined { io, .. } => {
                    if !backend.session().is_complete(io) {
                        if self.options.unordered && self.in_flight.iter().any(Option::is_some) {
                            return Ok(Step::Blocked(Blocked::Any));
                        }
                        return Ok(Step::Blocked(Blocked::Joined(io)));
                    }
                    self.join_ended(at);
                }
                EntryState::Unread { .. } => {
                    if let Some(blocked) = refused.or_else(|| self.start_front(backend, at)) {
                        return Ok(Step::Blocked(blocked));
                    }
                }
                EntryState::Taken => unreachable!("the front of the queue was taken"),
            }
        }
    }
}

impl<S: BlockSource + Send> ReleaseAhead for ReadStream<S>
where
    S::Data: Send,
{
    fn release_ahead(&mut self) {
        ReadStream::release_ahead(self);
        // Nothing else would wake a task whose last poll has returned `Pending`, because the stream
        // isn't registered for anything any more.
        if let Some(wait) = &self.wait {
            wait.wake_tasks();
        }
    }
}

impl<S: BlockSource> Drop for ReadStream<S> {
    fn drop(&mut self) {
        self.release_ahead();
        self.counter.publish();
    }
}
