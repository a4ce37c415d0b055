//! The limits of the type, and the errors of exceeding them.

use crate::error::{SqlError, SqlState};

/// `NUMERIC_DSCALE_MAX`: the most decimals.
pub(super) const DSCALE_MAX: i32 = 0x3FFF;
/// `NUMERIC_WEIGHT_MAX`.
pub(super) const WEIGHT_MAX: i32 = i16::MAX as i32;
/// `NUMERIC_MIN_SIG_DIGITS`: the significant digits that inexact results have at least.
pub(super) const MIN_SIG_DIGITS: i32 = 16;
/// `NUMERIC_MAX_DISPLAY_SCALE`: the decimals that inexact results have at most.
pub(super) const MAX_DISPLAY_SCALE: i32 = 1000;
/// `NUMERIC_MAX_RESULT_SCALE`: a third of the largest argument of `exp`.
pub(super) const MAX_RESULT_SCALE: i32 = 2000;

/// 22003.
pub(super) fn out_of_range(message: impl Into<String>) -> SqlError {
    SqlError::new(SqlState::NUMERIC_VALUE_OUT_OF_RANGE, message)
}

/// The error of a result that the type cannot hold: 22003.
pub fn overflow() -> SqlError {
    out_of_range("value overflows numeric format")
}

/// 22012.
pub fn division_by_zero() -> SqlError {
    SqlError::new(SqlState::DIVISION_BY_ZERO, "division by zero")
}

/// 2201F.
pub(super) fn power_error(message: &str) -> SqlError {
    SqlError::new(SqlState::INVALID_ARGUMENT_FOR_POWER_FUNCTION, message)
}

/// A fractional power of a negative number: 2201F.
pub(super) fn complex_power() -> SqlError {
    power_error("a negative number raised to a non-integer power yields a complex result")
}

/// 2201E.
pub(super) fn logarithm_error(of: &str) -> SqlError {
    let message = format!("cannot take logarithm of {of}");
    SqlError::new(SqlState::INVALID_ARGUMENT_FOR_LOG, message)
}
