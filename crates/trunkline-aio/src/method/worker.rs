//! `worker`: a pool of threads that executes I/O and helps to complete it, and sizes itself.
//!
//! Submitting takes one lock for a batch and wakes at most one worker, the lowest idle one. A worker
//! that takes a job and sees more wakes one idle worker with a higher number than its own, and only
//! while its own wake-ups have mostly found work (else it leaves that to the supervisor): so a
//! frontier forms beyond which workers sleep on, and a batch costs its session one futex whatever
//! its size.
//!
//! One supervisor starts workers. It looks when somebody found work and no idle worker, starts one
//! per launch interval, and counts workers that have hung in one I/O for a second as stuck: they
//! are bound by their mount's share, not by `io_max_workers`. The highest idle worker above
//! `io_min_workers` leaves after the idle timeout.
//!
//! The same threads complete what ring drivers reaped (`Core::help`): that is their first duty.

use super::lanes::Lanes;
use super::{Batch, supervisor};
use crate::clock::{self, Time};
use crate::core::{Completer, Core};
use crate::event::Event;
use crate::file::Unused;
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
    /// A pool for an instance of `handles`; from `queue` queued I/Os on, sessions keep theirs.
    pub(crate) fn new(settings: WorkerSettings, handles: usize, queue: usize) -> Self {
        let workers = (0..WORKERS_MAX).map(|_| Worker::default()).collect();
        Self {
            state: Mutex::new(State {
                settings: settings.clamped(),
                lanes: Lanes::new(handles, queue),
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

    /// Starts one worker and the supervisor, which starts the others.
    ///
    /// # Errors
    /// The system refuses another thread: a pool without a worker would never do anything.
    pub(crate) fn start(&self, core: &Arc<Core>) -> std::io::Result<()> {
        if self.state.lock().supervisor.is_some() {
            return Ok(());
        }
        let first = self.state.lock().claim_slot(0);
        if first {
            supervisor::launch(core, self, 0)?;
        }
        let supervised = Arc::clone(core);
        let thread =
            thread::spawn_internal("aio supervisor", move || supervisor::run(&supervised))?;
        self.state.lock().supervisor = Some(thread);
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

    pub(crate) fn submit(&self, batch: &mut Batch<'_>) {
        let wake = {
            let mut state = self.state.lock();
            if state.supervisor.is_none() {
                return;
            }
            while state.lanes.has_room()
                && let Some(io) = batch.take()
            {
                state.lanes.push(batch.core.lane(&io), io.index());
            }
            state.wake_one(0)
        };
        self.wake(wake);
    }

    /// Takes over I/Os that a broken ring has not begun, however many are queued.
    pub(crate) fn take_over(&self, core: &Core, indexes: impl Iterator<Item = u32>) {
        let wake = {
            let mut state = self.state.lock();
            for index in indexes {
                let lane = core.lane(&core.token(index));
                state.lanes.push(lane, index);
            }
            state.wake_one(0)
        };
        self.wake(wake);
    }

    /// Whether there are workers, or will be when they are needed.
    pub(crate) fn is_running(&self) -> bool {
        self.state.lock().supervisor.is_some()
    }

    /// Wakes a worker for what lies in `Core::ready` or in the graveyard.
    pub(crate) fn kick(&self) {
        let wake = self.state.lock().wake_one(0);
        self.wake(wake);
    }

    pub(super) fn wake(&self, wake: Wake) {
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

/// Whom to wake once the lock is released.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Wake {
    Nobody,
    Worker(usize),
    Supervisor,
}

impl State {
    /// The most workers that one mount may hold: all, while only one mount is at work.
    pub(super) fn share(&self) -> usize {
        let max = self.settings.max;
        if self.lanes.active() <= 1 { max } else { (max * 3 / 4).max(1) }
    }

    pub(super) fn live(&self) -> usize {
        self.workers.iter().filter(|w| w.live).count()
    }

    /// Workers there may be now.
    pub(super) fn bound(&self, now: Time) -> usize {
        self.settings.max + self.stuck(now)
    }

    /// Takes a slot for a worker about to be started; false if it is taken.
    pub(super) fn claim_slot(&mut self, id: usize) -> bool {
        let vacant = !self.workers[id].live;
        if vacant {
            self.workers[id] = Worker { live: true, ..Worker::default() };
        }
        vacant
    }

    /// Chooses the lowest idle worker numbered `from` or higher; with none, asks for growth, once
    /// until somebody has looked.
    pub(super) fn wake_one(&mut self, from: usize) -> Wake {
        if let Some(id) = (from..self.workers.len()).find(|&id| self.workers[id].idle) {
            let worker = &mut self.workers[id];
            worker.idle = false;
            worker.wakeups += 1;
            return Wake::Worker(id);
        }
        self.ask_supervisor()
    }

    /// Propagates a wake-up, if this worker's own wake-ups have been worth it; otherwise leaves it
    /// to the supervisor to see whether anybody is needed.
    fn wake_above(&mut self, id: usize) -> Wake {
        if self.workers[id].wakeups > self.workers[id].jobs.max(1) {
            return self.ask_supervisor();
        }
        self.wake_one(id + 1)
    }

    fn ask_supervisor(&mut self) -> Wake {
        if self.growth_wanted {
            return Wake::Nobody;
        }
        self.growth_wanted = true;
        Wake::Supervisor
    }

    /// A worker has done something useful, on `lane` if it was I/O.
    fn job_done(&mut self, id: usize) {
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
        !self.workers[id + 1..].iter().any(|w| w.live)
    }

    /// Workers that hang in one I/O.
    fn stuck(&self, now: Time) -> usize {
        let limit = Duration::from_millis(STUCK_AFTER_MS);
        self.workers.iter().filter(|w| w.busy.is_some_and(|(_, at)| now.since(at) > limit)).count()
    }

    /// The worker leaves; who must look whether it is its turn next.
    fn leave(&mut self, id: usize) -> Wake {
        self.workers[id].live = false;
        self.workers[id].idle = false;
        (0..id).rev().find(|&id| self.workers[id].live).map_or(Wake::Nobody, Wake::Worker)
    }
}

/// What a worker found to do.
enum Job {
    Execute { index: u32, wake: Wake },
    Close(Unused),
    Sleep { timeout: Option<Duration> },
    Leave(Wake),
}

pub(super) fn run(core: &Arc<Core>, id: usize) {
    let pool = core.methods.pool();
    loop {
        let seen = pool.events[id].epoch();
        help(core, pool, id);
        match next_job(core, pool, id) {
            Job::Execute { index, wake } => {
                pool.wake(wake);
                core.execute(core.token(index), Completer::Worker);
                pool.state.lock().job_done(id);
            }
            Job::Close(file) => {
                drop(file);
                pool.state.lock().job_done(id);
            }
            Job::Sleep { timeout } => {
                // What was made ready, or buried, after the look above found nobody idle to wake.
                let nothing = core.ready.is_empty() && !core.graveyard.has_tables();
                if nothing && !pool.events[id].wait(seen, timeout) {
                    let mut state = pool.state.lock();
                    // Unless somebody chose this worker in the meantime.
                    let alone = state.workers[id].idle && state.is_highest(id);
                    if alone && state.live() > state.settings.min {
                        let wake = state.leave(id);
                        drop(state);
                        pool.wake(wake);
                        return;
                    }
                }
                pool.state.lock().workers[id].idle = false;
            }
            Job::Leave(wake) => {
                pool.wake(wake);
                return;
            }
        }
    }
}

/// The first duty: completes what was reaped, and drops what completers may not drop.
fn help(core: &Core, pool: &Pool, id: usize) {
    while core.help(id as u32 * 64, Completer::Helper) {
        let wake = {
            let mut state = pool.state.lock();
            state.job_done(id);
            if core.ready.is_empty() { Wake::Nobody } else { state.wake_above(id) }
        };
        pool.wake(wake);
    }
    while let Some(table) = core.graveyard.take_table() {
        drop(table);
    }
}

fn next_job(core: &Core, pool: &Pool, id: usize) -> Job {
    let now = clock::now();
    let mut state = pool.state.lock();
    let surplus = state.is_highest(id) && state.live() > state.bound(now);
    if surplus {
        return Job::Leave(state.leave(id));
    }
    let share = state.share();
    if let Some((lane, index)) = state.lanes.take(share) {
        state.workers[id].busy = Some((lane, now));
        let more = state.lanes.runnable(share);
        let wake = if more { state.wake_above(id) } else { Wake::Nobody };
        return Job::Execute { index, wake };
    }
    if let Some(file) = core.graveyard.take_file(|lane| state.lanes.may_begin(lane, share)) {
        state.lanes.begin(file.lane());
        state.workers[id].busy = Some((file.lane(), now));
        return Job::Close(file);
    }
    if pool.stopping.load(Ordering::SeqCst) {
        state.leave(id);
        return Job::Leave(Wake::Nobody);
    }
    state.growth_wanted = false;
    state.workers[id].idle = true;
    let timed = state.is_highest(id) && state.live() > state.settings.min;
    Job::Sleep { timeout: timed.then_some(state.settings.idle_timeout) }
}
