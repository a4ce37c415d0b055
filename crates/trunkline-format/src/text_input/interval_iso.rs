//! Intervals in the two formats of ISO 8601: `P1Y2M3DT4H5M6S`, and `P0001-02-03T04:05:06`.
//!
//! Mirrors `DecodeISO8601Interval` of PostgreSQL's `utils/adt/datetime.c`. As there, any number can
//! have decimals, and weeks can be combined with other units.

use super::c_text::{first, float_length, split_while};
use super::date_fields::DateError;
use super::date_words::Unit;
use super::interval_sum::IntervalSum;

/// The largest number accepted, so that its integral part is exact.
const NUMBER_MAX: f64 = 1e15;

/// A number at the start of the text: its integral part, its fraction, and the text after it.
fn number(text: &str) -> Result<(i64, f64, &str), DateError> {
    if !matches!(first(text), b'0'..=b'9' | b'-' | b'.') {
        return Err(DateError::Format);
    }
    let (digits, rest) = text.split_at_checked(float_length(text)).ok_or(DateError::Format)?;
    let value: f64 = digits.parse().map_err(|_| DateError::Format)?;
    if value.abs() > NUMBER_MAX {
        // The server's `strtod` reports the same error for numbers beyond the range of float8.
        return Err(if value.is_infinite() { DateError::Format } else { DateError::FieldOverflow });
    }
    let whole = value.trunc();
    Ok((whole as i64, value - whole, rest))
}

/// The unit of a designator, in the part for dates or for times.
fn designated(designator: u8, in_date: bool) -> Option<Unit> {
    Some(match (designator, in_date) {
        (b'Y', true) => Unit::Year,
        (b'M', true) => Unit::Month,
        (b'W', true) => Unit::Week,
        (b'D', true) => Unit::Day,
        (b'H', false) => Unit::Hour,
        (b'M', false) => Unit::Minute,
        (b'S', false) => Unit::Second,
        _ => return None,
    })
}

/// Parses an interval.
pub(super) fn decode(text: &str) -> Result<IntervalSum, DateError> {
    let mut rest =
        text.strip_prefix('P').filter(|rest| !rest.is_empty()).ok_or(DateError::Format)?;
    let mut sum = IntervalSum::default();
    let (mut in_date, mut have_field) = (true, false);
    while !rest.is_empty() {
        if let Some(after) = rest.strip_prefix('T') {
            (in_date, have_field, rest) = (false, false, after);
            continue;
        }
        let field = rest;
        let (value, decimals, after) = number(field)?;
        let designator = first(after);
        if let Some(unit) = designated(designator, in_date) {
            sum.add(unit, value, decimals)?;
            (rest, have_field) = (after.get(1..).unwrap_or_default(), true);
            continue;
        }
        let ends = [if in_date { b'T' } else { 0 }, 0, if in_date { b'-' } else { b':' }];
        if !ends.contains(&designator) || have_field {
            return Err(DateError::Format);
        }
        let whole = (value, decimals);
        rest = match in_date {
            true => alternative_date(&mut sum, field, whole, after)?,
            false => alternative_time(&mut sum, field, whole, after)?,
        };
        // Only a time can follow.
        if !in_date {
            return Ok(sum);
        }
    }
    Ok(sum)
}

/// The number of digits of a field, without its sign and decimals.
fn width(field: &str) -> usize {
    split_while(field.strip_prefix('-').unwrap_or(field), |byte| byte.is_ascii_digit()).0.len()
}

/// `yyyymmdd`, `yyyy`, `yyyy-mm` or `yyyy-mm-dd`. Returns the text from the `T` that follows.
fn alternative_date<'a>(
    sum: &mut IntervalSum,
    field: &str,
    (value, decimals): (i64, f64),
    rest: &'a str,
) -> Result<&'a str, DateError> {
    if width(field) == 8 && !rest.starts_with('-') {
        sum.add(Unit::Year, value / 10_000, 0.0)?;
        sum.add(Unit::Month, value / 100 % 100, 0.0)?;
        sum.add(Unit::Day, value % 100, decimals)?;
        return Ok(rest);
    }
    sum.add(Unit::Year, value, decimals)?;
    let mut rest = rest;
    for unit in [Unit::Month, Unit::Day] {
        let Some(after) = rest.strip_prefix('-') else { break };
        let (value, decimals, after) = number(after)?;
        sum.add(unit, value, decimals)?;
        rest = after;
    }
    if rest.is_empty() || rest.starts_with('T') { Ok(rest) } else { Err(DateError::Format) }
}

/// `hhmmss`, `hh`, `hh:mm` or `hh:mm:ss`, to the end of the text.
fn alternative_time<'a>(
    sum: &mut IntervalSum,
    field: &str,
    (value, decimals): (i64, f64),
    rest: &'a str,
) -> Result<&'a str, DateError> {
    if width(field) == 6 && rest.is_empty() {
        sum.add(Unit::Hour, value / 10_000, 0.0)?;
        sum.add(Unit::Minute, value / 100 % 100, 0.0)?;
        sum.add(Unit::Second, value % 100, 0.0)?;
        sum.add(Unit::Microsecond, 0, decimals)?;
        return Ok(rest);
    }
    sum.add(Unit::Hour, value, decimals)?;
    let mut rest = rest;
    for unit in [Unit::Minute, Unit::Second] {
        let Some(after) = rest.strip_prefix(':') else { break };
        let (value, decimals, after) = number(after)?;
        sum.add(unit, value, decimals)?;
        rest = after;
    }
    if rest.is_empty() { Ok(rest) } else { Err(DateError::Format) }
}
