//! Casts between dates, times, timestamps and intervals, precisions, and `AT TIME ZONE`.
//!
//! ```text
//!   '2024-07-01 12:00'::timestamp AT TIME ZONE 'Europe/Berlin'   timestamp_zone     10:00 UTC
//!   '2024-07-01 10:00Z'::timestamptz::date                       timestamptz_date   in the session's zone
//!   '12:34:56.789'::time(1)                                      time_scale         12:34:56.8
//! ```
//!
//! Mirrors PostgreSQL's `utils/adt/date.c` and `utils/adt/timestamp.c`.

use trunkline_format::calendar::DAY_US;

use super::super::call::{Call, CallSettings, Kernel};
use super::super::rows::{binary, unary};
use super::error::overflow;
use super::interval::{Infinity, Interval};
use super::precision::{interval_scale, time_scale, timestamp_scale};
use super::time::TimeTz;
use super::timestamp::{
    date_to_timestamp, date_to_timestamptz, in_range, local, offset_at, shifted, timestamp_to_date,
    timestamp_to_timestamptz, timestamptz_to_date, timestamptz_to_timestamp, unix_s,
};
use super::zone::{ZoneCache, interval_offset};
use crate::error::SqlError;

/// A time on the day on which the transaction started, with the offset of the session's zone.
fn time_to_timetz(time: i64, settings: &CallSettings) -> TimeTz {
    let zone = &*settings.zone;
    let today = local(settings.transaction_start, zone).div_euclid(DAY_US);
    TimeTz { micros: time, west_s: -zone.local_offset_s(unix_s(today * DAY_US + time)) }
}

/// The local time of a timestamptz, which is null if it is infinite.
pub(super) fn timestamptz_to_timetz(stamp: i64, settings: &CallSettings) -> Option<TimeTz> {
    Infinity::of_timestamp(stamp).is_none().then(|| {
        let offset = offset_at(stamp, &*settings.zone);
        TimeTz { micros: shifted(stamp, offset).rem_euclid(DAY_US), west_s: -offset }
    })
}

/// The time of an interval, modulo a day.
fn interval_to_time(span: Interval, major: u32) -> Result<i64, SqlError> {
    if span.infinity(major).is_some() {
        return Err(overflow("cannot convert infinite interval to time"));
    }
    Ok(span.micros.rem_euclid(DAY_US))
}

/// A timestamp shifted by an interval that stands for a zone.
fn shifted_by_interval(
    span: Interval,
    stamp: i64,
    sign: i64,
    settings: &CallSettings,
) -> Result<i64, SqlError> {
    if Infinity::of_timestamp(stamp).is_some() {
        return Ok(stamp);
    }
    let seconds = sign * interval_offset(span, settings)?;
    // The server keeps the offset in 32 bits.
    in_range(shifted(stamp, seconds as i32))
}

fn timetz_in_zone(
    call: &Call<'_>,
    name: &str,
    time: TimeTz,
    zones: &mut ZoneCache,
) -> Result<TimeTz, SqlError> {
    let zone = zones.named(name)?;
    Ok(time.in_zone(-offset_at(call.settings.transaction_start, &*zone)))
}

/// Casts, changes of precision and of zone.
pub(in super::super) const KERNELS: &[(&str, Kernel)] = &[
    ("date_timestamp", |call| unary(call, date_to_timestamp)),
    ("date_timestamptz", |call| unary(call, |a: i32| date_to_timestamptz(a, &*call.settings.zone))),
    ("timestamp_date", |call| unary(call, |a: i64| Ok(timestamp_to_date(a)))),
    ("timestamptz_date", |call| {
        unary(call, |a: i64| Ok(timestamptz_to_date(a, &*call.settings.zone)))
    }),
    ("timestamp_time", |call| {
        unary(call, |a: i64| Ok(Infinity::of_timestamp(a).is_none().then(|| a.rem_euclid(DAY_US))))
    }),
    ("timestamptz_time", |call| {
        unary(call, |a: i64| Ok(timestamptz_to_timetz(a, call.settings).map(|time| time.micros)))
    }),
    ("timestamptz_timetz", |call| {
        unary(call, |a: i64| Ok(timestamptz_to_timetz(a, call.settings)))
    }),
    ("timestamp_timestamptz", |call| {
        unary(call, |a: i64| timestamp_to_timestamptz(a, &*call.settings.zone))
    }),
    ("timestamptz_timestamp", |call| {
        unary(call, |a: i64| timestamptz_to_timestamp(a, &*call.settings.zone))
    }),
    ("time_timetz", |call| unary(call, |a: i64| Ok(time_to_timetz(a, call.settings)))),
    ("timetz_time", |call| unary(call, |a: TimeTz| Ok(a.micros))),
    ("time_interval", |call| {
        unary(call, |a: i64| Ok(Interval { micros: a, ..Interval::default() }))
    }),
    ("interval_time", |call| unary(call, |a: Interval| interval_to_time(a, call.settings.major))),
    ("timestamp_scale", |call| binary(call, timestamp_scale)),
    ("timestamptz_scale", |call| binary(call, timestamp_scale)),
    ("time_scale", |call| binary(call, |a: i64, b: i32| Ok(time_scale(a, b)))),
    ("timetz_scale", |call| {
        binary(call, |a: TimeTz, b: i32| Ok(TimeTz { micros: time_scale(a.micros, b), ..a }))
    }),
    ("interval_scale", |call| {
        binary(call, |a: Interval, b: i32| interval_scale(a, b, call.settings.major))
    }),
    ("timestamp_zone", |call| {
        let mut zones = ZoneCache::default();
        binary(call, |name: &str, stamp: i64| match Infinity::of_timestamp(stamp) {
            Some(_) => Ok(stamp),
            None => timestamp_to_timestamptz(stamp, &*zones.named(name)?),
        })
    }),
    ("timestamptz_zone", |call| {
        let mut zones = ZoneCache::default();
        binary(call, |name: &str, stamp: i64| match Infinity::of_timestamp(stamp) {
            Some(_) => Ok(stamp),
            None => timestamptz_to_timestamp(stamp, &*zones.named(name)?),
        })
    }),
    ("timetz_zone", |call| {
        let mut zones = ZoneCache::default();
        binary(call, |name: &str, time: TimeTz| timetz_in_zone(call, name, time, &mut zones))
    }),
    ("timestamp_izone", |call| {
        binary(call, |a: Interval, b: i64| shifted_by_interval(a, b, -1, call.settings))
    }),
    ("timestamptz_izone", |call| {
        binary(call, |a: Interval, b: i64| shifted_by_interval(a, b, 1, call.settings))
    }),
    ("timetz_izone", |call| {
        binary(call, |a: Interval, b: TimeTz| {
            Ok(b.in_zone(-interval_offset(a, call.settings)? as i32))
        })
    }),
    ("timestamp_at_local", |call| {
        unary(call, |a: i64| timestamp_to_timestamptz(a, &*call.settings.zone))
    }),
    ("timestamptz_at_local", |call| {
        unary(call, |a: i64| timestamptz_to_timestamp(a, &*call.settings.zone))
    }),
    ("timetz_at_local", |call| {
        let west_s = -offset_at(call.settings.transaction_start, &*call.settings.zone);
        unary(call, |a: TimeTz| Ok(a.in_zone(west_s)))
    }),
];
