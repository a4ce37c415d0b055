//! `timestamp` and `timestamptz`: local time, adding intervals, and conversions between dates,
//! timestamps and zones.
//!
//! Both types are microseconds since 2000. A timestamptz is in UTC and is converted to a zone's local
//! time where calendar fields matter. A plain timestamp is a local time already, so functions for both
//! types treat it as one in UTC.
//!
//! ```text
//!   '2024-03-30 02:30' in Europe/Berlin + 1 day  =  '2024-03-31 03:30'   02:30 doesn't exist
//!   '2024-01-31' + 1 month                       =  '2024-02-29'
//! ```
//!
//! Mirrors PostgreSQL's `utils/adt/timestamp.c`.

use std::cmp::Ordering;

use trunkline_format::calendar::{
    DAY_US, FIRST_DATE, FIRST_TIMESTAMP, LAST_DATE, TIMESTAMP_END, UNIX_TO_2000_S, civil, days,
    days_of_month,
};
use trunkline_format::text_output::{TimeZone, Utc};

use super::error::{
    date_out_of_range, date_out_of_range_for_timestamp, interval_out_of_range, overflow,
    timestamp_out_of_range,
};
use super::interval::{INFINITE_SINCE, Infinity, Interval};
use crate::error::SqlError;

/// Microseconds in a second.
pub(super) const SECOND_US: i64 = 1_000_000;
/// The first day after the last timestamp.
const TIMESTAMP_END_DATE: i32 = (TIMESTAMP_END / DAY_US) as i32;

/// Returns a finite timestamp if it is in range.
pub(in crate::functions) fn in_range(stamp: i64) -> Result<i64, SqlError> {
    if (FIRST_TIMESTAMP..TIMESTAMP_END).contains(&stamp) {
        Ok(stamp)
    } else {
        Err(timestamp_out_of_range())
    }
}

/// Returns a finite date if it is in range.
pub(super) fn date_in_range(date: i64) -> Result<i32, SqlError> {
    let date = i32::try_from(date).ok().filter(|date| (FIRST_DATE..=LAST_DATE).contains(date));
    date.ok_or_else(date_out_of_range)
}

/// Seconds since 1970 of a timestamp, rounded down.
pub(super) fn unix_s(stamp: i64) -> i64 {
    stamp.div_euclid(SECOND_US) + UNIX_TO_2000_S
}

/// The zone's offset at a time in UTC, in seconds east.
pub(super) fn offset_at(stamp: i64, zone: &dyn TimeZone) -> i32 {
    zone.offset_s(unix_s(stamp))
}

/// The zone's local time. The result may be out of the range of timestamps by an offset.
pub(super) fn local(stamp: i64, zone: &dyn TimeZone) -> i64 {
    shifted(stamp, offset_at(stamp, zone))
}

/// Adds seconds. Timestamps in range are far enough from overflow.
pub(super) fn shifted(stamp: i64, seconds: i32) -> i64 {
    stamp.wrapping_add(i64::from(seconds) * SECOND_US)
}

/// A local time in a zone as a timestamptz.
///
/// # Errors
/// 22008: the result is out of range.
pub(super) fn utc(local: i64, zone: &dyn TimeZone) -> Result<i64, SqlError> {
    in_range(shifted(local, -zone.local_offset_s(unix_s(local))))
}

/// A timestamp in the session's zone as a timestamptz.
///
/// # Errors
/// 22008: the result is out of range.
pub(in crate::functions) fn timestamp_to_timestamptz(
    stamp: i64,
    zone: &dyn TimeZone,
) -> Result<i64, SqlError> {
    if Infinity::of_timestamp(stamp).is_some() { Ok(stamp) } else { utc(stamp, zone) }
}

/// A timestamptz as a timestamp in the session's zone.
///
/// # Errors
/// 22008: the result is out of range.
pub(super) fn timestamptz_to_timestamp(stamp: i64, zone: &dyn TimeZone) -> Result<i64, SqlError> {
    match Infinity::of_timestamp(stamp) {
        Some(_) => Ok(stamp),
        None => in_range(local(stamp, zone)),
    }
}

