//! `interval` in the four styles of the setting `IntervalStyle`.
//!
//! An interval has three fields, for months, days and microseconds, and each of them can be
//! positive or negative. They are never converted to one another, because not all months are the
//! same length, and a day isn't 24 hours long when daylight saving time begins or ends. Since
//! PostgreSQL 17, an interval can also be infinite. It is then stored with all three fields set to
//! their maximum, or to their minimum for minus infinity.
//!
//! Mirrors `EncodeInterval` of PostgreSQL's `utils/adt/datetime.c`.

use super::digits;
use super::options::IntervalStyle;

/// The first version that supports infinite intervals.
const INFINITE_SINCE: u32 = 17;

/// The fields to print. Years and months always have the same sign. The same is true of hours,
/// minutes, seconds and microseconds.
struct Fields {
    years: i64,
    months: i64,
    days: i64,
    hours: i64,
    minutes: i64,
    seconds: i64,
    /// The fraction of a second, in microseconds.
    micros: i64,
}

impl Fields {
    fn new(micros: i64, days: i32, months: i32) -> Self {
        const HOUR: i64 = 3_600_000_000;
        const MINUTE: i64 = 60_000_000;
        Self {
            years: i64::from(months / 12),
            months: i64::from(months % 12),
            days: i64::from(days),
            hours: micros / HOUR,
            minutes: micros % HOUR / MINUTE,
            seconds: micros % MINUTE / 1_000_000,
            micros: micros % 1_000_000,
        }
    }

    fn calendar(&self) -> [i64; 3] {
        [self.years, self.months, self.days]
    }

    fn clock(&self) -> [i64; 4] {
        [self.hours, self.minutes, self.seconds, self.micros]
    }

    fn any(&self, test: impl Fn(i64) -> bool) -> bool {
        self.calendar().into_iter().chain(self.clock()).any(test)
    }

    fn clock_is_negative(&self) -> bool {
        self.clock().into_iter().any(|part| part < 0)
    }

    fn clock_is_zero(&self) -> bool {
        self.clock() == [0; 4]
    }

    /// Prints the absolute value of the seconds, including the fraction. If `fill` is true, the
    /// seconds are padded to two digits.
    fn write_seconds(&self, fill: bool, out: &mut Vec<u8>) {
        digits::padded(self.seconds.unsigned_abs(), if fill { 2 } else { 1 }, out);
        digits::fraction(self.micros.unsigned_abs() as u32, out);
    }

    /// `:mm:ss` and the fraction, as absolute values.
    fn write_minutes(&self, out: &mut Vec<u8>) {
        out.push(b':');
        digits::two(self.minutes.unsigned_abs() as u32, out);
        out.push(b':');
        self.write_seconds(true, out);
    }
}

/// An interval, as `interval_out` of version `major` prints it in `style`.
pub(super) fn interval(
    (micros, days, months): (i64, i32, i32),
    style: IntervalStyle,
    major: u32,
    out: &mut Vec<u8>,
) {
    if major >= INFINITE_SINCE {
        match (micros, days, months) {
            (i64::MAX, i32::MAX, i32::MAX) => return out.extend_from_slice(b"infinity"),
            (i64::MIN, i32::MIN, i32::MIN) => return out.extend_from_slice(b"-infinity"),
            _ => {}
        }
    }
    let fields = Fields::new(micros, days, months);
    match style {
        IntervalStyle::Postgres => postgres(&fields, out),
        IntervalStyle::PostgresVerbose => verbose(&fields, out),
        IntervalStyle::SqlStandard => sql_standard(&fields, out),
        IntervalStyle::Iso8601 => iso(&fields, out),
    }
}

/// `1 year`, `2 years`.
fn counted(count: i64, unit: &str, out: &mut Vec<u8>) {
    digits::signed(count, out);
    out.push(b' ');
    out.extend_from_slice(unit.as_bytes());
    if count != 1 {
        out.push(b's');
    }
}

