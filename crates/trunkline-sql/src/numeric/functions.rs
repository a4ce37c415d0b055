//! The other functions of numerics, such as `round`, `sqrt` and `power`.

use std::cmp::Ordering;

use super::decimal::{DEC_DIGITS, Decimal};
use super::limits::{
    DSCALE_MAX, MAX_DISPLAY_SCALE, MAX_RESULT_SCALE, MIN_SIG_DIGITS, WEIGHT_MAX, complex_power,
    out_of_range, overflow, power_error,
};
use super::power::LOG10_E;
use super::value::Numeric;
use crate::error::{SqlError, SqlState};

/// The largest argument of `factorial` whose result can be stored.
const FACTORIAL_MAX: i64 = 32_177;

impl Numeric {
    /// Changes a number, and leaves NaN and the infinities alone.
    fn map(self, change: impl FnOnce(Decimal) -> Decimal) -> Self {
        match self {
            Self::Finite(number) => Self::Finite(change(number)),
            special => special,
        }
    }

    /// `numeric_abs`.
    #[must_use]
    pub fn absolute(self) -> Self {
        match self {
            Self::Finite(number) => Self::Finite(number.absolute()),
            Self::NegativeInfinity => Self::Infinity,
            special => special,
        }
    }

    /// `numeric_sign`.
    #[must_use]
    pub fn sign(&self) -> Self {
        self.signum().map_or(Self::NaN, |sign| Self::from(i64::from(sign)))
    }

    /// `numeric_round`: rounds half away from zero. A negative scale rounds before the decimal point.
    #[must_use]
    pub fn round(self, scale: i32) -> Self {
        let scale = scale.clamp(-(WEIGHT_MAX + 1) * DEC_DIGITS - 1, DSCALE_MAX);
        self.map(|number| {
            let rounded = number.rounded(scale);
            Decimal { scale: scale.max(0), ..rounded }
        })
    }

    /// `numeric_trunc`: like [`Numeric::round`], but towards zero.
    #[must_use]
    pub fn truncate(self, scale: i32) -> Self {
        let scale = scale.clamp(-(WEIGHT_MAX + 1) * DEC_DIGITS, DSCALE_MAX);
        self.map(|number| {
            let truncated = number.truncated(scale);
            Decimal { scale: scale.max(0), ..truncated }
        })
    }

    /// `numeric_ceil`.
    #[must_use]
    pub fn ceiling(self) -> Self {
        self.negate().floor().negate()
    }

    /// `numeric_floor`.
    #[must_use]
    pub fn floor(self) -> Self {
        self.map(|number| {
            let integer = number.clone().truncated(0);
            match number.negative && !number.is_integer() {
                true => integer.subtract(&Decimal::one()),
                false => integer,
            }
        })
    }

    /// `numeric_scale`; `None` for NaN and infinities.
    pub fn scale(&self) -> Option<i32> {
        match self {
            Self::Finite(number) => Some(number.scale()),
            _ => None,
        }
    }

    /// `numeric_min_scale`: the decimals that the value needs; `None` for NaN and infinities.
    pub fn min_scale(&self) -> Option<i32> {
        match self {
            Self::Finite(number) => Some(min_scale(number)),
            _ => None,
        }
    }

    /// `numeric_trim_scale`: the value without zeros at its end.
    #[must_use]
    pub fn trim_scale(self) -> Self {
        self.map(|number| Decimal { scale: min_scale(&number), ..number })
    }

    /// `numeric_gcd`.
    #[must_use]
    pub fn gcd(&self, other: &Self) -> Self {
        self.finite(other).map_or(Self::NaN, |(one, other)| Self::Finite(one.gcd(other)))
    }

    /// `numeric_lcm`.
    #[must_use]
    pub fn lcm(&self, other: &Self) -> Self {
        let Some((one, other)) = self.finite(other) else { return Self::NaN };
        let scale = one.scale().max(other.scale());
        let quotient = one.divide(&one.gcd(other), 0, false).unwrap_or_default();
        let multiple = quotient.multiply(other, other.scale()).absolute();
        Self::Finite(Decimal { scale, ..multiple })
    }

