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
//!   bit 1       a task has registered a waker, so a signal must call the wakers
//!   bits 2-31   the epoch; it wraps
//! ```
//!
//! Thanks to these bits, signalling a session that is running and isn't polled requires just an
//! atomic addition. Latches use `maybe_sleeping` to save the system call in the same way. Unlike a
//! latch, an event never has to be reset, so there can't be a race between setting and resetting
//! it.
//!
//! A task of an async runtime doesn't sleep but registers a waker. A session can be polled by
//! several tasks, so each polled wait has its own place for a waker, and a signal calls all of them
//! (`lock_free/wakers.rs`):
//!
//! ```text
//!   task                                signalling thread
//!   store the waker, then set bit 1     change the condition
//!   test the condition                  increment the epoch; if bit 1 was set, take and call
//!   return Pending if it's false        every waker, and clear bit 1 once none is left
//! ```
//!
//! Both threads change the same word. If the signal comes second, it sees the bit. If it comes
//! first, the task's test sees what the signalling thread has changed. A signal may also find the
//! bit clear because another signal has just taken the last waker but hasn't called it yet. That's
//! OK, because a task that is woken registers its waker again before it tests the condition.

use crate::facade::atomic::{AtomicU32, Ordering};
use crate::facade::{Futex, FutexWait};
use crate::lock_free::wakers::Wakers;
use std::task::Waker;
use std::time::Duration;

/// Set in the futex word while a thread sleeps.
const SLEEPING: u32 = 1;
/// Set in the futex word while a waker is registered.
const POLLED: u32 = 2;
/// The increment of a signal: one epoch. It leaves the flags alone.
const STEP: u32 = 4;

/// The epoch of a word, without its flags.
fn epoch_of(word: u32) -> u32 {
    word & !(SLEEPING | POLLED)
}

/// The event of one session.
#[derive(Debug)]
pub(crate) struct Event {
    futex: Futex,
    wakers: Wakers,
    /// How many more I/Os must complete before we signal the session. If this is 0 or 1, we signal
    /// it on the next completion.
    wanted: AtomicU32,
}

/// An epoch read from an event. [`Event::wait`] sleeps only while this is still the event's epoch.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Epoch(u32);

impl Event {
    pub(crate) fn new() -> Self {
        Self { futex: Futex::new(0), wakers: Wakers::new(), wanted: AtomicU32::new(0) }
    }

    /// Reads the epoch. The caller must do this before it checks its condition.
    pub(crate) fn epoch(&self) -> Epoch {
        Epoch(epoch_of(self.futex.word().load(Ordering::SeqCst)))
    }

    /// Sleeps until a signal after `seen`. Returns false if `timeout` passed first.
    pub(crate) fn wait(&self, seen: Epoch, timeout: Option<Duration>) -> bool {
        let word = self.futex.word();
        loop {
            let now = word.load(Ordering::SeqCst);
            if epoch_of(now) != seen.0 {
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
            if self.futex.wait(now | SLEEPING, timeout) == FutexWait::TimedOut {
                word.fetch_and(!SLEEPING, Ordering::SeqCst);
                return epoch_of(word.load(Ordering::SeqCst)) != seen.0;
            }
        }
    }

    /// The places for the wakers of the session's polled waits.
    pub(crate) fn wakers(&self) -> &Wakers {
        &self.wakers
    }

    /// Registers the waker of a polled wait for the next signal. The caller must then check its
    /// condition again, because a signal may have arrived just before.
    pub(crate) fn register(&self, place: u32, waker: &Waker) {
        self.wakers.register(place, waker);
        // Set the flag only after the waker: a signal that sees the flag must find the waker.
        self.futex.word().fetch_or(POLLED, Ordering::SeqCst);
    }

    /// Drops the wakers of a session that has ended. This matters because a waker may own the task
    /// that owns the session.
    pub(crate) fn clear_wakers(&self) {
        self.wakers.take_each(|| self.clear_polled(), drop);
    }

    /// Calls the wakers of the session's polled waits. If a thread of the session is asleep, this
    /// doesn't wake it.
    pub(crate) fn wake_tasks(&self) {
        if self.futex.word().load(Ordering::SeqCst) & POLLED != 0 {
            self.wakers.take_each(|| self.clear_polled(), Waker::wake);
        }
    }

    fn clear_polled(&self) {
        self.futex.word().fetch_and(!POLLED, Ordering::SeqCst);
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
    /// its thread is waiting for more. The session's tasks are woken in any case, because they
    /// never wait for several I/Os.
    pub(crate) fn completed(&self, count: u32) {
        let mut wanted = self.wanted.load(Ordering::SeqCst);
        while wanted > count {
            let less = wanted - count;
            match self.wanted.compare_exchange(wanted, less, Ordering::SeqCst, Ordering::SeqCst) {
                Ok(_) => return self.wake_tasks(),
                Err(now) => wanted = now,
            }
        }
        self.signal();
    }

    /// Wakes the session: its thread if it is asleep, and every task that has registered a waker.
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
        if old & POLLED != 0 {
            self.wake_tasks();
        }
    }
}

#[cfg(all(test, not(loom)))]
mod tests {
    use super::*;
    use crate::facade::Arc;
    use std::panic::{AssertUnwindSafe, catch_unwind, resume_unwind};
    use std::task::Wake;

    /// Counts its calls.
    #[derive(Default)]
    struct Count(AtomicU32);

    impl Count {
        fn calls(&self) -> u32 {
            self.0.load(Ordering::SeqCst)
        }
    }

