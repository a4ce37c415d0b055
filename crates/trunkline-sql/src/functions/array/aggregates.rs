//! `array_agg` and `string_agg`.
//!
//! Both keep what they have collected as it will be stored. For example, `string_agg(x, ',')` of `a`
//! and `b` keeps `,a,b`, and the length of the first separator, which the result is without. That way,
//! states of several workers can be put together.

use arrow_array::ArrayRef;
use trunkline_format::Oid;
use trunkline_format::deform::Attribute;

use super::builder::ArrayBuilder;
use super::view::{ArrayView, attribute_of};
use crate::error::{SqlError, SqlState};
use crate::functions::aggregate::{AggregateCall, AggregateDefinition, Aggregation, GroupedRows};
use crate::functions::printing::damaged;
use crate::values::{Carrier, ColumnBuilder, PayloadReader};

/// The aggregates of this module.
pub(in crate::functions) const AGGREGATES: &[AggregateDefinition] = &[
    AggregateDefinition {
        transition: "array_agg_transfn",
        last: "array_agg_finalfn",
        state: |_| vec![Carrier::Bytes],
        start: |call| Ok(Box::new(ArrayAggregation::new(call)?)),
    },
    AggregateDefinition {
        transition: "string_agg_transfn",
        last: "string_agg_finalfn",
        state: |_| vec![Carrier::Bytes, Carrier::Int32],
        start: |call| Ok(Box::new(StringAggregation::new(call))),
    },
    AggregateDefinition {
        transition: "bytea_string_agg_transfn",
        last: "bytea_string_agg_finalfn",
        state: |_| vec![Carrier::Bytes, Carrier::Int32],
        start: |call| Ok(Box::new(StringAggregation::new(call))),
    },
];

/// `MaxAllocSize`: the most bytes that a value may have.
const VALUE_MAX: usize = 0x3FFF_FFFF;

pub(super) fn missing() -> SqlError {
    SqlError::internal("an aggregate's argument or state is missing")
}

pub(super) fn of_group<T>(states: &mut [T], group: usize) -> Result<&mut T, SqlError> {
    states.get_mut(group).ok_or_else(|| SqlError::internal("a group beyond their number"))
}

/// Removes the first states.
fn take<T>(states: &mut Vec<Option<T>>, count: usize) -> Vec<Option<T>> {
    states.resize_with(count.max(states.len()), || None);
    states.drain(..count).collect()
}

/// Removes the first states. Returns their values, which are null for groups without a state.
pub(super) fn finish_states<T>(
    carrier: Carrier,
    states: &mut Vec<Option<T>>,
    count: usize,
    value: impl Fn(T) -> Result<Vec<u8>, SqlError>,
) -> Result<ArrayRef, SqlError> {
    let mut column = ColumnBuilder::new(carrier, count);
    for state in take(states, count) {
        match state {
            Some(state) => column.append(&value(state)?).map_err(damaged)?,
            None => column.append_null(),
        }
    }
    Ok(column.finish())
}

/// States of `array_agg`. A group without rows has none, and its result is null.
#[derive(Debug)]
struct ArrayAggregation {
    element: Oid,
    attribute: Attribute,
    carrier: Carrier,
    states: Vec<Option<ArrayBuilder>>,
}

impl ArrayAggregation {
    fn new(call: &AggregateCall) -> Result<Self, SqlError> {
        let element = *call.argument_types.first().ok_or_else(missing)?;
        let carrier = *call.argument_carriers.first().ok_or_else(missing)?;
        let attribute = attribute_of(element, &*call.settings.catalog)?;
        Ok(Self { element, attribute, carrier, states: Vec::new() })
    }

    fn push(&mut self, group: usize, value: Option<&[u8]>) -> Result<(), SqlError> {
        let (element, attribute) = (self.element, self.attribute);
        let state = of_group(&mut self.states, group)?;
        state.get_or_insert_with(|| ArrayBuilder::new(element, attribute)).push(value)
    }
}

impl Aggregation for ArrayAggregation {
    fn update(&mut self, rows: &GroupedRows<'_>) -> Result<(), SqlError> {
        self.states.resize_with(rows.group_count, || None);
        let argument = rows.arguments.first().ok_or_else(missing)?;
        let mut values = PayloadReader::new(self.carrier, argument.array())?;
        for (row, group) in rows.rows() {
            self.push(group, values.get(argument.row(row)))?;
        }
        Ok(())
    }

