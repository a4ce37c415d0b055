//! `min` and `max` of types whose order depends on a catalog: enums and arrays.
//!
//! Values are compared by their keys ([`ValueKeys`]). For example, the key of an enum's value is the
//! place of its label, so `max` of a mood is the last one that occurs.

use std::fmt;

use arrow_array::ArrayRef;
use trunkline_format::text_output::Type;

use crate::error::SqlError;
use crate::functions::aggregate::{AggregateCall, AggregateDefinition, Aggregation, GroupedRows};
use crate::functions::printing::{damaged, resolve};
use crate::functions::record::ValueKeys;
use crate::values::{ColumnBuilder, PayloadReader};

macro_rules! extreme {
    ($transition:literal, $greatest:literal) => {
        AggregateDefinition {
            transition: $transition,
            last: "",
            state: |call| vec![call.result_carrier],
            start: |call| Ok(Box::new(KeyedExtreme::new(call, $greatest)?)),
        }
    };
}

/// The aggregates of this module.
pub(in crate::functions) const KEYED_EXTREMES: &[AggregateDefinition] = &[
    extreme!("enum_larger", true),
    extreme!("enum_smaller", false),
    extreme!("array_larger", true),
    extreme!("array_smaller", false),
];

/// The key of a value, and the value.
type Best = (Vec<u8>, Vec<u8>);

/// The best value of each group; none for a group without values.
struct KeyedExtreme {
    call: AggregateCall,
    ty: Type,
    greatest: bool,
    states: Vec<Option<Best>>,
}

impl fmt::Debug for KeyedExtreme {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("KeyedExtreme").field("ty", &self.ty).finish_non_exhaustive()
    }
}

impl KeyedExtreme {
    fn new(call: &AggregateCall, greatest: bool) -> Result<Self, SqlError> {
        let oid = call.argument_types.first().copied().unwrap_or_default();
        let ty = resolve(oid, &call.settings)?;
        Ok(Self { call: call.clone(), ty, greatest, states: Vec::new() })
    }

    /// Adds values to the states of their groups. Of equal values, the last one stays.
    fn add(
        &mut self,
        array: &ArrayRef,
        rows: impl Iterator<Item = (usize, usize)>,
    ) -> Result<(), SqlError> {
        let mut values = PayloadReader::new(self.call.result_carrier, array)?;
        let mut keys = ValueKeys::new(&self.call.settings, true);
        for (row, group) in rows {
            let (Some(value), Some(state)) = (values.get(row), self.states.get_mut(group)) else {
                continue;
            };
            let mut key = Vec::new();
            keys.append(&self.ty, value, self.call.collation, &mut key)?;
            let replaces = state.as_ref().is_none_or(|(best, _)| match self.greatest {
                true => key >= *best,
                false => key <= *best,
            });
            if replaces {
                *state = Some((key, value.to_vec()));
            }
        }
        Ok(())
    }
}

impl Aggregation for KeyedExtreme {
    fn update(&mut self, rows: &GroupedRows<'_>) -> Result<(), SqlError> {
        self.states.resize_with(rows.group_count.max(self.states.len()), || None);
        let argument = rows.arguments.first();
        let argument = argument.ok_or_else(|| SqlError::internal("an extreme of no value"))?;
        let places = rows.rows().map(|(row, group)| (argument.row(row), group));
        self.add(argument.array(), places)
    }

    fn merge(
        &mut self,
        states: &[ArrayRef],
        groups: &[usize],
        group_count: usize,
    ) -> Result<(), SqlError> {
        self.states.resize_with(group_count.max(self.states.len()), || None);
        let states = states.first().ok_or_else(|| SqlError::internal("a state is missing"))?;
        self.add(states, groups.iter().copied().enumerate())
    }

    fn finish(&mut self, count: usize) -> Result<ArrayRef, SqlError> {
        self.states.resize_with(count.max(self.states.len()), || None);
        let mut column = ColumnBuilder::new(self.call.result_carrier, count);
        for state in self.states.drain(..count) {
            match state {
                Some((_, value)) => column.append(&value).map_err(damaged)?,
                None => column.append_null(),
            }
        }
        Ok(column.finish())
    }

    fn partial(&mut self, count: usize) -> Result<Vec<ArrayRef>, SqlError> {
        self.finish(count).map(|states| vec![states])
    }

    fn size(&self) -> usize {
        let values = self.states.iter().flatten();
        let bytes: usize = values.map(|(key, value)| key.capacity() + value.capacity()).sum();
        bytes + self.states.capacity() * size_of::<Option<Best>>()
    }
}
