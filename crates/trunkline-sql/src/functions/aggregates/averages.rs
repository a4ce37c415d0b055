//! Exact sums and averages: those of integers and of `numeric`.
//!
//! Integers are added with 128 bits, which no number of rows exceeds. An average is a quotient of
//! numerics, so `avg` of 1 and 2 is 1.5000000000000000.

use super::grouped::{State, aggregates, chunk, each};
use crate::error::SqlError;
use crate::functions::aggregate::{AggregateDefinition, GroupedRows};
use crate::functions::rows::Input;
use crate::numeric::{Numeric, NumericSum};

/// A sum of integers and their number.
#[derive(Debug, Default)]
struct IntegerSum {
    count: i64,
    sum: i128,
}

impl State for IntegerSum {
    fn save(&self, out: &mut Vec<u8>) -> Result<(), SqlError> {
        out.extend_from_slice(&self.count.to_le_bytes());
        out.extend_from_slice(&self.sum.to_le_bytes());
        Ok(())
    }

    fn merge(&mut self, mut saved: &[u8]) -> Result<(), SqlError> {
        self.count += i64::from_le_bytes(chunk(&mut saved)?);
        self.sum += i128::from_le_bytes(chunk(&mut saved)?);
        Ok(())
    }
}

fn add_integers<A: for<'a> Input<'a> + Into<i128>>(
    rows: &GroupedRows<'_>,
    states: &mut [IntegerSum],
) -> Result<(), SqlError> {
    each(rows, states, |state, value: A| {
        state.count += 1;
        state.sum += value.into();
        Ok(())
    })
}

fn integer_sum(state: &IntegerSum) -> Result<Option<Vec<u8>>, SqlError> {
    (state.count > 0).then(|| Numeric::from(state.sum).to_payload()).transpose()
}

fn integer_average(state: &IntegerSum) -> Result<Option<Vec<u8>>, SqlError> {
    let average = || Numeric::from(state.sum).divide(&Numeric::from(state.count))?.to_payload();
    (state.count > 0).then(average).transpose()
}

impl State for NumericSum {
    fn save(&self, out: &mut Vec<u8>) -> Result<(), SqlError> {
        Self::save(self, out)
    }

    fn merge(&mut self, mut saved: &[u8]) -> Result<(), SqlError> {
        Self::merge(self, &Self::load(&mut saved)?);
        Ok(())
    }

    fn size(&self) -> usize {
        Self::size(self)
    }
}

fn add_numerics(rows: &GroupedRows<'_>, states: &mut [NumericSum]) -> Result<(), SqlError> {
    each(rows, states, |state, value: &[u8]| state.add_payload(value))
}

fn numeric_sum(state: &NumericSum) -> Result<Option<Vec<u8>>, SqlError> {
    (state.count() > 0).then(|| state.total().to_payload()).transpose()
}

fn numeric_average(state: &NumericSum) -> Result<Option<Vec<u8>>, SqlError> {
    let average = || match state.has_special() {
        true => state.total().to_payload(),
        false => state.total().divide(&Numeric::from(state.count()))?.to_payload(),
    };
    (state.count() > 0).then(average).transpose()
}

pub(in crate::functions) const AVERAGES: &[AggregateDefinition] = aggregates! {
    "int2_avg_accum" "int8_avg" => add_integers::<i16>, integer_average;
    "int4_avg_accum" "int8_avg" => add_integers::<i32>, integer_average;
    "int8_avg_accum" "numeric_poly_avg" => add_integers::<i64>, integer_average;
    "int8_avg_accum" "numeric_poly_sum" => add_integers::<i64>, integer_sum;
    "numeric_avg_accum" "numeric_avg" => add_numerics, numeric_average;
    "numeric_avg_accum" "numeric_sum" => add_numerics, numeric_sum;
};
