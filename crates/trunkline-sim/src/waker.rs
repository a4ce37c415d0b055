//! A minimal async executor: a waker that a thread can sleep on, and a loop that polls a single
//! future.
//!
//! Before it polls, a thread reads [`CountingWaker::count`]. It then sleeps only if the count
//! hasn't changed since, so it can't miss a wake-up that arrives between the poll and the sleep:
//! ```
//! use trunkline_sim::CountingWaker;
//!
//! let (wakes, waker) = CountingWaker::new();
//! let before = wakes.count();
//! waker.wake_by_ref();
//! wakes.wait_while(before); // returns immediately
//! assert_eq!(trunkline_sim::block_on(async { 7 }), 7);
//! ```

use crate::event_count::EventCount;
use std::task::{Context, Poll, Wake, Waker};
use trunkline_aio::facade::Arc;

/// A waker that counts its wake-ups.
#[derive(Debug, Default)]
pub struct CountingWaker(EventCount);

impl Wake for CountingWaker {
    fn wake(self: Arc<Self>) {
        self.0.signal();
    }
}

impl CountingWaker {
    /// A counter at zero, and the waker that increments it.
    pub fn new() -> (Arc<Self>, Waker) {
        let wakes = Arc::new(Self::default());
        (Arc::clone(&wakes), Waker::from(wakes))
    }

    /// Number of wake-ups so far.
    pub fn count(&self) -> u32 {
        self.0.current()
    }

    /// Sleeps until the count differs from `count`.
    pub fn wait_while(&self, count: u32) {
        self.0.wait(count, None);
    }
}

/// Polls a future on this thread until it is ready.
pub fn block_on<T>(future: impl Future<Output = T>) -> T {
    let (wakes, waker) = CountingWaker::new();
    let mut future = std::pin::pin!(future);
    loop {
        let before = wakes.count();
        match future.as_mut().poll(&mut Context::from_waker(&waker)) {
            Poll::Ready(value) => return value,
            Poll::Pending => wakes.wait_while(before),
        }
    }
}
