//! Cursors of SQL: DECLARE, FETCH, MOVE, CLOSE.
//!
//! A cursor is a query whose rows are returned in parts. It ends with its transaction, or, if it is
//! declared WITH HOLD and the transaction commits, with the session. PostgreSQL stores the rows of such
//! a cursor at the commit; here the query just goes on, because the directory doesn't change.
//!
//! Cursors only scan forward.

use std::sync::Arc;

use trunkline_sql::bind::Bound;
use trunkline_sql::syntax::{DeclareCursor, FetchDirection, FetchStatement, Name};
use trunkline_sql::{SqlError, SqlState};

use super::outcome::{Outcome, TransactionStatus};
use super::prepared::Progress;
use super::prepared::{Cursor, CursorEntry};
use super::session::{Session, Started};
use crate::environment::ParameterValue;
use crate::statement::{CursorRows, Rows};

impl Session {
    /// DECLARE.
    pub(super) async fn declare_cursor(
        &mut self,
        cursor: &DeclareCursor,
        bound: &Bound,
        parameters: Arc<[ParameterValue]>,
        started: Started,
    ) -> Result<Outcome, SqlError> {
        if cursor.binary {
            return Err(SqlError::unsupported("BINARY CURSOR is not supported by trunkline"));
        }
        if cursor.scroll == Some(true) {
            return Err(SqlError::unsupported("SCROLL CURSOR is not supported by trunkline"));
        }
        if !cursor.hold {
            self.transaction.require_block("DECLARE CURSOR")?;
        }
        let name = &cursor.name.text;
        self.check_new_cursor(name)?;
        let rows = self.rows(bound, parameters, &started).await?;
        rows.release_ahead();
        let declared = Cursor {
            rows: CursorRows::new(rows),
            entry: CursorEntry {
                name: name.clone(),
                text: self.source.as_str().into(),
                created: self.settings.statement_start,
                hold: cursor.hold,
            },
            is_held: !self.is_in_transaction(),
            no_scroll: cursor.scroll == Some(false),
            savepoints: self.transaction.savepoints(),
        };
        self.cursors.insert(name.clone(), declared);
        Ok(Outcome::Command("DECLARE CURSOR".to_owned()))
    }

    /// Checks that no portal and no cursor has this name.
    pub(super) fn check_new_cursor(&self, name: &str) -> Result<(), SqlError> {
        if self.cursors.contains_key(name) || self.portals.contains_key(name) {
            let message = format!("cursor \"{name}\" already exists");
            return Err(SqlError::new(SqlState::DUPLICATE_CURSOR, message));
        }
        Ok(())
    }

    /// FETCH and MOVE.
    pub(super) async fn fetch(
        &mut self,
        fetch: &FetchStatement,
        mut started: Started,
    ) -> Result<Outcome, SqlError> {
        let name = &fetch.cursor.text;
        let cursor = self.cursor(name)?;
        let no_scroll = cursor.no_scroll;
        let source = cursor.rows.clone();
        let Some(mut part) = source.take() else {
            let message = format!("portal \"{name}\" cannot be run");
            return Err(SqlError::new(SqlState::OBJECT_NOT_IN_PREREQUISITE_STATE, message));
        };
        // A cancel request stops the rows by the cancellation that they began with.
        self.restart(&mut started, source.cancellation().clone());
        let Some(step) = step_of(fetch, part.place(), no_scroll) else {
            part.fail();
            return Err(only_forward(no_scroll));
        };
        let (skipped, limit) = match step {
            Step::Stay if fetch.is_move => {
                return Ok(moved(u64::from(part.current().is_some())));
            }
            Step::Stay => {
                let row = part.current();
                if row.is_some() && no_scroll {
                    part.fail();
                    return Err(only_forward(no_scroll));
                }
                let columns = source.columns().to_vec();
                return Ok(fetched(Rows::in_memory(columns, row.into_iter().collect()), started));
            }
            Step::Forward { skipped, limit } => (skipped, limit),
        };
        if skipped > 0 {
            part.skip(skipped).await?;
        }
        if fetch.is_move {
            return Ok(moved(part.skip(limit).await?));
        }
        Ok(fetched(part.rows(limit), started))
    }

    /// CLOSE.
    pub(super) fn close_cursor(&mut self, name: Option<&Name>) -> Result<Outcome, SqlError> {
        let Some(name) = name else {
            self.cursors.clear();
            self.portals.clear();
            return Ok(Outcome::Command("CLOSE CURSOR ALL".to_owned()));
        };
        let is_cursor = self.cursors.remove(&name.text).is_some();
        if !is_cursor && self.portals.remove(&name.text).is_none() {
            return Err(no_cursor(&name.text));
        }
        Ok(Outcome::Command("CLOSE CURSOR".to_owned()))
    }

