//! `to_char` of timestamps and intervals.
//!
//! ```text
//!   to_char('2024-02-29 13:05'::timestamp, 'FMDay, FMDDth Month')   Thursday, 29th February
//!   to_char('26 hours'::interval, 'HH24:MI')                        26:00
//! ```
//!
//! Names of days and months are English. `TM`, which translates them, is refused.
//!
//! Mirrors `DCH_to_char` of PostgreSQL's `utils/adt/formatting.c`.

use trunkline_format::calendar::{DAY_US, civil, days, weekday};

use super::super::call::{Call, Kernel};
use super::super::datetime::Interval;
use super::super::rows::binary;
use super::date_picture::{Field, Key, Node, parse};
use super::julian::{iso_week, iso_week_start, julian};
use crate::error::{SqlError, SqlState};

/// Full names of months.
pub(super) const MONTHS: [&str; 12] = [
    "January",
    "February",
    "March",
    "April",
    "May",
    "June",
    "July",
    "August",
    "September",
    "October",
    "November",
    "December",
];
/// Full names of days.
pub(super) const DAYS: [&str; 7] =
    ["Sunday", "Monday", "Tuesday", "Wednesday", "Thursday", "Friday", "Saturday"];
/// Months in Roman numerals, from December, so that longer ones come before shorter ones.
pub(super) const ROMAN_MONTHS: [&str; 12] =
    ["XII", "XI", "X", "IX", "VIII", "VII", "VI", "V", "IV", "III", "II", "I"];

/// The zone of a timestamptz.
struct Zone {
    east_s: i32,
    abbreviation: String,
}

/// The fields of a timestamp or an interval.
struct Parts {
    year: i64,
    month: i64,
    day: i64,
    hour: i64,
    minute: i64,
    second: i64,
    micros: i64,
    /// From 0 for Sunday.
    weekday: usize,
    day_of_year: i64,
    zone: Option<Zone>,
    is_interval: bool,
}

impl Parts {
    fn of_timestamp(local: i64, zone: Option<Zone>) -> Self {
        let (date, time) = (local.div_euclid(DAY_US), local.rem_euclid(DAY_US));
        let (year, month, day) = civil(date);
        Self {
            year,
            month: month.into(),
            day: day.into(),
            hour: time / 3_600_000_000,
            minute: time / 60_000_000 % 60,
            second: time / 1_000_000 % 60,
            micros: time % 1_000_000,
            weekday: weekday(date) as usize,
            day_of_year: date - days(year, 1, 1) + 1,
            zone,
            is_interval: false,
        }
    }

    fn of_interval(span: Interval) -> Self {
        let (months, day) = (i64::from(span.months), i64::from(span.days));
        Self {
            year: months / 12,
            month: months % 12,
            day,
            hour: span.micros / 3_600_000_000,
            minute: span.micros / 60_000_000 % 60,
            second: span.micros / 1_000_000 % 60,
            micros: span.micros % 1_000_000,
            weekday: 0,
            day_of_year: months.wrapping_mul(30).wrapping_add(day) as i32 as i64,
            zone: None,
            is_interval: true,
        }
    }

    /// The year without its sign, unless it is that of an interval: 1 BC is 1.
    fn shown_year(&self, year: i64) -> i64 {
        if self.is_interval || year > 0 { year } else { 1 - year }
    }

    fn offset_s(&self) -> i32 {
        self.zone.as_ref().map_or(0, |zone| zone.east_s)
    }

    fn iso_week(&self) -> (i64, i64) {
        iso_week(self.year, self.month, self.day)
    }
}

/// A number of at least `width` characters, not counting a minus; without padding under `FM`.
fn number(out: &mut String, field: &Field, value: i64, width: usize) -> Result<(), SqlError> {
    let width = if field.fill { 0 } else { width + usize::from(value < 0 && width > 1) };
    ordinal(out, field, &format!("{value:0width$}"))
}

