//! Comparisons of dates, times, timestamps and intervals, also of different types.
//!
//! A date compares with a timestamp as the midnight that it starts with, and anything compares with a
//! timestamptz by the session's zone.
//!
//! ```text
//!   '2024-01-01'::date < '2024-01-01 00:00:01'::timestamp
//!   '1 mon'::interval  = '30 days'::interval
//! ```
//!
//! Mirrors PostgreSQL's `utils/adt/date.c` and `utils/adt/timestamp.c`.

use std::cmp::Ordering;

use super::super::call::{Call, Kernel};
use super::super::rows::binary;
use super::interval::Interval;
use super::time::TimeTz;
use super::timestamp::{
    compare_converted, date_to_timestamp, date_to_timestamptz, timestamp_to_timestamptz,
};

fn plain<T: Ord>(_: &Call<'_>, a: T, b: T) -> Ordering {
    a.cmp(&b)
}

fn spans(_: &Call<'_>, a: Interval, b: Interval) -> Ordering {
    a.span().cmp(&b.span())
}

fn date_timestamp(_: &Call<'_>, date: i32, stamp: i64) -> Ordering {
    compare_converted(date_to_timestamp(date), date < 0, stamp)
}

fn date_timestamptz(call: &Call<'_>, date: i32, stamp: i64) -> Ordering {
    compare_converted(date_to_timestamptz(date, &*call.settings.zone), date < 0, stamp)
}

fn timestamp_timestamptz(call: &Call<'_>, a: i64, b: i64) -> Ordering {
    compare_converted(timestamp_to_timestamptz(a, &*call.settings.zone), a < 0, b)
}

/// Lists the kernels of pairs of types: `=`, `<>`, `<`, `<=`, `>`, `>=` and the three-way comparison of
/// B-trees. A comparison gets the call and both values.
///
/// Types that are compared with themselves also have the functions for `min` and `max`. If both values
/// are equal, these return the second one, which may differ from the first one if it is an interval.
macro_rules! comparisons {
    ($($a:ty, $b:ty, $compare:expr => $eq:literal $ne:literal $lt:literal $le:literal $gt:literal
        $ge:literal $cmp:literal $($smaller:literal $larger:literal)?;)*) => {
        &[$(
            ($eq, |call| binary(call, |a: $a, b: $b| Ok($compare(call, a, b).is_eq()))),
            ($ne, |call| binary(call, |a: $a, b: $b| Ok($compare(call, a, b).is_ne()))),
            ($lt, |call| binary(call, |a: $a, b: $b| Ok($compare(call, a, b).is_lt()))),
            ($le, |call| binary(call, |a: $a, b: $b| Ok($compare(call, a, b).is_le()))),
            ($gt, |call| binary(call, |a: $a, b: $b| Ok($compare(call, a, b).is_gt()))),
            ($ge, |call| binary(call, |a: $a, b: $b| Ok($compare(call, a, b).is_ge()))),
            ($cmp, |call| binary(call, |a: $a, b: $b| Ok($compare(call, a, b) as i32))),
            $(
                ($smaller, |call| {
                    binary(call, |a: $a, b: $b| {
                        Ok(if $compare(call, a, b).is_lt() { a } else { b })
                    })
                }),
                ($larger, |call| {
                    binary(call, |a: $a, b: $b| {
                        Ok(if $compare(call, a, b).is_gt() { a } else { b })
                    })
                }),
            )?
        )*]
    };
}

/// Comparisons of all pairs of types. The functions for two timestamptz are those for timestamps.
pub(in super::super) const KERNELS: &[(&str, Kernel)] = comparisons! {
    i32, i32, plain => "date_eq" "date_ne" "date_lt" "date_le" "date_gt" "date_ge" "date_cmp"
        "date_smaller" "date_larger";
    i64, i64, plain => "time_eq" "time_ne" "time_lt" "time_le" "time_gt" "time_ge" "time_cmp"
        "time_smaller" "time_larger";
    TimeTz, TimeTz, plain => "timetz_eq" "timetz_ne" "timetz_lt" "timetz_le" "timetz_gt"
        "timetz_ge" "timetz_cmp" "timetz_smaller" "timetz_larger";
    i64, i64, plain => "timestamp_eq" "timestamp_ne" "timestamp_lt" "timestamp_le" "timestamp_gt"
        "timestamp_ge" "timestamp_cmp" "timestamp_smaller" "timestamp_larger";
    Interval, Interval, spans => "interval_eq" "interval_ne" "interval_lt" "interval_le"
        "interval_gt" "interval_ge" "interval_cmp" "interval_smaller" "interval_larger";
    i32, i64, date_timestamp => "date_eq_timestamp" "date_ne_timestamp" "date_lt_timestamp"
        "date_le_timestamp" "date_gt_timestamp" "date_ge_timestamp" "date_cmp_timestamp";
    i64, i32, |call, a, b| date_timestamp(call, b, a).reverse() => "timestamp_eq_date"
        "timestamp_ne_date" "timestamp_lt_date" "timestamp_le_date" "timestamp_gt_date"
        "timestamp_ge_date" "timestamp_cmp_date";
    i32, i64, date_timestamptz => "date_eq_timestamptz" "date_ne_timestamptz"
        "date_lt_timestamptz" "date_le_timestamptz" "date_gt_timestamptz" "date_ge_timestamptz"
        "date_cmp_timestamptz";
    i64, i32, |call, a, b| date_timestamptz(call, b, a).reverse() => "timestamptz_eq_date"
        "timestamptz_ne_date" "timestamptz_lt_date" "timestamptz_le_date" "timestamptz_gt_date"
        "timestamptz_ge_date" "timestamptz_cmp_date";
    i64, i64, timestamp_timestamptz => "timestamp_eq_timestamptz" "timestamp_ne_timestamptz"
        "timestamp_lt_timestamptz" "timestamp_le_timestamptz" "timestamp_gt_timestamptz"
        "timestamp_ge_timestamptz" "timestamp_cmp_timestamptz";
    i64, i64, |call, a, b| timestamp_timestamptz(call, b, a).reverse() =>
        "timestamptz_eq_timestamp" "timestamptz_ne_timestamp" "timestamptz_lt_timestamp"
        "timestamptz_le_timestamp" "timestamptz_gt_timestamp" "timestamptz_ge_timestamp"
        "timestamptz_cmp_timestamp";
};
