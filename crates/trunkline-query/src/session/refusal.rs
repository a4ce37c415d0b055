//! Statements and transaction modes that are refused, each by its name.

use trunkline_sql::syntax::{SelectStatement, Statement, TransactionMode};
use trunkline_sql::{SqlError, SqlState};

use crate::settings::cannot_write;

/// Checks that we can give a transaction these modes.
///
/// # Errors
/// 25001 for READ WRITE. 0A000 for what isn't implemented.
pub(super) fn check_modes(modes: &[TransactionMode]) -> Result<(), SqlError> {
    for mode in modes {
        match mode {
            TransactionMode::ReadOnly(false) => return Err(cannot_write()),
            TransactionMode::Deferrable(true) => {
                let message = "DEFERRABLE transactions are not supported by trunkline";
                return Err(SqlError::unsupported(message));
            }
            TransactionMode::Snapshot(_) => {
                let message = "SET TRANSACTION SNAPSHOT is not supported by trunkline";
                return Err(SqlError::unsupported(message));
            }
            TransactionMode::IsolationLevel(_)
            | TransactionMode::ReadOnly(true)
            | TransactionMode::Deferrable(false) => {}
        }
    }
    Ok(())
}

/// The error for a statement that isn't implemented.
pub(super) fn refused(statement: &Statement) -> SqlError {
    let name = match statement {
        Statement::Write { command } => {
            let message = format!("cannot execute {command} in a read-only transaction");
            return SqlError::new(SqlState::READ_ONLY_SQL_TRANSACTION, message);
        }
        Statement::Checkpoint => "CHECKPOINT",
        Statement::Listen(_) => "LISTEN",
        Statement::Notify(..) => "NOTIFY",
        Statement::Unlisten(_) => "UNLISTEN",
        _ => "this command",
    };
    SqlError::unsupported(format!("{name} is not supported by trunkline"))
}

/// The query of an `EXPLAIN`.
///
/// # Errors
/// 0A000 for anything else.
pub(super) fn explained(statement: &Statement) -> Result<&SelectStatement, SqlError> {
    let name = match statement {
        Statement::Select(select) => return Ok(select),
        Statement::Write { command } => *command,
        Statement::Execute { .. } => "EXECUTE",
        Statement::DeclareCursor(_) => "DECLARE CURSOR",
        _ => "this command",
    };
    Err(SqlError::unsupported(format!("EXPLAIN of {name} is not supported by trunkline")))
}
