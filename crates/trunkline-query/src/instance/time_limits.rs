//! Time limits of statements (`statement_timeout`).
//!
//! A thread of the instance waits for the earliest limit. A timer of the runtime would not do: while
//! statements keep all threads of a runtime busy, its timers stand still.

use std::collections::BTreeMap;
use std::fmt;
use std::sync::Arc;
use std::time::Duration;

use trunkline_aio::clock::{self, Time};
use trunkline_aio::facade::thread::{self, JoinHandle};
use trunkline_aio::facade::{Futex, Mutex};
use trunkline_sql::{SqlError, SqlState};

use crate::scan::{CancelCause, Cancellation};

/// Cancels statements whose time is over. The thread ends when this is dropped.
pub(crate) struct TimeLimits {
    shared: Arc<Shared>,
    thread: Option<JoinHandle>,
}

impl fmt::Debug for TimeLimits {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "TimeLimits({})", self.shared.state.lock().limits.len())
    }
}

#[derive(Default)]
struct Shared {
    state: Mutex<State>,
    /// Signalled when the earliest limit may have changed.
    changed: Futex,
}

#[derive(Default)]
struct State {
    /// By time, and by a number for limits of the same time.
    limits: BTreeMap<(Time, u64), Cancellation>,
    last: u64,
    closing: bool,
}

impl TimeLimits {
    /// Starts the thread.
    ///
    /// # Errors
    /// 53000: the system refuses to start a thread.
    pub(crate) fn start() -> Result<Self, SqlError> {
        let shared = Arc::new(Shared::default());
        let of_thread = Arc::clone(&shared);
        let thread = thread::spawn("time limits", move || of_thread.run()).map_err(|error| {
            let message = format!("could not start the thread of time limits: {error}");
            SqlError::new(SqlState::INSUFFICIENT_RESOURCES, message)
        })?;
        Ok(Self { shared, thread: Some(thread) })
    }

    /// Cancels the statement after `limit`, unless the result is dropped before.
    pub(crate) fn set(&self, statement: &Cancellation, limit: Duration) -> TimeLimit {
        let mut state = self.shared.state.lock();
        state.last += 1;
        let key = (clock::now().after(limit), state.last);
        state.limits.insert(key, statement.clone());
        let is_first = state.limits.first_key_value().is_some_and(|(first, _)| *first == key);
        drop(state);
        if is_first {
            self.shared.changed.signal();
        }
        TimeLimit { shared: Arc::clone(&self.shared), key }
    }
}

impl Drop for TimeLimits {
    fn drop(&mut self) {
        self.shared.state.lock().closing = true;
        self.shared.changed.signal();
        if let Some(thread) = self.thread.take() {
            // A panic of the thread has been reported by then.
            let _ended = thread.join();
        }
    }
}

impl Shared {
    fn run(&self) {
        loop {
            let epoch = self.changed.epoch();
            let now = clock::now();
            let mut over = Vec::new();
            let mut state = self.state.lock();
            if state.closing {
                return;
            }
            while let Some(first) = state.limits.first_entry()
                && first.key().0 <= now
            {
                over.push(first.remove());
            }
            let next = state.limits.keys().next().map(|(time, _)| time.since(now));
            drop(state);
            for statement in over {
                statement.cancel_for(CancelCause::StatementTimeout);
            }
            self.changed.wait(epoch, next);
        }
    }
}

/// The limit of one statement, which is lifted when this is dropped.
pub(crate) struct TimeLimit {
    shared: Arc<Shared>,
    key: (Time, u64),
}

impl fmt::Debug for TimeLimit {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "TimeLimit({:?})", self.key.0)
    }
}

impl Drop for TimeLimit {
    fn drop(&mut self) {
        self.shared.state.lock().limits.remove(&self.key);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_earliest_limit_is_first_whenever_it_was_set() {
        let limits = TimeLimits::start().expect("a thread");
        let [long, short, lifted] = [(); 3].map(|()| Cancellation::default());
        let _long = limits.set(&long, Duration::from_secs(3600));
        drop(limits.set(&lifted, Duration::from_millis(1)));
        let _short = limits.set(&short, Duration::from_millis(1));
        while !short.is_cancelled() {
            thread::yield_now();
        }
        assert_eq!(short.cause(), Some(CancelCause::StatementTimeout));
        assert!(!long.is_cancelled());
        let left = limits.shared.state.lock().limits.len();
        assert_eq!(left, 1);
        // The thread doesn't wait for the limit that is left.
        drop(limits);
    }
}
