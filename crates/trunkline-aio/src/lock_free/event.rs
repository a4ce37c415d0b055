//! Events: one wake-up word per session, which covers everything a session can wait for. The
//! counterpart of PostgreSQL's latch.
//!
//! An event is an event count. The waiter first reads the epoch, then checks its condition, and
//! sleeps only if the epoch hasn't changed in between. A signal increments the epoch, so if it
//! arrives between the check and the sleep, the sleep returns immediately and no wake-up is lost.
//!
//! ```text
//!   bit 0       a thread sleeps, or is about to, so a signal must call the futex
//!   bits 1-31   the epoch; it wraps
//! ```
//!
//! Because of bit 0, signalling a running session costs only an atomic addition and no system call.
//! Latches use `maybe_sleeping` to avoid their system call. Unlike a latch, an event is never
//! reset, so there is no race between resetting and setting it.
//!
//! A task of an async runtime registers a waker instead of sleeping. The signal then takes the
//! waker out and calls it.

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
    /// Whether a waker is registered. Signals check this flag first, so that they don't take the
    /// lock when there is no waker.
    has_waker: AtomicBool,
    waker: Mutex<Option<Waker>>,
    /// How many more completions it takes to signal the session. At 0 or 1, the next completion
    /// signals.
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
            // Set the sleeping bit before waiting on the futex. If a signaller changes the word
            // first, the compare-exchange fails and the next iteration returns. A later signaller
            // sees the bit and wakes this thread.
            if now & SLEEPING == 0
                && word
                    .compare_exchange(now, now | SLEEPING, Ordering::SeqCst, Ordering::SeqCst)
                    .is_err()
            {
                continue;
            }
            // The kernel compares the word with the expected value before it puts the thread to
            // sleep, so a signal in between isn't lost. The wake-up may be spurious, so the loop
            // checks the epoch again.
            if self.futex.wait(seen.0 | SLEEPING, timeout) == FutexWait::TimedOut {
                word.fetch_and(!SLEEPING, Ordering::SeqCst);
                return word.load(Ordering::SeqCst) & !SLEEPING != seen.0;
            }
        }
    }

    /// Registers a waker for the next signal. The caller must then check its condition again,
    /// because a signal may have arrived just before the registration.
    pub(crate) fn register(&self, waker: &Waker) {
        // Cloning or dropping a waker runs foreign code, and completing threads take this lock, so
        // do both outside it.
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

    /// Whether `done` returns at least `count`. If not, the session is signalled only when the
    /// missing number of completions has arrived, so it is woken just once rather than for each
    /// I/O. Each completion must be visible to `done` before [`Event::completed`] is called for it.
    pub(crate) fn has(&self, count: usize, done: impl Fn() -> usize) -> bool {
        let mut seen = done();
        // A completion after the store decrements `wanted`. A completion before the store is seen
        // by the next `done`, which restarts the loop. A completion concurrent with the store may
        // do both. In that case the signal comes too early, which is harmless: the session just
        // checks once more than necessary.
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
            // Clear the bit, so that the next signals need no system call. The session may already
            // be asleep again in the new epoch. In that case the call below wakes it; it finds its
            // epoch unchanged, sets the bit again and goes back to sleep.
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
        // This model has three threads, and exploring every schedule takes minutes. According to
        // loom's authors, schedules with up to three preemptions find nearly all bugs.
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