/// The midnight that a date starts with, as a timestamp.
///
/// # Errors
/// 22008: the date is after the last timestamp.
pub(super) fn date_to_timestamp(date: i32) -> Result<i64, SqlError> {
    match Infinity::of_date(date) {
        Some(end) => Ok(end.timestamp()),
        None if date < TIMESTAMP_END_DATE => Ok(i64::from(date) * DAY_US),
        None => Err(date_out_of_range_for_timestamp()),
    }
}

/// The midnight that a date starts with in the session's zone, as a timestamptz.
///
/// # Errors
/// 22008: it is out of range.
pub(super) fn date_to_timestamptz(date: i32, zone: &dyn TimeZone) -> Result<i64, SqlError> {
    let midnight = date_to_timestamp(date)?;
    timestamp_to_timestamptz(midnight, zone).map_err(|_| date_out_of_range_for_timestamp())
}

/// The date of a timestamp.
pub(super) fn timestamp_to_date(stamp: i64) -> i32 {
    match Infinity::of_timestamp(stamp) {
        Some(Infinity::Minus) => i32::MIN,
        Some(Infinity::Plus) => i32::MAX,
        None => stamp.div_euclid(DAY_US) as i32,
    }
}

/// The date of a timestamptz in the session's zone.
pub(super) fn timestamptz_to_date(stamp: i64, zone: &dyn TimeZone) -> i32 {
    match Infinity::of_timestamp(stamp) {
        Some(_) => timestamp_to_date(stamp),
        None => timestamp_to_date(local(stamp, zone)),
    }
}

/// Compares a converted value with a timestamp. A value that is out of range compares as if the range
/// of timestamps were unlimited.
pub(super) fn compare_converted(
    converted: Result<i64, SqlError>,
    is_negative: bool,
    stamp: i64,
) -> Ordering {
    match (converted, Infinity::of_timestamp(stamp)) {
        (Ok(converted), _) => converted.cmp(&stamp),
        (Err(_), Some(Infinity::Plus)) => Ordering::Less,
        (Err(_), Some(Infinity::Minus)) => Ordering::Greater,
        (Err(_), None) if is_negative => Ordering::Less,
        (Err(_), None) => Ordering::Greater,
    }
}

/// Adds an interval: first months, then days, then the time. Months and days are added to the local
/// time in `zone`. If a month is too short for the day, the result is in the last day of the month.
///
/// # Errors
/// 22008: a result or a step before it is out of range, or the operands are opposite infinities.
pub fn plus_interval(
    stamp: i64,
    span: Interval,
    zone: &dyn TimeZone,
    major: u32,
) -> Result<i64, SqlError> {
    match (span.infinity(major), Infinity::of_timestamp(stamp)) {
        (Some(a), Some(b)) if a != b => return Err(timestamp_out_of_range()),
        (Some(end), _) => return Ok(end.timestamp()),
        (None, Some(_)) => return Ok(stamp),
        (None, None) => {}
    }
    let mut stamp = stamp;
    if span.months != 0 {
        let local = local(stamp, zone);
        let date = plus_months(local.div_euclid(DAY_US), span.months);
        stamp = utc(at_time(date, local.rem_euclid(DAY_US))?, zone)?;
    }
    if span.days != 0 {
        let local = local(stamp, zone);
        let date = local.div_euclid(DAY_US) + i64::from(span.days);
        stamp = utc(at_time(date, local.rem_euclid(DAY_US))?, zone)?;
    }
    stamp.checked_add(span.micros).ok_or_else(timestamp_out_of_range).and_then(in_range)
}

/// Subtracts an interval: adds its negative.
///
/// # Errors
/// 22008, as for [`plus_interval`] and [`Interval::negated`].
pub fn minus_interval(
    stamp: i64,
    span: Interval,
    zone: &dyn TimeZone,
    major: u32,
) -> Result<i64, SqlError> {
    let negative = match major < INFINITE_SINCE {
        // Older versions don't notice that the smallest integer has no negative.
        true => Interval {
            micros: span.micros.wrapping_neg(),
            days: span.days.wrapping_neg(),
            months: span.months.wrapping_neg(),
        },
        false => span.negated(major)?,
    };
    plus_interval(stamp, negative, zone, major)
}

