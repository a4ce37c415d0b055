//! The worker pool as seen by other threads: an I/O queue, and wake-ups for workers.
//!
//! Threads that complete I/O wake workers, either for I/O in the ready set or to drop deferred
//! objects, and workers in turn complete I/O. To avoid a cyclic dependency, the queue and the
//! wake-up code are in this file, which `completions` depends on, while the threads are in
//! `method::worker`, one layer above.
//!
//! **Locking.** The roster, including its queue, workers and settings, is protected by a single
//! mutex, which corresponds to `AioWorkerSubmissionQueueLock`. Each function makes its decision
//! while holding the lock, but sends the signal only after releasing it. This is safe even if the
//! worker isn't asleep yet, because the worker's event remembers the signal, so the wake-up can't
//! be lost.

use crate::clock::{self, Time};
use crate::completion::lanes::Queued;
use crate::completion::roster::{CallBody, Job, Roster, Wake, WorkerSettings};
use crate::facade::atomic::{AtomicBool, Ordering};
use crate::facade::{Mutex, thread};
use crate::limits::WORKER_PLACES;
use crate::lock_free::event::Event;
use crate::tables::deferred::DeferredDrops;

/// The pool's queue, roster and events.
#[derive(Debug)]
pub(crate) struct WorkerPool {
    /// All scheduling state. See the module documentation for the locking rule.
    roster: Mutex<Roster>,
    /// One event for each worker, indexed by worker number. The events are not protected by the
    /// lock, because otherwise a worker would have to hold the lock while it sleeps.
    events: Box<[Event]>,
    /// The supervisor sleeps on this event.
    supervisor: Event,
    /// Kept so that shutdown can join it.
    supervisor_thread: Mutex<Option<thread::JoinHandle>>,
    /// Set when the supervisor has been started. From then on, workers either exist already or are
    /// started when they are needed. Before that, `submit` doesn't accept any I/O, so sessions have
    /// to execute their own.
    running: AtomicBool,
    /// Set once, at shutdown. Workers leave when they have nothing left to do.
    stopping: AtomicBool,
}

impl WorkerPool {
    pub(crate) fn new(settings: WorkerSettings, handles: usize, queue: usize) -> Self {
        Self {
            roster: Mutex::new(Roster::new(settings, handles, queue)),
            events: (0..WORKER_PLACES).map(|_| Event::new()).collect(),
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

    /// Calls `f` with the roster while holding the roster's lock. If `f` picks a thread to wake,
    /// the caller must signal that thread afterwards, as [`WorkerPool::wake_after`] does.
    pub(crate) fn with_roster<T>(&self, f: impl FnOnce(&mut Roster) -> T) -> T {
        f(&mut self.roster.lock())
    }

    /// Calls `f` with the roster, and signals the thread it chooses once the lock is released.
    pub(crate) fn wake_after(&self, f: impl FnOnce(&mut Roster) -> Wake) {
        let wake = self.with_roster(f);
        self.wake(wake);
    }

    pub(crate) fn is_running(&self) -> bool {
        self.running.load(Ordering::SeqCst)
    }

    /// Queues the I/Os returned by `next` until the queue is full. The remaining I/Os stay with the
    /// session, which executes them itself.
    pub(crate) fn submit(&self, mut next: impl FnMut() -> Option<Queued>) {
        if !self.is_running() {
            return;
        }
        self.wake_after(|roster| {
            while roster.lanes().has_room()
                && let Some(io) = next()
            {
                roster.lanes().push(io);
            }
            roster.wake_for_queued(clock::now())
        });
    }

    /// Queues I/O that must not stay with the session: I/O that a failed ring hasn't started,
    /// writes that a ring leaves to the workers, and the I/O of a session that must not block. We
    /// therefore ignore the queue's bound here. Even so, the queue can't overflow, because it has
    /// room for every handle.
    pub(crate) fn take_over(&self, moved: impl Iterator<Item = Queued>) {
        self.wake_after(|roster| {
            for io in moved {
                roster.lanes().push(io);
            }
            roster.wake_for_queued(clock::now())
        });
    }

    /// Queues a blocking call and returns its id. `number` determines its lane.
    pub(crate) fn call(&self, number: u64, run: CallBody) -> u64 {
        let mut id = 0;
        self.wake_after(|roster| {
            id = roster.push_call(number, run);
            roster.wake_for_queued(clock::now())
        });
        id
    }

    /// Removes a call that no worker has begun yet, because nothing waits for it any more.
    pub(crate) fn cancel_call(&self, id: u64) {
        // The call may own files, so it must not be dropped while we hold the lock.
        let removed = self.roster.lock().remove_call(id);
        drop(removed);
    }

    /// Wakes one worker, either to complete I/O in the ready set or to drop deferred objects.
    /// Neither of these is in the queue.
    pub(crate) fn kick(&self) {
        self.wake_after(|roster| roster.wake_one(0));
    }

    /// Signals the thread the roster has chosen. The caller must not hold the roster's lock.
    pub(crate) fn wake(&self, wake: Wake) {
        match wake {
            Wake::None => {}
            Wake::Worker(id) => self.events[id].signal(),
            Wake::Supervisor => self.supervisor.signal(),
        }
    }

    // The remaining functions are called by the pool's threads.

    /// Returns the event on which worker `id` sleeps. The worker must read the event's epoch before
    /// it looks for work, because otherwise it could miss a signal.
    pub(crate) fn worker_event(&self, id: usize) -> &Event {
        &self.events[id]
    }

    /// The event that the supervisor sleeps on.
    pub(crate) fn supervisor_event(&self) -> &Event {
        &self.supervisor
    }

    /// Chooses the next job of worker `id`. See [`Roster::next_job`].
    pub(crate) fn next_job(&self, id: usize, now: Time, deferred: &DeferredDrops) -> Job {
        let mut roster = self.roster.lock();
        // `shut_down` sets the flag before it signals the workers. So if a worker still reads false
        // here, the signal hasn't been sent yet, and it will end the worker's next sleep.
        let stopping = self.stopping.load(Ordering::SeqCst);
        roster.next_job(id, now, deferred, stopping)
    }

    /// Called when worker `id`'s idle timeout has passed. Returns true if its thread must exit.
    pub(crate) fn leave_if_surplus(&self, id: usize) -> bool {
        let left = self.roster.lock().leave_if_surplus(id);
        if let Some(wake) = left {
            self.wake(wake);
        }
        left.is_some()
    }

    pub(crate) fn is_stopping(&self) -> bool {
        self.stopping.load(Ordering::SeqCst)
    }

    /// Records the supervisor's thread. The pool accepts I/O from now on.
    pub(crate) fn supervised_by(&self, thread: thread::JoinHandle) {
        *self.supervisor_thread.lock() = Some(thread);
        self.running.store(true, Ordering::SeqCst);
    }

    /// Stops all threads. There must be no I/O in flight. We stop the supervisor first, because
    /// otherwise it could start another worker, whose thread would never be joined.
    pub(crate) fn shut_down(&self) {
        self.stopping.store(true, Ordering::SeqCst);
        self.supervisor.signal();
        // Move the thread handle out of the mutex first. If we held the lock while joining the
        // thread, any other thread that needs the lock would block.
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
