//! Products, quotients and remainders.

use std::cmp::Ordering;

use super::decimal::{BASE, DEC_DIGITS, Decimal};
use super::limits::{MAX_DISPLAY_SCALE, MIN_SIG_DIGITS};

impl Decimal {
    /// `mul_var`: the product, rounded to `scale` decimals.
    pub(super) fn multiply(&self, other: &Self, scale: i32) -> Self {
        if self.is_zero() || other.is_zero() {
            return Self::zero(scale);
        }
        let (long, short) = match self.digits.len() < other.digits.len() {
            true => (&other.digits, &self.digits),
            false => (&self.digits, &other.digits),
        };
        // A column's sum stays below 2^64, because no number has 2^37 digits.
        let mut sums = vec![0_u64; long.len() + short.len()];
        for (at, &digit) in short.iter().enumerate() {
            let columns = sums.iter_mut().skip(at + 1);
            for (sum, &other) in columns.zip(long) {
                *sum += u64::from(digit) * u64::from(other);
            }
        }
        let mut carry = 0;
        let mut digits = vec![0; sums.len()];
        for (digit, sum) in digits.iter_mut().zip(&sums).rev() {
            let sum = sum + carry;
            carry = sum / u64::from(BASE);
            *digit = (sum % u64::from(BASE)) as u16;
        }
        let negative = self.negative != other.negative;
        let weight = self.weight + other.weight + 1;
        let mut product = Self { negative, weight, scale: 0, digits }.stripped();
        product.round(scale);
        product
    }

    /// The product with all its decimals.
    pub(super) fn multiply_exactly(&self, other: &Self) -> Self {
        self.multiply(other, self.scale + other.scale)
    }

    /// `div_var`: the quotient, rounded or truncated to `scale` decimals; `None` if the divisor is 0.
    pub(super) fn divide(&self, divisor: &Self, scale: i32, round: bool) -> Option<Self> {
        if divisor.is_zero() {
            return None;
        }
        if self.is_zero() {
            return Some(Self::zero(scale));
        }
        let weight = self.weight - divisor.weight;
        // One more digit than wanted decides how to round.
        let wanted = weight + 1 + (scale + DEC_DIGITS - 1).div_euclid(DEC_DIGITS) + 1;
        let Ok(count) = usize::try_from(wanted.max(1)) else { return Some(Self::zero(scale)) };
        let digits = quotient(&self.digits, &divisor.digits, count);
        let negative = self.negative != divisor.negative;
        let mut result = Self { negative, weight, scale: 0, digits }.stripped();
        result.cut(scale, round);
        Some(result)
    }

    /// `select_div_scale`: how many decimals a quotient has, so that it has at least 16 significant
    /// digits and not fewer decimals than either operand.
    pub(super) fn division_scale(&self, divisor: &Self) -> i32 {
        let first = |number: &Self| number.digits.first().copied().unwrap_or(0);
        let carries = i32::from(first(self) <= first(divisor));
        let weight = self.weight - divisor.weight - carries;
        let scale = MIN_SIG_DIGITS - weight * DEC_DIGITS;
        scale.max(self.scale).max(divisor.scale).clamp(0, MAX_DISPLAY_SCALE)
    }

    /// `mod_var`: the remainder, with the dividend's sign; `None` if the divisor is 0.
    pub(super) fn remainder(&self, divisor: &Self) -> Option<Self> {
        let quotient = self.divide(divisor, 0, false)?;
        Some(self.subtract(&quotient.multiply(divisor, divisor.scale)))
    }

    /// `gcd_var`: the greatest common divisor, with the larger scale.
    pub(super) fn gcd(&self, other: &Self) -> Self {
        let scale = self.scale.max(other.scale);
        let (mut a, mut b) = (self.clone().absolute(), other.clone().absolute());
        if a.compare(&b) == Ordering::Less {
            std::mem::swap(&mut a, &mut b);
        }
        while let Some(rest) = a.remainder(&b) {
            a = std::mem::replace(&mut b, rest);
        }
        Self { scale, ..a }
    }
}

/// The first `count` digits of `dividend / divisor`, where both are taken as fractions with the same
/// weight. The first digit of the result is worth 1 and may be 0. The divisor's first digit is not 0.
///
/// This is Knuth's algorithm D.
fn quotient(dividend: &[u16], divisor: &[u16], count: usize) -> Vec<u16> {
    let base = u32::from(BASE);
    let size = divisor.len();
    let first = divisor.first().map_or(1, |&digit| u32::from(digit));
    // Both are multiplied by a factor that makes the divisor's first digit at least BASE / 2, so that
    // an estimate of a quotient's digit is at most 2 too large.
    let factor = base / (first + 1);
    let scaled = |digits: &mut dyn DoubleEndedIterator<Item = u16>| {
        let mut carry = 0;
        let mut scaled: Vec<u32> = digits
            .rev()
            .map(|digit| {
                let product = u32::from(digit) * factor + carry;
                carry = product / base;
                product % base
            })
            .collect();
        scaled.push(carry);
        scaled.reverse();
        scaled
    };
    // The first digit of the scaled divisor is 0, because the factor leaves no carry.
    let divisor = scaled(&mut divisor.iter().copied());
    let padding = (count + size).saturating_sub(dividend.len() + 1);
    let zeros = std::iter::repeat_n(0, padding);
    let mut digits: Vec<u16> = dividend.iter().copied().chain(zeros).collect();
    digits.truncate(count + size - 1);
    let mut rest = scaled(&mut digits.iter().copied());
    let [_, first, ..] = *divisor.as_slice() else { return Vec::new() };
    let second = divisor.get(2).copied().unwrap_or(0);
    let mut result = Vec::with_capacity(count);
    for at in 0..count {
        let Some(window) = rest.get_mut(at..=at + size) else { break };
        let [top, next, ..] = *window else { break };
        let third = window.get(2).copied().unwrap_or(0);
        let leading = top * base + next;
        let mut digit = (leading / first).min(base - 1);
        let mut left = leading - digit * first;
        while left < base && u64::from(digit) * u64::from(second) > pair(left, third) {
            digit -= 1;
            left += first;
        }
        if subtract(window, &divisor, digit) {
            digit -= 1;
            add_back(window, &divisor);
        }
        result.push(digit as u16);
    }
    result
}

fn pair(high: u32, low: u32) -> u64 {
    u64::from(high) * u64::from(BASE) + u64::from(low)
}

/// Subtracts `digit * divisor` and returns whether the result is negative, as a complement.
fn subtract(window: &mut [u32], divisor: &[u32], digit: u32) -> bool {
    let base = u32::from(BASE);
    let mut borrow = 0;
    for (rest, &part) in window.iter_mut().zip(divisor).rev() {
        let product = part * digit + borrow;
        let low = product % base;
        borrow = product / base + u32::from(*rest < low);
        *rest = if *rest < low { *rest + base - low } else { *rest - low };
    }
    borrow != 0
}

/// Undoes the last subtraction of `divisor`.
fn add_back(window: &mut [u32], divisor: &[u32]) {
    let base = u32::from(BASE);
    let mut carry = 0;
    for (rest, &part) in window.iter_mut().zip(divisor).rev() {
        let sum = *rest + part + carry;
        carry = u32::from(sum >= base);
        *rest = sum % base;
    }
}
