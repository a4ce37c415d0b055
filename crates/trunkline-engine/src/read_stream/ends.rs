//! What became of a read: pages ready in the queue, blocks to be read again, errors that wait for their turn.
//!
//! A read of the stream's own ends block by block; one of somebody else's, which an entry has joined, either
//! brought the page or says nothing about it. Then the page at the front becomes the consumer's.

use super::queue::State;
use super::{BlockSource, Current, ReadStream};
use crate::pool::read::{BlockEnd, error_of};
use crate::pool::{Backend, ReadWarning, flag};
use trunkline_aio::Outcome;
use trunkline_aio::sync::Arc;
use trunkline_format::segment::segment_of;

impl<S: BlockSource> ReadStream<S> {
    /// The entry of an unordered stream that is nearest to being handed out.
    pub(super) fn first_usable(&mut self) -> usize {
        let ready = self.ready.pop_front().or_else(|| {
            let done = self.reads.operations.first_done()?;
            Some(self.flights[done]?.first)
        });
        ready.map_or(0, |sequence| (sequence - self.queue.sequence(0)) as usize)
    }

    pub(super) fn forget_duplicates(&mut self) {
        if std::mem::take(&mut self.duplicates) > 0 {
            self.queue.iter_mut().for_each(|entry| entry.duplicate = false);
        }
    }

    /// An entry's pin is no longer one of those taken ahead.
    pub(super) fn unpinned(&mut self, at: usize) {
        self.pinned -= 1;
        if std::mem::take(&mut self.queue.at_mut(at).duplicate) {
            self.duplicates -= 1;
        }
    }

    /// Makes a ready entry the page at hand.
    pub(super) fn take(&mut self, at: usize) {
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
    pub(super) fn read_ended(&mut self, backend: &mut Backend, slot: usize, outcome: Outcome) {
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
    pub(super) fn join_ended(&mut self, at: usize) {
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
}
