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

use trunkline_aio::Canceller;
use trunkline_aio::facade::atomic::{AtomicBool, Ordering};
use trunkline_aio::facade::{Arc, Mutex};
use trunkline_sql::{SqlError, SqlState};

/// Cancels a statement from any thread. Clones refer to the same statement.
#[derive(Clone, Default)]
pub struct Cancellation(Arc<Shared>);

#[derive(Default)]
struct Shared {
    cancelled: AtomicBool,
    sessions: Mutex<Vec<Canceller>>,
}

impl fmt::Debug for Cancellation {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Cancellation({})", self.is_cancelled())
    }
}

impl Cancellation {
    /// Cancels the statement. Sessions that wait for I/O are woken, and everything else notices at the
    /// next batch.
    pub fn cancel(&self) {
        // The flag is set before the list is read, and a session is listed before it reads the flag,
        // so every session sees one of the two.
        self.0.cancelled.store(true, Ordering::SeqCst);
        self.0.sessions.lock().iter().for_each(Canceller::cancel);
    }

    /// Whether the statement was cancelled.
    pub fn is_cancelled(&self) -> bool {
        self.0.cancelled.load(Ordering::SeqCst)
    }

    /// Fails if the statement was cancelled.
    ///
    /// # Errors
    /// 57014.
    pub fn check(&self) -> Result<(), SqlError> {
        if self.is_cancelled() { Err(cancelled()) } else { Ok(()) }
    }

    /// Adds a session of the statement.
    pub(crate) fn register(&self, session: Canceller) {
        self.0.sessions.lock().push(session.clone());
        if self.is_cancelled() {
            session.cancel();
        }
    }
}

/// The error of a cancelled statement, in PostgreSQL's words.
pub(crate) fn cancelled() -> SqlError {
    SqlError::new(SqlState::QUERY_CANCELED, "canceling statement due to user request")
}
