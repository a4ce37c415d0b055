//! The states of an aggregate, driven by DataFusion.
//!
//! One type serves both of DataFusion's interfaces: for many groups at once, and for a single group,
//! which is group 0.

use std::fmt;
use std::sync::Arc;

use arrow_array::{Array, ArrayRef, BooleanArray};
use datafusion::common::{Result, ScalarValue, exec_err};
use datafusion::logical_expr::{Accumulator, EmitTo, GroupsAccumulator};
use trunkline_aio::facade::Mutex;
use trunkline_sql::SqlError;
use trunkline_sql::functions::GroupedRows;
use trunkline_sql::functions::{AggregateCall, AggregateDefinition, Aggregation, Argument};
use trunkline_sql::values::Carrier;

use super::buffered::{Buffered, BufferedOptions};
use crate::error::to_datafusion;

/// What is needed to create the states of a call.
#[derive(Debug, Clone)]
pub(super) struct Recipe {
    pub(super) definition: &'static AggregateDefinition,
    pub(super) call: AggregateCall,
    /// The number of arguments, with the keys of `DISTINCT` and `ORDER BY`. An aggregate without
    /// arguments gets a column nevertheless, because DataFusion has no other way to pass the number
    /// of rows.
    pub(super) arguments: usize,
    /// Which arguments are constants: the same value for all rows.
    pub(super) constants: Vec<Option<ArrayRef>>,
    /// `DISTINCT` and `ORDER BY`; `None` if there is neither.
    pub(super) buffered: Option<BufferedOptions>,
}

impl Recipe {
    /// Creates states for no groups.
    pub(super) fn start(&self) -> Result<Accumulating> {
        let states = (self.definition.start)(&self.call).map_err(to_datafusion)?;
        let states = match &self.buffered {
            None => states,
            Some(options) => Box::new(Buffered::new(states, options.clone())?),
        };
        Ok(Accumulating { recipe: self.clone(), states: Mutex::new(states), groups: 0 })
    }

    /// The carriers of the columns of a state.
    pub(super) fn state_carriers(&self) -> Vec<Carrier> {
        match self.buffered {
            Some(_) => Buffered::state_carriers(),
            None => (self.definition.state)(&self.call),
        }
    }
}

/// The states of a call for all groups.
pub(super) struct Accumulating {
    recipe: Recipe,
    /// DataFusion wants accumulators that threads could share, although none does.
    states: Mutex<Box<dyn Aggregation>>,
    groups: usize,
}

impl fmt::Debug for Accumulating {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{:?}", self.recipe.definition)
    }
}

impl Accumulating {
    fn update(
        &mut self,
        values: &[ArrayRef],
        groups: &[usize],
        filter: Option<&[bool]>,
    ) -> Result<(), SqlError> {
        let own = values.iter().take(self.recipe.arguments).enumerate();
        let arguments = own.map(|(at, array)| {
            let constant = self.recipe.constants.get(at).and_then(Option::as_ref);
            match constant {
                Some(constant) => Argument::constant(Arc::clone(constant)),
                None => Argument::column(Arc::clone(array)),
            }
        });
        let arguments: Vec<Argument> = arguments.collect();
        let group_count = self.groups;
        self.states.lock().update(&GroupedRows {
            arguments: &arguments,
            groups,
            filter,
            group_count,
        })
    }

    fn count(&self, emit: EmitTo) -> usize {
        match emit {
            EmitTo::All => self.groups,
            EmitTo::First(count) => count,
        }
    }

    /// The results of some groups, which are removed.
    fn finish(&mut self, count: usize) -> Result<ArrayRef> {
        let results = self.states.lock().finish(count).map_err(to_datafusion)?;
        let expected = self.recipe.call.result_carrier.data_type();
        if results.len() != count || *results.data_type() != expected {
            let (found, rows) = (results.data_type(), results.len());
            return exec_err!(
                "{self:?} returned {rows} of {found}, expected {count} of {expected}"
            );
        }
        self.groups = self.groups.saturating_sub(count);
        Ok(results)
    }

