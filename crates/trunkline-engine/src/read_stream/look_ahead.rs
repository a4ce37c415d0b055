//! Looking ahead: which blocks to gather, when to start reading them, and when to stop.
//!
//! ```text
//!   more is wanted?  reads in flight < concurrency, and
//!                    pinned + gathered < look-ahead distance
//!                    or nothing pinned, and what is gathered < combine distance
//!   start when       a whole read is gathered, or the next block does not follow,
//!                    or nothing is pinned and no more is wanted
//! ```
//! Under `sync` a read executes in this thread as soon as it starts. So there the stream only tells
//! the system what it will want, and reads when the page's turn has come; of blocks in a row the
//! system finds out by itself, as PostgreSQL leaves it to.

use super::distance::Distances;
use super::queue::State;
use super::{BlockSource, Blocked, Flight, ReadStream};
use crate::pool::read::{Start, Want};
use crate::pool::{Backend, ReadError, USAGE_MAX, flag};
use trunkline_aio::{Class, MethodKind, Session, WaitRef};
use trunkline_format::{BLOCK_SIZE, BlockNo};

/// How far the method in force lets a stream look ahead.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Way {
    /// Reads in flight.
    Reads,
    /// Advice to the system, reads when they are needed.
    Advice,
    /// One read at a time, when it is needed.
    None,
}

/// Entries of the queue at most: what may be pinned and gathered, and as many again for the holes
/// that an unordered stream leaves, and for blocks that were let go of.
pub(super) fn queue_capacity(distances: &Distances) -> usize {
    2 * (distances.ahead_max() + distances.combine_max()) as usize
}

impl<S: BlockSource> ReadStream<S> {
    /// Starts the consumer's next block if it has been started before and has to be again, ahead of
    /// everything else, which would take its slot, its pin or its handle. Why that cannot be.
    pub(super) fn start_overdue(&mut self, backend: &mut Backend) -> Option<Blocked> {
        self.collect_let_go();
        let started = self.queue.len() > self.queue.pending() && self.ready.is_empty();
        if !started || !matches!(self.queue.at(0).state, State::Unread { advised: false }) {
            return None;
        }
        self.start_front(backend, 0)
    }

    /// Looks as far ahead as is wanted and possible. If that leaves nothing that the consumer could
    /// wait for: why.
    pub(super) fn look_ahead(&mut self, backend: &mut Backend) -> Option<Blocked> {
        let way = self.way(&backend.session);
        if self.idle() < self.pace.group() as usize {
            self.collect_done(backend);
        }
        if self.is_gathering_idle(way) {
            return None;
        }
        let mut batch = backend.session.batch();
        let refused = self.gather(&mut batch, way);
        drop(batch);
        if self.tally.reads > 0 || self.tally.hits >= 256 {
            self.show_counts();
        }
        // What is refused matters only if there is nothing else to wait for.
        refused.filter(|_| self.queue.len() == self.queue.pending())
    }

    /// Takes note of every read that has ended, so that others can be in flight while the consumer
    /// goes through what these have brought.
    fn collect_done(&mut self, backend: &mut Backend) {
        while let Some(slot) = self.reads.operations.first_done()
            && let Some(outcome) = self.reads.operations.take(slot)
        {
            self.read_ended(backend, slot, outcome);
        }
    }

    /// Whether to let more reads end before others go out with them: there is something to hand out
    /// or to wait for meanwhile.
    fn is_gathering_idle(&self, way: Way) -> bool {
        let busy = self.pinned > 0 && self.reads.in_flight() > 0;
        way == Way::Reads && busy && self.idle() < self.pace.group() as usize
    }

    /// Reads that could be started now.
    fn idle(&self) -> usize {
        self.flights.len() - self.reads.in_flight()
    }

    fn way(&self, session: &Session) -> Way {
        if self.options.concurrency == 0 {
            return Way::None;
        }
        if session.method() != MethodKind::Sync {
            return Way::Reads;
        }
        let advice = !self.options.sequential && !self.relation.storage().is_direct();
        if advice { Way::Advice } else { Way::None }
    }

    fn gather(&mut self, session: &mut Session, way: Way) -> Option<Blocked> {
        loop {
            if self.queue.pending() >= self.distances.combine_max() as usize {
                if let Some(blocked) = self.start_pending(session, way) {
                    return Some(blocked);
                }
                continue;
            }
            if !self.wants_more(way) {
                break;
            }
            let Some((block, data)) = self.next_block() else { break };
            if self.queue.pending() > 0 && self.queue.continuation() != Some(block) {
                self.unget = Some((block, data));
                while self.queue.pending() > 0 {
                    if !self.may_start(way) {
                        return None;
                    }
                    if let Some(blocked) = self.start_pending(session, way) {
                        return Some(blocked);
                    }
                }
                continue;
            }
            self.queue.push(block, data);
        }
        let pending = self.queue.pending();
        let whole = pending >= self.distances.combine() as usize;
        let alone = self.pinned + self.advised == 0;
        if pending > 0 && self.may_start(way) && (self.ended || whole || alone) {
            return self.start_pending(session, way);
        }
        None
    }

