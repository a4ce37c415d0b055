//! The queue of the worker pool and of a ring driver: one lane per mount, taken in turn.
//!
//! A mount that hangs holds the workers, or the places in a ring, of its I/O. Its lane may hold no
//! more than its share, so that the other mounts always find some. And it begins with one and gets one
//! more for each that it gives back: a mount that hung before we came never gets to its share, even
//! in the moments in which the others want nothing.

use crate::limits::LANES_MAX;
use std::collections::VecDeque;

#[derive(Debug)]
struct Lane {
    queue: VecDeque<u32>,
    busy: usize,
    /// I/Os that came to an end, up to more than any share.
    proven: u32,
}

impl Lane {
    fn is_active(&self) -> bool {
        self.busy > 0 || !self.queue.is_empty()
    }

    fn has_place(&self, share: usize) -> bool {
        self.busy < share.min(self.proven as usize + 1)
    }
}

#[derive(Debug)]
pub(super) struct Lanes {
    lanes: Vec<Lane>,
    queued: usize,
    bound: usize,
    next: usize,
}

impl Lanes {
    /// Room for every handle; [`Lanes::has_room`] says no from `bound` on, for callers that keep to
    /// it.
    pub(super) fn new(handles: usize, bound: usize) -> Self {
        let lane = || Lane { queue: VecDeque::with_capacity(handles), busy: 0, proven: 0 };
        let lanes = (0..LANES_MAX).map(|_| lane()).collect();
        Self { lanes, queued: 0, bound, next: 0 }
    }

    pub(super) fn has_room(&self) -> bool {
        self.queued < self.bound
    }

    /// Queues an I/O.
    pub(super) fn push(&mut self, lane: usize, index: u32) {
        self.lanes[lane].queue.push_back(index);
        self.queued += 1;
    }

    /// Queues an I/O before all others of its lane, after a `take` that was not to be.
    pub(super) fn put_back(&mut self, lane: usize, index: u32) {
        self.lanes[lane].busy -= 1;
        self.lanes[lane].queue.push_front(index);
        self.queued += 1;
    }

    /// Takes everything, whatever the shares; nothing of it counts as busy.
    pub(super) fn drain(&mut self) -> impl Iterator<Item = u32> {
        self.queued = 0;
        self.lanes.iter_mut().flat_map(|lane| lane.queue.drain(..))
    }

    /// Mounts that have something queued or under way.
    pub(super) fn active(&self) -> usize {
        self.lanes.iter().filter(|lane| lane.is_active()).count()
    }

    /// Counts work on a lane that was not queued here.
    pub(super) fn begin(&mut self, lane: usize) {
        self.lanes[lane].busy += 1;
    }

    /// Whether the lane holds less than its share, which is at most `share`.
    pub(super) fn may_begin(&self, lane: usize, share: usize) -> bool {
        self.lanes[lane].has_place(share)
    }

    /// Takes an I/O from the next lane that has one and holds less than its share, which is at most
    /// `share`.
    pub(super) fn take(&mut self, share: usize) -> Option<(usize, u32)> {
        for step in 0..self.lanes.len() {
            let at = (self.next + step) % self.lanes.len();
            let lane = &mut self.lanes[at];
            if !lane.has_place(share) {
                continue;
            }
            if let Some(index) = lane.queue.pop_front() {
                lane.busy += 1;
                self.queued -= 1;
                self.next = at + 1;
                return Some((at, index));
            }
        }
        None
    }

    /// A worker has finished an I/O of this lane.
    pub(super) fn finished(&mut self, lane: usize) {
        let lane = &mut self.lanes[lane];
        lane.busy -= 1;
        lane.proven = lane.proven.saturating_add(1);
    }

    /// Whether some lane has an I/O that another worker may take.
    pub(super) fn runnable(&self, share: usize) -> bool {
        let waits = |lane: &Lane| !lane.queue.is_empty() && lane.has_place(share);
        self.queued > 0 && self.lanes.iter().any(waits)
    }

    /// I/Os queued.
    pub(super) fn queued(&self) -> usize {
        self.queued
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_lane_at_its_share_is_passed_over() {
        let mut lanes = Lanes::new(8, 8);
        lanes.lanes[0].proven = 10;
        for index in 0..3 {
            lanes.push(0, index);
        }
        lanes.push(1, 10);
        assert_eq!(lanes.take(2), Some((0, 0)));
        assert_eq!(lanes.take(2), Some((1, 10)), "lanes take turns");
        assert_eq!(lanes.take(2), Some((0, 1)));
        assert_eq!(lanes.take(2), None, "lane 0 holds its share");
        assert!(!lanes.runnable(2));
        lanes.finished(0);
        assert!(lanes.runnable(2));
        assert_eq!(lanes.take(2), Some((0, 2)));
    }

    #[test]
    fn a_lane_that_gives_nothing_back_holds_one() {
        let mut lanes = Lanes::new(16, 16);
        for index in 0..4 {
            lanes.push(0, index);
            lanes.push(1, 10 + index);
        }
        assert_eq!(lanes.take(8), Some((0, 0)));
        assert_eq!(lanes.take(8), Some((1, 10)));
        assert_eq!(lanes.take(8), None, "neither has shown that it answers");
        lanes.finished(1);
        assert_eq!(lanes.take(8), Some((1, 11)));
        assert_eq!(lanes.take(8), Some((1, 12)), "one for the one that came back, one more");
        assert_eq!(lanes.take(8), None);
        lanes.put_back(1, 12);
        assert_eq!(lanes.take(8), Some((1, 12)), "what was not begun proves nothing");
        assert_eq!(lanes.take(8), None);
        for lane in [1, 1] {
            lanes.finished(lane);
        }
        assert_eq!(lanes.take(8), Some((1, 13)));
        lanes.finished(1);
        assert_eq!(lanes.take(8), None, "alone again, and for how long?");
        lanes.finished(0);
        assert_eq!(lanes.take(8), Some((0, 1)));
    }
}
