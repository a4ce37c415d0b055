//! The worker pool's roster: it records which workers are busy or idle and which I/O is queued, and
//! makes every scheduling decision. It follows PostgreSQL 19's `method_worker.c`, which also grows
//! and shrinks its pool with the load.
//!
//! **Waking.** Submitting a batch wakes at most one worker: the idle worker with the lowest number.
//! When that worker takes a job and sees more queued I/O, it wakes one idle worker with a higher
//! number than its own. It does so only while its own wake-ups have mostly found work; otherwise it
//! leaves the decision to the supervisor. Wake-ups thus form a chain that grows with the load.
//! Surplus workers stay asleep, and a batch costs its session just one futex call, whatever the
//! batch size.
//!
//! **Size.** When there is work but no idle worker, the supervisor starts one worker per launch
//! interval, up to `io_max_workers`. A worker that has spent a second in one I/O is considered
//! stuck and no longer counts towards that limit, so that a hung mount can't use up the pool.
//! The mount's share still bounds how many workers can hang there. The highest-numbered worker
//! leaves once it has been idle for the idle timeout, unless only `io_min_workers` are left.
//! Because work always goes to the lowest-numbered idle worker, the highest-numbered one is the
//! least useful.
//!
//! This file has no threads and no locks: `worker_pool` puts the roster behind a lock, and
//! `method::worker` runs the threads. All decisions are functions of the roster and the time, so
//! they can be tested without threads.

use crate::clock::Time;
use crate::completion::lanes::Lanes;
use crate::facade::thread;
use crate::limits::{STUCK_AFTER_MS, WORKERS_MAX};
use crate::storage::file::AbandonedFile;
use crate::tables::deferred::DeferredDrops;
use std::time::Duration;

/// The supervisor's minimum pause while there is work that no worker has taken. It keeps the
/// supervisor from spinning if the launch interval is set to zero.
const LOOK_AGAIN_MIN: Duration = Duration::from_millis(1);

/// The worker pool's settings. All of them can be changed at run time.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct WorkerSettings {
    /// `io_min_workers`: workers that stay even when idle; 1 to 256.
    pub min: usize,
    /// `io_max_workers`: maximum number of workers, not counting stuck ones; `min` to 256.
    pub max: usize,
    /// `io_worker_idle_timeout`: how long a worker above `min` stays idle before it leaves.
    pub idle_timeout: Duration,
    /// `io_worker_launch_interval`: minimum time between two launches.
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
    /// These settings with `min` and `max` clamped to their ranges.
    fn clamped(self) -> Self {
        let min = self.min.clamp(1, WORKERS_MAX);
        Self { min, max: self.max.clamp(min, WORKERS_MAX), ..self }
    }
}

/// Which thread to wake. The roster's methods return it, and the caller signals that thread after
/// releasing the roster's lock. Otherwise the woken thread would immediately block on the lock.
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
    /// Close a file its last user could not close, because it was completing I/O.
    Close(AbandonedFile),
    Sleep {
        timeout: Option<Duration>,
    },
    /// Exit the thread, after waking another one.
    Leave(Wake),
}

/// What the supervisor does next.
#[derive(Debug, PartialEq, Eq)]
pub(crate) enum Decision {
    /// Start the worker with this number, which has already been claimed.
    Launch(usize),
    /// Wake an idle worker, and decide again after this time at the latest.
    Wake(Wake, Duration),
    /// Decide again after this time or at the next signal, whichever comes first. `None` means to
    /// wait for a signal, without a timeout.
    Wait(Option<Duration>),
}

/// The pool's workers, queue and settings.
#[derive(Debug)]
pub(crate) struct Roster {
    settings: WorkerSettings,
    lanes: Lanes,
    /// All workers, indexed by worker number. Contains an element for every worker that could ever
    /// be started.
    workers: Vec<Worker>,
    /// When a thread was last started, to enforce the launch interval.
    last_launch: Option<Time>,
    /// Set when there was work but no idle worker, and the supervisor was notified. The flag stays
    /// set until a worker finds nothing to do, so that a busy pool doesn't signal the supervisor
    /// for every batch.
    growth_wanted: bool,
}

/// The slot of a possible worker: PostgreSQL's `PgAioWorkerSlot`.
#[derive(Debug, Default)]
struct Worker {
    thread: Option<thread::JoinHandle>,
    /// A thread with this number exists or is about to be started.
    live: bool,
    /// Set while the worker is asleep or about to sleep, until another thread wakes it. The waking
    /// thread clears this flag under the roster's lock, so that no other thread chooses the same
    /// worker.
    idle: bool,
    /// The lane the worker is executing I/O for, and since when.
    busy: Option<(usize, Time)>,
    /// Recent wake-ups and recent jobs; their ratio shows whether wake-ups find work. Both are
    /// halved when either reaches four, so that the ratio follows the current load.
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

    /// Number of live workers.
    pub(crate) fn live(&self) -> usize {
        self.workers.iter().filter(|worker| worker.live).count()
    }

    /// How many workers one mount may use: all of them while it is the only mount with I/O,
    /// otherwise three quarters. The last quarter stays available to the other mounts if this mount
    /// hangs.
    fn share(&self) -> usize {
        let max = self.settings.max;
        if self.lanes.active() <= 1 { max } else { (max * 3 / 4).max(1) }
    }

    /// The current limit on the number of workers. Stuck workers may be replaced, so each of them
    /// raises the limit by one.
    fn bound(&self, now: Time) -> usize {
        self.settings.max + self.stuck(now)
    }

