//! The roster of the worker pool: which workers are busy or idle, what is queued, and every decision.
//!
//! **Waking.** Submitting a batch wakes at most one worker, the lowest idle one. A worker that takes
//! a job and sees more queued wakes one idle worker with a higher number than its own. It does so
//! only while its own wake-ups have mostly found work; otherwise it leaves the decision to the
//! supervisor. So the load decides how many workers are active, the rest sleep undisturbed, and a
//! batch costs its session one futex call whatever its size.
//!
//! **Size.** When there is work and no idle worker, the supervisor starts one worker per launch
//! interval, up to `io_max_workers`. A worker that has been in one I/O for a second counts as stuck
//! and no longer counts towards that limit; the share of its mount still bounds it. The highest
//! worker above `io_min_workers` leaves when it has been idle for the idle timeout.
//!
//! This file has no threads and no locks: `worker_pool` puts the roster behind a lock, and
//! `method::worker` runs the threads.

use crate::clock::Time;
use crate::completion::lanes::Lanes;
use crate::limits::{STUCK_AFTER_MS, WORKERS_MAX};
use crate::storage::file::AbandonedFile;
use crate::sync::thread;
use crate::tables::deferred::DeferredDrops;
use std::time::Duration;

/// The shortest time between two looks at work that no worker takes.
const LOOK_AGAIN_MIN: Duration = Duration::from_millis(1);

/// The settings of the worker pool. All can be changed while it runs.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct WorkerSettings {
    /// `io_min_workers`: workers that stay even if idle; 1 to 256.
    pub min: usize,
    /// `io_max_workers`: upper limit of workers, without stuck ones; `min` to 256.
    pub max: usize,
    /// `io_worker_idle_timeout`: how long a worker above `min` is idle before it leaves.
    pub idle_timeout: Duration,
    /// `io_worker_launch_interval`: time between two launches.
    pub launch_interval: Duration,
}

impl Default for WorkerSettings {
    /// The defaults of PostgreSQL 19.
    fn default() -> Self {
        Self {
            min: 2,
            max: 8,
            idle_timeout: Duration::from_secs(60),
            launch_interval: Duration::from_millis(100),
        }
    }
}

impl WorkerSettings {
    /// The settings with `min` and `max` forced into their ranges.
    fn clamped(self) -> Self {
        let min = self.min.clamp(1, WORKERS_MAX);
        Self { min, max: self.max.clamp(min, WORKERS_MAX), ..self }
    }
}

/// Which thread to wake after the lock on the roster has been released.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Wake {
    None,
    Worker(usize),
    Supervisor,
}

/// What a worker does next.
pub(crate) enum Job {
    /// Execute the I/O of this handle, after waking another thread.
    Execute {
        index: u32,
        wake: Wake,
    },
    Close(AbandonedFile),
    Sleep {
        timeout: Option<Duration>,
    },
    /// End the thread, after waking another one.
    Leave(Wake),
}

/// What the supervisor does next.
#[derive(Debug, PartialEq, Eq)]
pub(crate) enum Decision {
    /// Start a worker in this place, which has been claimed for it.
    Launch(usize),
    /// Wake an idle worker, and look again after this time.
    Wake(Wake, Duration),
    /// Look again after this time, or at the next signal.
    Wait(Option<Duration>),
}

/// Workers, queue and settings of the pool.
#[derive(Debug)]
pub(crate) struct Roster {
    settings: WorkerSettings,
    lanes: Lanes,
    workers: Vec<Worker>,
    last_launch: Option<Time>,
    /// There was work and no idle worker. Stays set until a worker finds nothing to do, so that a
    /// busy pool does not signal the supervisor for every batch.
    growth_wanted: bool,
}

#[derive(Debug, Default)]
struct Worker {
    thread: Option<thread::JoinHandle>,
    live: bool,
    idle: bool,
    /// The lane that it executes for, and since when.
    busy: Option<(usize, Time)>,
    /// Recent wake-ups and recent jobs. Both are halved when either reaches four.
    wakeups: u32,
    jobs: u32,
}

