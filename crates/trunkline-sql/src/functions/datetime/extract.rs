//! `extract(field from value)`, which returns numeric, and `date_part`, which returns float8.
//!
//! ```text
//!   extract(epoch from '2000-01-01'::date)                     946684800
//!   extract(second from '00:00:01.5'::time)                    1.500000
//!   extract(year from 'infinity'::timestamp)                   Infinity
//!   extract(hour from 'infinity'::timestamp)                   null, because it goes round
//! ```
//!
//! Mirrors `timestamp_part_common` and its neighbours of PostgreSQL's `utils/adt/timestamp.c`, and
//! `extract_date`, `time_part_common` and `timetz_part_common` of `utils/adt/date.c`.

use arrow_array::ArrayRef;
use trunkline_format::calendar::{
    DAY_US, JULIAN_2000, UNIX_TO_2000_S, civil, days, iso_week, weekday,
};

use super::super::call::{Call, Kernel};
use super::super::rows::{Input, Output, binary};
use super::decimal::{INFINITY, MINUS_INFINITY, decimal};
use super::interval::{Infinity, Interval};
use super::time::TimeTz;
use super::timestamp::{SECOND_US, date_to_timestamp, offset_at, shifted};
use super::units::{Unit, any_unit, not_recognized, recognize, unsupported};
use crate::error::SqlError;

/// A field's value, which is returned as numeric or as float8.
#[derive(Debug, Clone, Copy, PartialEq)]
enum Part {
    Null,
    Infinite(Infinity),
    Integer(i64),
    /// Seconds, or milliseconds, in microseconds: the value is divided by ten to the power of the
    /// scale.
    Scaled(i64, u16),
    /// The Julian day and the microseconds of that day.
    Julian(i64, i64),
    /// Seconds and microseconds since 1970, or of the day.
    Epoch(i64, i64),
    TimetzEpoch(TimeTz),
    IntervalEpoch(Interval),
}

impl Part {
    fn numeric(self) -> Option<Vec<u8>> {
        Some(match self {
            Self::Null => return None,
            Self::Infinite(Infinity::Plus) => INFINITY.to_vec(),
            Self::Infinite(Infinity::Minus) => MINUS_INFINITY.to_vec(),
            Self::Integer(number) => decimal(number.into(), 0),
            Self::Scaled(number, scale) => decimal(number.into(), scale),
            Self::Epoch(seconds, micros) => {
                let all = i128::from(seconds) * i128::from(SECOND_US) + i128::from(micros);
                // The server divides numerics if the result doesn't fit into 64 bits. The quotient
                // then has 16 significant digits, of which 4 are decimals.
                let fits = i64::try_from(all).is_ok();
                decimal(if fits { all } else { (all + 50) / 100 * 100 }, 6)
            }
            Self::TimetzEpoch(time) => decimal(time.utc().into(), 6),
            Self::IntervalEpoch(span) => {
                let seconds = i128::from(interval_seconds(span));
                decimal(seconds * i128::from(SECOND_US) + i128::from(span.micros), 6)
            }
            Self::Julian(day, micros) => julian(day, micros),
        })
    }

    fn float(self) -> Option<f64> {
        Some(match self {
            Self::Null => return None,
            Self::Infinite(Infinity::Plus) => f64::INFINITY,
            Self::Infinite(Infinity::Minus) => f64::NEG_INFINITY,
            Self::Integer(number) => number as f64,
            Self::Scaled(number, 3) => {
                (number / SECOND_US) as f64 * 1e3 + (number % SECOND_US) as f64 / 1e3
            }
            Self::Scaled(number, _) => {
                (number / SECOND_US) as f64 + (number % SECOND_US) as f64 / 1e6
            }
            Self::Epoch(seconds, micros) => {
                let all = i128::from(seconds) * i128::from(SECOND_US) + i128::from(micros);
                all as f64 / 1e6
            }
            Self::TimetzEpoch(time) => time.micros as f64 / 1e6 + f64::from(time.west_s),
            // The order of the operations decides how the result is rounded.
            Self::IntervalEpoch(span) => {
                let seconds = span.micros as f64 / 1e6;
                let seconds = seconds + YEAR_DAYS * 86_400.0 * f64::from(span.months / 12);
                let seconds = seconds + 30.0 * 86_400.0 * f64::from(span.months % 12);
                seconds + 86_400.0 * f64::from(span.days)
            }
            Self::Julian(day, micros) => {
                let seconds = (micros / SECOND_US) as f64 + (micros % SECOND_US) as f64 / 1e6;
                day as f64 + seconds / 86_400.0
            }
        })
    }
}

