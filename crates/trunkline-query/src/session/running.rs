//! The statement that runs: what cancels it, and its time limit.
//!
//! A statement runs from its start until its rows are dropped. A cancel request that arrives at any
//! other time has no effect, as in PostgreSQL.

use std::sync::Arc;
use std::time::Duration;

use trunkline_aio::facade::Mutex;

use crate::instance::{Interrupts, TimeLimit, TimeLimits};
use crate::scan::{CancelCause, Cancellation};

/// Cancels whatever statement of a session runs now. Clones refer to the same session.
#[derive(Debug, Clone, Default)]
pub struct SessionCanceller(Arc<Mutex<State>>);

#[derive(Debug, Default)]
struct State {
    /// The statement that runs.
    current: Option<Cancellation>,
    /// Its number.
    number: u64,
    /// No further statement may run.
    terminated: bool,
}

impl SessionCanceller {
    /// Cancels the statement that runs, if there is one.
    pub fn cancel(&self) {
        if let Some(current) = self.0.lock().current.clone() {
            current.cancel();
        }
    }

    /// Ends the session: the statement that runs, and every later one, fails with 57P01.
    pub fn terminate(&self) {
        let mut state = self.0.lock();
        state.terminated = true;
        let current = state.current.clone();
        drop(state);
        if let Some(current) = current {
            current.cancel_for(CancelCause::AdminShutdown);
        }
    }

    /// Starts a statement, which ends when the guard is dropped.
    pub(super) fn start(
        &self,
        statement: &Cancellation,
        limits: &TimeLimits,
        limit: Option<Duration>,
    ) -> Running {
        let mut state = self.0.lock();
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
        let mut state = self.canceller.0.lock();
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
