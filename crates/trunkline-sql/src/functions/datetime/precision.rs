//! Type modifiers: the precision of seconds, and the fields of an interval.
//!
//! ```text
//!   timestamp(0)             rounds to seconds
//!   interval day to minute   sets seconds to zero
//!   interval second(3)       rounds to milliseconds
//! ```
//!
//! An interval's modifier has the allowed fields as bits in its upper half and the precision in its
//! lower half. Only the smallest field matters: what is smaller becomes zero, what is larger stays.
//!
//! Mirrors `AdjustTimestampForTypmod` and `AdjustIntervalForTypmod` of PostgreSQL's
//! `utils/adt/timestamp.c`.

use super::error::{interval_out_of_range, invalid};
use super::interval::{INFINITE_SINCE, Infinity, Interval};
use crate::error::SqlError;

/// The most digits of a fraction of a second.
const PRECISION_MAX: i32 = 6;
/// `INTERVAL_FULL_RANGE`: all fields are allowed.
const ALL_FIELDS: i32 = 0x7FFF;
/// `INTERVAL_FULL_PRECISION`: no precision was given.
const ALL_DIGITS: i32 = 0xFFFF;
const HOUR_US: i64 = 3_600_000_000;
const MINUTE_US: i64 = 60_000_000;

/// Microseconds in the last digit of a precision from 0 to 6.
fn unit(precision: i32) -> i64 {
    10_i64.pow((PRECISION_MAX - precision).unsigned_abs())
}

/// Rounds half a unit away from zero.
fn round(micros: i64, unit: i64) -> i64 {
    // One microsecond is not halved.
    let half = unit / 2;
    match micros < 0 {
        true => micros.wrapping_neg().wrapping_add(half) / unit * -unit,
        false => micros.wrapping_add(half) / unit * unit,
    }
}

/// Rounds a timestamp to a precision; -1 is none.
///
/// # Errors
/// 22023: there is no such precision.
pub(super) fn timestamp_scale(stamp: i64, precision: i32) -> Result<i64, SqlError> {
    if Infinity::of_timestamp(stamp).is_some() || precision == -1 {
        return Ok(stamp);
    }
    if !(0..=PRECISION_MAX).contains(&precision) {
        let what = format!("timestamp({precision}) precision must be between 0 and 6");
        return Err(invalid(what));
    }
    Ok(round(stamp, unit(precision)))
}

/// Rounds a time to a precision. The server ignores a precision that doesn't exist.
pub(super) fn time_scale(time: i64, precision: i32) -> i64 {
    match precision {
        0..=PRECISION_MAX => round(time, unit(precision)),
        _ => time,
    }
}

/// Bits of the fields, `INTERVAL_MASK`.
mod field {
    pub(super) const MONTH: i32 = 1 << 1;
    pub(super) const YEAR: i32 = 1 << 2;
    pub(super) const DAY: i32 = 1 << 3;
    pub(super) const HOUR: i32 = 1 << 10;
    pub(super) const MINUTE: i32 = 1 << 11;
    pub(super) const SECOND: i32 = 1 << 12;
}

/// Cuts an interval to the fields and the precision of a modifier; -1 is none.
///
/// # Errors
/// 22023: there is no such precision. 22008: rounding overflows. XX000: no such set of fields.
pub(super) fn interval_scale(
    span: Interval,
    modifier: i32,
    major: u32,
) -> Result<Interval, SqlError> {
    use field::{DAY, HOUR, MINUTE, MONTH, SECOND, YEAR};
    if modifier < 0 || span.infinity(major).is_some() {
        return Ok(span);
    }
    let (fields, precision) = (modifier >> 16 & 0x7FFF, modifier & 0xFFFF);
    let mut span = span;
    if fields == YEAR {
        span = Interval { months: span.months / 12 * 12, days: 0, micros: 0 };
    } else if fields == MONTH || fields == YEAR | MONTH {
        span = Interval { days: 0, micros: 0, ..span };
    } else if fields == DAY {
        span.micros = 0;
    } else if fields == HOUR || fields == DAY | HOUR {
        span.micros -= span.micros % HOUR_US;
    } else if [MINUTE, HOUR | MINUTE, DAY | HOUR | MINUTE].contains(&fields) {
        span.micros -= span.micros % MINUTE_US;
    } else if ![
        ALL_FIELDS,
        SECOND,
        MINUTE | SECOND,
        HOUR | MINUTE | SECOND,
        DAY | HOUR | MINUTE | SECOND,
    ]
    .contains(&fields)
    {
        return Err(SqlError::internal(format!("unrecognized interval typmod: {modifier}")));
    }
    if precision == ALL_DIGITS {
        return Ok(span);
    }
    if precision > PRECISION_MAX {
        let what = format!("interval({precision}) precision must be between 0 and 6");
        return Err(invalid(what));
    }
    let unit = unit(precision);
    // Older versions overflow silently.
    if major >= INFINITE_SINCE
        && span.micros.unsigned_abs() > i64::MAX.unsigned_abs() - unit.unsigned_abs() / 2
    {
        return Err(interval_out_of_range());
    }
    span.micros = round(span.micros, unit);
    Ok(span)
}
