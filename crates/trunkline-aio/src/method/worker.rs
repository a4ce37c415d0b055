//! `worker`: a pool of threads that executes I/O and helps to complete it, and sizes itself.
//!
//! Submitting takes one lock for a batch and wakes at most one worker, the lowest idle one. A worker
//! that takes a job and sees more wakes one idle worker with a higher number than its own, and only
//! while its own wake-ups have mostly found work: so a frontier forms beyond which workers sleep
//! on, and a batch costs its session one futex whatever its size.
//!
//! One supervisor starts workers. It looks when somebody found work and no idle worker, starts one
//! per launch interval, and counts workers that have hung in one I/O for a second as stuck: they
//! are bound by their mount's share, not by `io_max_workers`. The highest idle worker above
//! `io_min_workers` leaves after the idle timeout.
//!
//! The same threads complete what ring drivers reaped (`Core::help`): that is their first duty.

use super::lanes::Lanes;
use super::{Batch, Submitted, supervisor};
use crate::clock::{self, Time};
use crate::core::{Completer, Core};
use crate::event::Event;
use crate::limits::{STUCK_AFTER_MS, WORKERS_MAX};
use crate::sync::atomic::{AtomicBool, Ordering};
use crate::sync::{Arc, Mutex, thread};
use std::time::Duration;

/// The settings of the pool; all can be changed while it runs.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct WorkerSettings {
    /// `io_min_workers`: workers kept however idle; 1 to 256.
    pub min: usize,
    /// `io_max_workers`: workers at most, stuck ones not counted; `min` to 256.
    pub max: usize,
    /// `io_worker_idle_timeout`: after how long idle a worker above `min` leaves.
    pub idle_timeout: Duration,
    /// `io_worker_launch_interval`: time between two launches.
    pub launch_interval: Duration,
}

impl Default for WorkerSettings {
    /// PostgreSQL 19's defaults.
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
    /// The settings with `min` and `max` brought into their ranges.
    fn clamped(self) -> Self {
        let min = self.min.clamp(1, WORKERS_MAX);
        Self { min, max: self.max.clamp(min, WORKERS_MAX), ..self }
    }
}

#[derive(Debug)]
pub(crate) struct Pool {
    pub(super) state: Mutex<State>,
    events: Box<[Event]>,
    pub(super) supervisor: Event,
    pub(super) stopping: AtomicBool,
}

#[derive(Debug)]
pub(super) struct State {
    pub(super) settings: WorkerSettings,
    pub(super) lanes: Lanes,
    pub(super) workers: Vec<Worker>,
    supervisor: Option<thread::JoinHandle>,
    pub(super) last_launch: Option<Time>,
    /// Somebody found work and no idle worker; stays set until a worker finds none, so that the
    /// supervisor is not signalled for every batch of a busy pool.
    pub(super) growth_wanted: bool,
}

#[derive(Debug, Default)]
pub(super) struct Worker {
    pub(super) thread: Option<thread::JoinHandle>,
    pub(super) live: bool,
    pub(super) idle: bool,
    /// The lane it executes for, and since when.
    pub(super) busy: Option<(usize, Time)>,
    /// Recent wake-ups and recent jobs; both halved when either reaches four.
    wakeups: u32,
    jobs: u32,
}

impl Pool {
    pub(crate) fn new(settings: WorkerSettings, queue: usize) -> Self {
        let workers = (0..WORKERS_MAX).map(|_| Worker::default()).collect();
        Self {
            state: Mutex::new(State {
                settings: settings.clamped(),
                lanes: Lanes::new(queue),
                workers,
                supervisor: None,
                last_launch: None,
                growth_wanted: false,
            }),
            events: (0..WORKERS_MAX).map(|_| Event::new()).collect(),
            supervisor: Event::new(),
            stopping: AtomicBool::new(false),
        }
    }

