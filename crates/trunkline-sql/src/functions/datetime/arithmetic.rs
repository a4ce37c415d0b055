//! Operators on dates, times, timestamps and intervals: `+`, `-`, `*`, `/`, and `age`, `justify_…`,
//! `isfinite`.
//!
//! ```text
//!   '2024-01-31'::date + 1                    date_pli           2024-02-01
//!   '2024-01-31'::date + '1 mon'              date_pl_interval   2024-02-29 00:00:00
//!   age('2024-03-01', '2024-01-31')           timestamp_age      1 mon 1 day
//! ```
//!
//! Mirrors PostgreSQL's `utils/adt/date.c` and `utils/adt/timestamp.c`.

use arrow_array::ArrayRef;
use trunkline_format::calendar::DAY_US;
use trunkline_format::text_output::TimeZone;

use super::super::call::{Call, Kernel};
use super::super::rows::{binary, ternary, unary};
use super::error::{date_out_of_range_for_timestamp, overflow};
use super::interval::{Infinity, Interval};
use super::time::{TimeTz, time_minus, time_plus};
use super::timestamp::{
    NO_ZONE, age, at_time, date_in_range, date_to_timestamp, difference, in_range, minus_interval,
    plus_interval,
};
use super::zone::ZoneCache;
use crate::error::SqlError;

fn major(call: &Call<'_>) -> u32 {
    call.settings.major
}

/// `date + int4`.
pub(super) fn date_plus(date: i32, days: i64) -> Result<i32, SqlError> {
    if Infinity::of_date(date).is_some() {
        return Ok(date);
    }
    date_in_range(i64::from(date) + days)
}

/// `date - date`, in days.
fn date_difference(a: i32, b: i32) -> Result<i32, SqlError> {
    if Infinity::of_date(a).or(Infinity::of_date(b)).is_some() {
        return Err(overflow("cannot subtract infinite dates"));
    }
    Ok(a.wrapping_sub(b))
}

/// `date + time`.
pub(super) fn date_at(date: i32, time: i64) -> Result<i64, SqlError> {
    match Infinity::of_date(date) {
        Some(end) => Ok(end.timestamp()),
        None => at_time(date_to_timestamp(date)?.div_euclid(DAY_US), time).and_then(in_range),
    }
}

/// `date + timetz`.
pub(super) fn date_at_timetz(date: i32, time: TimeTz) -> Result<i64, SqlError> {
    match Infinity::of_date(date) {
        Some(end) => Ok(end.timestamp()),
        None => {
            let midnight = date_to_timestamp(date)?;
            in_range(midnight + time.utc()).map_err(|_| date_out_of_range_for_timestamp())
        }
    }
}

fn timestamptz_plus_at_zone(
    call: &Call<'_>,
    compute: fn(i64, Interval, &dyn TimeZone, u32) -> Result<i64, SqlError>,
) -> Result<ArrayRef, SqlError> {
    let mut zones = ZoneCache::default();
    ternary(call, |stamp: i64, span: Interval, zone: &str| {
        compute(stamp, span, &*zones.named(zone)?, major(call))
    })
}

/// Operators on dates and times of day.
pub(in super::super) const KERNELS: &[(&str, Kernel)] = &[
    ("date_pli", |call| binary(call, |a: i32, b: i32| date_plus(a, i64::from(b)))),
    ("date_mii", |call| binary(call, |a: i32, b: i32| date_plus(a, -i64::from(b)))),
    ("date_mi", |call| binary(call, date_difference)),
    ("date_pl_interval", |call| {
        binary(call, |a: i32, b: Interval| {
            plus_interval(date_to_timestamp(a)?, b, NO_ZONE, major(call))
        })
    }),
    ("date_mi_interval", |call| {
        binary(call, |a: i32, b: Interval| {
            minus_interval(date_to_timestamp(a)?, b, NO_ZONE, major(call))
        })
    }),
    ("datetime_timestamp", |call| binary(call, date_at)),
    ("datetimetz_timestamptz", |call| binary(call, date_at_timetz)),
    ("date_finite", |call| unary(call, |a: i32| Ok(Infinity::of_date(a).is_none()))),
    ("time_pl_interval", |call| binary(call, |a: i64, b: Interval| time_plus(a, b, major(call)))),
    ("time_mi_interval", |call| binary(call, |a: i64, b: Interval| time_minus(a, b, major(call)))),
    ("time_mi_time", |call| {
        binary(call, |a: i64, b: i64| Ok(Interval { micros: a - b, ..Interval::default() }))
    }),
    ("timetz_pl_interval", |call| {
        binary(call, |a: TimeTz, b: Interval| {
            Ok(TimeTz { micros: time_plus(a.micros, b, major(call))?, ..a })
        })
    }),
    ("timetz_mi_interval", |call| {
        binary(call, |a: TimeTz, b: Interval| {
            Ok(TimeTz { micros: time_minus(a.micros, b, major(call))?, ..a })
        })
    }),
    ("timestamp_pl_interval", |call| {
        binary(call, |a: i64, b: Interval| plus_interval(a, b, NO_ZONE, major(call)))
    }),
    ("timestamp_mi_interval", |call| {
        binary(call, |a: i64, b: Interval| minus_interval(a, b, NO_ZONE, major(call)))
    }),
    ("timestamptz_pl_interval", |call| {
        let zone = &*call.settings.zone;
        binary(call, |a: i64, b: Interval| plus_interval(a, b, zone, major(call)))
    }),
    ("timestamptz_mi_interval", |call| {
        let zone = &*call.settings.zone;
        binary(call, |a: i64, b: Interval| minus_interval(a, b, zone, major(call)))
    }),
    ("timestamptz_pl_interval_at_zone", |call| timestamptz_plus_at_zone(call, plus_interval)),
    ("timestamptz_mi_interval_at_zone", |call| timestamptz_plus_at_zone(call, minus_interval)),
    ("timestamp_mi", |call| binary(call, |a: i64, b: i64| difference(a, b, major(call)))),
    ("timestamp_age", |call| binary(call, |a: i64, b: i64| age(a, b, NO_ZONE, major(call)))),
    ("timestamptz_age", |call| {
        binary(call, |a: i64, b: i64| age(a, b, &*call.settings.zone, major(call)))
    }),
    ("timestamp_finite", |call| unary(call, |a: i64| Ok(Infinity::of_timestamp(a).is_none()))),
    ("interval_pl", |call| binary(call, |a: Interval, b: Interval| a.plus(b, major(call)))),
    ("interval_mi", |call| binary(call, |a: Interval, b: Interval| a.minus(b, major(call)))),
    ("interval_um", |call| unary(call, |a: Interval| a.negated(major(call)))),
    ("interval_mul", |call| binary(call, |a: Interval, b: f64| a.times(b, major(call)))),
    ("mul_d_interval", |call| binary(call, |a: f64, b: Interval| b.times(a, major(call)))),
    ("interval_div", |call| binary(call, |a: Interval, b: f64| a.divided_by(b, major(call)))),
    ("interval_justify_hours", |call| unary(call, |a: Interval| a.justify_hours(major(call)))),
    ("interval_justify_days", |call| unary(call, |a: Interval| a.justify_days(major(call)))),
    ("interval_justify_interval", |call| unary(call, |a: Interval| a.justify(major(call)))),
    ("interval_finite", |call| unary(call, |a: Interval| Ok(a.infinity(major(call)).is_none()))),
];
