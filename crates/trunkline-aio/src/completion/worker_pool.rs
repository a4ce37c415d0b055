//! The worker pool as seen by other threads: an I/O queue, and wake-ups for workers.
//!
//! Completing threads wake workers, for I/O in the ready set and for deferred drops, and workers
//! complete I/O. To break this cycle, the queue and the wake-ups are in the layer below completion,
//! separate from the threads that serve them (`method::worker`).
//!
//! **Locking.** One mutex, the counterpart of `AioWorkerSubmissionQueueLock`, protects the roster:
//! queue, workers and settings. Every function decides under the lock but signals only after
//! releasing it. A signal that arrives before the worker sleeps is remembered by the event, so a
//! wake-up decided under the lock is never lost.

use crate::clock::Time;
use crate::completion::roster::{Decision, Job, Roster, Wake, WorkerSettings};
use crate::limits::WORKERS_MAX;
use crate::lock_free::event::{Epoch, Event};
use crate::sync::atomic::{AtomicBool, Ordering};
use crate::sync::{Mutex, thread};
use crate::tables::deferred::DeferredDrops;
use std::time::Duration;

/// The pool's queue, roster and events.
#[derive(Debug)]
pub(crate) struct WorkerPool {
    /// All scheduling state. See the module documentation for the locking rule.
    roster: Mutex<Roster>,
    /// By worker number. The events are outside the lock, so that a sleeping worker doesn't hold
    /// it.
    events: Box<[Event]>,
    /// The supervisor sleeps on this event.
    supervisor: Event,
    /// Kept so that shutdown can join it.
    supervisor_thread: Mutex<Option<thread::JoinHandle>>,
    /// The supervisor has been started, so workers exist or will be started on demand. Until then
    /// `submit` doesn't take any I/O, and sessions execute their own.
    running: AtomicBool,
    /// Set once, at shutdown. Workers leave when they have nothing left to do.
    stopping: AtomicBool,
}

impl WorkerPool {
    pub(crate) fn new(settings: WorkerSettings, handles: usize, queue: usize) -> Self {
        Self {
            roster: Mutex::new(Roster::new(settings, handles, queue)),
            events: (0..WORKERS_MAX).map(|_| Event::new()).collect(),
            supervisor: Event::new(),
            supervisor_thread: Mutex::new(None),
            running: AtomicBool::new(false),
            stopping: AtomicBool::new(false),
        }
    }

    pub(crate) fn change_settings(&self, settings: WorkerSettings) {
        self.roster.lock().change_settings(settings);
        // Idle workers must compute new timeouts, and the supervisor may have to start or end
        // workers.
        self.events.iter().for_each(Event::signal);
        self.supervisor.signal();
    }

    /// Number of live workers.
    pub(crate) fn size(&self) -> usize {
        self.roster.lock().live()
    }

    /// Number of I/Os queued.
    pub(crate) fn queued(&self) -> usize {
        self.roster.lock().queued()
    }

    pub(crate) fn is_running(&self) -> bool {
        self.running.load(Ordering::SeqCst)
    }

    /// Queues the I/Os that `next` returns, as pairs of lane and handle index, until the queue is
    /// full. The session keeps the remaining I/Os and executes them itself.
    pub(crate) fn submit(&self, mut next: impl FnMut() -> Option<(usize, u32)>) {
        if !self.is_running() {
            return;
        }
        let wake = {
            let mut roster = self.roster.lock();
            while roster.lanes().has_room()
                && let Some((lane, index)) = next()
            {
                roster.lanes().push(lane, index);
            }
            roster.wake_one(0)
        };
        self.wake(wake);
    }

    /// Queues I/O that a failed ring hasn't started. The queue's bound doesn't apply here, because
    /// there is no session that could execute the I/O instead. The queue has room for every handle.
    pub(crate) fn take_over(&self, moved: impl Iterator<Item = (usize, u32)>) {
        let wake = {
            let mut roster = self.roster.lock();
            for (lane, index) in moved {
                roster.lanes().push(lane, index);
            }
            roster.wake_one(0)
        };
        self.wake(wake);
    }

