//! A deterministic scheduler for tests: it runs real code, one thread at a time, and derives every
//! choice from a seed.
//!
//! [`run`] runs its closure as the first task. Every operation on one of the façade's atomics,
//! locks or futexes is a *switch point*, where the running task may pass the baton to another task,
//! picked by the seeded random number generator. If a task has to block, it passes the baton on and
//! waits until another task wakes the address it is waiting for. If all tasks are blocked, we
//! advance the clock to the earliest timeout. If there is no timeout either, the tasks are
//! deadlocked, so the run fails and reports the name and state of each task. Two runs with the same
//! seed are identical.
//!
//! ```text
//!   point()        maybe switch            wake(address, n)   blocked -> ready
//!   block(address) running -> blocked      none ready         clock := earliest deadline, or fail
//! ```
//!
//! Each task is an OS thread, so thread-locals, panics and stacks work as usual. When a run fails,
//! its remaining tasks stay parked and never exit. That's OK because the process is running a test
//! and is about to exit anyway.
//!
//! Only the task that holds the baton runs test code. All of the scheduler's state is in `World`,
//! which is protected by a single lock. While a task waits for the baton, it sleeps on its own
//! condition variable.

#![expect(
    clippy::disallowed_types,
    clippy::disallowed_methods,
    reason = "the locks and threads of the façade are built on the scheduler"
)]

use super::rng::Rng;
use std::cell::RefCell;
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};

/// How much virtual time one switch point takes, in nanoseconds.
const STEP_NS: u64 = 50;

/// The configuration of a run.
#[derive(Debug, Clone, Copy)]
pub struct Config {
    /// The seed that determines the run's switches and random numbers.
    pub seed: u64,
    /// On average, one in this many switch points passes the baton to a randomly picked task, which
    /// may be the same one. At least 1.
    pub switch_one_in: u32,
    /// A run with more switch points than this fails as a livelock.
    pub steps_max: u64,
}

impl Config {
    /// The default configuration for a seed: one switch point in three switches.
    pub fn new(seed: u64) -> Self {
        Self { seed, switch_one_in: 3, steps_max: 20_000_000 }
    }
}

/// Statistics of a run.
#[derive(Debug, Clone, Copy, Default)]
pub struct Report {
    /// Switch points passed.
    pub steps: u64,
    /// How often the baton was passed to another task.
    pub switches: u64,
    /// Virtual nanoseconds passed.
    pub nanos: u64,
    /// A hash of all scheduling choices. Equal seeds give equal fingerprints.
    pub fingerprint: u64,
}

/// Why a run failed.
#[derive(Debug, Clone)]
pub struct Failure {
    /// The seed that reproduces it.
    pub seed: u64,
    /// What happened, and the state of every task.
    pub message: String,
}

impl std::fmt::Display for Failure {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "seed {}: {}", self.seed, self.message)
    }
}

/// What a task is doing. The running task is `Ready` too; `World::running` identifies it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Status {
    Ready,
    Blocked { address: usize, deadline: Option<u64> },
    Finished,
}

/// A task: a thread of the run.
struct Task {
    name: String,
    status: Status,
    /// The task became ready because of its deadline, not a wake-up.
    timed_out: bool,
    /// Each task has its own condition variable, so that passing the baton wakes one thread.
    baton: Arc<Condvar>,
}

/// The state of a run.
struct World {
    config: Config,
    tasks: Vec<Task>,
    /// The task that holds the baton.
    running: usize,
    random: Rng,
    /// The statistics so far. Its time is the run's clock.
    report: Report,
    failure: Option<String>,
    done: bool,
}

struct Shared {
    world: Mutex<World>,
    ended: Condvar,
}

thread_local! {
    /// The calling thread's run and task.
    static ME: RefCell<Option<TaskRef>> = const { RefCell::new(None) };
}

/// The run and task of the calling thread; `None` outside a run.
fn me() -> Option<TaskRef> {
    // A destroyed thread-local means that the task has ended.
    ME.try_with(|me| me.borrow().clone()).ok().flatten()
}

/// Whether this thread runs under a scheduler.
pub fn active() -> bool {
    ME.try_with(|me| me.borrow().is_some()).unwrap_or(false)
}

