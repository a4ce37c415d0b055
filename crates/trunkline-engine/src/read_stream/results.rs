//! Results of reads: decides for each block of a completed read whether its page is ready, whether
//! to read it again, or whether to return an error when the consumer reaches it.
//!
//! When one of the stream's own reads completes, we get a result for each block. But if an entry
//! has joined another session's read, we can only see whether the page is now valid. If it isn't,
//! we read the block ourselves, because the error was reported only to the other session.

use super::queue::EntryState;
use super::source::BlockSource;
use super::{Current, ReadStream};
use crate::pool::{Backend, BlockResult, ReadWarning, flag};
use trunkline_aio::Outcome;
use trunkline_aio::facade::Arc;

impl<S: BlockSource> ReadStream<S> {
    /// Position of the entry that an unordered stream should return next. We prefer an entry that
    /// is ready, then the first entry of a completed read, and otherwise use the front of the
    /// queue.
    pub(super) fn first_usable(&mut self) -> usize {
        let ready = self.ready.pop_front().or_else(|| {
            let done = self.reads.window().results().first_done()?;
            Some(self.in_flight[done]?.first)
        });
        ready.map_or(0, |sequence| (sequence - self.queue.sequence(0)) as usize)
    }

    /// Forgets which entries share a page, after all pins were released.
    pub(super) fn forget_duplicates(&mut self) {
        if std::mem::take(&mut self.duplicates) > 0 {
            self.queue.iter_mut().for_each(|entry| entry.duplicate = false);
        }
    }

    /// Counts the pin of an entry as no longer taken ahead.
    pub(super) fn unpinned(&mut self, at: usize) {
        self.pinned -= 1;
        if std::mem::take(&mut self.queue.at_mut(at).duplicate) {
            self.duplicates -= 1;
        }
    }

    /// Makes a ready entry the current page.
    pub(super) fn take(&mut self, at: usize) {
        self.unpinned(at);
        let (EntryState::Ready { buffer }, block, Some(data)) = self.queue.take(at) else {
            unreachable!("an entry taken that was not ready");
        };
        self.current = Some(Current { buffer, block, data });
        self.stats.pages += 1;
        let pinned = self.pinned + 1;
        self.stats.distance_sum += u64::from(pinned);
        self.stats.distance_max = self.stats.distance_max.max(pinned);
    }

    /// A read of this stream has ended.
    pub(super) fn read_ended(&mut self, backend: &mut Backend, slot: usize, outcome: Outcome) {
        let (manager, session) = (Arc::clone(&self.manager), self.session);
        let Some(read) = self.in_flight[slot].take() else {
            // The pages of this read were released while it was in flight, so all we have to do is
            // free its slot.
            self.released_reads -= 1;
            self.reads.finish(slot, outcome, self.counter.tally(), |_, _, _| {});
            return;
        };
        let waited = read.waited || std::mem::take(&mut self.waited_for_any);
        let (queue, relation) = (&mut self.queue, &self.relation);
        let (ready, unordered) = (&mut self.ready, self.options.unordered);
        let pinned = &mut self.pinned;
        let mut sequence = read.first;
        self.reads.finish(slot, outcome, self.counter.tally(), |block, buffer, result| {
            let entry = queue.by_sequence(sequence);
            let state = match &result {
                BlockResult::Valid => EntryState::Ready { buffer },
                BlockResult::Damaged { zeroed, verdict } => {
                    let location = relation.location(block);
                    let (zeroed, verdict) = (*zeroed, *verdict);
                    backend.warn(ReadWarning { location, zeroed, verdict });
                    EntryState::Ready { buffer }
                }
                BlockResult::Unread => EntryState::Unread { advised: false },
                BlockResult::Failed { alone: false, .. } => {
                    entry.alone = true;
                    EntryState::Unread { advised: false }
                }
                BlockResult::Bad(_)
                | BlockResult::Newer(_)
                | BlockResult::Failed { .. }
                | BlockResult::Short { .. } => match result.error(relation, block) {
                    Some(error) => EntryState::Failed(Box::new(error)),
                    None => EntryState::Unread { advised: false },
                },
            };
            if matches!(state, EntryState::Ready { .. }) {
                if unordered {
                    ready.push_back(sequence);
                }
            } else {
                manager.release(buffer, session);
                *pinned -= 1;
            }
            // An unordered stream may already have returned later entries, so the front of the
            // queue may have moved. We use the sequence number to find this entry, because that
            // never changes.
            entry.state = state;
            sequence += 1;
        });
        // Adapt the group size and the distances to how this read went.
        self.group.read_ended();
        self.distances.read_ended(waited);
        self.stats.waits += u64::from(waited);
    }

    /// Another session's read, which an entry has joined, has ended.
    pub(super) fn join_ended(&mut self, at: usize) {
        let EntryState::Joined { buffer, .. } = self.queue.at(at).state else { return };
        if self.manager.buffers().state(buffer).has(flag::VALID) {
            self.counter.tally().hits += 1;
            self.counter.tally().joins += 1;
            self.queue.at_mut(at).state = EntryState::Ready { buffer };
            if self.options.unordered {
                self.ready.push_back(self.queue.sequence(at));
            }
        } else {
            // The other session's read failed. Ours may still succeed.
            self.manager.release(buffer, self.session);
            self.unpinned(at);
            self.queue.at_mut(at).state = EntryState::Unread { advised: false };
        }
    }
}
