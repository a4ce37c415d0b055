//! `to_timestamp` and `to_date` with a picture.
//!
//! ```text
//!   to_date('05 Dec 2000', 'DD Mon YYYY')                    2000-12-05
//!   to_timestamp('2000-366 23:59', 'YYYY-DDD HH24:MI')       2000-12-31 23:59
//! ```
//!
//! Fields that the text doesn't have are those of the first moment of a year; without a year, it is
//! 1 BC.
//!
//! Mirrors `do_to_timestamp` of PostgreSQL's `utils/adt/formatting.c`.

use trunkline_format::calendar::{
    DAY_US, FIRST_DATE, JULIAN_2000, LAST_DATE, civil, days_of_month, is_leap,
};

use super::super::call::Kernel;
use super::super::datetime::{timestamp_in_range, timestamp_to_timestamptz};
use super::super::rows::binary;
use super::date_picture::parse;
use super::date_reader::{Fields, read};
use super::julian::{iso_week_start, julian};
use crate::error::{SqlError, SqlState};

/// The kernels of this module.
pub(in crate::functions) const KERNELS: &[(&str, Kernel)] = &[
    ("to_timestamp", |call| {
        let (zone, major) = (&*call.settings.zone, call.settings.major);
        binary(call, |text: &str, picture: &str| {
            let moment = Moment::read(text, picture, major)?;
            let local = moment.timestamp()?;
            match moment.west_s {
                Some(seconds) => timestamp_in_range(local.saturating_add(seconds * 1_000_000)),
                None => timestamp_to_timestamptz(local, zone),
            }
        })
    }),
    ("to_date", |call| {
        let major = call.settings.major;
        binary(call, |text: &str, picture: &str| {
            let day = Moment::read(text, picture, major)?.day();
            match day.and_then(|day| i32::try_from(day).ok()) {
                Some(day) if (FIRST_DATE..=LAST_DATE).contains(&day) => Ok(day),
                _ => {
                    let message = format!("date out of range: \"{text}\"");
                    Err(SqlError::new(SqlState::DATETIME_FIELD_OVERFLOW, message))
                }
            }
        })
    }),
];

/// The years of dates that there are: `JULIAN_MINYEAR` and the one before `JULIAN_MAXYEAR`.
const FIRST_YEAR: i64 = -4713;
const LAST_YEAR: i64 = 5_874_897;

/// The moment that a text names.
struct Moment {
    year: i64,
    month: i64,
    day: i64,
    /// Microseconds since midnight.
    time: i64,
    /// Seconds west of Greenwich, if the text has a zone.
    west_s: Option<i64>,
}

fn invalid(message: &str) -> SqlError {
    SqlError::new(SqlState::INVALID_DATETIME_FORMAT, message)
}

fn out_of_range(text: &str) -> SqlError {
    let message = format!("date/time field value out of range: \"{text}\"");
    SqlError::new(SqlState::DATETIME_FIELD_OVERFLOW, message)
}

/// Which parts of a date are known.
#[derive(Default)]
struct Known {
    year: bool,
    month: bool,
    day: bool,
}

impl Moment {
    fn read(text: &str, picture: &str, major: u32) -> Result<Self, SqlError> {
        let fields = read(text, &parse(picture), major)?;
        let (hour, minute, second) = clock(&fields)?;
        let micros = i64::from(fields.millisecond) * 1000 + i64::from(fields.microsecond);
        let mut moment = Self { year: 0, month: 1, day: 1, time: 0, west_s: None };
        let known = moment.date(&fields)?;
        if !moment.is_date(&known) {
            return Err(out_of_range(text));
        }
        let is_time = (0..24).contains(&hour)
            && (0..60).contains(&minute)
            && (0..60).contains(&second)
            && (0..1_000_000).contains(&micros);
        if !is_time {
            return Err(out_of_range(text));
        }
        moment.time = ((hour * 60 + minute) * 60 + second) * 1_000_000 + micros;
        if fields.zone_sign != 0 {
            let is_zone =
                (0..=15).contains(&fields.zone_hours) && (0..60).contains(&fields.zone_minutes);
            if !is_zone {
                let message = format!("time zone displacement out of range: \"{text}\"");
                let code = SqlState::INVALID_TIME_ZONE_DISPLACEMENT_VALUE;
                return Err(SqlError::new(code, message));
            }
            let seconds = i64::from(fields.zone_hours * 60 + fields.zone_minutes) * 60;
            moment.west_s = Some(if fields.zone_sign > 0 { -seconds } else { seconds });
        }
        Ok(moment)
    }

