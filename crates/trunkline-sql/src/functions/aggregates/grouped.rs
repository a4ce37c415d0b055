//! The states of an aggregate for all groups: [`Groups`] implements [`Aggregation`] for any [`State`].
//!
//! A partial state is one column of bytes. For example, that of `count(*)` has 8 bytes.

use std::fmt;

use arrow_array::ArrayRef;
use arrow_array::builder::{ArrayBuilder, BinaryViewBuilder};
use arrow_array::cast::AsArray;

use crate::error::SqlError;
use crate::functions::aggregate::{AggregateCall, Aggregation, GroupedRows};
use crate::functions::rows::{Input, Output, Reader};
use crate::values::Carrier;

/// The state of one group. The default is that of a group without rows.
pub(in crate::functions) trait State:
    Default + fmt::Debug + Send + 'static
{
    /// Appends the state to `out`.
    ///
    /// # Errors
    /// The state is too large.
    fn save(&self, out: &mut Vec<u8>) -> Result<(), SqlError>;

    /// Adds a saved state.
    ///
    /// # Errors
    /// Those of the combine function.
    fn merge(&mut self, saved: &[u8]) -> Result<(), SqlError>;

    /// The memory that the state has allocated, in bytes.
    fn size(&self) -> usize {
        0
    }
}

/// Adds a batch of rows to the states of their groups.
pub(in crate::functions) type Update<S> = fn(&GroupedRows<'_>, &mut [S]) -> Result<(), SqlError>;

/// The result of a group; `None` is null.
pub(in crate::functions) type Last<S, R> = fn(&S) -> Result<Option<R>, SqlError>;

/// The states of all groups.
pub(in crate::functions) struct Groups<S, R> {
    states: Vec<S>,
    update: Update<S>,
    last: Last<S, R>,
}

impl<S: State, R: Output + 'static> Groups<S, R> {
    /// No groups.
    pub(in crate::functions) fn start(update: Update<S>, last: Last<S, R>) -> Box<dyn Aggregation> {
        Box::new(Self { states: Vec::new(), update, last })
    }

    fn grow(&mut self, group_count: usize) {
        if self.states.len() < group_count {
            self.states.resize_with(group_count, S::default);
        }
    }

    fn take(&mut self, count: usize) -> impl Iterator<Item = S> + '_ {
        self.grow(count);
        self.states.drain(..count)
    }
}

impl<S: fmt::Debug, R> fmt::Debug for Groups<S, R> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Groups").field("states", &self.states).finish_non_exhaustive()
    }
}

impl<S: State, R: Output + 'static> Aggregation for Groups<S, R> {
    fn update(&mut self, rows: &GroupedRows<'_>) -> Result<(), SqlError> {
        self.grow(rows.group_count);
        (self.update)(rows, &mut self.states)
    }

    fn merge(
        &mut self,
        states: &[ArrayRef],
        groups: &[usize],
        group_count: usize,
    ) -> Result<(), SqlError> {
        self.grow(group_count);
        let saved = states.first().and_then(|states| states.as_binary_view_opt());
        let saved = saved.ok_or_else(|| SqlError::internal("states are one column of bytes"))?;
        for (&group, saved) in groups.iter().zip(saved) {
            if let (Some(state), Some(saved)) = (self.states.get_mut(group), saved) {
                state.merge(saved)?;
            }
        }
        Ok(())
    }

    fn finish(&mut self, count: usize) -> Result<ArrayRef, SqlError> {
        let last = self.last;
        let mut results = R::builder(count);
        for state in self.take(count) {
            match last(&state)? {
                Some(result) => result.append(&mut results),
                None => R::append_null(&mut results),
            }
        }
        Ok(results.finish())
    }

    fn partial(&mut self, count: usize) -> Result<Vec<ArrayRef>, SqlError> {
        let mut column = BinaryViewBuilder::with_capacity(count);
        let mut saved = Vec::new();
        for state in self.take(count) {
            saved.clear();
            state.save(&mut saved)?;
            column.append_value(&saved);
        }
        Ok(vec![ArrayBuilder::finish(&mut column)])
    }

    fn size(&self) -> usize {
        let inside: usize = self.states.iter().map(State::size).sum();
        inside + self.states.capacity() * size_of::<S>()
    }
}

/// The columns of a partial state.
pub(in crate::functions) fn saved(_: &AggregateCall) -> Vec<Carrier> {
    vec![Carrier::Bytes]
}

/// Calls `add` for each row in which the first argument is not null.
pub(in crate::functions) fn each<'a, A: Input<'a>, S>(
    rows: &GroupedRows<'a>,
    states: &mut [S],
    mut add: impl FnMut(&mut S, A) -> Result<(), SqlError>,
) -> Result<(), SqlError> {
    let values = argument::<A>(rows, 0)?;
    for (row, group) in rows.rows() {
        if let (Some(value), Some(state)) = (values.get(row), states.get_mut(group)) {
            add(state, value)?;
        }
    }
    Ok(())
}

/// Calls `add` for each row in which neither of two arguments is null.
pub(in crate::functions) fn each_pair<'a, A: Input<'a>, B: Input<'a>, S>(
    rows: &GroupedRows<'a>,
    states: &mut [S],
    mut add: impl FnMut(&mut S, A, B) -> Result<(), SqlError>,
) -> Result<(), SqlError> {
    let (left, right) = (argument::<A>(rows, 0)?, argument::<B>(rows, 1)?);
    for (row, group) in rows.rows() {
        let pair = left.get(row).zip(right.get(row));
        if let (Some((a, b)), Some(state)) = (pair, states.get_mut(group)) {
            add(state, a, b)?;
        }
    }
    Ok(())
}

/// Reads an argument.
pub(in crate::functions) fn argument<'a, A: Input<'a>>(
    rows: &GroupedRows<'a>,
    number: usize,
) -> Result<Reader<'a, A>, SqlError> {
    let argument = rows.arguments.get(number);
    Reader::of(argument.ok_or_else(|| SqlError::internal("an argument is missing"))?)
}

/// Reads a saved number of `N` bytes and moves on behind it.
pub(in crate::functions) fn chunk<const N: usize>(saved: &mut &[u8]) -> Result<[u8; N], SqlError> {
    let chunk = saved.split_first_chunk::<N>();
    let (chunk, rest) = chunk.ok_or_else(|| SqlError::internal("a saved state is truncated"))?;
    *saved = rest;
    Ok(*chunk)
}

/// Defines aggregates: the transition and the final function, how rows are added, and the result.
macro_rules! aggregates {
    ($($transition:literal $last:literal => $update:expr, $result:expr;)*) => {
        &[$(
            $crate::functions::aggregate::AggregateDefinition {
                transition: $transition,
                last: $last,
                state: $crate::functions::aggregates::grouped::saved,
                start: |_| {
                    Ok($crate::functions::aggregates::grouped::Groups::start($update, $result))
                },
            },
        )*]
    };
}

pub(in crate::functions) use aggregates;
