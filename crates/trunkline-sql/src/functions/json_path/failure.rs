//! Why a path has no result.

use crate::error::{SqlError, SqlState};

/// An error of a path. Some are errors of the statement only if the caller didn't ask for silence, and
/// make a predicate unknown.
#[derive(Debug)]
pub(super) enum Failure {
    Path(SqlError),
    Statement(SqlError),
}

impl From<SqlError> for Failure {
    fn from(error: SqlError) -> Self {
        Self::Statement(error)
    }
}

/// An error of a path.
pub(super) fn failed(code: SqlState, message: impl Into<String>) -> Failure {
    Failure::Path(SqlError::new(code, message))
}

pub(super) const MEMBER_NOT_FOUND: SqlState = SqlState::SQL_JSON_MEMBER_NOT_FOUND;
pub(super) const ARRAY_NOT_FOUND: SqlState = SqlState::SQL_JSON_ARRAY_NOT_FOUND;
pub(super) const OBJECT_NOT_FOUND: SqlState = SqlState::SQL_JSON_OBJECT_NOT_FOUND;
pub(super) const NUMBER_NOT_FOUND: SqlState = SqlState::SQL_JSON_NUMBER_NOT_FOUND;
pub(super) const INVALID_SUBSCRIPT: SqlState = SqlState::INVALID_SQL_JSON_SUBSCRIPT;
pub(super) const NON_NUMERIC: SqlState = SqlState::NON_NUMERIC_SQL_JSON_ITEM;
pub(super) const SINGLETON_REQUIRED: SqlState = SqlState::SINGLETON_SQL_JSON_ITEM_REQUIRED;
