//! What tasks ask of the thread that flushes for them.
//!
//! A task must not block, so it can't flush. It leaves the LSN and its waker here, and the thread flushes. A task that
//! gives up leaves its waker behind, which is then woken once in vain.

use std::task::Waker;
use std::time::Duration;

use trunkline_aio::facade::atomic::{AtomicBool, AtomicU64, Ordering};
use trunkline_aio::facade::{Futex, FutexWait, Mutex};
use trunkline_format::Lsn;

/// The requests of all tasks.
#[derive(Debug, Default)]
pub(super) struct Requests {
    /// Up to where tasks need the WAL.
    wanted: AtomicU64,
    /// Signalled with each request.
    latch: Futex,
    /// Whether there is a thread that flushes.
    is_served: AtomicBool,
    tasks: Mutex<Vec<(Lsn, Waker)>>,
}

impl Requests {
    /// Asks for a flush up to `wanted`. The task must test its condition afterwards.
    pub(super) fn ask(&self, wanted: Lsn, waker: &Waker) {
        let mut tasks = self.tasks.lock();
        // A task asks again each time it is polled.
        match tasks.iter_mut().find(|(_, known)| known.will_wake(waker)) {
            Some((known, _)) => *known = (*known).min(wanted),
            None => tasks.push((wanted, waker.clone())),
        }
        drop(tasks);
        self.wanted.fetch_max(wanted.0, Ordering::SeqCst);
        self.latch.signal();
    }

    /// Wakes the tasks that want no more than `durable`.
    pub(super) fn wake(&self, durable: Lsn) {
        let mut woken = Vec::new();
        self.tasks.lock().retain(|(wanted, waker)| {
            let is_waiting = *wanted > durable;
            if !is_waiting {
                woken.push(waker.clone());
            }
            is_waiting
        });
        woken.into_iter().for_each(Waker::wake);
    }

    /// Up to where tasks need the WAL.
    pub(super) fn wanted(&self) -> Lsn {
        Lsn(self.wanted.load(Ordering::SeqCst))
    }

    /// Whether there is a thread that flushes.
    pub(super) fn is_served(&self) -> bool {
        self.is_served.load(Ordering::SeqCst)
    }

    /// Says whether there is one. If there is none any more, all tasks are woken, and find that out.
    pub(super) fn set_served(&self, is_served: bool) {
        self.is_served.store(is_served, Ordering::SeqCst);
        if !is_served {
            self.wake(Lsn(u64::MAX));
        }
    }

    /// The number of requests so far, for [`Requests::wait`].
    pub(super) fn epoch(&self) -> u32 {
        self.latch.epoch()
    }

    /// Wakes the thread.
    pub(super) fn signal(&self) {
        self.latch.signal();
    }

    /// Sleeps until there is a request after `epoch`. Returns true if `timeout` has passed first.
    pub(super) fn wait(&self, epoch: u32, timeout: Duration) -> bool {
        self.latch.wait(epoch, Some(timeout)) == FutexWait::TimedOut
    }
}
