//! The parts of a date and time, and how single fields set them.
//!
//! What a number means depends on the parts that are already known, and on `DateStyle`. For example,
//! in `4.5.2024`, the 4 is a month in the order MDY and a day in DMY.
//!
//! Mirrors `DecodeDate`, `DecodeTime`, `DecodeNumber`, `DecodeNumberField`, `DecodeTimezone` and
//! `ValidateDate` of PostgreSQL's `utils/adt/datetime.c`.

use super::c_text::{first, leading_int, signed, signed_32, split_while};
use super::date_fields::DateError;
use super::date_words::{Word, date_word};
use super::options::DateOrder;
use crate::calendar::{civil, days, days_of_month};

type Result<T> = std::result::Result<T, DateError>;

/// The parts that a field sets, as bits.
pub(super) type Mask = u32;

pub(super) const MONTH: Mask = 1 << 1;
pub(super) const YEAR: Mask = 1 << 2;
pub(super) const DAY: Mask = 1 << 3;
pub(super) const ZONE: Mask = 1 << 5;
pub(super) const SUMMER_ZONE: Mask = 1 << 6;
pub(super) const MERIDIAN: Mask = 1 << 9;
pub(super) const DAY_OF_YEAR: Mask = 1 << 15;
pub(super) const WEEKDAY: Mask = 1 << 16;
pub(super) const ERA: Mask = 1 << 18;
pub(super) const DAYLIGHT_SAVING: Mask = 1 << 28;
/// Year, month and day.
pub(super) const DATE: Mask = YEAR | MONTH | DAY;
/// Hour, minute and second.
pub(super) const TIME: Mask = 1 << 10 | 1 << 11 | 1 << 12;

/// The fields that a date of its own can have, as in `MAXDATEFIELDS`.
const DATE_FIELDS_MAX: usize = 25;
/// Days from day 0 of the Julian calendar to 2000-01-01.
const JULIAN_TO_2000: i64 = 2_451_545;
/// Microseconds in a second.
pub(super) const SECOND_US: i64 = 1_000_000;
/// Microseconds in a day.
pub(super) const DAY_US: i64 = 86_400 * SECOND_US;
/// `MAX_TZDISP_HOUR`.
const ZONE_HOURS_MAX: i32 = 15;

/// A date and time in parts, which need not be valid.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub(super) struct Parts {
    pub(super) year: i32,
    pub(super) month: i32,
    pub(super) day: i32,
    pub(super) day_of_year: i32,
    pub(super) hour: i32,
    pub(super) minute: i32,
    pub(super) second: i32,
    pub(super) micros: i32,
    /// Whether the year has one or two digits.
    pub(super) short_year: bool,
}

/// Parses the fraction of a number, which begins with a point and goes to the end of the text.
pub(super) fn fraction(text: &str) -> Result<f64> {
    match text {
        "." => Ok(0.0),
        _ => text.parse().map_err(|_| DateError::Format),
    }
}

/// Parses the fraction of a second into microseconds. Half a microsecond is rounded to even.
pub(super) fn fraction_us(text: &str) -> Result<i32> {
    fraction(text).map(|fraction| (fraction * 1e6).round_ties_even() as i32)
}

/// Parses an offset from UTC such as `+05:30`, `-8` or `+0530`. Returns seconds **west** of UTC, as
/// values store them.
pub(super) fn offset_west(text: &str) -> Result<i32> {
    let sign = first(text);
    if !matches!(sign, b'+' | b'-') {
        return Err(DateError::Format);
    }
    let overflow = DateError::ZoneOverflow;
    let part = |text| {
        let (number, rest) = signed_32(text);
        number.map(|number| (number, rest)).ok_or(DateError::ZoneOverflow)
    };
    let (mut hour, mut rest) = part(text.get(1..).unwrap_or_default())?;
    let (mut minute, mut second) = (0, 0);
    if let Some(after) = rest.strip_prefix(':') {
        (minute, rest) = part(after)?;
        if let Some(after) = rest.strip_prefix(':') {
            (second, rest) = part(after)?;
        }
    } else if rest.is_empty() && text.len() > 3 {
        (hour, minute) = (hour / 100, hour % 100);
    }
    let valid = (0..=ZONE_HOURS_MAX).contains(&hour)
        && (0..60).contains(&minute)
        && (0..60).contains(&second);
    if !valid {
        return Err(overflow);
    }
    if !rest.is_empty() {
        return Err(DateError::Format);
    }
    let seconds = (hour * 60 + minute) * 60 + second;
    Ok(if sign == b'-' { seconds } else { -seconds })
}

/// Hours, minutes, seconds and microseconds of a field with colons.
pub(super) struct Clock {
    pub(super) hour: i64,
    pub(super) minute: i32,
    pub(super) second: i32,
    pub(super) micros: i32,
}

