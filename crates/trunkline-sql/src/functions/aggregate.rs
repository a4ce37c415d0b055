//! **Aggregates**: their states, for many groups at once.
//!
//! ```text
//!   rows, each with the number of its group ── update ──▶ a state for each group
//!   states of another part of the rows ─────── merge ───▶        │
//!                                                   finish ◀─────┴────▶ partial
//!                                          one result per group     states as columns
//! ```
//!
//! In a plan of two phases, such as under a `Gather`, the first phase ends with `partial` and the
//! second one starts with `merge`. An aggregate is identified by the names of its transition and final
//! functions (`pg_aggregate.aggtransfn` and `aggfinalfn`), which are the same in all versions.

use std::fmt;

use arrow_array::ArrayRef;
use trunkline_format::Oid;

use super::call::{Argument, CallSettings};
use crate::error::SqlError;
use crate::values::Carrier;

/// A batch of rows for an aggregate.
#[derive(Debug, Clone, Copy)]
pub struct GroupedRows<'a> {
    /// The arguments of the aggregate.
    pub arguments: &'a [Argument],
    /// The group of each row, below `group_count`.
    pub groups: &'a [usize],
    /// Which rows count: those for which `FILTER` is true. `None` if all do.
    pub filter: Option<&'a [bool]>,
    /// The number of groups so far. Groups that are new have no rows before this batch.
    pub group_count: usize,
}

impl GroupedRows<'_> {
    /// The rows that count, each with its group.
    pub fn rows(&self) -> impl Iterator<Item = (usize, usize)> + '_ {
        let counts = |row: &usize| {
            self.filter.is_none_or(|filter| filter.get(*row).copied().unwrap_or_default())
        };
        self.groups.iter().copied().enumerate().filter(move |(row, _)| counts(row))
    }
}

/// The states of one aggregate for all groups.
pub trait Aggregation: Send + fmt::Debug {
    /// Adds rows to the states of their groups.
    ///
    /// # Errors
    /// Those of the transition function.
    fn update(&mut self, rows: &GroupedRows<'_>) -> Result<(), SqlError>;

    /// Adds states that [`Aggregation::partial`] returned. Row `i` of each array belongs to
    /// `groups[i]`.
    ///
    /// # Errors
    /// Those of the combine function.
    fn merge(
        &mut self,
        states: &[ArrayRef],
        groups: &[usize],
        group_count: usize,
    ) -> Result<(), SqlError>;

    /// Returns the results of the first `count` groups and removes these groups. The groups after them
    /// are renumbered from 0.
    ///
    /// # Errors
    /// Those of the final function.
    fn finish(&mut self, count: usize) -> Result<ArrayRef, SqlError>;

    /// Returns the states of the first `count` groups as columns of the types that
    /// [`AggregateDefinition::state`] lists, and removes these groups.
    ///
    /// # Errors
    /// A state is too large.
    fn partial(&mut self, count: usize) -> Result<Vec<ArrayRef>, SqlError>;

    /// The memory used by all states, in bytes.
    fn size(&self) -> usize;
}

/// A call of an aggregate in a statement.
#[derive(Debug, Clone)]
pub struct AggregateCall {
    /// The types of the arguments after polymorphic types have been resolved.
    pub argument_types: Vec<Oid>,
    /// The carriers of the arguments.
    pub argument_carriers: Vec<Carrier>,
    /// The type of the result.
    pub result_type: Oid,
    /// The carrier of the result.
    pub result_carrier: Carrier,
    /// The direct arguments of an ordered-set aggregate, which are constants.
    pub direct: Vec<ArrayRef>,
    /// The input collation; 0 if there is none.
    pub collation: Oid,
    /// The settings of the session.
    pub settings: CallSettings,
}

/// How an aggregate is computed.
#[derive(Clone, Copy)]
pub struct AggregateDefinition {
    /// `prosrc` of the transition function.
    pub transition: &'static str,
    /// `prosrc` of the final function; empty if there is none.
    pub last: &'static str,
    /// The carriers of a state's columns.
    pub state: fn(&AggregateCall) -> Vec<Carrier>,
    /// Creates the states, for no groups.
    pub start: fn(&AggregateCall) -> Result<Box<dyn Aggregation>, SqlError>,
}

impl fmt::Debug for AggregateDefinition {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}/{}", self.transition, self.last)
    }
}
