//! `float4` and `float8` output: the shortest digits that read back as the same number.
//!
//! We use the `zmij` crate to get the shortest digits. Like those of other such algorithms, its
//! results are the same as the server's except in two cases. First, a decimal that is exactly
//! halfway between two floats is read back correctly only by a program that rounds ties to even,
//! and PostgreSQL doesn't rely on that. For example, it prints 18014398509482008 rather than
//! 1.801439850948201e+16, because the latter is exactly halfway to the next float. Second, if a
//! float is exactly halfway between two equally short decimals, PostgreSQL chooses the one whose
//! last digit is even. For example, 220598574782400.625 is halfway between …62 and …63, so it is
//! printed as …62.
//!
//! If `extra_float_digits` is 0 or less, the format is C's `%.*g` instead.
//!
//! Mirrors `float4out` and `float8out` of PostgreSQL's `utils/adt/float.c`, which use Ryu from
//! `common/f2s.c` and `common/d2s.c`.

use super::digits;
use std::fmt::{self, Write};

/// A `float4` or `float8` as `mantissa × 2^exponent`, so that both share the same code.
#[derive(Clone, Copy)]
struct Binary {
    value: f64,
    single: bool,
    mantissa: u64,
    exponent: i32,
    /// True if the value is a power of two, in which case the gap to the next smaller float is only
    /// half as wide as the gap to the next larger one.
    power: bool,
}

impl Binary {
    fn double(value: f64) -> Self {
        let bits = value.to_bits();
        let (biased, fraction) = ((bits >> 52 & 0x7FF) as i32, bits & ((1 << 52) - 1));
        Self::new(value, false, biased, fraction, 52, 1075)
    }

    fn single(value: f32) -> Self {
        let bits = value.to_bits();
        let (biased, fraction) = ((bits >> 23 & 0xFF) as i32, u64::from(bits & ((1 << 23) - 1)));
        Self::new(f64::from(value), true, biased, fraction, 23, 150)
    }

    fn new(value: f64, single: bool, biased: i32, fraction: u64, width: u32, bias: i32) -> Self {
        let hidden = if biased == 0 { 0 } else { 1 << width };
        let power = fraction == 0 && biased > 1;
        let exponent = biased.max(1) - bias;
        Self { value, single, mantissa: fraction | hidden, exponent, power }
    }

    /// Whether `digits × 10^exponent` is exactly halfway between this float and a neighbour.
    fn is_halfway(self, decimal: &Decimal) -> bool {
        let Self { mantissa, exponent, power, .. } = self;
        let above = (2 * mantissa + 1, exponent - 1);
        let below = match power {
            true => (4 * mantissa - 1, exponent - 2),
            false => (2 * mantissa.max(1) - 1, exponent - 1),
        };
        let (number, ten) = decimal.integer();
        [above, below].into_iter().any(|(odd, two)| equal(number, ten, odd, two))
    }

    /// Whether `decimal` reads back as this number no matter how the reader rounds ties.
    fn is_read_from(self, decimal: &Decimal) -> bool {
        let mut text = Text::default();
        let (number, ten) = decimal.integer();
        if write!(text, "{number}e{ten}").is_err() {
            return false;
        }
        let same = match self.single {
            true => text.as_str().parse::<f32>().map(f64::from),
            false => text.as_str().parse::<f64>(),
        };
        same == Ok(self.value) && !self.is_halfway(decimal)
    }

    fn shortest(self) -> Decimal {
        let mut buffer = zmij::Buffer::new();
        let decimal = Decimal::parse(match self.single {
            true => buffer.format_finite(self.value as f32),
            false => buffer.format_finite(self.value),
        });
        let (number, ten) = decimal.integer();
        if number & 1 == 1 && equal(2 * number - 1, ten, self.mantissa, self.exponent + 1) {
            let even = Decimal::scaled(number - 1, ten);
            if self.is_read_from(&even) {
                return even;
            }
        }
        // `zmij` assumes that ties are rounded to even, so it only chooses a decimal that is a tie
        // if the mantissa is even. We therefore don't need to check for ties if the mantissa is
        // odd.
        if self.mantissa & 1 == 1 || !self.is_halfway(&decimal) {
            return decimal;
        }
        // The gap just below a power of two is only half as wide, so there may be an equally short
        // decimal on the other side.
        let other = Decimal::scaled(number + 1, ten);
        if other.len <= decimal.len && self.is_read_from(&other) {
            return other;
        }
        let longer = |more: usize| Decimal::of(format_args!("{:.more$e}", self.value));
        (decimal.len..17)
            .map(longer)
            .find(|longer| self.is_read_from(longer))
            .unwrap_or_else(|| longer(16))
    }
}

/// Whether `number × 10^ten` is `other × 2^two`; neither is 0.
fn equal(number: u64, ten: i32, other: u64, two: i32) -> bool {
    let [zeros, others] = [number, other].map(u64::trailing_zeros);
    if number == 0 || other == 0 || zeros as i32 + ten != others as i32 + two {
        return false;
    }
    let (number, odd) = (number >> zeros, other >> others);
    let Some(fives) = 5_u64.checked_pow(ten.unsigned_abs()) else { return false };
    match ten >= 0 {
        true => number.checked_mul(fives) == Some(odd),
        false => odd.checked_mul(fives) == Some(number),
    }
}

/// A 40-byte text buffer on the stack, so that formatting doesn't allocate.
struct Text {
    bytes: [u8; 40],
    len: usize,
}

impl Default for Text {
    fn default() -> Self {
        Self { bytes: [0; 40], len: 0 }
    }
}

impl Text {
    fn as_str(&self) -> &str {
        str::from_utf8(self.bytes.get(..self.len).unwrap_or_default()).unwrap_or_default()
    }
}

