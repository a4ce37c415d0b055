//! The activity of all sessions, as `pg_stat_activity` shows it.
//!
//! Every session has an entry from its start to its end. The session changes it, and others copy it.

use std::collections::BTreeMap;
use std::fmt;
use std::sync::Arc;

use trunkline_aio::facade::Mutex;
use trunkline_format::Oid;

/// `state` of `pg_stat_activity`.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ActivityState {
    /// A statement runs.
    Active,
    /// The session waits for a statement.
    Idle,
    /// The session waits for a statement, in a transaction.
    IdleInTransaction,
    /// As before, but a statement of the transaction has failed.
    IdleInTransactionAborted,
}

impl ActivityState {
    /// PostgreSQL's word.
    pub fn name(self) -> &'static str {
        match self {
            Self::Active => "active",
            Self::Idle => "idle",
            Self::IdleInTransaction => "idle in transaction",
            Self::IdleInTransactionAborted => "idle in transaction (aborted)",
        }
    }
}

/// What a session does. Times are in microseconds since 2000-01-01 00:00 UTC.
#[derive(Debug, Clone, PartialEq)]
pub struct Activity {
    /// The session's number, which clients know as the process ID of its backend.
    pub pid: i32,
    /// The database's name.
    pub database: String,
    /// And its OID.
    pub database_oid: Oid,
    /// The user's name.
    pub user: String,
    /// `application_name`.
    pub application_name: String,
    /// The client's address; `None` for a local socket, or without a client.
    pub client_address: Option<std::net::SocketAddr>,
    /// When the session was opened.
    pub backend_start: i64,
    /// When the transaction started, if there is one.
    pub transaction_start: Option<i64>,
    /// When the last statement started.
    pub query_start: Option<i64>,
    /// When `state` changed.
    pub state_change: i64,
    /// What it does.
    pub state: ActivityState,
    /// What it waits for, if it waits. This is known only when the activity is copied.
    pub wait: Option<SessionWait>,
    /// The text of the last statement.
    pub query: String,
}

/// What a session waits for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum SessionWait {
    /// The client, which hasn't sent a statement.
    ClientRead,
    /// The client, which doesn't take rows.
    ClientWrite,
    /// Pages that are read.
    Io,
}

/// What other sessions can see of a session, and do to it.
pub(crate) trait Interrupts: Send + Sync {
    /// Cancels the statement that runs, if there is one.
    fn cancel(&self);

    /// Ends the session.
    fn terminate(&self);

    /// What the statement that runs waits for.
    fn wait(&self) -> Option<SessionWait>;
}

/// The entries of all sessions.
#[derive(Debug, Clone, Default)]
pub(super) struct ActivityRegistry(Arc<Mutex<BTreeMap<i32, Arc<Entry>>>>);

/// A session changes its entry several times for each statement, so each one has a lock of its own.
struct Entry {
    interrupts: Arc<dyn Interrupts>,
    state: Mutex<EntryState>,
}

struct EntryState {
    activity: Activity,
    /// The state when no statement runs.
    between: ActivityState,
}

/// A session's entry, which is removed when this is dropped.
#[derive(Debug)]
pub(crate) struct ActivityEntry {
    pid: i32,
    entry: Arc<Entry>,
    registry: ActivityRegistry,
}

impl fmt::Debug for Entry {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let state = self.state.lock();
        f.debug_struct("Entry").field("activity", &state.activity).finish_non_exhaustive()
    }
}

impl ActivityRegistry {
    /// Adds an entry.
    pub(super) fn add(&self, activity: Activity, interrupts: Arc<dyn Interrupts>) -> ActivityEntry {
        let (pid, between) = (activity.pid, activity.state);
        let state = Mutex::new(EntryState { activity, between });
        let entry = Arc::new(Entry { interrupts, state });
        self.0.lock().insert(pid, Arc::clone(&entry));
        ActivityEntry { pid, entry, registry: self.clone() }
    }

    /// What can be done to a session; `None` if there is none with this number.
    pub(super) fn interrupts(&self, pid: i32) -> Option<Arc<dyn Interrupts>> {
        self.0.lock().get(&pid).map(|entry| Arc::clone(&entry.interrupts))
    }

    /// Copies of all entries, by number.
    pub(super) fn all(&self) -> Vec<Activity> {
        let entries: Vec<_> = self.0.lock().values().map(Arc::clone).collect();
        let copy = |entry: Arc<Entry>| {
            let activity = entry.state.lock().activity.clone();
            let wait = match (activity.state, entry.interrupts.wait()) {
                (ActivityState::Active, wait) => wait,
                // The end of an answer is written when the statement has ended.
                (_, Some(SessionWait::ClientWrite)) => Some(SessionWait::ClientWrite),
                _ => Some(SessionWait::ClientRead),
            };
            Activity { wait, ..activity }
        };
        entries.into_iter().map(copy).collect()
    }
}

impl ActivityEntry {
    /// The session's number.
    pub(crate) fn pid(&self) -> i32 {
        self.pid
    }

    /// Changes the entry.
    pub(crate) fn change(&self, change: impl FnOnce(&mut Activity)) {
        change(&mut self.entry.state.lock().activity);
    }

    /// Sets the state in which the session waits for its next statement, and when its block began. It
    /// is in force at once unless a statement runs, whose rows may outlive the call that started it.
    pub(crate) fn set_transaction(&self, between: ActivityState, start: Option<i64>) {
        let mut state = self.entry.state.lock();
        state.between = between;
        state.activity.transaction_start = start.or(state.activity.transaction_start);
        if state.activity.state != ActivityState::Active {
            state.wait();
        }
    }

    /// The statement that runs has ended.
    pub(crate) fn end_statement(&self, now: i64) {
        let mut state = self.entry.state.lock();
        state.activity.state_change = now;
        state.wait();
    }
}

impl EntryState {
    fn wait(&mut self) {
        self.activity.state = self.between;
        if self.between == ActivityState::Idle {
            self.activity.transaction_start = None;
        }
    }
}

impl Drop for ActivityEntry {
    fn drop(&mut self) {
        self.registry.0.lock().remove(&self.pid);
    }
}