    /// Number of stuck workers: workers that have spent more than [`STUCK_AFTER_MS`] in one I/O.
    fn stuck(&self, now: Time) -> usize {
        let limit = Duration::from_millis(STUCK_AFTER_MS);
        let is_stuck = |worker: &&Worker| worker.busy.is_some_and(|(_, at)| now.since(at) > limit);
        self.workers.iter().filter(is_stuck).count()
    }

    /// Time until the next busy worker counts as stuck. If no worker will, we assume that some
    /// worker becomes busy right now. The extra millisecond ensures that the limit has passed when
    /// the supervisor checks again.
    fn next_stuck(&self, now: Time) -> Duration {
        let limit = Duration::from_millis(STUCK_AFTER_MS);
        let busy = self.workers.iter().filter_map(|worker| worker.busy);
        let left = busy.filter_map(|(_, at)| limit.checked_sub(now.since(at))).min();
        left.unwrap_or(limit) + Duration::from_millis(1)
    }

    /// Claims a worker number for a thread that is about to be started. Returns false if a live
    /// worker has that number. Because we claim the number before starting the thread, no two
    /// threads can start the same worker, and the new thread finds itself marked live.
    pub(crate) fn claim_place(&mut self, id: usize) -> bool {
        let vacant = !self.workers[id].live;
        if vacant {
            self.workers[id] = Worker { live: true, ..Worker::default() };
        }
        vacant
    }

    /// Records whether the claimed worker's thread could be started. After a failed start, too, the
    /// supervisor waits for the launch interval before it starts another worker.
    ///
    /// We don't mark the worker live here, because `claim_place` has done that already. The new
    /// thread may since have found the pool too large and left. If we marked its worker live again,
    /// nothing would ever clear the mark. The pool would count that phantom as its highest worker,
    /// and would neither shrink nor replace a stuck worker.
    pub(crate) fn launched(&mut self, id: usize, thread: Option<thread::JoinHandle>, now: Time) {
        self.last_launch = Some(now);
        match thread {
            Some(thread) => self.workers[id].thread = Some(thread),
            None => self.workers[id].live = false,
        }
    }

    /// Returns all workers' threads, for shutdown to join. This includes workers that have left,
    /// unless their number has been reused.
    pub(crate) fn take_threads(&mut self) -> Vec<thread::JoinHandle> {
        self.workers.iter_mut().filter_map(|worker| worker.thread.take()).collect()
    }

    /// Chooses the lowest-numbered idle worker whose number is at least `from`, and marks it as
    /// woken. If no worker is idle, asks the supervisor to grow the pool.
    pub(crate) fn wake_one(&mut self, from: usize) -> Wake {
        if let Some(id) = (from..self.workers.len()).find(|&id| self.workers[id].idle) {
            let worker = &mut self.workers[id];
            worker.idle = false;
            worker.wakeups += 1;
            return Wake::Worker(id);
        }
        self.ask_supervisor()
    }

    /// Propagates a wake-up to a higher-numbered worker, if worker `id`'s own wake-ups have mostly
    /// found work. If they haven't, the load is too low for another worker, and the supervisor
    /// decides whether the queued I/O has waited too long.
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

    /// Records that a worker has finished a job. If the job occupied a place in a lane, the place
    /// becomes free again.
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

    /// Marks the worker as gone. Returns a wake-up for the live worker with the next lower number.
    /// That worker now has the highest number, so it may be surplus too.
    fn leave(&mut self, id: usize) -> Wake {
        self.workers[id].live = false;
        self.workers[id].idle = false;
        (0..id).rev().find(|&id| self.workers[id].live).map_or(Wake::None, Wake::Worker)
    }

    /// Records that a worker woke up, after a signal or after its timeout.
    pub(crate) fn awake(&mut self, id: usize) {
        self.workers[id].idle = false;
    }

    /// Decides whether a worker whose idle timeout has passed should leave the pool. If so, returns
    /// the thread to wake; otherwise `None`.
    pub(crate) fn leave_if_surplus(&mut self, id: usize) -> Option<Wake> {
        // If the worker is no longer marked idle, another thread has just chosen it for a wake-up
        // and relies on it to take the work, so it must not leave.
        let surplus = self.workers[id].idle && self.is_highest(id);
        (surplus && self.live() > self.settings.min).then(|| self.leave(id))
    }

    /// Chooses worker `id`'s next job. Queued I/O takes precedence over abandoned files, because
    /// sessions wait for I/O but never for a close.
    pub(crate) fn next_job(
        &mut self,
        id: usize,
        now: Time,
        deferred: &DeferredDrops,
        stopping: bool,
    ) -> Job {
        // The limits were lowered, or stuck workers have recovered. Only the highest-numbered
        // worker leaves, so that the live workers keep the lowest numbers.
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

    /// Decides whether the supervisor starts a worker now, and when it must decide again. One
    /// function makes both decisions, because if they disagreed the supervisor could spin.
    ///
    /// While there is work that no worker has taken, the supervisor must never sleep without a
    /// timeout, because the thread that should signal it may itself be hanging.
    ///
    /// `has_ready` checks the ready set. The caller must hold the roster's lock, so that this check
    /// runs under it. A completing thread first adds its I/O to the ready set and then, under the
    /// same lock, asks the supervisor to grow the pool. It skips the signal if `growth_wanted` is
    /// already set. If we checked before taking the lock, we could miss that I/O and then clear
    /// `growth_wanted`, so that the supervisor would sleep although I/O is ready.
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
