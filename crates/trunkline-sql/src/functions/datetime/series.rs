//! `generate_series` of timestamps.
//!
//! ```text
//!   generate_series('2024-01-31', '2024-04-01', '1 month')   2024-01-31, 2024-02-29, 2024-03-29
//! ```
//!
//! Every value is the one before it plus the step, so a month that is too short shortens all values
//! after it.
//!
//! Mirrors `generate_series_timestamp` of PostgreSQL's `utils/adt/timestamp.c`.

use std::fmt;
use std::sync::Arc;

use arrow_array::{Array, ArrayRef, Int64Array};
use trunkline_format::text_output::{TimeZone, Utc};

use super::super::call::Call;
use super::super::rows::Reader;
use super::super::set_rows::{NoRows, SetFunction, SetRows};
use super::error::invalid;
use super::interval::Interval;
use super::timestamp::plus_interval;
use super::zone::ZoneCache;
use crate::error::SqlError;

/// The values of one call, which are computed one at a time.
pub struct TimestampSeries {
    next: i64,
    last: i64,
    step: Interval,
    zone: Arc<dyn TimeZone>,
    major: u32,
    is_over: bool,
}

impl TimestampSeries {
    /// Timestamps from `first` to `last`, both inclusive. `zone` is UTC for timestamps without a zone,
    /// and otherwise the zone in which days and months are added.
    ///
    /// # Errors
    /// 22023: the step is zero or infinite.
    pub fn new(
        (first, last): (i64, i64),
        step: Interval,
        zone: Arc<dyn TimeZone>,
        major: u32,
    ) -> Result<Self, SqlError> {
        if step.span() == 0 {
            return Err(invalid("step size cannot equal zero"));
        }
        if step.infinity(major).is_some() {
            return Err(invalid("step size cannot be infinite"));
        }
        Ok(Self { next: first, last, step, zone, major, is_over: false })
    }
}

impl Iterator for TimestampSeries {
    type Item = Result<i64, SqlError>;

    /// The next value. The server computes one value too many, so a series may end with an error.
    fn next(&mut self) -> Option<Self::Item> {
        let within = match self.step.span() > 0 {
            true => self.next <= self.last,
            false => self.next >= self.last,
        };
        if self.is_over || !within {
            return None;
        }
        let value = self.next;
        match plus_interval(value, self.step, &*self.zone, self.major) {
            Ok(next) => self.next = next,
            Err(error) => {
                self.is_over = true;
                return Some(Err(error));
            }
        }
        Some(Ok(value))
    }
}

impl fmt::Debug for TimestampSeries {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "TimestampSeries {{ {}, {}, {:?} }}", self.next, self.last, self.step)
    }
}

impl SetRows for TimestampSeries {
    fn next_rows(&mut self, rows_max: usize) -> Result<Option<Vec<ArrayRef>>, SqlError> {
        let values = self.take(rows_max).collect::<Result<Vec<i64>, _>>()?;
        let array: ArrayRef = Arc::new(Int64Array::from(values));
        Ok((!array.is_empty()).then(|| vec![array]))
    }
}

/// Calls `generate_series`. `zone` gets the zone that the values are in.
fn series(
    call: &Call<'_>,
    row: usize,
    zone: impl Fn() -> Result<Option<Arc<dyn TimeZone>>, SqlError>,
) -> Result<Box<dyn SetRows>, SqlError> {
    let (first, last) = (Reader::<i64>::new(call, 0)?, Reader::<i64>::new(call, 1)?);
    let step = Reader::<Interval>::new(call, 2)?;
    let ends = first.get(row).zip(last.get(row));
    let (Some((ends, step)), Some(zone)) = (ends.zip(step.get(row)), zone()?) else {
        return Ok(Box::new(NoRows));
    };
    Ok(Box::new(TimestampSeries::new(ends, step, zone, call.settings.major)?))
}

/// `generate_series` of timestamps.
pub(in super::super) const SETS: &[(&str, SetFunction)] = &[
    ("generate_series_timestamp", |call, row| series(call, row, || Ok(Some(Arc::new(Utc))))),
    ("generate_series_timestamptz", |call, row| {
        series(call, row, || Ok(Some(Arc::clone(&call.settings.zone))))
    }),
    ("generate_series_timestamptz_at_zone", |call, row| {
        let zone = Reader::<&str>::new(call, 3)?.get(row);
        series(call, row, || zone.map(|zone| ZoneCache::default().named(zone)).transpose())
    }),
];

#[cfg(test)]
mod tests {
    use arrow_array::cast::AsArray;
    use arrow_array::types::Int64Type;
    use trunkline_format::calendar::DAY_US;

    use super::*;

    /// Days since 2000 of the values of a series that starts on 2024-01-31.
    fn days(last_day: i64, months: i32) -> Vec<i64> {
        let ends = (8796 * DAY_US, last_day * DAY_US);
        let step = Interval { months, ..Interval::default() };
        let mut series = TimestampSeries::new(ends, step, Arc::new(Utc), 18).unwrap();
        let mut all = Vec::new();
        while let Some(columns) = series.next_rows(2).unwrap() {
            let [column] = &columns[..] else { panic!("one column") };
            all.extend(column.as_primitive::<Int64Type>().values().iter().map(|us| us / DAY_US));
        }
        all
    }

    #[test]
    fn a_month_that_is_too_short_shortens_all_values_after_it() {
        // generate_series('2024-01-31', '2024-05-01', '1 month') on a server: the 31st, then 29ths.
        assert_eq!(days(8887, 1), [8796, 8825, 8854, 8885]);
        assert_eq!(days(8760, -1), [8796, 8765]);
        assert_eq!(days(8795, 1), [0; 0]);
    }

    #[test]
    fn a_step_must_be_finite_and_not_zero() {
        let infinite = super::super::interval::Infinity::Plus.interval();
        for (step, message) in [
            (Interval::default(), "step size cannot equal zero"),
            (infinite, "step size cannot be infinite"),
        ] {
            let error = TimestampSeries::new((0, 0), step, Arc::new(Utc), 18).unwrap_err();
            assert_eq!((error.code().as_str(), error.message()), ("22023", message));
        }
    }
}
