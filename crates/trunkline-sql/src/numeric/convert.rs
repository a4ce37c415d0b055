//! Conversions between numerics and the binary numbers.

use super::decimal::{BASE, DEC_DIGITS, Decimal};
use super::limits::out_of_range;
use super::value::Numeric;
use crate::error::SqlError;

impl Decimal {
    /// `numericvar_to_int64`: the nearest integer, half away from zero; `None` if it is too large.
    pub(super) fn to_integer(&self) -> Option<i64> {
        let rounded = self.clone().rounded(0);
        // Five digits hold every 64-bit integer.
        if rounded.weight > 4 {
            return None;
        }
        let digits = (0..=rounded.weight).map(|at| rounded.digits.get(at as usize));
        let value = digits.fold(0_i128, |value, digit| {
            value * i128::from(BASE) + digit.map_or(0, |&digit| i128::from(digit))
        });
        i64::try_from(if rounded.negative { -value } else { value }).ok()
    }

    /// The value if it is an integer of 64 bits.
    pub(super) fn to_exact_integer(&self) -> Option<i64> {
        self.is_integer().then(|| self.to_integer()).flatten()
    }

    /// The nearest floating-point number; infinite if the number is too large, 0 if it is too small.
    pub(super) fn to_f64(&self) -> f64 {
        self.scientific().parse().unwrap_or(f64::NAN)
    }

    /// The exact value as a decimal integer and an exponent, such as `-12e-1`.
    fn scientific(&self) -> String {
        use std::fmt::Write as _;
        let mut text = String::from(if self.negative { "-0" } else { "0" });
        for digit in &self.digits {
            // Writing to a string cannot fail.
            let _ = write!(text, "{digit:04}");
        }
        let exponent = (self.weight + 1 - self.digits.len() as i32) * DEC_DIGITS;
        let _ = write!(text, "e{exponent}");
        text
    }

    /// How many decimal digits are before the decimal point; 0 or negative for a fraction, and the
    /// least number for zero.
    pub(super) fn digits_before_point(&self) -> i32 {
        let Some(&first) = self.digits.first() else { return i32::MIN };
        self.weight * DEC_DIGITS + 1 + first.ilog10() as i32
    }

    /// `set_var_from_str`, for the text of a finite floating-point number in scientific notation.
    fn from_scientific(text: &str) -> Option<Self> {
        let (mantissa, exponent) = text.split_once('e')?;
        let (negative, mantissa) = match mantissa.strip_prefix('-') {
            Some(rest) => (true, rest),
            None => (false, mantissa),
        };
        let mantissa = mantissa.trim_end_matches('0');
        let digits: Vec<u8> = mantissa.bytes().filter(u8::is_ascii_digit).collect();
        let exponent: i32 = exponent.parse().ok()?;
        // The first decimal digit's place within a digit of base 10,000.
        let skipped = DEC_DIGITS - 1 - exponent.rem_euclid(DEC_DIGITS);
        let mut padded = vec![b'0'; usize::try_from(skipped).ok()?];
        padded.extend_from_slice(&digits);
        padded.resize(padded.len().next_multiple_of(4), b'0');
        let value = |four: &[u8; 4]| {
            four.iter().fold(0, |value, digit| value * 10 + u16::from(digit - b'0'))
        };
        Some(
            Self {
                negative,
                weight: exponent.div_euclid(DEC_DIGITS),
                scale: (digits.len() as i32 - 1 - exponent).max(0),
                digits: padded.as_chunks::<4>().0.iter().map(value).collect(),
            }
            .stripped(),
        )
    }
}

impl From<i64> for Numeric {
    fn from(value: i64) -> Self {
        Self::Finite(Decimal::from_integer(value.into()))
    }
}

impl From<i128> for Numeric {
    fn from(value: i128) -> Self {
        Self::Finite(Decimal::from_integer(value))
    }
}

impl From<f64> for Numeric {
    /// `float8_numeric`: the number with 15 significant digits.
    fn from(value: f64) -> Self {
        Self::from_float(value, format!("{value:.14e}"))
    }
}

impl From<f32> for Numeric {
    /// `float4_numeric`: the number with 6 significant digits.
    fn from(value: f32) -> Self {
        Self::from_float(value.into(), format!("{value:.5e}"))
    }
}

impl Numeric {
    fn from_float(value: f64, text: String) -> Self {
        match Decimal::from_scientific(&text) {
            Some(number) => Self::Finite(number),
            None if value.is_nan() => Self::NaN,
            None if value > 0.0 => Self::Infinity,
            None => Self::NegativeInfinity,
        }
    }

    /// `numeric_int8`: the nearest integer. `name` is the type that the error names.
    fn to_integer(&self, name: &str) -> Result<i64, SqlError> {
        let special =
            |what: &str| SqlError::unsupported(format!("cannot convert {what} to {name}"));
        match self {
            Self::Finite(number) => {
                number.to_integer().ok_or_else(|| out_of_range(format!("{name} out of range")))
            }
            Self::NaN => Err(special("NaN")),
            _ => Err(special("infinity")),
        }
    }

    /// `numeric_int8`.
    ///
    /// # Errors
    /// The number is not finite, or too large.
    pub fn to_i64(&self) -> Result<i64, SqlError> {
        self.to_integer("bigint")
    }

    /// `numeric_int4`.
    ///
    /// # Errors
    /// The number is not finite, or too large.
    pub fn to_i32(&self) -> Result<i32, SqlError> {
        self.to_integer("integer")?.try_into().map_err(|_| out_of_range("integer out of range"))
    }

    /// `numeric_int2`.
    ///
    /// # Errors
    /// The number is not finite, or too large.
    pub fn to_i16(&self) -> Result<i16, SqlError> {
        self.to_integer("smallint")?.try_into().map_err(|_| out_of_range("smallint out of range"))
    }

    /// `numeric_float8`.
    ///
    /// # Errors
    /// The number is too large, or too small to differ from 0.
    pub fn to_f64(&self) -> Result<f64, SqlError> {
        let number = match self {
            Self::Finite(number) => number,
            Self::NaN => return Ok(f64::NAN),
            Self::Infinity => return Ok(f64::INFINITY),
            Self::NegativeInfinity => return Ok(f64::NEG_INFINITY),
        };
        let value = number.to_f64();
        let fits = value.is_finite() && (value != 0.0 || number.is_zero());
        if fits { Ok(value) } else { Err(self.beyond_float("double precision")) }
    }

    /// `numeric_float4`.
    ///
    /// # Errors
    /// The number is too large, or too small to differ from 0.
    pub fn to_f32(&self) -> Result<f32, SqlError> {
        let number = match self {
            Self::Finite(number) => number,
            Self::NaN => return Ok(f32::NAN),
            Self::Infinity => return Ok(f32::INFINITY),
            Self::NegativeInfinity => return Ok(f32::NEG_INFINITY),
        };
        let value: f32 = number.scientific().parse().unwrap_or(f32::NAN);
        let fits = value.is_finite() && (value != 0.0 || number.is_zero());
        if fits { Ok(value) } else { Err(self.beyond_float("real")) }
    }

    fn beyond_float(&self, name: &str) -> SqlError {
        out_of_range(format!("\"{self}\" is out of range for type {name}"))
    }
}
