//! Aggregates over windows.
//!
//! The states of trunkline-sql are those of groups of rows, so each frame is a group:
//!
//! ```text
//!   all frames are the same           one group, whose result all rows get
//!   frames that start together        a state that grows: its copy is the group of a row
//!   any others                        a group for each frame, with all of its rows
//! ```

use std::ops::Range;
use std::sync::Arc;

use arrow_array::cast::AsArray;
use arrow_array::{Array, ArrayRef, UInt32Array};
use datafusion::arrow::compute::{concat, take};
use trunkline_sql::SqlError;
use trunkline_sql::functions::{Aggregation, Argument, GroupedRows};

use super::definition::AggregateOver;
use super::frame::Frames;
use super::function::Arguments;
use super::partition::Partition;
use super::work::Work;
use crate::expression::failed;

/// The most groups that are finished together.
const GROUPS_MAX: usize = 4096;

/// The most rows of groups that are added together.
const ROWS_MAX: usize = 1 << 16;

/// The arguments of an aggregate in the rows of a partition.
struct Rows {
    arguments: Vec<Argument>,
    filter: Option<Vec<bool>>,
}

impl AggregateOver {
    /// The result for each row.
    pub(super) fn results(
        &self,
        arguments: &Arguments<'_>,
        frames: &Frames,
        work: &Work,
    ) -> Result<ArrayRef, SqlError> {
        let partition = arguments.partition;
        let seen = seen(frames, partition);
        let constants = self.constants.iter().map(Option::as_ref).chain(std::iter::repeat(None));
        let values = arguments.programs.iter().zip(constants);
        let values = values.map(|(program, constant)| match constant {
            Some(constant) => Ok(Argument::constant(Arc::clone(constant))),
            None => arguments.some(program, seen.as_deref()).map(Argument::column),
        });
        let values = values.collect::<Result<Vec<_>, SqlError>>()?;
        let filter = match &self.filter {
            None => None,
            Some(program) => {
                let filter = arguments.some(program, seen.as_deref())?;
                let flags = filter.as_boolean_opt();
                let flags = flags.ok_or_else(|| SqlError::internal("a filter is not boolean"))?;
                Some(flags.iter().map(|flag| flag == Some(true)).collect())
            }
        };
        let rows = Rows { arguments: values, filter };
        if let Some(whole) = frames.whole() {
            let first = whole.first().cloned().unwrap_or_default();
            if whole.iter().all(|frame| *frame == first) {
                return self.same(&rows, first, partition.rows(), work);
            }
            let grows = |pair: &[Range<usize>]| matches!(pair, [a, b] if a.end <= b.end);
            if whole.iter().all(|frame| frame.start == first.start) && whole.windows(2).all(grows) {
                return self.growing(&rows, whole, work);
            }
        }
        let frames = (0..partition.rows()).map(|row| frames.parts(row, partition));
        self.each(&rows, frames, work)
    }

    fn start(&self) -> Result<Box<dyn Aggregation>, SqlError> {
        (self.definition.start)(&self.call)
    }

    /// All rows have the same frame.
    fn same(
        &self,
        rows: &Rows,
        frame: Range<usize>,
        count: usize,
        work: &Work,
    ) -> Result<ArrayRef, SqlError> {
        let mut states = self.start()?;
        rows.add(&mut *states, &places(frame.clone())?, &vec![0; frame.len()], 1)?;
        work.hold(states.size())?;
        let result = states.finish(1)?;
        take(&result, &UInt32Array::from(vec![0; count]), None).map_err(failed)
    }

    /// Frames with the same start, each at least as long as the one before.
    fn growing(
        &self,
        rows: &Rows,
        frames: &[Range<usize>],
        work: &Work,
    ) -> Result<ArrayRef, SqlError> {
        let (mut running, mut results) = (self.start()?, Vec::new());
        let (mut copies, mut groups) = (self.start()?, 0);
        let mut end = frames.first().map_or(0, |frame| frame.start);
        let mut result_of = Vec::with_capacity(frames.len());
        let mut finished = 0;
        let mut before: Option<usize> = None;
        for frame in frames {
            if before != Some(frame.end) {
                if groups == GROUPS_MAX {
                    results.push(copies.finish(groups)?);
                    finished += groups;
                    groups = 0;
                }
                let new = end.min(frame.end)..frame.end;
                rows.add(&mut *running, &places(new.clone())?, &vec![0; new.len()], 1)?;
                end = end.max(frame.end);
                let state = running.partial(1)?;
                running.merge(&state, &[0], 1)?;
                copies.merge(&state, &[groups], groups + 1)?;
                groups += 1;
                work.check()?;
                if groups % 64 == 0 {
                    work.hold(running.size() + copies.size() + size(&results))?;
                }
                before = Some(frame.end);
            }
            result_of.push(finished + groups - 1);
        }
        if groups > 0 {
            results.push(copies.finish(groups)?);
        }
        work.hold(0)?;
        spread(&results, &result_of)
    }

