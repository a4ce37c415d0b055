//! Look-ahead: decides which blocks to collect, when to start reading them, and when to stop
//! (`read_stream_look_ahead` in PostgreSQL).
//!
//! ```text
//!   take another block from the source if
//!     reads in flight < concurrency, and
//!     pinned + pending < look-ahead distance, which is the largest possible one for blocks that the
//!       consumer is expected to take, while a read is in flight, and 0 for those that it isn't,
//!     or nothing is pinned, and pending < combine distance
//!   start to read the pending blocks if
//!     they are a whole read, or the next block does not follow them,
//!     or they are expected, but the next block is not,
//!     or nothing is pinned and no more blocks are wanted
//!   if the source has to wait for its next block
//!     submit what was started, and let the source try
//!     if it can't continue, start to read the pending blocks
//! ```
//!
//! With `io_method = sync`, a read is executed in this thread as soon as we start it. Starting it
//! early would therefore only make the consumer wait sooner. Instead, the stream calls
//! `posix_fadvise` for upcoming blocks, and reads each block when the consumer needs it. For
//! consecutive blocks, we rely on the kernel's own read-ahead, as PostgreSQL does.

use super::ReadStream;
use super::blocked::{Blocked, ReadInFlight, Tries};
use super::queue::EntryState;
use super::source::{BlockSource, Expected, SourceWait, Supply};
use crate::pool::{Backend, ReadError, ReadRequest, ReadStart, USAGE_MAX};
use std::task::Poll;
use trunkline_aio::{Class, MethodKind, Session, WaitRef};
use trunkline_format::{BLOCK_SIZE, BlockNo};

/// How the stream looks ahead, which depends on the I/O method.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Prefetch {
    /// With reads in flight.
    Reads,
    /// With `posix_fadvise`. Each read is executed when its page is needed.
    Advice,
    /// Not at all: one read at a time, when its page is needed.
    None,
}

impl<S: BlockSource> ReadStream<S> {
    /// If the block that the consumer needs next must be read again, starts that read. We must do
    /// this before we look ahead, because look-ahead might use up the last slot, pin or handle for
    /// a later block. If the read can't be started, returns the reason.
    pub(super) fn start_overdue(&mut self, backend: &mut Backend) -> Option<Blocked> {
        self.finish_released();
        let started = self.queue.len() > self.queue.pending() && self.ready.is_empty();
        if !started || !matches!(self.queue.at(0).state, EntryState::Unread { advised: false }) {
            return None;
        }
        self.start_front(backend, 0)
    }

    /// Looks ahead up to the look-ahead distance, or until we run out of pins, buffers or handles.
    /// If nothing is in flight or ready afterwards, returns the reason why no read could be
    /// started.
    pub(super) fn look_ahead(&mut self, backend: &mut Backend) -> Option<Blocked> {
        let prefetch = self.prefetch(backend.session());
        if self.reads.window().idle() < self.group.size() as usize {
            self.finish_ended(backend);
        }
        if self.waits_for_group(prefetch) {
            return None;
        }
        let refused = loop {
            // One submission for all reads started here.
            let mut batch = backend.session().batch();
            let refused = self.collect(&mut batch, prefetch);
            if refused.is_some() {
                break refused;
            }
            // The source may have to wait for other sessions, which may be waiting for the reads
            // that we have staged. So submit those first.
            if self.may_fetch(prefetch) {
                drop(batch);
                if self.try_fetch(backend) {
                    continue;
                }
                batch = backend.session().batch();
            }
            break self.start_expected(&mut batch, prefetch);
        };
        self.counter.publish_if_due();
        // The refusal matters only if there is nothing else to wait for.
        refused.filter(|_| self.queue.len() == self.queue.pending())
    }

    /// [`Self::start_rest`], and then everything that is expected: now that a read is in flight, other
    /// reads can follow at once, in the same submission.
    fn start_expected(&mut self, session: &mut Session, prefetch: Prefetch) -> Option<Blocked> {
        loop {
            let pending = self.queue.pending();
            let refused = self.start_rest(session, prefetch);
            let started = self.queue.pending() < pending;
            if refused.is_some() || !started || !self.next_is_expected() {
                return refused;
            }
            if let Some(blocked) = self.collect(session, prefetch) {
                return Some(blocked);
            }
        }
    }

