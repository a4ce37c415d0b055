//! `date`, `time`, `timetz`, `timestamp` and `timestamptz`, in the ISO style.
//!
//! Dates and timestamps are stored as the number of days or microseconds since 2000-01-01
//! (`POSTGRES_EPOCH_JDATE`). We use the proleptic Gregorian calendar, in which 1 BC is followed by
//! year 1. A timestamptz is stored in UTC, without the time zone it was entered in. It is printed
//! in the time zone given in the options.
//!
//! Mirrors `EncodeDateTime` and `EncodeTimeOnly` of PostgreSQL's `utils/adt/datetime.c`.

use super::digits;
use super::error::ValueError;
use super::options::TimeZone;
use crate::calendar::{
    DAY_US as DAY, FIRST_DATE, FIRST_TIMESTAMP, LAST_DATE, TIMESTAMP_END, UNIX_TO_2000_S, civil,
};

/// `MAX_TZDISP_HOUR` is 15, so an offset from UTC is always less than 16 hours.
const ZONE_END_S: i32 = 16 * 3600;

/// Writes `yyyy-mm-dd`. Returns true if the year is BC.
#[inline]
fn write_date(day: i64, out: &mut Vec<u8>) -> bool {
    let (year, month, day) = civil(day);
    let shown = if year > 0 { year } else { 1 - year };
    if shown < 10_000 {
        let text = digits::text(digits::eight(shown as u32 * 10_000 + month * 100 + day));
        let (year, month, day) = (text & 0xFFFF_FFFF, text >> 32 & 0xFFFF, text >> 48);
        let minus = u64::from(b'-');
        let most = year | minus << 32 | month << 40 | minus << 56;
        out.extend_from_slice(&most.to_le_bytes());
        out.extend_from_slice(&(day as u16).to_le_bytes());
    } else {
        digits::unsigned(shown.unsigned_abs(), out);
        out.push(b'-');
        digits::two(month, out);
        out.push(b'-');
        digits::two(day, out);
    }
    year <= 0
}

/// `hh:mm:ss` and the fraction.
#[inline]
fn write_time(micros: i64, out: &mut Vec<u8>) {
    let seconds = (micros / 1_000_000) as u32;
    let (minutes, hours) = (seconds / 60, seconds / 3600);
    let text = digits::eight(hours * 10_000 + minutes % 60 * 100 + seconds % 60);
    let text = digits::text(text) >> 16;
    let (hours, minutes, seconds) = (text & 0xFFFF, text >> 16 & 0xFFFF, text >> 32);
    let colon = u64::from(b':');
    let text = hours | colon << 16 | minutes << 24 | colon << 40 | seconds << 48;
    out.extend_from_slice(&text.to_le_bytes());
    digits::fraction((micros % 1_000_000) as u32, out);
}

/// `+hh`, followed by nonzero minutes and seconds. `east` is in seconds.
fn write_zone(east: i32, out: &mut Vec<u8>) {
    out.push(if east < 0 { b'-' } else { b'+' });
    let seconds = east.unsigned_abs();
    digits::padded(u64::from(seconds / 3600), 2, out);
    if !seconds.is_multiple_of(3600) {
        out.push(b':');
        digits::two(seconds / 60 % 60, out);
    }
    if !seconds.is_multiple_of(60) {
        out.push(b':');
        digits::two(seconds % 60, out);
    }
}

fn infinite(positive: bool, out: &mut Vec<u8>) {
    out.extend_from_slice(if positive { b"infinity" } else { b"-infinity" });
}

const fn out_of_range(type_name: &'static str) -> ValueError {
    ValueError::Malformed { type_name, what: "out of range" }
}

/// A date: days since 2000-01-01.
pub(super) fn date(day: i32, out: &mut Vec<u8>) -> Result<(), ValueError> {
    match day {
        i32::MIN | i32::MAX => infinite(day > 0, out),
        FIRST_DATE..=LAST_DATE => {
            if write_date(i64::from(day), out) {
                out.extend_from_slice(b" BC");
            }
        }
        _ => return Err(out_of_range("date")),
    }
    Ok(())
}

/// A time: microseconds since midnight, 24:00:00 included.
pub(super) fn time(micros: i64, out: &mut Vec<u8>) -> Result<(), ValueError> {
    if !(0..=DAY).contains(&micros) {
        return Err(out_of_range("time"));
    }
    write_time(micros, out);
    Ok(())
}

/// A time and its zone in seconds west of UTC.
pub(super) fn timetz(micros: i64, west: i32, out: &mut Vec<u8>) -> Result<(), ValueError> {
    if !(0..=DAY).contains(&micros) || west <= -ZONE_END_S || west >= ZONE_END_S {
        return Err(out_of_range("timetz"));
    }
    write_time(micros, out);
    write_zone(-west, out);
    Ok(())
}

/// A timestamp: microseconds since 2000-01-01.
#[inline]
pub(super) fn timestamp(micros: i64, out: &mut Vec<u8>) -> Result<(), ValueError> {
    stamp(micros, None, "timestamp", out)
}

/// A timestamptz, converted to `zone`.
#[inline]
pub(super) fn timestamptz(
    micros: i64,
    zone: &dyn TimeZone,
    out: &mut Vec<u8>,
) -> Result<(), ValueError> {
    stamp(micros, Some(zone), "timestamptz", out)
}

fn stamp(
    micros: i64,
    zone: Option<&dyn TimeZone>,
    type_name: &'static str,
    out: &mut Vec<u8>,
) -> Result<(), ValueError> {
    if micros == i64::MIN || micros == i64::MAX {
        infinite(micros > 0, out);
        return Ok(());
    }
    if !(FIRST_TIMESTAMP..TIMESTAMP_END).contains(&micros) {
        return Err(out_of_range(type_name));
    }
    let east = zone.map(|zone| zone.offset_s(micros.div_euclid(1_000_000) + UNIX_TO_2000_S));
    let local = micros + i64::from(east.unwrap_or(0)) * 1_000_000;
    let before_christ = write_date(local.div_euclid(DAY), out);
    out.push(b' ');
    write_time(local.rem_euclid(DAY), out);
    if let Some(east) = east {
        write_zone(east, out);
    }
    if before_christ {
        out.extend_from_slice(b" BC");
    }
    Ok(())
}
