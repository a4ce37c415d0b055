//! Finite decimal numbers: addition, comparison and rounding.
//!
//! For example, 12345.6 has the digits 1, 2345 and 6000, a weight of 1, because 1 is multiplied by
//! 10,000 to the power of 1, and a scale of 1.

use std::cmp::Ordering;

/// `NBASE`: one more than the largest digit.
pub(super) const BASE: u16 = 10_000;
/// `DEC_DIGITS`: decimal digits per digit.
pub(super) const DEC_DIGITS: i32 = 4;

/// A finite decimal number of any size.
#[derive(Debug, Clone, Default)]
pub struct Decimal {
    pub(super) negative: bool,
    /// The power of 10,000 that the first digit is multiplied by.
    pub(super) weight: i32,
    /// The number of decimals that are printed. It is negative only within a calculation.
    pub(super) scale: i32,
    /// The digits. Neither the first nor the last is 0; zero itself has none.
    pub(super) digits: Vec<u16>,
}

impl Decimal {
    /// Zero with `scale` decimals.
    pub(super) fn zero(scale: i32) -> Self {
        Self { scale, ..Self::default() }
    }

    /// A number of one digit: `digit` times 10,000 to the power of `weight`.
    pub(super) fn from_digit(digit: u16, weight: i32, scale: i32) -> Self {
        Self { negative: false, weight, scale, digits: vec![digit] }
    }

    /// The number 1.
    pub(super) fn one() -> Self {
        Self::from_digit(1, 0, 0)
    }

    /// An integer.
    pub(crate) fn from_integer(value: i128) -> Self {
        let mut rest = value.unsigned_abs();
        let mut digits = Vec::with_capacity(10);
        while rest != 0 {
            digits.push((rest % u128::from(BASE)) as u16);
            rest /= u128::from(BASE);
        }
        digits.reverse();
        let weight = digits.len() as i32 - 1;
        Self { negative: value < 0, weight, scale: 0, digits }.stripped()
    }

    /// Removes zeros at both ends, and normalizes zero.
    pub(super) fn stripped(mut self) -> Self {
        self.strip();
        self
    }

    pub(super) fn strip(&mut self) {
        let leading = self.digits.iter().take_while(|&&digit| digit == 0).count();
        if leading > 0 {
            self.digits.drain(..leading);
            self.weight -= leading as i32;
        }
        while self.digits.last() == Some(&0) {
            self.digits.pop();
        }
        if self.digits.is_empty() {
            (self.negative, self.weight) = (false, 0);
        }
    }

    /// Whether the number is 0.
    pub fn is_zero(&self) -> bool {
        self.digits.is_empty()
    }

    /// Whether the number has no digits after the decimal point other than zeros.
    pub(super) fn is_integer(&self) -> bool {
        self.digits.len() as i32 <= self.weight + 1
    }

    /// The display scale: how many decimals are printed.
    pub fn scale(&self) -> i32 {
        self.scale
    }

    /// -1, 0 or 1.
    pub(super) fn signum(&self) -> i32 {
        match (self.is_zero(), self.negative) {
            (true, _) => 0,
            (false, true) => -1,
            (false, false) => 1,
        }
    }

    pub(super) fn negated(mut self) -> Self {
        self.negative = !self.negative && !self.is_zero();
        self
    }

    pub(super) fn absolute(mut self) -> Self {
        self.negative = false;
        self
    }

    /// The exponent of the last digit.
    fn last_weight(&self) -> i32 {
        self.weight + 1 - self.digits.len() as i32
    }

    /// The digit with this weight.
    fn digit(&self, weight: i32) -> u16 {
        let at = usize::try_from(self.weight - weight).ok();
        at.and_then(|at| self.digits.get(at)).copied().unwrap_or(0)
    }

    /// Compares two numbers without their signs.
    pub(super) fn compare_magnitude(&self, other: &Self) -> Ordering {
        match (self.is_zero(), other.is_zero()) {
            (false, false) => {
                self.weight.cmp(&other.weight).then_with(|| self.digits.cmp(&other.digits))
            }
            (self_zero, other_zero) => other_zero.cmp(&self_zero),
        }
    }

