//! The current time: `now()`, and `CURRENT_DATE` and its like.
//!
//! All of them are of the start of the transaction or the statement, so they don't change in a
//! statement. `clock_timestamp()` and `timeofday()` do, and are not here.
//!
//! Mirrors `GetSQLCurrentTimestamp` and its neighbours of PostgreSQL's `utils/adt/timestamp.c`, and
//! `GetSQLCurrentDate` of `utils/adt/date.c`.

use super::super::call::{CallSettings, Kernel};
use super::super::rows::each_row;
use super::conversion::timestamptz_to_timetz;
use super::precision::{time_scale, timestamp_scale};
use super::timestamp::{timestamptz_to_date, timestamptz_to_timestamp};
use crate::error::SqlError;

/// `CURRENT_DATE`: days since 2000.
pub fn current_date(settings: &CallSettings) -> i32 {
    timestamptz_to_date(settings.transaction_start, &*settings.zone)
}

/// `CURRENT_TIMESTAMP`, or `CURRENT_TIMESTAMP(precision)` if the precision is not -1.
///
/// # Errors
/// 22023: there is no such precision.
pub fn current_timestamp(settings: &CallSettings, precision: i32) -> Result<i64, SqlError> {
    timestamp_scale(settings.transaction_start, precision)
}

/// `LOCALTIMESTAMP`, or `LOCALTIMESTAMP(precision)` if the precision is not -1.
///
/// # Errors
/// 22023: there is no such precision. 22008: the local time is out of range.
pub fn local_timestamp(settings: &CallSettings, precision: i32) -> Result<i64, SqlError> {
    let local = timestamptz_to_timestamp(settings.transaction_start, &*settings.zone)?;
    timestamp_scale(local, precision)
}

/// `LOCALTIME`, or `LOCALTIME(precision)` if the precision is not -1: microseconds of the day.
pub fn local_time(settings: &CallSettings, precision: i32) -> i64 {
    let now = timestamptz_to_timetz(settings.transaction_start, settings);
    time_scale(now.map_or(0, |now| now.micros), precision)
}

/// `CURRENT_TIME`, or `CURRENT_TIME(precision)` if the precision is not -1: a timetz as it is stored,
/// or null if the transaction started at an infinite time.
pub fn current_time(settings: &CallSettings, precision: i32) -> Option<[u8; 12]> {
    let mut now = timestamptz_to_timetz(settings.transaction_start, settings)?;
    now.micros = time_scale(now.micros, precision);
    Some(now.to_bytes())
}

/// The functions without arguments.
pub(in super::super) const KERNELS: &[(&str, Kernel)] = &[
    ("now", |call| each_row(call.rows, |_| Ok(Some(call.settings.transaction_start)))),
    ("statement_timestamp", |call| {
        each_row(call.rows, |_| Ok(Some(call.settings.statement_start)))
    }),
];
