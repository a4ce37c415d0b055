//! `in_range`: whether a value is within an offset of another one, for window frames in `RANGE` mode.
//!
//! A frame `RANGE BETWEEN '1 month' PRECEDING AND …` starts with the first row for which
//! `in_range(value, current, '1 month', true, false)` holds: its value is not less than the current
//! one minus the offset.
//!
//! Mirrors the functions `in_range_…` of PostgreSQL's `utils/adt/timestamp.c` and `utils/adt/date.c`.

use std::cmp::Ordering;

use arrow_array::ArrayRef;
use trunkline_format::text_output::TimeZone;

use super::super::call::{Call, Kernel};
use super::super::rows::{Input, Reader, each_row};
use super::interval::{Infinity, Interval};
use super::time::TimeTz;
use super::timestamp::{NO_ZONE, date_to_timestamp, minus_interval, plus_interval};
use crate::error::{SqlError, SqlState};

/// The first version that checks whether a timetz and an offset overflow.
const OVERFLOW_SEEN_SINCE: u32 = 18;

/// The arguments of one row.
struct Row<T> {
    value: T,
    base: T,
    offset: Interval,
    /// Whether the offset is subtracted.
    subtract: bool,
    /// Whether the value must be at most the result, rather than at least.
    less: bool,
}

/// Evaluates `in_range` for every row without nulls.
fn rows<'a, T: Input<'a>>(
    call: &'a Call<'_>,
    mut compute: impl FnMut(Row<T>) -> Result<bool, SqlError>,
) -> Result<ArrayRef, SqlError> {
    let (value, base) = (Reader::<T>::new(call, 0)?, Reader::<T>::new(call, 1)?);
    let offset = Reader::<Interval>::new(call, 2)?;
    let (subtract, less) = (Reader::<bool>::new(call, 3)?, Reader::<bool>::new(call, 4)?);
    each_row(call.rows, |row| {
        let arguments = || {
            Some(Row {
                value: value.get(row)?,
                base: base.get(row)?,
                offset: offset.get(row)?,
                subtract: subtract.get(row)?,
                less: less.get(row)?,
            })
        };
        arguments().map(&mut compute).transpose()
    })
}

fn negative_offset() -> SqlError {
    let message = "invalid preceding or following size in window function";
    SqlError::new(SqlState::INVALID_PRECEDING_OR_FOLLOWING_SIZE, message)
}

/// Checks the offset. Returns `true` if base and offset are infinities of which the sum is undefined:
/// all values are then in range.
fn check<T>(row: &Row<T>, base: Option<Infinity>, major: u32) -> Result<bool, SqlError> {
    if row.offset.span() < 0 {
        return Err(negative_offset());
    }
    let opposite = if row.subtract { Infinity::Plus } else { Infinity::Minus };
    Ok(row.offset.infinity(major) == Some(Infinity::Plus) && base == Some(opposite))
}

fn timestamps(row: &Row<i64>, zone: &dyn TimeZone, major: u32) -> Result<bool, SqlError> {
    if check(row, Infinity::of_timestamp(row.base), major)? {
        return Ok(true);
    }
    let compute = if row.subtract { minus_interval } else { plus_interval };
    let bound = compute(row.base, row.offset, zone, major)?;
    Ok(if row.less { row.value <= bound } else { row.value >= bound })
}

fn intervals(row: &Row<Interval>, major: u32) -> Result<bool, SqlError> {
    if check(row, row.base.infinity(major), major)? {
        return Ok(true);
    }
    let bound = match row.subtract {
        true => row.base.minus(row.offset, major)?,
        false => row.base.plus(row.offset, major)?,
    };
    let (value, bound) = (row.value.span(), bound.span());
    Ok(if row.less { value <= bound } else { value >= bound })
}

/// Times don't go round here, unlike those of the operators. A sum that overflows is larger than all
/// times, or it wraps if `wraps`.
fn times(row: &Row<i64>, wraps: bool, compare: impl Fn(i64) -> Ordering) -> Result<bool, SqlError> {
    // Days and months of the offset don't count.
    if row.offset.micros < 0 {
        return Err(negative_offset());
    }
    let bound = match row.subtract {
        true => row.base.wrapping_sub(row.offset.micros),
        false if wraps => row.base.wrapping_add(row.offset.micros),
        false => match row.base.checked_add(row.offset.micros) {
            Some(bound) => bound,
            None => return Ok(row.less),
        },
    };
    let order = compare(bound);
    Ok(if row.less { order.is_le() } else { order.is_ge() })
}

/// `in_range` of all types.
pub(in super::super) const KERNELS: &[(&str, Kernel)] = &[
    ("in_range_date_interval", |call| {
        rows(call, |row: Row<i32>| {
            let Row { value, base, offset, subtract, less } = row;
            let (value, base) = (date_to_timestamp(value)?, date_to_timestamp(base)?);
            let row = Row { value, base, offset, subtract, less };
            timestamps(&row, NO_ZONE, call.settings.major)
        })
    }),
    ("in_range_timestamp_interval", |call| {
        rows(call, |row| timestamps(&row, NO_ZONE, call.settings.major))
    }),
    ("in_range_timestamptz_interval", |call| {
        rows(call, |row| timestamps(&row, &*call.settings.zone, call.settings.major))
    }),
    ("in_range_interval_interval", |call| rows(call, |row| intervals(&row, call.settings.major))),
    ("in_range_time_interval", |call| {
        rows(call, |row: Row<i64>| times(&row, false, |bound| row.value.cmp(&bound)))
    }),
    ("in_range_timetz_interval", |call| {
        rows(call, |row: Row<TimeTz>| {
            let Row { value, base, offset, subtract, less } = row;
            let west_s = base.west_s;
            let (time, base) = (value.micros, base.micros);
            let row = Row { value: time, base, offset, subtract, less };
            let wraps = call.settings.major < OVERFLOW_SEEN_SINCE;
            times(&row, wraps, |micros| value.cmp(&TimeTz { micros, west_s }))
        })
    }),
];
