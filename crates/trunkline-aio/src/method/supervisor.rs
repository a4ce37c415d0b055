//! Who starts workers, and when. One function decides both whether to start one now and when to
//! look again, so the two can never disagree and spin.

use super::worker::{Pool, State, Wake, run as run_worker};
use crate::clock::{self, Time};
use crate::core::Core;
use crate::limits::STUCK_AFTER_MS;
use crate::sync::atomic::Ordering;
use crate::sync::{Arc, thread};
use std::time::Duration;

/// The shortest pause between two looks at work that nobody takes.
const LOOK_AGAIN_MIN: Duration = Duration::from_millis(1);

/// How long to wait after the system refused a thread.
const REFUSED_PAUSE: Duration = Duration::from_secs(1);

#[derive(Debug, PartialEq, Eq)]
enum Decision {
    /// Start a worker in this slot, which has been claimed.
    Launch(usize),
    /// Wake an idle worker, and look again after this long.
    Wake(Wake, Duration),
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
                if launch(core, pool, id).is_ok() {
                    continue;
                }
                Some(REFUSED_PAUSE)
            }
            Decision::Wake(wake, pause) => {
                pool.wake(wake);
                Some(pause)
            }
            Decision::Wait(pause) => pause,
        };
        pool.supervisor.wait(seen, pause);
    }
}

/// While there is work that nobody has taken, this never says "wait for a signal": whoever would
/// give it may be the one that hangs.
fn decide(core: &Core, pool: &Pool, now: Time) -> Decision {
    let state = &mut *pool.state.lock();
    let vacant = state.workers.iter().position(|w| !w.live);
    if let Some(vacant) = vacant
        && state.live() < state.settings.min
    {
        state.claim_slot(vacant);
        return Decision::Launch(vacant);
    }
    let work = state.lanes.runnable(state.share()) || !core.ready.is_empty();
    if !work {
        state.growth_wanted = false;
        return Decision::Wait(None);
    }
    let interval = state.settings.launch_interval;
    if state.workers.iter().any(|w| w.idle) {
        return Decision::Wake(state.wake_one(0), interval.max(LOOK_AGAIN_MIN));
    }
    let Some(vacant) = vacant.filter(|_| state.live() < state.bound(now)) else {
        return Decision::Wait(Some(state.next_stuck(now).max(LOOK_AGAIN_MIN)));
    };
    let since = state.last_launch.map_or(Duration::MAX, |at| now.since(at));
    match interval.checked_sub(since) {
        Some(left) if !left.is_zero() => Decision::Wait(Some(left)),
        _ => {
            state.claim_slot(vacant);
            Decision::Launch(vacant)
        }
    }
}

impl State {
    /// When the next busy worker will count as stuck, from now; at the latest when one that becomes
    /// busy now will.
    fn next_stuck(&self, now: Time) -> Duration {
        let limit = Duration::from_millis(STUCK_AFTER_MS);
        let busy = self.workers.iter().filter_map(|w| w.busy);
        let left = busy.filter_map(|(_, at)| limit.checked_sub(now.since(at))).min();
        left.unwrap_or(limit) + Duration::from_millis(1)
    }
}

/// Starts a worker in a slot that was claimed for it.
pub(super) fn launch(core: &Arc<Core>, pool: &Pool, id: usize) -> std::io::Result<()> {
    let of_worker = Arc::clone(core);
    let started =
        thread::spawn_internal(&format!("aio worker {id}"), move || run_worker(&of_worker, id));
    let mut state = pool.state.lock();
    state.last_launch = Some(clock::now());
    match started {
        Ok(thread) => {
            state.workers[id].thread = Some(thread);
            core.stats.worker_launched();
            Ok(())
        }
        Err(error) => {
            state.workers[id].live = false;
            core.stats.worker_refused();
            Err(error)
        }
    }
}
