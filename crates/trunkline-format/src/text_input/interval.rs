//! `interval`: `1 year 2 mons -3 days 04:05:06`, `1-2 3 4:05:06` as in standard SQL, and the format
//! with designators of ISO 8601, `P1Y2M-3DT4H5M6S`, which is in another module.
//!
//! The fields are read from right to left, because a unit follows its number. A fraction of a unit
//! is carried to the smaller ones: `1.5 months` is `1 mon 15 days`.
//!
//! Mirrors `DecodeInterval` of PostgreSQL's `utils/adt/datetime.c`, and `interval_in` of
//! `utils/adt/timestamp.c`.

use super::c_text::{first, signed, signed_32};
use super::date_fields::{DateError, Field, FieldKind, split};
use super::date_parts::{SECOND_US, clock, fraction};
use super::date_words::{Special, Unit, Word, date_word, unit};
use super::error::InputError;
use super::interval_iso;
use super::interval_sum::IntervalSum;
use super::options::InputOptions;
use crate::text_output::IntervalStyle;

/// The size of the server's buffer.
const SIZE: usize = 256;
/// The first version with infinite intervals. It also accepts `ago` only at the end, and no unit
/// without a number.
const STRICT_SINCE: u32 = 17;

/// The bits of a type modifier's range.
const MONTH: u32 = 1 << 1;
const YEAR: u32 = 1 << 2;
const DAY: u32 = 1 << 3;
const HOUR: u32 = 1 << 10;
const MINUTE: u32 = 1 << 11;
const SECOND: u32 = 1 << 12;
/// `INTERVAL_FULL_RANGE`.
const FULL_RANGE: u32 = 0x7FFF;
/// `INTERVAL_FULL_PRECISION`.
const FULL_PRECISION: u32 = 0xFFFF;

/// Microseconds, days and months, as values store them.
pub(crate) type Interval = (i64, i32, i32);

/// An `interval`.
pub(super) fn interval(
    text: &str,
    typmod: i32,
    options: &InputOptions<'_>,
) -> Result<Interval, InputError> {
    let range = if typmod >= 0 { typmod as u32 >> 16 & FULL_RANGE } else { FULL_RANGE };
    let decoded = split(text, SIZE, options.major)
        .and_then(|fields| decode(&fields, range, options))
        .or_else(|error| match error {
            DateError::Format => interval_iso::decode(text).map(Decoded::Sum),
            other => Err(other),
        });
    let sum = match decoded {
        Ok(Decoded::Infinity) => return Ok((i64::MAX, i32::MAX, i32::MAX)),
        Ok(Decoded::MinusInfinity) => return Ok((i64::MIN, i32::MIN, i32::MIN)),
        Ok(Decoded::Sum(sum)) => sum,
        Err(DateError::FieldOverflow) => {
            let message = format!("interval field value out of range: \"{text}\"");
            return Err(InputError::new("22015", message));
        }
        Err(other) => return Err(other.explain("interval", text, options.major)),
    };
    let out_of_range = || InputError::new("22008", "interval out of range");
    let value = sum.interval().ok_or_else(out_of_range)?;
    adjust(value, typmod).ok_or_else(out_of_range)
}

enum Decoded {
    Sum(IntervalSum),
    Infinity,
    MinusInfinity,
}

/// The unit of the rightmost number if it has none.
fn default_unit(range: u32) -> Unit {
    match range {
        YEAR => Unit::Year,
        _ if range & !(YEAR | MONTH) == 0 => Unit::Month,
        DAY => Unit::Day,
        _ if range & !(DAY | HOUR) == 0 => Unit::Hour,
        _ if range & !(DAY | HOUR | MINUTE) == 0 => Unit::Minute,
        _ => Unit::Second,
    }
}

/// The bit that stands for a unit, so that no unit is given twice.
fn unit_bit(unit: Unit) -> u32 {
    match unit {
        Unit::Microsecond => 1 << 14,
        Unit::Millisecond => 1 << 13,
        Unit::Second => SECOND,
        Unit::Minute => MINUTE,
        Unit::Hour => HOUR,
        Unit::Day => DAY,
        Unit::Week => 1 << 24,
        Unit::Month => MONTH,
        Unit::Year => YEAR,
        Unit::Decade => 1 << 25,
        Unit::Century => 1 << 26,
        Unit::Millennium => 1 << 27,
        Unit::Julian | Unit::Other => 0,
    }
}

