//! `make_date`, `make_time`, `make_timestamp`, `make_timestamptz`, `make_interval`, and
//! `to_timestamp` of seconds.
//!
//! ```text
//!   make_date(-44, 3, 15)            0044-03-15 BC
//!   make_interval(weeks => 1)        7 days
//!   to_timestamp(0.5)                1970-01-01 00:00:00.5 UTC
//! ```
//!
//! Mirrors PostgreSQL's `utils/adt/date.c` and `utils/adt/timestamp.c`.

use arrow_array::ArrayRef;
use trunkline_format::calendar::{
    DAY_US, FIRST_TIMESTAMP, TIMESTAMP_END, UNIX_TO_2000_S, days, days_of_month,
};

use super::super::call::{Call, Kernel};
use super::super::rows::{Reader, each_row, ternary, unary};
use super::error::{interval_out_of_range, invalid, overflow, timestamp_out_of_range};
use super::general_format::general;
use super::interval::{INFINITE_SINCE, Interval, to_i64};
use super::timestamp::{
    SECOND_US, at_time, date_in_range, in_range, shifted, timestamp_to_timestamptz, unix_s,
};
use super::zone::{ZoneCache, numeric_offset};
use crate::error::SqlError;

/// Year, month and day as they were given; a negative year is BC.
type Date = (i32, i32, i32);

/// `%d-%02d-%02d`.
fn date_text((year, month, day): Date) -> String {
    format!("{year}-{month:02}-{day:02}")
}

/// The year, in which 0 is 1 BC, the month and the day number of a date.
///
/// # Errors
/// 22008: there is no such date. The message has the date `shown`.
fn day((year, month, day): Date, shown: Date) -> Result<(i64, u32, i64), SqlError> {
    let invalid = || overflow(format!("date field value out of range: {}", date_text(shown)));
    let year = match year {
        0 | i32::MIN => return Err(invalid()),
        // The year before 1 is -1, which is 0 in the calendar.
        _ if year < 0 => i64::from(year) + 1,
        _ => i64::from(year),
    };
    let month = u32::try_from(month).ok().filter(|month| (1..=12).contains(month));
    let month = month.ok_or_else(invalid)?;
    let in_month = 1..=days_of_month(year, month);
    let day = u32::try_from(day).ok().filter(|day| in_month.contains(day)).ok_or_else(invalid)?;
    Ok((year, month, days(year, month, day)))
}

/// `IS_VALID_JULIAN`: whether the server can compute the Julian day of dates in a month.
fn has_julian_day(year: i64, month: u32) -> bool {
    ((-4713, 11)..(5_874_898, 6)).contains(&(year, month))
}

fn make_date(year: i32, month: i32, day_of_month: i32) -> Result<i32, SqlError> {
    // The message of the server has the year as in the calendar, where 0 is 1 BC.
    let is_bc = year < 0 && year > i32::MIN;
    let shown = (if is_bc { year + 1 } else { year }, month, day_of_month);
    let (_, _, day) = day((year, month, day_of_month), shown)?;
    let text = |_| overflow(format!("date out of range: {}", date_text(shown)));
    date_in_range(day).map_err(text)
}

/// Microseconds of a time of day.
///
/// # Errors
/// 22008: there is no such time.
fn make_time(hour: i32, minute: i32, second: f64) -> Result<i64, SqlError> {
    let fail =
        || overflow(format!("time field value out of range: {}", time_text(hour, minute, second)));
    let in_range =
        (0..=24).contains(&hour) && (0..60).contains(&minute) && (0.0..=60.0).contains(&second);
    if !in_range {
        return Err(fail());
    }
    let micros = (second * 1e6).round_ties_even() as i64;
    let micros = (i64::from(hour) * 60 + i64::from(minute)) * 60 * SECOND_US + micros;
    if micros > DAY_US { Err(fail()) } else { Ok(micros) }
}

/// `%d:%02d:%02g`.
fn time_text(hour: i32, minute: i32, second: f64) -> String {
    format!("{hour}:{minute:02}:{:0>2}", general(second))
}

/// The six numeric arguments of `make_timestamp`.
struct Fields<'a> {
    whole: [Reader<'a, i32>; 5],
    second: Reader<'a, f64>,
}

impl<'a> Fields<'a> {
    fn new(call: &'a Call<'_>) -> Result<Self, SqlError> {
        let number = |at| Reader::<i32>::new(call, at);
        let whole = [number(0)?, number(1)?, number(2)?, number(3)?, number(4)?];
        Ok(Self { whole, second: Reader::new(call, 5)? })
    }

    fn timestamp(&self, row: usize) -> Result<Option<i64>, SqlError> {
        let [year, month, day_of_month, hour, minute] = &self.whole;
        let (Some(year), Some(month), Some(day_of_month)) =
            (year.get(row), month.get(row), day_of_month.get(row))
        else {
            return Ok(None);
        };
        let (Some(hour), Some(minute), Some(second)) =
            (hour.get(row), minute.get(row), self.second.get(row))
        else {
            return Ok(None);
        };
        let date = (year, month, day_of_month);
        let (astronomical, in_year, day) = day(date, date)?;
        if !has_julian_day(astronomical, in_year) {
            return Err(overflow(format!("date out of range: {}", date_text(date))));
        }
        let time = make_time(hour, minute, second)?;
        let stamp = at_time(day, time).and_then(in_range).map_err(|_| {
            let time = time_text(hour, minute, second);
            overflow(format!("timestamp out of range: {} {time}", date_text(date)))
        })?;
        Ok(Some(stamp))
    }
}

