//! Probe of the contract suites. It counts handle state transitions, can stop a thread at a
//! transition, and can replace raw results.
//!
//! To reproduce a race in the I/O core, we usually have to stop one thread between two particular
//! steps. [`TestProbe::pause_at`] stops the first thread that moves a matching I/O to a given
//! state. The handle stays in that state until the thread continues, so the test can do whatever is
//! supposed to race with it.

use crate::event_count::EventCount;
use crate::pause::PausePoint;
use std::fmt;
use trunkline_aio::facade::atomic::{AtomicBool, AtomicU32, AtomicU64, Ordering};
use trunkline_aio::facade::{Arc, Mutex};
use trunkline_aio::{Observed, Probe, STATES, State, WaitRef};

/// Replaces a raw result.
type Change = Box<dyn FnMut(&Observed, i32) -> i32 + Send>;
/// Called with an I/O that was selected.
type Action = Box<dyn FnOnce(&Observed) + Send>;
/// Selects an I/O, and the state it moves to; `None` just before its raw result is stored.
type Filter = Box<dyn Fn(&Observed, Option<State>) -> bool + Send>;

/// A probe that a test controls.
#[derive(Default)]
pub struct TestProbe {
    /// Number of transitions, by old and new state.
    transitions: [[AtomicU64; STATES.len()]; STATES.len()],
    /// Actions at state transitions, each for one I/O.
    actions: Mutex<Vec<(Filter, Action)>>,
    /// Pauses at state transitions, each for one I/O.
    pauses: Pauses,
    /// Pauses just before a raw result is stored, each for one I/O.
    results: Pauses,
    /// I/Os submitted since [`TestProbe::record`]; `None` if recording is off.
    submitted: Mutex<Option<Vec<Observed>>>,
    /// Replaces every raw result; see [`TestProbe::change_results`].
    change: Mutex<Option<Change>>,
    /// Incremented by each transition, but only while a thread observes.
    changed: EventCount,
    /// A thread is observing, or is about to.
    observed: AtomicBool,
    /// The errno that every `io_uring_enter` returns; 0 means no failure.
    ring_errno: AtomicU32,
    /// Number of `io_uring_enter` calls by ring drivers, including those we made fail.
    ring_entries: AtomicU64,
}

/// Pauses, each for one matching I/O.
#[derive(Default)]
struct Pauses(Mutex<Vec<(Filter, Place)>>);

impl Pauses {
    fn add(&self, filter: Filter) -> PausedIo {
        let place = Place::default();
        self.0.lock().push((filter, place.clone()));
        PausedIo(place)
    }

    /// Stops this thread if a pause matches the I/O. We remove the pause while holding the lock,
    /// but release the lock before stopping, so that other threads can still use the probe while we
    /// are stopped.
    fn pass(&self, io: &Observed, to: Option<State>) {
        let place = {
            let mut pauses = self.0.lock();
            // If a pause is released before a thread arrives, it has no effect.
            pauses.retain(|(_, place)| !place.point.is_released());
            let at = pauses.iter().position(|(filter, _)| filter(io, to));
            at.map(|at| pauses.remove(at).1)
        };
        if let Some(place) = place {
            place.stop(io);
        }
    }
}

/// A pause at an I/O. Either a thread has already stopped there, or one will stop when it gets
/// there. Dropping this value releases the thread, so that a test that panics doesn't hang.
#[derive(Debug)]
pub struct PausedIo(Place);

/// A pause point, and the I/O of the thread that stopped there.
#[derive(Debug, Clone, Default)]
struct Place {
    point: PausePoint,
    io: Arc<Mutex<Option<WaitRef>>>,
}

impl Place {
    /// Stops this thread. We must store the I/O first, because [`PausedIo::wait`] reads it as soon
    /// as the thread has arrived.
    fn stop(&self, io: &Observed) {
        *self.io.lock() = Some(io.io);
        self.point.wait();
    }
}

impl fmt::Debug for TestProbe {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("TestProbe")
    }
}

impl Drop for PausedIo {
    fn drop(&mut self) {
        self.0.point.release();
    }
}

impl PausedIo {
    /// Waits until a thread has stopped, and returns its I/O.
    pub fn wait(&self) -> WaitRef {
        self.0.point.wait_for_arrivals(1);
        let Some(io) = *self.0.io.lock() else { unreachable!("stored before the thread stops") };
        io
    }

    /// Whether a thread has stopped.
    pub fn has_arrived(&self) -> bool {
        self.0.point.arrivals() > 0
    }

