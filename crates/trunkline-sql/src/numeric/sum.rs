//! Sums of many numerics.
//!
//! ```text
//!   weight   1     0    -1
//!           12  3456  7890     a number is added digit by digit,
//!                1    -5000    so the digits of a sum may be large or negative
//! ```
//!
//! Carries are propagated only when the sum is read, so that adding a number allocates nothing. A digit
//! of 64 bits has room for 9 * 10^14 numbers.

use trunkline_format::numeric::{Finite, Numeric as Stored};

use super::decimal::{BASE, Decimal};
use super::value::Numeric;
use crate::error::SqlError;

/// A sum, with the number of values.
#[derive(Debug, Clone, Default)]
pub struct NumericSum {
    count: i64,
    nans: i64,
    infinities: i64,
    negative_infinities: i64,
    /// The largest scale of a value.
    scale: i32,
    /// The weight of the first digit.
    weight: i32,
    digits: Vec<i64>,
}

impl NumericSum {
    /// Adds a payload.
    ///
    /// # Errors
    /// It is not a numeric.
    pub fn add_payload(&mut self, payload: &[u8]) -> Result<(), SqlError> {
        let Some(Stored::Finite(Finite { negative, scale, weight, digits })) =
            Stored::parse(payload)
        else {
            self.add(&Numeric::decode(payload)?);
            return Ok(());
        };
        let (digits, odd) = digits.as_chunks::<2>();
        let digits = digits.iter().map(|&bytes| u16::from_le_bytes(bytes));
        if !odd.is_empty() || digits.clone().any(|digit| digit >= BASE) {
            return Err(super::stored::malformed());
        }
        self.count += 1;
        self.scale = self.scale.max(scale);
        self.add_digits(negative, weight, digits);
        Ok(())
    }

    /// Adds a value.
    pub fn add(&mut self, value: &Numeric) {
        self.count += 1;
        match value {
            Numeric::Finite(number) => self.add_number(number),
            Numeric::NaN => self.nans += 1,
            Numeric::Infinity => self.infinities += 1,
            Numeric::NegativeInfinity => self.negative_infinities += 1,
        }
    }

    /// Adds another sum.
    pub fn merge(&mut self, other: &Self) {
        self.count += other.count;
        self.nans += other.nans;
        self.infinities += other.infinities;
        self.negative_infinities += other.negative_infinities;
        self.add_number(&other.finite_total());
    }

    fn add_number(&mut self, number: &Decimal) {
        self.scale = self.scale.max(number.scale);
        self.add_digits(number.negative, number.weight, number.digits.iter().copied());
    }

    fn add_digits(
        &mut self,
        negative: bool,
        weight: i32,
        digits: impl ExactSizeIterator<Item = u16>,
    ) {
        if digits.len() == 0 {
            return;
        }
        if self.digits.is_empty() {
            self.weight = weight;
        }
        if weight > self.weight {
            let missing = (weight - self.weight) as usize;
            self.digits.splice(..0, std::iter::repeat_n(0, missing));
            self.weight = weight;
        }
        let start = (self.weight - weight) as usize;
        if self.digits.len() < start + digits.len() {
            self.digits.resize(start + digits.len(), 0);
        }
        for (sum, digit) in self.digits.iter_mut().skip(start).zip(digits) {
            *sum += if negative { -i64::from(digit) } else { i64::from(digit) };
        }
    }

    /// The sum of the finite values.
    fn finite_total(&self) -> Decimal {
        // The carry out of the first digit may need several more. Its sign is the sum's.
        let carried = |negative: bool| {
            let mut carry = 0;
            let mut digits: Vec<u16> = Vec::with_capacity(self.digits.len() + 5);
            for &digit in self.digits.iter().rev() {
                let value = if negative { -digit } else { digit } + carry;
                digits.push(value.rem_euclid(i64::from(BASE)) as u16);
                carry = value.div_euclid(i64::from(BASE));
            }
            if carry < 0 {
                return None;
            }
            let mut weight = self.weight;
            while carry > 0 {
                digits.push((carry % i64::from(BASE)) as u16);
                carry /= i64::from(BASE);
                weight += 1;
            }
            digits.reverse();
            Some(Decimal { negative, weight, scale: self.scale, digits }.stripped())
        };
        carried(false).or_else(|| carried(true)).unwrap_or_default()
    }

