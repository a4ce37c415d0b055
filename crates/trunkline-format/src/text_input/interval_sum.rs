//! Adds up the numbers and units of an interval.
//!
//! Mirrors the `Adjust…` functions of PostgreSQL's `utils/adt/datetime.c`.

use super::date_fields::DateError;
use super::date_parts::{DAY_US, SECOND_US};
use super::date_words::Unit;

/// The sum so far. Years and months are only added up at the end, as in the server, so that an
/// overflow is found where it finds it.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub(super) struct IntervalSum {
    pub(super) micros: i64,
    pub(super) days: i32,
    pub(super) months: i32,
    pub(super) years: i32,
}

impl IntervalSum {
    /// Adds `value + decimals` of a unit. The decimals have the value's sign, and are less than 1.
    pub(super) fn add(&mut self, unit: Unit, value: i64, decimals: f64) -> Result<(), DateError> {
        let added = match unit {
            Unit::Microsecond => self.add_time(value, decimals, 1),
            Unit::Millisecond => self.add_time(value, decimals, 1000),
            Unit::Second => self.add_time(value, decimals, SECOND_US),
            Unit::Minute => self.add_time(value, decimals, 60 * SECOND_US),
            Unit::Hour => self.add_time(value, decimals, 3600 * SECOND_US),
            Unit::Day => self.add_days(value, 1).and_then(|()| self.add_decimals(decimals, DAY_US)),
            Unit::Week => self.add_days(value, 7).and_then(|()| self.add_decimal_days(decimals, 7)),
            Unit::Month => {
                self.add_months(value).and_then(|()| self.add_decimal_days(decimals, 30))
            }
            Unit::Year => self.add_years(value, decimals, 1),
            Unit::Decade => self.add_years(value, decimals, 10),
            Unit::Century => self.add_years(value, decimals, 100),
            Unit::Millennium => self.add_years(value, decimals, 1000),
            Unit::Julian | Unit::Other => return Err(DateError::Format),
        };
        added.ok_or(DateError::FieldOverflow)
    }

    fn add_time(&mut self, value: i64, decimals: f64, scale: i64) -> Option<()> {
        self.micros = self.micros.checked_add(value.checked_mul(scale)?)?;
        self.add_decimals(decimals, scale)
    }

    /// Adds a fraction of `scale` microseconds, rounded.
    fn add_decimals(&mut self, decimals: f64, scale: i64) -> Option<()> {
        let exact = decimals * scale as f64;
        let mut micros = exact as i64;
        let rest = exact - micros as f64;
        if rest > 0.5 {
            micros += 1;
        } else if rest < -0.5 {
            micros -= 1;
        }
        self.micros = self.micros.checked_add(micros)?;
        Some(())
    }

    fn add_days(&mut self, value: i64, scale: i32) -> Option<()> {
        let days = i32::try_from(value).ok()?.checked_mul(scale)?;
        self.days = self.days.checked_add(days)?;
        Some(())
    }

    /// Adds a fraction of `scale` days.
    fn add_decimal_days(&mut self, decimals: f64, scale: i32) -> Option<()> {
        let exact = decimals * f64::from(scale);
        let days = exact as i32;
        self.days = self.days.checked_add(days)?;
        self.add_decimals(exact - f64::from(days), DAY_US)
    }

    fn add_months(&mut self, value: i64) -> Option<()> {
        self.months = self.months.checked_add(i32::try_from(value).ok()?)?;
        Some(())
    }

    /// Adds years. A fraction is rounded to months.
    fn add_years(&mut self, value: i64, decimals: f64, scale: i32) -> Option<()> {
        let years = i32::try_from(value).ok()?.checked_mul(scale)?;
        self.years = self.years.checked_add(years)?;
        let months = (decimals * f64::from(scale) * 12.0).round_ties_even() as i32;
        self.months = self.months.checked_add(months)?;
        Some(())
    }

    /// The interval of the opposite sign.
    pub(super) fn negated(self) -> Option<Self> {
        Some(Self {
            micros: self.micros.checked_neg()?,
            days: self.days.checked_neg()?,
            months: self.months.checked_neg()?,
            years: self.years.checked_neg()?,
        })
    }

    /// Microseconds, days and months.
    pub(super) fn interval(self) -> Option<(i64, i32, i32)> {
        let months = i64::from(self.years) * 12 + i64::from(self.months);
        Some((self.micros, self.days, i32::try_from(months).ok()?))
    }
}
