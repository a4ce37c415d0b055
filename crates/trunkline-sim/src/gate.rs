//! Gates: a place where threads stop until another thread has seen them there.
//!
//! A pause point of a test, or a mount that hangs. Waiting is on states, never for time:
//! ```text
//!   thread under test                test
//!   gate.pass()   stops              gate.wait_for(1)   until somebody has stopped there
//!                 goes on            gate.open()
//! ```
//! Works under the scheduler and with real threads alike.

use std::time::Duration;
use trunkline_aio::sync::atomic::{AtomicBool, AtomicU32, Ordering};
use trunkline_aio::sync::{Arc, Futex};

const EVERYBODY: u32 = u32::MAX >> 1;

/// See the module. Clones are the same gate.
#[derive(Debug, Clone, Default)]
pub struct Gate(Arc<Inner>);

#[derive(Debug, Default)]
struct Inner {
    /// Moves with every change; all waits are on it.
    changed: Futex,
    open: AtomicBool,
    arrived: AtomicU32,
}

impl Gate {
    /// A gate that is shut.
    pub fn new() -> Self {
        Self::default()
    }

    /// Stops until the gate is open.
    pub fn pass(&self) {
        self.0.arrived.fetch_add(1, Ordering::SeqCst);
        self.change();
        self.wait(|| self.is_open());
    }

    /// Whether threads go through.
    pub fn is_open(&self) -> bool {
        self.0.open.load(Ordering::SeqCst)
    }

    /// Lets everybody through, now and later.
    pub fn open(&self) {
        self.0.open.store(true, Ordering::SeqCst);
        self.change();
    }

    /// Waits until `count` threads have come to the gate since the beginning.
    pub fn wait_for(&self, count: u32) {
        self.wait(|| self.arrived() >= count);
    }

    /// Threads that have come to the gate, those that went through included.
    pub fn arrived(&self) -> u32 {
        self.0.arrived.load(Ordering::SeqCst)
    }

    fn wait(&self, done: impl Fn() -> bool) {
        loop {
            let seen = self.0.changed.word().load(Ordering::SeqCst);
            if done() {
                return;
            }
            self.0.changed.wait(seen, None);
        }
    }

    fn change(&self) {
        self.0.changed.word().fetch_add(1, Ordering::SeqCst);
        self.0.changed.wake(EVERYBODY);
    }
}

/// Lets `time` of the façade's clock pass. Under the scheduler that is virtual time, which passes
/// only while every other task is blocked: after any pause, however short, all the others have
/// gone as far as they can.
pub fn pause(time: Duration) {
    let never = Futex::new(0);
    let until = trunkline_aio::clock::now().after(time);
    loop {
        let left = until.since(trunkline_aio::clock::now());
        if left.is_zero() {
            return;
        }
        never.wait(0, Some(left));
    }
}