    /// `numeric_fac`.
    ///
    /// # Errors
    /// The argument is negative, or the result is too large: 22003.
    pub fn factorial(of: i64) -> Result<Self, SqlError> {
        if of < 0 {
            return Err(out_of_range("factorial of a negative number is undefined"));
        }
        if of > FACTORIAL_MAX {
            return Err(overflow());
        }
        // Factors are combined as long as they fit, because a long multiplication is slow.
        let (mut product, mut factor) = (Decimal::one(), 1_i128);
        for n in 2..=i128::from(of) {
            factor *= n;
            if factor > 1 << 100 {
                product = product.multiply_exactly(&Decimal::from_integer(factor));
                factor = 1;
            }
        }
        Ok(Self::Finite(product.multiply_exactly(&Decimal::from_integer(factor))))
    }

    /// `numeric_sqrt`.
    ///
    /// # Errors
    /// The number is negative: 2201F.
    pub fn square_root(&self) -> Result<Self, SqlError> {
        if self.signum() == Some(-1) {
            return Err(power_error("cannot take square root of a negative number"));
        }
        let Self::Finite(number) = self else { return Ok(self.clone()) };
        let scale = MIN_SIG_DIGITS - (number.weight * DEC_DIGITS / 2 + 1);
        let scale = scale.max(number.scale()).clamp(0, MAX_DISPLAY_SCALE);
        Ok(Self::Finite(number.square_root(scale)))
    }

    /// `numeric_exp`.
    ///
    /// # Errors
    /// The result is too large: 22003.
    pub fn exponential(&self) -> Result<Self, SqlError> {
        let number = match self {
            Self::Finite(number) => number,
            Self::NegativeInfinity => return Ok(Self::zero()),
            _ => return Ok(self.clone()),
        };
        let limit = f64::from(MAX_RESULT_SCALE);
        let weight = (number.to_f64() * LOG10_E).clamp(-limit, limit) as i32;
        let scale = (MIN_SIG_DIGITS - weight).max(number.scale()).clamp(0, MAX_DISPLAY_SCALE);
        number.exponential(scale).map(Self::Finite)
    }

    /// `numeric_ln`.
    ///
    /// # Errors
    /// The number is not positive: 2201E.
    pub fn logarithm(&self) -> Result<Self, SqlError> {
        let number = match self {
            Self::Finite(number) => number,
            Self::NegativeInfinity => {
                return Decimal::one().negated().logarithm(0).map(Self::Finite);
            }
            _ => return Ok(self.clone()),
        };
        let scale = MIN_SIG_DIGITS - number.logarithm_weight();
        let scale = scale.max(number.scale()).clamp(0, MAX_DISPLAY_SCALE);
        number.logarithm(scale).map(Self::Finite)
    }

    /// `numeric_log`: the logarithm of `number` to the base `self`.
    ///
    /// # Errors
    /// A number is not positive: 2201E. The base is 1: 22012.
    pub fn logarithm_of(&self, number: &Self) -> Result<Self, SqlError> {
        if let Some((base, number)) = self.finite(number) {
            return base.logarithm_of(number).map(Self::Finite);
        }
        let (Some(base_sign), Some(sign)) = (self.signum(), number.signum()) else {
            return Ok(Self::NaN);
        };
        if base_sign.min(sign) < 1 {
            // The logarithm of a number with this sign fails as that of an infinite one must.
            return Decimal::from_integer(base_sign.min(sign).into())
                .logarithm(0)
                .map(Self::Finite);
        }
        Ok(match (self, number) {
            (Self::Infinity, Self::Infinity) => Self::NaN,
            (Self::Infinity, _) => Self::zero(),
            _ => Self::Infinity,
        })
    }

