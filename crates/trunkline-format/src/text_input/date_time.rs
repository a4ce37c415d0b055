//! `date`, `time`, `timetz`, `timestamp` and `timestamptz`.
//!
//! For example, `2024-02-29 12:00+01`, `Feb 29, 2024 12:00 PM CET`
//! and `20240229T120000+0100` are the same timestamptz.
//!
//! Mirrors PostgreSQL's `utils/adt/date.c` and `utils/adt/timestamp.c`.

use super::date_decode::{self, Decoded};
use super::date_fields::{DateError, Field, split};
use super::date_parts::{DAY_US, Parts, SECOND_US};
use super::date_words::Special;
use super::error::InputError;
use super::options::InputOptions;

/// The sizes of the server's buffers: `MAXDATELEN` and some more.
const DATE_SIZE: usize = 129;
const TIMESTAMP_SIZE: usize = 153;
/// 1970-01-01, in days since 2000-01-01.
const UNIX_EPOCH: i32 = -10_957;
/// The first day: 4714-11-24 BC.
pub(crate) const FIRST_DATE: i64 = -2_451_545;
/// One past the last date, 5874897-12-31.
pub(crate) const DATE_END: i64 = 2_145_031_949;
/// One past the last timestamp: 294277-01-01.
pub(crate) const TIMESTAMP_END: i64 = 9_223_371_331_200_000_000;
/// The first timestamp.
pub(crate) const FIRST_TIMESTAMP: i64 = FIRST_DATE * DAY_US;
/// The most decimals of a second.
const DECIMALS_MAX: i32 = 6;

fn fields(text: &str, size: usize, major: u32) -> Result<Vec<Field>, DateError> {
    split(text, size, major)
}

/// A `date`: days since 2000-01-01.
pub(super) fn date(text: &str, options: &InputOptions<'_>) -> Result<i32, InputError> {
    let decoded = fields(text, DATE_SIZE, options.major)
        .and_then(|fields| date_decode::date_time(&fields, options));
    let parts = match decoded.map_err(|error| error.explain("date", text, options.major))? {
        Decoded::Special(Special::Infinity) => return Ok(i32::MAX),
        Decoded::Special(Special::MinusInfinity) => return Ok(i32::MIN),
        Decoded::Special(_) => return Ok(UNIX_EPOCH),
        Decoded::Parts(parts, _) => parts,
    };
    let day = parts.day_number().filter(|day| (FIRST_DATE..DATE_END).contains(day));
    let message = || format!("date out of range: \"{text}\"");
    day.map(|day| day as i32).ok_or_else(|| InputError::new("22008", message()))
}

/// A `timestamp`, or a `timestamptz` if `with_zone`: microseconds since 2000-01-01, in UTC.
pub(super) fn timestamp(
    text: &str,
    with_zone: bool,
    typmod: i32,
    options: &InputOptions<'_>,
) -> Result<i64, InputError> {
    let name = if with_zone { "timestamp with time zone" } else { "timestamp" };
    let decoded = fields(text, TIMESTAMP_SIZE, options.major)
        .and_then(|fields| date_decode::date_time(&fields, options));
    let micros = match decoded.map_err(|error| error.explain(name, text, options.major))? {
        Decoded::Special(Special::Infinity) => return Ok(i64::MAX),
        Decoded::Special(Special::MinusInfinity) => return Ok(i64::MIN),
        Decoded::Special(_) => i64::from(UNIX_EPOCH) * DAY_US,
        Decoded::Parts(parts, west) => {
            let message = || format!("timestamp out of range: \"{text}\"");
            instant(&parts, if with_zone { west } else { 0 })
                .ok_or_else(|| InputError::new("22008", message()))?
        }
    };
    Ok(round(micros, typmod))
}

/// A `timestamptz`: microseconds since 2000-01-01 00:00 UTC. `i64::MAX` and `i64::MIN` stand for
/// `infinity` and `-infinity`.
///
/// # Errors
///
/// [`InputError`], with the server's SQLSTATE and message.
pub fn timestamptz(text: &str, options: &InputOptions<'_>) -> Result<i64, InputError> {
    timestamp(text, true, -1, options)
}

fn instant(parts: &Parts, west: i32) -> Option<i64> {
    let local = parts.day_number()?.checked_mul(DAY_US)?.checked_add(parts.time_us())?;
    let micros = local.checked_add(i64::from(west) * SECOND_US)?;
    (FIRST_TIMESTAMP..TIMESTAMP_END).contains(&micros).then_some(micros)
}

/// Rounds to the decimals of a type modifier, halves away from zero (`AdjustTimestampForTypmod`).
pub(crate) fn round(micros: i64, typmod: i32) -> i64 {
    let Some(decimals) = (0..DECIMALS_MAX).contains(&typmod).then_some(typmod.unsigned_abs())
    else {
        return micros;
    };
    if matches!(micros, i64::MIN | i64::MAX) {
        return micros;
    }
    let scale = 10_i64.pow(6 - decimals);
    let rounded = (micros.unsigned_abs() as i64).saturating_add(scale / 2) / scale * scale;
    if micros < 0 { -rounded } else { rounded }
}

/// A `time`: microseconds since midnight.
pub(super) fn time(text: &str, typmod: i32, options: &InputOptions<'_>) -> Result<i64, InputError> {
    let (parts, _) = time_parts(text, "time", options)?;
    Ok(round(parts.time_us(), typmod))
}

/// A `timetz`: microseconds since midnight, and the offset in seconds west of UTC.
pub(super) fn timetz(
    text: &str,
    typmod: i32,
    options: &InputOptions<'_>,
) -> Result<(i64, i32), InputError> {
    let (parts, west) = time_parts(text, "time with time zone", options)?;
    Ok((round(parts.time_us(), typmod), west))
}

fn time_parts(
    text: &str,
    type_name: &str,
    options: &InputOptions<'_>,
) -> Result<(Parts, i32), InputError> {
    fields(text, DATE_SIZE, options.major)
        .and_then(|fields| date_decode::time_only(&fields, options))
        .map_err(|error| error.explain(type_name, text, options.major))
}
