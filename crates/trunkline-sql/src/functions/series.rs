//! `generate_series` of integers.
//!
//! `generate_series(10, 1, -4)` gives 10, 6, 2. A step of zero is an error, and a series that would go
//! past the end of its type ends there.

use std::fmt;
use std::marker::PhantomData;
use std::sync::Arc;

use arrow_array::types::{Int32Type, Int64Type};
use arrow_array::{ArrayRef, ArrowPrimitiveType, PrimitiveArray};

use super::call::Call;
use super::rows::{Input, Reader};
use super::set_rows::{NoRows, SetFunction, SetRows};
use crate::error::{SqlError, SqlState};

/// The functions of this area.
pub(super) const SETS: &[(&str, SetFunction)] = &[
    ("generate_series_int4", series::<Int32Type, i32>),
    ("generate_series_step_int4", series::<Int32Type, i32>),
    ("generate_series_int8", series::<Int64Type, i64>),
    ("generate_series_step_int8", series::<Int64Type, i64>),
];

/// An integer that a series consists of.
trait Whole: Copy + PartialOrd + Send + fmt::Debug + 'static {
    const ZERO: Self;
    const ONE: Self;

    fn checked_add(self, other: Self) -> Option<Self>;
}

macro_rules! whole {
    ($($number:ty)*) => {$(
        impl Whole for $number {
            const ZERO: Self = 0;
            const ONE: Self = 1;

            fn checked_add(self, other: Self) -> Option<Self> {
                <$number>::checked_add(self, other)
            }
        }
    )*};
}

whole!(i32 i64);

/// The rest of a series.
#[derive(Debug)]
struct Series<N> {
    /// The next number; `None` at the end.
    next: Option<N>,
    stop: N,
    step: N,
}

fn series<T, N>(call: &Call<'_>, row: usize) -> Result<Box<dyn SetRows>, SqlError>
where
    T: ArrowPrimitiveType<Native = N> + fmt::Debug,
    N: Whole + for<'a> Input<'a, Array = PrimitiveArray<T>>,
    PrimitiveArray<T>: From<Vec<N>>,
{
    let number = |at: usize| Ok::<_, SqlError>(Reader::<N>::new(call, at)?.get(row));
    let step = match call.arguments.len() {
        2 => Some(N::ONE),
        _ => number(2)?,
    };
    let (Some(start), Some(stop), Some(step)) = (number(0)?, number(1)?, step) else {
        return Ok(Box::new(NoRows));
    };
    if step == N::ZERO {
        let message = "step size cannot equal zero";
        return Err(SqlError::new(SqlState::INVALID_PARAMETER_VALUE, message));
    }
    Ok(Box::new(Typed::<T, N> {
        series: Series { next: Some(start), stop, step },
        of: PhantomData,
    }))
}

/// A series with the Arrow type of its arrays.
#[derive(Debug)]
struct Typed<T, N> {
    series: Series<N>,
    of: PhantomData<fn() -> T>,
}

impl<T, N> SetRows for Typed<T, N>
where
    T: ArrowPrimitiveType<Native = N> + fmt::Debug,
    N: Whole,
    PrimitiveArray<T>: From<Vec<N>>,
{
    fn next_rows(&mut self, rows_max: usize) -> Result<Option<Vec<ArrayRef>>, SqlError> {
        let mut numbers = Vec::new();
        while numbers.len() < rows_max
            && let Some(number) = self.series.advance()
        {
            numbers.push(number);
        }
        if numbers.is_empty() {
            return Ok(None);
        }
        Ok(Some(vec![Arc::new(PrimitiveArray::<T>::from(numbers))]))
    }
}

impl<N: Whole> Series<N> {
    fn advance(&mut self) -> Option<N> {
        let upwards = self.step > N::ZERO;
        let within = |number: &N| if upwards { *number <= self.stop } else { *number >= self.stop };
        let number = self.next.filter(within)?;
        self.next = number.checked_add(self.step);
        Some(number)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_series_ends_at_its_last_number_or_at_the_end_of_its_type() {
        let all = |start: i32, stop: i32, step: i32| {
            let mut series = Series { next: Some(start), stop, step };
            std::iter::from_fn(|| series.advance()).collect::<Vec<_>>()
        };
        assert_eq!(all(1, 3, 1), [1, 2, 3]);
        assert_eq!(all(10, 1, -4), [10, 6, 2]);
        assert_eq!(all(3, 1, 1), [0; 0]);
        assert_eq!(all(i32::MAX - 1, i32::MAX, 1), [i32::MAX - 1, i32::MAX]);
        assert_eq!(all(i32::MIN + 1, i32::MIN, -2), [i32::MIN + 1]);
    }
}