    fn merge(
        &mut self,
        states: &[ArrayRef],
        groups: &[usize],
        group_count: usize,
    ) -> Result<(), SqlError> {
        self.states.resize_with(group_count, || None);
        let mut values = PayloadReader::new(Carrier::Bytes, states.first().ok_or_else(missing)?)?;
        for (row, &group) in groups.iter().enumerate() {
            let Some(array) = values.get(row) else { continue };
            for value in ArrayView::parse(array)?.elements(self.attribute)? {
                self.push(group, value.as_deref())?;
            }
        }
        Ok(())
    }

    fn finish(&mut self, count: usize) -> Result<ArrayRef, SqlError> {
        finish_states(Carrier::Bytes, &mut self.states, count, ArrayBuilder::finish_list)
    }

    fn partial(&mut self, count: usize) -> Result<Vec<ArrayRef>, SqlError> {
        self.finish(count).map(|states| vec![states])
    }

    fn size(&self) -> usize {
        let states = self.states.capacity() * size_of::<Option<ArrayBuilder>>();
        states + self.states.iter().flatten().map(ArrayBuilder::size).sum::<usize>()
    }
}

/// What `string_agg` has collected: each value with the separator before it, and the length of the
/// first separator.
#[derive(Debug, Default)]
struct Collected {
    bytes: Vec<u8>,
    first: usize,
}

/// States of `string_agg`. A group without values that are not null has none.
#[derive(Debug)]
struct StringAggregation {
    carrier: Carrier,
    states: Vec<Option<Collected>>,
}

impl StringAggregation {
    fn new(call: &AggregateCall) -> Self {
        Self { carrier: call.result_carrier, states: Vec::new() }
    }

    fn push(&mut self, group: usize, parts: [&[u8]; 2], first: usize) -> Result<(), SqlError> {
        let state = of_group(&mut self.states, group)?;
        let state = state.get_or_insert_with(|| Collected { bytes: Vec::new(), first });
        let size = state.bytes.len() + parts.iter().map(|part| part.len()).sum::<usize>();
        if size > VALUE_MAX {
            let message = "out of memory";
            return Err(SqlError::new(SqlState::PROGRAM_LIMIT_EXCEEDED, message)
                .with_detail("The result of string_agg would be larger than 1 GB."));
        }
        parts.iter().for_each(|part| state.bytes.extend_from_slice(part));
        Ok(())
    }
}

impl Aggregation for StringAggregation {
    fn update(&mut self, rows: &GroupedRows<'_>) -> Result<(), SqlError> {
        self.states.resize_with(rows.group_count, || None);
        let [value, separator] = rows.arguments else { return Err(missing()) };
        let mut values = PayloadReader::new(self.carrier, value.array())?;
        let mut separators = PayloadReader::new(self.carrier, separator.array())?;
        for (row, group) in rows.rows() {
            let Some(bytes) = values.get(value.row(row)) else { continue };
            let separator = separators.get(separator.row(row)).unwrap_or_default();
            self.push(group, [separator, bytes], separator.len())?;
        }
        Ok(())
    }

    fn merge(
        &mut self,
        states: &[ArrayRef],
        groups: &[usize],
        group_count: usize,
    ) -> Result<(), SqlError> {
        self.states.resize_with(group_count, || None);
        let [bytes, firsts] = states else { return Err(missing()) };
        let mut bytes = PayloadReader::new(Carrier::Bytes, bytes)?;
        let mut firsts = PayloadReader::new(Carrier::Int32, firsts)?;
        for (row, &group) in groups.iter().enumerate() {
            let first = firsts.get(row).and_then(|first| first.first_chunk().copied());
            let (Some(bytes), Some(first)) = (bytes.get(row), first) else { continue };
            self.push(group, [bytes, &[]], u32::from_le_bytes(first) as usize)?;
        }
        Ok(())
    }

    fn finish(&mut self, count: usize) -> Result<ArrayRef, SqlError> {
        finish_states(self.carrier, &mut self.states, count, |mut state| {
            state.bytes.drain(..state.first.min(state.bytes.len()));
            Ok(state.bytes)
        })
    }

    fn partial(&mut self, count: usize) -> Result<Vec<ArrayRef>, SqlError> {
        let mut bytes = ColumnBuilder::new(Carrier::Bytes, count);
        let mut firsts = ColumnBuilder::new(Carrier::Int32, count);
        for state in take(&mut self.states, count) {
            let Some(state) = state else {
                bytes.append_null();
                firsts.append_null();
                continue;
            };
            bytes.append(&state.bytes).map_err(damaged)?;
            firsts.append(&(state.first as u32).to_le_bytes()).map_err(damaged)?;
        }
        Ok(vec![bytes.finish(), firsts.finish()])
    }

    fn size(&self) -> usize {
        let states = self.states.capacity() * size_of::<Option<Collected>>();
        states + self.states.iter().flatten().map(|state| state.bytes.capacity()).sum::<usize>()
    }
}