    /// Whether to let the source try to continue. We do this only if there is something else to wait
    /// for, and if the stream looks ahead at all.
    fn may_fetch(&self, prefetch: Prefetch) -> bool {
        matches!(self.supply, Supply::Waits)
            && prefetch != Prefetch::None
            && !self.queue.is_empty()
            && self.wants_more(prefetch)
    }

    /// Lets the source try to continue, and returns true if it can.
    fn try_fetch(&mut self, backend: &mut Backend) -> bool {
        let mut wait = SourceWait::never().with_distance(self.distances.ahead());
        match self.source.fetch(backend, &mut wait) {
            Poll::Ready(Ok(())) => self.supply = Supply::Blocks,
            // If the session is still cancelled when the consumer has to wait, it finds out then.
            Poll::Ready(Err(ReadError::Cancelled)) | Poll::Pending => {}
            Poll::Ready(Err(error)) => self.supply = Supply::Failed(Box::new(error)),
        }
        matches!(self.supply, Supply::Blocks)
    }

    /// Takes the results of completed reads and frees their slots, so that other reads can be in
    /// flight while the consumer processes the pages.
    fn finish_ended(&mut self, backend: &mut Backend) {
        while let Some((slot, outcome)) = self.reads.window_mut().take_any() {
            self.read_ended(backend, slot, outcome);
        }
    }

    /// Whether to delay new reads until we can start a whole group together. We can do that only if
    /// the consumer has a page to process and a read is in flight, because otherwise the device
    /// would be idle.
    fn waits_for_group(&self, prefetch: Prefetch) -> bool {
        let busy = self.pinned > 0 && self.reads.window().in_flight() > 0;
        prefetch == Prefetch::Reads
            && busy
            && self.reads.window().idle() < self.group.size() as usize
    }

    fn prefetch(&self, session: &Session) -> Prefetch {
        if self.options.concurrency == 0 {
            return Prefetch::None;
        }
        if session.method() != MethodKind::Sync {
            return Prefetch::Reads;
        }
        let advice = !self.options.sequential && !self.relation.storage().is_direct();
        if advice { Prefetch::Advice } else { Prefetch::None }
    }

    /// Takes blocks from the source, and starts reads of them. The last of the blocks may remain
    /// pending.
    fn collect(&mut self, session: &mut Session, prefetch: Prefetch) -> Option<Blocked> {
        loop {
            // The pending blocks fill the largest possible read, so there's nothing to gain by
            // waiting for more.
            if self.queue.pending() >= self.distances.combine_max() as usize {
                if let Some(blocked) = self.start_pending(session, prefetch) {
                    return Some(blocked);
                }
                continue;
            }
            if !self.wants_more(prefetch) {
                break;
            }
            let expected = self.next_is();
            let Some((block, data)) = self.next_block() else { break };
            // This block doesn't continue the pending blocks, so we must start reading those first.
            // If that fails, we keep the block for later, because there is no way to return it to
            // the source.
            if self.queue.pending() > 0 && self.queue.continuation() != Some(block) {
                self.unget = Some((block, data));
                self.unget_expected = expected;
                while self.queue.pending() > 0 {
                    if !self.may_start(prefetch) {
                        return None;
                    }
                    if let Some(blocked) = self.start_pending(session, prefetch) {
                        return Some(blocked);
                    }
                }
                continue;
            }
            self.queue.push(block, data);
            self.pending_expected = self.counts(expected);
        }
        None
    }

    /// How sure it is that the consumer takes the next block.
    fn next_is(&self) -> Expected {
        match self.unget {
            Some(_) => self.unget_expected,
            None if matches!(self.supply, Supply::Blocks) => self.source.next_is(),
            None => Expected::Unknown,
        }
    }