/// Parses `hh:mm`, `hh:mm:ss` or `mm:ss.f`. If `minutes_first`, two numbers are minutes and seconds.
/// The caller must check the range of the hours.
pub(super) fn clock(text: &str, minutes_first: bool) -> Result<Clock> {
    let overflow = DateError::FieldOverflow;
    let (hour, rest) = signed(text);
    let hour = hour.ok_or(overflow)?;
    let rest = rest.strip_prefix(':').ok_or(DateError::Format)?;
    let (minute, rest) = signed_32(rest);
    let minute = minute.ok_or(DateError::FieldOverflow)?;
    let minutes = |hour: i64| i32::try_from(hour).map_err(|_| DateError::FieldOverflow);
    let clock = match first(rest) {
        0 if minutes_first => Clock { hour: 0, minute: minutes(hour)?, second: minute, micros: 0 },
        0 => Clock { hour, minute, second: 0, micros: 0 },
        b'.' => {
            let micros = fraction_us(rest)?;
            Clock { hour: 0, minute: minutes(hour)?, second: minute, micros }
        }
        b':' => {
            let (second, rest) = signed_32(rest.get(1..).unwrap_or_default());
            let second = second.ok_or(DateError::FieldOverflow)?;
            let micros = match first(rest) {
                b'.' => fraction_us(rest)?,
                0 => 0,
                _ => return Err(DateError::Format),
            };
            Clock { hour, minute, second, micros }
        }
        _ => return Err(DateError::Format),
    };
    // A second of 60 counts on into the next minute.
    let valid = clock.hour >= 0
        && (0..60).contains(&clock.minute)
        && (0..=60).contains(&clock.second)
        && (0..=SECOND_US as i32).contains(&clock.micros);
    if valid { Ok(clock) } else { Err(DateError::FieldOverflow) }
}

impl Parts {
    /// Sets the date to a day number relative to 2000-01-01.
    pub(super) fn set_day(&mut self, day: i64) {
        let (year, month, day) = civil(day);
        self.year = i32::try_from(year).unwrap_or(i32::MAX);
        (self.month, self.day) = (month as i32, day as i32);
    }

    /// Sets the date to a day of the Julian calendar.
    pub(super) fn set_julian(&mut self, day: i32) {
        self.set_day(i64::from(day) - JULIAN_TO_2000);
    }

    /// Sets the time of the day.
    pub(super) fn set_time(&mut self, micros: i64) {
        let seconds = (micros / SECOND_US) as i32;
        (self.hour, self.minute, self.second) = (seconds / 3600, seconds / 60 % 60, seconds % 60);
        self.micros = (micros % SECOND_US) as i32;
    }

    /// The day number relative to 2000-01-01. `None` if it is not within the Julian calendar's days.
    /// The month and day must be valid.
    pub(super) fn day_number(&self) -> Option<i64> {
        let date = (self.year, self.month);
        let valid = ((-4713, 11)..(5_874_898, 6)).contains(&date);
        valid.then(|| days(self.year.into(), self.month as u32, self.day as u32))
    }

    /// The time of the day in microseconds.
    pub(super) fn time_us(&self) -> i64 {
        let minutes = i64::from(self.hour) * 60 + i64::from(self.minute);
        (minutes * 60 + i64::from(self.second)) * SECOND_US + i64::from(self.micros)
    }

    /// Whether the time is beyond 24:00:00, or has parts that are too large.
    pub(super) fn time_overflows(&self) -> bool {
        !(0..=24).contains(&self.hour)
            || !(0..60).contains(&self.minute)
            || !(0..=60).contains(&self.second)
            || !(0..=SECOND_US as i32).contains(&self.micros)
            || self.time_us() > DAY_US
    }

    /// Sets the time from a field with colons.
    pub(super) fn clock(&mut self, text: &str) -> Result<Mask> {
        let clock = clock(text, false)?;
        self.hour = i32::try_from(clock.hour).map_err(|_| DateError::FieldOverflow)?;
        (self.minute, self.second, self.micros) = (clock.minute, clock.second, clock.micros);
        Ok(TIME)
    }

    /// Sets the date from a field with delimiters in it.
    pub(super) fn date(
        &mut self,
        text: &str,
        mut known: Mask,
        order: DateOrder,
        major: u32,
    ) -> Result<Mask> {
        let mut fields = Vec::new();
        let mut rest = text;
        while !rest.is_empty() && fields.len() < DATE_FIELDS_MAX {
            let start = rest.find(|c: char| c.is_ascii_alphanumeric()).ok_or(DateError::Format)?;
            rest = rest.get(start..).unwrap_or_default();
            let digits = first(rest).is_ascii_digit();
            let (field, after) = match digits {
                true => split_while(rest, |byte| byte.is_ascii_digit()),
                false => split_while(rest, |byte| byte.is_ascii_alphabetic()),
            };
            fields.push((digits, field));
            rest = after.get(1..).unwrap_or_default();
        }
        let mut found = 0;
        let mut set = |mask: Mask, known: &mut Mask| {
            if *known & mask != 0 {
                return Err(DateError::Format);
            }
            *known |= mask;
            found |= mask;
            Ok(())
        };
        // A word is always a month. Once it is known, the numbers have fewer meanings.
        let mut text_month = false;
        for (_, word) in fields.iter().filter(|(digits, _)| !digits) {
            match date_word(word, major) {
                Some(Word::Ignored) => {}
                Some(Word::Month(month)) => {
                    (self.month, text_month) = (month, true);
                    set(MONTH, &mut known)?;
                }
                _ => return Err(DateError::Format),
            }
        }
        for (_, number) in fields.iter().filter(|(digits, _)| *digits) {
            let mask = self.number(number, text_month, known, order)?;
            set(mask, &mut known)?;
        }
        if known & !(DAY_OF_YEAR | ZONE) == DATE { Ok(found) } else { Err(DateError::Format) }
    }

