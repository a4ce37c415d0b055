//! Lanes: the I/O queue that the worker pool and each ring driver use. There is one lane for each
//! mount, and the lanes are served round-robin.
//!
//! **The problem.** When a mount hangs, for example because an NFS server doesn't respond or a FUSE
//! daemon has stopped, all workers or ring entries occupied by its I/O hang too. PostgreSQL's
//! worker method uses a single FIFO queue for all mounts. With such a queue, a single mount that
//! hangs would soon block all of the instance's I/O.
//!
//! **The rule.** Each lane may occupy only a limited share of the workers or ring entries.
//! Initially a lane may occupy just one, and for each I/O it completes it may occupy one more,
//! until it reaches its share. As a result, a mount that hangs right from the start never occupies
//! more than one worker, even if all other mounts are idle.
//!
//! There is no lock in this file, because the callers provide the locking. The worker pool accesses
//! its lanes while holding the roster's lock, and a ring driver is the only thread that uses its
//! lanes.

use crate::limits::LANES_MAX;
use std::collections::VecDeque;

/// One mount's queue.
#[derive(Debug)]
struct Lane {
    queue: VecDeque<u32>,
    /// Number of this mount's I/Os that have been taken but haven't finished yet. Each of them
    /// occupies a worker or a ring entry.
    busy: usize,
    /// Number of I/Os this lane has completed. The counter may saturate, which is OK because we
    /// only compare it with shares.
    proven: u32,
}

impl Lane {
    fn is_active(&self) -> bool {
        self.busy > 0 || !self.queue.is_empty()
    }

    /// Whether the lane may occupy one more worker or ring entry. See the rule in the module
    /// documentation.
    fn has_place(&self, share: usize) -> bool {
        self.busy < share.min(self.proven as usize + 1)
    }
}

/// Queued I/O by mount, as handle indexes.
#[derive(Debug)]
pub(crate) struct Lanes {
    lanes: Vec<Lane>,
    /// Total length of all queues.
    queued: usize,
    /// See [`Lanes::has_room`].
    bound: usize,
    /// The lane where the next [`Lanes::take`] starts, for round-robin service.
    next: usize,
}

impl Lanes {
    /// Each lane is allocated with room for all handles, so pushing an I/O never allocates. `bound`
    /// is only advisory: once that many I/Os are queued, [`Lanes::has_room`] returns false, and
    /// callers that need to respect the bound must check it.
    pub(crate) fn new(handles: usize, bound: usize) -> Self {
        let lane = || Lane { queue: VecDeque::with_capacity(handles), busy: 0, proven: 0 };
        let lanes = (0..LANES_MAX).map(|_| lane()).collect();
        Self { lanes, queued: 0, bound, next: 0 }
    }

    /// Returns true if a session may queue another I/O. Otherwise, the session must execute the I/O
    /// itself, which throttles the session to the speed of the storage.
    pub(crate) fn has_room(&self) -> bool {
        self.queued < self.bound
    }

    /// Queues an I/O.
    pub(crate) fn push(&mut self, lane: usize, index: u32) {
        self.lanes[lane].queue.push_back(index);
        self.queued += 1;
    }

    /// Undoes [`Lanes::take`] by putting the I/O back at the head of its lane. We don't count the
    /// I/O as completed, so a mount that always returns EAGAIN can't earn a larger share that way.
    pub(crate) fn put_back(&mut self, lane: usize, index: u32) {
        self.lanes[lane].busy -= 1;
        self.lanes[lane].queue.push_front(index);
        self.queued += 1;
    }

    /// Takes all the I/O that is still queued after a ring has failed, regardless of the lanes'
    /// shares. Returns pairs of lane and handle index. I/O taken this way doesn't count as busy.
    pub(crate) fn drain(&mut self) -> impl Iterator<Item = (usize, u32)> {
        self.queued = 0;
        let lanes = self.lanes.iter_mut().enumerate();
        lanes.flat_map(|(at, lane)| lane.queue.drain(..).map(move |index| (at, index)))
    }

    /// Number of mounts with queued or running I/O.
    pub(crate) fn active(&self) -> usize {
        self.lanes.iter().filter(|lane| lane.is_active()).count()
    }

    /// Counts work that was not queued here, such as closing a file, towards its mount's share.
    pub(crate) fn begin(&mut self, lane: usize) {
        self.lanes[lane].busy += 1;
    }

    /// Whether the lane hasn't used up its share yet. A lane's share is never larger than `share`.
    pub(crate) fn may_begin(&self, lane: usize, share: usize) -> bool {
        self.lanes[lane].has_place(share)
    }

    /// Takes an I/O from the next lane that isn't empty and hasn't used up its share. `share` is
    /// the upper limit for every lane's share. Returns the lane and the handle index.
    pub(crate) fn take(&mut self, share: usize) -> Option<(usize, u32)> {
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

    /// Records that one of this lane's I/Os has completed.
    pub(crate) fn finished(&mut self, lane: usize) {
        let lane = &mut self.lanes[lane];
        lane.busy -= 1;
        lane.proven = lane.proven.saturating_add(1);
    }

    /// Returns true if [`Lanes::take`] would currently return an I/O. Note that this can be false
    /// even if there is queued I/O, because the lanes it is queued in may have used up their
    /// shares.
    pub(crate) fn runnable(&self, share: usize) -> bool {
        let waits = |lane: &Lane| !lane.queue.is_empty() && lane.has_place(share);
        self.queued > 0 && self.lanes.iter().any(waits)
    }

    /// Number of I/Os queued.
    pub(crate) fn queued(&self) -> usize {
        self.queued
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_lane_at_its_share_is_skipped() {
        let mut lanes = Lanes::new(8, 8);
        lanes.lanes[0].proven = 10;
        for index in 0..3 {
            lanes.push(0, index);
        }
        lanes.push(1, 10);
        assert_eq!(lanes.take(2), Some((0, 0)));
        assert_eq!(lanes.take(2), Some((1, 10)), "lanes take turns");
        assert_eq!(lanes.take(2), Some((0, 1)));
        assert_eq!(lanes.take(2), None, "lane 0 is at its share");
        assert!(!lanes.runnable(2));
        lanes.finished(0);
        assert!(lanes.runnable(2));
        assert_eq!(lanes.take(2), Some((0, 2)));
    }

    #[test]
    fn a_lane_that_completes_nothing_may_use_one() {
        let mut lanes = Lanes::new(16, 16);
        for index in 0..4 {
            lanes.push(0, index);
            lanes.push(1, 10 + index);
        }
        assert_eq!(lanes.take(8), Some((0, 0)));
        assert_eq!(lanes.take(8), Some((1, 10)));
        assert_eq!(lanes.take(8), None, "neither has completed anything");
        lanes.finished(1);
        assert_eq!(lanes.take(8), Some((1, 11)));
        assert_eq!(lanes.take(8), Some((1, 12)), "one for the completed one, and one more");
        assert_eq!(lanes.take(8), None);
        lanes.put_back(1, 12);
        assert_eq!(lanes.take(8), Some((1, 12)), "an I/O that was put back proves nothing");
        assert_eq!(lanes.take(8), None);
        for lane in [1, 1] {
            lanes.finished(lane);
        }
        assert_eq!(lanes.take(8), Some((1, 13)));
        lanes.finished(1);
        assert_eq!(lanes.take(8), None, "lane 1 is at its share");
        lanes.finished(0);
        assert_eq!(lanes.take(8), Some((0, 1)));
    }
}
