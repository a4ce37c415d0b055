//! The worker pool's roster: keeps track of which workers are busy or idle and which I/O is queued,
//! and makes all scheduling decisions. It is modelled on PostgreSQL 19's `method_worker.c`, where
//! the pool also grows and shrinks with the load.
//!
//! **Waking.** When a batch is submitted, we wake at most one worker: the idle worker with the
//! lowest number. If that worker sees more queued I/O when it takes a job, it wakes one idle worker
//! with a higher number than its own. However, it does so only as long as its own wake-ups have
//! mostly found work. Otherwise it leaves it to the supervisor to decide whether more workers are
//! needed. This way, one wake-up leads to the next as the load grows, while workers we don't need
//! stay asleep. Submitting a batch costs the session only one futex call, no matter how large the
//! batch is.
//!
//! **Size.** If there is work but no worker is idle, the supervisor starts one worker per launch
//! interval, up to `io_max_workers`. We consider a worker stuck if it has spent a second in one
//! I/O. Stuck workers don't count towards the limit, so a hung mount can't use up the pool. The
//! number of workers that can hang on one mount is still bounded by the mount's share. The worker
//! with the highest number exits after it has been idle for the idle timeout, but at least
//! `io_min_workers` always remain. We pick the highest-numbered worker because it is the least
//! useful one: work always goes to the idle worker with the lowest number.
//!
//! **The log.** If no worker is idle when the log's I/O is queued, the supervisor starts one right
//! away, even if this exceeds `io_max_workers` by one. The places of the other I/O don't become
//! fewer while the log's I/O is in progress.
//!
//! **Calls.** The pool also makes blocking calls for sessions, such as open(2). They aren't I/O and
//! have no handle. The log's I/O goes first, then calls, and then all other I/O, because calls are
//! rare and a session waits for each of them. A call occupies a place of its lane like an I/O.
//!
//! There are no threads and no locks in this file. `worker_pool` protects the roster with a lock,
//! and `method::worker` runs the threads. Since each decision depends only on the roster and the
//! current time, we can test all of them without starting any threads.

use crate::clock::Time;
use crate::completion::lanes::{Lanes, Places, Queued};
use crate::facade::thread;
use crate::limits::{
    CALL_LANES_MAX, LANES_MAX, LOG_WORKERS, STUCK_AFTER_MS, WORKER_PLACES, WORKERS_MAX,
};
use crate::storage::file::AbandonedFile;
use crate::tables::class::Class;
use crate::tables::deferred::DeferredDrops;
use std::collections::VecDeque;
use std::fmt;
use std::time::Duration;

/// The minimum time the supervisor pauses while there is work that no worker has taken yet. Without
/// it, the supervisor would spin if the launch interval were set to zero.
const LOOK_AGAIN_MIN: Duration = Duration::from_millis(1);

/// The worker pool's settings. All of them can be changed at run time.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct WorkerSettings {
    /// `io_min_workers`: workers that stay even when idle; 1 to 256.
    pub min: usize,
    /// `io_max_workers`: maximum number of workers, not counting stuck ones and one for the log;
    /// `min` to 256.
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

/// Which thread the caller must wake. The roster's methods only return this value, and the caller
/// signals the thread after releasing the roster's lock. If we signalled it while holding the lock,
/// the thread would wake up only to block on the lock.
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
    /// Make a session's blocking call, after waking another thread.
    Call {
        run: CallBody,
        wake: Wake,
    },
    /// Close a file. The thread that dropped the last reference could not close it, because it was
    /// completing I/O.
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
    /// Decide again when this much time has passed or when the next signal arrives, whichever comes
    /// first. `None` means there is no timeout, so the supervisor waits until it is signalled.
    Wait(Option<Duration>),
}

/// A blocking call, which also passes its result to the session.
pub(crate) type CallBody = Box<dyn FnOnce() + Send>;

/// A call that no worker has begun yet.
struct QueuedCall {
    id: u64,
    lane: usize,
    run: CallBody,
}

impl fmt::Debug for QueuedCall {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "QueuedCall({}, lane {})", self.id, self.lane)
    }
}