    /// How many values have been added.
    pub fn count(&self) -> i64 {
        self.count
    }

    /// Whether a value is NaN or infinite.
    pub fn has_special(&self) -> bool {
        self.nans + self.infinities + self.negative_infinities > 0
    }

    /// The sum; zero if there are no values.
    pub fn total(&self) -> Numeric {
        match (self.nans, self.infinities, self.negative_infinities) {
            (0, 0, 0) => Numeric::Finite(self.finite_total()),
            (0, _, 0) => Numeric::Infinity,
            (0, 0, _) => Numeric::NegativeInfinity,
            _ => Numeric::NaN,
        }
    }

    /// Appends the sum to `out`, for [`NumericSum::load`].
    ///
    /// # Errors
    /// The sum is too large for a numeric.
    pub fn save(&self, out: &mut Vec<u8>) -> Result<(), SqlError> {
        for count in [self.count, self.nans, self.infinities, self.negative_infinities] {
            out.extend_from_slice(&count.to_le_bytes());
        }
        let mut total = Vec::new();
        Numeric::Finite(self.finite_total()).encode(&mut total)?;
        out.extend_from_slice(&(total.len() as u64).to_le_bytes());
        out.extend_from_slice(&total);
        Ok(())
    }

    /// Reads a sum from the start of `saved` and moves on behind it.
    ///
    /// # Errors
    /// The bytes are not a saved sum, which is a bug.
    pub fn load(saved: &mut &[u8]) -> Result<Self, SqlError> {
        let mut sum = Self::default();
        let truncated = || SqlError::internal("a saved sum is truncated");
        let mut word = || {
            let (word, rest) = saved.split_first_chunk::<8>().ok_or_else(truncated)?;
            *saved = rest;
            Ok::<i64, SqlError>(i64::from_le_bytes(*word))
        };
        sum.count = word()?;
        (sum.nans, sum.infinities, sum.negative_infinities) = (word()?, word()?, word()?);
        let length = usize::try_from(word()?).map_err(|_| truncated())?;
        let (total, rest) = saved.split_at_checked(length).ok_or_else(truncated)?;
        *saved = rest;
        if let Numeric::Finite(total) = Numeric::decode(total)? {
            sum.add_number(&total);
        }
        Ok(sum)
    }

    /// The memory that the sum has allocated, in bytes.
    pub fn size(&self) -> usize {
        self.digits.capacity() * size_of::<i64>()
    }
}

impl Numeric {
    /// The variance (`numeric_stddev_internal`) of `count` values, from their sum and the sum of their
    /// squares. With `sample`, it is that of a sample; with `root`, the standard deviation.
    ///
    /// # Errors
    /// The divisor is 0, which means that there are too few values.
    pub fn variance(
        count: i64,
        sum: &Self,
        squares: &Self,
        sample: bool,
        root: bool,
    ) -> Result<Self, SqlError> {
        let Some((sum, squares)) = sum.finite(squares) else { return Ok(Self::NaN) };
        let count = Decimal::from_integer(count.into());
        let scale = sum.scale() * 2;
        let numerator = count.multiply(squares, scale).subtract(&sum.multiply(sum, scale));
        if numerator.signum() <= 0 {
            return Ok(Self::zero());
        }
        let other = if sample { count.subtract(&Decimal::one()) } else { count.clone() };
        let divisor = count.multiply(&other, 0);
        let scale = numerator.division_scale(&divisor);
        let variance = numerator.divide(&divisor, scale, true);
        let variance = variance.ok_or_else(super::limits::division_by_zero)?;
        Ok(Self::Finite(if root { variance.square_root(scale) } else { variance }))
    }
}