    /// Whether to start the read of a block although it is beyond the look-ahead distance. If nothing is
    /// in flight, it is probably in the pool, and there is nothing to gain by pinning it early.
    fn counts(&self, expected: Expected) -> bool {
        let has_reads = self.reads.window().in_flight() > 0 || self.advised > 0;
        has_reads
            && match expected {
                Expected::Certain => true,
                Expected::Likely => self.distances.ahead() > 1,
                Expected::Unknown | Expected::Unlikely => false,
            }
    }

    fn next_is_expected(&self) -> bool {
        self.counts(self.next_is())
    }

    /// Starts the pending blocks that `collect` has left, unless they should grow.
    fn start_rest(&mut self, session: &mut Session, prefetch: Prefetch) -> Option<Blocked> {
        // The pending blocks form a read that could still grow. Start it now only if it has reached
        // the desired size, if it can't grow any further, or if the consumer would otherwise have
        // nothing to wait for.
        let pending = self.queue.pending();
        let whole = pending >= self.distances.combine() as usize;
        let alone = self.pinned + self.advised == 0;
        let last = !matches!(self.supply, Supply::Blocks);
        let expected = self.pending_expected && !self.next_is_expected();
        if pending > 0 && self.may_start(prefetch) && (last || whole || alone || expected) {
            return self.start_pending(session, prefetch);
        }
        None
    }

    fn next_block(&mut self) -> Option<(BlockNo, S::Data)> {
        if let Some(unget) = self.unget.take() {
            return Some(unget);
        }
        if !matches!(self.supply, Supply::Blocks) {
            return None;
        }
        let next = self.source.next_block();
        match next {
            Poll::Ready(Some(next)) => {
                self.load_upcoming();
                return Some(next);
            }
            Poll::Ready(None) => self.supply = Supply::Ended,
            Poll::Pending => self.supply = Supply::Waits,
        }
        None
    }

    /// Whether the source has no more blocks.
    pub(super) fn is_exhausted(&self) -> bool {
        matches!(self.supply, Supply::Ended) && self.unget.is_none()
    }

    /// Whether to take another block from the source.
    fn wants_more(&self, prefetch: Prefetch) -> bool {
        if self.is_exhausted() || !self.may_start(prefetch) {
            return false;
        }
        // Duplicates don't use any additional buffers, so if the source repeats blocks, that must
        // not prevent us from looking ahead to new blocks.
        let pending = self.queue.pending() as u32;
        let ahead = self.pinned - self.duplicates + self.advised;
        let next = self.next_is();
        // If nothing is pinned, the consumer has asked for a page.
        let (distance, combine) = match next {
            Expected::Unlikely => (0, 1),
            _ if self.counts(next) => (self.distances.expected_max(), self.distances.combine()),
            _ => (self.distances.ahead(), self.distances.combine()),
        };
        let first = ahead == 0 && pending < combine;
        first || (prefetch != Prefetch::None && ahead + pending < distance)
    }

    /// Whether we may start another read and the queue has room for more blocks.
    fn may_start(&self, prefetch: Prefetch) -> bool {
        let room = self.queue.len() < self.distances.queue_capacity();
        match prefetch {
            Prefetch::Reads => room && self.reads.window().has_idle(),
            Prefetch::Advice => room && self.advised < self.distances.ahead_max(),
            Prefetch::None => room && self.pinned == 0,
        }
    }

    /// Starts the pending blocks, or some of them.
    fn start_pending(&mut self, session: &mut Session, prefetch: Prefetch) -> Option<Blocked> {
        let at = self.queue.first_pending();
        if prefetch == Prefetch::Advice && self.advise(session, at) {
            return None;
        }
        let class = match self.pinned {
            0 if at == 0 => Class::Foreground,
            _ => self.options.class,
        };
        // If nothing else is in flight, handing the read to another thread wouldn't hide any
        // latency.
        let pending = self.queue.pending() as u32;
        let lonely = self.pinned == 0
            && self.distances.ahead() <= pending
            && (prefetch != Prefetch::Reads || self.next_is() != Expected::Certain);
        let needed_now = at == 0 && (prefetch == Prefetch::None || lonely);
        self.start(session, at, pending, class, needed_now)
    }

