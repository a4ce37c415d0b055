//! `generate_series` of numerics.
//!
//! `generate_series(1, 2, 0.5)` gives 1, 1.5, 2.0: each number has as many decimals as adding the step
//! gives it.

use std::cmp::Ordering;
use std::sync::Arc;

use arrow_array::ArrayRef;
use arrow_array::builder::BinaryViewBuilder;

use super::call::Call;
use super::rows::Reader;
use super::set_rows::{NoRows, SetFunction, SetRows};
use crate::error::{SqlError, SqlState};
use crate::numeric::Numeric;

/// The functions of this area.
pub(super) const SETS: &[(&str, SetFunction)] =
    &[("generate_series_numeric", series), ("generate_series_step_numeric", series)];

/// The rest of a series.
#[derive(Debug)]
struct Series {
    next: Numeric,
    stop: Numeric,
    step: Numeric,
    /// What the next number compares to the end with when the series is over.
    over: Ordering,
}

fn invalid(message: String) -> SqlError {
    SqlError::new(SqlState::INVALID_PARAMETER_VALUE, message)
}

fn series(call: &Call<'_>, row: usize) -> Result<Box<dyn SetRows>, SqlError> {
    let number = |at: usize| {
        let payload = Reader::<&[u8]>::new(call, at)?.get(row);
        payload.map(Numeric::decode).transpose()
    };
    let step = match call.arguments.len() {
        2 => Some(Numeric::from(1_i64)),
        _ => number(2)?,
    };
    let (Some(next), Some(stop), Some(step)) = (number(0)?, number(1)?, step) else {
        return Ok(Box::new(NoRows));
    };
    for (value, name) in [(&next, "start value"), (&stop, "stop value"), (&step, "step size")] {
        match value {
            Numeric::Finite(_) => {}
            Numeric::NaN => return Err(invalid(format!("{name} cannot be NaN"))),
            _ => return Err(invalid(format!("{name} cannot be infinity"))),
        }
    }
    let over = match step.compare(&Numeric::from(0_i64)) {
        Ordering::Equal => return Err(invalid("step size cannot equal zero".to_owned())),
        over => over,
    };
    Ok(Box::new(Series { next, stop, step, over }))
}

impl SetRows for Series {
    fn next_rows(&mut self, rows_max: usize) -> Result<Option<Vec<ArrayRef>>, SqlError> {
        let mut column = BinaryViewBuilder::new();
        let mut count = 0;
        while count < rows_max && self.next.compare(&self.stop) != self.over {
            column.append_value(self.next.to_payload()?);
            self.next = self.next.add(&self.step);
            count += 1;
        }
        Ok((count > 0).then(|| vec![Arc::new(column.finish()) as ArrayRef]))
    }
}