/// The number of a field that isn't a time, and the unit it must have if it is `years-months`.
fn number(text: &str) -> Result<(i64, f64, Option<Unit>), DateError> {
    let overflow = || DateError::FieldOverflow;
    let (value, rest) = signed(text);
    let value = value.ok_or_else(overflow)?;
    let negative = text.starts_with('-');
    match first(rest) {
        0 => Ok((value, 0.0, None)),
        b'-' => {
            let (months, rest) = signed_32(rest.get(1..).unwrap_or_default());
            let months = months.filter(|months| (0..12).contains(months)).ok_or_else(overflow)?;
            if !rest.is_empty() {
                return Err(DateError::Format);
            }
            let months = i64::from(if negative { -months } else { months });
            let value = value.checked_mul(12).and_then(|value| value.checked_add(months));
            Ok((value.ok_or_else(overflow)?, 0.0, Some(Unit::Month)))
        }
        b'.' => {
            let decimals = fraction(rest)?;
            Ok((value, if negative { -decimals } else { decimals }, None))
        }
        _ => Err(DateError::Format),
    }
}

/// The microseconds of a field with colons, whose sign may be given.
fn time_field(text: &str, range: u32) -> Result<i64, DateError> {
    let clock = clock(text, range == MINUTE | SECOND)?;
    let overflow = DateError::FieldOverflow;
    let minutes = clock.hour.checked_mul(60).and_then(|hour| hour.checked_add(clock.minute.into()));
    let seconds =
        minutes.and_then(|minutes| minutes.checked_mul(60)?.checked_add(clock.second.into()));
    let micros =
        seconds.and_then(|all| all.checked_mul(SECOND_US)?.checked_add(clock.micros.into()));
    micros.ok_or(overflow)
}

fn decode(fields: &[Field], range: u32, options: &InputOptions<'_>) -> Result<Decoded, DateError> {
    let has_sign = |field: &Field| field.text.starts_with(['+', '-']);
    let negative_first = fields.first().is_some_and(|field| field.text.starts_with('-'));
    // In standard SQL, a minus at the start applies to all fields if no other has a sign.
    let all_negative = options.interval_style == IntervalStyle::SqlStandard
        && negative_first
        && !fields.iter().skip(1).any(has_sign);
    let mut decoder = Decoder {
        range,
        all_negative,
        unit: None,
        pending: false,
        known: 0,
        ago: false,
        sum: IntervalSum::default(),
    };
    for (at, field) in fields.iter().enumerate().rev() {
        let last = at + 1 == fields.len();
        let text = field.text.as_str();
        let mask = match field.kind {
            FieldKind::Time => decoder.time(text, false)?,
            FieldKind::Signed => match decoder.signed_time(text) {
                Some(time) => time?,
                None => decoder.number(text)?,
            },
            FieldKind::Date | FieldKind::Number => decoder.number(text)?,
            FieldKind::Word | FieldKind::SignedWord => {
                match decoder.word(text, last, options.major)? {
                    Meaning::Ignored => 0,
                    Meaning::Infinite(positive) if fields.len() == 1 => {
                        return Ok(if positive {
                            Decoded::Infinity
                        } else {
                            Decoded::MinusInfinity
                        });
                    }
                    Meaning::Infinite(_) => return Err(DateError::Format),
                }
            }
        };
        if mask & decoder.known != 0 {
            return Err(DateError::Format);
        }
        decoder.known |= mask;
    }
    if decoder.known == 0 || decoder.pending {
        return Err(DateError::Format);
    }
    if decoder.ago {
        decoder.sum = decoder.sum.negated().ok_or(DateError::FieldOverflow)?;
    }
    Ok(Decoded::Sum(decoder.sum))
}

enum Meaning {
    /// A unit, `ago`, or a word without a meaning.
    Ignored,
    /// True for plus infinity.
    Infinite(bool),
}

struct Decoder {
    range: u32,
    all_negative: bool,
    /// The unit of the next number to the left.
    unit: Option<Unit>,
    /// Whether that unit was written and has no number yet.
    pending: bool,
    known: u32,
    ago: bool,
    sum: IntervalSum,
}