    /// The date, and which parts of it the text has.
    fn date(&mut self, fields: &Fields) -> Result<Known, SqlError> {
        let mut known = Known::default();
        let is_before_christ = fields.before_christ != 0;
        let century = i64::from(fields.century) * if is_before_christ { -1 } else { 1 };
        if fields.year != 0 {
            known.year = true;
            self.year = match (fields.century, fields.year_digits) {
                (0, _) | (_, 3..) => {
                    let year = i64::from(fields.year) * if is_before_christ { -1 } else { 1 };
                    // There is no year 0: 1 BC is the year before 1.
                    if year < 0 { year + 1 } else { year }
                }
                _ => match i64::from(fields.year % 100) {
                    0 => century * 100 + i64::from(century < 0),
                    year if century >= 0 => year + (century - 1) * 100,
                    year => (century + 1) * 100 - year + 1,
                },
            };
        } else if fields.century != 0 {
            known.year = true;
            self.year = if century >= 0 { (century - 1) * 100 + 1 } else { century * 100 + 1 };
        }
        let mut day_of_year = i64::from(fields.day_of_year);
        if fields.julian != 0 {
            if fields.julian < 0 {
                let message = "a Julian day before 0 is not supported by trunkline";
                return Err(SqlError::unsupported(message));
            }
            known = self.set_julian(i64::from(fields.julian));
        }
        if fields.week != 0 {
            let week = i64::from(fields.week);
            if fields.is_iso() {
                let monday = iso_week_start(self.year, week);
                known = self.set_julian(match i64::from(fields.weekday) {
                    0 => monday,
                    weekday if weekday > 1 => monday + weekday - 2,
                    _ => monday + 6,
                });
            } else {
                day_of_year = (week - 1) * 7 + 1;
            }
        }
        let day = match fields.week_of_month {
            0 => i64::from(fields.day),
            week => (i64::from(week) - 1) * 7 + 1,
        };
        if day != 0 {
            (self.day, known.day) = (day, true);
        }
        if fields.month != 0 {
            (self.month, known.month) = (i64::from(fields.month), true);
        }
        if day_of_year != 0 && (self.month <= 1 || self.day <= 1) {
            if self.year == 0 && !is_before_christ {
                let message = "cannot calculate day of year without year information";
                return Err(invalid(message));
            }
            if fields.is_iso() {
                known = self.set_julian(iso_week_start(self.year, 1) - 1 + day_of_year);
            } else {
                self.set_day_of_year(day_of_year);
                (known.month, known.day) = (true, true);
            }
        }
        Ok(known)
    }

    fn set_julian(&mut self, julian: i64) -> Known {
        let (year, month, day) = civil(julian - JULIAN_2000);
        (self.year, self.month, self.day) = (year, month.into(), day.into());
        Known { year: true, month: true, day: true }
    }

    /// Sets the month and the day, of which one may be known.
    fn set_day_of_year(&mut self, day_of_year: i64) {
        let lengths = (1..=12).map(|month| i64::from(days_of_month(self.year, month)));
        let (mut month, mut before) = (1, 0);
        for length in lengths {
            if day_of_year <= before + length {
                break;
            }
            before += length;
            month += 1;
        }
        // Beyond December, the server's table of days ends.
        if month > 12 {
            before = if is_leap(self.year) { 366 } else { 365 };
        }
        if self.month <= 1 {
            self.month = month;
        }
        if self.day <= 1 {
            self.day = day_of_year - before;
        }
    }

    /// Whether what is known of the date can be (`ValidateDate`).
    fn is_date(&self, known: &Known) -> bool {
        let is_month = !known.month || (1..=12).contains(&self.month);
        let is_day = !known.day || (1..=31).contains(&self.day);
        let fits = || {
            let month = u32::try_from(self.month).unwrap_or_default();
            self.day <= i64::from(days_of_month(self.year, month))
        };
        let is_complete = known.year && known.month && known.day;
        is_month && is_day && (!is_complete || fits())
    }

    /// The day, counted from 2000-01-01; `None` if its year is beyond all that there are.
    fn day(&self) -> Option<i64> {
        let is_year = (FIRST_YEAR..=LAST_YEAR).contains(&self.year);
        is_year.then(|| julian(self.year, self.month, self.day) - JULIAN_2000)
    }

    /// Microseconds since 2000, without a zone.
    fn timestamp(&self) -> Result<i64, SqlError> {
        let day = self.day().and_then(|day| day.checked_mul(DAY_US));
        let stamp = day.and_then(|day| day.checked_add(self.time));
        timestamp_in_range(stamp.unwrap_or(i64::MAX))
    }
}

/// Hour, minute and second.
fn clock(fields: &Fields) -> Result<(i64, i64, i64), SqlError> {
    let mut of_day = i64::from(fields.seconds_of_day);
    let (mut hour, mut minute, mut second) = (0, 0, 0);
    if of_day != 0 {
        hour = of_day / 3600;
        of_day %= 3600;
        (minute, second) = (of_day / 60, of_day % 60);
    }
    let or = |field: i32, before: i64| if field != 0 { i64::from(field) } else { before };
    second = or(fields.second, second);
    minute = or(fields.minute, minute);
    hour = or(fields.hour, hour);
    if fields.is_12_hours {
        if !(1..=12).contains(&hour) {
            let message = format!("hour \"{hour}\" is invalid for the 12-hour clock");
            let hint = "Use the 24-hour clock, or give an hour between 1 and 12.";
            return Err(invalid(&message).with_hint(hint));
        }
        if fields.afternoon != 0 && hour < 12 {
            hour += 12;
        } else if fields.afternoon == 0 && hour == 12 {
            hour = 0;
        }
    }
    Ok((hour, minute, second))
}