    /// Sets the part that a number stands for.
    pub(super) fn number(
        &mut self,
        text: &str,
        text_month: bool,
        known: Mask,
        order: DateOrder,
    ) -> Result<Mask> {
        let (value, rest) = signed_32(text);
        let value = value.ok_or(DateError::FieldOverflow)?;
        if rest.len() == text.len() {
            return Err(DateError::Format);
        }
        if rest.starts_with('.') {
            if text.len() - rest.len() > 2 {
                return self.run_together(text, known | DATE);
            }
            self.micros = fraction_us(rest)?;
        } else if !rest.is_empty() {
            return Err(DateError::Format);
        }
        let long = text.len() >= 3;
        let of_date = known & DATE;
        if text.len() == 3 && of_date == YEAR && (1..=366).contains(&value) {
            self.day_of_year = value;
            return Ok(DAY_OF_YEAR | MONTH | DAY);
        }
        let year_first = long || order == DateOrder::Ymd;
        let part = match of_date {
            0 if year_first => YEAR,
            0 if order == DateOrder::Dmy => DAY,
            0 => MONTH,
            YEAR | DAY => MONTH,
            MONTH if text_month && year_first => YEAR,
            MONTH => DAY,
            _ if of_date == YEAR | MONTH => {
                if text_month && long && self.short_year {
                    // DD-MON-YYYY, although the order is YMD: the first number was the day.
                    (self.day, self.year, self.short_year) = (self.year, value, false);
                    return Ok(DAY);
                }
                DAY
            }
            _ if of_date == MONTH | DAY => YEAR,
            DATE => return self.run_together(text, known),
            _ => return Err(DateError::Format),
        };
        match part {
            YEAR => (self.year, self.short_year) = (value, text.len() <= 2),
            MONTH => self.month = value,
            _ => self.day = value,
        }
        Ok(part)
    }

    /// Sets a date or time whose parts are not separated: `20240229`, `040506.789`, `0405`.
    pub(super) fn run_together(&mut self, text: &str, known: Mask) -> Result<Mask> {
        let mut digits = text;
        if let Some(at) = text.find('.') {
            let (whole, decimals) = text.split_at_checked(at).unwrap_or((text, ""));
            let end =
                1 + split_while(decimals.get(1..).unwrap_or_default(), |b| b.is_ascii_digit())
                    .0
                    .len();
            self.micros = fraction_us(decimals.get(..end).unwrap_or_default())?;
            digits = whole;
        } else if known & DATE != DATE && text.len() >= 6 {
            let tail = |from: usize, to: usize| {
                leading_int(text.get(text.len() - from..text.len() - to).unwrap_or_default())
            };
            (self.day, self.month) = (tail(2, 0), tail(4, 2));
            self.year = leading_int(text.get(..text.len() - 4).unwrap_or_default());
            self.short_year |= text.len() == 6;
            return Ok(DATE);
        }
        if known & TIME == TIME || !matches!(digits.len(), 4 | 6) {
            return Err(DateError::Format);
        }
        let two = |at: usize| leading_int(digits.get(at..at + 2).unwrap_or_default());
        (self.hour, self.minute, self.second) = (two(0), two(2), two(4));
        Ok(TIME)
    }

    /// Corrects the year, finds the date of a day of the year, and checks the date as far as it is
    /// known.
    pub(super) fn validate(
        &mut self,
        known: Mask,
        julian: bool,
        before_christ: bool,
    ) -> Result<()> {
        if known & YEAR != 0 && !julian {
            match self.year {
                1.. if before_christ => self.year = 1 - self.year,
                0..70 if self.short_year && !before_christ => self.year += 2000,
                70..100 if self.short_year && !before_christ => self.year += 1900,
                1.. => {}
                _ => return Err(DateError::FieldOverflow),
            }
        }
        if known & DAY_OF_YEAR != 0 {
            self.set_day(days(self.year.into(), 1, 1) + i64::from(self.day_of_year) - 1);
        }
        let month_is_wrong = known & MONTH != 0 && !(1..=12).contains(&self.month);
        if month_is_wrong || known & DAY != 0 && !(1..=31).contains(&self.day) {
            return Err(DateError::DateOrder);
        }
        let last = || days_of_month(self.year.into(), self.month as u32);
        if known & DATE == DATE && self.day as u32 > last() {
            return Err(DateError::FieldOverflow);
        }
        Ok(())
    }
}