    /// Wakes one worker for I/O in the ready set or for deferred drops, which are not in the queue.
    pub(crate) fn kick(&self) {
        let wake = self.roster.lock().wake_one(0);
        self.wake(wake);
    }

    /// Signals the thread the roster has chosen. The caller must not hold the roster's lock.
    pub(crate) fn wake(&self, wake: Wake) {
        match wake {
            Wake::None => {}
            Wake::Worker(id) => self.events[id].signal(),
            Wake::Supervisor => self.supervisor.signal(),
        }
    }

    /// Wakes a worker above `id`, for I/O in the ready set.
    pub(crate) fn wake_above(&self, id: usize) {
        let wake = self.roster.lock().wake_above(id);
        self.wake(wake);
    }

    // The remaining functions are called by the pool's threads.

    /// Reads worker `id`'s epoch. The worker must do this before it looks for work, or it could
    /// miss a signal.
    pub(crate) fn worker_epoch(&self, id: usize) -> Epoch {
        self.events[id].epoch()
    }

    /// Puts worker `id` to sleep. Returns false if the timeout passed before a signal.
    pub(crate) fn worker_wait(&self, id: usize, seen: Epoch, timeout: Option<Duration>) -> bool {
        self.events[id].wait(seen, timeout)
    }

    /// Chooses the next job of worker `id`. See [`Roster::next_job`].
    pub(crate) fn next_job(&self, id: usize, now: Time, deferred: &DeferredDrops) -> Job {
        let mut roster = self.roster.lock();
        // `shut_down` sets the flag before it signals the workers, so a worker that still reads
        // false here finds the signal when it goes to sleep.
        let stopping = self.stopping.load(Ordering::SeqCst);
        roster.next_job(id, now, deferred, stopping)
    }

    pub(crate) fn job_done(&self, id: usize) {
        self.roster.lock().job_done(id);
    }

    pub(crate) fn awake(&self, id: usize) {
        self.roster.lock().awake(id);
    }

    /// Called when worker `id`'s idle timeout has passed. Returns true if its thread must exit.
    pub(crate) fn leave_if_surplus(&self, id: usize) -> bool {
        let left = self.roster.lock().leave_if_surplus(id);
        if let Some(wake) = left {
            self.wake(wake);
        }
        left.is_some()
    }

    pub(crate) fn supervisor_epoch(&self) -> Epoch {
        self.supervisor.epoch()
    }

    pub(crate) fn supervisor_wait(&self, seen: Epoch, pause: Option<Duration>) {
        self.supervisor.wait(seen, pause);
    }

    pub(crate) fn is_stopping(&self) -> bool {
        self.stopping.load(Ordering::SeqCst)
    }

    /// Decides what the supervisor does next. See [`Roster::decide`].
    pub(crate) fn decide(&self, now: Time, has_ready: impl FnOnce() -> bool) -> Decision {
        self.roster.lock().decide(now, has_ready)
    }

    pub(crate) fn claim_place(&self, id: usize) -> bool {
        self.roster.lock().claim_place(id)
    }

    pub(crate) fn launched(&self, id: usize, thread: Option<thread::JoinHandle>, now: Time) {
        self.roster.lock().launched(id, thread, now);
    }

    /// Records the supervisor's thread. The pool accepts I/O from now on.
    pub(crate) fn supervised_by(&self, thread: thread::JoinHandle) {
        *self.supervisor_thread.lock() = Some(thread);
        self.running.store(true, Ordering::SeqCst);
    }

    /// Stops all threads. No I/O may be in flight. The supervisor is stopped first, because it
    /// could otherwise start a worker that shutdown doesn't join.
    pub(crate) fn shut_down(&self) {
        self.stopping.store(true, Ordering::SeqCst);
        self.supervisor.signal();
        // Move the thread handle out first: joining while we hold the lock would block any thread
        // that needs it.
        let supervisor = self.supervisor_thread.lock().take();
        if let Some(supervisor) = supervisor {
            // If the supervisor panicked, it has already printed the message; there is nothing left
            // to clean up.
            let _ = supervisor.join();
        }
        self.running.store(false, Ordering::SeqCst);
        self.events.iter().for_each(Event::signal);
        let threads = self.roster.lock().take_threads();
        for thread in threads {
            let _ = thread.join();
        }
    }
}
