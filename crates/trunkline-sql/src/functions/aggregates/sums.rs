//! `count`, and sums whose state is a number of the result's type: `sum(int4)`, `sum(float8)`.

use super::grouped::{State, aggregates, argument, chunk, each, each_pair};
use crate::error::SqlError;
use crate::functions::aggregate::{AggregateDefinition, GroupedRows};
use crate::functions::floats;
use crate::functions::integers::out_of_range;
use crate::functions::rows::Input;

/// The number of rows.
#[derive(Debug, Default)]
struct Count(i64);

impl State for Count {
    fn save(&self, out: &mut Vec<u8>) -> Result<(), SqlError> {
        out.extend_from_slice(&self.0.to_le_bytes());
        Ok(())
    }

    fn merge(&mut self, mut saved: &[u8]) -> Result<(), SqlError> {
        self.0 += i64::from_le_bytes(chunk(&mut saved)?);
        Ok(())
    }
}

/// `count(*)`.
fn count_rows(rows: &GroupedRows<'_>, states: &mut [Count]) -> Result<(), SqlError> {
    for (_, group) in rows.rows() {
        if let Some(count) = states.get_mut(group) {
            count.0 += 1;
        }
    }
    Ok(())
}

/// `count(x)`, for any type.
fn count_values(rows: &GroupedRows<'_>, states: &mut [Count]) -> Result<(), SqlError> {
    let values = rows.arguments.first();
    let values = values.ok_or_else(|| SqlError::internal("an argument is missing"))?;
    for (row, group) in rows.rows() {
        if let (false, Some(count)) = (values.is_null(row), states.get_mut(group)) {
            count.0 += 1;
        }
    }
    Ok(())
}

/// A type of sums.
trait Summand: Copy + std::fmt::Debug + Send + 'static {
    fn plus(self, other: Self) -> Result<Self, SqlError>;
    fn bytes(self) -> Vec<u8>;
    fn read(saved: &[u8]) -> Result<Self, SqlError>;
}

macro_rules! summand {
    ($type:ty, $plus:expr) => {
        impl Summand for $type {
            fn plus(self, other: Self) -> Result<Self, SqlError> {
                $plus(self, other)
            }

            fn bytes(self) -> Vec<u8> {
                self.to_le_bytes().to_vec()
            }

            fn read(mut saved: &[u8]) -> Result<Self, SqlError> {
                chunk(&mut saved).map(Self::from_le_bytes)
            }
        }
    };
}

summand!(f32, floats::add);
summand!(f64, floats::add);
summand!(i64, |a: i64, b: i64| a.checked_add(b).ok_or_else(|| out_of_range("bigint")));

/// A sum; `None` until there is a value.
#[derive(Debug)]
struct Sum<T>(Option<T>);

impl<T> Default for Sum<T> {
    fn default() -> Self {
        Self(None)
    }
}

impl<T: Summand> Sum<T> {
    fn add(&mut self, value: T) -> Result<(), SqlError> {
        self.0 = Some(match self.0 {
            Some(sum) => sum.plus(value)?,
            None => value,
        });
        Ok(())
    }
}

impl<T: Summand> State for Sum<T> {
    fn save(&self, out: &mut Vec<u8>) -> Result<(), SqlError> {
        if let Some(sum) = self.0 {
            out.extend_from_slice(&sum.bytes());
        }
        Ok(())
    }

    fn merge(&mut self, saved: &[u8]) -> Result<(), SqlError> {
        if saved.is_empty() { Ok(()) } else { self.add(T::read(saved)?) }
    }
}

fn add<A: for<'a> Input<'a> + Into<T>, T: Summand>(
    rows: &GroupedRows<'_>,
    states: &mut [Sum<T>],
) -> Result<(), SqlError> {
    each(rows, states, |sum, value: A| sum.add(value.into()))
}

/// A sum of money is limited as any amount is.
fn add_money(rows: &GroupedRows<'_>, states: &mut [Sum<i64>]) -> Result<(), SqlError> {
    let values = argument::<i64>(rows, 0)?;
    for (row, group) in rows.rows() {
        if let (Some(value), Some(sum)) = (values.get(row), states.get_mut(group)) {
            sum.add(value).map_err(|_| out_of_range("money"))?;
        }
    }
    Ok(())
}

pub(in crate::functions) const SUMS: &[AggregateDefinition] = aggregates! {
    "int8inc" "" => count_rows, |count| Ok(Some(count.0));
    "int8inc_any" "" => count_values, |count| Ok(Some(count.0));
    "int8inc_float8_float8" "" =>
        |rows, states| each_pair(rows, states, |count: &mut Count, _: f64, _: f64| {
            count.0 += 1;
            Ok(())
        }),
        |count| Ok(Some(count.0));
    "int2_sum" "" => add::<i16, i64>, |sum| Ok(sum.0);
    "int4_sum" "" => add::<i32, i64>, |sum| Ok(sum.0);
    "float4pl" "" => add::<f32, f32>, |sum| Ok(sum.0);
    "float8pl" "" => add::<f64, f64>, |sum| Ok(sum.0);
    "cash_pl" "" => add_money, |sum| Ok(sum.0);
};
