//! Exponentials, logarithms and powers.
//!
//! Like PostgreSQL, we choose the scale of each step so that the result has the digits that it shows,
//! and a few more that decide how to round. The estimates that choose a scale use floating point,
//! because they decide how many decimals a result has and so must agree with PostgreSQL's.

use std::cmp::Ordering;

use super::decimal::{BASE, DEC_DIGITS, Decimal};
use super::limits::{
    MAX_DISPLAY_SCALE, MAX_RESULT_SCALE, MIN_SIG_DIGITS, WEIGHT_MAX, complex_power,
    division_by_zero, logarithm_error, overflow,
};
use crate::error::SqlError;

/// The decimal logarithm of e, with the digits that PostgreSQL uses.
#[expect(clippy::approx_constant, reason = "estimates must be rounded as PostgreSQL rounds them")]
pub(super) const LOG10_E: f64 = 0.434_294_481_903_252;
/// The decimal logarithm of 2.
#[expect(clippy::approx_constant, reason = "estimates must be rounded as PostgreSQL rounds them")]
const LOG10_2: f64 = 0.301_029_995_663_981;
/// Digits beyond those that a result shows.
const GUARD_DIGITS: i32 = 8;

impl Decimal {
    /// `exp_var`: e to the power of the number, rounded to `scale` decimals.
    ///
    /// # Errors
    /// The result is too large.
    pub(super) fn exponential(&self, scale: i32) -> Result<Self, SqlError> {
        let mut value = self.to_f64();
        if value.abs() >= f64::from(MAX_RESULT_SCALE * 3) {
            return if value > 0.0 { Err(overflow()) } else { Ok(Self::zero(scale)) };
        }
        let result_weight = (value * LOG10_E) as i32;
        // The Taylor series converges fast near 0, so the argument is halved until it is there.
        let mut halvings = 0;
        while value.abs() > 0.01 {
            halvings += 1;
            value /= 2.0;
        }
        let mut x = self.clone();
        if halvings > 0 {
            let divisor = Self::from_integer(1 << halvings);
            x = x.divide(&divisor, self.scale + halvings, true).unwrap_or_default();
        }
        let significant = 1 + result_weight + scale + (f64::from(halvings) * LOG10_2) as i32;
        let significant = significant.max(0) + GUARD_DIGITS;
        let mut result = x.exponential_series(significant - 1);
        for _ in 0..halvings {
            let local_scale = (significant - result.weight * 2 * DEC_DIGITS).max(0);
            result = result.multiply(&result, local_scale);
        }
        result.round(scale);
        Ok(result)
    }

    /// The Taylor series of e to the power of a number near 0.
    fn exponential_series(&self, scale: i32) -> Self {
        let mut sum = Self::one().add(self);
        let mut term = self.clone();
        for n in 2.. {
            let power = term.multiply(self, scale);
            term = power.divide(&Self::from_integer(n), scale, true).unwrap_or_default();
            if term.is_zero() {
                break;
            }
            sum = sum.add(&term);
        }
        sum
    }

    /// `estimate_ln_dweight`: about the decimal logarithm of the natural logarithm.
    pub(super) fn logarithm_weight(&self) -> i32 {
        let (Some(&first), false) = (self.digits.first(), self.negative) else { return 0 };
        let tenths = |number: u16| Self { digits: vec![0, number], ..Self::one() }.stripped();
        let (low, high) = (tenths(9000), tenths(1000).add(&Self::one()));
        if self.compare(&low) != Ordering::Less && self.compare(&high) != Ordering::Greater {
            let difference = self.subtract(&Self::one());
            let Some(&first) = difference.digits.first() else { return 0 };
            return difference.weight * DEC_DIGITS + f64::from(first).log10() as i32;
        }
        let (mut digits, mut weight) = (f64::from(first), self.weight * DEC_DIGITS);
        if let Some(&second) = self.digits.get(1) {
            digits = digits * f64::from(BASE) + f64::from(second);
            weight -= DEC_DIGITS;
        }
        let logarithm = digits.ln() + f64::from(weight) * std::f64::consts::LN_10;
        logarithm.abs().log10() as i32
    }

