//! Test threads. Each thread shares the case's fixture while it runs, and returns a result.
//!
//! When a case ends, no test thread may still have a reference to the case's fixture. Each thread
//! must therefore drop its reference before it publishes its result:
//! ```
//! use trunkline_aio::facade::Arc;
//!
//! let fixture = Arc::new(5);
//! let thread = trunkline_sim::matrix::spawn("adds", &fixture, |fixture| **fixture + 1);
//! assert_eq!(thread.join(), 6);
//! assert_eq!(Arc::into_inner(fixture), Some(5));
//! ```

use trunkline_aio::facade::{Arc, Mutex, thread};

/// A thread that returns a result.
#[derive(Debug)]
pub struct TestThread<T> {
    handle: thread::JoinHandle,
    /// The result, set once the thread has dropped the fixture.
    result: Arc<Mutex<Option<T>>>,
}

impl<T> TestThread<T> {
    /// Waits for the thread and returns its result.
    ///
    /// # Panics
    /// If the thread panicked.
    pub fn join(self) -> T {
        self.handle.join().expect("a thread failed");
        self.result.lock().take().expect("a result")
    }

    /// Whether the thread has published its result.
    pub fn is_done(&self) -> bool {
        self.result.lock().is_some()
    }
}

/// Starts a thread of the façade. Joining it passes its panic on to the case.
///
/// # Panics
/// If no thread can be started.
pub fn spawn<R: Send + Sync + 'static, T: Send + 'static>(
    name: &str,
    fixture: &Arc<R>,
    body: impl FnOnce(&Arc<R>) -> T + Send + 'static,
) -> TestThread<T> {
    let (fixture, result) = (Arc::clone(fixture), Arc::new(Mutex::new(None)));
    let published = Arc::clone(&result);
    let handle = thread::spawn(name, move || {
        let value = body(&fixture);
        // Drop the fixture first, because the case may end as soon as the result is visible.
        drop(fixture);
        *published.lock() = Some(value);
    });
    TestThread { handle: handle.expect("a thread"), result }
}