    /// Starts the supervisor, which starts the least number of workers.
    ///
    /// # Errors
    /// The system refuses another thread.
    pub(crate) fn start(&self, core: &Arc<Core>) -> std::io::Result<()> {
        let mut state = self.state.lock();
        if state.supervisor.is_none() {
            let core = Arc::clone(core);
            let body = move || supervisor::run(&core);
            state.supervisor = Some(thread::spawn("aio supervisor", body)?);
        }
        Ok(())
    }

    pub(crate) fn change_settings(&self, settings: WorkerSettings) {
        self.state.lock().settings = settings.clamped();
        // Idle workers look at the new bounds, the supervisor too.
        self.events.iter().for_each(Event::signal);
        self.supervisor.signal();
    }

    /// Live workers.
    pub(crate) fn size(&self) -> usize {
        self.state.lock().workers.iter().filter(|w| w.live).count()
    }

    /// I/Os queued.
    pub(crate) fn queued(&self) -> usize {
        self.state.lock().lanes.queued()
    }

    pub(crate) fn submit(&self, core: &Arc<Core>, batch: &mut Batch<'_>) {
        let wake = {
            let mut state = self.state.lock();
            if state.supervisor.is_none() {
                return;
            }
            while state.lanes.has_room()
                && let Some(io) = batch.take()
            {
                let index = io.into_index();
                // SAFETY: we hold the Submitted of this I/O, so its body is ours to read.
                let body = unsafe { core.handles[index as usize].body() };
                let lane = body.file.as_ref().map_or(0, crate::File::lane);
                state.lanes.push(lane, index);
            }
            state.wake_one(0)
        };
        self.wake(wake);
    }

    /// Wakes a worker for what lies in `Core::ready`.
    pub(crate) fn kick(&self, _core: &Core) {
        let wake = self.state.lock().wake_one(0);
        self.wake(wake);
    }

    fn wake(&self, wake: Wake) {
        match wake {
            Wake::Nobody => {}
            Wake::Worker(id) => self.events[id].signal(),
            Wake::Supervisor => self.supervisor.signal(),
        }
    }

    /// Ends all threads; nothing may be in flight.
    pub(crate) fn shut_down(&self) {
        self.stopping.store(true, Ordering::SeqCst);
        self.supervisor.signal();
        let supervisor = self.state.lock().supervisor.take();
        if let Some(supervisor) = supervisor {
            // A panic there was printed by its own thread; nothing is left to save here.
            let _ = supervisor.join();
        }
        self.events.iter().for_each(Event::signal);
        let threads: Vec<_> = {
            let mut state = self.state.lock();
            state.workers.iter_mut().filter_map(|w| w.thread.take()).collect()
        };
        for thread in threads {
            let _ = thread.join();
        }
    }
}

impl Worker {
    /// Live, with no history.
    pub(super) fn started() -> Self {
        Self { live: true, ..Self::default() }
    }
}

/// Whom to wake once the lock is released.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Wake {
    Nobody,
    Worker(usize),
    Supervisor,
}

impl State {
    /// The most workers that one mount may hold.
    pub(super) fn share(&self, mounts: usize) -> usize {
        let max = self.settings.max;
        if mounts <= 1 { max } else { (max * 3 / 4).max(1) }
    }

    /// Chooses the lowest idle worker numbered `from` or higher.
    fn wake_one(&mut self, from: usize) -> Wake {
        if let Some(id) = (from..self.workers.len()).find(|&id| self.workers[id].idle) {
            let worker = &mut self.workers[id];
            worker.idle = false;
            worker.wakeups += 1;
            return Wake::Worker(id);
        }
        if self.growth_wanted {
            return Wake::Nobody;
        }
        self.growth_wanted = true;
        Wake::Supervisor
    }

    fn is_highest(&self, id: usize) -> bool {
        !self.workers[id + 1..].iter().any(|w| w.live)
    }

