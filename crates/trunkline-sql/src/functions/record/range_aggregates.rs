//! `range_agg` and `range_intersect_agg`, of ranges and of multiranges.
//!
//! For example, `range_agg` of `[1,3)`, `[2,5)` and `[7,8)` is `{[1,5),[7,8)}`. The state of a group is
//! the value that its rows have given so far, in storage form, so that states of several workers are
//! combined like rows.

use arrow_array::ArrayRef;
use trunkline_format::Oid;

use super::cuts::{Pair, Ranges};
use super::multiranges::intersected;
use crate::error::SqlError;
use crate::functions::aggregate::{AggregateCall, AggregateDefinition, Aggregation, GroupedRows};
use crate::functions::call::CallSettings;
use crate::functions::printing::damaged;
use crate::values::{Carrier, ColumnBuilder, PayloadReader};

/// The aggregates of this module.
pub(in crate::functions) const RANGE_AGGREGATES: &[AggregateDefinition] = &[
    definition("range_agg_transfn", "range_agg_finalfn", |call| started(call, false)),
    definition("multirange_agg_transfn", "range_agg_finalfn", |call| started(call, false)),
    definition("range_intersect_agg_transfn", "", |call| started(call, true)),
    definition("multirange_intersect_agg_transfn", "", |call| started(call, true)),
];

const fn definition(
    transition: &'static str,
    last: &'static str,
    start: fn(&AggregateCall) -> Result<Box<dyn Aggregation>, SqlError>,
) -> AggregateDefinition {
    AggregateDefinition { transition, last, state: |_| vec![Carrier::Bytes], start }
}

fn started(call: &AggregateCall, intersects: bool) -> Result<Box<dyn Aggregation>, SqlError> {
    let argument = call.argument_types.first().copied();
    let argument = argument.ok_or_else(|| SqlError::internal("an aggregate without argument"))?;
    let (settings, result) = (call.settings.clone(), call.result_type);
    Ok(Box::new(RangeSets { settings, argument, result, intersects, states: Vec::new() }))
}

/// How many ranges a state collects before it merges those that touch.
const MERGED_AT: usize = 1024;

/// The ranges of one group. A group without values that are not null has none.
#[derive(Debug, Default)]
struct RangeSet {
    ranges: Vec<Pair>,
    /// Those up to here have been merged.
    merged: usize,
}

/// The states of all groups.
struct RangeSets {
    settings: CallSettings,
    argument: Oid,
    result: Oid,
    intersects: bool,
    states: Vec<Option<RangeSet>>,
}

impl std::fmt::Debug for RangeSets {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("RangeSets").field("states", &self.states).finish_non_exhaustive()
    }
}

impl RangeSet {
    fn add(&mut self, mut ranges: Vec<Pair>) {
        self.ranges.append(&mut ranges);
        if self.ranges.len() >= self.merged * 2 + MERGED_AT {
            self.merge();
        }
    }

    /// Sorts the ranges, and merges those that overlap or touch. Of equal bounds that look different, the
    /// last one is kept, as in a multirange that is made of the ranges.
    fn merge(&mut self) {
        self.ranges.sort();
        let mut merged: Vec<Pair> = Vec::new();
        for (lower, upper) in std::mem::take(&mut self.ranges) {
            match merged.last_mut() {
                Some(last) if lower <= last.1 => {
                    if last.0 == lower {
                        last.0 = lower;
                    }
                    if last.1 <= upper {
                        last.1 = upper;
                    }
                }
                _ => merged.push((lower, upper)),
            }
        }
        self.merged = merged.len();
        self.ranges = merged;
    }
}

impl RangeSets {
    /// Adds values of a type to their groups.
    fn add(
        &mut self,
        oid: Oid,
        array: &ArrayRef,
        rows: impl Iterator<Item = (usize, usize)>,
        group_count: usize,
    ) -> Result<(), SqlError> {
        let count = group_count.max(self.states.len());
        self.states.resize_with(count, || None);
        let mut ranges = Ranges::new(&self.settings, oid, true)?;
        let mut values = PayloadReader::new(Carrier::Bytes, array)?;
        for (row, group) in rows {
            let Some(value) = values.get(row) else { continue };
            let value = ranges.read_all(value)?;
            let Some(state) = self.states.get_mut(group) else { continue };
            match state {
                None => *state = Some(RangeSet { ranges: value, merged: 0 }),
                Some(state) if self.intersects => {
                    state.ranges = intersected(&state.ranges, &value);
                }
                Some(state) => state.add(value),
            }
        }
        Ok(())
    }
}

impl Aggregation for RangeSets {
    fn update(&mut self, rows: &GroupedRows<'_>) -> Result<(), SqlError> {
        let argument = rows.arguments.first();
        let argument = argument.ok_or_else(|| SqlError::internal("an argument is missing"))?;
        let placed = rows.rows().map(|(row, group)| (argument.row(row), group));
        self.add(self.argument, argument.array(), placed, rows.group_count)
    }

    fn merge(
        &mut self,
        states: &[ArrayRef],
        groups: &[usize],
        group_count: usize,
    ) -> Result<(), SqlError> {
        let states = states.first().ok_or_else(|| SqlError::internal("a state is missing"))?;
        self.add(self.result, states, groups.iter().copied().enumerate(), group_count)
    }

    fn finish(&mut self, count: usize) -> Result<ArrayRef, SqlError> {
        let ranges = Ranges::new(&self.settings, self.result, true)?;
        let mut column = ColumnBuilder::new(Carrier::Bytes, count);
        let all = count.max(self.states.len());
        self.states.resize_with(all, || None);
        for state in self.states.drain(..count) {
            match state {
                Some(state) => {
                    let value = ranges.store_as_is(state.ranges)?;
                    column.append(&value).map_err(damaged)?;
                }
                None => column.append_null(),
            }
        }
        Ok(column.finish())
    }

    fn partial(&mut self, count: usize) -> Result<Vec<ArrayRef>, SqlError> {
        self.finish(count).map(|states| vec![states])
    }

    fn size(&self) -> usize {
        let pairs = self.states.iter().flatten().map(|state| state.ranges.capacity());
        // A cut has its value and its key, mostly of a few bytes each.
        let inside = pairs.sum::<usize>() * (size_of::<Pair>() + 4 * size_of::<u64>());
        inside + self.states.capacity() * size_of::<Option<RangeSet>>()
    }
}
