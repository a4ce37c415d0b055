//! Transaction blocks and savepoints.
//!
//! The directory doesn't change, so all isolation levels read the same rows, and a transaction is only
//! a state that clients see: whether it exists, whether a statement in it has failed, its savepoints.
//!
//! Statements that are sent together form an *implicit block*, without BEGIN. It ends with them, or with
//! the first error. BEGIN turns it into a block that stays; COMMIT and ROLLBACK end it with a warning.

use trunkline_sql::syntax::TransactionStatement;
use trunkline_sql::{SqlError, SqlState};

use super::outcome::{Notice, Severity, TransactionStatus};

/// The transaction of a session.
#[derive(Debug, Default)]
pub(super) struct Transaction {
    status: TransactionStatus,
    /// The block has no BEGIN.
    is_implicit: bool,
    savepoints: Vec<String>,
    /// When the block began, in microseconds since 2000.
    start: Option<i64>,
}

impl Transaction {
    /// Whether there is a block.
    pub(super) fn status(&self) -> TransactionStatus {
        self.status
    }

    /// How many savepoints there are.
    pub(super) fn savepoints(&self) -> usize {
        self.savepoints.len()
    }

    /// When the block began.
    pub(super) fn start(&self) -> Option<i64> {
        self.start
    }

    /// Whether there is a block that no BEGIN has begun.
    pub(super) fn is_implicit(&self) -> bool {
        self.is_implicit
    }

    /// Begins an implicit block, unless there is a block. `start` is in microseconds since 2000.
    pub(super) fn begin_implicit(&mut self, start: i64) {
        if self.status == TransactionStatus::Idle {
            *self = Self {
                status: TransactionStatus::InTransaction,
                is_implicit: true,
                savepoints: Vec::new(),
                start: Some(start),
            };
        }
    }

    /// Ends an implicit block, if there is one.
    pub(super) fn end_implicit(&mut self) {
        if self.is_implicit {
            *self = Self::default();
        }
    }

    /// A statement has failed, which ends what a block can do, and an implicit block altogether.
    pub(super) fn fail(&mut self) {
        self.end_implicit();
        if self.status == TransactionStatus::InTransaction {
            self.status = TransactionStatus::Failed;
        }
    }

    /// Fails if a statement in the block has failed.
    ///
    /// # Errors
    /// 25P02.
    pub(super) fn check(&self) -> Result<(), SqlError> {
        if self.status != TransactionStatus::Failed {
            return Ok(());
        }
        let message =
            "current transaction is aborted, commands ignored until end of transaction block";
        Err(SqlError::new(SqlState::IN_FAILED_SQL_TRANSACTION, message))
    }

    /// Executes a command and returns its tag.
    ///
    /// # Errors
    /// Those of PostgreSQL; 0A000 for what isn't implemented.
    pub(super) fn execute(
        &mut self,
        command: &TransactionStatement,
        now: i64,
        notices: &mut Vec<Notice>,
    ) -> Result<&'static str, SqlError> {
        match command {
            TransactionStatement::Begin(_) => self.begin(now, "BEGIN", notices),
            TransactionStatement::Start(_) => self.begin(now, "START TRANSACTION", notices),
            TransactionStatement::Commit { chain } => self.end("COMMIT", *chain, now, notices),
            TransactionStatement::Rollback { chain } => self.end("ROLLBACK", *chain, now, notices),
            TransactionStatement::Savepoint(name) => {
                self.require_explicit_block("SAVEPOINT")?;
                self.check()?;
                self.savepoints.push(name.text.clone());
                Ok("SAVEPOINT")
            }
            TransactionStatement::Release(name) => {
                self.require_explicit_block("RELEASE SAVEPOINT")?;
                self.check()?;
                let at = self.savepoint(&name.text)?;
                self.savepoints.truncate(at);
                Ok("RELEASE")
            }
            TransactionStatement::RollbackTo(name) => {
                self.require_explicit_block("ROLLBACK TO SAVEPOINT")?;
                let at = self.savepoint(&name.text)?;
                self.savepoints.truncate(at + 1);
                self.status = TransactionStatus::InTransaction;
                Ok("ROLLBACK")
            }
            TransactionStatement::Prepare(_)
            | TransactionStatement::CommitPrepared(_)
            | TransactionStatement::RollbackPrepared(_) => {
                self.check()?;
                Err(SqlError::unsupported("two-phase commit is not supported by trunkline"))
            }
        }
    }

    fn begin(
        &mut self,
        now: i64,
        tag: &'static str,
        notices: &mut Vec<Notice>,
    ) -> Result<&'static str, SqlError> {
        self.check()?;
        if self.is_implicit {
            self.is_implicit = false;
        } else if self.status == TransactionStatus::InTransaction {
            let message = "there is already a transaction in progress";
            notices.push(warning(SqlState::ACTIVE_SQL_TRANSACTION, message));
        } else {
            *self = Self {
                status: TransactionStatus::InTransaction,
                is_implicit: false,
                savepoints: Vec::new(),
                start: Some(now),
            };
        }
        Ok(tag)
    }

    fn end(
        &mut self,
        word: &'static str,
        chain: bool,
        now: i64,
        notices: &mut Vec<Notice>,
    ) -> Result<&'static str, SqlError> {
        if self.status == TransactionStatus::Idle || self.is_implicit {
            if chain {
                return Err(needs_block(&format!("{word} AND CHAIN")));
            }
            let message = "there is no transaction in progress";
            notices.push(warning(SqlState::NO_ACTIVE_SQL_TRANSACTION, message));
            self.end_implicit();
            return Ok(word);
        }
        let tag = if self.status == TransactionStatus::Failed { "ROLLBACK" } else { word };
        *self = Self::default();
        if chain {
            self.status = TransactionStatus::InTransaction;
            self.start = Some(now);
        }
        Ok(tag)
    }

    /// Fails outside of a block.
    ///
    /// # Errors
    /// 25P01.
    pub(super) fn require_block(&self, what: &str) -> Result<(), SqlError> {
        match self.status {
            TransactionStatus::Idle => Err(needs_block(what)),
            _ => Ok(()),
        }
    }

    /// Fails outside of a block that was begun.
    ///
    /// # Errors
    /// 25P01.
    fn require_explicit_block(&self, what: &str) -> Result<(), SqlError> {
        if self.is_implicit { Err(needs_block(what)) } else { self.require_block(what) }
    }

    fn savepoint(&self, name: &str) -> Result<usize, SqlError> {
        self.savepoints.iter().rposition(|known| known == name).ok_or_else(|| {
            let message = format!("savepoint \"{name}\" does not exist");
            SqlError::new(SqlState::INVALID_SAVEPOINT_SPECIFICATION, message)
        })
    }
}

fn needs_block(what: &str) -> SqlError {
    let message = format!("{what} can only be used in transaction blocks");
    SqlError::new(SqlState::NO_ACTIVE_SQL_TRANSACTION, message)
}

fn warning(code: SqlState, message: &str) -> Notice {
    Notice { severity: Severity::Warning, fields: SqlError::new(code, message) }
}
