//! Lanes: the I/O queue that the worker pool and each ring driver use. There is one lane for each
//! mount, and the lanes are served round-robin.
//!
//! **The problem.** When a mount hangs, for example because an NFS server doesn't respond or a FUSE
//! daemon has stopped, all workers or ring entries occupied by its I/O hang too. We call these
//! workers and ring entries *places*. PostgreSQL's worker method uses a single FIFO queue for all
//! mounts. With such a queue, a single mount that hangs would soon block all of the instance's I/O.
//!
//! **The rule.** Each lane may occupy only a limited share of the places, even if no other mount
//! has any I/O, because a mount that hangs doesn't give anything back when another mount needs it.
//! Initially a lane may occupy just one place, and for each I/O it completes it may occupy one
//! more, until it reaches its share. As a result, a mount that hangs right from the start never
//! occupies more than one. The last places are kept for lanes that don't occupy any, so that even
//! if many mounts hang, the others can still make progress.
//!
//! **Order.** The log's I/O goes first, and there is a reserve of places that only the log may use.
//! A commit therefore doesn't have to wait for queued look-ahead or for a mount that hangs. After
//! the log, foreground reads overtake the other I/O of their lane, but at most three times in a
//! row, because otherwise sessions that read all the time could stop a checkpoint. The log has
//! strict priority: if it always has more I/O queued than its reserve admits, it also takes all the
//! other places as they become free.
//!
//! **Calls.** The lanes after those of the mounts have no queues. The worker pool uses them to
//! bound the places that blocking calls may occupy (`roster`).
//!
//! There is no lock in this file, because the callers provide the locking. The worker pool accesses
//! its lanes while holding the roster's lock, and a ring driver is the only thread that uses its
//! lanes.

use crate::completion::handle_queue::{HandleQueue, Links};
use crate::limits::{CALL_LANES_MAX, LANES_MAX};
use crate::tables::class::Class;

/// How many foreground reads in a row may overtake a lane's other I/O.
const OVERTAKING_MAX: u32 = 3;

/// A lane's queues, by number.
const LOG: usize = 0;
const FOREGROUND: usize = 1;
const OTHERS: usize = 2;

/// A queued I/O.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Queued {
    pub(crate) lane: usize,
    /// The handle's index.
    pub(crate) index: u32,
    pub(crate) class: Class,
}

/// How many places may be occupied. The log's I/O is not counted here, up to its reserve.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Places {
    /// Maximum number of places that one lane may occupy.
    pub(crate) share: usize,
    /// Once this many places are taken, a lane that already has a place doesn't get another one.
    pub(crate) shared: usize,
    /// Until this many places are taken, a lane that has none gets one. The places between `shared`
    /// and `first` are therefore reserved for such lanes.
    pub(crate) first: usize,
    /// Number of additional places for the log. In a ring, this and the share are together less
    /// than `first`, because the mount that hangs may be the log's.
    pub(crate) log_reserve: usize,
}

/// One mount's queues.
#[derive(Debug)]
struct Lane {
    /// The queues with the numbers [`LOG`], [`FOREGROUND`] and [`OTHERS`].
    queues: [HandleQueue; 3],
    /// Number of this mount's I/Os that have been taken but haven't finished yet. Each of them
    /// occupies a place.
    busy: usize,
    /// How many of these I/Os are the log's.
    busy_log: usize,
    /// Number of I/Os this lane has completed. The counter may saturate, which is OK because we
    /// only compare it with shares.
    proven: u32,
    /// How many foreground reads in a row have overtaken the lane's other I/O.
    overtaking: u32,
}

impl Lane {
    fn is_active(&self) -> bool {
        self.busy > 0 || self.queues.iter().any(|queue| !queue.is_empty())
    }

    /// The number of places that the lane may occupy at the moment. See the rule in the module
    /// documentation.
    fn most(&self, share: usize) -> usize {
        share.min((self.proven as usize).saturating_add(1))
    }

