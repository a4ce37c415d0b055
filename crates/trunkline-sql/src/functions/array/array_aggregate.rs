//! `array_agg` of arrays, which gives them one more dimension.
//!
//! For example, `array_agg` of `{1,2}` and `{3,4}` is `{{1,2},{3,4}}`. A state is kept as that array, so
//! that states of several workers can be put together.

use arrow_array::ArrayRef;
use trunkline_format::deform::Attribute;

use super::aggregates::{finish_states, missing, of_group};
use super::builder::ArrayBuilder;
use super::view::{ArrayView, DIMENSIONS_MAX, Dimension, attribute_of};
use crate::error::{SqlError, SqlState};
use crate::functions::aggregate::{AggregateCall, AggregateDefinition, Aggregation, GroupedRows};
use crate::values::{Carrier, PayloadReader};

/// The aggregates of this module.
pub(in crate::functions) const ARRAY_AGGREGATES: &[AggregateDefinition] = &[AggregateDefinition {
    transition: "array_agg_array_transfn",
    last: "array_agg_array_finalfn",
    state: |_| vec![Carrier::Bytes],
    start: |call| Ok(Box::new(ArraysAggregation { call: call.clone(), states: Vec::new() })),
}];

/// The arrays of a group.
#[derive(Debug)]
struct Arrays {
    builder: ArrayBuilder,
    attribute: Attribute,
    /// Those of each array.
    dimensions: Vec<Dimension>,
    /// The number of arrays.
    count: usize,
}

/// States of `array_agg` of arrays. A group without rows has none, and its result is null.
#[derive(Debug)]
struct ArraysAggregation {
    call: AggregateCall,
    states: Vec<Option<Arrays>>,
}

impl Arrays {
    fn new(view: &ArrayView<'_>, call: &AggregateCall) -> Result<Self, SqlError> {
        let dimensions = view.dimensions().to_vec();
        if dimensions.is_empty() {
            let message = "cannot accumulate empty arrays";
            return Err(SqlError::new(SqlState::ARRAY_SUBSCRIPT_ERROR, message));
        }
        let rank = dimensions.len() + 1;
        if rank > DIMENSIONS_MAX {
            let message = format!(
                "number of array dimensions ({rank}) exceeds the maximum allowed ({DIMENSIONS_MAX})"
            );
            return Err(SqlError::new(SqlState::PROGRAM_LIMIT_EXCEEDED, message));
        }
        let element = view.element();
        let attribute = attribute_of(element, &*call.settings.catalog)?;
        let builder = ArrayBuilder::new(element, attribute);
        Ok(Self { builder, attribute, dimensions, count: 0 })
    }

    /// Adds arrays that are beside each other in one.
    fn add(
        &mut self,
        view: &ArrayView<'_>,
        dimensions: &[Dimension],
        count: usize,
    ) -> Result<(), SqlError> {
        if dimensions != self.dimensions {
            let message = "cannot accumulate arrays of different dimensionality";
            return Err(SqlError::new(SqlState::ARRAY_SUBSCRIPT_ERROR, message));
        }
        for value in view.elements(self.attribute)? {
            self.builder.push(value.as_deref())?;
        }
        self.count += count;
        Ok(())
    }

    fn finish(self) -> Result<Vec<u8>, SqlError> {
        let outer = Dimension { size: self.count, lower: 1 };
        let dimensions: Vec<Dimension> = std::iter::once(outer).chain(self.dimensions).collect();
        self.builder.finish(&dimensions)
    }
}

impl Aggregation for ArraysAggregation {
    fn update(&mut self, rows: &GroupedRows<'_>) -> Result<(), SqlError> {
        self.states.resize_with(rows.group_count, || None);
        let argument = rows.arguments.first().ok_or_else(missing)?;
        let mut values = PayloadReader::new(Carrier::Bytes, argument.array())?;
        for (row, group) in rows.rows() {
            let array = values.get(argument.row(row)).ok_or_else(|| {
                let message = "cannot accumulate null arrays";
                SqlError::new(SqlState::NULL_VALUE_NOT_ALLOWED, message)
            })?;
            let view = ArrayView::parse(array)?;
            let state = match of_group(&mut self.states, group)? {
                Some(state) => state,
                none => none.insert(Arrays::new(&view, &self.call)?),
            };
            state.add(&view, view.dimensions(), 1)?;
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
            let view = ArrayView::parse(array)?;
            let Some((outer, inner)) = view.dimensions().split_first() else { continue };
            let attribute = attribute_of(view.element(), &*self.call.settings.catalog)?;
            let state = of_group(&mut self.states, group)?.get_or_insert_with(|| Arrays {
                builder: ArrayBuilder::new(view.element(), attribute),
                attribute,
                dimensions: inner.to_vec(),
                count: 0,
            });
            state.add(&view, inner, outer.size)?;
        }
        Ok(())
    }

    fn finish(&mut self, count: usize) -> Result<ArrayRef, SqlError> {
        finish_states(Carrier::Bytes, &mut self.states, count, Arrays::finish)
    }

    fn partial(&mut self, count: usize) -> Result<Vec<ArrayRef>, SqlError> {
        self.finish(count).map(|states| vec![states])
    }

    fn size(&self) -> usize {
        let states = self.states.capacity() * size_of::<Option<Arrays>>();
        states + self.states.iter().flatten().map(|state| state.builder.size()).sum::<usize>()
    }
}