/// Runs `body`, and every thread it starts through the façade, until all have ended.
///
/// # Errors
/// A panic in any task, a deadlock, or a livelock, with the seed.
pub fn run(config: Config, body: impl FnOnce() + Send + 'static) -> Result<Report, Failure> {
    let shared = Arc::new(Shared {
        world: Mutex::new(World {
            config,
            tasks: Vec::new(),
            running: 0,
            random: Rng::new(config.seed),
            report: Report::default(),
            failure: None,
            done: false,
        }),
        ended: Condvar::new(),
    });
    start(&shared, "main".into(), body);
    let mut world = lock(&shared.world);
    while !world.done && world.failure.is_none() {
        world = shared.ended.wait(world).unwrap_or_else(PoisonError::into_inner);
    }
    match &world.failure {
        Some(message) => Err(Failure { seed: config.seed, message: message.clone() }),
        None => Ok(world.report),
    }
}

/// Virtual nanoseconds since the run began; `None` outside a run.
pub(crate) fn now() -> Option<u64> {
    me().map(|me| lock(&me.shared.world).report.nanos)
}

/// A number from the run's generator; `None` outside a run.
pub(crate) fn random() -> Option<u64> {
    me().map(|me| lock(&me.shared.world).random.next_u64())
}

/// A switch point: another task may run here.
pub fn point() {
    let Some(me) = me() else { return };
    let mut world = lock(&me.shared.world);
    world.report.steps += 1;
    world.report.nanos += STEP_NS;
    if world.report.steps > world.config.steps_max {
        let message = format!("livelock: {} switch points passed", world.report.steps);
        fail(&me.shared, &mut world, message);
    } else {
        let one_in = u64::from(world.config.switch_one_in.max(1));
        if !world.random.next_u64().is_multiple_of(one_in) {
            return;
        }
        let next = world.pick_ready();
        world.hand_over(next);
    }
    await_baton(&me, world);
}

/// Gives up the baton until another task wakes `address` or virtual time reaches `deadline`.
/// Returns true if the deadline came first.
pub(crate) fn block(address: usize, deadline: Option<u64>) -> bool {
    let Some(me) = me() else { return false };
    let mut world = lock(&me.shared.world);
    world.report.steps += 1;
    world.tasks[me.task].status = Status::Blocked { address, deadline };
    world.tasks[me.task].timed_out = false;
    dispatch(&me.shared, &mut world);
    await_baton(&me, world)
}

/// Marks up to `count` of the tasks blocked on `address` as ready. Which ones we pick depends on
/// the seed, because the kernel's futex doesn't wake threads in any particular order either.
pub(crate) fn wake(address: usize, count: usize) {
    let Some(me) = me() else { return };
    {
        let mut world = lock(&me.shared.world);
        for _ in 0..count {
            let waiting: Vec<usize> = world.positions(
                |t| matches!(t.status, Status::Blocked { address: a, .. } if a == address),
            );
            if waiting.is_empty() {
                break;
            }
            // The order of the tasks in `waiting` depends only on earlier choices, so the run is
            // still determined by the seed alone.
            let choice = world.random.next_u64() as usize % waiting.len();
            world.tasks[waiting[choice]].status = Status::Ready;
        }
    }
    point();
}

/// Starts a task from within a run.
pub(super) fn spawn(name: String, body: impl FnOnce() + Send + 'static) -> Option<TaskRef> {
    let me = me()?;
    let task = start(&me.shared, name, body);
    point();
    Some(TaskRef { shared: me.shared, task })
}

/// A task of a run.
#[derive(Clone)]
pub(super) struct TaskRef {
    shared: Arc<Shared>,
    task: usize,
}

impl std::fmt::Debug for TaskRef {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "{}", self.task)
    }
}

impl TaskRef {
    /// Blocks until the task has ended.
    pub(super) fn join(&self) {
        loop {
            if lock(&self.shared.world).tasks[self.task].status == Status::Finished {
                return;
            }
            block(self.end_address(), None);
        }
    }

    fn end_address(&self) -> usize {
        // No word of the façade can have this address, because those words are aligned to four
        // bytes.
        self.task * 4 + 1
    }
}

/// Creates a task and its thread. The thread waits for the baton before it runs `body`.
fn start(shared: &Arc<Shared>, name: String, body: impl FnOnce() + Send + 'static) -> usize {
    let baton = Arc::new(Condvar::new());
    let task = {
        let mut world = lock(&shared.world);
        world.tasks.push(Task {
            name: name.clone(),
            status: Status::Ready,
            timed_out: false,
            baton,
        });
        world.tasks.len() - 1
    };
    let me = TaskRef { shared: Arc::clone(shared), task };
    let spawned = std::thread::Builder::new().name(name).spawn(move || {
        ME.with(|slot| *slot.borrow_mut() = Some(me.clone()));
        await_baton(&me, lock(&me.shared.world));
        let result = std::panic::catch_unwind(std::panic::AssertUnwindSafe(body));
        finish(&me, result.err());
    });
    if let Err(error) = spawned {
        let mut world = lock(&shared.world);
        fail(shared, &mut world, format!("cannot start a thread: {error}"));
    }
    task
}