    /// The queue whose turn it is after the log's. `None` if both are empty.
    fn next_queue(&self) -> Option<usize> {
        match [FOREGROUND, OTHERS].map(|at| !self.queues[at].is_empty()) {
            [false, false] => None,
            [true, false] => Some(FOREGROUND),
            [true, true] if self.overtaking < OVERTAKING_MAX => Some(FOREGROUND),
            [_, true] => Some(OTHERS),
        }
    }
}

/// Queued I/O by mount and class.
#[derive(Debug)]
pub(crate) struct Lanes {
    lanes: Vec<Lane>,
    links: Links,
    /// Total length of all queues.
    queued: usize,
    /// Total length of the log's queues.
    queued_log: usize,
    /// Total number of I/Os that have been taken but haven't finished yet.
    busy: usize,
    /// How many of these I/Os are the log's.
    busy_log: usize,
    /// See [`Lanes::has_room`].
    bound: usize,
    /// The lane where the next [`Lanes::take`] starts, for round-robin service.
    next: usize,
}

impl Lanes {
    /// The queues have room for all handles, so pushing an I/O never allocates. `bound` is only
    /// advisory: once that many I/Os are queued, [`Lanes::has_room`] returns false, and callers
    /// that need to respect the bound must check it.
    pub(crate) fn new(handles: usize, bound: usize) -> Self {
        let queues = [HandleQueue::EMPTY; 3];
        let lane = || Lane { queues, busy: 0, busy_log: 0, proven: 0, overtaking: 0 };
        Self {
            lanes: (0..LANES_MAX + CALL_LANES_MAX).map(|_| lane()).collect(),
            links: Links::new(handles),
            queued: 0,
            queued_log: 0,
            busy: 0,
            busy_log: 0,
            bound,
            next: 0,
        }
    }

    /// Returns true if a session may queue another I/O. Otherwise, the session must execute the I/O
    /// itself, which throttles the session to the speed of the storage.
    pub(crate) fn has_room(&self) -> bool {
        self.queued < self.bound
    }

    /// Queues an I/O.
    pub(crate) fn push(&mut self, io: Queued) {
        let at = self.count(io.class);
        self.lanes[io.lane].queues[at].push_back(io.index, io.class, &mut self.links);
    }

    /// Undoes [`Lanes::take`] by putting the I/O back at the head of its queue. We don't count the
    /// I/O as completed, so a mount that always returns EAGAIN can't earn a larger share that way.
    pub(crate) fn put_back(&mut self, io: Queued) {
        let at = self.count(io.class);
        self.lanes[io.lane].queues[at].push_front(io.index, io.class, &mut self.links);
        self.vacate(io.lane, io.class);
    }

    /// Counts an I/O that is about to be queued, and returns the number of its queue.
    fn count(&mut self, class: Class) -> usize {
        self.queued += 1;
        match class {
            Class::Log => {
                self.queued_log += 1;
                LOG
            }
            Class::Foreground => FOREGROUND,
            _ => OTHERS,
        }
    }

    /// Takes all the I/O that is still queued after a ring has failed, regardless of the lanes'
    /// shares. I/O taken this way doesn't count as busy.
    pub(crate) fn drain(&mut self) -> impl Iterator<Item = Queued> {
        std::iter::from_fn(move || {
            (0..self.lanes.len()).find_map(|lane| {
                [LOG, FOREGROUND, OTHERS].into_iter().find_map(|queue| self.pop(lane, queue))
            })
        })
    }

    /// Number of mounts with queued or running I/O.
    pub(crate) fn active(&self) -> usize {
        self.lanes.iter().filter(|lane| lane.is_active()).count()
    }

    /// Number of I/Os that have been taken but haven't finished yet.
    pub(crate) fn busy(&self) -> usize {
        self.busy
    }

    /// How many of these I/Os are the log's.
    pub(crate) fn busy_log(&self) -> usize {
        self.busy_log
    }

    /// Counts a place that a lane occupies from now on. The I/O need not have been queued here: the
    /// caller may also count other work, such as closing a file.
    pub(crate) fn occupy(&mut self, lane: usize, class: Class) {
        let log = usize::from(class == Class::Log);
        self.lanes[lane].busy += 1;
        self.lanes[lane].busy_log += log;
        self.busy += 1;
        self.busy_log += log;
    }

