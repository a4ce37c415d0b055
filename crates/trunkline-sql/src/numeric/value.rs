//! Values of type `numeric`: the four operations and the order, with the rules for NaN and infinity.

use std::cmp::Ordering;

use super::decimal::Decimal;
use super::limits::{DSCALE_MAX, division_by_zero};
use crate::error::SqlError;

/// A value of type `numeric`.
#[derive(Debug, Clone)]
pub enum Numeric {
    /// A number.
    Finite(Decimal),
    /// Not a number. It equals itself and is above everything else.
    NaN,
    /// Above all numbers.
    Infinity,
    /// Below all numbers.
    NegativeInfinity,
}

impl Numeric {
    /// Zero without decimals.
    pub(super) fn zero() -> Self {
        Self::Finite(Decimal::zero(0))
    }

    /// -1, 0 or 1; `None` for NaN.
    pub(super) fn signum(&self) -> Option<i32> {
        match self {
            Self::Finite(number) => Some(number.signum()),
            Self::NaN => None,
            Self::Infinity => Some(1),
            Self::NegativeInfinity => Some(-1),
        }
    }

    /// An infinity with this sign. The product of infinity and 0 is NaN.
    fn infinite(sign: Option<i32>) -> Self {
        match sign {
            Some(1) => Self::Infinity,
            Some(-1) => Self::NegativeInfinity,
            _ => Self::NaN,
        }
    }

    /// Both numbers, if both are finite.
    pub(super) fn finite<'a>(&'a self, other: &'a Self) -> Option<(&'a Decimal, &'a Decimal)> {
        match (self, other) {
            (Self::Finite(one), Self::Finite(other)) => Some((one, other)),
            _ => None,
        }
    }

    /// `numeric_cmp`.
    pub fn compare(&self, other: &Self) -> Ordering {
        let rank = |value: &Self| match value {
            Self::NegativeInfinity => 0,
            Self::Finite(_) => 1,
            Self::Infinity => 2,
            Self::NaN => 3,
        };
        match self.finite(other) {
            Some((one, other)) => one.compare(other),
            None => rank(self).cmp(&rank(other)),
        }
    }

    /// `numeric_uminus`.
    #[must_use]
    pub fn negate(self) -> Self {
        match self {
            Self::Finite(number) => Self::Finite(number.negated()),
            Self::NaN => Self::NaN,
            Self::Infinity => Self::NegativeInfinity,
            Self::NegativeInfinity => Self::Infinity,
        }
    }

    /// `numeric_add`.
    #[must_use]
    pub fn add(&self, other: &Self) -> Self {
        match (self, other) {
            (Self::Finite(one), Self::Finite(other)) => Self::Finite(one.add(other)),
            (Self::NaN, _) | (_, Self::NaN) => Self::NaN,
            (Self::Infinity, Self::NegativeInfinity) => Self::NaN,
            (Self::NegativeInfinity, Self::Infinity) => Self::NaN,
            (Self::Finite(_), infinite) | (infinite, _) => infinite.clone(),
        }
    }

    /// `numeric_sub`.
    #[must_use]
    pub fn subtract(&self, other: &Self) -> Self {
        self.add(&other.clone().negate())
    }

    /// `numeric_mul`.
    #[must_use]
    pub fn multiply(&self, other: &Self) -> Self {
        let Some((one, other)) = self.finite(other) else {
            let sign = self.signum().zip(other.signum()).map(|(one, other)| one * other);
            return Self::infinite(sign);
        };
        let mut product = one.multiply_exactly(other);
        if product.scale() > DSCALE_MAX {
            product.round(DSCALE_MAX);
        }
        Self::Finite(product)
    }

    /// `numeric_div`.
    ///
    /// # Errors
    /// The divisor is 0: 22012.
    pub fn divide(&self, divisor: &Self) -> Result<Self, SqlError> {
        let Some((number, divisor)) = self.finite(divisor) else {
            return self.divide_special(divisor);
        };
        let scale = number.division_scale(divisor);
        let quotient = number.divide(divisor, scale, true);
        quotient.map(Self::Finite).ok_or_else(division_by_zero)
    }

    /// `numeric_div_trunc`: the quotient without decimals.
    ///
    /// # Errors
    /// The divisor is 0: 22012.
    pub fn divide_truncating(&self, divisor: &Self) -> Result<Self, SqlError> {
        let Some((number, divisor)) = self.finite(divisor) else {
            return self.divide_special(divisor);
        };
        let quotient = number.divide(divisor, 0, false);
        quotient.map(Self::Finite).ok_or_else(division_by_zero)
    }

    /// The quotient if not both are finite.
    fn divide_special(&self, divisor: &Self) -> Result<Self, SqlError> {
        match (self, divisor) {
            (Self::NaN, _) | (_, Self::NaN) => Ok(Self::NaN),
            (Self::Finite(_), _) => Ok(Self::zero()),
            (_, Self::Finite(divisor)) if divisor.is_zero() => Err(division_by_zero()),
            (_, Self::Finite(divisor)) => {
                Ok(Self::infinite(self.signum().map(|sign| sign * divisor.signum())))
            }
            _ => Ok(Self::NaN),
        }
    }

    /// `numeric_mod`: the remainder, with the dividend's sign.
    ///
    /// # Errors
    /// The divisor is 0: 22012.
    pub fn remainder(&self, divisor: &Self) -> Result<Self, SqlError> {
        match (self, divisor) {
            (Self::Finite(number), Self::Finite(divisor)) => {
                number.remainder(divisor).map(Self::Finite).ok_or_else(division_by_zero)
            }
            (Self::NaN, _) | (_, Self::NaN) => Ok(Self::NaN),
            (_, Self::Finite(divisor)) if divisor.is_zero() => Err(division_by_zero()),
            (Self::Finite(_), _) => Ok(self.clone()),
            _ => Ok(Self::NaN),
        }
    }
}
