//! `interval`: months, days and microseconds, and the arithmetic on them.
//!
//! The three fields are never converted to one another, except by the functions named `justify_…`.
//! Comparisons take a month as 30 days and a day as 24 hours, so `1 mon` equals `30 days`.
//!
//! Since PostgreSQL 17, an interval can be infinite. It then has all its fields at their maximum or at
//! their minimum. In older versions that is an ordinary value, so everything that treats infinity
//! specially takes the version.
//!
//! ```
//! use trunkline_sql::functions::Interval;
//! let month = Interval { months: 1, days: 0, micros: 0 };
//! let days = Interval { months: 0, days: 30, micros: 0 };
//! assert_eq!(month.span(), days.span());
//! assert_eq!(month.times(0.5, 18), Ok(Interval { months: 0, days: 15, micros: 0 }));
//! ```
//!
//! Mirrors the functions on intervals of PostgreSQL's `utils/adt/timestamp.c`.

use arrow_array::FixedSizeBinaryArray;
use arrow_array::builder::FixedSizeBinaryBuilder;
use trunkline_format::calendar::DAY_US;

use super::super::rows::{Input, Output};
use super::error::interval_out_of_range;
use crate::error::{SqlError, SqlState};

/// Seconds in a day.
const DAY_S: f64 = 86_400.0;
/// Days in a month, where one has to be assumed.
const MONTH_DAYS: i32 = 30;

/// A value of the type `interval`.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Default)]
pub struct Interval {
    /// Microseconds.
    pub micros: i64,
    /// Days.
    pub days: i32,
    /// Months.
    pub months: i32,
}

/// One end of a type that has infinite values.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Infinity {
    /// `-infinity`.
    Minus,
    /// `infinity`.
    Plus,
}

impl Infinity {
    /// Which end an infinite date, or `None` if the date is finite.
    pub(super) fn of_date(date: i32) -> Option<Self> {
        match date {
            i32::MIN => Some(Self::Minus),
            i32::MAX => Some(Self::Plus),
            _ => None,
        }
    }

    /// Which end an infinite timestamp is, or `None` if the timestamp is finite.
    pub(super) fn of_timestamp(stamp: i64) -> Option<Self> {
        match stamp {
            i64::MIN => Some(Self::Minus),
            i64::MAX => Some(Self::Plus),
            _ => None,
        }
    }

    /// The infinite timestamp.
    pub(super) fn timestamp(self) -> i64 {
        match self {
            Self::Minus => i64::MIN,
            Self::Plus => i64::MAX,
        }
    }

    /// The infinite interval.
    pub(super) fn interval(self) -> Interval {
        match self {
            Self::Minus => Interval { micros: i64::MIN, days: i32::MIN, months: i32::MIN },
            Self::Plus => Interval { micros: i64::MAX, days: i32::MAX, months: i32::MAX },
        }
    }

    /// The opposite end.
    pub(super) fn negated(self) -> Self {
        match self {
            Self::Minus => Self::Plus,
            Self::Plus => Self::Minus,
        }
    }
}

/// The first version with infinite intervals.
pub(super) const INFINITE_SINCE: u32 = 17;

impl Interval {
    /// A value in its storage format.
    pub fn from_bytes(bytes: [u8; 16]) -> Self {
        let [a, b, c, d, e, f, g, h, i, j, k, l, m, n, o, p] = bytes;
        Self {
            micros: i64::from_le_bytes([a, b, c, d, e, f, g, h]),
            days: i32::from_le_bytes([i, j, k, l]),
            months: i32::from_le_bytes([m, n, o, p]),
        }
    }

    /// The storage format.
    pub fn to_bytes(self) -> [u8; 16] {
        let mut bytes = [0; 16];
        bytes[..8].copy_from_slice(&self.micros.to_le_bytes());
        bytes[8..12].copy_from_slice(&self.days.to_le_bytes());
        bytes[12..].copy_from_slice(&self.months.to_le_bytes());
        bytes
    }

    /// The length in microseconds, if all months had 30 days. Intervals compare as their spans.
    pub fn span(self) -> i128 {
        let days = i64::from(self.months) * i64::from(MONTH_DAYS) + i64::from(self.days);
        i128::from(self.micros) + i128::from(days) * i128::from(DAY_US)
    }

    /// Which end an infinite interval is, or `None` if it is finite.
    pub fn infinity(self, major: u32) -> Option<Infinity> {
        let ends = [Infinity::Minus, Infinity::Plus];
        let infinite = ends.into_iter().find(|end| end.interval() == self);
        infinite.filter(|_| major >= INFINITE_SINCE)
    }

