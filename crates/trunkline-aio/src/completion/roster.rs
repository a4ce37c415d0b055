//! The roster of the worker pool: which workers are busy or idle, which I/O is queued, and every
//! scheduling decision. It follows PostgreSQL 19's `method_worker.c`, which also grows and shrinks
//! its pool with the load.
//!
//! **Waking.** Submitting a batch wakes at most one worker, the idle one with the lowest number. A
//! worker that takes a job and sees more queued I/O wakes one idle worker with a higher number than
//! its own. It does so only while its own wake-ups have mostly found work; otherwise it leaves the
//! decision to the supervisor. Wake-ups thus spread like a chain that grows with the load. Workers
//! that are not needed keep sleeping, and a batch costs its session one futex call, whatever the
//! batch size.
//!
//! **Size.** When there is work and no idle worker, the supervisor starts one worker per launch
//! interval, up to `io_max_workers`. A worker that has been in one I/O for a second counts as stuck
//! and no longer counts towards that limit, so that a hanging mount does not use up the pool. That
//! mount's share still bounds the number of workers that hang there. The worker with the highest
//! number leaves when it has been idle for the idle timeout, unless only `io_min_workers` are left.
//! Because work always goes to the lowest idle worker, the highest one is the least useful.
//!
//! This file has no threads and no locks: `worker_pool` puts the roster behind a lock, and
//! `method::worker` runs the threads. All decisions are functions of the roster and the time, so
//! they can be tested without threads.

use crate::clock::Time;
use crate::completion::lanes::Lanes;
use crate::limits::{STUCK_AFTER_MS, WORKERS_MAX};
use crate::storage::file::AbandonedFile;
use crate::sync::thread;
use crate::tables::deferred::DeferredDrops;
use std::time::Duration;

/// The supervisor's shortest pause while there is work that no worker has taken. It keeps the
/// supervisor from spinning if the launch interval is set to zero.
const LOOK_AGAIN_MIN: Duration = Duration::from_millis(1);

/// The worker pool's settings. All can be changed while it runs.
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

/// Which thread to wake. Methods of the roster return it, and the caller signals the thread after
/// it has released the roster's lock, so that the woken thread does not block on that lock
/// immediately.
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
    /// Close a file that its last user could not close, because it was completing I/O.
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
    /// Start a worker with this number. The number has been claimed for it.
    Launch(usize),
    /// Wake an idle worker, and decide again after this time at the latest.
    Wake(Wake, Duration),
    /// Decide again after this time, or at the next signal if there is no time.
    Wait(Option<Duration>),
}

/// Workers, queue and settings of the pool.
#[derive(Debug)]
pub(crate) struct Roster {
    settings: WorkerSettings,
    lanes: Lanes,
    /// By worker number. It has an element for every worker that there can ever be.
    workers: Vec<Worker>,
    /// When a thread was last started, to respect the launch interval.
    last_launch: Option<Time>,
    /// There was work and no idle worker, and the supervisor has been notified. It stays set until
    /// a worker finds nothing to do, so that a busy pool does not signal the supervisor for every
    /// batch.
    growth_wanted: bool,
}

/// One possible worker. PostgreSQL's `PgAioWorkerSlot`.
#[derive(Debug, Default)]
struct Worker {
    thread: Option<thread::JoinHandle>,
    /// A thread exists, or is about to be started, under this number.
    live: bool,
    /// The worker sleeps or is about to, and nothing has woken it since. The thread that wakes it
    /// clears this under the roster's lock, so that no other thread chooses the same worker.
    idle: bool,
    /// The lane that the worker executes I/O for, and since when.
    busy: Option<(usize, Time)>,
    /// Recent wake-ups and recent jobs; their ratio shows whether wake-ups find work. Both are
    /// halved when either reaches four, so that the ratio follows the present load.
    wakeups: u32,
    jobs: u32,
}

