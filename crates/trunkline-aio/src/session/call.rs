//! Blocking calls: has a worker make a system call that isn't I/O, such as open(2) or stat(2).
//!
//! These calls can block like any I/O, for example on a network file system, so a session that is
//! polled by an async runtime must not make them in its own thread. A call doesn't need a handle.
//! It is queued beside the I/O of the worker pool, and when it is over, the session is signalled
//! like after an I/O.
//!
//! ```no_run
//! # fn main() -> Result<(), Box<dyn std::error::Error>> {
//! # let aio = trunkline_aio::Builder::new().start()?;
//! let mut session = aio.session()?;
//! session.set_may_block(false);
//! let mut call = session.call(0, || std::fs::metadata("data").map(|data| data.len()));
//! session.wait_for(|| call.is_done())?;
//! println!("{:?}", call.take());
//! # Ok(()) }
//! ```

use super::Session;
use crate::completion::in_flight::InFlight;
use crate::facade::Mutex;
use crate::facade::atomic::{AtomicBool, Ordering};
use crate::tables::method_kind::MethodKind;
use std::fmt;
use std::sync::Arc;

/// A blocking call that a session has started ([`Session::call`]). Dropping it gives up the result.
/// If no worker has begun the call yet, it will never be made.
pub struct Call<T> {
    result: Arc<CallResult<T>>,
    /// The worker pool in whose queue the call may still be, and the call's id. `None` if the
    /// session has made the call itself.
    queued: Option<(Arc<InFlight>, u64)>,
}

/// Where the worker leaves the result.
struct CallResult<T> {
    value: Mutex<Option<T>>,
    done: AtomicBool,
}

impl<T> CallResult<T> {
    fn set(&self, value: T) {
        *self.value.lock() = Some(value);
        self.done.store(true, Ordering::SeqCst);
    }
}

impl<T> fmt::Debug for Call<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(if self.is_done() { "Call(done)" } else { "Call" })
    }
}

impl Session {
    /// Makes a call that may block. If the session's thread may block ([`Session::set_may_block`])
    /// or the method is `sync`, the thread makes the call itself, and the result is there when this
    /// returns. Otherwise a worker makes it, and the session is woken when it is over, so the
    /// caller should wait with [`Session::wait_for`] or [`Session::poll_for`] until
    /// [`Call::is_done`].
    ///
    /// If a mount hangs, the calls that are stuck on it occupy workers. The number of workers that
    /// calls with the same `number` may occupy is bounded, as it is for the I/O of one mount. Calls
    /// on different mounts should therefore have different numbers. There are
    /// [`CALL_LANES_MAX`](crate::limits::CALL_LANES_MAX) lanes for them.
    ///
    /// `work` must not panic, because that aborts the process if a worker makes the call.
    pub fn call<T: Send + 'static>(
        &mut self,
        number: u64,
        work: impl FnOnce() -> T + Send + 'static,
    ) -> Call<T> {
        let result = Arc::new(CallResult { value: Mutex::new(None), done: AtomicBool::new(false) });
        let pool = self.completions().pool();
        if self.may_block || self.method() == MethodKind::Sync || !pool.is_running() {
            // The call may take long, and other sessions may be waiting for our staged I/O.
            self.submit();
            result.set(work());
            return Call { result, queued: None };
        }
        let (theirs, session) = (Arc::clone(&result), self.id);
        let sessions = Arc::clone(self.completions().sessions());
        let run = move || {
            theirs.set(work());
            sessions.signal(session);
        };
        let id = pool.call(number, Box::new(run));
        Call { result, queued: Some((Arc::clone(&self.in_flight), id)) }
    }
}

impl<T> Call<T> {
    /// Whether the call is over.
    pub fn is_done(&self) -> bool {
        self.result.done.load(Ordering::SeqCst)
    }

    /// Takes the result. `None` if the call isn't over, or if the result has already been taken.
    pub fn take(&mut self) -> Option<T> {
        self.result.value.lock().take()
    }
}

impl<T> Drop for Call<T> {
    fn drop(&mut self) {
        if let Some((in_flight, id)) = self.queued.take()
            && !self.is_done()
        {
            in_flight.completions().pool().cancel_call(id);
        }
    }
}
