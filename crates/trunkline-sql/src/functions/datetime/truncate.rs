//! `date_trunc`, which sets smaller fields to their first value, and `date_bin`, which rounds down to
//! multiples of an interval.
//!
//! ```text
//!   date_trunc('month', '2024-02-29 12:34')                          2024-02-01 00:00:00
//!   date_trunc('day', timestamptz, 'Europe/Berlin')                  midnight in Berlin
//!   date_bin('15 minutes', '2024-02-29 12:34', '2001-01-01')         2024-02-29 12:30:00
//! ```
//!
//! Mirrors `timestamp_trunc`, `interval_trunc` and `timestamp_bin` of PostgreSQL's
//! `utils/adt/timestamp.c`.

use trunkline_format::calendar::{DAY_US, civil, days, weekday};
use trunkline_format::text_output::TimeZone;

use super::super::call::Kernel;
use super::super::rows::{binary, ternary};
use super::error::{interval_out_of_range, overflow};
use super::interval::{Infinity, Interval};
use super::timestamp::{
    NO_ZONE, SECOND_US, at_time, in_range, offset_at, shifted, timestamp_to_timestamptz,
};
use super::units::{Unit, interval_unit, recognize, unsupported};
use super::zone::ZoneCache;
use crate::error::SqlError;

/// The microseconds to which a unit below a day truncates.
fn clock_unit(unit: Unit) -> Option<i64> {
    Some(match unit {
        Unit::Microsecond => 1,
        Unit::Millisecond => 1000,
        Unit::Second => SECOND_US,
        Unit::Minute => 60 * SECOND_US,
        Unit::Hour => 3600 * SECOND_US,
        _ => return None,
    })
}

/// The first year of a decade, century or millennium. There is no year 0, so centuries start with the
/// years 1, 101 and -100.
fn first_year(unit: Unit, year: i64) -> i64 {
    let of_period = |years: i64| match year > 0 {
        true => (year + years - 1) / years * years - years + 1,
        false => -((years - year) / years) * years + 1,
    };
    match unit {
        Unit::Millennium => of_period(1000),
        Unit::Century => of_period(100),
        Unit::Decade => year.div_euclid(10) * 10,
        _ => year,
    }
}

/// The first day of the unit that a date is in.
fn first_day(unit: Unit, date: i64) -> Option<i64> {
    let (year, month, _) = civil(date);
    Some(match unit {
        Unit::Day => date,
        Unit::Week => date - i64::from(weekday(date - 1)),
        Unit::Month => days(year, month, 1),
        Unit::Quarter => days(year, (month - 1) / 3 * 3 + 1, 1),
        Unit::Year | Unit::Decade | Unit::Century | Unit::Millennium => {
            days(first_year(unit, year), 1, 1)
        }
        _ => return None,
    })
}

/// The first version that checks the unit of infinite values, too.
const UNITS_CHECKED_SINCE: u32 = 18;

/// Whether a timestamp is returned before the unit and the zone are looked at.
fn is_unchecked(stamp: i64, major: u32) -> bool {
    Infinity::of_timestamp(stamp).is_some() && major < UNITS_CHECKED_SINCE
}

/// Truncates a timestamp in a zone.
///
/// # Errors
/// 22023, 0A000: the type has no such unit. 22008: the result is out of range.
fn truncate(
    name: &str,
    stamp: i64,
    zone: &dyn TimeZone,
    type_name: &str,
    major: u32,
) -> Result<i64, SqlError> {
    let is_infinite = Infinity::of_timestamp(stamp).is_some();
    if is_unchecked(stamp, major) {
        return Ok(stamp);
    }
    let unit = recognize(name, interval_unit, type_name)?;
    if let Some(micros) = clock_unit(unit) {
        if is_infinite {
            return Ok(stamp);
        }
        let offset = offset_at(stamp, zone);
        let local = shifted(stamp, offset);
        return in_range(shifted(local - local.rem_euclid(micros), -offset));
    }
    let local = match is_infinite {
        true => 0,
        false => shifted(stamp, offset_at(stamp, zone)),
    };
    match first_day(unit, local.div_euclid(DAY_US)) {
        None => Err(unsupported(name, type_name)),
        Some(_) if is_infinite => Ok(stamp),
        Some(day) => timestamp_to_timestamptz(at_time(day, 0)?, zone),
    }
}