    fn partial(&mut self, count: usize) -> Result<Vec<ArrayRef>> {
        let states = self.states.lock().partial(count).map_err(to_datafusion)?;
        self.groups = self.groups.saturating_sub(count);
        Ok(states)
    }
}

/// `FILTER`: a row counts if the condition is true.
fn flags(filter: &BooleanArray) -> Vec<bool> {
    filter.iter().map(|value| value == Some(true)).collect()
}

impl GroupsAccumulator for Accumulating {
    fn update_batch(
        &mut self,
        values: &[ArrayRef],
        group_indices: &[usize],
        opt_filter: Option<&BooleanArray>,
        total_num_groups: usize,
    ) -> Result<()> {
        self.groups = self.groups.max(total_num_groups);
        let filter = opt_filter.map(flags);
        self.update(values, group_indices, filter.as_deref()).map_err(to_datafusion)
    }

    fn merge_batch(
        &mut self,
        values: &[ArrayRef],
        group_indices: &[usize],
        total_num_groups: usize,
    ) -> Result<()> {
        self.groups = self.groups.max(total_num_groups);
        self.states.lock().merge(values, group_indices, self.groups).map_err(to_datafusion)
    }

    fn evaluate(&mut self, emit_to: EmitTo) -> Result<ArrayRef> {
        self.finish(self.count(emit_to))
    }

    fn state(&mut self, emit_to: EmitTo) -> Result<Vec<ArrayRef>> {
        self.partial(self.count(emit_to))
    }

    /// The state of each row as if it were a group of its own, for when grouping ahead doesn't pay.
    fn convert_to_state(
        &self,
        values: &[ArrayRef],
        opt_filter: Option<&BooleanArray>,
    ) -> Result<Vec<ArrayRef>> {
        let rows = match (values.first(), opt_filter) {
            (Some(values), _) => values.len(),
            (None, Some(filter)) => filter.len(),
            (None, None) => return exec_err!("states of rows without arguments"),
        };
        let mut single = self.recipe.start()?;
        let groups: Vec<usize> = (0..rows).collect();
        GroupsAccumulator::update_batch(&mut single, values, &groups, opt_filter, rows)?;
        single.partial(rows)
    }

    fn size(&self) -> usize {
        self.states.lock().size()
    }
}

impl Accumulator for Accumulating {
    fn update_batch(&mut self, values: &[ArrayRef]) -> Result<()> {
        let Some(first) = values.first() else {
            return exec_err!("an aggregate of one group needs a column to count its rows");
        };
        self.groups = 1;
        self.update(values, &vec![0; first.len()], None).map_err(to_datafusion)
    }

    fn evaluate(&mut self) -> Result<ScalarValue> {
        // A group without rows still has a result, such as the 0 of count(*).
        self.ensure_group()?;
        let result = self.finish(1)?;
        ScalarValue::try_from_array(&result, 0)
    }

    fn size(&self) -> usize {
        self.states.lock().size()
    }

    fn state(&mut self) -> Result<Vec<ScalarValue>> {
        self.ensure_group()?;
        let states = self.partial(1)?;
        states.iter().map(|state| ScalarValue::try_from_array(state, 0)).collect()
    }

    fn merge_batch(&mut self, states: &[ArrayRef]) -> Result<()> {
        let rows = states.first().map_or(0, |states| states.len());
        self.groups = 1;
        self.states.lock().merge(states, &vec![0; rows], 1).map_err(to_datafusion)
    }
}

impl Accumulating {
    /// Makes sure that group 0 exists.
    fn ensure_group(&mut self) -> Result<()> {
        self.groups = 1;
        self.states.lock().merge(&self.empty_states(), &[], 1).map_err(to_datafusion)
    }

    fn empty_states(&self) -> Vec<ArrayRef> {
        self.recipe
            .state_carriers()
            .iter()
            .map(|carrier| arrow_array::new_empty_array(&carrier.data_type()))
            .collect()
    }
}
