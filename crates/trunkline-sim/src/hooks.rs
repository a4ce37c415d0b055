//! The probe of the contract suites: counts edges, stops threads at transitions, changes results.
//!
//! A stop takes the first thread that brings a matching I/O into a state, and holds it there, so
//! a test can do something while the handle is exactly in that state.

use crate::gate::Gate;
use std::fmt;
use trunkline_aio::sync::atomic::{AtomicBool, AtomicU32, AtomicU64, Ordering};
use trunkline_aio::sync::{Arc, Futex, Mutex};
use trunkline_aio::{Observed, Probe, STATES, State, WaitRef};

type Change = Box<dyn FnMut(&Observed, i32) -> i32 + Send>;
type Filter = Box<dyn Fn(&Observed) -> bool + Send>;

/// See the module.
#[derive(Default)]
pub struct Hooks {
    edges: [[AtomicU64; STATES.len()]; STATES.len()],
    stops: Mutex<Vec<Stop>>,
    /// Stops before a raw result becomes known.
    results: Mutex<Vec<(Filter, Place)>>,
    /// What was submitted, if somebody asked for that.
    submitted: Mutex<Option<Vec<Observed>>>,
    change: Mutex<Option<Change>>,
    /// Moves with each transition while somebody watches.
    bell: Futex,
    watched: AtomicBool,
    ring_errno: AtomicU32,
    ring_entries: AtomicU64,
}

struct Stop {
    state: State,
    filter: Filter,
    place: Place,
}

/// A thread that will be, or is, held at a transition. It goes on when this is dropped, so a test
/// that fails meanwhile ends instead of hanging.
#[derive(Debug)]
pub struct Held(Place);

#[derive(Debug, Clone, Default)]
struct Place {
    gate: Gate,
    io: Arc<Mutex<Option<WaitRef>>>,
}

impl fmt::Debug for Hooks {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Hooks")
    }
}

impl Drop for Held {
    fn drop(&mut self) {
        self.0.gate.open();
    }
}

impl Held {
    /// Waits until a thread is held, and says with which I/O.
    pub fn wait(&self) -> WaitRef {
        self.0.gate.wait_for(1);
        let Some(io) = *self.0.io.lock() else { unreachable!("noted before the thread stops") };
        io
    }

    /// Lets it go on.
    pub fn release(&self) {
        self.0.gate.open();
    }
}

impl Hooks {
    /// Holds the next thread that brings an I/O that `filter` likes into `state`.
    pub fn stop(&self, state: State, filter: impl Fn(&Observed) -> bool + Send + 'static) -> Held {
        let place = Place::default();
        self.stops.lock().push(Stop { state, filter: Box::new(filter), place: place.clone() });
        Held(place)
    }

    /// Holds back the result of the next I/O that `filter` likes: it stays SUBMITTED, whoever waits
    /// for it. The thread that has learned it, a ring driver or a device perhaps, is held with it.
    pub fn hold_result(&self, filter: impl Fn(&Observed) -> bool + Send + 'static) -> Held {
        let place = Place::default();
        self.results.lock().push((Box::new(filter), place.clone()));
        Held(place)
    }

    /// Notes every I/O that is submitted from now on, and forgets those noted before.
    pub fn record(&self) {
        *self.submitted.lock() = Some(Vec::new());
    }

    /// The I/Os noted since [`Hooks::record`], in the order of their submission.
    pub fn recorded(&self) -> Vec<Observed> {
        self.submitted.lock().clone().unwrap_or_default()
    }

    /// Lets `look` look after each transition, or a few of them, until `stop_watching`.
    pub fn watch(&self, look: impl Fn()) {
        loop {
            let seen = self.bell.word().load(Ordering::SeqCst);
            look();
            if !self.watched.load(Ordering::SeqCst) {
                return;
            }
            self.bell.wait(seen, None);
        }
    }

    /// Before a thread is started that watches.
    pub fn start_watching(&self) {
        self.watched.store(true, Ordering::SeqCst);
    }

    /// Ends `watch`.
    pub fn stop_watching(&self) {
        self.watched.store(false, Ordering::SeqCst);
        self.ring();
    }

    fn ring(&self) {
        self.bell.word().fetch_add(1, Ordering::SeqCst);
        self.bell.wake(u32::MAX >> 1);
    }

    /// Lets `change` see and replace every raw result from now on.
    pub fn change_results(&self, change: impl FnMut(&Observed, i32) -> i32 + Send + 'static) {
        *self.change.lock() = Some(Box::new(change));
    }

    /// Results as they are.
    pub fn keep_results(&self) {
        *self.change.lock() = None;
    }

    /// Every entry of a ring driver into the kernel fails with `errno` from now on; 0 is none.
    pub fn break_rings(&self, errno: i32) {
        self.ring_errno.store(errno.unsigned_abs(), Ordering::SeqCst);
    }

    /// Entries of ring drivers into the kernel.
    pub fn ring_entries(&self) -> u64 {
        self.ring_entries.load(Ordering::SeqCst)
    }

    /// How often handles went from one state to another.
    pub fn passed(&self, from: State, to: State) -> u64 {
        self.edges[from as usize][to as usize].load(Ordering::SeqCst)
    }
}

impl Probe for Hooks {
    fn transition(&self, io: &Observed, from: State, to: State) {
        self.edges[from as usize][to as usize].fetch_add(1, Ordering::SeqCst);
        if self.watched.load(Ordering::SeqCst) {
            self.ring();
        }
        if to == State::Submitted
            && let Some(submitted) = &mut *self.submitted.lock()
        {
            submitted.push(*io);
        }
        let found = {
            let mut stops = self.stops.lock();
            stops.retain(|stop| !stop.place.gate.is_open());
            let at = stops.iter().position(|stop| stop.state == to && (stop.filter)(io));
            at.map(|at| stops.remove(at))
        };
        if let Some(stop) = found {
            *stop.place.io.lock() = Some(io.io);
            stop.place.gate.pass();
        }
    }

    fn raw_result(&self, io: &Observed, raw: i32) -> i32 {
        let found = {
            let mut results = self.results.lock();
            // What was released before anybody came is over.
            results.retain(|(_, place)| !place.gate.is_open());
            let at = results.iter().position(|(filter, _)| filter(io));
            at.map(|at| results.remove(at).1)
        };
        if let Some(place) = found {
            *place.io.lock() = Some(io.io);
            place.gate.pass();
        }
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
