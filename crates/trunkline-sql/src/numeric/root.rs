//! Square roots. For example, that of 2 with 15 decimals is 1.414213562373095. The root of an integer
//! is exact, so a result is always rounded correctly.

use std::cmp::Ordering;

use super::decimal::{BASE, DEC_DIGITS, Decimal};

impl Decimal {
    /// `sqrt_var`: the square root, rounded to `scale` decimals. A negative scale rounds before the
    /// decimal point. The number must not be negative.
    pub(super) fn square_root(&self, scale: i32) -> Self {
        if self.is_zero() {
            return Self::zero(scale);
        }
        // The root of an integer with one digit more than wanted decides how to round.
        let decimals = scale.div_euclid(DEC_DIGITS) + 2;
        let radicand = Self { weight: self.weight + 2 * decimals, scale: 0, ..self.clone() };
        let mut root = integer_root(&radicand.truncated(0));
        if !root.is_zero() {
            root.weight -= decimals;
        }
        root.round(scale);
        root
    }
}

/// The largest integer whose square is not above `number`, which is an integer.
///
/// The root of the upper half of the digits is correct to half of the root's digits, and one step of
/// Newton's method doubles them.
fn integer_root(number: &Decimal) -> Decimal {
    if number.weight < 8 {
        let digits = (0..=number.weight).map(|at| number.digits.get(at as usize));
        let value = digits.fold(0_u128, |value, digit| {
            value * u128::from(BASE) + digit.map_or(0, |&digit| u128::from(digit))
        });
        return Decimal::from_integer(value.isqrt() as i128);
    }
    let low = number.weight / 4;
    let upper = Decimal { weight: number.weight - 2 * low, ..number.clone() }.truncated(0);
    let mut estimate = integer_root(&upper);
    estimate.weight += low;
    let Some(quotient) = number.divide(&estimate, 0, false) else { return estimate };
    let half = Decimal::from_digit(BASE / 2, -1, 1);
    let mut root = estimate.add(&quotient).multiply(&half, 1).truncated(0);
    let one = Decimal::one();
    while root.multiply(&root, 0).compare(number) == Ordering::Greater {
        root = root.subtract(&one);
    }
    loop {
        let next = root.add(&one);
        if next.multiply(&next, 0).compare(number) == Ordering::Greater {
            return root;
        }
        root = next;
    }
}