/// Days in a year of an interval's epoch. A month has 30.
const YEAR_DAYS: f64 = 365.25;

/// The seconds of an interval's months and days.
fn interval_seconds(span: Interval) -> i64 {
    let (years, months) = (i64::from(span.months / 12), i64::from(span.months % 12));
    // Years have a quarter of a day, so this counts quarters.
    (years * 1461 + months * 120 + i64::from(span.days) * 4) * 21_600
}

/// The Julian day with its fraction, which is a division of numerics: it has at least 16 significant
/// digits, so a smaller fraction has more decimals.
fn julian(day: i64, micros: i64) -> Vec<u8> {
    /// The first digit of base 10,000 of the microseconds of a day, and the power of 10,000 it has.
    const DIVISOR: (i64, i64) = (864, 2);
    let (mut first, mut weight) = (micros, 0);
    while first >= 10_000 {
        first /= 10_000;
        weight += 1;
    }
    let quotient_weight = weight - DIVISOR.1 - i64::from(first <= DIVISOR.0);
    let scale = (16 - 4 * quotient_weight) as u16;
    let unit = 10_i128.pow(u32::from(scale));
    let day_us = i128::from(DAY_US);
    let fraction = (i128::from(micros) * unit + day_us / 2) / day_us;
    decimal(i128::from(day) * unit + fraction, scale)
}

/// The fields of a time of a day.
fn time_part(unit: Unit, time: i64) -> Option<Part> {
    let of_minute = time % (60 * SECOND_US);
    Some(match unit {
        Unit::Microsecond => Part::Integer(of_minute),
        Unit::Millisecond => Part::Scaled(of_minute, 3),
        Unit::Second => Part::Scaled(of_minute, 6),
        Unit::Minute => Part::Integer(time / (60 * SECOND_US) % 60),
        Unit::Hour => Part::Integer(time / (3600 * SECOND_US)),
        _ => return None,
    })
}

/// The fields of a zone that is `east_s` seconds east of UTC.
fn zone_part(unit: Unit, east_s: i32) -> Option<Part> {
    Some(Part::Integer(i64::from(match unit {
        Unit::Zone => east_s,
        Unit::ZoneMinute => east_s / 60 % 60,
        Unit::ZoneHour => east_s / 3600,
        _ => return None,
    })))
}

/// There is no year 0: the year before 1 is -1.
fn without_zero(year: i64) -> i64 {
    if year > 0 { year } else { year - 1 }
}

/// A century or millennium: 1 begins with the year 1, and -1 ends with the year 1 BC.
fn period(year: i64, years: i64) -> i64 {
    if year > 0 { (year + years - 1) / years } else { -((years - year) / years) }
}

/// The fields of a date.
fn date_part(unit: Unit, date: i64) -> Option<Part> {
    let (year, month, day) = civil(date);
    Some(Part::Integer(match unit {
        Unit::Day => day.into(),
        Unit::Month => month.into(),
        Unit::Quarter => ((month - 1) / 3 + 1).into(),
        Unit::Week => iso_week(date).1.into(),
        Unit::Year => without_zero(year),
        // The decade 0 starts with 1 BC, and -1 is 11 BC to 2 BC.
        Unit::Decade => year.div_euclid(10),
        Unit::Century => period(year, 100),
        Unit::Millennium => period(year, 1000),
        Unit::Julian => date + JULIAN_2000,
        Unit::IsoYear => without_zero(iso_week(date).0),
        Unit::DayOfWeek => weekday(date).into(),
        Unit::IsoDayOfWeek => (weekday(date - 1) + 1).into(),
        Unit::DayOfYear => date - days(year, 1, 1) + 1,
        _ => return None,
    }))
}

