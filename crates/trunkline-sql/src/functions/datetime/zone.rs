//! Time zones that are named in a query, as in `AT TIME ZONE 'Europe/Berlin'`.
//!
//! A zone is the name of one in the time zone database, in any case, or a POSIX rule. In a POSIX rule,
//! offsets count to the west: `'UTC+3'` and `'+3'` are three hours *behind* UTC.
//!
//! Mirrors `DecodeTimezoneName` of PostgreSQL's `utils/adt/datetime.c`, and `pg_tzset` of
//! `timezone/pgtz.c`.

use std::sync::Arc;

use trunkline_engine::time_zone::zone;
use trunkline_format::text_output::{Base, TimeZone, Type, write_text};

use super::super::call::CallSettings;
use super::error::invalid;
use super::interval::Interval;
use super::timestamp::SECOND_US;
use crate::error::SqlError;

/// Looks up zones by name and keeps the last one, because the name is usually the same in all rows.
#[derive(Default)]
pub(super) struct ZoneCache(Option<(String, Arc<dyn TimeZone>)>);

impl ZoneCache {
    /// The zone with this name.
    ///
    /// # Errors
    /// 22023: there is no such zone.
    pub(super) fn named(&mut self, name: &str) -> Result<Arc<dyn TimeZone>, SqlError> {
        if let Some((known, zone)) = &self.0
            && known == name
        {
            return Ok(Arc::clone(zone));
        }
        let zone = find(name)?;
        self.0 = Some((name.to_owned(), Arc::clone(&zone)));
        Ok(zone)
    }
}

fn find(name: &str) -> Result<Arc<dyn TimeZone>, SqlError> {
    let is_abbreviation = name.len() <= 6 && name.bytes().all(|byte| byte.is_ascii_alphabetic());
    if is_abbreviation && !["utc", "gmt"].contains(&&*name.to_ascii_lowercase()) {
        let what = format!("the time zone abbreviation \"{name}\" is not supported by trunkline");
        return Err(SqlError::unsupported(what));
    }
    let found = fixed_rule(name).or_else(|| zone(name));
    found.ok_or_else(|| invalid(format!("time zone \"{name}\" not recognized")))
}

/// An offset that is always the same.
#[derive(Debug, Clone)]
pub(super) struct FixedOffset {
    /// Seconds east of UTC.
    pub(super) east_s: i32,
    abbreviation: String,
}

impl TimeZone for FixedOffset {
    fn offset_s(&self, _unix_s: i64) -> i32 {
        self.east_s
    }

    fn abbreviation(&self, _unix_s: i64) -> String {
        self.abbreviation.clone()
    }
}

/// A POSIX rule that is an abbreviation, which may be empty, and an offset: `UTC+3`, `-05:30`.
fn fixed_rule(name: &str) -> Option<Arc<dyn TimeZone>> {
    let start = name.find(|c: char| c.is_ascii_digit() || c == '+' || c == '-')?;
    let (abbreviation, offset) = name.split_at(start);
    if !abbreviation.bytes().all(|byte| byte.is_ascii_alphabetic()) {
        return None;
    }
    let (sign, digits) = match offset.strip_prefix('-') {
        Some(digits) => (1, digits),
        None => (-1, offset.strip_prefix('+').unwrap_or(offset)),
    };
    let mut seconds = 0;
    let limits = [(24 * 7 - 1, 3600), (59, 60), (60, 1)];
    let parts: Vec<_> = digits.split(':').collect();
    if parts.len() > limits.len() {
        return None;
    }
    for (part, (largest, unit)) in parts.iter().zip(limits) {
        let is_number = !part.is_empty() && part.bytes().all(|byte| byte.is_ascii_digit());
        let number = is_number.then(|| part.parse::<i32>().ok()).flatten()?;
        seconds += Some(number).filter(|number| *number <= largest)? * unit;
    }
    let abbreviation = abbreviation.to_ascii_uppercase();
    Some(Arc::new(FixedOffset { east_s: sign * seconds, abbreviation }))
}

/// The offset that a text such as `+02`, `-0530` or `+05:30:15` states, in seconds east; `None` if it
/// isn't of this form.
///
/// # Errors
/// 22023: the offset is too large.
pub(super) fn numeric_offset(text: &str) -> Result<Option<i32>, SqlError> {
    /// `MAX_TZDISP_HOUR`.
    const HOURS_MAX: i32 = 15;
    let Some(digits) = text.strip_prefix(['+', '-']) else { return Ok(None) };
    let parts: Option<Vec<i32>> = digits.split(':').map(|part| part.parse().ok()).collect();
    let (hours, minutes, seconds) = match parts.as_deref() {
        Some([packed]) if digits.len() > 2 => (packed / 100, packed % 100, 0),
        Some([hours]) => (*hours, 0, 0),
        Some([hours, minutes]) => (*hours, *minutes, 0),
        Some([hours, minutes, seconds]) => (*hours, *minutes, *seconds),
        _ => return Ok(None),
    };
    let ranges = [(hours, HOURS_MAX), (minutes, 59), (seconds, 59)];
    if ranges.iter().any(|&(part, largest)| part < 0 || part > largest) {
        return Err(invalid(format!("numeric time zone \"{text}\" out of range")));
    }
    let total = (hours * 60 + minutes) * 60 + seconds;
    Ok(Some(if text.starts_with('-') { -total } else { total }))
}

/// The offset that an interval stands for, as in `AT TIME ZONE interval '2 hours'`: seconds east.
///
/// # Errors
/// 22023: the interval has days or months, or is infinite.
pub(super) fn interval_offset(span: Interval, settings: &CallSettings) -> Result<i64, SqlError> {
    let text = || interval_text(span, settings);
    if span.infinity(settings.major).is_some() {
        return Err(invalid(format!("interval time zone \"{}\" must be finite", text()?)));
    }
    if span.months != 0 || span.days != 0 {
        let text = text()?;
        let what = format!("interval time zone \"{text}\" must not include months or days");
        return Err(invalid(what));
    }
    Ok(span.micros / SECOND_US)
}

/// An interval in the style of the session.
fn interval_text(span: Interval, settings: &CallSettings) -> Result<String, SqlError> {
    let ty = Type::Base(Base::Interval);
    let mut out = Vec::new();
    write_text(&ty, &span.to_bytes(), &settings.text_options(), &mut out)
        .map_err(|error| SqlError::internal(error.to_string()))?;
    Ok(String::from_utf8_lossy(&out).into_owned())
}