    /// Workers that hang in one I/O.
    pub(super) fn stuck(&self, now: Time) -> usize {
        let limit = Duration::from_millis(STUCK_AFTER_MS);
        self.workers.iter().filter(|w| w.busy.is_some_and(|(_, at)| now.since(at) > limit)).count()
    }
}

/// What a worker found to do.
enum Job {
    Execute { index: u32, wake: Wake },
    Sleep { timeout: Option<Duration> },
    Leave,
}

pub(super) fn run(core: &Arc<Core>, id: usize) {
    let pool = core.methods.pool();
    loop {
        let seen = pool.events[id].epoch();
        while core.help(id as u32 * 64, Completer::Helper) {
            if !core.ready.is_empty() {
                let wake = pool.state.lock().wake_above(id);
                pool.wake(wake);
            }
        }
        match next_job(core, pool, id) {
            Job::Execute { index, wake } => {
                pool.wake(wake);
                core.execute(Submitted::from_index(index), Completer::Worker);
                pool.state.lock().job_done(id);
            }
            Job::Sleep { timeout } => {
                core.graveyard.close_all();
                // What was made ready after the look above found nobody idle to wake for it.
                if core.ready.is_empty() {
                    let woken = pool.events[id].wait(seen, timeout);
                    if !woken && leave_if_idle(pool, id) {
                        return;
                    }
                }
                pool.state.lock().workers[id].idle = false;
            }
            Job::Leave => return,
        }
    }
}

fn next_job(core: &Core, pool: &Pool, id: usize) -> Job {
    let mounts = core.registry.lane_count();
    let mut state = pool.state.lock();
    let share = state.share(mounts);
    if let Some((lane, index)) = state.lanes.take(share) {
        let worker = &mut state.workers[id];
        worker.busy = Some((lane, clock::now()));
        worker.jobs += 1;
        let more = state.lanes.runnable(share);
        let wake = if more { state.wake_above(id) } else { Wake::Nobody };
        return Job::Execute { index, wake };
    }
    if pool.stopping.load(Ordering::SeqCst) {
        state.workers[id].live = false;
        return Job::Leave;
    }
    state.growth_wanted = false;
    let live = state.workers.iter().filter(|w| w.live).count();
    let highest = state.is_highest(id);
    if highest && live > state.settings.max.saturating_add(state.stuck(clock::now())) {
        return leave(&mut state, pool, id);
    }
    state.workers[id].idle = true;
    let timed = highest && live > state.settings.min;
    Job::Sleep { timeout: timed.then_some(state.settings.idle_timeout) }
}

/// After an idle timeout: leaves unless somebody chose this worker in the meantime.
fn leave_if_idle(pool: &Pool, id: usize) -> bool {
    let mut state = pool.state.lock();
    let live = state.workers.iter().filter(|w| w.live).count();
    if !state.workers[id].idle || !state.is_highest(id) || live <= state.settings.min {
        return false;
    }
    matches!(leave(&mut state, pool, id), Job::Leave)
}

fn leave(state: &mut State, pool: &Pool, id: usize) -> Job {
    let worker = &mut state.workers[id];
    worker.live = false;
    worker.idle = false;
    // The next one down is the highest now, and must start to count its idle time.
    if let Some(next) = (0..id).rev().find(|&id| state.workers[id].live) {
        pool.events[next].signal();
    }
    Job::Leave
}

impl State {
    fn job_done(&mut self, id: usize) {
        let worker = &mut self.workers[id];
        if worker.wakeups >= 4 || worker.jobs >= 4 {
            worker.wakeups /= 2;
            worker.jobs /= 2;
        }
        if let Some((lane, _)) = worker.busy.take() {
            self.lanes.finished(lane);
        }
    }

    /// Propagates a wake-up, if this worker's own wake-ups have been worth it.
    fn wake_above(&mut self, id: usize) -> Wake {
        if self.workers[id].wakeups > self.workers[id].jobs.max(1) {
            return Wake::Nobody;
        }
        self.wake_one(id + 1)
    }
}
