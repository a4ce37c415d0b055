//! The smallest executor: a waker that a thread can sleep on, and a loop that polls one future.
//!
//! A thread that polls asks [`Alarm::rung`] before the poll and sleeps only while that stays the
//! same, so a wake-up that comes in between is not lost:
//! ```
//! use std::task::{Context, Waker};
//! use trunkline_sim::Alarm;
//!
//! let (alarm, waker) = Alarm::new();
//! let seen = alarm.rung();
//! waker.wake_by_ref();
//! alarm.wait(seen); // returns at once
//! assert_eq!(trunkline_sim::block_on(async { 7 }), 7);
//! ```

use std::task::{Context, Poll, Wake, Waker};
use trunkline_aio::sync::atomic::Ordering;
use trunkline_aio::sync::{Arc, Futex};

const EVERYBODY: u32 = u32::MAX >> 1;

/// See the module. It counts its wake-ups.
#[derive(Debug, Default)]
pub struct Alarm(Futex);

impl Wake for Alarm {
    fn wake(self: Arc<Self>) {
        self.0.word().fetch_add(1, Ordering::SeqCst);
        self.0.wake(EVERYBODY);
    }
}

impl Alarm {
    /// One that has not rung, and its waker.
    pub fn new() -> (Arc<Self>, Waker) {
        let alarm = Arc::new(Self::default());
        (Arc::clone(&alarm), Waker::from(alarm))
    }

    /// How often it has rung.
    pub fn rung(&self) -> u32 {
        self.0.word().load(Ordering::SeqCst)
    }

    /// Sleeps while it has rung so often.
    pub fn wait(&self, rung: u32) {
        self.0.wait(rung, None);
    }
}

/// Drives one future to its end in this thread.
pub fn block_on<T>(future: impl Future<Output = T>) -> T {
    let (alarm, waker) = Alarm::new();
    let mut future = std::pin::pin!(future);
    loop {
        let rung = alarm.rung();
        match future.as_mut().poll(&mut Context::from_waker(&waker)) {
            Poll::Ready(value) => return value,
            Poll::Pending => alarm.wait(rung),
        }
    }
}
