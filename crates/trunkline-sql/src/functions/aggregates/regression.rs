//! Correlation, covariance and linear regression: `corr(y, x)`, `regr_slope(y, x)`.

use super::grouped::{State, aggregates, chunk, each_pair};
use crate::error::SqlError;
use crate::functions::aggregate::{AggregateDefinition, GroupedRows};
use crate::functions::floats::{add, overflow};

/// The number of pairs, their sums, and the sums of the products of distances from the averages.
#[derive(Debug, Default, Clone, Copy)]
struct Pairs {
    count: f64,
    x: f64,
    xx: f64,
    y: f64,
    yy: f64,
    xy: f64,
}

impl Pairs {
    /// `float8_regr_accum`.
    fn add(&mut self, y: f64, x: f64) -> Result<(), SqlError> {
        let before = *self;
        self.count += 1.0;
        self.x += x;
        self.y += y;
        if before.count == 0.0 {
            if !x.is_finite() {
                (self.xx, self.xy) = (f64::NAN, f64::NAN);
            }
            if !y.is_finite() {
                (self.yy, self.xy) = (f64::NAN, f64::NAN);
            }
            return Ok(());
        }
        let (distance_x, distance_y) = (x * self.count - self.x, y * self.count - self.y);
        let scale = 1.0 / (self.count * before.count);
        self.xx += distance_x * distance_x * scale;
        self.yy += distance_y * distance_y * scale;
        self.xy += distance_x * distance_y * scale;
        let x_was_finite = !before.x.is_infinite() && !x.is_infinite();
        let y_was_finite = !before.y.is_infinite() && !y.is_infinite();
        let x_overflows = self.x.is_infinite() || self.xx.is_infinite();
        let y_overflows = self.y.is_infinite() || self.yy.is_infinite();
        if x_overflows && x_was_finite
            || y_overflows && y_was_finite
            || self.xy.is_infinite() && x_was_finite && y_was_finite
        {
            return Err(overflow());
        }
        for sum in [&mut self.xx, &mut self.yy, &mut self.xy] {
            if sum.is_infinite() {
                *sum = f64::NAN;
            }
        }
        Ok(())
    }

    /// `float8_regr_combine`.
    fn combine(self, other: Self) -> Result<Self, SqlError> {
        if self.count == 0.0 {
            return Ok(other);
        }
        if other.count == 0.0 {
            return Ok(self);
        }
        let count = self.count + other.count;
        let x = self.x / self.count - other.x / other.count;
        let y = self.y / self.count - other.y / other.count;
        let merged = |a: f64, b: f64, product: f64| {
            let sum = a + b + self.count * other.count * product / count;
            let overflows = sum.is_infinite() && !a.is_infinite() && !b.is_infinite();
            if overflows { Err(overflow()) } else { Ok(sum) }
        };
        Ok(Self {
            count,
            x: add(self.x, other.x)?,
            xx: merged(self.xx, other.xx, x * x)?,
            y: add(self.y, other.y)?,
            yy: merged(self.yy, other.yy, y * y)?,
            xy: merged(self.xy, other.xy, x * y)?,
        })
    }
}

impl State for Pairs {
    fn save(&self, out: &mut Vec<u8>) -> Result<(), SqlError> {
        let parts = [self.count, self.x, self.xx, self.y, self.yy, self.xy];
        out.extend(parts.iter().flat_map(|part| part.to_le_bytes()));
        Ok(())
    }

    fn merge(&mut self, mut saved: &[u8]) -> Result<(), SqlError> {
        let mut part = || chunk(&mut saved).map(f64::from_le_bytes);
        let (count, x, xx) = (part()?, part()?, part()?);
        let (y, yy, xy) = (part()?, part()?, part()?);
        *self = self.combine(Self { count, x, xx, y, yy, xy })?;
        Ok(())
    }
}

fn pairs(rows: &GroupedRows<'_>, states: &mut [Pairs]) -> Result<(), SqlError> {
    each_pair(rows, states, |state: &mut Pairs, y: f64, x: f64| state.add(y, x))
}

/// A result that needs at least `least` pairs.
fn with_pairs(state: &Pairs, least: f64, result: f64) -> Result<Option<f64>, SqlError> {
    Ok((state.count >= least).then_some(result))
}

/// A result that doesn't exist if all x are equal.
fn with_slope(state: &Pairs, result: f64) -> Result<Option<f64>, SqlError> {
    Ok((state.count >= 1.0 && state.xx != 0.0).then_some(result))
}

fn correlation(state: &Pairs) -> Result<Option<f64>, SqlError> {
    if state.yy == 0.0 {
        return Ok(None);
    }
    with_slope(state, state.xy / (state.xx * state.yy).sqrt())
}

fn determination(state: &Pairs) -> Result<Option<f64>, SqlError> {
    if state.yy == 0.0 {
        return with_slope(state, 1.0);
    }
    with_slope(state, state.xy * state.xy / (state.xx * state.yy))
}

pub(in crate::functions) const REGRESSION: &[AggregateDefinition] = aggregates! {
    "float8_regr_accum" "float8_corr" => pairs, correlation;
    "float8_regr_accum" "float8_covar_pop" => pairs, |s| with_pairs(s, 1.0, s.xy / s.count);
    "float8_regr_accum" "float8_covar_samp" => pairs, |s| with_pairs(s, 2.0, s.xy / (s.count - 1.0));
    "float8_regr_accum" "float8_regr_avgx" => pairs, |s| with_pairs(s, 1.0, s.x / s.count);
    "float8_regr_accum" "float8_regr_avgy" => pairs, |s| with_pairs(s, 1.0, s.y / s.count);
    "float8_regr_accum" "float8_regr_sxx" => pairs, |s| with_pairs(s, 1.0, s.xx);
    "float8_regr_accum" "float8_regr_syy" => pairs, |s| with_pairs(s, 1.0, s.yy);
    "float8_regr_accum" "float8_regr_sxy" => pairs, |s| with_pairs(s, 1.0, s.xy);
    "float8_regr_accum" "float8_regr_r2" => pairs, determination;
    "float8_regr_accum" "float8_regr_slope" => pairs, |s| with_slope(s, s.xy / s.xx);
    "float8_regr_accum" "float8_regr_intercept" =>
        pairs, |s| with_slope(s, (s.y - s.x * s.xy / s.xx) / s.count);
};
