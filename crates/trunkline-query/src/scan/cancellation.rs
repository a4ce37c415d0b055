//! Cancelling a statement: a flag, and the sessions that must be woken.
//!
//! ```
//! use trunkline_query::Cancellation;
//! let statement = Cancellation::default();
//! let other_thread = statement.clone();
//! other_thread.cancel();
//! assert!(statement.is_cancelled());
//! ```

use std::fmt;
use std::future::poll_fn;

use trunkline_aio::facade::atomic::{AtomicU8, AtomicU32, Ordering};
use trunkline_aio::facade::{Arc, Mutex};
use trunkline_aio::{Call, Canceller, Session as IoSession};
use trunkline_engine::Engine;
use trunkline_engine::pool::Backend;
use trunkline_sql::{SqlError, SqlState};

/// Why a statement is cancelled.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum CancelCause {
    /// A cancel request of the client.
    UserRequest = 1,
    /// `statement_timeout` has passed.
    StatementTimeout = 2,
    /// The server stops, or `pg_terminate_backend` was called.
    AdminShutdown = 3,
}

impl CancelCause {
    /// The error of the statement, in PostgreSQL's words.
    pub fn error(self) -> SqlError {
        let (code, message) = match self {
            Self::UserRequest => {
                (SqlState::QUERY_CANCELED, "canceling statement due to user request")
            }
            Self::StatementTimeout => {
                (SqlState::QUERY_CANCELED, "canceling statement due to statement timeout")
            }
            Self::AdminShutdown => {
                (SqlState::ADMIN_SHUTDOWN, "terminating connection due to administrator command")
            }
        };
        SqlError::new(code, message)
    }
}

/// Cancels a statement from any thread. Clones refer to the same statement.
#[derive(Clone, Default)]
pub struct Cancellation(Arc<Shared>);

#[derive(Default)]
struct Shared {
    /// 0, or the first cause as a number.
    cause: AtomicU8,
    sessions: Mutex<Vec<Canceller>>,
    /// How many tasks of the statement wait for I/O.
    waiting: AtomicU32,
}

/// A task of a statement waits for I/O while this exists.
pub(crate) struct IoWait(Arc<Shared>);

impl Drop for IoWait {
    fn drop(&mut self) {
        self.0.waiting.fetch_sub(1, Ordering::Relaxed);
    }
}

impl fmt::Debug for Cancellation {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Cancellation({})", self.is_cancelled())
    }
}

impl Cancellation {
    /// Cancels the statement for the client. Sessions that wait for I/O are woken, and everything else
    /// notices at the next batch.
    pub fn cancel(&self) {
        self.cancel_for(CancelCause::UserRequest);
    }

    /// Cancels the statement. The first cause is the one that the client reads.
    pub fn cancel_for(&self, cause: CancelCause) {
        // The flag is set before the list is read, and a session is listed before it reads the flag,
        // so every session sees one of the two.
        let _ = self.0.cause.compare_exchange(0, cause as u8, Ordering::SeqCst, Ordering::SeqCst);
        self.0.sessions.lock().iter().for_each(Canceller::cancel);
    }

    /// Whether the statement was cancelled.
    pub fn is_cancelled(&self) -> bool {
        self.cause().is_some()
    }

    /// Why the statement was cancelled, if it was.
    pub fn cause(&self) -> Option<CancelCause> {
        match self.0.cause.load(Ordering::SeqCst) {
            0 => None,
            1 => Some(CancelCause::UserRequest),
            2 => Some(CancelCause::StatementTimeout),
            _ => Some(CancelCause::AdminShutdown),
        }
    }

    /// Fails if the statement was cancelled.
    ///
    /// # Errors
    /// The error of the cause.
    pub fn check(&self) -> Result<(), SqlError> {
        self.cause().map_or(Ok(()), |cause| Err(cause.error()))
    }

    /// Lets others see that a task of the statement waits for I/O.
    pub(crate) fn wait_for_io(&self) -> IoWait {
        self.0.waiting.fetch_add(1, Ordering::Relaxed);
        IoWait(Arc::clone(&self.0))
    }

    /// Whether a task of the statement waits for I/O.
    pub(crate) fn waits_for_io(&self) -> bool {
        self.0.waiting.load(Ordering::Relaxed) > 0
    }

    /// Opens a session that is cancelled with the statement.
    ///
    /// # Errors
    /// 53300 if no session is free.
    pub(super) fn open_session(&self, engine: &Engine) -> Result<Backend, SqlError> {
        let mut backend = engine
            .session()
            .map_err(|error| SqlError::new(SqlState::TOO_MANY_CONNECTIONS, error.to_string()))?;
        self.register(backend.session().canceller());
        Ok(backend)
    }

    /// Waits for calls that a session of the statement has started.
    ///
    /// # Errors
    /// 57014: the statement was cancelled.
    pub(super) async fn wait_for_calls<T: 'static>(
        &self,
        session: &mut IoSession,
        calls: impl Iterator<Item = &Call<T>>,
    ) -> Result<(), SqlError> {
        let mut wait = session.polled_wait();
        for call in calls {
            let mut waiting = None;
            let is_over = poll_fn(|context| {
                let polled = session.poll_for(context, &mut wait, || call.is_done());
                if polled.is_pending() && waiting.is_none() {
                    waiting = Some(self.wait_for_io());
                }
                polled
            });
            is_over.await.map_err(|_| cancelled())?;
        }
        Ok(())
    }

    /// Adds a session of the statement.
    pub(crate) fn register(&self, session: Canceller) {
        self.0.sessions.lock().push(session.clone());
        if self.is_cancelled() {
            session.cancel();
        }
    }
}

/// The error of a cancelled scan, which doesn't know the cause.
pub(crate) fn cancelled() -> SqlError {
    CancelCause::UserRequest.error()
}