impl Roster {
    /// A roster for an instance with `handles` handles. From `queue` queued I/Os on, sessions
    /// execute their own.
    pub(crate) fn new(settings: WorkerSettings, handles: usize, queue: usize) -> Self {
        Self {
            settings: settings.clamped(),
            lanes: Lanes::new(handles, queue),
            workers: (0..WORKERS_MAX).map(|_| Worker::default()).collect(),
            last_launch: None,
            growth_wanted: false,
        }
    }

    pub(crate) fn change_settings(&mut self, settings: WorkerSettings) {
        self.settings = settings.clamped();
    }

    pub(crate) fn lanes(&mut self) -> &mut Lanes {
        &mut self.lanes
    }

    /// Number of I/Os queued.
    pub(crate) fn queued(&self) -> usize {
        self.lanes.queued()
    }

    /// Number of live workers.
    pub(crate) fn live(&self) -> usize {
        self.workers.iter().filter(|worker| worker.live).count()
    }

    /// The most workers that one mount may use: all of them while only one mount has I/O.
    fn share(&self) -> usize {
        let max = self.settings.max;
        if self.lanes.active() <= 1 { max } else { (max * 3 / 4).max(1) }
    }

    /// How many workers there may be now.
    fn bound(&self, now: Time) -> usize {
        self.settings.max + self.stuck(now)
    }

    /// Number of workers that have been in one I/O for too long.
    fn stuck(&self, now: Time) -> usize {
        let limit = Duration::from_millis(STUCK_AFTER_MS);
        let is_stuck = |worker: &&Worker| worker.busy.is_some_and(|(_, at)| now.since(at) > limit);
        self.workers.iter().filter(is_stuck).count()
    }

    /// How long until the next busy worker counts as stuck, or one that becomes busy now.
    fn next_stuck(&self, now: Time) -> Duration {
        let limit = Duration::from_millis(STUCK_AFTER_MS);
        let busy = self.workers.iter().filter_map(|worker| worker.busy);
        let left = busy.filter_map(|(_, at)| limit.checked_sub(now.since(at))).min();
        left.unwrap_or(limit) + Duration::from_millis(1)
    }

    /// Claims a place for a worker about to be started; false if it is taken.
    pub(crate) fn claim_place(&mut self, id: usize) -> bool {
        let vacant = !self.workers[id].live;
        if vacant {
            self.workers[id] = Worker { live: true, ..Worker::default() };
        }
        vacant
    }

    /// Records the result of starting a worker in a claimed place.
    pub(crate) fn launched(&mut self, id: usize, thread: Option<thread::JoinHandle>, now: Time) {
        self.last_launch = Some(now);
        self.workers[id].live = thread.is_some();
        self.workers[id].thread = thread;
    }

    /// The threads of all workers, to be joined.
    pub(crate) fn take_threads(&mut self) -> Vec<thread::JoinHandle> {
        self.workers.iter_mut().filter_map(|worker| worker.thread.take()).collect()
    }

    /// Chooses the lowest idle worker with number `from` or higher. If there is none, asks the
    /// supervisor for growth.
    pub(crate) fn wake_one(&mut self, from: usize) -> Wake {
        if let Some(id) = (from..self.workers.len()).find(|&id| self.workers[id].idle) {
            let worker = &mut self.workers[id];
            worker.idle = false;
            worker.wakeups += 1;
            return Wake::Worker(id);
        }
        self.ask_supervisor()
    }

    /// Propagates a wake-up to a higher worker, if the wake-ups of worker `id` have mostly found
    /// work.
    pub(crate) fn wake_above(&mut self, id: usize) -> Wake {
        if self.workers[id].wakeups > self.workers[id].jobs.max(1) {
            return self.ask_supervisor();
        }
        self.wake_one(id + 1)
    }

    fn ask_supervisor(&mut self) -> Wake {
        if self.growth_wanted {
            return Wake::None;
        }
        self.growth_wanted = true;
        Wake::Supervisor
    }