    /// Lets the thread continue.
    pub fn release(&self) {
        self.0.point.release();
    }
}

impl TestProbe {
    /// Calls `action` when the next matching I/O moves to `state`, before any pause at that
    /// transition. It runs on the thread that moves the I/O.
    pub fn on_next(
        &self,
        state: State,
        filter: impl Fn(&Observed) -> bool + Send + 'static,
        action: impl FnOnce(&Observed) + Send + 'static,
    ) {
        let filter: Filter = Box::new(move |io, to| to == Some(state) && filter(io));
        self.actions.lock().push((filter, Box::new(action)));
    }

    /// Stops the next thread that moves a matching I/O to `state`.
    pub fn pause_at(
        &self,
        state: State,
        filter: impl Fn(&Observed) -> bool + Send + 'static,
    ) -> PausedIo {
        self.pauses.add(Box::new(move |io, to| to == Some(state) && filter(io)))
    }

    /// Holds back the raw result of the next matching I/O, so that the I/O stays SUBMITTED. To do
    /// so, we stop the thread that received the result: an I/O worker, a ring driver, or the
    /// simulated device.
    pub fn hold_result(&self, filter: impl Fn(&Observed) -> bool + Send + 'static) -> PausedIo {
        self.results.add(Box::new(move |io, _| filter(io)))
    }

    /// Records every I/O submitted from now on. Discards any earlier record.
    pub fn record(&self) {
        *self.submitted.lock() = Some(Vec::new());
    }

    /// The I/Os submitted since [`TestProbe::record`], in submission order.
    pub fn recorded(&self) -> Vec<Observed> {
        self.submitted.lock().clone().unwrap_or_default()
    }

    /// Calls `look` after each transition until [`TestProbe::stop_observing`]. Several transitions
    /// in quick succession may be covered by a single call.
    pub fn observe(&self, look: impl Fn()) {
        self.changed.wait_until(|| {
            look();
            !self.observed.load(Ordering::SeqCst)
        });
    }

    /// Must be called before the observing thread is started; otherwise `observe` may return
    /// immediately.
    pub fn start_observing(&self) {
        self.observed.store(true, Ordering::SeqCst);
    }

    /// Makes `observe` return.
    pub fn stop_observing(&self) {
        self.observed.store(false, Ordering::SeqCst);
        self.changed.signal();
    }

    /// From now on, passes every raw result through `change` before it is stored. `change` runs on
    /// the thread that completes the I/O, so it must not block.
    pub fn change_results(&self, change: impl FnMut(&Observed, i32) -> i32 + Send + 'static) {
        *self.change.lock() = Some(Box::new(change));
    }

    /// Leaves raw results unchanged from now on.
    pub fn keep_results(&self) {
        *self.change.lock() = None;
    }

    /// Makes every `io_uring_enter` of a ring driver fail with `errno` from now on; 0 ends the
    /// failures.
    pub fn break_rings(&self, errno: i32) {
        self.ring_errno.store(errno.unsigned_abs(), Ordering::SeqCst);
    }

    /// Number of system calls made by ring drivers.
    pub fn ring_entries(&self) -> u64 {
        self.ring_entries.load(Ordering::SeqCst)
    }

    /// Number of handle transitions from one state to another.
    pub fn transitions(&self, from: State, to: State) -> u64 {
        self.transitions[from as usize][to as usize].load(Ordering::SeqCst)
    }
}

impl Probe for TestProbe {
    fn transition(&self, io: &Observed, from: State, to: State) {
        self.transitions[from as usize][to as usize].fetch_add(1, Ordering::SeqCst);
        if self.observed.load(Ordering::SeqCst) {
            self.changed.signal();
        }
        if to == State::Submitted
            && let Some(submitted) = &mut *self.submitted.lock()
        {
            submitted.push(*io);
        }
        let action = {
            let mut actions = self.actions.lock();
            let at = actions.iter().position(|(filter, _)| filter(io, Some(to)));
            at.map(|at| actions.remove(at).1)
        };
        action.into_iter().for_each(|action| action(io));
        self.pauses.pass(io, Some(to));
    }

    fn raw_result(&self, io: &Observed, raw: i32) -> i32 {
        self.results.pass(io, None);
        match &mut *self.change.lock() {
            Some(change) => change(io, raw),
            None => raw,
        }
    }

    fn ring_enter(&self, _submitting: usize) -> Option<i32> {
        self.ring_entries.fetch_add(1, Ordering::SeqCst);
        let errno = self.ring_errno.load(Ordering::SeqCst);
        (errno != 0).then_some(errno as i32)
    }
}