    /// `ln_var`: the natural logarithm, rounded to `scale` decimals.
    ///
    /// # Errors
    /// The number is not positive.
    pub(super) fn logarithm(&self, scale: i32) -> Result<Self, SqlError> {
        match self.signum() {
            0 => return Err(logarithm_error("zero")),
            -1 => return Err(logarithm_error("a negative number")),
            _ => {}
        }
        let one = Self::one();
        let near = |limit: u16| Self { digits: vec![limit / BASE, limit % BASE], ..Self::one() };
        let (low, high) = (near(9000).stripped(), near(11_000).stripped());
        // Square roots bring the number near 1, where the series converges.
        let (mut x, mut roots) = (self.clone(), 0);
        while x.compare(&low) != Ordering::Greater || x.compare(&high) != Ordering::Less {
            x = x.square_root(scale - x.weight * DEC_DIGITS / 2 + GUARD_DIGITS);
            roots += 1;
        }
        let local_scale = scale + (f64::from(roots + 1) * LOG10_2) as i32 + GUARD_DIGITS;
        // The series of 0.5 * ln((1 + z) / (1 - z)) is z + z^3 / 3 + z^5 / 5 and so on.
        let z = x.subtract(&one).divide(&x.add(&one), local_scale, true).unwrap_or_default();
        let square = z.multiply(&z, local_scale);
        let (mut sum, mut power) = (z.clone(), z);
        for n in (3..).step_by(2) {
            power = power.multiply(&square, local_scale);
            let term = power.divide(&Self::from_integer(n), local_scale, true).unwrap_or_default();
            if term.is_zero() {
                break;
            }
            sum = sum.add(&term);
        }
        let factor = (0..=roots).fold(one, |factor, _| factor.add(&factor));
        Ok(sum.multiply(&factor, scale))
    }

    /// `log_var`: the logarithm of `number` to the base `self`.
    ///
    /// # Errors
    /// A number is not positive, or the base is 1.
    pub(super) fn logarithm_of(&self, number: &Self) -> Result<Self, SqlError> {
        let (base_weight, number_weight) = (self.logarithm_weight(), number.logarithm_weight());
        let weight = number_weight - base_weight;
        let scale = (MIN_SIG_DIGITS - weight).max(self.scale).max(number.scale);
        let scale = scale.clamp(0, MAX_DISPLAY_SCALE);
        let digits = scale + weight + GUARD_DIGITS;
        let base = self.logarithm((digits - base_weight).max(0))?;
        let number = number.logarithm((digits - number_weight).max(0))?;
        number.divide(&base, scale, true).ok_or_else(division_by_zero)
    }

    /// `power_var`: the number to the power of `exponent`.
    ///
    /// # Errors
    /// The result is too large or complex.
    pub(super) fn power(&self, exponent: &Self, major: u32) -> Result<Self, SqlError> {
        if let Some(integer) = exponent.to_exact_integer().and_then(|n| i32::try_from(n).ok()) {
            return self.integer_power(integer, exponent.scale, major);
        }
        if self.is_zero() {
            return Ok(Self::zero(MIN_SIG_DIGITS));
        }
        if self.negative && !exponent.is_integer() {
            return Err(complex_power());
        }
        let negative = self.negative && exponent.is_odd();
        let base = self.clone().absolute();
        let weight = base.logarithm_weight();
        let local_scale = (GUARD_DIGITS - weight).max(0);
        let estimate = base.logarithm(local_scale)?.multiply(exponent, local_scale).to_f64();
        if estimate.abs() > f64::from(MAX_RESULT_SCALE) * 3.01 {
            return match estimate > 0.0 {
                true => Err(overflow()),
                false => Ok(Self::zero(MAX_DISPLAY_SCALE)),
            };
        }
        let result_weight = (estimate * LOG10_E) as i32;
        let scale = (MIN_SIG_DIGITS - result_weight).max(self.scale).max(exponent.scale);
        let scale = scale.clamp(0, MAX_DISPLAY_SCALE);
        let significant = (scale + result_weight).max(0);
        let local_scale = (significant - weight + GUARD_DIGITS).max(0);
        let product = base.logarithm(local_scale)?.multiply(exponent, local_scale);
        let result = product.exponential(scale)?;
        Ok(if negative { result.negated() } else { result })
    }

