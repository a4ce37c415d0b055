//! Variances and standard deviations, and averages of floats.
//!
//! Those of integers and numerics are exact, from the sum and the sum of squares. Those of floats use
//! the formula of Youngs and Cramer, which keeps rounding errors small.

use super::grouped::{State, aggregates, chunk, each};
use crate::error::SqlError;
use crate::functions::aggregate::{AggregateDefinition, GroupedRows};
use crate::functions::float_math::square_root;
use crate::functions::floats::{add, overflow};
use crate::functions::rows::Input;
use crate::numeric::{Numeric, NumericSum};

/// The sums of numbers and of their squares.
#[derive(Debug, Default)]
struct Squares {
    sum: NumericSum,
    squares: NumericSum,
}

impl Squares {
    fn add(&mut self, value: &Numeric) {
        self.sum.add(value);
        self.squares.add(&value.multiply(value));
    }
}

impl State for Squares {
    fn save(&self, out: &mut Vec<u8>) -> Result<(), SqlError> {
        self.sum.save(out)?;
        self.squares.save(out)
    }

    fn merge(&mut self, mut saved: &[u8]) -> Result<(), SqlError> {
        self.sum.merge(&NumericSum::load(&mut saved)?);
        self.squares.merge(&NumericSum::load(&mut saved)?);
        Ok(())
    }

    fn size(&self) -> usize {
        self.sum.size() + self.squares.size()
    }
}

fn add_integers<A: for<'a> Input<'a> + Into<i64>>(
    rows: &GroupedRows<'_>,
    states: &mut [Squares],
) -> Result<(), SqlError> {
    each(rows, states, |state, value: A| {
        state.add(&Numeric::from(value.into()));
        Ok(())
    })
}

fn add_numerics(rows: &GroupedRows<'_>, states: &mut [Squares]) -> Result<(), SqlError> {
    each(rows, states, |state, value: &[u8]| {
        state.add(&Numeric::decode(value)?);
        Ok(())
    })
}

fn exact(state: &Squares, sample: bool, root: bool) -> Result<Option<Vec<u8>>, SqlError> {
    let count = state.sum.count();
    if count <= i64::from(sample) {
        return Ok(None);
    }
    let variance = match state.sum.has_special() {
        true => Numeric::NaN,
        false => {
            let (sum, squares) = (state.sum.total(), state.squares.total());
            Numeric::variance(count, &sum, &squares, sample, root)?
        }
    };
    variance.to_payload().map(Some)
}

/// The number of floats, their sum, and the sum of the squares of their distances from the average.
#[derive(Debug, Default)]
struct Floats {
    count: f64,
    sum: f64,
    squares: f64,
}

impl Floats {
    /// `float8_accum`.
    fn add(&mut self, value: f64) -> Result<(), SqlError> {
        let (before, sum_before) = (self.count, self.sum);
        self.count += 1.0;
        self.sum += value;
        if before == 0.0 {
            if !value.is_finite() {
                self.squares = f64::NAN;
            }
            return Ok(());
        }
        let distance = value * self.count - self.sum;
        self.squares += distance * distance / (self.count * before);
        if self.sum.is_infinite() || self.squares.is_infinite() {
            if !sum_before.is_infinite() && !value.is_infinite() {
                return Err(overflow());
            }
            self.squares = f64::NAN;
        }
        Ok(())
    }
}

impl State for Floats {
    fn save(&self, out: &mut Vec<u8>) -> Result<(), SqlError> {
        out.extend([self.count, self.sum, self.squares].iter().flat_map(|part| part.to_le_bytes()));
        Ok(())
    }

    /// `float8_combine`.
    fn merge(&mut self, mut saved: &[u8]) -> Result<(), SqlError> {
        let count = f64::from_le_bytes(chunk(&mut saved)?);
        let sum = f64::from_le_bytes(chunk(&mut saved)?);
        let squares = f64::from_le_bytes(chunk(&mut saved)?);
        if self.count == 0.0 {
            *self = Self { count, sum, squares };
            return Ok(());
        }
        if count == 0.0 {
            return Ok(());
        }
        let total = self.count + count;
        let distance = self.sum / self.count - sum / count;
        let between = self.count * count * distance * distance / total;
        let merged = self.squares + squares + between;
        if merged.is_infinite() && !self.squares.is_infinite() && !squares.is_infinite() {
            return Err(overflow());
        }
        *self = Self { count: total, sum: add(self.sum, sum)?, squares: merged };
        Ok(())
    }
}