    fn next_block(&mut self) -> Option<(BlockNo, S::Data)> {
        if let Some(unget) = self.unget.take() {
            return Some(unget);
        }
        if self.ended {
            return None;
        }
        let next = self.source.next_block();
        self.ended = next.is_none();
        next
    }

    /// Whether the source has no more blocks.
    pub(super) fn is_exhausted(&self) -> bool {
        self.ended && self.unget.is_none()
    }

    /// Whether another block is to be taken from the source.
    fn wants_more(&self, way: Way) -> bool {
        if self.is_exhausted() || !self.may_start(way) {
            return false;
        }
        // Pages that another entry has brought cost nothing more to have: blocks that come again and
        // again must not keep new ones from being read.
        let pending = self.queue.pending() as u32;
        let ahead = self.pinned - self.duplicates + self.advised;
        let first = ahead == 0 && pending < self.distances.combine();
        first || (way != Way::None && ahead + pending < self.distances.ahead())
    }

    /// Whether the consumer's wish for reads in flight leaves room for one more, and the queue for
    /// more blocks: an unordered one may have holes.
    fn may_start(&self, way: Way) -> bool {
        let room = self.queue.len() < queue_capacity(&self.distances);
        match way {
            Way::Reads => room && self.reads.has_idle(),
            Way::Advice => room && self.advised < self.distances.ahead_max(),
            Way::None => room && self.pinned == 0,
        }
    }

    /// Starts what is gathered, or a part of it.
    fn start_pending(&mut self, session: &mut Session, way: Way) -> Option<Blocked> {
        let at = self.queue.first_pending();
        if way == Way::Advice && self.advise(session, at) {
            return None;
        }
        let class = match self.pinned {
            0 if at == 0 => Class::Foreground,
            _ => self.options.class,
        };
        // With nothing else to come a hop to another thread hides nothing.
        let pending = self.queue.pending() as u32;
        let lonely = self.pinned == 0 && self.distances.ahead() <= pending;
        let needed_now = at == 0 && (way == Way::None || lonely);
        self.start(session, at, pending, class, needed_now)
    }

    /// Starts the entry that the consumer is waiting for, and those in a row with it: they were let
    /// go of, are to be read again, or were only advised.
    pub(super) fn start_front(&mut self, backend: &mut Backend, at: usize) -> Option<Blocked> {
        let row = self.queue.row_from(at, self.distances.combine_max() as usize);
        let way = self.way(&backend.session);
        let needed_now = way != Way::Reads || self.pinned == 0;
        self.start(&mut backend.session, at, row as u32, Class::Foreground, needed_now)
    }

    /// Starts up to `count` entries in a row.
    fn start(
        &mut self,
        session: &mut Session,
        at: usize,
        count: u32,
        class: Class,
        needed_now: bool,
    ) -> Option<Blocked> {
        if !self.reads.has_idle() {
            return Some(Blocked::Any);
        }
        let booked = match self.book(count, at == 0) {
            0 => return Some(Blocked::Pin),
            booked => booked,
        };
        let first = self.queue.at(at).block;
        let want = Want {
            relation: &self.relation,
            tag: self.tag,
            first,
            count: booked,
            class,
            needed_now,
            policy: self.policy,
            usage_max: if self.ring.is_some() { 1 } else { USAGE_MAX },
        };
        let before = self.tally.hits;
        let started = self.reads.start(session, &want, self.ring.as_mut(), &mut self.tally);
        let (used, blocked) = match started {
            Ok(Start::Hit(buffer)) => {
                debug_assert_eq!(self.tally.hits, before + 1);
                self.enter(at, 1, |_| State::Ready { buffer });
                if self.options.unordered {
                    self.ready.push_back(self.queue.sequence(at));
                }
                self.distances.page_found(self.reads.in_flight() > 0);
                (1, None)
            }
            Ok(Start::Joined(buffer, io)) => {
                self.enter(at, 1, |_| State::Joined { buffer, io });
                self.read_in_row(at, 1);
                if self.is_own(io) {
                    self.queue.at_mut(at).duplicate = true;
                    self.duplicates += 1;
                }
                (1, None)
            }
            Ok(Start::Issued { slot, count }) => {
                self.enter(at, count, |_| State::Reading { slot });
                self.read_in_row(at, count);
                let synchronous = needed_now || session.method() == MethodKind::Sync;
                let waited = synchronous && self.reads.operations.is_done(slot);
                self.flights[slot] = Some(Flight { first: self.queue.sequence(at), waited });
                self.stats.ios += 1;
                self.stats.io_blocks += u64::from(count);
                self.stats.in_flight_sum += self.reads.in_flight() as u64;
                (count, None)
            }
            Ok(Start::NoBuffer) => (0, Some(Blocked::Buffer)),
            Ok(Start::NoHandle) => (0, Some(Blocked::Handle)),
            Err(error) => {
                self.fail(at, error);
                (0, None)
            }
        };
        self.pinned += used;
        self.give_back(booked - used);
        if blocked.is_some() {
            self.distances.limited_to(self.pinned);
        }
        blocked
    }