    /// `numeric_power`. Since version 16, the scale of an integer power depends on the result's size.
    ///
    /// # Errors
    /// The result is infinite or complex (2201F), or too large (22003).
    pub fn power(&self, exponent: &Self, major: u32) -> Result<Self, SqlError> {
        let one = || Self::from(1_i64);
        let equals = |value: &Self, integer: i64| matches!(value, Self::Finite(number) if number.to_exact_integer() == Some(integer));
        let (Some(sign), Some(exponent_sign)) = (self.signum(), exponent.signum()) else {
            let is_one = equals(exponent, 0) || equals(self, 1);
            return Ok(if is_one { one() } else { Self::NaN });
        };
        if sign == 0 && exponent_sign < 0 {
            return Err(power_error("zero raised to a negative power is undefined"));
        }
        if let Some((base, exponent)) = self.finite(exponent) {
            return base.power(exponent, major).map(Self::Finite);
        }
        let integral = |number: &Decimal| number.is_integer();
        if sign < 0 && matches!(exponent, Self::Finite(exponent) if !integral(exponent)) {
            return Err(complex_power());
        }
        if equals(self, 1) || exponent_sign == 0 {
            return Ok(one());
        }
        if sign == 0 {
            return Ok(Self::zero());
        }
        let Self::Finite(exponent) = exponent else {
            // The exponent is infinite, so only the base's distance from 0 matters.
            if equals(self, -1) {
                return Ok(one());
            }
            let above_one = self.clone().absolute().compare(&one()) == Ordering::Greater;
            let grows = above_one == (exponent_sign > 0);
            return Ok(if grows { Self::Infinity } else { Self::zero() });
        };
        Ok(match (exponent_sign < 0, sign < 0 && exponent.is_odd()) {
            (true, _) => Self::zero(),
            (false, true) => Self::NegativeInfinity,
            (false, false) => Self::Infinity,
        })
    }

    /// `width_bucket_numeric`: the number of the bucket, from 1 to `count`, in which the value is.
    /// Below the first it is 0, and above the last `count + 1`.
    ///
    /// # Errors
    /// An argument is invalid (2201G), or the result is too large (22003).
    pub fn width_bucket(&self, low: &Self, high: &Self, count: i32) -> Result<i32, SqlError> {
        let invalid = |message: &str| {
            SqlError::new(SqlState::INVALID_ARGUMENT_FOR_WIDTH_BUCKET_FUNCTION, message)
        };
        if count <= 0 {
            return Err(invalid("count must be greater than zero"));
        }
        if [self, low, high].iter().any(|value| matches!(value, Self::NaN)) {
            return Err(invalid("operand, lower bound, and upper bound cannot be NaN"));
        }
        let Some((first, last)) = low.finite(high) else {
            return Err(invalid("lower and upper bounds must be finite"));
        };
        let order = first.compare(last);
        if order == Ordering::Equal {
            return Err(invalid("lower bound cannot equal upper bound"));
        }
        // If the bounds are reversed, so is everything.
        let to_low = if order == Ordering::Less { self.compare(low) } else { low.compare(self) };
        let to_high = if order == Ordering::Less { self.compare(high) } else { high.compare(self) };
        if to_low == Ordering::Less {
            return Ok(0);
        }
        let bucket = match self {
            Self::Finite(value) if to_high == Ordering::Less => {
                let count = Decimal::from_integer(count.into());
                let distance = value.subtract(first).multiply_exactly(&count);
                let quotient = distance.divide(&last.subtract(first), 0, false);
                let bucket = quotient.and_then(|quotient| quotient.to_integer()).unwrap_or(0);
                return i32::try_from(bucket + 1).map_err(|_| integer_overflow());
            }
            _ => count.checked_add(1),
        };
        bucket.ok_or_else(integer_overflow)
    }
}

fn integer_overflow() -> SqlError {
    out_of_range("integer out of range")
}

/// `get_min_scale`.
fn min_scale(number: &Decimal) -> i32 {
    let Some(&last) = number.digits.last() else { return 0 };
    let decimals = (number.digits.len() as i32 - 1 - number.weight) * DEC_DIGITS;
    let zeros = [10, 100, 1000].iter().take_while(|&&unit| last % unit == 0).count();
    (decimals - zeros as i32).max(0)
}