fn add_floats<A: for<'a> Input<'a> + Into<f64>>(
    rows: &GroupedRows<'_>,
    states: &mut [Floats],
) -> Result<(), SqlError> {
    each(rows, states, |state, value: A| state.add(value.into()))
}

fn average(state: &Floats) -> Result<Option<f64>, SqlError> {
    Ok((state.count > 0.0).then(|| state.sum / state.count))
}

fn inexact(state: &Floats, sample: bool, root: bool) -> Result<Option<f64>, SqlError> {
    let lost = if sample { 1.0 } else { 0.0 };
    if state.count <= lost {
        return Ok(None);
    }
    let variance = state.squares / (state.count - lost);
    if root { square_root(variance).map(Some) } else { Ok(Some(variance)) }
}

pub(in crate::functions) const MOMENTS: &[AggregateDefinition] = aggregates! {
    "int2_accum" "numeric_poly_var_pop" => add_integers::<i16>, |s| exact(s, false, false);
    "int2_accum" "numeric_poly_var_samp" => add_integers::<i16>, |s| exact(s, true, false);
    "int2_accum" "numeric_poly_stddev_pop" => add_integers::<i16>, |s| exact(s, false, true);
    "int2_accum" "numeric_poly_stddev_samp" => add_integers::<i16>, |s| exact(s, true, true);
    "int4_accum" "numeric_poly_var_pop" => add_integers::<i32>, |s| exact(s, false, false);
    "int4_accum" "numeric_poly_var_samp" => add_integers::<i32>, |s| exact(s, true, false);
    "int4_accum" "numeric_poly_stddev_pop" => add_integers::<i32>, |s| exact(s, false, true);
    "int4_accum" "numeric_poly_stddev_samp" => add_integers::<i32>, |s| exact(s, true, true);
    "int8_accum" "numeric_var_pop" => add_integers::<i64>, |s| exact(s, false, false);
    "int8_accum" "numeric_var_samp" => add_integers::<i64>, |s| exact(s, true, false);
    "int8_accum" "numeric_stddev_pop" => add_integers::<i64>, |s| exact(s, false, true);
    "int8_accum" "numeric_stddev_samp" => add_integers::<i64>, |s| exact(s, true, true);
    "numeric_accum" "numeric_var_pop" => add_numerics, |s| exact(s, false, false);
    "numeric_accum" "numeric_var_samp" => add_numerics, |s| exact(s, true, false);
    "numeric_accum" "numeric_stddev_pop" => add_numerics, |s| exact(s, false, true);
    "numeric_accum" "numeric_stddev_samp" => add_numerics, |s| exact(s, true, true);
    "float4_accum" "float8_avg" => add_floats::<f32>, average;
    "float4_accum" "float8_var_pop" => add_floats::<f32>, |s| inexact(s, false, false);
    "float4_accum" "float8_var_samp" => add_floats::<f32>, |s| inexact(s, true, false);
    "float4_accum" "float8_stddev_pop" => add_floats::<f32>, |s| inexact(s, false, true);
    "float4_accum" "float8_stddev_samp" => add_floats::<f32>, |s| inexact(s, true, true);
    "float8_accum" "float8_avg" => add_floats::<f64>, average;
    "float8_accum" "float8_var_pop" => add_floats::<f64>, |s| inexact(s, false, false);
    "float8_accum" "float8_var_samp" => add_floats::<f64>, |s| inexact(s, true, false);
    "float8_accum" "float8_stddev_pop" => add_floats::<f64>, |s| inexact(s, false, true);
    "float8_accum" "float8_stddev_samp" => add_floats::<f64>, |s| inexact(s, true, true);
};