impl Roster {
    /// Creates the roster of an instance with `handles` handles. When `queue` or more I/Os are
    /// queued, sessions execute their own I/O.
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

    /// The most workers that one mount may use: all of them while only one mount has I/O, three
    /// quarters otherwise. The last quarter stays available to the other mounts if this one hangs.
    fn share(&self) -> usize {
        let max = self.settings.max;
        if self.lanes.active() <= 1 { max } else { (max * 3 / 4).max(1) }
    }

    /// How many workers there may be now. Stuck workers are replaced, so they raise the bound.
    fn bound(&self, now: Time) -> usize {
        self.settings.max + self.stuck(now)
    }

    /// Number of stuck workers: those that have been in one I/O for longer than [`STUCK_AFTER_MS`].
    fn stuck(&self, now: Time) -> usize {
        let limit = Duration::from_millis(STUCK_AFTER_MS);
        let is_stuck = |worker: &&Worker| worker.busy.is_some_and(|(_, at)| now.since(at) > limit);
        self.workers.iter().filter(is_stuck).count()
    }

    /// Time until the next busy worker counts as stuck, assuming that a worker that is about to
    /// become busy does so now. The extra millisecond makes sure that the limit has passed when the
    /// supervisor looks again.
    fn next_stuck(&self, now: Time) -> Duration {
        let limit = Duration::from_millis(STUCK_AFTER_MS);
        let busy = self.workers.iter().filter_map(|worker| worker.busy);
        let left = busy.filter_map(|(_, at)| limit.checked_sub(now.since(at))).min();
        left.unwrap_or(limit) + Duration::from_millis(1)
    }

    /// Claims a worker number for a thread that is about to be started. Returns false if a live
    /// worker has it. Claiming before starting keeps two threads from starting the same worker, and
    /// lets the new thread find itself live.
    pub(crate) fn claim_place(&mut self, id: usize) -> bool {
        let vacant = !self.workers[id].live;
        if vacant {
            self.workers[id] = Worker { live: true, ..Worker::default() };
        }
        vacant
    }

    /// Records whether a claimed worker's thread could be started. A refused thread also counts for
    /// the launch interval.
    ///
    /// A started thread doesn't make the worker live; `claim_place` did that. The thread may already
    /// have found the pool too large and left, and nothing would ever clear the mark again. The pool
    /// would count that phantom as its highest worker, and neither shrink nor replace a stuck one.
    pub(crate) fn launched(&mut self, id: usize, thread: Option<thread::JoinHandle>, now: Time) {
        self.last_launch = Some(now);
        match thread {
            Some(thread) => self.workers[id].thread = Some(thread),
            None => self.workers[id].live = false,
        }
    }

    /// The threads of all workers, for shutdown to join. A worker that has left is among them until
    /// its number is reused.
    pub(crate) fn take_threads(&mut self) -> Vec<thread::JoinHandle> {
        self.workers.iter_mut().filter_map(|worker| worker.thread.take()).collect()
    }

    /// Chooses the lowest-numbered idle worker from `from` on, and marks it as woken. If there is
    /// none, it asks the supervisor for growth.
    pub(crate) fn wake_one(&mut self, from: usize) -> Wake {
        if let Some(id) = (from..self.workers.len()).find(|&id| self.workers[id].idle) {
            let worker = &mut self.workers[id];
            worker.idle = false;
            worker.wakeups += 1;
            return Wake::Worker(id);
        }
        self.ask_supervisor()
    }

    /// Propagates a wake-up to a worker with a higher number, if the wake-ups of worker `id` have
    /// mostly found work. If they have not, the load is too low for another worker; the supervisor
    /// decides whether the queued I/O waits too long.
    pub(crate) fn wake_above(&mut self, id: usize) -> Wake {
        if self.workers[id].wakeups > self.workers[id].jobs.max(1) {
            return self.ask_supervisor();
        }
        self.wake_one(id + 1)
    }

