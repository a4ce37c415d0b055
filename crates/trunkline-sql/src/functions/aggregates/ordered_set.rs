//! Ordered-set aggregates: `percentile_cont`, `percentile_disc` and `mode`, with `WITHIN GROUP`.
//!
//! ```text
//!   percentile_cont(0.5) WITHIN GROUP (ORDER BY x)     x = 1, 2, 4, 10 ─▶ 3
//!   percentile_disc(0.5) WITHIN GROUP (ORDER BY x)     x = 1, 2, 4, 10 ─▶ 2
//! ```
//!
//! What executes an aggregate passes the rows of each group on in the order of `WITHIN GROUP`, so a
//! state is the list of its values. Nulls don't count.

use std::fmt;

use arrow_array::cast::AsArray;
use arrow_array::types::Float64Type;
use arrow_array::{Array, ArrayRef};
use trunkline_format::Oid;

use crate::error::{SqlError, SqlState};
use crate::functions::aggregate::{AggregateCall, AggregateDefinition, Aggregation, GroupedRows};
use crate::functions::array::{ArrayBuilder, ArrayView, attribute_of};
use crate::functions::datetime::{Interval, general};
use crate::functions::printing::{damaged, resolve};
use crate::functions::record::ValueKeys;
use crate::values::{Carrier, ColumnBuilder, PayloadReader};

/// `float8`.
const FLOAT8: Oid = Oid(701);

/// The transition function of all aggregates of this module.
const TRANSITION: &str = "ordered_set_transition";

/// The values of a group, in order.
type Values = Vec<Box<[u8]>>;

/// The result of a group: as it is stored, or null.
type Finish = fn(&AggregateCall, &Values) -> Result<Option<Vec<u8>>, SqlError>;

macro_rules! ordered {
    ($($last:literal => $finish:expr;)*) => {
        &[$(AggregateDefinition {
            transition: TRANSITION,
            last: $last,
            state: |_| vec![Carrier::Bytes],
            start: |call| Ok(Box::new(OrderedSet::new(call, $finish))),
        }),*]
    };
}

/// The aggregates of this module.
pub(in crate::functions) const ORDERED_SETS: &[AggregateDefinition] = ordered! {
    "percentile_cont_float8_final" => |call, values| one(call, values, continuous_float);
    "percentile_cont_interval_final" => |call, values| one(call, values, continuous_interval);
    "percentile_disc_final" => |call, values| one(call, values, discrete);
    "percentile_cont_float8_multi_final" => |call, values| many(call, values, continuous_float);
    "percentile_cont_interval_multi_final" => |call, values| many(call, values, continuous_interval);
    "percentile_disc_multi_final" => |call, values| many(call, values, discrete);
    "mode_final" => mode;
};

/// The values of all groups.
struct OrderedSet {
    call: AggregateCall,
    finish: Finish,
    groups: Vec<Values>,
    bytes: usize,
}

impl fmt::Debug for OrderedSet {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("OrderedSet").field("groups", &self.groups.len()).finish_non_exhaustive()
    }
}

impl OrderedSet {
    fn new(call: &AggregateCall, finish: Finish) -> Self {
        Self { call: call.clone(), finish, groups: Vec::new(), bytes: 0 }
    }
}

/// What sorts the rows keeps them until the end, so there are no states in between.
fn unsorted() -> SqlError {
    SqlError::internal("an ordered-set aggregate gets all rows of a group at once")
}

impl Aggregation for OrderedSet {
    fn update(&mut self, rows: &GroupedRows<'_>) -> Result<(), SqlError> {
        self.groups.resize_with(rows.group_count.max(self.groups.len()), Vec::new);
        let argument = rows.arguments.first();
        let argument = argument.ok_or_else(|| SqlError::internal("an aggregate of no value"))?;
        let carrier = self.call.argument_carriers.first().copied().unwrap_or(Carrier::Bytes);
        let mut values = PayloadReader::new(carrier, argument.array())?;
        for (row, group) in rows.rows() {
            let value = values.get(argument.row(row));
            if let (Some(value), Some(group)) = (value, self.groups.get_mut(group)) {
                self.bytes += value.len() + size_of::<Box<[u8]>>();
                group.push(value.into());
            }
        }
        Ok(())
    }

    fn merge(&mut self, states: &[ArrayRef], _: &[usize], _: usize) -> Result<(), SqlError> {
        match states.iter().all(|states| states.is_empty()) {
            true => Ok(()),
            false => Err(unsorted()),
        }
    }

    fn finish(&mut self, count: usize) -> Result<ArrayRef, SqlError> {
        self.groups.resize_with(count.max(self.groups.len()), Vec::new);
        let mut column = ColumnBuilder::new(self.call.result_carrier, count);
        for values in self.groups.drain(..count) {
            match (self.finish)(&self.call, &values)? {
                Some(result) => column.append(&result).map_err(damaged)?,
                None => column.append_null(),
            }
        }
        self.bytes = 0;
        Ok(column.finish())
    }

    fn partial(&mut self, _: usize) -> Result<Vec<ArrayRef>, SqlError> {
        Err(unsorted())
    }

    fn size(&self) -> usize {
        self.bytes + self.groups.capacity() * size_of::<Values>()
    }
}

/// A percentile of values: as it is stored. There is at least one value.
type Percentile = fn(&AggregateCall, &Values, f64) -> Result<Vec<u8>, SqlError>;