    /// A cursor by its name.
    pub(super) fn cursor(&self, name: &str) -> Result<&Cursor, SqlError> {
        self.cursors.get(name).ok_or_else(|| no_cursor(name))
    }

    /// What the end of a transaction does to cursors.
    pub(super) fn end_transaction_of_cursors(&mut self, committed: bool) {
        self.cursors.retain(|_, cursor| cursor.is_held || (committed && cursor.entry.hold));
        for cursor in self.cursors.values_mut() {
            cursor.is_held = true;
        }
    }

    /// A statement of the block has failed. Without a savepoint the block can only be rolled back, so
    /// its cursors end.
    pub(super) fn fail_cursors(&mut self) {
        if self.transaction_status() == TransactionStatus::Failed
            && self.transaction.savepoints() == 0
        {
            self.cursors.retain(|_, cursor| cursor.is_held);
        }
    }

    /// A statement of the block has failed. The portal that runs can't go on, and neither can those that
    /// were bound after the last savepoint, or all if there is none. Those before it can, after ROLLBACK TO.
    pub(super) fn fail_portals(&mut self) {
        let savepoints = self.transaction.savepoints();
        for portal in self.portals.values_mut() {
            if matches!(portal.progress, Progress::Active(_)) || portal.savepoints >= savepoints {
                portal.progress = Progress::Failed;
            }
        }
    }

    /// ROLLBACK TO a savepoint ends the cursors and portals that were made after it. RELEASE makes them
    /// those of what is outside of it.
    pub(super) fn follow_savepoint(&mut self, is_rollback: bool) {
        let savepoints = self.transaction.savepoints();
        if is_rollback {
            self.cursors.retain(|_, cursor| cursor.is_held || cursor.savepoints < savepoints);
            self.portals.retain(|_, portal| portal.savepoints < savepoints);
        }
        for portal in self.portals.values_mut() {
            portal.savepoints = portal.savepoints.min(savepoints);
        }
        for cursor in self.cursors.values_mut() {
            cursor.savepoints = cursor.savepoints.min(savepoints);
        }
    }
}

/// What a FETCH does.
enum Step {
    /// It returns the row that the cursor is on.
    Stay,
    /// It passes over some rows and returns up to a number of others.
    Forward { skipped: u64, limit: u64 },
}

/// What a FETCH from a cursor at a place does; `None` if it would have to scan backward.
fn step_of(fetch: &FetchStatement, place: u64, no_scroll: bool) -> Option<Step> {
    let forward = |count: i64| match count {
        0 => Some(Step::Stay),
        count => u64::try_from(count).ok().map(|limit| Step::Forward { skipped: 0, limit }),
    };
    let one_after = |skipped: u64| Some(Step::Forward { skipped, limit: 1 });
    let Some(count) = fetch.count.map(i64::from) else {
        let limit = u64::MAX;
        return (fetch.direction == FetchDirection::Forward)
            .then_some(Step::Forward { skipped: 0, limit });
    };
    match fetch.direction {
        FetchDirection::Forward => forward(count),
        FetchDirection::Backward => forward(-count),
        FetchDirection::Relative if count == 0 => Some(Step::Stay),
        FetchDirection::Relative => one_after(u64::try_from(count - 1).ok()?),
        FetchDirection::Absolute => match u64::try_from(count).ok()? {
            // Before the first row.
            0 if place == 0 => Some(Step::Forward { skipped: 0, limit: 0 }),
            wanted if wanted > place => one_after(wanted - place - 1),
            wanted if wanted == place && wanted > 0 && !no_scroll => Some(Step::Stay),
            _ => None,
        },
    }
}

fn fetched(mut rows: Rows, started: Started) -> Outcome {
    rows.set_guard(Some(Box::new(started)));
    Outcome::Rows { rows, tag: "FETCH" }
}

fn moved(count: u64) -> Outcome {
    Outcome::Command(format!("MOVE {count}"))
}

fn only_forward(no_scroll: bool) -> SqlError {
    let message = "cursor can only scan forward";
    let hint = match no_scroll {
        true => "Declare it with SCROLL option to enable backward scan.",
        false => "SCROLL CURSOR is not supported by trunkline.",
    };
    SqlError::new(SqlState::OBJECT_NOT_IN_PREREQUISITE_STATE, message).with_hint(hint)
}

fn no_cursor(name: &str) -> SqlError {
    SqlError::new(SqlState::INVALID_CURSOR_NAME, format!("cursor \"{name}\" does not exist"))
}
