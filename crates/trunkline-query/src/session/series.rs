//! Implicit transaction blocks: statements that arrive together.
//!
//! ```text
//!   simple protocol     Query "set …; select 1/0"                  one block, until the end of the text
//!   extended protocol   Bind Execute  Bind Execute  Sync           one transaction, until Sync
//!                                     ╰── a block from here on
//! ```
//!
//! If one of them fails, what the others have set is undone. The first portal of a pipeline isn't in a
//! block, because the session can't know that another one follows: DECLARE is refused there, as in
//! PostgreSQL. The settings begin a transaction even then, because `Sync` or an error ends it.

use std::time::Duration;

use trunkline_sql::{SqlError, SqlState};

use super::effects::time_limit;
use super::outcome::TransactionStatus;
use super::session::{Session, now_us};

impl Session {
    /// Begins the next statement of a text that has several. Without a block, an implicit one begins.
    /// [`Session::end_series`] must follow the last statement.
    pub fn begin_in_series(&mut self) {
        let start = *self.series_start.get_or_insert_with(now_us);
        if self.transaction_status() == TransactionStatus::Idle {
            self.transaction.begin_implicit(start);
            self.begin_settings();
        }
    }

    /// Ends a text of statements, and its implicit block, if it has one that hasn't become another one.
    pub fn end_series(&mut self) {
        self.series_start = None;
        self.sync();
    }

    /// Ends a series of messages of the extended protocol. Outside of a transaction block, this ends
    /// the transaction, and its portals with it.
    pub fn sync(&mut self) {
        if self.transaction.is_implicit() || self.transaction_status() == TransactionStatus::Idle {
            self.end_transaction(true);
            self.publish_transaction();
        }
    }

    /// How long the client may be silent after ReadyForQuery, and the error with which the session then
    /// ends (`idle_session_timeout`, `idle_in_transaction_session_timeout`); `None` for no limit.
    pub fn idle_limit(&self) -> Option<(Duration, SqlError)> {
        let (name, known, code, message) = match self.transaction_status() {
            TransactionStatus::Idle => (
                "idle_session_timeout",
                self.effects.idle_limit,
                SqlState::IDLE_SESSION_TIMEOUT,
                "terminating connection due to idle-session timeout",
            ),
            _ => (
                "idle_in_transaction_session_timeout",
                self.effects.idle_in_transaction_limit,
                SqlState::IDLE_IN_TRANSACTION_SESSION_TIMEOUT,
                "terminating connection due to idle-in-transaction timeout",
            ),
        };
        let store = self.store.lock();
        let limit = if self.effects.are_of(&store) { known } else { time_limit(&store, name) };
        limit.map(|limit| (limit, SqlError::new(code, message)))
    }

    /// Whether there is a transaction that goes on after the statement.
    pub(super) fn is_in_transaction(&self) -> bool {
        self.store.lock().is_in_block()
    }

    /// Begins the transaction of a pipeline, before a portal is executed.
    pub(super) fn begin_pipelined(&mut self) {
        if self.transaction_status() == TransactionStatus::Idle {
            self.begin_settings();
        }
    }

    /// A portal was executed. The next one before `Sync` is in the same transaction.
    pub(super) fn follow_portal(&mut self) {
        if self.transaction.is_implicit() || self.transaction_status() == TransactionStatus::Idle {
            self.pipeline_start.get_or_insert(self.settings.transaction_start);
        }
    }

    /// Begins an implicit block if a portal was executed since the last `Sync`.
    pub(super) fn continue_pipeline(&mut self) {
        if let Some(start) = self.pipeline_start {
            self.transaction.begin_implicit(start);
        }
    }

    /// A statement has failed.
    pub(super) fn fail_transaction(&mut self) {
        self.series_start = None;
        self.transaction.fail();
        match self.transaction_status() {
            TransactionStatus::Idle => self.end_transaction(false),
            _ => {
                self.fail_cursors();
                self.fail_portals();
            }
        }
    }

    fn begin_settings(&mut self) {
        let mut store = self.store.lock();
        if !store.is_in_block() {
            store.begin();
        }
    }

    /// Ends a transaction that no BEGIN has begun.
    fn end_transaction(&mut self, is_committed: bool) {
        self.transaction.end_implicit();
        self.pipeline_start = None;
        let mut store = self.store.lock();
        if store.is_in_block() {
            store.end(is_committed);
        }
        drop(store);
        self.portals.clear();
        self.end_transaction_of_cursors(is_committed);
    }
}