/// The same day of another month, or its last day if it is shorter.
fn plus_months(date: i64, months: i32) -> i64 {
    let (year, month, day) = civil(date);
    let total = year * 12 + i64::from(month - 1) + i64::from(months);
    let (year, month) = (total.div_euclid(12), total.rem_euclid(12) as u32 + 1);
    days(year, month, day.min(days_of_month(year, month)))
}

/// A time of a day in microseconds since 2000.
///
/// # Errors
/// 22008: the date is far out of range.
pub(super) fn at_time(date: i64, time: i64) -> Result<i64, SqlError> {
    let midnight = date.checked_mul(DAY_US);
    midnight.and_then(|midnight| midnight.checked_add(time)).ok_or_else(timestamp_out_of_range)
}

/// The difference between two timestamps in days and microseconds.
///
/// # Errors
/// 22008: the difference doesn't fit, or both are the same infinity.
pub(super) fn difference(a: i64, b: i64, major: u32) -> Result<Interval, SqlError> {
    match (Infinity::of_timestamp(a), Infinity::of_timestamp(b)) {
        (None, None) => {
            let micros = match major < INFINITE_SINCE {
                // Older versions overflow silently.
                true => a.wrapping_sub(b),
                false => a.checked_sub(b).ok_or_else(interval_out_of_range)?,
            };
            Interval { micros, ..Interval::default() }.justify_hours(major)
        }
        _ if major < INFINITE_SINCE => Err(overflow("cannot subtract infinite timestamps")),
        (Some(a), Some(b)) if a == b => Err(interval_out_of_range()),
        (Some(end), _) => Ok(end.interval()),
        (None, Some(end)) => Ok(end.negated().interval()),
    }
}

/// The symbolic difference of two timestamps in years, months, days and time (`age`).
///
/// # Errors
/// 22008: both are the same infinity.
pub(super) fn age(a: i64, b: i64, zone: &dyn TimeZone, major: u32) -> Result<Interval, SqlError> {
    if major >= INFINITE_SINCE {
        match (Infinity::of_timestamp(a), Infinity::of_timestamp(b)) {
            (None, None) => {}
            (Some(a), Some(b)) if a == b => return Err(interval_out_of_range()),
            (Some(end), _) => return Ok(end.interval()),
            (None, Some(end)) => return Ok(end.negated().interval()),
        }
    }
    // Older versions compute with infinity as if it were a time, of which the one is too early.
    if a.min(b) == i64::MIN {
        return Err(timestamp_out_of_range());
    }
    // Which is later is not decided by the local times, which may be repeated.
    let [(from, from_time), (to, to_time)] = [a.min(b), a.max(b)].map(|stamp| {
        let local = i128::from(stamp) + i128::from(offset_at(stamp, zone)) * 1_000_000;
        let day = i128::from(DAY_US);
        (civil(local.div_euclid(day) as i64), local.rem_euclid(day) as i64)
    });
    let mut micros = to_time - from_time;
    let mut days = i64::from(to.2) - i64::from(from.2);
    let mut months = (to.0 - from.0) * 12 + i64::from(to.1) - i64::from(from.1);
    if micros < 0 {
        micros += DAY_US;
        days -= 1;
    }
    // The days that are left of the earlier month count.
    while days < 0 {
        days += i64::from(days_of_month(from.0, from.1));
        months -= 1;
    }
    let months = i32::try_from(months).map_err(|_| interval_out_of_range())?;
    let age = Interval { micros, days: days as i32, months };
    if a < b { age.negated(major) } else { Ok(age) }
}

/// Local timestamps don't depend on a zone: they are computed with as if they were in UTC.
pub(super) const NO_ZONE: &Utc = &Utc;