    /// Any frames.
    fn each(
        &self,
        rows: &Rows,
        frames: impl Iterator<Item = [Range<usize>; 3]>,
        work: &Work,
    ) -> Result<ArrayRef, SqlError> {
        let (mut states, mut results) = (self.start()?, Vec::new());
        let (mut members, mut groups): (Vec<u32>, Vec<usize>) = (Vec::new(), Vec::new());
        let (mut count, mut finished) = (0, 0);
        let mut before: Option<[Range<usize>; 3]> = None;
        let mut result_of = Vec::new();
        for frame in frames {
            if before.as_ref() != Some(&frame) {
                if count == GROUPS_MAX {
                    work.check()?;
                    rows.add(&mut *states, &members, &groups, count)?;
                    members.clear();
                    groups.clear();
                    work.hold(states.size() + size(&results))?;
                    results.push(states.finish(count)?);
                    finished += count;
                    count = 0;
                }
                for part in &frame {
                    for place in places(part.clone())? {
                        members.push(place);
                        groups.push(count);
                        if members.len() == ROWS_MAX {
                            work.check()?;
                            rows.add(&mut *states, &members, &groups, count + 1)?;
                            work.hold(states.size() + size(&results))?;
                            members.clear();
                            groups.clear();
                        }
                    }
                }
                count += 1;
                before = Some(frame);
            }
            result_of.push(finished + count - 1);
        }
        if count > 0 {
            rows.add(&mut *states, &members, &groups, count)?;
            results.push(states.finish(count)?);
        }
        work.hold(0)?;
        spread(&results, &result_of)
    }
}

/// The rows that are in any frame, because the arguments are evaluated in no others; `None` if all are.
fn seen(frames: &Frames, partition: &Partition) -> Option<Vec<u32>> {
    let count = partition.rows();
    let (mut starts, mut ends) = (vec![0_usize; count + 1], vec![0_usize; count + 1]);
    for part in (0..count).flat_map(|row| frames.parts(row, partition)) {
        if !part.is_empty() {
            starts.get_mut(part.start).into_iter().for_each(|starting| *starting += 1);
            ends.get_mut(part.end).into_iter().for_each(|ending| *ending += 1);
        }
    }
    let (mut open, mut seen) = (0, Vec::with_capacity(count));
    for ((row, starting), ending) in (0..).zip(starts).zip(ends) {
        open += starting;
        open -= ending;
        if open > 0 {
            seen.push(row);
        }
    }
    (seen.len() < count).then_some(seen)
}

/// The memory that arrays take.
fn size(arrays: &[ArrayRef]) -> usize {
    arrays.iter().map(|array| array.get_array_memory_size()).sum()
}

/// The rows of a range.
fn places(range: Range<usize>) -> Result<Vec<u32>, SqlError> {
    let place = |row| u32::try_from(row);
    let places = range.map(place).collect::<Result<_, _>>();
    places.map_err(|_| SqlError::internal("a partition has more than 2^32 rows"))
}

/// The results, each for as many rows as have it.
fn spread(results: &[ArrayRef], result_of: &[usize]) -> Result<ArrayRef, SqlError> {
    let results: Vec<&dyn Array> = results.iter().map(|part| &**part).collect();
    let all = concat(&results).map_err(failed)?;
    let places = result_of.iter().map(|&at| u32::try_from(at).unwrap_or(u32::MAX));
    take(&all, &places.collect::<UInt32Array>(), None).map_err(failed)
}

impl Rows {
    /// Adds some rows to the states of their groups.
    fn add(
        &self,
        states: &mut dyn Aggregation,
        rows: &[u32],
        groups: &[usize],
        group_count: usize,
    ) -> Result<(), SqlError> {
        let places = UInt32Array::from(rows.to_vec());
        let taken = |argument: &Argument| match argument.is_constant() {
            true => Ok(argument.clone()),
            false => take(argument.array(), &places, None).map(Argument::column),
        };
        let arguments = self.arguments.iter().map(taken).collect::<Result<Vec<_>, _>>();
        let arguments = arguments.map_err(failed)?;
        let flags = self.filter.as_ref().map(|filter| {
            let flag = |&row: &u32| filter.get(row as usize).copied().unwrap_or_default();
            rows.iter().map(flag).collect::<Vec<bool>>()
        });
        let filter = flags.as_deref();
        states.update(&GroupedRows { arguments: &arguments, groups, filter, group_count })
    }
}
