//! The `worker` method: the threads of the worker pool, and the supervisor that starts them. In
//! PostgreSQL, each I/O worker is a process, and the postmaster starts it.
//!
//! A worker's main job is to execute queued I/O. Before doing that, it completes any I/O that ring
//! drivers have reaped (the ready set), because the data of that I/O has already arrived and
//! sessions are waiting for it. It also makes blocking calls for sessions. If there isn't any work
//! at all, it closes abandoned files. All decisions are made in `roster`.

use super::{Batch, Method};
use crate::clock;
use crate::completion::completions::AbortOnPanic;
use crate::completion::in_flight::InFlight;
use crate::completion::roster::{Decision, Job, Wake};
use crate::facade::thread;
use crate::tables::completer::Completer;
use std::io;
use std::sync::Arc;
use std::time::Duration;

/// How long the supervisor pauses after the system has refused to start a thread.
const REFUSED_PAUSE: Duration = Duration::from_secs(1);

/// The method `worker`.
#[derive(Debug)]
pub(crate) struct Workers;

impl Method for Workers {
    /// Queues the whole batch while holding the lock, and wakes at most one worker. If the queue
    /// becomes full, the remaining I/O stays in the batch and the session executes it.
    fn submit(&self, in_flight: &Arc<InFlight>, batch: &mut Batch<'_>) {
        in_flight.completions().pool().submit(|| batch.take_queued());
    }
}

/// Starts one worker and the supervisor, which starts the others.
///
/// # Errors
/// Fails if the system refuses to start a thread, because a pool without any workers would never
/// execute anything.
pub(crate) fn start(in_flight: &Arc<InFlight>) -> io::Result<()> {
    let pool = in_flight.completions().pool();
    if pool.is_running() {
        return Ok(());
    }
    // We start one worker here instead of leaving that to the supervisor, so that the caller finds
    // out immediately if the system refuses to start threads.
    if pool.with_roster(|roster| roster.claim_place(0)) {
        launch(in_flight, 0)?;
    }
    let supervised = Arc::clone(in_flight);
    let thread = thread::spawn_internal("aio supervisor", move || supervise(&supervised))?;
    pool.supervised_by(thread);
    Ok(())
}

/// The supervisor's loop. We read the epoch before making a decision, so we won't miss a signal
/// that arrives in the meantime.
fn supervise(in_flight: &Arc<InFlight>) {
    let pool = in_flight.completions().pool();
    loop {
        let seen = pool.supervisor_event().epoch();
        if pool.is_stopping() {
            return;
        }
        let (now, has_ready) = (clock::now(), || in_flight.completions().has_ready());
        let pause = match pool.with_roster(|roster| roster.decide(now, has_ready)) {
            Decision::Launch(id) => {
                if launch(in_flight, id).is_ok() {
                    continue;
                }
                // This doesn't affect the existing workers. We just try again less often.
                Some(REFUSED_PAUSE)
            }
            Decision::Wake(wake, pause) => {
                pool.wake(wake);
                Some(pause)
            }
            Decision::Wait(pause) => pause,
        };
        pool.supervisor_event().wait(seen, pause);
    }
}

/// Starts a worker with a number that was claimed for it.
fn launch(in_flight: &Arc<InFlight>, id: usize) -> io::Result<()> {
    let theirs = Arc::clone(in_flight);
    let started = thread::spawn_internal(&format!("aio worker {id}"), move || run(&theirs, id));
    let completions = in_flight.completions();
    let (thread, result) = match started {
        Ok(thread) => (Some(thread), Ok(())),
        Err(error) => (None, Err(error)),
    };
    let now = clock::now();
    completions.pool().with_roster(|roster| roster.launched(id, thread, now));
    let general = completions.statistics().general();
    if result.is_ok() { &general.workers_launched } else { &general.workers_refused }.add(1);
    result
}

/// A worker's main loop. The worker reads the epoch before it looks for work. If a signal arrives
/// after that, the worker won't go to sleep, or its sleep ends immediately.
fn run(in_flight: &InFlight, id: usize) {
    let completions = in_flight.completions();
    let (pool, deferred) = (completions.pool(), completions.deferred());
    loop {
        let seen = pool.worker_event(id).epoch();
        help(in_flight, id);
        match pool.next_job(id, clock::now(), deferred) {
            Job::Execute { index, wake } => {
                pool.wake(wake);
                // This call may take a long time. That doesn't delay other queued I/O, because we
                // have already woken the next worker.
                in_flight.execute(in_flight.token(index), Completer::Worker);
                pool.with_roster(|roster| roster.job_done(id));
            }
            Job::Call { run, wake } => {
                pool.wake(wake);
                // If the call panicked, its session would wait for ever.
                let guard = AbortOnPanic;
                run();
                std::mem::forget(guard);
                pool.with_roster(|roster| roster.job_done(id));
            }
            Job::Close(file) => {
                drop(file);
                pool.with_roster(|roster| roster.job_done(id));
            }
            Job::Sleep { timeout } => {
                // The roster's lock doesn't protect the ready set and the deferred tables. Another
                // thread may have added an entry after we called `help` but before we marked this
                // worker as idle, and in that case it found no idle worker to wake. So we must look
                // once more before going to sleep.
                let nothing = !completions.has_ready() && !deferred.has_tables();
                let timed_out = nothing && !pool.worker_event(id).wait(seen, timeout);
                if timed_out && pool.leave_if_surplus(id) {
                    return;
                }
                pool.with_roster(|roster| roster.awake(id));
            }
            Job::Leave(wake) => {
                pool.wake(wake);
                return;
            }
        }
    }
}

/// Completes the I/O in the ready set, and drops slot tables that the completing threads were not
/// allowed to drop. If there is more I/O to complete, wakes another worker, just as we do for
/// queued I/O.
fn help(in_flight: &InFlight, id: usize) {
    let completions = in_flight.completions();
    while completions.help(id as u32 * 64, Completer::Helper) {
        let more = completions.has_ready();
        completions.pool().wake_after(|roster| {
            roster.job_done(id);
            if more { roster.wake_above(id) } else { Wake::None }
        });
    }
    while let Some(table) = completions.deferred().take_table() {
        drop(table);
    }
}
