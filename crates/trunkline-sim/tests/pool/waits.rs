//! How a case waits: for threads, wake-ups and states, never for time.
//!
//! Under the scheduler a pause of any length lets every other thread go as far as it can; with real
//! threads a state is looked for again and again.

use crate::rig::Rig;
use std::task::{Wake, Waker};
use std::time::Duration;
use trunkline_aio::clock;
use trunkline_aio::sync::atomic::{AtomicU32, Ordering};
use trunkline_aio::sync::{Arc, Mutex, thread};
use trunkline_sim::pause;

/// A thread with a result.
pub(crate) struct Task<T> {
    handle: thread::JoinHandle,
    result: Arc<Mutex<Option<T>>>,
}

impl<T> Task<T> {
    pub(crate) fn join(self) -> T {
        self.handle.join().expect("a thread failed");
        self.result.lock().take().expect("a result")
    }

    /// Whether it has ended, or is about to.
    pub(crate) fn is_done(&self) -> bool {
        self.result.lock().is_some()
    }
}

/// A waker that counts.
#[derive(Default)]
pub(crate) struct Alarm(AtomicU32);

impl Wake for Alarm {
    fn wake(self: Arc<Self>) {
        self.0.fetch_add(1, Ordering::SeqCst);
    }
}

impl Alarm {
    pub(crate) fn new() -> (Arc<Self>, Waker) {
        let alarm = Arc::new(Self::default());
        (Arc::clone(&alarm), Waker::from(alarm))
    }

    /// How often it has rung.
    pub(crate) fn rung(&self) -> u32 {
        self.0.load(Ordering::SeqCst)
    }
}

impl Rig {
    /// Starts a thread of the façade; its panic is the test's when it is joined.
    pub(crate) fn spawn<T: Send + 'static>(
        self: &Arc<Self>,
        name: &str,
        body: impl FnOnce(&Arc<Rig>) -> T + Send + 'static,
    ) -> Task<T> {
        let (rig, result) = (Arc::clone(self), Arc::new(Mutex::new(None)));
        let theirs = Arc::clone(&result);
        let handle = thread::spawn(name, move || {
            let value = body(&rig);
            // Before the result: who has that may end the rig.
            drop(rig);
            *theirs.lock() = Some(value);
        });
        Task { handle: handle.expect("a thread"), result }
    }

    /// Waits for a state that no event announces: by looking again and again, after every other
    /// thread has had its turn.
    pub(crate) fn wait_until(&self, what: &str, done: impl Fn() -> bool) {
        self.wait_until_with(what, done);
    }

    /// The same, doing something each time.
    pub(crate) fn wait_until_with(&self, what: &str, mut done: impl FnMut() -> bool) {
        let begin = clock::now();
        while !done() {
            let waited = clock::now().since(begin);
            assert!(waited < Duration::from_secs(30), "waited in vain for: {what}");
            match self.is_simulated() {
                true => pause(Duration::from_micros(500)),
                false => thread::yield_now(),
            }
        }
    }

    /// Lets every other thread go as far as it can: for certain under the scheduler, a while
    /// otherwise.
    pub(crate) fn let_others_go(&self) {
        match self.is_simulated() {
            true => pause(Duration::from_micros(500)),
            false => (0..50).for_each(|_| thread::yield_now()),
        }
    }

    /// Waits until nothing is in flight.
    pub(crate) fn settle(&self) {
        self.wait_until("nothing in flight", || self.aio.handles_in_use() == 0);
    }
}
