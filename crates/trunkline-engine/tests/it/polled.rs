//! An executor for tasks in tests: polls on this thread, and sleeps until the task is woken.

use std::task::{Context, Poll, Wake, Waker};

use trunkline_aio::facade::{Arc, Futex};

struct Wakes(Futex);

impl Wake for Wakes {
    fn wake(self: std::sync::Arc<Self>) {
        self.0.signal();
    }
}

/// Polls until the result is ready.
pub(crate) fn block_on<T>(mut poll: impl FnMut(&mut Context<'_>) -> Poll<T>) -> T {
    let wakes = Arc::new(Wakes(Futex::new(0)));
    let waker = Waker::from(Arc::clone(&wakes));
    loop {
        let before = wakes.0.epoch();
        match poll(&mut Context::from_waker(&waker)) {
            Poll::Ready(value) => return value,
            Poll::Pending => {
                wakes.0.wait(before, None);
            }
        }
    }
}