/// The fields of an infinite date or timestamp: null, if the field of growing dates goes round.
fn infinite_part(unit: Unit, end: Infinity) -> Option<Part> {
    Some(match unit {
        Unit::Day
        | Unit::Month
        | Unit::Quarter
        | Unit::Week
        | Unit::DayOfWeek
        | Unit::IsoDayOfWeek
        | Unit::DayOfYear => Part::Null,
        Unit::Year
        | Unit::Decade
        | Unit::Century
        | Unit::Millennium
        | Unit::Julian
        | Unit::IsoYear
        | Unit::Epoch => Part::Infinite(end),
        _ => return None,
    })
}

fn of_date(name: &str, date: i32, _: &Call<'_>) -> Result<Part, SqlError> {
    let unit = recognize(name, any_unit, "date")?;
    let part = match Infinity::of_date(date) {
        Some(end) => infinite_part(unit, end),
        None if unit == Unit::Epoch => {
            Some(Part::Integer(i64::from(date) * 86_400 + UNIX_TO_2000_S))
        }
        None => date_part(unit, date.into()),
    };
    part.ok_or_else(|| unsupported(name, "date"))
}

/// A field of a local time, which is `east_s` seconds east of UTC if it has a zone.
fn of_timestamp(
    name: &str,
    stamp: i64,
    east_s: Option<i32>,
    type_name: &str,
) -> Result<Part, SqlError> {
    let unit = recognize(name, any_unit, type_name)?;
    let is_zone = matches!(unit, Unit::Zone | Unit::ZoneHour | Unit::ZoneMinute);
    let part = match Infinity::of_timestamp(stamp) {
        Some(end) => infinite_part(unit, end).or_else(|| {
            let goes_round = is_zone || time_part(unit, 0).is_some();
            goes_round.then_some(Part::Null)
        }),
        None if unit == Unit::Epoch => Some(Part::Epoch(UNIX_TO_2000_S, stamp)),
        None => {
            let local = shifted(stamp, east_s.unwrap_or_default());
            let (date, time) = (local.div_euclid(DAY_US), local.rem_euclid(DAY_US));
            match unit {
                Unit::Julian => Some(Part::Julian(date + JULIAN_2000, time)),
                _ => date_part(unit, date)
                    .or_else(|| time_part(unit, time))
                    .or_else(|| zone_part(unit, east_s?)),
            }
        }
    };
    part.ok_or_else(|| unsupported(name, type_name))
}

fn of_plain_timestamp(name: &str, stamp: i64, _: &Call<'_>) -> Result<Part, SqlError> {
    of_timestamp(name, stamp, None, "timestamp without time zone")
}

fn of_timestamptz(name: &str, stamp: i64, call: &Call<'_>) -> Result<Part, SqlError> {
    let east_s = match Infinity::of_timestamp(stamp) {
        Some(_) => 0,
        None => offset_at(stamp, &*call.settings.zone),
    };
    of_timestamp(name, stamp, Some(east_s), "timestamp with time zone")
}

fn of_time(name: &str, time: i64, _: &Call<'_>) -> Result<Part, SqlError> {
    const NAME: &str = "time without time zone";
    let part = match recognize(name, any_unit, NAME)? {
        Unit::Epoch => Some(Part::Epoch(0, time)),
        Unit::OtherWord => return Err(not_recognized(name, NAME)),
        unit => time_part(unit, time),
    };
    part.ok_or_else(|| unsupported(name, NAME))
}