    /// Starts reading the entry that the consumer is waiting for, together with the entries that
    /// continue it. This is used for entries that were released, that must be read again, or for
    /// which we've only called `posix_fadvise`.
    pub(super) fn start_front(&mut self, backend: &mut Backend, at: usize) -> Option<Blocked> {
        let run = self.queue.run_length(at, self.distances.combine_max() as usize);
        let prefetch = self.prefetch(backend.session());
        let needed_now = prefetch != Prefetch::Reads || self.pinned == 0;
        self.start(backend.session(), at, run as u32, Class::Foreground, needed_now)
    }

    /// Starts up to `count` consecutive entries.
    fn start(
        &mut self,
        session: &mut Session,
        at: usize,
        count: u32,
        class: Class,
        needed_now: bool,
    ) -> Option<Blocked> {
        if !self.reads.window().has_idle() {
            return Some(Blocked::Any);
        }
        // A source that only tries must not execute a read in this thread.
        let needed_now = needed_now && !self.tries.is_try();
        if self.tries == Tries::Advises
            && self.prefetch(session) != Prefetch::Reads
            && !self.is_in_pool(self.queue.at(at).block)
        {
            return Some(Blocked::Any);
        }
        // Reserve the pins first. `PageReads::start` then acquires the handle, the buffers and the
        // claims, in this order, and never waits.
        let reserved = match self.reserve_pins(count, at == 0) {
            0 => return Some(Blocked::Pin),
            reserved => reserved,
        };
        let first = self.queue.at(at).block;
        let request = ReadRequest {
            relation: &self.relation,
            tag: self.tag,
            first,
            count: reserved,
            class,
            needed_now,
            policy: self.policy,
            usage_max: if self.ring.is_some() { 1 } else { USAGE_MAX },
        };
        let started = self.reads.start(session, &request, self.ring.as_mut(), self.counter.tally());
        let (used, blocked) = match started {
            Ok(ReadStart::Hit(buffer)) => {
                self.enter(at, 1, || EntryState::Ready { buffer });
                if self.options.unordered {
                    self.ready.push_back(self.queue.sequence(at));
                }
                self.distances.page_found(self.reads.window().in_flight() > 0);
                (1, None)
            }
            Ok(ReadStart::Joined(buffer, io)) => {
                self.enter(at, 1, || EntryState::Joined { buffer, io });
                self.note_sequential(at, 1);
                if self.is_own(io) {
                    self.queue.at_mut(at).duplicate = true;
                    self.duplicates += 1;
                }
                (1, None)
            }
            Ok(ReadStart::Issued { slot, count }) => {
                self.enter(at, count, || EntryState::Reading { slot });
                self.note_sequential(at, count);
                // Under sync this thread executes the read, at the latest when the batch that it is part
                // of ends. Another method may execute it in this thread too.
                let waited = session.method() == MethodKind::Sync
                    || (needed_now && self.reads.window().results().is_done(slot));
                self.in_flight[slot] =
                    Some(ReadInFlight { first: self.queue.sequence(at), waited });
                self.stats.ios += 1;
                self.stats.io_blocks += u64::from(count);
                self.stats.in_flight_sum += self.reads.window().in_flight() as u64;
                (count, None)
            }
            Ok(ReadStart::NotOpen) => (0, Some(Blocked::Open)),
            Ok(ReadStart::NoBuffer) => (0, Some(Blocked::Buffer)),
            Ok(ReadStart::NoHandle) => (0, Some(Blocked::Handle)),
            Err(error) => {
                self.fail(at, error);
                (0, None)
            }
        };
        self.pinned += used;
        // We may have reserved more pins than the read needs, for example because another session
        // claimed one of the blocks first. If so, return the unused pins.
        if reserved > used {
            self.manager.limits().give_back(self.session, reserved - used);
        }
        if matches!(blocked, Some(Blocked::Buffer | Blocked::Handle)) {
            self.distances.limited_to(self.pinned);
        }
        blocked
    }

