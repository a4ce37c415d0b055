//! Threads of a case: each has the rig as long as it needs it, and a result.
//!
//! A case is over when nobody has its rig any more, so a thread lets go of it before it says that it
//! has ended:
//! ```
//! use trunkline_aio::sync::Arc;
//!
//! let rig = Arc::new(5);
//! let task = trunkline_sim::rig::spawn("adds", &rig, |rig| **rig + 1);
//! assert_eq!(task.join(), 6);
//! assert_eq!(Arc::into_inner(rig), Some(5));
//! ```

use std::fmt;
use trunkline_aio::sync::{Arc, Mutex, thread};

/// A thread with a result.
pub struct Task<T> {
    handle: thread::JoinHandle,
    result: Arc<Mutex<Option<T>>>,
}

impl<T> fmt::Debug for Task<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Task")
    }
}

impl<T> Task<T> {
    /// Waits for its end.
    ///
    /// # Panics
    /// If the thread did.
    pub fn join(self) -> T {
        self.handle.join().expect("a thread failed");
        self.result.lock().take().expect("a result")
    }

    /// Whether it has ended, or is about to.
    pub fn is_done(&self) -> bool {
        self.result.lock().is_some()
    }
}

/// Starts a thread of the façade; its panic is the case's when it is joined.
///
/// # Panics
/// If there is no thread to be had.
pub fn spawn<R: Send + Sync + 'static, T: Send + 'static>(
    name: &str,
    rig: &Arc<R>,
    body: impl FnOnce(&Arc<R>) -> T + Send + 'static,
) -> Task<T> {
    let (rig, result) = (Arc::clone(rig), Arc::new(Mutex::new(None)));
    let theirs = Arc::clone(&result);
    let handle = thread::spawn(name, move || {
        let value = body(&rig);
        // Before the result: who has that may end the rig.
        drop(rig);
        *theirs.lock() = Some(value);
    });
    Task { handle: handle.expect("a thread"), result }
}