/// The pool's workers, queue and settings.
#[derive(Debug)]
pub(crate) struct Roster {
    settings: WorkerSettings,
    lanes: Lanes,
    /// Calls that haven't begun, oldest first. Queueing a call may allocate.
    calls: VecDeque<QueuedCall>,
    /// The id of the next call.
    next_call: u64,
    /// All workers, indexed by worker number. Contains an element for every worker that could ever
    /// be started.
    workers: Vec<Worker>,
    /// No worker with this number or a higher one is live. Most pools use only a few numbers, so
    /// this saves us from looking at the others.
    end: usize,
    /// When a thread was last started, to enforce the launch interval.
    last_launch: Option<Time>,
    /// Set when there was work but no idle worker, so that we had to notify the supervisor. It
    /// remains set until a worker finds nothing to do. Thanks to this flag, a busy pool doesn't
    /// have to signal the supervisor for every batch.
    growth_wanted: bool,
    /// Set if the pool has one worker more than its limit, because of the log's I/O. That worker
    /// may stay until it has been idle for the idle timeout.
    log_worker: bool,
}

/// The slot of a possible worker: PostgreSQL's `PgAioWorkerSlot`.
#[derive(Debug, Default)]
struct Worker {
    thread: Option<thread::JoinHandle>,
    /// A thread with this number exists or is about to be started.
    live: bool,
    /// Set while the worker is asleep or about to go to sleep. The thread that wakes the worker
    /// clears this flag under the roster's lock, so that no other thread picks the same worker.
    idle: bool,
    /// Set from the moment the worker is started or woken until it looks for a job.
    coming: bool,
    /// The lane and class of the I/O that the worker is executing, and when it began.
    busy: Option<(usize, Class, Time)>,
    /// The number of recent wake-ups and the number of recent jobs. Their ratio shows whether
    /// the worker usually finds work when it is woken. Whenever either number reaches four, we
    /// halve both, so that the ratio tracks the current load.
    wakeups: u32,
    jobs: u32,
}

impl Roster {
    /// Creates the roster for an instance that has `handles` handles. As long as at least `queue`
    /// I/Os are queued, sessions execute their own I/O.
    pub(crate) fn new(settings: WorkerSettings, handles: usize, queue: usize) -> Self {
        Self {
            settings: settings.clamped(),
            lanes: Lanes::new(handles, queue),
            calls: VecDeque::new(),
            next_call: 0,
            workers: (0..WORKER_PLACES).map(|_| Worker::default()).collect(),
            end: 0,
            last_launch: None,
            growth_wanted: false,
            log_worker: false,
        }
    }

    pub(crate) fn change_settings(&mut self, settings: WorkerSettings) {
        self.settings = settings.clamped();
    }

    pub(crate) fn lanes(&mut self) -> &mut Lanes {
        &mut self.lanes
    }

    /// Queues a call and returns its id. `number` determines its lane.
    pub(crate) fn push_call(&mut self, number: u64, run: CallBody) -> u64 {
        let id = self.next_call;
        self.next_call += 1;
        let lane = LANES_MAX + (number % CALL_LANES_MAX as u64) as usize;
        self.calls.push_back(QueuedCall { id, lane, run });
        id
    }

    /// Removes a call that hasn't begun.
    pub(crate) fn remove_call(&mut self, id: u64) -> Option<CallBody> {
        let at = self.calls.iter().position(|call| call.id == id)?;
        self.calls.remove(at).map(|call| call.run)
    }

    /// Position of the oldest call that may begin.
    fn next_call(&self, places: &Places) -> Option<usize> {
        self.calls.iter().position(|call| self.lanes.may_begin(call.lane, places))
    }

    /// Whether an I/O or a call may begin.
    fn runnable(&self, places: &Places) -> bool {
        self.lanes.runnable(places) || self.next_call(places).is_some()
    }

    /// Number of live workers.
    pub(crate) fn live(&self) -> usize {
        self.workers[..self.end].iter().filter(|worker| worker.live).count()
    }