    fn vacate(&mut self, lane: usize, class: Class) {
        let log = usize::from(class == Class::Log);
        self.lanes[lane].busy -= 1;
        self.lanes[lane].busy_log -= log;
        self.busy -= 1;
        self.busy_log -= log;
    }

    /// Whether the lane may occupy one more place.
    pub(crate) fn may_begin(&self, lane: usize, places: &Places) -> bool {
        let lane = &self.lanes[lane];
        // We don't count the log's I/O up to its reserve, because otherwise a log that always has
        // an I/O in progress would take places away from the others.
        let in_lane = lane.busy - lane.busy_log.min(places.log_reserve);
        let in_total = self.busy - self.busy_log.min(places.log_reserve);
        let total = if in_lane == 0 { places.first } else { places.shared };
        in_lane < lane.most(places.share) && in_total < total
    }

    /// Whether the lane may occupy one more place with the log's I/O.
    fn may_begin_log(&self, lane: usize, places: &Places) -> bool {
        let busy = self.lanes[lane].busy;
        let in_reserve = busy < self.lanes[lane].most(places.share) + places.log_reserve
            && self.busy < places.first + places.log_reserve;
        in_reserve || self.may_begin(lane, places)
    }

    /// Returns the next lane in turn that has a queued I/O of the log and may begin it.
    fn log_lane(&self, places: &Places) -> Option<usize> {
        if self.queued_log == 0 {
            return None;
        }
        let waits = |&at: &usize| !self.lanes[at].queues[LOG].is_empty();
        self.turns().filter(waits).find(|&at| self.may_begin_log(at, places))
    }

    /// Returns the next lane in turn that has another queued I/O and may begin it, together with
    /// the queue whose turn it is.
    fn other_lane(&self, places: &Places) -> Option<(usize, usize)> {
        if self.queued == self.queued_log {
            return None;
        }
        let queue = |at: usize| Some((at, self.lanes[at].next_queue()?));
        self.turns().filter_map(queue).find(|&(at, _)| self.may_begin(at, places))
    }

    /// The mounts' lanes, beginning with the one whose turn it is.
    fn turns(&self) -> impl Iterator<Item = usize> {
        let next = self.next;
        (0..LANES_MAX).map(move |step| (next + step) % LANES_MAX)
    }

    /// Takes the next I/O that may begin.
    pub(crate) fn take(&mut self, places: &Places) -> Option<Queued> {
        if let Some(at) = self.log_lane(places) {
            // This doesn't change whose turn it is, because the log doesn't take part in the turns.
            return self.pop_busy(at, LOG);
        }
        let (at, queue) = self.other_lane(places)?;
        let lane = &mut self.lanes[at];
        let overtakes = queue == FOREGROUND && !lane.queues[OTHERS].is_empty();
        lane.overtaking = if overtakes { lane.overtaking + 1 } else { 0 };
        self.next = at + 1;
        self.pop_busy(at, queue)
    }

    fn pop_busy(&mut self, lane: usize, queue: usize) -> Option<Queued> {
        let io = self.pop(lane, queue)?;
        self.occupy(lane, io.class);
        Some(io)
    }

    fn pop(&mut self, lane: usize, queue: usize) -> Option<Queued> {
        let (index, class) = self.lanes[lane].queues[queue].pop_front(&self.links)?;
        self.queued -= 1;
        self.queued_log -= usize::from(queue == LOG);
        Some(Queued { lane, index, class })
    }

    /// Records that one of this lane's I/Os has completed.
    pub(crate) fn finished(&mut self, lane: usize, class: Class) {
        self.vacate(lane, class);
        let lane = &mut self.lanes[lane];
        lane.proven = lane.proven.saturating_add(1);
    }

    /// Returns true if [`Lanes::take`] would currently return an I/O. Note that this can be false
    /// even if there is queued I/O, because all the places that it may use may be occupied.
    pub(crate) fn runnable(&self, places: &Places) -> bool {
        self.log_runnable(places) || self.other_lane(places).is_some()
    }

