//! The statement that runs: what cancels it, and its time limit.
//!
//! A statement runs from its start until its rows are dropped. A cancel request that arrives at any
//! other time has no effect, as in PostgreSQL.

use std::sync::Arc;
use std::time::Duration;

use tokio::sync::Notify;
use trunkline_aio::facade::Mutex;

use crate::instance::{Interrupts, SessionWait, TimeLimit, TimeLimits};
use crate::scan::{CancelCause, Cancellation};

/// Cancels whatever statement of a session runs now. Clones refer to the same session.
#[derive(Debug, Clone, Default)]
pub struct SessionCanceller(Arc<Shared>);

#[derive(Debug, Default)]
struct Shared {
    state: Mutex<State>,
    /// The session was terminated.
    terminated: Notify,
}

#[derive(Debug, Default)]
struct State {
    /// The statement that runs.
    current: Option<Cancellation>,
    /// Its number.
    number: u64,
    /// No further statement may run.
    terminated: bool,
    /// The client doesn't take what is sent.
    is_writing: bool,
}

/// A session waits for its client to take data while this exists.
#[derive(Debug)]
pub struct ClientWrite(SessionCanceller);

impl Drop for ClientWrite {
    fn drop(&mut self) {
        self.0.0.state.lock().is_writing = false;
    }
}

impl SessionCanceller {
    /// Cancels the statement that runs, if there is one.
    pub fn cancel(&self) {
        if let Some(current) = self.0.state.lock().current.clone() {
            current.cancel();
        }
    }

    /// Ends the session: the statement that runs, and every later one, fails with 57P01.
    pub fn terminate(&self) {
        let mut state = self.0.state.lock();
        state.terminated = true;
        let current = state.current.clone();
        drop(state);
        self.0.terminated.notify_waiters();
        if let Some(current) = current {
            current.cancel_for(CancelCause::AdminShutdown);
        }
    }

    /// Waits until the session is terminated.
    pub async fn terminated(&self) {
        loop {
            // It notices a notification from here on.
            let notified = self.0.terminated.notified();
            if self.0.state.lock().terminated {
                return;
            }
            notified.await;
        }
    }

    /// Lets other sessions see that this one waits for its client to take data.
    pub fn write_to_client(&self) -> ClientWrite {
        self.0.state.lock().is_writing = true;
        ClientWrite(self.clone())
    }

    /// Starts a statement, which ends when the guard is dropped.
    pub(super) fn start(
        &self,
        statement: &Cancellation,
        limits: &TimeLimits,
        limit: Option<Duration>,
    ) -> Running {
        let mut state = self.0.state.lock();
        state.current = Some(statement.clone());
        state.number += 1;
        let number = state.number;
        let is_terminated = state.terminated;
        drop(state);
        if is_terminated {
            statement.cancel_for(CancelCause::AdminShutdown);
        }
        let limit = limit.map(|limit| limits.set(statement, limit));
        Running { canceller: self.clone(), number, limit }
    }
}

impl Interrupts for SessionCanceller {
    fn cancel(&self) {
        Self::cancel(self);
    }

    fn terminate(&self) {
        Self::terminate(self);
    }

    fn wait(&self) -> Option<SessionWait> {
        let state = self.0.state.lock();
        if state.is_writing {
            return Some(SessionWait::ClientWrite);
        }
        let current = state.current.as_ref()?;
        current.waits_for_io().then_some(SessionWait::Io)
    }
}

/// A statement that runs. Dropping it ends the statement's time limit.
#[derive(Debug)]
pub(super) struct Running {
    canceller: SessionCanceller,
    number: u64,
    limit: Option<TimeLimit>,
}

impl Running {
    /// Ends the statement. Returns whether it was still the one that runs.
    pub(super) fn end(&mut self) -> bool {
        self.limit = None;
        let mut state = self.canceller.0.state.lock();
        let is_current = state.number == self.number && state.current.is_some();
        if is_current {
            state.current = None;
        }
        is_current
    }
}

impl Drop for Running {
    fn drop(&mut self) {
        self.end();
    }
}