fn of_timetz(name: &str, time: TimeTz, _: &Call<'_>) -> Result<Part, SqlError> {
    const NAME: &str = "time with time zone";
    let part = match recognize(name, any_unit, NAME)? {
        Unit::Epoch => Some(Part::TimetzEpoch(time)),
        Unit::OtherWord => return Err(not_recognized(name, NAME)),
        unit => time_part(unit, time.micros).or_else(|| zone_part(unit, -time.west_s)),
    };
    part.ok_or_else(|| unsupported(name, NAME))
}

fn of_interval(name: &str, span: Interval, call: &Call<'_>) -> Result<Part, SqlError> {
    let unit = recognize(name, any_unit, "interval")?;
    let part = match span.infinity(call.settings.major) {
        Some(end) => infinite_interval_part(unit, end),
        None => interval_part(unit, span, call.settings.major),
    };
    part.ok_or_else(|| match unit {
        // The server doesn't find these words among the units of an interval.
        Unit::OtherWord if span.infinity(call.settings.major).is_none() => {
            not_recognized(name, "interval")
        }
        _ => unsupported(name, "interval"),
    })
}

fn infinite_interval_part(unit: Unit, end: Infinity) -> Option<Part> {
    Some(match unit {
        Unit::Microsecond
        | Unit::Millisecond
        | Unit::Second
        | Unit::Minute
        | Unit::Week
        | Unit::Month
        | Unit::Quarter => Part::Null,
        Unit::Hour
        | Unit::Day
        | Unit::Year
        | Unit::Decade
        | Unit::Century
        | Unit::Millennium
        | Unit::Epoch => Part::Infinite(end),
        _ => return None,
    })
}

fn interval_part(unit: Unit, span: Interval, major: u32) -> Option<Part> {
    let (years, months) = (i64::from(span.months / 12), i64::from(span.months % 12));
    Some(Part::Integer(match unit {
        Unit::Day => span.days.into(),
        // Weeks have been supported since 18.
        Unit::Week if major >= 18 => i64::from(span.days / 7),
        Unit::Month => months,
        // Since 18, the quarter of a negative interval is the negative of the positive one's.
        Unit::Quarter if major >= 18 && span.months < 0 => -(-months / 3 + 1),
        Unit::Quarter => months / 3 + 1,
        Unit::Year => years,
        Unit::Decade => years / 10,
        Unit::Century => years / 100,
        Unit::Millennium => years / 1000,
        Unit::Epoch => return Some(Part::IntervalEpoch(span)),
        _ => return time_part(unit, span.micros),
    }))
}

/// Computes `extract` or `date_part` for a type.
fn part<'a, A: Input<'a>, R: Output>(
    call: &'a Call<'_>,
    of: fn(&str, A, &Call<'_>) -> Result<Part, SqlError>,
    result: fn(Part) -> Option<R>,
) -> Result<ArrayRef, SqlError> {
    binary(call, |name: &str, value: A| of(name, value, call).map(result))
}

/// `extract` and `date_part` of all types.
pub(in super::super) const KERNELS: &[(&str, Kernel)] = &[
    ("extract_date", |call| part(call, of_date, Part::numeric)),
    ("extract_timestamp", |call| part(call, of_plain_timestamp, Part::numeric)),
    ("extract_timestamptz", |call| part(call, of_timestamptz, Part::numeric)),
    ("extract_time", |call| part(call, of_time, Part::numeric)),
    ("extract_timetz", |call| part(call, of_timetz, Part::numeric)),
    ("extract_interval", |call| part(call, of_interval, Part::numeric)),
    // A function in SQL.
    ("date_part(text,date)", |call| {
        let of = |name: &str, date: i32, call: &Call<'_>| {
            of_plain_timestamp(name, date_to_timestamp(date)?, call)
        };
        part(call, of, Part::float)
    }),
    ("timestamp_part", |call| part(call, of_plain_timestamp, Part::float)),
    ("timestamptz_part", |call| part(call, of_timestamptz, Part::float)),
    ("time_part", |call| part(call, of_time, Part::float)),
    ("timetz_part", |call| part(call, of_timetz, Part::float)),
    ("interval_part", |call| part(call, of_interval, Part::float)),
];