/// Truncates an interval.
///
/// # Errors
/// 22023, 0A000: the type has no such unit.
fn truncate_interval(name: &str, span: Interval, major: u32) -> Result<Interval, SqlError> {
    if span.infinity(major).is_some() && major < UNITS_CHECKED_SINCE {
        return Ok(span);
    }
    let unit = recognize(name, interval_unit, "interval")?;
    let truncated = if let Some(micros) = clock_unit(unit) {
        Interval { micros: span.micros - span.micros % micros, ..span }
    } else if unit == Unit::Day {
        Interval { micros: 0, ..span }
    } else {
        let months = match unit {
            Unit::Month => 1,
            Unit::Quarter => 3,
            Unit::Year => 12,
            Unit::Decade => 120,
            Unit::Century => 1200,
            Unit::Millennium => 12_000,
            Unit::Week => {
                let detail = "Months usually have fractional weeks.";
                return Err(unsupported(name, "interval").with_detail(detail));
            }
            _ => return Err(unsupported(name, "interval")),
        };
        Interval { months: span.months - span.months % months, days: 0, micros: 0 }
    };
    Ok(if span.infinity(major).is_some() { span } else { truncated })
}

/// Rounds a timestamp down to `origin` plus a multiple of `stride`.
///
/// # Errors
/// 22008: the origin or the stride is infinite, the stride is not positive, or the result is out of
/// range. 0A000: the stride has months.
fn bin(stride: Interval, stamp: i64, origin: i64, major: u32) -> Result<i64, SqlError> {
    if Infinity::of_timestamp(stamp).is_some() {
        return Ok(stamp);
    }
    if Infinity::of_timestamp(origin).is_some() {
        return Err(overflow("origin out of range"));
    }
    if stride.infinity(major).is_some() {
        return Err(overflow("timestamps cannot be binned into infinite intervals"));
    }
    if stride.months != 0 {
        return Err(SqlError::unsupported(
            "timestamps cannot be binned into intervals containing months or years",
        ));
    }
    let micros = i64::from(stride.days).checked_mul(DAY_US);
    let micros = micros.and_then(|days| days.checked_add(stride.micros));
    let micros = micros.ok_or_else(interval_out_of_range)?;
    if micros <= 0 {
        return Err(overflow("stride must be greater than zero"));
    }
    let difference = stamp.checked_sub(origin).ok_or_else(interval_out_of_range)?;
    let down = difference.rem_euclid(micros);
    in_range(stamp.wrapping_sub(down))
}

/// `date_trunc` and `date_bin` of all types.
pub(in super::super) const KERNELS: &[(&str, Kernel)] = &[
    ("timestamp_trunc", |call| {
        binary(call, |name: &str, stamp: i64| {
            truncate(name, stamp, NO_ZONE, "timestamp without time zone", call.settings.major)
        })
    }),
    ("timestamptz_trunc", |call| {
        binary(call, |name: &str, stamp: i64| {
            let settings = call.settings;
            truncate(name, stamp, &*settings.zone, "timestamp with time zone", settings.major)
        })
    }),
    ("timestamptz_trunc_zone", |call| {
        let mut zones = ZoneCache::default();
        ternary(call, |name: &str, stamp: i64, zone: &str| {
            if is_unchecked(stamp, call.settings.major) {
                return Ok(stamp);
            }
            let zone = zones.named(zone)?;
            truncate(name, stamp, &*zone, "timestamp with time zone", call.settings.major)
        })
    }),
    ("interval_trunc", |call| {
        binary(call, |name: &str, span: Interval| {
            truncate_interval(name, span, call.settings.major)
        })
    }),
    ("timestamp_bin", |call| {
        ternary(call, |stride: Interval, stamp: i64, origin: i64| {
            bin(stride, stamp, origin, call.settings.major)
        })
    }),
    ("timestamptz_bin", |call| {
        ternary(call, |stride: Interval, stamp: i64, origin: i64| {
            bin(stride, stamp, origin, call.settings.major)
        })
    }),
];
