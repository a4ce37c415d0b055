//! Sizes as texts: `pg_size_pretty` and `pg_size_bytes`.

use std::cmp::Ordering;

use trunkline_format::text_input::read_text;
use trunkline_format::text_output::{Type, write_text};

use crate::catalog::oids;
use crate::error::{SqlError, SqlState};
use crate::functions::call::{Call, CallSettings, Kernel};
use crate::functions::printing::{damaged, into_text, resolve};
use crate::functions::rows::unary;
use crate::numeric::Numeric;

/// The kernels of this module.
pub(in crate::functions) const SIZE_TEXTS: &[(&str, Kernel)] = &[
    ("pg_size_pretty", |call| unary(call, |size: i64| Ok(pretty(size)))),
    ("pg_size_pretty_numeric", |call| {
        let ty = resolve(oids::NUMERIC, call.settings)?;
        unary(call, |size: &[u8]| pretty_numeric(Numeric::decode(size)?, &ty, call))
    }),
    ("pg_size_bytes", |call| {
        let ty = resolve(oids::NUMERIC, call.settings)?;
        unary(call, |text: &str| bytes(text, &ty, call.settings))
    }),
];

/// Units with the size below which they are used, whether they are rounded, and their power of two.
const UNITS: [(&str, u64, bool, u32); 6] = [
    ("bytes", 10 * 1024, false, 0),
    ("kB", 20 * 1024 - 1, true, 10),
    ("MB", 20 * 1024 - 1, true, 20),
    ("GB", 20 * 1024 - 1, true, 30),
    ("TB", 20 * 1024 - 1, true, 40),
    ("PB", 20 * 1024 - 1, true, 50),
];

/// A size in the largest unit that leaves at least two digits. One more bit than the unit needs is
/// kept for rounding.
fn pretty(mut size: i64) -> String {
    let mut units = UNITS.iter().peekable();
    while let Some(&(name, limit, rounds, bits)) = units.next() {
        match units.peek() {
            Some(&&(_, _, next_rounds, next_bits)) if size.unsigned_abs() >= limit => {
                size /= 1_i64 << shift((rounds, bits), (next_rounds, next_bits));
            }
            _ => {
                let shown = match (rounds, size < 0) {
                    (true, false) => (size + 1) / 2,
                    (true, true) => (size - 1) / 2,
                    (false, _) => size,
                };
                return format!("{shown} {name}");
            }
        }
    }
    String::new()
}

/// How far a size is shifted to get to the next unit.
fn shift((rounds, bits): (bool, u32), (next_rounds, next_bits): (bool, u32)) -> u32 {
    next_bits - bits - u32::from(next_rounds) + u32::from(rounds)
}

/// The same for a `numeric`, whose fraction is only shown in bytes.
fn pretty_numeric(mut size: Numeric, ty: &Type, call: &Call<'_>) -> Result<String, SqlError> {
    let mut units = UNITS.iter().peekable();
    while let Some(&(name, limit, rounds, bits)) = units.next() {
        let limit = Numeric::from(i128::from(limit));
        let is_below = size.clone().absolute().compare(&limit) == Ordering::Less;
        match units.peek() {
            Some(&&(_, _, next_rounds, next_bits)) if !is_below => {
                let shift = shift((rounds, bits), (next_rounds, next_bits));
                size = size.divide_truncating(&Numeric::from(1_i64 << shift))?;
            }
            _ => {
                if rounds {
                    let one = Numeric::from(1_i64);
                    size = match size.compare(&Numeric::from(0_i64)) {
                        Ordering::Less => size.subtract(&one),
                        _ => size.add(&one),
                    };
                    size = size.divide_truncating(&Numeric::from(2_i64))?;
                }
                let mut text = Vec::new();
                let options = call.settings.text_options();
                write_text(ty, &size.to_payload()?, &options, &mut text).map_err(damaged)?;
                return Ok(format!("{} {name}", into_text(text)?));
            }
        }
    }
    Ok(String::new())
}