    /// `power_var_int`: the number to the power of an integer, by repeated squaring.
    fn integer_power(
        &self,
        exponent: i32,
        exponent_scale: i32,
        major: u32,
    ) -> Result<Self, SqlError> {
        let result_weight = f64::from(exponent) * self.decimal_logarithm();
        if result_weight > f64::from((WEIGHT_MAX + 1) * DEC_DIGITS) {
            return Err(overflow());
        }
        let scale = match major {
            ..16 => MIN_SIG_DIGITS.max(self.scale),
            _ => (MIN_SIG_DIGITS - result_weight as i32).max(self.scale).max(exponent_scale),
        };
        let scale = scale.clamp(0, MAX_DISPLAY_SCALE);
        let least_weight = if major < 16 { scale } else { MAX_DISPLAY_SCALE };
        if result_weight + 1.0 < f64::from(-least_weight) && ![0, 1, -1, 2].contains(&exponent) {
            return Ok(Self::zero(least_weight));
        }
        let inverse = |number: &Self| {
            let inverse = Self::one().divide(number, scale, true);
            inverse.ok_or_else(division_by_zero)
        };
        match exponent {
            0 => return Ok(Self { scale, ..Self::one() }),
            1 => return Ok(self.clone().rounded(scale)),
            -1 => return inverse(self),
            2 => return Ok(self.multiply(self, scale)),
            _ if self.is_zero() && exponent < 0 => return inverse(self),
            _ if self.is_zero() => return Ok(Self::zero(scale)),
            _ => {}
        }
        let significant = 1 + scale + result_weight as i32;
        let guard = f64::from(exponent).abs().ln() as i32 + GUARD_DIGITS;
        match self.repeated_square(exponent.unsigned_abs(), significant + guard) {
            None if exponent > 0 => Err(overflow()),
            None => Ok(Self::zero(scale)),
            Some(result) if exponent < 0 => inverse(&result),
            Some(result) => Ok(result.rounded(scale)),
        }
    }

    /// A power to about `significant` digits; `None` if it is too large for a numeric.
    fn repeated_square(&self, exponent: u32, significant: i32) -> Option<Self> {
        let product = |a: &Self, b: &Self| {
            let scale = significant - (a.weight + b.weight) * DEC_DIGITS;
            a.multiply(b, scale.min(a.scale + b.scale).max(0))
        };
        let mut square = self.clone();
        let mut result = if exponent & 1 == 1 { self.clone() } else { Self::one() };
        let mut rest = exponent >> 1;
        while rest > 0 {
            square = product(&square, &square);
            if rest & 1 == 1 {
                result = product(&square, &result);
            }
            if square.weight > WEIGHT_MAX || result.weight > WEIGHT_MAX {
                return None;
            }
            rest >>= 1;
        }
        Some(result)
    }

    /// About the decimal logarithm of the magnitude, from the first 16 decimal digits.
    fn decimal_logarithm(&self) -> f64 {
        let Some((&first, others)) = self.digits.split_first() else { return 0.0 };
        let (mut fraction, mut weight) = (f64::from(first), self.weight * DEC_DIGITS);
        for &digit in others.iter().take(3) {
            fraction = fraction * f64::from(BASE) + f64::from(digit);
            weight -= DEC_DIGITS;
        }
        fraction.log10() + f64::from(weight)
    }

    /// Whether an integer is odd.
    pub(super) fn is_odd(&self) -> bool {
        let units = usize::try_from(self.weight).ok().and_then(|at| self.digits.get(at));
        units.is_some_and(|digit| digit % 2 == 1)
    }
}