    /// An error if the interval is infinite, because finite operands don't give infinity.
    fn checked(self, major: u32) -> Result<Self, SqlError> {
        if self.infinity(major).is_some() { Err(interval_out_of_range()) } else { Ok(self) }
    }

    /// The sum.
    ///
    /// # Errors
    /// 22008: a field overflows, or the operands are opposite infinities.
    pub fn plus(self, other: Self, major: u32) -> Result<Self, SqlError> {
        match (self.infinity(major), other.infinity(major)) {
            (Some(a), Some(b)) if a != b => Err(interval_out_of_range()),
            (Some(_), _) => Ok(self),
            (None, Some(_)) => Ok(other),
            (None, None) => {
                let sum = || {
                    Some(Self {
                        micros: self.micros.checked_add(other.micros)?,
                        days: self.days.checked_add(other.days)?,
                        months: self.months.checked_add(other.months)?,
                    })
                };
                sum().ok_or_else(interval_out_of_range)?.checked(major)
            }
        }
    }

    /// The difference.
    ///
    /// # Errors
    /// 22008: a field overflows, or both operands are the same infinity.
    pub fn minus(self, other: Self, major: u32) -> Result<Self, SqlError> {
        match (self.infinity(major), other.infinity(major)) {
            (Some(a), Some(b)) if a == b => Err(interval_out_of_range()),
            (Some(_), _) => Ok(self),
            (None, Some(end)) => Ok(end.negated().interval()),
            (None, None) => {
                let difference = || {
                    Some(Self {
                        micros: self.micros.checked_sub(other.micros)?,
                        days: self.days.checked_sub(other.days)?,
                        months: self.months.checked_sub(other.months)?,
                    })
                };
                difference().ok_or_else(interval_out_of_range)?.checked(major)
            }
        }
    }

    /// The negative.
    ///
    /// # Errors
    /// 22008: a field is the smallest integer.
    pub fn negated(self, major: u32) -> Result<Self, SqlError> {
        match self.infinity(major) {
            Some(end) => Ok(end.negated().interval()),
            None => Self::default().minus(self, major),
        }
    }

    /// The product. Fractions of months become days, and fractions of days become microseconds.
    ///
    /// # Errors
    /// 22008: the result is out of range, or zero times infinity.
    pub fn times(self, factor: f64, major: u32) -> Result<Self, SqlError> {
        if factor.is_nan() {
            return Err(interval_out_of_range());
        }
        if let Some(end) = self.infinity(major) {
            return match factor {
                0.0 => Err(interval_out_of_range()),
                _ if factor < 0.0 => Ok(end.negated().interval()),
                _ => Ok(self),
            };
        }
        if factor.is_infinite() && major >= INFINITE_SINCE {
            return match self.span().signum() {
                0 => Err(interval_out_of_range()),
                sign if (sign < 0) == (factor < 0.0) => Ok(Infinity::Plus.interval()),
                _ => Ok(Infinity::Minus.interval()),
            };
        }
        self.scaled(|field| field * factor, major)
    }

    /// The quotient, with fractions as in [`Interval::times`].
    ///
    /// # Errors
    /// 22012 if `divisor` is zero. 22008: the result is out of range, or infinity by infinity.
    pub fn divided_by(self, divisor: f64, major: u32) -> Result<Self, SqlError> {
        if divisor == 0.0 {
            return Err(SqlError::new(SqlState::DIVISION_BY_ZERO, "division by zero"));
        }
        match self.infinity(major) {
            _ if divisor.is_nan() => Err(interval_out_of_range()),
            Some(_) if divisor.is_infinite() => Err(interval_out_of_range()),
            Some(end) if divisor < 0.0 => Ok(end.negated().interval()),
            Some(_) => Ok(self),
            None => self.scaled(|field| field / divisor, major),
        }
    }

    /// Applies `scale` to each field and moves fractions to the next smaller field.
    fn scaled(self, scale: impl Fn(f64) -> f64, major: u32) -> Result<Self, SqlError> {
        let fail = interval_out_of_range;
        let (months, days) = (scale(f64::from(self.months)), scale(f64::from(self.days)));
        let whole_months = to_i32(months).ok_or_else(fail)?;
        let whole_days = to_i32(days).ok_or_else(fail)?;
        let month_days = round_micros((months - f64::from(whole_months)) * f64::from(MONTH_DAYS));
        let day_part = days - f64::from(whole_days) + month_days - month_days.trunc();
        let mut seconds = round_micros(day_part * DAY_S);
        let mut days = whole_days;
        // Rounding can give 24 hours, and fractions of months and days together can give more.
        if seconds.abs() >= DAY_S {
            let more = (seconds / DAY_S).trunc();
            days = days.checked_add(more as i32).ok_or_else(fail)?;
            seconds -= more * DAY_S;
        }
        let days = days.checked_add(month_days as i32).ok_or_else(fail)?;
        let micros = (scale(self.micros as f64) + seconds * 1e6).round_ties_even();
        let micros = to_i64(micros).ok_or_else(fail)?;
        Self { micros, days, months: whole_months }.checked(major)
    }

