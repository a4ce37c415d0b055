//! Numbers with units, parsed and printed as PostgreSQL does (`parse_int`, `ShowGUCOption`).
//!
//! A number may be preceded by blanks and a sign. It is decimal, octal (`017`) or hexadecimal
//! (`0x1F`), or a fraction if it contains a `.` or an exponent. It may be followed by a unit, with
//! or without blanks in between; units are case-sensitive. We round a value with a unit twice, as
//! PostgreSQL does: first to a multiple of the next smaller unit, so that `30.1GB` is a whole
//! number of megabytes, and then to the setting's own unit. We print values in the largest unit
//! that represents them exactly.
//!
//! As in PostgreSQL, we do the arithmetic in double precision, which can represent any `i32`
//! exactly. We must round the same way as C's `rint`, that is, round halves to even.

const MEMORY_HINT: &str =
    "Valid units for this parameter are \"B\", \"kB\", \"MB\", \"GB\", and \"TB\".";
const TIME_HINT: &str =
    "Valid units for this parameter are \"us\", \"ms\", \"s\", \"min\", \"h\", and \"d\".";
const RANGE_HINT: &str = "Value exceeds integer range.";

const BLOCK_BYTES: f64 = 8192.0;
const KB: f64 = 1024.0;

/// The name of each unit and its size in the base unit, ordered from largest to smallest. The order
/// matters, because [`show`] uses the first unit that fits, and [`to_base`] rounds to the unit that
/// follows in the table.
const MEMORY_UNITS: [(&str, f64); 5] = [
    ("TB", KB * KB * KB * KB / BLOCK_BYTES),
    ("GB", KB * KB * KB / BLOCK_BYTES),
    ("MB", KB * KB / BLOCK_BYTES),
    ("kB", KB / BLOCK_BYTES),
    ("B", 1.0 / BLOCK_BYTES),
];
const MEMORY_UNITS_OF_KB: [(&str, f64); 5] =
    [("TB", KB * KB * KB), ("GB", KB * KB), ("MB", KB), ("kB", 1.0), ("B", 1.0 / KB)];
const TIME_UNITS: [(&str, f64); 6] = [
    ("d", 86_400_000.0),
    ("h", 3_600_000.0),
    ("min", 60_000.0),
    ("s", 1_000.0),
    ("ms", 1.0),
    ("us", 0.001),
];
const TIME_UNITS_OF_SECONDS: [(&str, f64); 6] =
    [("d", 86_400.0), ("h", 3_600.0), ("min", 60.0), ("s", 1.0), ("ms", 0.001), ("us", 0.000_001)];

/// The unit that a setting is stored in, which also determines the units a value may be given in.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Unit {
    /// A plain count, which can't have a unit.
    None,
    /// Blocks of 8192 bytes. A value may be given in `B`, `kB`, `MB`, `GB` or `TB`.
    Blocks,
    /// Kilobytes. A value may be given in the same units.
    Kilobytes,
    /// Milliseconds. A value may be given in `us`, `ms`, `s`, `min`, `h` or `d`.
    Milliseconds,
    /// Seconds. A value may be given in the same units.
    Seconds,
}

impl Unit {
    fn table(self) -> &'static [(&'static str, f64)] {
        match self {
            Unit::None => &[],
            Unit::Blocks => &MEMORY_UNITS,
            Unit::Kilobytes => &MEMORY_UNITS_OF_KB,
            Unit::Milliseconds => &TIME_UNITS,
            Unit::Seconds => &TIME_UNITS_OF_SECONDS,
        }
    }

    fn hint(self) -> Option<&'static str> {
        match self {
            Unit::None => None,
            Unit::Blocks | Unit::Kilobytes => Some(MEMORY_HINT),
            Unit::Milliseconds | Unit::Seconds => Some(TIME_HINT),
        }
    }

    /// The unit as it appears in PostgreSQL's out-of-range message.
    pub(super) fn suffix(self) -> &'static str {
        match self {
            Unit::None => "",
            Unit::Blocks => " 8kB",
            Unit::Kilobytes => " kB",
            Unit::Milliseconds => " ms",
            Unit::Seconds => " s",
        }
    }
}

/// Parses `text` and converts the number to `unit`. On failure, returns a hint in those cases where
/// PostgreSQL gives one.
pub(super) fn parse(text: &str, unit: Unit) -> Result<i32, Option<&'static str>> {
    let (number, rest) = leading_number(text.trim_ascii_start()).ok_or(None)?;
    let word = rest.trim_ascii();
    let value = if word.is_empty() { number } else { to_base(number, word, unit)? };
    let value = value.round_ties_even();
    if !(f64::from(i32::MIN)..=f64::from(i32::MAX)).contains(&value) {
        return Err(Some(RANGE_HINT));
    }
    // The value is integral and within range, so the cast is exact.
    Ok(value as i32)
}