    /// A worker has done something useful, on its lane if it executed I/O.
    pub(crate) fn job_done(&mut self, id: usize) {
        let worker = &mut self.workers[id];
        worker.jobs += 1;
        if worker.wakeups >= 4 || worker.jobs >= 4 {
            worker.wakeups /= 2;
            worker.jobs /= 2;
        }
        if let Some((lane, _)) = worker.busy.take() {
            self.lanes.finished(lane);
        }
    }

    fn is_highest(&self, id: usize) -> bool {
        !self.workers[id + 1..].iter().any(|worker| worker.live)
    }

    /// The worker leaves. Wakes the next highest one, which may be surplus too.
    fn leave(&mut self, id: usize) -> Wake {
        self.workers[id].live = false;
        self.workers[id].idle = false;
        (0..id).rev().find(|&id| self.workers[id].live).map_or(Wake::None, Wake::Worker)
    }

    /// A worker woke up, after a signal or after its timeout.
    pub(crate) fn awake(&mut self, id: usize) {
        self.workers[id].idle = false;
    }

    /// The idle timeout of a worker has passed. Returns the thread to wake if the worker must leave.
    pub(crate) fn leave_if_surplus(&mut self, id: usize) -> Option<Wake> {
        // Not idle any more means that it has just been chosen for a wake-up.
        let surplus = self.workers[id].idle && self.is_highest(id);
        (surplus && self.live() > self.settings.min).then(|| self.leave(id))
    }

    /// Chooses what worker `id` does next.
    pub(crate) fn next_job(
        &mut self,
        id: usize,
        now: Time,
        deferred: &DeferredDrops,
        stopping: bool,
    ) -> Job {
        if self.is_highest(id) && self.live() > self.bound(now) {
            return Job::Leave(self.leave(id));
        }
        let share = self.share();
        if let Some((lane, index)) = self.lanes.take(share) {
            self.workers[id].busy = Some((lane, now));
            let more = self.lanes.runnable(share);
            let wake = if more { self.wake_above(id) } else { Wake::None };
            return Job::Execute { index, wake };
        }
        if let Some(file) = deferred.take_file(|lane| self.lanes.may_begin(lane, share)) {
            self.lanes.begin(file.lane());
            self.workers[id].busy = Some((file.lane(), now));
            return Job::Close(file);
        }
        if stopping {
            self.leave(id);
            return Job::Leave(Wake::None);
        }
        self.growth_wanted = false;
        self.workers[id].idle = true;
        let timed = self.is_highest(id) && self.live() > self.settings.min;
        Job::Sleep { timeout: timed.then_some(self.settings.idle_timeout) }
    }

    /// Decides whether to start a worker now and when to look again. One function decides both, so
    /// that the two cannot disagree and spin.
    ///
    /// As long as there is work that no worker has taken, the result is never "wait for a signal":
    /// the thread that would send it may be the one that hangs.
    pub(crate) fn decide(&mut self, now: Time, ready: bool) -> Decision {
        let vacant = self.workers.iter().position(|worker| !worker.live);
        if let Some(vacant) = vacant
            && self.live() < self.settings.min
        {
            self.claim_place(vacant);
            return Decision::Launch(vacant);
        }
        let work = self.lanes.runnable(self.share()) || ready;
        if !work {
            self.growth_wanted = false;
            return Decision::Wait(None);
        }
        let interval = self.settings.launch_interval;
        if self.workers.iter().any(|worker| worker.idle) {
            return Decision::Wake(self.wake_one(0), interval.max(LOOK_AGAIN_MIN));
        }
        let Some(vacant) = vacant.filter(|_| self.live() < self.bound(now)) else {
            return Decision::Wait(Some(self.next_stuck(now).max(LOOK_AGAIN_MIN)));
        };
        let since = self.last_launch.map_or(Duration::MAX, |at| now.since(at));
        match interval.checked_sub(since) {
            Some(left) if !left.is_zero() => Decision::Wait(Some(left)),
            _ => {
                self.claim_place(vacant);
                Decision::Launch(vacant)
            }
        }
    }
}