/// Prints something like `1 year 2 mons -3 days +04:05:06`. If a positive part comes after a
/// negative one, it is printed with a `+`.
fn postgres(fields: &Fields, out: &mut Vec<u8>) {
    let start = out.len();
    let mut negative = false;
    for (value, unit) in fields.calendar().into_iter().zip(["year", "mon", "day"]) {
        if value == 0 {
            continue;
        }
        if out.len() > start {
            out.push(b' ');
        }
        if negative && value > 0 {
            out.push(b'+');
        }
        counted(value, unit, out);
        negative = value < 0;
    }
    let first = out.len() == start;
    if !first && fields.clock_is_zero() {
        return;
    }
    if !first {
        out.push(b' ');
    }
    if fields.clock_is_negative() {
        out.push(b'-');
    } else if negative {
        out.push(b'+');
    }
    digits::padded(fields.hours.unsigned_abs(), 2, out);
    fields.write_minutes(out);
}

/// Prints something like `@ 1 year -2 mons 3 secs ago`. The signs of the later parts are relative
/// to the sign of the first part.
fn verbose(fields: &Fields, out: &mut Vec<u8>) {
    let (mut first, mut ago) = (true, false);
    out.push(b'@');
    let parts = fields.calendar().into_iter().chain([fields.hours, fields.minutes]);
    for (value, unit) in parts.zip(["year", "mon", "day", "hour", "min"]) {
        if value == 0 {
            continue;
        }
        ago = if first { value < 0 } else { ago };
        first = false;
        let shown = if ago { -value } else { value };
        out.push(b' ');
        counted(shown, unit, out);
    }
    if fields.seconds != 0 || fields.micros != 0 {
        out.push(b' ');
        let negative = fields.seconds < 0 || fields.micros < 0;
        if first {
            ago = negative;
        } else if negative != ago {
            out.push(b'-');
        }
        fields.write_seconds(false, out);
        let one = fields.seconds.abs() == 1 && fields.micros == 0;
        out.extend_from_slice(if one { b" sec" } else { b" secs" });
        first = false;
    }
    if first {
        out.extend_from_slice(b" 0");
    }
    if ago {
        out.extend_from_slice(b" ago");
    }
}

/// Prints something like `1-2` or `3 4:05:06`. If the interval can't be written as a standard SQL
/// literal, we print all three parts and their signs.
fn sql_standard(fields: &Fields, out: &mut Vec<u8>) {
    let negative = fields.any(|part| part < 0);
    let positive = fields.any(|part| part > 0);
    let year_month = fields.years != 0 || fields.months != 0;
    let day_time = fields.days != 0 || !fields.clock_is_zero();
    if !negative && !positive {
        return out.push(b'0');
    }
    let sign = |negative: bool| if negative { b'-' } else { b'+' };
    let mixed = negative && positive || year_month && day_time;
    if mixed {
        out.push(sign(fields.years < 0 || fields.months < 0));
    } else if negative {
        out.push(b'-');
    }
    if mixed || year_month {
        digits::unsigned(fields.years.unsigned_abs(), out);
        out.push(b'-');
        digits::unsigned(fields.months.unsigned_abs(), out);
    }
    if mixed {
        out.extend_from_slice(&[b' ', sign(fields.days < 0)]);
    }
    if mixed || fields.days != 0 {
        digits::unsigned(fields.days.unsigned_abs(), out);
        out.push(b' ');
    }
    if mixed {
        out.push(sign(fields.clock_is_negative()));
    }
    if mixed || day_time {
        digits::unsigned(fields.hours.unsigned_abs(), out);
        fields.write_minutes(out);
    }
}

/// `P1Y2M-3DT4H5M6.5S`.
fn iso(fields: &Fields, out: &mut Vec<u8>) {
    if !fields.any(|part| part != 0) {
        return out.extend_from_slice(b"PT0S");
    }
    let part = |value: i64, unit: u8, out: &mut Vec<u8>| {
        if value != 0 {
            digits::signed(value, out);
            out.push(unit);
        }
    };
    out.push(b'P');
    part(fields.years, b'Y', out);
    part(fields.months, b'M', out);
    part(fields.days, b'D', out);
    if fields.clock_is_zero() {
        return;
    }
    out.push(b'T');
    part(fields.hours, b'H', out);
    part(fields.minutes, b'M', out);
    if fields.seconds != 0 || fields.micros != 0 {
        if fields.seconds < 0 || fields.micros < 0 {
            out.push(b'-');
        }
        fields.write_seconds(false, out);
        out.push(b'S');
    }
}