    /// Returns how the lanes divide the workers. If no other mount has any I/O, a mount may use all
    /// of them; otherwise, it may use three quarters. If it hangs, the other mounts have to wait
    /// until its workers count as stuck and are replaced. The last numbers in the table are kept
    /// for the first I/O of each mount.
    fn places(&self, now: Time) -> Places {
        let max = self.settings.max;
        let share = if self.lanes.active() <= 1 { max } else { (max * 3 / 4).max(1) };
        // Stuck workers only matter once all workers could be busy.
        let most = if self.lanes.busy() < max { max } else { self.bound(now) };
        let shared = most.min(WORKER_PLACES - LOG_WORKERS - LANES_MAX - CALL_LANES_MAX);
        let first = most.min(WORKER_PLACES - LOG_WORKERS);
        Places { share, shared, first, log_reserve: LOG_WORKERS }
    }

    /// Returns the current limit on the number of workers, not counting the one for the log. Each
    /// stuck worker raises the limit by one, because we're allowed to replace it.
    fn bound(&self, now: Time) -> usize {
        self.settings.max + self.stuck(now)
    }

    /// Number of stuck workers: workers that have spent more than [`STUCK_AFTER_MS`] in one I/O.
    fn stuck(&self, now: Time) -> usize {
        let limit = Duration::from_millis(STUCK_AFTER_MS);
        let is_stuck = |worker: &&Worker| worker.busy.is_some_and(|(.., at)| now.since(at) > limit);
        self.workers[..self.end].iter().filter(is_stuck).count()
    }

    /// Returns the time until the next busy worker will count as stuck. If there is no such worker,
    /// we assume that one becomes busy right now. We add a millisecond to make sure that the limit
    /// has really been exceeded when the supervisor checks again.
    fn next_stuck(&self, now: Time) -> Duration {
        let limit = Duration::from_millis(STUCK_AFTER_MS);
        let busy = self.workers[..self.end].iter().filter_map(|worker| worker.busy);
        let left = busy.filter_map(|(.., at)| limit.checked_sub(now.since(at))).min();
        left.unwrap_or(limit) + Duration::from_millis(1)
    }

    /// Claims a worker number for a thread that is about to be started. Returns false if the number
    /// belongs to a worker that is live. We claim the number before we start the thread, so two
    /// threads can't be started for the same number, and a new thread is already marked as live
    /// when it begins to run.
    pub(crate) fn claim_place(&mut self, id: usize) -> bool {
        let vacant = !self.workers[id].live;
        if vacant {
            self.workers[id] = Worker { live: true, coming: true, ..Worker::default() };
            self.end = self.end.max(id + 1);
        }
        vacant
    }

    /// Records whether we were able to start the thread of the claimed worker. Note that even if
    /// that failed, the supervisor waits for the launch interval before it tries to start another
    /// worker.
    ///
    /// We must not mark the worker as live here. `claim_place` has already done so, and since then
    /// the new thread may have found the pool too large and exited. If we set the mark again,
    /// nothing would ever clear it. The pool would treat this nonexistent worker as the one with
    /// the highest number, so it would never shrink again, and would never replace a stuck worker.
    pub(crate) fn launched(&mut self, id: usize, thread: Option<thread::JoinHandle>, now: Time) {
        self.last_launch = Some(now);
        match thread {
            Some(thread) => self.workers[id].thread = Some(thread),
            None => self.workers[id].live = false,
        }
    }

    /// Returns the threads of all workers, so that shutdown can join them. This includes workers
    /// that have already exited, unless their number has been reused.
    pub(crate) fn take_threads(&mut self) -> Vec<thread::JoinHandle> {
        self.workers.iter_mut().filter_map(|worker| worker.thread.take()).collect()
    }

    /// Picks the idle worker with the lowest number that is not less than `from`, and marks it as
    /// woken. If there is no such worker, asks the supervisor to grow the pool.
    pub(crate) fn wake_one(&mut self, from: usize) -> Wake {
        if let Some(id) = (from..self.end).find(|&id| self.workers[id].idle) {
            let worker = &mut self.workers[id];
            worker.idle = false;
            worker.coming = true;
            worker.wakeups += 1;
            return Wake::Worker(id);
        }
        self.ask_supervisor()
    }