impl Decoder {
    /// A time replaces the microseconds, and a number before it without a unit is days.
    fn time(&mut self, text: &str, negative: bool) -> Result<u32, DateError> {
        let micros = time_field(text, self.range)?;
        let negative = negative || self.all_negative;
        self.sum.micros = if negative { -micros } else { micros };
        (self.unit, self.pending) = (Some(Unit::Day), false);
        Ok(HOUR | MINUTE | SECOND)
    }

    /// A time with a sign. `None` if the field is not one.
    fn signed_time(&mut self, text: &str) -> Option<Result<u32, DateError>> {
        let unsigned = text.get(1..)?;
        let time = unsigned.contains(':').then(|| self.time(unsigned, text.starts_with('-')))?;
        time.is_ok().then_some(time)
    }

    fn number(&mut self, text: &str) -> Result<u32, DateError> {
        let (mut value, mut decimals, fixed_unit) = number(text)?;
        let unit = fixed_unit.or(self.unit).unwrap_or_else(|| default_unit(self.range));
        if self.all_negative {
            value = if value > 0 { -value } else { value };
            decimals = -decimals.abs();
        }
        self.sum.add(unit, value, decimals)?;
        self.pending = false;
        // A number without a unit before hours is days.
        self.unit = Some(if unit == Unit::Hour { Unit::Day } else { unit });
        let with_decimals = unit == Unit::Second && decimals != 0.0;
        let decimals = unit_bit(Unit::Millisecond) | unit_bit(Unit::Microsecond);
        Ok(unit_bit(unit) | if with_decimals { decimals } else { 0 })
    }

    fn word(&mut self, text: &str, last: bool, major: u32) -> Result<Meaning, DateError> {
        let strict = major >= STRICT_SINCE;
        if self.pending && strict {
            return Err(DateError::Format);
        }
        let word = date_word(text, major).filter(|_| strict);
        let of_dates = match word {
            Some(Word::Unit(unit)) => Some(unit),
            _ => None,
        };
        if let Some(unit) = unit(text).or(of_dates) {
            (self.unit, self.pending) = (Some(unit), strict);
            return Ok(Meaning::Ignored);
        }
        match (text, word) {
            ("ago", _) if last || !strict => {
                // A number before it without a unit has no meaning.
                (self.ago, self.unit) = (true, Some(Unit::Other));
                Ok(Meaning::Ignored)
            }
            (_, Some(Word::Ignored)) => Ok(Meaning::Ignored),
            (_, Some(Word::Special(special))) if last => match special {
                Special::Infinity => Ok(Meaning::Infinite(true)),
                Special::MinusInfinity => Ok(Meaning::Infinite(false)),
                _ => Err(DateError::Format),
            },
            _ => Err(DateError::Format),
        }
    }
}

/// Cuts a value to the fields of a type modifier, and rounds its seconds (`AdjustIntervalForTypmod`).
/// `None` if that overflows.
pub(crate) fn adjust(
    (mut micros, mut days, mut months): Interval,
    typmod: i32,
) -> Option<Interval> {
    let infinite = matches!(
        (micros, days, months),
        (i64::MAX, i32::MAX, i32::MAX) | (i64::MIN, i32::MIN, i32::MIN)
    );
    if typmod < 0 || infinite {
        return Some((micros, days, months));
    }
    let (range, precision) = (typmod as u32 >> 16 & FULL_RANGE, typmod as u32 & FULL_PRECISION);
    match range {
        YEAR => (months, days, micros) = (months / 12 * 12, 0, 0),
        _ if range & !(YEAR | MONTH) == 0 => (days, micros) = (0, 0),
        DAY => micros = 0,
        _ if range & !(DAY | HOUR) == 0 => micros -= micros % (3600 * SECOND_US),
        _ if range & !(DAY | HOUR | MINUTE) == 0 => micros -= micros % (60 * SECOND_US),
        _ => {}
    }
    if precision < 6 {
        let scale = 10_i64.pow(6 - precision);
        let half = if micros < 0 { -(scale / 2) } else { scale / 2 };
        micros = micros.checked_add(half)?;
        micros -= micros % scale;
    }
    Some((micros, days, months))
}
