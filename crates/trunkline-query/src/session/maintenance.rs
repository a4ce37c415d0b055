//! Functions about the sessions of the server: `pg_terminate_backend`, `pg_cancel_backend`, and what
//! they hold.
//!
//! Every user can end the statements and sessions of all: there is only one kind of user. Sessions hold
//! no locks, because nothing is ever written. So `pg_locks` has no rows, and no session blocks another
//! one.

use trunkline_sql::{SqlError, SqlState};

use super::functions::SessionFunctions;
use super::outcome::{Notice, Severity};

impl SessionFunctions {
    /// `pg_cancel_backend`: whether there is such a session.
    pub(super) fn cancel_backend(&self, pid: i32) -> bool {
        let is_session = self.instance.cancel(pid);
        if !is_session {
            self.warn_of_missing(pid);
        }
        is_session
    }

    /// `pg_terminate_backend`: whether there is such a session.
    pub(super) fn terminate_backend(&self, pid: i32, timeout: i64) -> Result<bool, SqlError> {
        if timeout < 0 {
            let message = "\"timeout\" must not be negative";
            return Err(SqlError::new(SqlState::NUMERIC_VALUE_OUT_OF_RANGE, message));
        }
        if timeout > 0 {
            let message = "pg_terminate_backend with a timeout is not supported by trunkline";
            return Err(SqlError::unsupported(message));
        }
        let is_session = self.instance.terminate(pid);
        if !is_session {
            self.warn_of_missing(pid);
        }
        Ok(is_session)
    }

    fn warn_of_missing(&self, pid: i32) {
        let message = format!("PID {pid} is not a PostgreSQL backend process");
        let fields = SqlError::new(SqlState::WARNING, message);
        self.notices.lock().push(Notice { severity: Severity::Warning, fields });
    }
}
