//! Events: each session has a single word that it sleeps on, no matter what it is waiting for. This
//! is our equivalent of PostgreSQL's latch.
//!
//! An event is what the literature calls an event count. A thread that wants to wait first reads
//! the epoch and then checks its condition. It goes to sleep only if the epoch is still the same.
//! Since every signal increments the epoch, a signal that arrives between the check and the sleep
//! makes the sleep return immediately, so we never lose a wake-up.
//!
//! ```text
//!   bit 0       a thread sleeps, or is about to, so a signal must call the futex
//!   bits 1-31   the epoch; it wraps
//! ```
//!
//! Thanks to bit 0, signalling a session that is running requires just an atomic addition and no
//! system call. Latches use `maybe_sleeping` for the same purpose. Unlike a latch, an event never
//! has to be reset, so there can't be a race between setting and resetting it.
//!
//! If the session is used by an async task, it doesn't sleep but registers a waker. The next signal
//! then removes that waker and calls it.

use crate::facade::atomic::{AtomicBool, AtomicU32, Ordering};
use crate::facade::{Futex, FutexWait, Mutex};
use std::task::Waker;
use std::time::Duration;

/// Set in the futex word while a thread sleeps.
const SLEEPING: u32 = 1;
/// The increment of a signal: one epoch. It leaves bit 0 alone.
const STEP: u32 = 2;

/// The event of one session.
#[derive(Debug)]
pub(crate) struct Event {
    futex: Futex,
    /// Whether a waker is registered. We check this flag first when signalling, so that we don't
    /// have to take the lock if there is no waker.
    has_waker: AtomicBool,
    waker: Mutex<Option<Waker>>,
    /// How many more I/Os must complete before we signal the session. If this is 0 or 1, we signal
    /// it on the next completion.
    wanted: AtomicU32,
}

/// An epoch read from an event. [`Event::wait`] sleeps only while this is still the event's epoch.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Epoch(u32);

impl Event {
    pub(crate) fn new() -> Self {
        Self {
            futex: Futex::new(0),
            has_waker: AtomicBool::new(false),
            waker: Mutex::new(None),
            wanted: AtomicU32::new(0),
        }
    }

    /// Reads the epoch. The caller must do this before it checks its condition.
    pub(crate) fn epoch(&self) -> Epoch {
        Epoch(self.futex.word().load(Ordering::SeqCst) & !SLEEPING)
    }

    /// Sleeps until a signal after `seen`. Returns false if `timeout` passed first.
    pub(crate) fn wait(&self, seen: Epoch, timeout: Option<Duration>) -> bool {
        let word = self.futex.word();
        loop {
            let now = word.load(Ordering::SeqCst);
            if now & !SLEEPING != seen.0 {
                return true;
            }
            // We must set the sleeping bit before waiting on the futex. If a signal has changed the
            // word in the meantime, the compare-exchange fails and we return in the next iteration.
            // If a signal arrives later, it sees the bit and wakes this thread.
            if now & SLEEPING == 0
                && word
                    .compare_exchange(now, now | SLEEPING, Ordering::SeqCst, Ordering::SeqCst)
                    .is_err()
            {
                continue;
            }
            // Before it puts the thread to sleep, the kernel checks that the word still has the
            // expected value, so we don't lose a signal that arrives just before. The wake-up can
            // be spurious, so we loop and check the epoch again.
            if self.futex.wait(seen.0 | SLEEPING, timeout) == FutexWait::TimedOut {
                word.fetch_and(!SLEEPING, Ordering::SeqCst);
                return word.load(Ordering::SeqCst) & !SLEEPING != seen.0;
            }
        }
    }

    /// Registers a waker for the next signal. After that, the caller must check its condition once
    /// more, because a signal may have arrived just before the waker was registered.
    pub(crate) fn register(&self, waker: &Waker) {
        // Cloning or dropping a waker runs code we don't control. Completing threads need this
        // lock, so we must not hold it while doing either.
        let new = waker.clone();
        let old = self.waker.lock().replace(new);
        drop(old);
        // Set the flag only after the waker: a signal that sees the flag must find the waker.
        self.has_waker.store(true, Ordering::SeqCst);
    }

    /// Drops a waker that is no longer needed. This matters because the waker may own the task that
    /// owns the session.
    pub(crate) fn clear_waker(&self) {
        if self.has_waker.swap(false, Ordering::SeqCst) {
            let waker = self.waker.lock().take();
            drop(waker);
        }
    }