impl Write for Text {
    fn write_str(&mut self, text: &str) -> fmt::Result {
        let end = self.len + text.len();
        self.bytes.get_mut(self.len..end).ok_or(fmt::Error)?.copy_from_slice(text.as_bytes());
        self.len = end;
        Ok(())
    }
}

/// Digits `d.ddd` and a power of ten, without trailing zeros.
struct Decimal {
    digits: [u8; 20],
    len: usize,
    exponent: i32,
}

impl Decimal {
    /// Parses a number as it is formatted. It must not be negative.
    fn of(number: fmt::Arguments<'_>) -> Self {
        let mut text = Text::default();
        // The text always fits into the buffer, because it consists of at most a sign, 17 digits, a
        // decimal point and an exponent.
        let _fits = text.write_fmt(number);
        Self::parse(text.as_str())
    }

    /// An integer multiplied by a power of ten.
    fn scaled(number: u64, ten: i32) -> Self {
        let decimal = Self::of(format_args!("{number}"));
        Self { exponent: decimal.exponent + ten, ..decimal }
    }

    /// Parses digits with an optional point and exponent: `12.5`, `0.001`, `1.25e-7`, `1e100`.
    fn parse(text: &str) -> Self {
        let mut decimal = Self { digits: [0; 20], len: 0, exponent: 0 };
        let (mantissa, exponent) = text.split_once('e').unwrap_or((text, "0"));
        // `whole` is the number of digits before the decimal point, not counting leading zeros. It
        // is negative if there are zeros between the decimal point and the first nonzero digit.
        let (mut point, mut whole) = (false, 0);
        for byte in mantissa.bytes() {
            match byte {
                b'.' => point = true,
                b'0' if decimal.len == 0 => whole -= i32::from(point),
                _ => {
                    whole += i32::from(!point);
                    if let Some(place) = decimal.digits.get_mut(decimal.len) {
                        *place = byte;
                        decimal.len += 1;
                    }
                }
            }
        }
        decimal.exponent = whole - 1 + exponent.parse().unwrap_or(0);
        while decimal.len > 1 && decimal.digits.get(decimal.len - 1) == Some(&b'0') {
            decimal.len -= 1;
        }
        decimal
    }

    fn digits(&self) -> &[u8] {
        self.digits.get(..self.len).unwrap_or_default()
    }

    /// The value as an integer and a power of ten to multiply it by.
    fn integer(&self) -> (u64, i32) {
        let number = self.digits().iter().fold(0, |sum, digit| sum * 10 + u64::from(digit - b'0'));
        (number, self.exponent + 1 - self.len as i32)
    }

    /// Uses exponent notation if the exponent is below −4 or at least `most`.
    fn write(&self, most: i32, out: &mut Vec<u8>) {
        let digits = self.digits();
        let exponent = self.exponent;
        if exponent < -4 || exponent >= most {
            let (first, rest) = digits.split_at_checked(1).unwrap_or_default();
            out.extend_from_slice(first);
            if !rest.is_empty() {
                out.push(b'.');
                out.extend_from_slice(rest);
            }
            out.extend_from_slice(if exponent < 0 { b"e-" } else { b"e+" });
            digits::padded(u64::from(exponent.unsigned_abs()), 2, out);
            return;
        }
        if exponent < 0 {
            out.extend_from_slice(b"0.");
            out.extend(std::iter::repeat_n(b'0', (-1 - exponent) as usize));
            out.extend_from_slice(digits);
            return;
        }
        let whole = exponent as usize + 1;
        match digits.split_at_checked(whole) {
            Some((before, after)) => {
                out.extend_from_slice(before);
                if !after.is_empty() {
                    out.push(b'.');
                    out.extend_from_slice(after);
                }
            }
            None => {
                out.extend_from_slice(digits);
                out.extend(std::iter::repeat_n(b'0', whole - digits.len()));
            }
        }
    }
}

/// Writes the sign. If the number is NaN, infinity or zero, also writes the rest of it, and returns
/// true to indicate that the number is complete.
fn special(value: f64, out: &mut Vec<u8>) -> bool {
    if value.is_nan() {
        out.extend_from_slice(b"NaN");
        return true;
    }
    if value.is_sign_negative() {
        out.push(b'-');
    }
    if value.is_infinite() {
        out.extend_from_slice(b"Infinity");
        return true;
    }
    if value == 0.0 {
        out.push(b'0');
        return true;
    }
    false
}

/// As C's `%.*g` with `count` digits, at least 1.
fn general(magnitude: f64, count: i32, out: &mut Vec<u8>) {
    let count = count.max(1);
    let more = count as usize - 1;
    Decimal::of(format_args!("{magnitude:.more$e}")).write(count, out);
}

/// Prints a float. `extra_float_digits` may range from -15 to 3. `digits` is the number of decimal
/// digits that the float's type can represent, and `shortest` must return the shortest digits that
/// read back as the same number.
#[inline]
fn float(
    value: f64,
    extra_digits: i8,
    digits: i32,
    shortest: impl Fn() -> Decimal,
    out: &mut Vec<u8>,
) {
    if special(value, out) {
        return;
    }
    match extra_digits > 0 {
        true => shortest().write(digits, out),
        false => general(value.abs(), digits + i32::from(extra_digits), out),
    }
}

/// A `float8`.
pub(super) fn float8(value: f64, extra_digits: i8, out: &mut Vec<u8>) {
    float(value, extra_digits, 15, || Binary::double(value.abs()).shortest(), out);
}

/// A `float4`.
pub(super) fn float4(value: f32, extra_digits: i8, out: &mut Vec<u8>) {
    float(value.into(), extra_digits, 6, || Binary::single(value.abs()).shortest(), out);
}