/// `pg_size_bytes`: a number with a unit, in any case.
fn bytes(text: &str, ty: &Type, settings: &CallSettings) -> Result<i64, SqlError> {
    let invalid =
        || SqlError::new(SqlState::INVALID_PARAMETER_VALUE, format!("invalid size: \"{text}\""));
    let trimmed = text.trim_matches(is_space);
    let length = number_length(trimmed).ok_or_else(invalid)?;
    let (number, unit) = trimmed.split_at(length);
    let mut payload = Vec::new();
    read_text(ty, number.as_bytes(), -1, &settings.input_options(), &mut payload)?;
    let number = Numeric::decode(&payload)?;
    let unit = unit.trim_start_matches(is_space);
    if unit.is_empty() {
        return number.to_i64();
    }
    let found = UNITS.iter().find(|(name, ..)| name.eq_ignore_ascii_case(unit));
    let bits = match found {
        Some((_, _, _, bits)) => *bits,
        None if settings.major >= 16 && unit.eq_ignore_ascii_case("B") => 0,
        None => {
            let bytes = if settings.major >= 16 { "\"bytes\", \"B\"" } else { "\"bytes\"" };
            let hint =
                format!("Valid units are {bytes}, \"kB\", \"MB\", \"GB\", \"TB\", and \"PB\".");
            let detail = format!("Invalid size unit: \"{unit}\".");
            return Err(invalid().with_detail(detail).with_hint(hint));
        }
    };
    number.multiply(&Numeric::from(1_i64 << bits)).to_i64()
}

fn is_space(letter: char) -> bool {
    matches!(letter, ' ' | '\t' | '\n' | '\r' | '\u{b}' | '\u{c}')
}

/// The length of the number at the start of a text; `None` if there are no digits.
fn number_length(text: &str) -> Option<usize> {
    let bytes = text.as_bytes();
    let digits = |from: usize| {
        let rest = bytes.get(from..).unwrap_or_default();
        rest.iter().take_while(|byte| byte.is_ascii_digit()).count()
    };
    let is = |at: usize, letters: &[u8]| bytes.get(at).is_some_and(|byte| letters.contains(byte));
    let mut at = usize::from(is(0, b"+-"));
    let mut count = digits(at);
    at += count;
    if is(at, b".") {
        at += 1;
        let decimals = digits(at);
        count += decimals;
        at += decimals;
    }
    if count == 0 {
        return None;
    }
    // Without digits, the letter belongs to the unit.
    if is(at, b"eE") {
        let sign = usize::from(is(at + 1, b"+-"));
        let exponent = digits(at + 1 + sign);
        if exponent > 0 {
            at += 1 + sign + exponent;
        }
    }
    Some(at)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The expected texts are those of a server.
    #[test]
    fn sizes_are_rounded_as_in_the_server() {
        for (size, expected) in [
            (0, "0 bytes"),
            (10_239, "10239 bytes"),
            (10_240, "10 kB"),
            (10_752, "11 kB"),
            (10_751, "10 kB"),
            (-10_752, "-11 kB"),
            (10_485_247, "10239 kB"),
            (10_485_248, "10 MB"),
            (1_234_567_890, "1177 MB"),
            (i64::MAX, "8192 PB"),
            (i64::MIN, "-8192 PB"),
        ] {
            assert_eq!(pretty(size), expected, "{size}");
        }
    }

    #[test]
    fn a_number_ends_before_its_unit() {
        for (text, expected) in [
            ("1kB", Some(1)),
            ("-1.5 MB", Some(4)),
            (".5", Some(2)),
            ("1.", Some(2)),
            ("1e3kb", Some(3)),
            ("1e+2 kB", Some(4)),
            ("1e kB", Some(1)),
            ("1.5.6", Some(3)),
            (".", None),
            ("- 1", None),
            ("kB", None),
            ("", None),
        ] {
            assert_eq!(number_length(text), expected, "{text}");
        }
    }
}