    /// Returns true if `done` returns at least `count`. If it doesn't, we arrange for the session
    /// to be signalled only after the missing number of I/Os has completed, so that it wakes up
    /// just once instead of once per I/O. `done` must already include an I/O when
    /// [`Event::completed`] is called for it.
    pub(crate) fn has(&self, count: usize, done: impl Fn() -> usize) -> bool {
        let mut seen = done();
        // If an I/O completes after the store, it decrements `wanted`. If it completes before the
        // store, the next call of `done` counts it, and we repeat the loop. If it completes at the
        // same time as the store, both may happen, which means that we signal the session too
        // early. That is harmless, because the session just checks its condition one more time.
        while seen < count {
            self.wanted.store((count - seen) as u32, Ordering::SeqCst);
            let now = done();
            if now == seen {
                return false;
            }
            seen = now;
        }
        true
    }

    /// Resets the threshold: from now on, every completion signals.
    pub(crate) fn has_enough(&self) {
        self.wanted.store(0, Ordering::SeqCst);
    }

    /// Reports that `count` more of the session's I/Os are complete, and signals the session unless
    /// it's waiting for more.
    pub(crate) fn completed(&self, count: u32) {
        let mut wanted = self.wanted.load(Ordering::SeqCst);
        while wanted > count {
            let less = wanted - count;
            match self.wanted.compare_exchange(wanted, less, Ordering::SeqCst, Ordering::SeqCst) {
                Ok(_) => return,
                Err(now) => wanted = now,
            }
        }
        self.signal();
    }

    /// Wakes the session, whether its thread is asleep or its task has registered a waker.
    pub(crate) fn signal(&self) {
        let old = self.futex.word().fetch_add(STEP, Ordering::SeqCst);
        if old & SLEEPING != 0 {
            // Clear the bit, so that the next signals don't need a system call. By now, the session
            // may have gone back to sleep in the new epoch. In that case, the call below wakes the
            // session unnecessarily. The session then sees that the epoch hasn't changed, sets the
            // bit again and goes back to sleep.
            self.futex.word().fetch_and(!SLEEPING, Ordering::SeqCst);
            self.futex.wake(u32::MAX >> 1);
        }
        if self.has_waker.load(Ordering::SeqCst) && self.has_waker.swap(false, Ordering::SeqCst) {
            let waker = self.waker.lock().take();
            if let Some(waker) = waker {
                waker.wake();
            }
        }
    }
}

#[cfg(all(test, loom))]
mod loom_tests {
    use super::*;
    use crate::facade::Arc;

    #[test]
    fn loom_no_signal_is_lost() {
        loom::model(|| {
            let event = Arc::new(Event::new());
            let done = Arc::new(AtomicU32::new(0));
            let (event2, done2) = (Arc::clone(&event), Arc::clone(&done));
            let thread = loom::thread::spawn(move || {
                done2.store(1, Ordering::SeqCst);
                event2.signal();
            });
            loop {
                let seen = event.epoch();
                if done.load(Ordering::SeqCst) == 1 {
                    break;
                }
                event.wait(seen, None);
            }
            drop(thread.join());
        });
    }

    #[test]
    fn loom_two_signallers_and_a_sleeper() {
        // With the three threads of this model, it takes minutes to explore all schedules.
        // According to loom's authors, nearly all bugs show up in schedules with no more than three
        // preemptions.
        let mut model = loom::model::Builder::new();
        model.preemption_bound = Some(3);
        model.check(|| {
            let event = Arc::new(Event::new());
            let count = Arc::new(AtomicU32::new(0));
            let threads: Vec<_> = (0..2)
                .map(|_| {
                    let (event, count) = (Arc::clone(&event), Arc::clone(&count));
                    loom::thread::spawn(move || {
                        count.fetch_add(1, Ordering::SeqCst);
                        event.signal();
                    })
                })
                .collect();
            loop {
                let seen = event.epoch();
                if count.load(Ordering::SeqCst) == 2 {
                    break;
                }
                event.wait(seen, None);
            }
            for thread in threads {
                drop(thread.join());
            }
        });
    }

    /// Two completions send one signal, whether they are announced separately or together.
    #[test]
    fn loom_a_sleeper_that_wants_two_gets_two() {
        for announced in [[1, 1], [0, 2]] {
            let mut model = loom::model::Builder::new();
            // Without a bound, this model runs for minutes.
            model.preemption_bound = Some(3);
            model.check(move || {
                let event = Arc::new(Event::new());
                let done = Arc::new(AtomicU32::new(0));
                let (event2, done2) = (Arc::clone(&event), Arc::clone(&done));
                let thread = loom::thread::spawn(move || {
                    for count in announced {
                        done2.fetch_add(1, Ordering::SeqCst);
                        if count > 0 {
                            event2.completed(count);
                        }
                    }
                });
                loop {
                    let seen = event.epoch();
                    if event.has(2, || done.load(Ordering::SeqCst) as usize) {
                        break;
                    }
                    event.wait(seen, None);
                }
                event.has_enough();
                drop(thread.join());
            });
        }
    }
}
