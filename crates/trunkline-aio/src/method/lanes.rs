//! The queue of the worker pool: one lane per mount, taken in turn.
//!
//! A mount that hangs holds the workers that execute its I/O. Its lane may hold no more than its
//! share, so that the other mounts always find a worker.

use crate::limits::LANES_MAX;
use std::collections::VecDeque;

#[derive(Debug)]
struct Lane {
    queue: VecDeque<u32>,
    busy: usize,
}

#[derive(Debug)]
pub(super) struct Lanes {
    lanes: Vec<Lane>,
    queued: usize,
    capacity: usize,
    next: usize,
}

impl Lanes {
    /// Room for `capacity` I/Os in all lanes together.
    pub(super) fn new(capacity: usize) -> Self {
        let lane = || Lane { queue: VecDeque::with_capacity(capacity), busy: 0 };
        let lanes = (0..LANES_MAX).map(|_| lane()).collect();
        Self { lanes, queued: 0, capacity, next: 0 }
    }

    pub(super) fn has_room(&self) -> bool {
        self.queued < self.capacity
    }

    /// Queues an I/O; there must be room.
    pub(super) fn push(&mut self, lane: usize, index: u32) {
        debug_assert!(self.has_room(), "the caller asked for room");
        self.lanes[lane].queue.push_back(index);
        self.queued += 1;
    }

    /// Takes an I/O from the next lane that has one and holds fewer than `share` workers.
    pub(super) fn take(&mut self, share: usize) -> Option<(usize, u32)> {
        for step in 0..self.lanes.len() {
            let at = (self.next + step) % self.lanes.len();
            let lane = &mut self.lanes[at];
            if lane.busy >= share {
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
        self.lanes[lane].busy -= 1;
    }

    /// Whether some lane has an I/O that another worker may take.
    pub(super) fn runnable(&self, share: usize) -> bool {
        self.queued > 0 && self.lanes.iter().any(|l| !l.queue.is_empty() && l.busy < share)
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
        let mut lanes = Lanes::new(8);
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
}