    /// Moves whole days of the time to the days (`justify_hours`).
    ///
    /// # Errors
    /// 22008: the days overflow.
    pub fn justify_hours(self, major: u32) -> Result<Self, SqlError> {
        if self.infinity(major).is_some() {
            return Ok(self);
        }
        let whole = (self.micros / DAY_US) as i32;
        let days = self.days.checked_add(whole).ok_or_else(interval_out_of_range)?;
        Ok(Self { micros: self.micros % DAY_US, days, ..self }.same_sign_of_days())
    }

    /// Moves periods of 30 days to the months (`justify_days`).
    ///
    /// # Errors
    /// 22008: the months overflow.
    pub fn justify_days(self, major: u32) -> Result<Self, SqlError> {
        if self.infinity(major).is_some() {
            return Ok(self);
        }
        let mut result = self.months_from_days()?;
        if result.months > 0 && result.days < 0 {
            result.days += MONTH_DAYS;
            result.months -= 1;
        } else if result.months < 0 && result.days > 0 {
            result.days -= MONTH_DAYS;
            result.months += 1;
        }
        Ok(result)
    }

    /// Does both, and gives all fields the same sign (`justify_interval`).
    ///
    /// # Errors
    /// 22008: a field overflows.
    pub fn justify(self, major: u32) -> Result<Self, SqlError> {
        if self.infinity(major).is_some() {
            return Ok(self);
        }
        let mut result = self;
        // If days and time have the same sign, their sum could overflow.
        if (result.days > 0 && result.micros > 0) || (result.days < 0 && result.micros < 0) {
            result = result.months_from_days()?;
        }
        // At most 107 million days are added to days below 30 or of the opposite sign.
        result.days += (result.micros / DAY_US) as i32;
        result.micros %= DAY_US;
        result = result.months_from_days()?;
        let below_month = result.days.cmp(&0).then(result.micros.cmp(&0));
        if result.months > 0 && below_month.is_lt() {
            result.days += MONTH_DAYS;
            result.months -= 1;
        } else if result.months < 0 && below_month.is_gt() {
            result.days -= MONTH_DAYS;
            result.months += 1;
        }
        Ok(result.same_sign_of_days())
    }

    fn months_from_days(self) -> Result<Self, SqlError> {
        let months = self.months.checked_add(self.days / MONTH_DAYS);
        let months = months.ok_or_else(interval_out_of_range)?;
        Ok(Self { months, days: self.days % MONTH_DAYS, ..self })
    }

    /// Gives days and time the same sign, if the time is shorter than a day.
    fn same_sign_of_days(mut self) -> Self {
        if self.days > 0 && self.micros < 0 {
            self.micros += DAY_US;
            self.days -= 1;
        } else if self.days < 0 && self.micros > 0 {
            self.micros -= DAY_US;
            self.days += 1;
        }
        self
    }
}

/// `TSROUND`: rounds to six decimals, to remove the inaccuracy of a multiplication.
fn round_micros(value: f64) -> f64 {
    (value * 1e6).round_ties_even() / 1e6
}

/// The integer part, if it fits.
fn to_i32(value: f64) -> Option<i32> {
    (value >= f64::from(i32::MIN) && value < -f64::from(i32::MIN)).then_some(value as i32)
}

/// The integer part, if it fits.
pub(super) fn to_i64(value: f64) -> Option<i64> {
    (value >= i64::MIN as f64 && value < -(i64::MIN as f64)).then_some(value as i64)
}

impl<'a> Input<'a> for Interval {
    type Array = FixedSizeBinaryArray;

    #[inline]
    fn at(array: &'a FixedSizeBinaryArray, row: usize) -> Self {
        Self::from_bytes(Input::at(array, row))
    }
}

impl Output for Interval {
    type Builder = FixedSizeBinaryBuilder;

    fn builder(rows: usize) -> Self::Builder {
        <[u8; 16]>::builder(rows)
    }

    #[inline]
    fn append(self, builder: &mut Self::Builder) {
        self.to_bytes().append(builder);
    }

    #[inline]
    fn append_null(builder: &mut Self::Builder) {
        <[u8; 16]>::append_null(builder);
    }
}
