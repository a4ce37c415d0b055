//! Names of fields, as in `extract(month from …)` and `date_trunc('hour', …)`.
//!
//! ```text
//!   month = mon = months     microseconds = microsecon = us     century = c
//! ```
//!
//! Only the first ten letters of a name count, as in the server's keyword tables (`TOKMAXLEN`).
//!
//! Mirrors `DecodeUnits` and `DecodeSpecial` of PostgreSQL's `utils/adt/datetime.c`.

use super::error::invalid;
use crate::error::SqlError;

/// The letters of a name that count.
const LETTERS_MAX: usize = 10;
/// `NAMEDATALEN` without the final NUL: names are cut to this length, in bytes.
const NAME_MAX: usize = 63;

/// A field of a date, a time or an interval.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Unit {
    Microsecond,
    Millisecond,
    Second,
    Minute,
    Hour,
    Day,
    Week,
    Month,
    Quarter,
    Year,
    Decade,
    Century,
    Millennium,
    Zone,
    ZoneHour,
    ZoneMinute,
    DayOfWeek,
    IsoDayOfWeek,
    DayOfYear,
    IsoYear,
    Julian,
    Epoch,
    /// A word such as `today` that stands for a date, and is not a field.
    OtherWord,
}

/// A field's name in lower case, as messages show it.
pub(super) fn lower(name: &str) -> String {
    let mut lower = name.to_ascii_lowercase();
    let cut = (0..=NAME_MAX.min(lower.len())).rev().find(|&at| lower.is_char_boundary(at));
    lower.truncate(cut.unwrap_or_default());
    lower
}

fn first_letters(name: &str) -> &str {
    name.get(..LETTERS_MAX).unwrap_or(name)
}

/// The field of an interval that a name in lower case stands for.
pub(super) fn interval_unit(name: &str) -> Option<Unit> {
    Some(match first_letters(name) {
        "microsecon" | "us" | "usec" | "usecond" | "useconds" | "usecs" => Unit::Microsecond,
        "millisecon" | "ms" | "msec" | "msecond" | "mseconds" | "msecs" => Unit::Millisecond,
        "s" | "sec" | "second" | "seconds" | "secs" => Unit::Second,
        "m" | "min" | "mins" | "minute" | "minutes" => Unit::Minute,
        "h" | "hour" | "hours" | "hr" | "hrs" => Unit::Hour,
        "d" | "day" | "days" => Unit::Day,
        "w" | "week" | "weeks" => Unit::Week,
        "mon" | "mons" | "month" | "months" => Unit::Month,
        "qtr" | "quarter" => Unit::Quarter,
        "y" | "year" | "years" | "yr" | "yrs" => Unit::Year,
        "dec" | "decade" | "decades" | "decs" => Unit::Decade,
        "c" | "cent" | "centuries" | "century" => Unit::Century,
        "mil" | "millennia" | "millennium" | "mils" => Unit::Millennium,
        "timezone" => Unit::Zone,
        "timezone_h" => Unit::ZoneHour,
        "timezone_m" => Unit::ZoneMinute,
        _ => return None,
    })
}

/// The field of a date or an interval that a name in lower case stands for.
pub(super) fn any_unit(name: &str) -> Option<Unit> {
    interval_unit(name).or_else(|| {
        Some(match first_letters(name) {
            "dow" => Unit::DayOfWeek,
            "isodow" => Unit::IsoDayOfWeek,
            "doy" => Unit::DayOfYear,
            "isoyear" => Unit::IsoYear,
            "j" | "jd" | "julian" => Unit::Julian,
            "mm" => Unit::Minute,
            "epoch" => Unit::Epoch,
            "-infinity" | "allballs" | "infinity" | "now" | "today" | "tomorrow" | "yesterday" => {
                Unit::OtherWord
            }
            _ => return None,
        })
    })
}

/// The field that a name stands for, if a type has such fields.
///
/// # Errors
/// 22023: there is no such field.
pub(super) fn recognize(
    name: &str,
    find: fn(&str) -> Option<Unit>,
    type_name: &str,
) -> Result<Unit, SqlError> {
    find(&lower(name)).ok_or_else(|| not_recognized(name, type_name))
}

/// 22023: there is no such field.
pub(super) fn not_recognized(name: &str, type_name: &str) -> SqlError {
    invalid(format!("unit \"{}\" not recognized for type {type_name}", lower(name)))
}

/// 0A000: the type doesn't have this field.
pub(super) fn unsupported(name: &str, type_name: &str) -> SqlError {
    SqlError::unsupported(format!("unit \"{}\" not supported for type {type_name}", lower(name)))
}
