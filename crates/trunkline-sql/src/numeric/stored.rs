//! Between a numeric and its stored form, and its text.

use std::fmt;

use trunkline_format::numeric::{
    Finite, INFINITY, MINUS_INFINITY, NAN, Numeric as Stored, NumericOverflow, encode,
};

use super::decimal::{BASE, Decimal};
use super::limits::overflow;
use super::value::Numeric;
use crate::error::{SqlError, SqlState};

pub(super) fn malformed() -> SqlError {
    SqlError::new(SqlState::DATA_CORRUPTED, "a value of type numeric is malformed")
}

impl Numeric {
    /// Decodes a payload.
    ///
    /// # Errors
    /// The bytes are not a numeric: XX001.
    pub fn decode(payload: &[u8]) -> Result<Self, SqlError> {
        match Stored::parse(payload).ok_or_else(malformed)? {
            Stored::Finite(number) => decode_finite(&number).map(Self::Finite),
            Stored::Special(NAN) => Ok(Self::NaN),
            Stored::Special(INFINITY) => Ok(Self::Infinity),
            Stored::Special(MINUS_INFINITY) => Ok(Self::NegativeInfinity),
            Stored::Special(_) => Err(malformed()),
        }
    }

    /// Appends the payload.
    ///
    /// # Errors
    /// The number is too large, or has too many decimals: 22003.
    pub fn encode(&self, out: &mut Vec<u8>) -> Result<(), SqlError> {
        let header: u16 = match self {
            Self::Finite(number) => {
                let Decimal { negative, weight, scale, .. } = *number;
                return encode(negative, weight, scale, &number.digits, out)
                    .map_err(|NumericOverflow| overflow());
            }
            Self::NaN => NAN,
            Self::Infinity => INFINITY,
            Self::NegativeInfinity => MINUS_INFINITY,
        };
        out.extend_from_slice(&header.to_le_bytes());
        Ok(())
    }

    /// The payload.
    ///
    /// # Errors
    /// As for [`Numeric::encode`].
    pub fn to_payload(&self) -> Result<Vec<u8>, SqlError> {
        let mut payload = Vec::with_capacity(16);
        self.encode(&mut payload)?;
        Ok(payload)
    }
}

fn decode_finite(number: &Finite<'_>) -> Result<Decimal, SqlError> {
    let (digits, odd) = number.digits.as_chunks::<2>();
    let digits: Vec<u16> = digits.iter().map(|&bytes| u16::from_le_bytes(bytes)).collect();
    if !odd.is_empty() || digits.iter().any(|&digit| digit >= BASE) {
        return Err(malformed());
    }
    let Finite { negative, weight, scale, .. } = *number;
    Ok(Decimal { negative, weight, scale, digits }.stripped())
}

impl fmt::Display for Numeric {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Finite(number) => return number.fmt(f),
            Self::NaN => "NaN",
            Self::Infinity => "Infinity",
            Self::NegativeInfinity => "-Infinity",
        })
    }
}

impl fmt::Display for Decimal {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let digit = |weight: i32| {
            let at = usize::try_from(self.weight - weight).ok();
            at.and_then(|at| self.digits.get(at)).copied().unwrap_or(0)
        };
        if self.negative {
            f.write_str("-")?;
        }
        write!(f, "{}", digit(self.weight.max(0)))?;
        for weight in (0..self.weight).rev() {
            write!(f, "{:04}", digit(weight))?;
        }
        let mut decimals = usize::try_from(self.scale).unwrap_or(0);
        if decimals > 0 {
            f.write_str(".")?;
        }
        for weight in (i32::MIN..0).rev() {
            if decimals == 0 {
                break;
            }
            let shown = decimals.min(4);
            let digits = format!("{:04}", digit(weight));
            f.write_str(digits.get(..shown).unwrap_or_default())?;
            decimals -= shown;
        }
        Ok(())
    }
}