/// Parses a number that may have a fraction but no unit. Returns `None` for anything else.
pub(super) fn parse_real(text: &str) -> Option<f64> {
    let text = text.trim_ascii_start();
    let unsigned = text.strip_prefix(['+', '-']).unwrap_or(text);
    let sign = if text.starts_with('-') { -1.0 } else { 1.0 };
    let (number, rest) = match unsigned.as_bytes() {
        [b'0', b'x' | b'X', digit, ..] if digit.is_ascii_hexdigit() => leading_number(unsigned)?,
        _ => fraction(unsigned)?,
    };
    rest.trim_ascii().is_empty().then_some(sign * number)
}

/// Formats a floating-point number like C's `%g`, with six significant digits. Unlike `%g`, we
/// never use an exponent for large numbers, because no real setting allows numbers that large.
pub(super) fn show_real(value: f64) -> String {
    let rounded: f64 = format!("{value:.5e}").parse().unwrap_or(value);
    match rounded.abs() {
        small if small != 0.0 && small < 1e-4 => {
            let text = format!("{rounded:e}");
            let (digits, exponent) = text.split_once('e').unwrap_or((&text, "0"));
            format!("{digits}e-{:0>2}", exponent.trim_start_matches('-'))
        }
        large if large >= 1e6 => {
            let text = format!("{rounded:e}");
            let (digits, exponent) = text.split_once('e').unwrap_or((&text, "0"));
            format!("{digits}e+{exponent:0>2}")
        }
        // `%g` prints the sign of a negative zero too.
        _ => format!("{rounded}"),
    }
}

/// Converts `number` from the named unit to the base unit, rounded to a multiple of the next
/// smaller unit.
fn to_base(number: f64, word: &str, unit: Unit) -> Result<f64, Option<&'static str>> {
    let units = unit.table();
    let index = units.iter().position(|(name, _)| *name == word).ok_or(unit.hint())?;
    let value = number * units[index].1;
    Ok(match units.get(index + 1) {
        Some((_, smaller)) => (value / smaller).round_ties_even() * smaller,
        None => value,
    })
}

/// Parses a number at the start of `text`. We accept the same syntax as C's `strtol` with base 0
/// or, if a `.` or an exponent follows the digits, the same syntax as `strtod`. Returns the number
/// and the rest of the text.
fn leading_number(text: &str) -> Option<(f64, &str)> {
    let unsigned = text.strip_prefix(['+', '-']).unwrap_or(text);
    let sign = if text.starts_with('-') { -1.0 } else { 1.0 };
    let (digits, radix) = match unsigned.as_bytes() {
        [b'0', b'x' | b'X', digit, ..] if digit.is_ascii_hexdigit() => (&unsigned[2..], 16),
        [b'0', ..] => (unsigned, 8),
        _ => (unsigned, 10),
    };
    let length = digits.bytes().take_while(|&b| char::from(b).is_digit(radix)).count();
    let (whole, rest) = digits.split_at(length);
    if radix != 16 && rest.starts_with(['.', 'e', 'E']) {
        return fraction(unsigned).map(|(number, rest)| (sign * number, rest));
    }
    if whole.is_empty() {
        return None;
    }
    let number = whole.chars().fold(0.0, |sum, digit| {
        sum * f64::from(radix) + f64::from(digit.to_digit(radix).unwrap_or(0))
    });
    Some((sign * number, rest))
}

/// Parses the longest decimal fraction at the start of `text`, without a sign.
fn fraction(text: &str) -> Option<(f64, &str)> {
    let bytes = text.as_bytes();
    let digits = |from: usize| bytes[from..].iter().take_while(|b| b.is_ascii_digit()).count();
    let mut end = digits(0);
    if bytes.get(end) == Some(&b'.') {
        end += 1 + digits(end + 1);
    }
    if let Some(b'e' | b'E') = bytes.get(end) {
        let sign = usize::from(matches!(bytes.get(end + 1), Some(b'+' | b'-')));
        let exponent = digits((end + 1 + sign).min(bytes.len()));
        if exponent > 0 {
            end += 1 + sign + exponent;
        }
    }
    let number: f64 = text[..end].parse().ok()?;
    number.is_finite().then_some((number, &text[end..]))
}

/// Formats `value` in the largest unit that represents it exactly. Zero and negative numbers are
/// printed without a unit.
pub(super) fn show(value: i32, unit: Unit) -> String {
    if value > 0 {
        for (name, size) in unit.table() {
            let count = f64::from(value) / size;
            if count >= 1.0 && count.fract() == 0.0 {
                return format!("{count}{name}");
            }
        }
    }
    value.to_string()
}