    /// Compares two numbers; the scale doesn't matter.
    pub(super) fn compare(&self, other: &Self) -> Ordering {
        self.signum().cmp(&other.signum()).then_with(|| match self.negative {
            true => other.compare_magnitude(self),
            false => self.compare_magnitude(other),
        })
    }

    /// `add_var`: the sum, with the larger scale.
    pub(crate) fn add(&self, other: &Self) -> Self {
        let mut sum = if self.negative == other.negative {
            self.add_magnitude(other, self.negative)
        } else {
            match self.compare_magnitude(other) {
                Ordering::Less => other.subtract_magnitude(self, other.negative),
                Ordering::Equal => Self::default(),
                Ordering::Greater => self.subtract_magnitude(other, self.negative),
            }
        };
        sum.scale = self.scale.max(other.scale);
        sum
    }

    /// `sub_var`: the difference, with the larger scale.
    pub(crate) fn subtract(&self, other: &Self) -> Self {
        self.add(&other.clone().negated())
    }

    fn add_magnitude(&self, other: &Self, negative: bool) -> Self {
        if self.is_zero() || other.is_zero() {
            let number = if self.is_zero() { other } else { self };
            return Self { negative: negative && !number.is_zero(), ..number.clone() };
        }
        let last = self.last_weight().min(other.last_weight());
        let weight = self.weight.max(other.weight) + 1;
        let mut digits = vec![0; (weight - last + 1) as usize];
        let mut carry = 0;
        for (at, digit) in (last..=weight).zip(digits.iter_mut().rev()) {
            let sum = self.digit(at) + other.digit(at) + carry;
            carry = u16::from(sum >= BASE);
            *digit = sum - carry * BASE;
        }
        Self { negative, weight, scale: 0, digits }.stripped()
    }

    /// The difference of the magnitudes; the other one must not be larger.
    fn subtract_magnitude(&self, other: &Self, negative: bool) -> Self {
        if other.is_zero() {
            return Self { negative, ..self.clone() };
        }
        let last = self.last_weight().min(other.last_weight());
        let mut digits = vec![0; (self.weight - last + 1) as usize];
        let mut borrow = 0;
        for (at, digit) in (last..=self.weight).zip(digits.iter_mut().rev()) {
            let (minuend, subtrahend) = (self.digit(at), other.digit(at) + borrow);
            borrow = u16::from(minuend < subtrahend);
            *digit = minuend + borrow * BASE - subtrahend;
        }
        Self { negative, weight: self.weight, scale: 0, digits }.stripped()
    }

    /// `round_var`: rounds to `scale` decimals, half away from zero. A negative scale rounds before the
    /// decimal point.
    pub(super) fn round(&mut self, scale: i32) {
        self.cut(scale, true);
    }

    /// `trunc_var`: like [`Decimal::round`], but towards zero.
    pub(super) fn truncate(&mut self, scale: i32) {
        self.cut(scale, false);
    }

    pub(super) fn rounded(mut self, scale: i32) -> Self {
        self.round(scale);
        self
    }

    pub(super) fn truncated(mut self, scale: i32) -> Self {
        self.truncate(scale);
        self
    }

    pub(super) fn cut(&mut self, scale: i32, round: bool) {
        self.scale = scale;
        // How many decimal digits remain.
        let Ok(wanted) = usize::try_from((self.weight + 1) * DEC_DIGITS + scale) else {
            self.digits.clear();
            return self.strip();
        };
        let (keep, partial) = (wanted.div_ceil(4), wanted % 4);
        let carry = if partial == 0 {
            let Some(&first_lost) = self.digits.get(keep) else { return };
            u16::from(first_lost >= BASE / 2)
        } else {
            let Some(last) = self.digits.get_mut(keep - 1) else { return };
            let unit = [1, 1000, 100, 10][partial];
            let lost = *last % unit;
            *last -= lost;
            if lost >= unit / 2 { unit } else { 0 }
        };
        self.digits.truncate(keep);
        if round && carry > 0 {
            self.increment(carry);
        }
        self.strip();
    }

    /// Adds to the last digit.
    fn increment(&mut self, mut carry: u16) {
        for digit in self.digits.iter_mut().rev() {
            *digit += carry;
            if *digit < BASE {
                return;
            }
            *digit -= BASE;
            carry = 1;
        }
        self.digits.insert(0, carry);
        self.weight += 1;
    }
}