    /// Books pins for entries about to be started; 0 if there are none to be had now.
    fn book(&mut self, count: u32, front: bool) -> u32 {
        let limiter = &self.shared.limiter;
        let mut booked = u32::from(std::mem::take(&mut self.reserve));
        booked += limiter.pin_ahead(self.session, count - booked);
        if booked < count {
            limiter.extend(self.session, count - booked, &self.shared.notifiers);
            booked += limiter.pin_ahead(self.session, count - booked);
        }
        // The one that the consumer waits for may use what is kept for that.
        if booked == 0 && (front || self.pinned == 0) && limiter.pin(self.session) {
            booked = 1;
            // That is kept for pages beside the one at hand, too: those ahead make room for them.
            self.let_ahead_go();
        }
        // With no pin at all the session waits to be admitted: that says nothing of how many it will
        // be granted, and must not bring back the slow start.
        if booked < count && self.pinned + booked > 0 {
            self.distances.limited_to(self.pinned + booked);
        }
        booked
    }

    /// Whether it is a read of this stream.
    fn is_own(&self, io: WaitRef) -> bool {
        (0..self.flights.len()).any(|slot| self.reads.operations.wait_ref(slot) == Some(io))
    }

    fn give_back(&self, count: u32) {
        if count > 0 {
            self.shared.limiter.unpin(self.session, count, &self.shared.notifiers);
        }
    }

    /// The system reads these entries, or is told that it will: it sees by itself what follows them.
    /// Not so of pages found here, of which it never learns.
    fn read_in_row(&mut self, at: usize, count: u32) {
        self.next_in_row = self.queue.at(at + count as usize - 1).block.checked_add(1);
    }

    /// Puts entries into another state; pending ones among them are pending no longer.
    fn enter(&mut self, at: usize, count: u32, state: impl Fn(u32) -> State) {
        let pending_from = self.queue.first_pending();
        for offset in 0..count {
            let entry = self.queue.at_mut(at + offset as usize);
            if let State::Unread { advised: true } = entry.state {
                self.advised -= 1;
            }
            entry.state = state(offset);
        }
        let end = at + count as usize;
        self.queue.started(end.saturating_sub(pending_from.max(at)));
    }

    /// An entry could not even be started; the consumer learns it when its turn comes.
    fn fail(&mut self, at: usize, error: ReadError) {
        let mut error = Some(Box::new(error));
        let pending_from = self.queue.first_pending();
        let entry = self.queue.at_mut(at);
        if let State::Unread { advised: true } = entry.state {
            self.advised -= 1;
        }
        if let Some(error) = error.take() {
            entry.state = State::Failed(error);
        }
        self.queue.started(usize::from(at >= pending_from));
    }

    /// Tells the system of the gathered blocks instead of reading them. False: the first of them is
    /// in the pool, or is the consumer's next, so there is nothing to tell.
    fn advise(&mut self, session: &mut Session, at: usize) -> bool {
        let first = self.queue.at(at).block;
        let there = |block| {
            let found = self.shared.table.peek(&self.shared.buffers, self.tag.at(block));
            found.is_some_and(|seen| seen.any(flag::VALID | flag::IO_IN_PROGRESS))
        };
        if there(first) || (at == 0 && self.pinned == 0) {
            return false;
        }
        let mut count = 1;
        while count < self.queue.pending() as u32 && !there(first + count) {
            count += 1;
        }
        if self.next_in_row != Some(first) {
            let located = self.relation.locate(first);
            // A file that cannot be used is reported when its block's turn comes.
            if let Ok(located) = located {
                let length = u64::from(count.min(located.blocks_left)) * BLOCK_SIZE as u64;
                let advised = session.advise(&located.file, located.offset, length);
                self.stats.advised += u64::from(advised);
            }
        }
        self.enter(at, count, |_| State::Unread { advised: true });
        self.read_in_row(at, count);
        self.advised += count;
        true
    }

    /// Takes note of reads that were let go of and have ended since.
    fn collect_let_go(&mut self) {
        if self.let_go_reads == 0 {
            return;
        }
        for slot in 0..self.flights.len() {
            if self.flights[slot].is_none()
                && let Some(outcome) = self.reads.operations.take(slot)
            {
                self.let_go_reads -= 1;
                self.reads.finish(slot, outcome, &mut self.tally, |_, _, _| {});
            }
        }
    }
}