    impl Wake for Count {
        fn wake(self: Arc<Self>) {
            self.0.fetch_add(1, Ordering::SeqCst);
        }
    }

    /// Signals the event again, and records how often the other task has been woken by then.
    struct Signals {
        event: Arc<Event>,
        other: Arc<Count>,
        seen: AtomicU32,
    }

    impl Wake for Signals {
        fn wake(self: Arc<Self>) {
            self.event.signal();
            self.seen.store(self.other.calls(), Ordering::SeqCst);
        }
    }

    /// The first waker doesn't return until the other task has been woken by a second signal.
    #[test]
    fn a_signal_calls_the_wakers_that_another_signal_has_not_reached() {
        let event = Arc::new(Event::new());
        let other = Arc::new(Count::default());
        let (theirs, seen) = (Arc::clone(&other), AtomicU32::new(0));
        let first = Arc::new(Signals { event: Arc::clone(&event), other: theirs, seen });
        let wakers = [Waker::from(Arc::clone(&first)), Waker::from(Arc::clone(&other))];
        wakers.iter().for_each(|waker| event.register(event.wakers().open(), waker));
        event.signal();
        assert_eq!(first.seen.load(Ordering::SeqCst), 1, "woken by the signal in the first waker");
        event.signal();
        assert_eq!(other.calls(), 1, "woken only once");
    }

    struct Panics;

    impl Wake for Panics {
        fn wake(self: Arc<Self>) {
            resume_unwind(Box::new("a waker panics"));
        }
    }

    #[test]
    fn a_panic_in_a_waker_takes_nothing_away_from_the_other_tasks() {
        for signals_again in [true, false] {
            let event = Event::new();
            let other = Arc::new(Count::default());
            let wakers = [Waker::from(Arc::new(Panics)), Waker::from(Arc::clone(&other))];
            wakers.iter().for_each(|waker| event.register(event.wakers().open(), waker));
            drop(wakers);
            assert!(catch_unwind(AssertUnwindSafe(|| event.signal())).is_err());
            if signals_again {
                event.signal();
                assert_eq!(other.calls(), 1);
            }
            event.clear_wakers();
            assert_eq!(Arc::strong_count(&other), 1, "the waker is dropped with the session");
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

    /// Counts its calls.
    struct Count(AtomicU32);

    impl std::task::Wake for Count {
        fn wake(self: std::sync::Arc<Self>) {
            self.0.fetch_add(1, Ordering::SeqCst);
        }
    }

    fn counter() -> (std::sync::Arc<Count>, Waker) {
        let count = std::sync::Arc::new(Count(AtomicU32::new(0)));
        (std::sync::Arc::clone(&count), Waker::from(count))
    }

    /// Two tasks of a session register and test. Each sees the condition or is woken.
    #[test]
    fn loom_both_tasks_see_the_condition_or_are_woken() {
        let mut model = loom::model::Builder::new();
        model.preemption_bound = Some(3);
        model.check(|| {
            let event = Arc::new(Event::new());
            let done = Arc::new(AtomicU32::new(0));
            let places = [event.wakers().open(), event.wakers().open()];
            let (event2, done2) = (Arc::clone(&event), Arc::clone(&done));
            let thread = loom::thread::spawn(move || {
                done2.store(1, Ordering::SeqCst);
                event2.signal();
            });
            let tasks = places.map(|place| {
                let (count, waker) = counter();
                event.register(place, &waker);
                (count, done.load(Ordering::SeqCst) == 1)
            });
            drop(thread.join());
            for (count, seen) in tasks {
                assert!(seen || count.0.load(Ordering::SeqCst) == 1);
            }
        });
    }

    /// Two signals at once. The last poll of a task sees what both changed.
    #[test]
    fn loom_a_signal_during_another_one_is_not_lost() {
        let mut model = loom::model::Builder::new();
        model.preemption_bound = Some(2);
        model.check(|| {
            let event = Arc::new(Event::new());
            let done = Arc::new(AtomicU32::new(0));
            let place = event.wakers().open();
            let (count, waker) = counter();
            let threads = [(), ()].map(|()| {
                let (event, done) = (Arc::clone(&event), Arc::clone(&done));
                loom::thread::spawn(move || {
                    done.fetch_add(1, Ordering::SeqCst);
                    event.signal();
                })
            });
            let poll = || {
                event.register(place, &waker);
                done.load(Ordering::SeqCst)
            };
            let first = poll();
            let woken = count.0.load(Ordering::SeqCst);
            let second = if woken > 0 { poll() } else { first };
            for thread in threads {
                drop(thread.join());
            }
            // A task that has not seen both is woken once more after its last poll began.
            assert!(second == 2 || count.0.load(Ordering::SeqCst) > woken);
        });
    }

    /// A wait ends while a signal calls the wakers. The session's other task is woken all the same.
    #[test]
    fn loom_a_wait_that_ends_takes_no_wake_up_along() {
        loom::model(|| {
            let event = Arc::new(Event::new());
            let places = [event.wakers().open(), event.wakers().open()];
            let ((_, one), (count, two)) = (counter(), counter());
            event.register(places[0], &one);
            event.register(places[1], &two);
            let event2 = Arc::clone(&event);
            let thread = loom::thread::spawn(move || event2.signal());
            event.wakers().close(places[0]);
            drop(thread.join());
            assert_eq!(count.0.load(Ordering::SeqCst), 1);
        });
    }
}