fn make_timestamp(
    call: &Call<'_>,
    mut finish: impl FnMut(usize, i64) -> Result<Option<i64>, SqlError>,
) -> Result<ArrayRef, SqlError> {
    let fields = Fields::new(call)?;
    each_row(call.rows, |row| match fields.timestamp(row)? {
        Some(stamp) => finish(row, stamp),
        None => Ok(None),
    })
}

/// The local time in a zone that is an offset such as `+02` or a name.
fn at_zone(stamp: i64, name: &str, zones: &mut ZoneCache) -> Result<i64, SqlError> {
    if name.starts_with(|c: char| c.is_ascii_digit()) {
        let what = format!("invalid input syntax for type numeric time zone: \"{name}\"");
        let hint = "Numeric time zones must have \"-\" or \"+\" as first character.";
        return Err(invalid(what).with_hint(hint));
    }
    let east_s = match numeric_offset(name)? {
        Some(east_s) => east_s,
        None => zones.named(name)?.local_offset_s(unix_s(stamp)),
    };
    in_range(shifted(stamp, -east_s))
}

fn make_timestamp_at_zone(call: &Call<'_>) -> Result<ArrayRef, SqlError> {
    let zone = Reader::<&str>::new(call, 6)?;
    let mut zones = ZoneCache::default();
    // The zone is null in strict calls only if the result is.
    make_timestamp(call, |row, stamp| {
        zone.get(row).map(|name| at_zone(stamp, name, &mut zones)).transpose()
    })
}

/// `make_interval`. Versions before 17 ignore overflows.
fn make_interval(fields: [i32; 6], seconds: f64, major: u32) -> Result<Interval, SqlError> {
    let [years, months, weeks, days, hours, minutes] = fields;
    if !seconds.is_finite() {
        return Err(interval_out_of_range());
    }
    let micros = (seconds * 1e6).round_ties_even();
    let clock = i64::from(hours) * 3600 * SECOND_US + i64::from(minutes) * 60 * SECOND_US;
    if major < INFINITE_SINCE {
        return Ok(Interval {
            months: years.wrapping_mul(12).wrapping_add(months),
            days: weeks.wrapping_mul(7).wrapping_add(days),
            // What the processor makes of a number that doesn't fit.
            micros: clock.wrapping_add(to_i64(micros).unwrap_or(i64::MIN)),
        });
    }
    if micros.is_infinite() {
        return Err(overflow_of_float());
    }
    let result = || {
        Some(Interval {
            months: years.checked_mul(12)?.checked_add(months)?,
            days: weeks.checked_mul(7)?.checked_add(days)?,
            micros: clock.checked_add(to_i64(micros)?)?,
        })
    };
    result().filter(|span| span.infinity(major).is_none()).ok_or_else(interval_out_of_range)
}

/// 22003: what a multiplication of floats raises.
fn overflow_of_float() -> SqlError {
    let code = crate::error::SqlState::NUMERIC_VALUE_OUT_OF_RANGE;
    SqlError::new(code, "value out of range: overflow")
}

fn make_intervals(call: &Call<'_>) -> Result<ArrayRef, SqlError> {
    let number = |at| Reader::<i32>::new(call, at);
    let fields = [number(0)?, number(1)?, number(2)?, number(3)?, number(4)?, number(5)?];
    let seconds = Reader::<f64>::new(call, 6)?;
    each_row(call.rows, |row| {
        let [a, b, c, d, e, f] = fields.each_ref().map(|field| field.get(row));
        let all = || Some(([a?, b?, c?, d?, e?, f?], seconds.get(row)?));
        all().map(|(whole, seconds)| make_interval(whole, seconds, call.settings.major)).transpose()
    })
}

/// `to_timestamp(float8)`: seconds since 1970.
fn from_unix(seconds: f64) -> Result<i64, SqlError> {
    if seconds.is_nan() {
        return Err(overflow("timestamp cannot be NaN"));
    }
    if seconds.is_infinite() {
        return Ok(if seconds < 0.0 { i64::MIN } else { i64::MAX });
    }
    let fail = || overflow(format!("timestamp out of range: \"{}\"", general(seconds)));
    let first = FIRST_TIMESTAMP / SECOND_US + UNIX_TO_2000_S;
    let end = TIMESTAMP_END / SECOND_US + UNIX_TO_2000_S;
    if !(first as f64..end as f64).contains(&seconds) {
        return Err(fail());
    }
    let micros = ((seconds - UNIX_TO_2000_S as f64) * 1e6).round_ties_even();
    // Rounding may have reached the end of the range.
    to_i64(micros).ok_or_else(timestamp_out_of_range).and_then(in_range).map_err(|_| fail())
}

/// Functions that make values of numbers.
pub(in super::super) const KERNELS: &[(&str, Kernel)] = &[
    ("make_date", |call| ternary(call, make_date)),
    ("make_time", |call| ternary(call, make_time)),
    ("make_timestamp", |call| make_timestamp(call, |_, stamp| Ok(Some(stamp)))),
    ("make_timestamptz", |call| {
        make_timestamp(call, |_, stamp| {
            timestamp_to_timestamptz(stamp, &*call.settings.zone).map(Some)
        })
    }),
    ("make_timestamptz_at_timezone", make_timestamp_at_zone),
    ("make_interval", make_intervals),
    ("float8_timestamptz", |call| unary(call, from_unix)),
];