/// A number with its ordinal suffix.
fn ordinal(out: &mut String, field: &Field, digits: &str) -> Result<(), SqlError> {
    out.push_str(digits);
    out.push_str(field.ordinal.map_or("", |ordinal| ordinal.suffix(digits)));
    Ok(())
}

/// A number whose padding depends on the sign of another one.
fn signed(
    out: &mut String,
    field: &Field,
    value: i64,
    width: usize,
    is_negative: bool,
) -> Result<(), SqlError> {
    let width = if field.fill { 0 } else { width + usize::from(is_negative) };
    ordinal(out, field, &format!("{value:0width$}"))
}

/// A name in the keyword's case, padded to a width.
fn name(out: &mut String, field: &Field, text: &str, width: usize) {
    let width = if field.fill { 0 } else { width };
    out.push_str(&format!("{:<width$}", field.in_case(text)));
}

fn first_three(text: &'static str) -> &'static str {
    text.get(..3).unwrap_or(text)
}

/// 22007: the field is that of a date.
fn refuse_interval(key: Key) -> Option<SqlError> {
    let is_refused = matches!(
        key,
        Key::Zone
            | Key::ZoneHours
            | Key::ZoneMinutes
            | Key::Offset
            | Key::Era(_)
            | Key::MonthName
            | Key::MonthShort
            | Key::DayName
            | Key::DayShort
            | Key::Weekday
            | Key::IsoWeekday
    );
    is_refused.then(|| {
        let what = "invalid format specification for an interval value";
        let hint = "Intervals are not tied to specific calendar dates.";
        SqlError::new(SqlState::INVALID_DATETIME_FORMAT, what).with_hint(hint)
    })
}

/// Writes a field of the clock or the zone. Returns false if the field is another one.
fn write_clock(out: &mut String, field: &Field, parts: &Parts) -> Result<bool, SqlError> {
    let offset = parts.offset_s();
    let sign = if offset < 0 { '-' } else { '+' };
    let (hours, minutes) = (offset.abs() / 3600, offset.abs() % 3600 / 60);
    match field.key {
        Key::Meridian(dots) => {
            let text = match (parts.hour % 24 >= 12, dots) {
                (true, true) => "P.M.",
                (true, false) => "PM",
                (false, true) => "A.M.",
                (false, false) => "AM",
            };
            out.push_str(&field.in_case(text));
        }
        Key::Hour12 => {
            let hour = if parts.hour % 12 == 0 { 12 } else { parts.hour % 12 };
            signed(out, field, hour, 2, parts.hour < 0)?;
        }
        Key::Hour24 => signed(out, field, parts.hour, 2, parts.hour < 0)?,
        Key::Minute => signed(out, field, parts.minute, 2, parts.minute < 0)?,
        Key::Second => signed(out, field, parts.second, 2, parts.second < 0)?,
        Key::Millisecond => fraction(out, field, parts.micros, 3)?,
        Key::Microsecond => fraction(out, field, parts.micros, 6)?,
        Key::Fraction(digits) => fraction(out, field, parts.micros, digits)?,
        Key::SecondsOfDay => {
            let seconds = parts.hour * 3600 + parts.minute * 60 + parts.second;
            ordinal(out, field, &seconds.to_string())?;
        }
        Key::Zone => {
            let name = parts.zone.as_ref().map_or("", |zone| &zone.abbreviation);
            out.push_str(&if field.name() == "tz" {
                name.to_ascii_lowercase()
            } else {
                name.to_owned()
            });
        }
        Key::ZoneHours => out.push_str(&format!("{sign}{hours:02}")),
        Key::ZoneMinutes => out.push_str(&format!("{minutes:02}")),
        Key::Offset => {
            let width = if field.fill { 0 } else { 2 };
            out.push_str(&format!("{sign}{hours:0width$}"));
            if offset % 3600 != 0 {
                out.push_str(&format!(":{minutes:02}"));
            }
        }
        _ => return Ok(false),
    }
    Ok(true)
}

fn fraction(out: &mut String, field: &Field, micros: i64, digits: u32) -> Result<(), SqlError> {
    let value = micros / 10_i64.pow(6 - digits.min(6));
    let width = digits as usize;
    ordinal(out, field, &format!("{value:0width$}"))
}

/// Writes the name of a day, a month or an era. Returns false if the field is another one.
fn write_name(out: &mut String, field: &Field, parts: &Parts) -> Result<bool, SqlError> {
    let month = usize::try_from(parts.month - 1).ok().and_then(|month| MONTHS.get(month));
    let day = DAYS.get(parts.weekday).copied().unwrap_or_default();
    let is_name =
        matches!(field.key, Key::MonthName | Key::MonthShort | Key::DayName | Key::DayShort);
    if is_name && field.translated {
        let what = "\"TM\" in a format picture is not supported by trunkline";
        return Err(SqlError::unsupported(what));
    }
    match field.key {
        Key::Era(dots) => {
            let text = match (parts.year <= 0, dots) {
                (true, true) => "B.C.",
                (true, false) => "BC",
                (false, true) => "A.D.",
                (false, false) => "AD",
            };
            out.push_str(&field.in_case(text));
        }
        Key::MonthName => name(out, field, month.copied().unwrap_or_default(), 9),
        Key::MonthShort => name(out, field, first_three(month.copied().unwrap_or_default()), 0),
        Key::DayName => name(out, field, day, 9),
        Key::DayShort => name(out, field, first_three(day), 0),
        Key::RomanMonth if parts.month == 0 && parts.year == 0 => {}
        Key::RomanMonth => {
            // Whole years of an interval are December, and negative months count back from it.
            let at = match parts.month {
                0 => {
                    if parts.year >= 0 {
                        0
                    } else {
                        11
                    }
                }
                month if month < 0 => -(month + 1),
                month => 12 - month,
            };
            let at = usize::try_from(at).unwrap_or_default();
            name(out, field, ROMAN_MONTHS.get(at).copied().unwrap_or_default(), 4);
        }
        _ => return Ok(false),
    }
    Ok(true)
}

/// Writes a field of the calendar in digits.
fn write_date(out: &mut String, field: &Field, parts: &Parts) -> Result<(), SqlError> {
    let Parts { year, month, day, .. } = *parts;
    let is_negative = |year: i64| parts.shown_year(year) < 0;
    match field.key {
        Key::Month => signed(out, field, month, 2, month < 0),
        Key::DayOfYear => padded(out, field, parts.day_of_year, 3),
        Key::IsoDayOfYear => {
            let first = iso_week_start(parts.iso_week().0, 1);
            padded(out, field, julian(year, month, day) - first + 1, 3)
        }
        Key::Day => padded(out, field, day, 2),
        Key::Weekday => padded(out, field, parts.weekday as i64 + 1, 1),
        Key::IsoWeekday => {
            padded(out, field, if parts.weekday == 0 { 7 } else { parts.weekday as i64 }, 1)
        }
        Key::WeekOfYear => padded(out, field, (parts.day_of_year - 1) / 7 + 1, 2),
        Key::IsoWeek => padded(out, field, parts.iso_week().1, 2),
        Key::WeekOfMonth => padded(out, field, (day - 1) / 7 + 1, 1),
        Key::Quarter if month == 0 => Ok(()),
        Key::Quarter => padded(out, field, (month - 1) / 3 + 1, 1),
        Key::Julian => padded(out, field, julian(year, month, day), 1),
        Key::Century => {
            let century = match year {
                _ if parts.is_interval => year / 100,
                _ if year > 0 => (year - 1) / 100 + 1,
                _ => year / 100 - 1,
            };
            number(out, field, century, 2)
        }
        Key::YearWithComma => {
            let year = parts.shown_year(year);
            let text = format!("{},{:03}", year / 1000, year - year / 1000 * 1000);
            ordinal(out, field, &text)
        }
        // The width depends on the year even if the ISO year is shown.
        Key::Year(digits) => {
            year_digits(out, field, parts.shown_year(year), digits, is_negative(year))
        }
        Key::IsoYear(digits) => {
            let iso_year = parts.shown_year(parts.iso_week().0);
            year_digits(out, field, iso_year, digits, is_negative(year))
        }
        // The other fields are written elsewhere, and FX has no meaning in output.
        _ => Ok(()),
    }
}

fn year_digits(
    out: &mut String,
    field: &Field,
    year: i64,
    digits: u32,
    is_negative: bool,
) -> Result<(), SqlError> {
    match digits {
        4 => signed(out, field, year, 4, is_negative),
        1 => ordinal(out, field, &(year % 10).to_string()),
        _ => signed(out, field, year % 10_i64.pow(digits), digits as usize, is_negative),
    }
}

/// `%0*d`: the width includes a minus.
fn padded(out: &mut String, field: &Field, value: i64, width: usize) -> Result<(), SqlError> {
    let width = if field.fill { 0 } else { width };
    ordinal(out, field, &format!("{value:0width$}"))
}

fn format(nodes: &[Node], parts: &Parts) -> Result<String, SqlError> {
    let mut out = String::new();
    for node in nodes {
        match node {
            Node::Separator(c) | Node::Space(c) | Node::Literal(c) => out.push(*c),
            Node::Field(field) => {
                if parts.is_interval
                    && let Some(error) = refuse_interval(field.key)
                {
                    return Err(error);
                }
                if !write_clock(&mut out, field, parts)? && !write_name(&mut out, field, parts)? {
                    write_date(&mut out, field, parts)?;
                }
            }
        }
    }
    Ok(out)
}

/// Keeps the last picture, because it is usually the same in all rows.
#[derive(Default)]
struct Pictures(Option<(String, Vec<Node>)>);

impl Pictures {
    fn of(&mut self, picture: &str) -> &[Node] {
        if self.0.as_ref().is_none_or(|(known, _)| known != picture) {
            self.0 = None;
        }
        let fresh = || (picture.to_owned(), parse(picture));
        &self.0.get_or_insert_with(fresh).1
    }
}

/// Formats a timestamp; null if it is infinite or the picture is empty.
fn of_timestamp(
    call: &Call<'_>,
    stamp: i64,
    picture: &str,
    pictures: &mut Pictures,
    has_zone: bool,
) -> Result<Option<String>, SqlError> {
    if picture.is_empty() || stamp == i64::MIN || stamp == i64::MAX {
        return Ok(None);
    }
    let zone = &*call.settings.zone;
    let unix_s = stamp.div_euclid(1_000_000) + trunkline_format::calendar::UNIX_TO_2000_S;
    let zone = has_zone
        .then(|| Zone { east_s: zone.offset_s(unix_s), abbreviation: zone.abbreviation(unix_s) });
    let east_s = zone.as_ref().map_or(0, |zone| zone.east_s);
    let parts = Parts::of_timestamp(stamp + i64::from(east_s) * 1_000_000, zone);
    format(pictures.of(picture), &parts).map(Some)
}

/// `to_char` of timestamps and intervals.
pub(in super::super) const KERNELS: &[(&str, Kernel)] = &[
    ("timestamp_to_char", |call| {
        let mut pictures = Pictures::default();
        binary(call, |stamp: i64, picture: &str| {
            of_timestamp(call, stamp, picture, &mut pictures, false)
        })
    }),
    ("timestamptz_to_char", |call| {
        let mut pictures = Pictures::default();
        binary(call, |stamp: i64, picture: &str| {
            of_timestamp(call, stamp, picture, &mut pictures, true)
        })
    }),
    ("interval_to_char", |call| {
        let mut pictures = Pictures::default();
        binary(call, |span: Interval, picture: &str| {
            if picture.is_empty() || span.infinity(call.settings.major).is_some() {
                return Ok(None);
            }
            format(pictures.of(picture), &Parts::of_interval(span)).map(Some)
        })
    }),
];
