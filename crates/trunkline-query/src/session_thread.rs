//! Threads that serve one session each.
//!
//! A task of a runtime must not block its thread, because others wait for it. A server that gives each
//! session a thread of its own says so here, and then what the session executes itself may block. That is
//! a property of the thread, so it isn't passed down to whatever might ask.

use std::cell::Cell;

thread_local! {
    static IS_SESSION: Cell<bool> = const { Cell::new(false) };
}

/// Marks the thread until it is dropped.
struct Marked;

impl Drop for Marked {
    fn drop(&mut self) {
        IS_SESSION.set(false);
    }
}

/// Runs the body in this thread, which serves a session and nothing else until the body returns.
pub fn in_session_thread<T>(body: impl FnOnce() -> T) -> T {
    IS_SESSION.set(true);
    let _marked = Marked;
    body()
}

/// Whether this thread serves one session, so that it may block.
pub(crate) fn is_session_thread() -> bool {
    IS_SESSION.get()
}