    /// Chooses the thread to wake after I/O or a call was queued.
    pub(crate) fn wake_for_queued(&mut self, now: Time) -> Wake {
        self.wake_for_lanes(now, |roster| roster.wake_one(0))
    }

    /// Chooses the thread to wake for queued I/O and calls. If there is work that may begin, but
    /// none of it is the log's, `ordinary` makes the choice.
    fn wake_for_lanes(&mut self, now: Time, ordinary: impl Fn(&mut Self) -> Wake) -> Wake {
        let places = self.places(now);
        if self.lanes.log_runnable(&places) {
            return match self.wake_one(0) {
                // The supervisor knows that the pool should grow, but not that it's urgent.
                Wake::None => Wake::Supervisor,
                wake => wake,
            };
        }
        if self.runnable(&places) {
            return ordinary(self);
        }
        // There is work that can't begin just because too many workers are busy. The supervisor
        // will start another worker if some of them are stuck.
        if self.runnable(&any_number(places)) {
            return self.ask_supervisor();
        }
        Wake::None
    }

    /// Wakes another worker with a higher number, provided that worker `id` has found work on most
    /// of its own wake-ups. If it hasn't, there isn't enough work for another worker. In that case
    /// we let the supervisor decide whether the queued I/O has waited too long.
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

    /// Records that a worker has finished a job. If the job counted towards a lane's share, the
    /// lane may now use another worker.
    pub(crate) fn job_done(&mut self, id: usize) {
        let worker = &mut self.workers[id];
        worker.jobs += 1;
        if worker.wakeups >= 4 || worker.jobs >= 4 {
            worker.wakeups /= 2;
            worker.jobs /= 2;
        }
        if let Some((lane, class, _)) = worker.busy.take() {
            self.lanes.finished(lane, class);
        }
    }

    fn is_highest(&self, id: usize) -> bool {
        !self.workers[id + 1..self.end].iter().any(|worker| worker.live)
    }

    /// Marks the worker as no longer live. The live worker with the next lower number now has the
    /// highest number, and may be surplus too, so we return a wake-up for it.
    fn leave(&mut self, id: usize) -> Wake {
        self.workers[id].live = false;
        self.workers[id].idle = false;
        if self.end == id + 1 {
            self.end = id;
        }
        (0..id).rev().find(|&id| self.workers[id].live).map_or(Wake::None, Wake::Worker)
    }

    /// Records that a worker woke up, after a signal or after its timeout.
    pub(crate) fn awake(&mut self, id: usize) {
        self.workers[id].idle = false;
    }

    /// Decides whether a worker should exit after its idle timeout has passed. If it should,
    /// returns the thread that must be woken next; if not, returns `None`.
    pub(crate) fn leave_if_surplus(&mut self, id: usize) -> Option<Wake> {
        // If the worker is no longer marked as idle, another thread has just picked it and is about
        // to wake it. That thread relies on this worker to do the work, so the worker must not
        // exit.
        let surplus = self.workers[id].idle && self.is_highest(id);
        (surplus && self.live() > self.settings.min).then(|| {
            self.log_worker = false;
            self.leave(id)
        })
    }