    /// Whether [`Lanes::take`] would return an I/O of the log now.
    pub(crate) fn log_runnable(&self, places: &Places) -> bool {
        self.log_lane(places).is_some()
    }

    /// Number of I/Os queued.
    pub(crate) fn queued(&self) -> usize {
        self.queued
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Places without a bound on all lanes together.
    fn share(share: usize) -> Places {
        Places { share, shared: 1000, first: 1000, log_reserve: 2 }
    }

    fn read(lane: usize, index: u32) -> Queued {
        Queued { lane, index, class: Class::LookAhead }
    }

    /// Takes I/O until none may begin, and returns the indexes.
    fn take_all(lanes: &mut Lanes, places: &Places) -> Vec<u32> {
        std::iter::from_fn(|| lanes.take(places)).map(|io| io.index).collect()
    }

    #[test]
    fn a_lane_at_its_share_is_skipped() {
        let mut lanes = Lanes::new(16, 8);
        lanes.lanes[0].proven = 10;
        for index in 0..3 {
            lanes.push(read(0, index));
        }
        lanes.push(read(1, 10));
        assert_eq!(lanes.take(&share(2)), Some(read(0, 0)));
        assert_eq!(lanes.take(&share(2)), Some(read(1, 10)), "lanes take turns");
        assert_eq!(lanes.take(&share(2)), Some(read(0, 1)));
        assert_eq!(lanes.take(&share(2)), None, "lane 0 is at its share");
        assert!(!lanes.runnable(&share(2)));
        lanes.finished(0, Class::LookAhead);
        assert!(lanes.runnable(&share(2)));
        assert_eq!(lanes.take(&share(2)), Some(read(0, 2)));
    }

    #[test]
    fn a_lane_that_completes_nothing_may_use_one() {
        let mut lanes = Lanes::new(16, 16);
        for index in 0..4 {
            lanes.push(read(0, index));
            lanes.push(read(1, 10 + index));
        }
        assert_eq!(take_all(&mut lanes, &share(8)), [0, 10], "neither has completed anything");
        lanes.finished(1, Class::LookAhead);
        assert_eq!(take_all(&mut lanes, &share(8)), [11, 12], "one for the completed one, and one");
        lanes.put_back(read(1, 12));
        assert_eq!(take_all(&mut lanes, &share(8)), [12], "one that was put back proves nothing");
        for lane in [1, 1] {
            lanes.finished(lane, Class::LookAhead);
        }
        assert_eq!(take_all(&mut lanes, &share(8)), [13]);
        lanes.finished(1, Class::LookAhead);
        assert_eq!(lanes.take(&share(8)), None, "lane 1 has no more");
        lanes.finished(0, Class::LookAhead);
        assert_eq!(take_all(&mut lanes, &share(8)), [1, 2]);
    }

    #[test]
    fn every_lane_gets_a_place_although_others_hang() {
        let places = Places { share: 10, shared: 12, first: 14, log_reserve: 2 };
        let mut lanes = Lanes::new(128, 128);
        let queue = |lanes: &mut Lanes, lane: usize| {
            lanes.lanes[lane].proven = 100;
            (0..20).for_each(|index| lanes.push(read(lane, lane as u32 * 20 + index)));
        };
        queue(&mut lanes, 0);
        assert_eq!(take_all(&mut lanes, &places).len(), 10, "its share, although it is alone");
        queue(&mut lanes, 1);
        assert_eq!(take_all(&mut lanes, &places).len(), 2, "what is left of the shared places");
        queue(&mut lanes, 2);
        assert_eq!(take_all(&mut lanes, &places), [40], "its first place");
        lanes.finished(2, Class::LookAhead);
        assert_eq!(take_all(&mut lanes, &places), [41]);
        queue(&mut lanes, 3);
        assert_eq!(take_all(&mut lanes, &places), [60]);
    }

    #[test]
    fn the_log_goes_first_and_has_a_reserve() {
        let places = Places { share: 4, shared: 7, first: 8, log_reserve: 2 };
        let log = |lane, index| Queued { lane, index, class: Class::Log };
        let mut lanes = Lanes::new(128, 128);
        lanes.lanes[0].proven = 100;
        (0..10).for_each(|index| lanes.push(read(0, index)));
        lanes.push(log(0, 20));
        let taken = take_all(&mut lanes, &places);
        assert_eq!(taken, [20, 0, 1, 2, 3], "first, and in addition to the share");
        assert!(!lanes.runnable(&places));
        (21..26).for_each(|index| lanes.push(log(0, index)));
        assert!(lanes.log_runnable(&places));
        assert_eq!(take_all(&mut lanes, &places), [21], "the rest of the reserve");
        // The log's own mount may be the one that hangs.
        lanes.push(read(1, 40));
        lanes.push(log(2, 41));
        assert_eq!(take_all(&mut lanes, &places), [41, 40], "the other mounts' places");
        (0..3).for_each(|_| lanes.finished(0, Class::LookAhead));
        assert_eq!(take_all(&mut lanes, &places), [22, 23, 24]);
    }

    #[test]
    fn the_log_does_not_take_the_others_places() {
        let places = Places { share: 1, shared: 1, first: 1, log_reserve: 1 };
        let log = |index| Queued { lane: 0, index, class: Class::Log };
        let mut lanes = Lanes::new(16, 16);
        [log(0), log(1), read(0, 2), read(0, 3)].into_iter().for_each(|io| lanes.push(io));
        // The log always has an I/O in progress and another one queued.
        assert_eq!(take_all(&mut lanes, &places), [0, 1], "the reserve, and the only other place");
        lanes.finished(0, Class::Log);
        assert_eq!(take_all(&mut lanes, &places), [2], "one I/O of the log is in the reserve");
        lanes.push(log(4));
        assert_eq!(take_all(&mut lanes, &places), [0; 0]);
        lanes.finished(0, Class::Log);
        assert_eq!(take_all(&mut lanes, &places), [4]);
        lanes.finished(0, Class::LookAhead);
        assert_eq!(take_all(&mut lanes, &places), [3]);
    }

    /// All places of a ring are `first` and the reserve, however many mounts have a log.
    #[test]
    fn the_logs_of_all_mounts_share_one_reserve() {
        let places = Places { share: 4, shared: 7, first: 8, log_reserve: 2 };
        let mut lanes = Lanes::new(128, 128);
        for lane in [0, 1] {
            lanes.lanes[lane].proven = 100;
            (0..10).for_each(|index| lanes.push(read(lane, lane as u32 * 10 + index)));
        }
        assert_eq!(take_all(&mut lanes, &places).len(), 7);
        for lane in 0..4 {
            lanes.push(Queued { lane, index: 20 + lane as u32, class: Class::Log });
        }
        let taken: Vec<Queued> = std::iter::from_fn(|| lanes.take(&places)).collect();
        assert_eq!((taken.len(), lanes.busy()), (3, places.first + places.log_reserve));
        assert!(!lanes.log_runnable(&places), "there is no place for the fourth log");
        lanes.finished(taken[0].lane, Class::Log);
        assert_eq!(take_all(&mut lanes, &places).len(), 1);
    }

    #[test]
    fn foreground_reads_overtake_three_times_in_a_row() {
        let mut lanes = Lanes::new(128, 128);
        lanes.lanes[0].proven = 100;
        (0..3).for_each(|index| lanes.push(read(0, index)));
        for index in 10..17 {
            lanes.push(Queued { lane: 0, index, class: Class::Foreground });
        }
        let order = take_all(&mut lanes, &share(100));
        assert_eq!(order, [10, 11, 12, 0, 13, 14, 15, 1, 16, 2]);
    }

    #[test]
    fn a_failed_ring_gives_all_of_its_queue_away() {
        let mut lanes = Lanes::new(16, 16);
        let all = [Class::Checkpoint, Class::Foreground, Class::Log, Class::Log];
        for (index, class) in (0..).zip(all) {
            lanes.push(Queued { lane: index as usize % 2, index, class });
        }
        let mut drained: Vec<u32> = lanes.drain().map(|io| io.index).collect();
        drained.sort_unstable();
        assert_eq!((drained, lanes.queued(), lanes.busy()), (vec![0, 1, 2, 3], 0, 0));
    }
}
