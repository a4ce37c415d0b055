//! Times, sizes and counts of a [profile](crate::Profile), read from text and written as text.
//!
//! Sizes have decimal (`MB`) or binary units (`MiB`), since vendors use both: 125 MiB/s of one cloud
//! are 131 MB/s of another. A number without a unit is refused, because nothing says which was meant.

use std::time::Duration;

/// Units of sizes, largest first.
const SIZES: [(&str, u64); 9] = [
    ("TiB", 1 << 40),
    ("TB", 1_000_000_000_000),
    ("GiB", 1 << 30),
    ("GB", 1_000_000_000),
    ("MiB", 1 << 20),
    ("MB", 1_000_000),
    ("KiB", 1 << 10),
    ("kB", 1_000),
    ("B", 1),
];

/// Units of times, in nanoseconds. `s` is the last one, because the others end in it.
const TIMES: [(&str, u64); 4] = [("ns", 1), ("us", 1_000), ("ms", 1_000_000), ("s", 1_000_000_000)];

/// A burst credit.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Credit {
    /// Bytes beyond a rate.
    Bytes(u64),
    /// I/Os beyond a number per second.
    Ios(u64),
}

/// Reads a whole number.
pub(crate) fn count(text: &str) -> Option<u64> {
    text.bytes().all(|byte| byte.is_ascii_digit()).then(|| text.parse().ok()).flatten()
}

/// Reads a time such as `5ms`.
pub(crate) fn duration(text: &str) -> Option<Duration> {
    let (number, unit) = split(text, &TIMES)?;
    Some(Duration::from_nanos(scaled(number, unit)?))
}

/// Reads a size such as `256KiB`.
pub(crate) fn bytes(text: &str) -> Option<u64> {
    let (number, unit) = split(text, &SIZES)?;
    scaled(number, unit)
}

/// Reads a rate such as `500MB/s`.
pub(crate) fn bytes_per_second(text: &str) -> Option<u64> {
    bytes(text.strip_suffix("/s")?)
}

/// Reads a credit: a size, or a number of I/Os such as `5000io`.
pub(crate) fn credit(text: &str) -> Option<Credit> {
    match text.strip_suffix("io") {
        Some(number) => count(number).map(Credit::Ios),
        None => bytes(text).map(Credit::Bytes),
    }
}

/// Writes a size that [`bytes`] reads back, in the largest unit that divides it.
pub(crate) fn show_bytes(bytes: u64) -> String {
    let fits = |&(_, unit): &(&str, u64)| bytes >= unit && bytes.is_multiple_of(unit);
    match SIZES.into_iter().find(fits) {
        Some((name, unit)) => format!("{}{name}", bytes / unit),
        None => format!("{bytes}B"),
    }
}

/// Writes a time that [`duration`] reads back.
pub(crate) fn show_duration(time: Duration) -> String {
    let (nanos, micros) = (time.as_nanos(), time.as_micros());
    match micros {
        _ if nanos == 0 => "0us".to_owned(),
        _ if !nanos.is_multiple_of(1_000) => format!("{nanos}ns"),
        _ if micros.is_multiple_of(1_000_000) => format!("{}s", micros / 1_000_000),
        _ if micros.is_multiple_of(1_000) => format!("{}ms", micros / 1_000),
        _ => format!("{micros}us"),
    }
}

/// Splits a text into its number and the factor of its unit.
fn split<'t>(text: &'t str, units: &[(&str, u64)]) -> Option<(&'t str, u64)> {
    let end = text.find(|c: char| !c.is_ascii_digit() && c != '.')?;
    let (number, name) = text.split_at(end);
    units.iter().find(|(unit, _)| *unit == name).map(|&(_, factor)| (number, factor))
}

/// Multiplies a decimal number by a unit. The result must be whole, so that nothing is rounded.
fn scaled(number: &str, unit: u64) -> Option<u64> {
    let (whole, fraction) = number.split_once('.').unwrap_or((number, ""));
    if whole.is_empty() || number.ends_with('.') || fraction.len() > 9 {
        return None;
    }
    let whole = count(whole)?.checked_mul(unit)?;
    let part = match fraction {
        "" => 0,
        digits => {
            let all = u128::from(count(digits)?) * u128::from(unit);
            let power = 10_u128.pow(u32::try_from(digits.len()).ok()?);
            u64::try_from(all.is_multiple_of(power).then_some(all / power)?).ok()?
        }
    };
    whole.checked_add(part)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn times_are_whole_nanoseconds() {
        for (text, nanos) in [
            ("5ms", Some(5_000_000)),
            ("0.5ms", Some(500_000)),
            ("500us", Some(500_000)),
            ("1.25s", Some(1_250_000_000)),
            ("0.0001us", None),
            ("5", None),
            ("ms", None),
            ("5.ms", None),
            (".5ms", None),
            ("1.2.3ms", None),
            ("5 ms", None),
            ("5min", None),
            ("99999999999999999999s", None),
        ] {
            assert_eq!(duration(text), nanos.map(Duration::from_nanos), "{text}");
        }
    }

    #[test]
    fn sizes_have_decimal_and_binary_units() {
        for (text, size) in [
            ("125MiB", Some(131_072_000)),
            ("125MB", Some(125_000_000)),
            ("1.5KiB", Some(1_536)),
            ("0B", Some(0)),
            ("1kB", Some(1_000)),
            ("1KB", None),
            ("1mb", None),
            ("125", None),
            ("20000000TiB", None),
        ] {
            assert_eq!(bytes(text), size, "{text}");
        }
        for (size, text) in [(0, "0B"), (1536, "1536B"), (2048, "2KiB"), (125_000_000, "125MB")] {
            assert_eq!(show_bytes(size), text);
            assert_eq!(bytes(text), Some(size));
        }
    }

    #[test]
    fn credits_are_sizes_or_numbers() {
        assert_eq!(credit("10GB"), Some(Credit::Bytes(10_000_000_000)));
        assert_eq!(credit("5400000io"), Some(Credit::Ios(5_400_000)));
        assert_eq!((credit("5"), credit("io"), credit("-5io")), (None, None, None));
    }
}