    /// Picks the next job for worker `id`. We prefer queued I/O to abandoned files, because
    /// sessions may be waiting for the I/O, whereas nothing waits for a file to be closed.
    pub(crate) fn next_job(
        &mut self,
        id: usize,
        now: Time,
        deferred: &DeferredDrops,
        stopping: bool,
    ) -> Job {
        self.workers[id].coming = false;
        let places = self.places(now);
        // There are too many workers, either because the limits were lowered or because stuck
        // workers have recovered. Only the worker with the highest number exits, so that the
        // remaining workers still have the lowest numbers. It must not exit before the log's I/O
        // has begun, because it may be the worker that was woken for it.
        let for_log = if self.log_worker { LOG_WORKERS } else { 0 };
        let surplus = self.is_highest(id) && self.live() > self.bound(now) + for_log;
        if surplus && !self.lanes.log_runnable(&places) {
            return Job::Leave(self.leave(id));
        }
        if !self.lanes.log_runnable(&places)
            && let Some(call) = self.next_call(&places).and_then(|at| self.calls.remove(at))
        {
            self.lanes.occupy(call.lane, Class::Foreground);
            self.workers[id].busy = Some((call.lane, Class::Foreground, now));
            let wake = self.wake_for_lanes(now, |roster| roster.wake_above(id));
            return Job::Call { run: call.run, wake };
        }
        if let Some(Queued { lane, index, class }) = self.lanes.take(&places) {
            self.workers[id].busy = Some((lane, class, now));
            let wake = self.wake_for_lanes(now, |roster| roster.wake_above(id));
            return Job::Execute { index, wake };
        }
        if let Some(file) = deferred.take_file(|lane| self.lanes.may_begin(lane, &places)) {
            // No session waits for this, so it counts as the least important class.
            self.lanes.occupy(file.lane(), Class::Maintenance);
            self.workers[id].busy = Some((file.lane(), Class::Maintenance, now));
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

    /// Decides whether the supervisor should start a worker now, and when it has to decide again.
    /// We make both decisions in the same function, because if they contradicted each other, the
    /// supervisor could spin.
    ///
    /// As long as there is work that no worker has taken, the supervisor must not sleep without a
    /// timeout, because the thread that is supposed to signal it may be stuck itself.
    ///
    /// The caller must hold the roster's lock, so that `has_ready`, which checks the ready set,
    /// runs under that lock. A completing thread first adds its I/O to the ready set, and then asks
    /// the supervisor to grow the pool while holding the same lock. It doesn't send a signal if
    /// `growth_wanted` is already set. If we checked the ready set before taking the lock, we could
    /// miss that I/O and then clear `growth_wanted`. The supervisor would then go to sleep even
    /// though there is I/O to complete.
    pub(crate) fn decide(&mut self, now: Time, has_ready: impl FnOnce() -> bool) -> Decision {
        let vacant = self.workers.iter().position(|worker| !worker.live);
        if let Some(vacant) = vacant
            && self.live() < self.settings.min
        {
            self.claim_place(vacant);
            return Decision::Launch(vacant);
        }
        let places = self.places(now);
        let work = self.runnable(&places) || has_ready();
        if !work && !self.runnable(&any_number(places)) {
            self.growth_wanted = false;
            return Decision::Wait(None);
        }
        let interval = self.settings.launch_interval;
        if work && self.workers[..self.end].iter().any(|worker| worker.idle) {
            return Decision::Wake(self.wake_one(0), interval.max(LOOK_AGAIN_MIN));
        }
        let urgent = self.lanes.log_runnable(&places);
        // If a worker is about to look for a job, it will take the log's I/O. If it was started for
        // this, we must not start another one just because it hasn't had the CPU yet.
        if urgent && self.workers[..self.end].iter().any(|worker| worker.live && worker.coming) {
            return Decision::Wait(Some(interval.max(LOOK_AGAIN_MIN)));
        }
        let for_log = if urgent || self.lanes.busy_log() > 0 { LOG_WORKERS } else { 0 };
        let most = self.bound(now) + for_log;
        let Some(vacant) = vacant.filter(|_| work && self.live() < most) else {
            return Decision::Wait(Some(self.next_stuck(now).max(LOOK_AGAIN_MIN)));
        };
        let since = self.last_launch.map_or(Duration::MAX, |at| now.since(at));
        match interval.checked_sub(since) {
            Some(left) if !left.is_zero() && !urgent => Decision::Wait(Some(left)),
            _ => {
                self.log_worker |= self.live() >= self.bound(now);
                self.claim_place(vacant);
                Decision::Launch(vacant)
            }
        }
    }
}

/// The same places, but without a limit on the total number of busy workers.
fn any_number(places: Places) -> Places {
    Places { shared: usize::MAX, first: usize::MAX - places.log_reserve, ..places }
}

#[cfg(all(test, not(loom)))]
mod tests;