    /// Returns a wake-up for the supervisor, unless it has been notified already.
    fn ask_supervisor(&mut self) -> Wake {
        if self.growth_wanted {
            return Wake::None;
        }
        self.growth_wanted = true;
        Wake::Supervisor
    }

    /// Records that a worker has finished a job. If the job occupied a lane, the lane gets its
    /// place back.
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

    /// Marks the worker as gone. Returns a wake-up for the live worker with the next lower number,
    /// which is now the highest and may be surplus too.
    fn leave(&mut self, id: usize) -> Wake {
        self.workers[id].live = false;
        self.workers[id].idle = false;
        (0..id).rev().find(|&id| self.workers[id].live).map_or(Wake::None, Wake::Worker)
    }

    /// Records that a worker woke up, after a signal or after its timeout.
    pub(crate) fn awake(&mut self, id: usize) {
        self.workers[id].idle = false;
    }

    /// Decides whether a worker that has reached its idle timeout leaves. Returns the thread to
    /// wake if it does.
    pub(crate) fn leave_if_surplus(&mut self, id: usize) -> Option<Wake> {
        // If it is not idle any more, another thread has just chosen it for a wake-up and counts on
        // it.
        let surplus = self.workers[id].idle && self.is_highest(id);
        (surplus && self.live() > self.settings.min).then(|| self.leave(id))
    }

    /// Chooses the next job of worker `id`. Queued I/O comes before abandoned files, because
    /// sessions wait for I/O and not for a close.
    pub(crate) fn next_job(
        &mut self,
        id: usize,
        now: Time,
        deferred: &DeferredDrops,
        stopping: bool,
    ) -> Job {
        // The limits were lowered, or stuck workers have recovered. Only the highest worker leaves,
        // so that the live workers keep the lowest numbers.
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
        // This worker found nothing to do, so the pool is large enough again.
        self.growth_wanted = false;
        self.workers[id].idle = true;
        let timed = self.is_highest(id) && self.live() > self.settings.min;
        Job::Sleep { timeout: timed.then_some(self.settings.idle_timeout) }
    }

    /// Decides whether the supervisor starts a worker now, and when it decides again. One function
    /// decides both, so that the two cannot disagree and make the supervisor spin.
    ///
    /// As long as there is work that no worker has taken, the result is never to wait for a signal
    /// without a timeout: the thread that would send the signal may be the one that hangs.
    ///
    /// `has_ready` looks at the ready set. It must run under the roster's lock, which the caller
    /// holds: a completing thread adds to the ready set first and then asks for growth under that
    /// lock. If we looked before taking the lock, we could miss its I/O and yet clear the
    /// `growth_wanted` that made it skip the signal.
    pub(crate) fn decide(&mut self, now: Time, has_ready: impl FnOnce() -> bool) -> Decision {
        let vacant = self.workers.iter().position(|worker| !worker.live);
        if let Some(vacant) = vacant
            && self.live() < self.settings.min
        {
            self.claim_place(vacant);
            return Decision::Launch(vacant);
        }
        let work = self.lanes.runnable(self.share()) || has_ready();
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

#[cfg(all(test, not(loom)))]
mod tests {
    use super::*;
    use crate::clock;

    #[test]
    fn a_worker_that_left_before_its_launch_was_recorded_stays_gone() {
        let mut roster = Roster::new(WorkerSettings::default(), 8, 8);
        assert!(roster.claim_place(0));
        let thread = thread::spawn_internal("worker", || ()).expect("a thread");
        // The new worker finds the pool too large and leaves before the supervisor gets back here.
        roster.leave(0);
        roster.launched(0, Some(thread), clock::now());
        assert_eq!(roster.live(), 0, "no thread stands behind a live worker");
        assert!(roster.claim_place(0), "the place can be used again");
        assert_eq!(roster.take_threads().len(), 0, "the next worker has not started yet");
    }
}
