//! Errors that many functions on dates and times raise, in PostgreSQL's words.
//!
//! For example, `'294276-12-31'::timestamp + '1 day'` is 22008, `timestamp out of range`.

use crate::error::{SqlError, SqlState};

/// 22008 with a message.
pub(super) fn overflow(message: impl Into<String>) -> SqlError {
    SqlError::new(SqlState::DATETIME_FIELD_OVERFLOW, message)
}

/// 22023 with a message.
pub(super) fn invalid(message: impl Into<String>) -> SqlError {
    SqlError::new(SqlState::INVALID_PARAMETER_VALUE, message)
}

pub(super) fn date_out_of_range() -> SqlError {
    overflow("date out of range")
}

pub(super) fn date_out_of_range_for_timestamp() -> SqlError {
    overflow("date out of range for timestamp")
}

pub(super) fn timestamp_out_of_range() -> SqlError {
    overflow("timestamp out of range")
}

pub(super) fn interval_out_of_range() -> SqlError {
    overflow("interval out of range")
}