fn check(fraction: f64) -> Result<f64, SqlError> {
    if (0.0..=1.0).contains(&fraction) {
        return Ok(fraction);
    }
    let shown = general(fraction);
    let message = format!("percentile value {shown} is not between 0 and 1");
    Err(SqlError::new(SqlState::NUMERIC_VALUE_OUT_OF_RANGE, message))
}

/// One percentile.
fn one(
    call: &AggregateCall,
    values: &Values,
    percentile: Percentile,
) -> Result<Option<Vec<u8>>, SqlError> {
    let fraction = call.direct.first().and_then(|array| array.as_primitive_opt::<Float64Type>());
    let fraction = fraction.ok_or_else(|| SqlError::internal("a percentile is a float8"))?;
    if fraction.is_null(0) {
        return Ok(None);
    }
    let fraction = check(fraction.value(0))?;
    match values.is_empty() {
        true => Ok(None),
        false => percentile(call, values, fraction).map(Some),
    }
}

/// A percentile for each element of an array; null for an element that is null.
fn many(
    call: &AggregateCall,
    values: &Values,
    percentile: Percentile,
) -> Result<Option<Vec<u8>>, SqlError> {
    let fractions = call.direct.first().and_then(|array| array.as_binary_view_opt());
    let fractions = fractions.ok_or_else(|| SqlError::internal("percentiles are an array"))?;
    if fractions.is_null(0) || values.is_empty() {
        return Ok(None);
    }
    let catalog = &*call.settings.catalog;
    let view = ArrayView::parse(fractions.value(0))?;
    let element = call.argument_types.first().copied().unwrap_or_default();
    let mut results = ArrayBuilder::new(element, attribute_of(element, catalog)?);
    let mut checked = Vec::with_capacity(view.len());
    for fraction in view.elements(attribute_of(FLOAT8, catalog)?)? {
        let fraction = fraction.as_deref().and_then(<[u8]>::first_chunk::<8>);
        checked.push(fraction.map(|bytes| check(f64::from_le_bytes(*bytes))).transpose()?);
    }
    for fraction in checked {
        let result = fraction.map(|fraction| percentile(call, values, fraction)).transpose()?;
        results.push(result.as_deref())?;
    }
    results.finish(view.dimensions()).map(Some)
}

/// The first value such that at least this part of the values is not beyond it.
fn discrete(_: &AggregateCall, values: &Values, fraction: f64) -> Result<Vec<u8>, SqlError> {
    let place = (fraction * values.len() as f64).ceil() as usize;
    at(values, place.max(1) - 1).map(<[u8]>::to_vec)
}

fn at(values: &Values, place: usize) -> Result<&[u8], SqlError> {
    let value = values.get(place).map(|value| &**value);
    value.ok_or_else(|| SqlError::internal("a percentile beyond the values"))
}

/// What a percentile between two values is made of.
struct Between<'v> {
    low: &'v [u8],
    /// The next value, and how far the percentile is on the way to it; `None` if it is `low` itself.
    high: Option<(&'v [u8], f64)>,
}

/// The values around a percentile.
fn around(values: &Values, fraction: f64) -> Result<Between<'_>, SqlError> {
    let place = fraction * (values.len() - 1) as f64;
    let (first, second) = (place.floor(), place.ceil());
    let low = at(values, first as usize)?;
    let high = match first == second {
        true => None,
        false => Some((at(values, second as usize)?, place - first)),
    };
    Ok(Between { low, high })
}

fn stored<const N: usize>(value: &[u8]) -> Result<[u8; N], SqlError> {
    let message = "a value is too short for its type";
    value.try_into().map_err(|_| SqlError::new(SqlState::DATA_CORRUPTED, message))
}

fn continuous_float(
    _: &AggregateCall,
    values: &Values,
    fraction: f64,
) -> Result<Vec<u8>, SqlError> {
    let Between { low, high } = around(values, fraction)?;
    let Some((high, part)) = high else { return Ok(low.to_vec()) };
    let (low, high) = (f64::from_le_bytes(stored(low)?), f64::from_le_bytes(stored(high)?));
    Ok((low + part * (high - low)).to_le_bytes().to_vec())
}

fn continuous_interval(
    call: &AggregateCall,
    values: &Values,
    fraction: f64,
) -> Result<Vec<u8>, SqlError> {
    let Between { low, high } = around(values, fraction)?;
    let Some((high, part)) = high else { return Ok(low.to_vec()) };
    let (low, high) = (Interval::from_bytes(stored(low)?), Interval::from_bytes(stored(high)?));
    let major = call.settings.major;
    let step = high.minus(low, major)?.times(part, major)?;
    Ok(step.plus(low, major)?.to_bytes().to_vec())
}

/// The value that occurs most often, and of several the first one.
fn mode(call: &AggregateCall, values: &Values) -> Result<Option<Vec<u8>>, SqlError> {
    let oid = call.argument_types.first().copied().unwrap_or_default();
    let ty = resolve(oid, &call.settings)?;
    let mut keys = ValueKeys::new(&call.settings, false);
    let mut best: Option<(usize, &[u8])> = None;
    let (mut last, mut first, mut count) = (Vec::new(), None, 0);
    for value in values {
        let mut key = Vec::new();
        keys.append(&ty, value, call.collation, &mut key)?;
        if first.is_none() || key != last {
            (last, first, count) = (key, Some(&**value), 0);
        }
        count += 1;
        if let Some(first) = first
            && best.is_none_or(|(most, _)| count > most)
        {
            best = Some((count, first));
        }
    }
    Ok(best.map(|(_, value)| value.to_vec()))
}