/// Ends a task: wakes its joiners and passes the baton on, or records its panic as the run's
/// failure.
fn finish(me: &TaskRef, panic: Option<Box<dyn std::any::Any + Send>>) {
    if panic.is_none() {
        wake(me.end_address(), usize::MAX);
    }
    ME.with(|slot| *slot.borrow_mut() = None);
    let mut world = lock(&me.shared.world);
    world.tasks[me.task].status = Status::Finished;
    if let Some(panic) = panic {
        let text = panic
            .downcast_ref::<String>()
            .cloned()
            .or_else(|| panic.downcast_ref::<&str>().map(ToString::to_string))
            .unwrap_or_else(|| "panic without a message".into());
        let message = format!("task {} panicked: {text}", world.tasks[me.task].name);
        fail(&me.shared, &mut world, message);
        return;
    }
    // A joiner may have blocked after the wake-up above, so wake it now.
    let address = me.end_address();
    for task in &mut world.tasks {
        if matches!(task.status, Status::Blocked { address: a, .. } if a == address) {
            task.status = Status::Ready;
        }
    }
    if world.tasks.iter().all(|t| t.status == Status::Finished) {
        world.done = true;
        me.shared.ended.notify_all();
    } else {
        dispatch(&me.shared, &mut world);
    }
}

/// Picks the next task when the running one cannot continue.
fn dispatch(shared: &Shared, world: &mut World) {
    if world.positions(|t| t.status == Status::Ready).is_empty() {
        let earliest = world
            .tasks
            .iter()
            .enumerate()
            .filter_map(|(i, t)| match t.status {
                Status::Blocked { deadline: Some(deadline), .. } => Some((deadline, i)),
                _ => None,
            })
            .min();
        let Some((deadline, task)) = earliest else {
            let message = format!("deadlock: {}", world.describe());
            fail(shared, world, message);
            return;
        };
        // Nothing can happen before the earliest deadline, so advance the clock to it.
        world.report.nanos = world.report.nanos.max(deadline);
        world.tasks[task].status = Status::Ready;
        world.tasks[task].timed_out = true;
    }
    let next = world.pick_ready();
    world.hand_over(next);
}

/// Ends the run with a failure. Only the first failure is kept, because later failures are
/// consequences of the first.
fn fail(shared: &Shared, world: &mut World, message: String) {
    if world.failure.is_none() {
        world.failure = Some(message);
    }
    shared.ended.notify_all();
}

/// Waits for the baton. Returns whether the deadline made the task ready.
fn await_baton(me: &TaskRef, mut world: MutexGuard<'_, World>) -> bool {
    let baton = Arc::clone(&world.tasks[me.task].baton);
    // After a failure no task passes the baton on, so this task stays parked here until the process
    // ends.
    while world.running != me.task || world.failure.is_some() {
        world = baton.wait(world).unwrap_or_else(PoisonError::into_inner);
    }
    world.tasks[me.task].timed_out
}

fn lock(world: &Mutex<World>) -> MutexGuard<'_, World> {
    world.lock().unwrap_or_else(PoisonError::into_inner)
}

impl World {
    fn positions(&self, wanted: impl Fn(&Task) -> bool) -> Vec<usize> {
        self.tasks.iter().enumerate().filter(|(_, t)| wanted(t)).map(|(i, _)| i).collect()
    }

    /// Picks one of the ready tasks with the seeded generator.
    fn pick_ready(&mut self) -> usize {
        let ready = self.positions(|t| t.status == Status::Ready);
        let choice = self.random.next_u64() as usize % ready.len().max(1);
        ready.get(choice).copied().unwrap_or(self.running)
    }

    /// Passes the baton to `next`, and mixes the choice into the fingerprint (FNV).
    fn hand_over(&mut self, next: usize) {
        self.report.fingerprint =
            (self.report.fingerprint ^ next as u64).wrapping_mul(0x0100_0000_01B3);
        if next != self.running {
            self.report.switches += 1;
            self.running = next;
        }
        self.tasks[next].baton.notify_all();
    }

    fn describe(&self) -> String {
        let tasks: Vec<String> =
            self.tasks.iter().map(|t| format!("{} {:?}", t.name, t.status)).collect();
        tasks.join("; ")
    }
}