    /// Reserves pins for entries that are about to be started. Returns 0 if no pins are available.
    fn reserve_pins(&mut self, count: u32, front: bool) -> u32 {
        let limits = self.manager.limits();
        let mut reserved = u32::from(std::mem::take(&mut self.reserved));
        reserved += limits.reserve_ahead(self.session, count - reserved);
        if reserved < count {
            limits.grant_ahead(self.session, count - reserved);
            reserved += limits.reserve_ahead(self.session, count - reserved);
        }
        // The page that the consumer is waiting for may use the guaranteed pins.
        if reserved == 0 && (front || self.pinned == 0) && limits.reserve(self.session) {
            reserved = 1;
            // The consumer may need other pages while it processes the current one, and these use
            // the guaranteed pins too. So release the pages that we pinned ahead, to make room for
            // those pages.
            self.release_queue();
        }
        // If we didn't get any pins, the session must wait for admission. We can't tell how many
        // pins it will get then, so we don't reduce the distance.
        if reserved < count && self.pinned + reserved > 0 {
            self.distances.limited_to(self.pinned + reserved);
        }
        reserved
    }

    /// Whether the I/O is a read of this stream.
    fn is_own(&self, io: WaitRef) -> bool {
        let results = self.reads.window().results();
        (0..results.len()).any(|slot| results.wait_ref(slot) == Some(io))
    }

    /// Remembers where the last read or `posix_fadvise` ended, because the kernel's read-ahead
    /// continues from there. We ignore hits, because the kernel doesn't see them.
    fn note_sequential(&mut self, at: usize, count: u32) {
        self.next_sequential = self.queue.at(at + count as usize - 1).block.checked_add(1);
    }

    /// Changes the state of entries. Pending ones among them are started.
    fn enter(&mut self, at: usize, count: u32, state: impl Fn() -> EntryState) {
        let pending_from = self.queue.first_pending();
        for offset in 0..count {
            let entry = self.queue.at_mut(at + offset as usize);
            if let EntryState::Unread { advised: true } = entry.state {
                self.advised -= 1;
            }
            entry.state = state();
        }
        let end = at + count as usize;
        self.queue.started(end.saturating_sub(pending_from.max(at)));
    }

    /// Marks an entry whose read could not be started. The stream returns the error when the
    /// consumer reaches that entry.
    fn fail(&mut self, at: usize, error: ReadError) {
        self.enter(at, 1, || EntryState::Unread { advised: false });
        self.queue.at_mut(at).state = EntryState::Failed(Box::new(error));
    }

    /// Calls `posix_fadvise` for the pending blocks instead of reading them. Returns false if the
    /// first pending block is already in the pool. Also returns false if the consumer needs that
    /// block next, because then it's too late for advice.
    fn advise(&mut self, session: &mut Session, at: usize) -> bool {
        let first = self.queue.at(at).block;
        let needed_now = at == 0 && self.pinned == 0 && !self.tries.is_try();
        if needed_now || self.is_in_pool(first) {
            return false;
        }
        let mut count = 1;
        while count < self.queue.pending() as u32 && !self.is_in_pool(first + count) {
            count += 1;
        }
        if self.next_sequential != Some(first) {
            let located = self.relation.locate(first);
            // Ignore errors here. The read reports them when the block's turn comes.
            if let Ok(located) = located {
                let length = u64::from(count.min(located.blocks_left)) * BLOCK_SIZE as u64;
                let advised = session.advise(&located.file, located.offset, length);
                self.stats.advised += u64::from(advised);
            }
        }
        self.enter(at, count, || EntryState::Unread { advised: true });
        self.note_sequential(at, count);
        self.advised += count;
        true
    }

    /// Whether a page is in the pool, or is being read.
    fn is_in_pool(&self, block: BlockNo) -> bool {
        let state = self.manager.peek(self.tag.at(block));
        state.is_some_and(|state| state.is_valid_or_in_progress())
    }

    /// Takes the results of reads whose pages were released.
    fn finish_released(&mut self) {
        if self.released_reads == 0 {
            return;
        }
        for slot in 0..self.in_flight.len() {
            if self.in_flight[slot].is_none()
                && let Some(outcome) = self.reads.window_mut().take(slot)
            {
                self.released_reads -= 1;
                self.reads.finish(slot, outcome, self.counter.tally(), |_, _, _| {});
            }
        }
    }
}
