//! `(start, end) OVERLAPS (start, end)`, whose arguments may be null.
//!
//! ```text
//!   (2024-01-01, 2024-02-01) OVERLAPS (2024-01-31, null)    true: they share a day, whatever null is
//!   (2024-01-01, 2024-02-01) OVERLAPS (2024-02-01, null)    null
//! ```
//!
//! The end belongs to neither period. Start and end may be exchanged, and an end can be given as an
//! interval that is added to the start.
//!
//! Mirrors `overlaps_timestamp` of PostgreSQL's `utils/adt/timestamp.c`.

use arrow_array::ArrayRef;

use super::super::call::{Call, Kernel};
use super::super::rows::{Input, Reader, each_row};
use super::interval::Interval;
use super::time::{TimeTz, time_plus};
use super::timestamp::{NO_ZONE, plus_interval};
use crate::error::SqlError;

/// A period with the smaller end first; if one end is null, it is the second one. `None` if both are.
fn ordered<T: Ord + Copy>(a: Option<T>, b: Option<T>) -> Option<(T, Option<T>)> {
    match (a, b) {
        (Some(a), Some(b)) => Some((a.min(b), Some(a.max(b)))),
        (Some(a), None) | (None, Some(a)) => Some((a, None)),
        (None, None) => None,
    }
}

/// Three-valued: `None` if nulls decide.
fn overlap<T: Ord + Copy>(a: (T, Option<T>), b: (T, Option<T>)) -> Option<bool> {
    let ((first, first_end), (second, second_end)) = if a.0 <= b.0 { (a, b) } else { (b, a) };
    if first == second {
        return first_end.and(second_end).map(|_| true);
    }
    // The later period starts within the earlier one, or they don't overlap.
    match first_end? > second {
        true => Some(true),
        false => second_end.map(|_| false),
    }
}

fn rows<'a, T: Input<'a> + Ord + Copy>(call: &'a Call<'_>) -> Result<ArrayRef, SqlError> {
    let end = |at| Reader::<T>::new(call, at);
    let ends = [end(0)?, end(1)?, end(2)?, end(3)?];
    each_row(call.rows, |row| {
        let [a, b, c, d] = ends.each_ref().map(|end| end.get(row));
        let periods = ordered(a, b).zip(ordered(c, d));
        Ok(periods.and_then(|(first, second)| overlap(first, second)))
    })
}

/// The end of a period: a value, or an interval after the start.
enum End<'a> {
    Value(Reader<'a, i64>),
    Length(Reader<'a, Interval>),
}

/// Which ends are intervals.
#[derive(Clone, Copy)]
enum Lengths {
    First,
    Second,
    Both,
}

/// Periods of which at least one is given by its start and its length.
fn with_lengths(
    call: &Call<'_>,
    lengths: Lengths,
    plus: impl Fn(i64, Interval) -> Result<i64, SqlError>,
) -> Result<ArrayRef, SqlError> {
    let end = |at: usize, is_length: bool| -> Result<_, SqlError> {
        Ok(match is_length {
            true => End::Length(Reader::new(call, at)?),
            false => End::Value(Reader::new(call, at)?),
        })
    };
    let starts = [Reader::<i64>::new(call, 0)?, Reader::<i64>::new(call, 2)?];
    let ends =
        [end(1, !matches!(lengths, Lengths::Second))?, end(3, !matches!(lengths, Lengths::First))?];
    let period = |start: &Reader<'_, i64>, end: &End<'_>, row: usize| {
        let start = start.get(row);
        let end = match end {
            End::Value(end) => end.get(row),
            End::Length(length) => {
                start.zip(length.get(row)).map(|(start, length)| plus(start, length)).transpose()?
            }
        };
        Ok::<_, SqlError>(ordered(start, end))
    };
    each_row(call.rows, |row| {
        let first = period(&starts[0], &ends[0], row)?;
        let second = period(&starts[1], &ends[1], row)?;
        Ok(first.zip(second).and_then(|(first, second)| overlap(first, second)))
    })
}

fn timestamps(call: &Call<'_>, lengths: Lengths) -> Result<ArrayRef, SqlError> {
    let major = call.settings.major;
    with_lengths(call, lengths, |start, length| plus_interval(start, length, NO_ZONE, major))
}

fn timestamptz(call: &Call<'_>, lengths: Lengths) -> Result<ArrayRef, SqlError> {
    let (zone, major) = (&*call.settings.zone, call.settings.major);
    with_lengths(call, lengths, |start, length| plus_interval(start, length, zone, major))
}

fn times(call: &Call<'_>, lengths: Lengths) -> Result<ArrayRef, SqlError> {
    with_lengths(call, lengths, |start, length| time_plus(start, length, call.settings.major))
}

/// `OVERLAPS` of all types. Those with intervals are functions in SQL.
pub(in super::super) const KERNELS: &[(&str, Kernel)] = &[
    ("overlaps_timestamp", |call| rows::<i64>(call)),
    ("overlaps_time", |call| rows::<i64>(call)),
    ("overlaps_timetz", |call| rows::<TimeTz>(call)),
    ("overlaps(timestamp,interval,timestamp,timestamp)", |call| timestamps(call, Lengths::First)),
    ("overlaps(timestamp,timestamp,timestamp,interval)", |call| timestamps(call, Lengths::Second)),
    ("overlaps(timestamp,interval,timestamp,interval)", |call| timestamps(call, Lengths::Both)),
    ("overlaps(timestamptz,interval,timestamptz,timestamptz)", |call| {
        timestamptz(call, Lengths::First)
    }),
    ("overlaps(timestamptz,timestamptz,timestamptz,interval)", |call| {
        timestamptz(call, Lengths::Second)
    }),
    ("overlaps(timestamptz,interval,timestamptz,interval)", |call| {
        timestamptz(call, Lengths::Both)
    }),
    ("overlaps(time,interval,time,time)", |call| times(call, Lengths::First)),
    ("overlaps(time,time,time,interval)", |call| times(call, Lengths::Second)),
    ("overlaps(time,interval,time,interval)", |call| times(call, Lengths::Both)),
];
