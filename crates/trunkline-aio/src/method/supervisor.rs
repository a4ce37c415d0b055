//! Who starts workers, and when. One function decides both whether to start one now and when to
//! look again, so the two can never disagree and spin.

use super::worker::{Pool, State, Worker, run as run_worker};
use crate::clock::{self, Time};
use crate::core::Core;
use crate::limits::STUCK_AFTER_MS;
use crate::sync::atomic::Ordering;
use crate::sync::{Arc, thread};
use std::time::Duration;

/// How long to wait after the system refused a thread.
const REFUSED_PAUSE: Duration = Duration::from_secs(1);

#[derive(Debug, PartialEq, Eq)]
enum Decision {
    /// Start a worker in this slot.
    Launch(usize),
    /// Look again after this long, or at the next signal.
    Wait(Option<Duration>),
}

pub(super) fn run(core: &Arc<Core>) {
    let pool = core.methods.pool();
    loop {
        let seen = pool.supervisor.epoch();
        if pool.stopping.load(Ordering::SeqCst) {
            return;
        }
        let pause = match decide(core, pool, clock::now()) {
            Decision::Launch(id) => {
                if launch(core, pool, id) {
                    continue;
                }
                Some(REFUSED_PAUSE)
            }
            Decision::Wait(pause) => pause,
        };
        pool.supervisor.wait(seen, pause);
    }
}

fn decide(core: &Core, pool: &Pool, now: Time) -> Decision {
    let mounts = core.registry.lane_count();
    let state = &mut *pool.state.lock();
    let live = state.workers.iter().filter(|w| w.live).count();
    let vacant = state.workers.iter().position(|w| !w.live);
    let Some(vacant) = vacant else { return Decision::Wait(None) };
    if live < state.settings.min {
        return Decision::Launch(vacant);
    }
    let idle = state.workers.iter().any(|w| w.idle);
    let share = state.share(mounts);
    let work = state.lanes.runnable(share) || !core.ready.is_empty();
    if idle || !work {
        state.growth_wanted = false;
        return Decision::Wait(None);
    }
    if live >= state.settings.max + state.stuck(now) {
        return Decision::Wait(state.next_stuck(now));
    }
    let since = state.last_launch.map_or(Duration::MAX, |at| now.since(at));
    match state.settings.launch_interval.checked_sub(since) {
        Some(left) if !left.is_zero() => Decision::Wait(Some(left)),
        _ => Decision::Launch(vacant),
    }
}

impl State {
    /// When the next busy worker will count as stuck, from now.
    fn next_stuck(&self, now: Time) -> Option<Duration> {
        let limit = Duration::from_millis(STUCK_AFTER_MS);
        let busy = self.workers.iter().filter_map(|w| w.busy);
        let left = busy.filter_map(|(_, at)| limit.checked_sub(now.since(at))).min();
        left.map(|left| left + Duration::from_millis(1))
    }
}

fn launch(core: &Arc<Core>, pool: &Pool, id: usize) -> bool {
    let mut state = pool.state.lock();
    state.last_launch = Some(clock::now());
    state.workers[id] = Worker::started();
    let core_of_worker = Arc::clone(core);
    match thread::spawn(&format!("aio worker {id}"), move || run_worker(&core_of_worker, id)) {
        Ok(thread) => {
            state.workers[id].thread = Some(thread);
            core.stats.worker_launched();
            true
        }
        Err(_) => {
            state.workers[id].live = false;
            core.stats.worker_refused();
            false
        }
    }
}
