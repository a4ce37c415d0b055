//! Frames: which rows of its partition a row sees.

use std::ops::Range;
use std::sync::Arc;

use arrow_array::cast::AsArray;
use arrow_array::types::Int64Type;
use arrow_array::{Array, ArrayRef, BooleanArray};
use trunkline_format::Oid;
use trunkline_sql::bound::{FrameExclusion, FrameUnit};
use trunkline_sql::functions::{Argument, Call, CallSettings, Kernel};
use trunkline_sql::{SqlError, SqlState};

use super::partition::Partition;
use super::work::Work;
use crate::expression::{Frame, Program};

/// The frame clause of a window.
pub(crate) struct FrameDefinition {
    pub(crate) unit: FrameUnit,
    pub(crate) start: Bound,
    pub(crate) end: Bound,
    pub(crate) exclude: FrameExclusion,
}

/// A bound of a frame.
pub(crate) enum Bound {
    UnboundedPreceding,
    Preceding(Offset),
    CurrentRow,
    Following(Offset),
    UnboundedFollowing,
}

/// The distance of a bound from the current row.
pub(crate) struct Offset {
    /// Its value, without columns.
    pub(crate) distance: Program,
    /// For `RANGE`, how values are compared.
    pub(crate) range: Option<RangeTest>,
}

/// `in_range` of the type of the sort key.
pub(crate) struct RangeTest {
    pub(crate) kernel: Kernel,
    /// The sort key itself.
    pub(crate) value: Program,
    /// The types of the sort key and the offset.
    pub(crate) types: (Oid, Oid),
    pub(crate) descending: bool,
    pub(crate) nulls_first: bool,
}

/// The frames of all rows of a partition.
pub(super) struct Frames {
    ranges: Vec<Range<usize>>,
    exclude: FrameExclusion,
}

/// `bool`.
const BOOL: Oid = Oid(16);

impl FrameDefinition {
    /// Checks the distances, which is done even if there are no rows.
    pub(super) fn check(&self, settings: &CallSettings) -> Result<(), SqlError> {
        for (bound, is_start) in [(&self.start, true), (&self.end, false)] {
            if let Bound::Preceding(offset) | Bound::Following(offset) = bound {
                let distance = offset.distance(is_start, settings)?;
                if offset.range.is_none() {
                    count(&distance, is_start)?;
                }
            }
        }
        Ok(())
    }

    /// The frames of a partition's rows.
    pub(super) fn frames(
        &self,
        partition: &Partition,
        settings: &CallSettings,
        work: &Work,
    ) -> Result<Frames, SqlError> {
        let starts = self.start.places(self.unit, true, partition, (settings, work))?;
        let ends = self.end.places(self.unit, false, partition, (settings, work))?;
        let ranges = starts.into_iter().zip(ends).map(|(start, end)| start..end.max(start));
        Ok(Frames { ranges: ranges.collect(), exclude: self.exclude })
    }
}

impl Frames {
    /// The rows that a row sees, in order. Parts may be empty.
    pub(super) fn parts(&self, row: usize, partition: &Partition) -> [Range<usize>; 3] {
        let frame = self.ranges.get(row).cloned().unwrap_or_default();
        let peers = partition.peers(row);
        let excluded = match self.exclude {
            FrameExclusion::NoOthers => return [frame, 0..0, 0..0],
            FrameExclusion::CurrentRow => row..row + 1,
            FrameExclusion::Group | FrameExclusion::Ties => peers,
        };
        let before = frame.start..frame.end.min(excluded.start);
        let after = frame.start.max(excluded.end)..frame.end;
        let itself = match self.exclude {
            FrameExclusion::Ties if frame.contains(&row) => row..row + 1,
            _ => 0..0,
        };
        [before, itself, after].map(|part| part.start..part.end.max(part.start))
    }

    /// The frames as they are, if nothing is excluded.
    pub(super) fn whole(&self) -> Option<&[Range<usize>]> {
        (self.exclude == FrameExclusion::NoOthers).then_some(&*self.ranges)
    }
}

impl Bound {
    /// For each row, the first row of its frame, or the row after the last one.
    fn places(
        &self,
        unit: FrameUnit,
        is_start: bool,
        partition: &Partition,
        (settings, work): (&CallSettings, &Work),
    ) -> Result<Vec<usize>, SqlError> {
        let rows = partition.rows();
        let (offset, before) = match self {
            Self::UnboundedPreceding => return Ok(vec![0; rows]),
            Self::UnboundedFollowing => return Ok(vec![rows; rows]),
            Self::CurrentRow => {
                let place = |row| match (unit, is_start) {
                    (FrameUnit::Rows, true) => row,
                    (FrameUnit::Rows, false) => row + 1,
                    (_, true) => partition.peers(row).start,
                    (_, false) => partition.peers(row).end,
                };
                return Ok((0..rows).map(place).collect());
            }
            Self::Preceding(offset) => (offset, true),
            Self::Following(offset) => (offset, false),
        };
        let distance = offset.distance(is_start, settings)?;
        if let Some(range) = &offset.range {
            return range.places(&distance, (is_start, before), partition, (settings, work));
        }
        let distance = count(&distance, is_start)?;
        let moved = |from: usize, to: usize| match before {
            // The end is after its row, so it can be before the first row.
            true => from.checked_sub(distance).map_or(0, |at| at + usize::from(!is_start)),
            false => from.saturating_add(distance).saturating_add(usize::from(!is_start)).min(to),
        };
        let place = |row| match unit {
            FrameUnit::Rows => moved(row, rows),
            _ => partition.group_start(moved(partition.group(row), partition.groups())),
        };
        Ok((0..rows).map(place).collect())
    }
}

impl Offset {
    /// The value, which is not null.
    fn distance(&self, is_start: bool, settings: &CallSettings) -> Result<ArrayRef, SqlError> {
        let value = self.distance.evaluate(&Frame::new(Vec::new(), 1, settings))?;
        if value.is_null(0) {
            let what = if is_start { "starting" } else { "ending" };
            let message = format!("frame {what} offset must not be null");
            return Err(SqlError::new(SqlState::NULL_VALUE_NOT_ALLOWED, message));
        }
        Ok(value)
    }
}

/// A number of rows or groups.
fn count(distance: &ArrayRef, is_start: bool) -> Result<usize, SqlError> {
    let value = distance.as_primitive_opt::<Int64Type>().map(|value| value.value(0));
    let value = value.ok_or_else(|| SqlError::internal("a frame offset is an int8"))?;
    if value < 0 {
        let what = if is_start { "starting" } else { "ending" };
        let message = format!("frame {what} offset must not be negative");
        return Err(SqlError::new(SqlState::INVALID_PRECEDING_OR_FOLLOWING_SIZE, message));
    }
    Ok(usize::try_from(value).unwrap_or(usize::MAX))
}

impl RangeTest {
    /// The places of a bound. Both the current row and the bound only move forward.
    fn places(
        &self,
        distance: &ArrayRef,
        (is_start, before): (bool, bool),
        partition: &Partition,
        (settings, work): (&CallSettings, &Work),
    ) -> Result<Vec<usize>, SqlError> {
        let values = partition.evaluate(&self.value, settings)?;
        let flag = |value| Argument::column(Arc::new(BooleanArray::from(vec![value])));
        let (subtract, less) = (before != self.descending, is_start == self.descending);
        let distance = Argument::column(Arc::clone(distance));
        let fixed = [distance, flag(subtract), flag(less)];
        let (mut at, rows) = (0, partition.rows());
        let mut places = Vec::with_capacity(rows);
        for row in 0..rows {
            work.check()?;
            while at < rows {
                let inside = match (values.is_null(at), values.is_null(row)) {
                    (false, false) => {
                        let pair = (values.slice(at, 1), values.slice(row, 1));
                        self.holds(pair, &fixed, settings)?
                    }
                    // Nulls are at one end, and are within any distance of each other.
                    (bound, current) => match (is_start, self.nulls_first) {
                        (true, true) => !bound || current,
                        (true, false) => bound || !current,
                        (false, true) => bound || !current,
                        (false, false) => !bound || current,
                    },
                };
                if inside == is_start {
                    break;
                }
                at += 1;
            }
            places.push(at);
        }
        Ok(places)
    }

    /// `in_range(value, current, distance, subtract, less)`, of which the last three are `fixed`.
    fn holds(
        &self,
        (value, current): (ArrayRef, ArrayRef),
        fixed: &[Argument; 3],
        settings: &CallSettings,
    ) -> Result<bool, SqlError> {
        let (value, current) = (Argument::column(value), Argument::column(current));
        let [distance, subtract, less] = fixed.clone();
        let (key, offset) = self.types;
        let result = (self.kernel)(&Call {
            arguments: &[value, current, distance, subtract, less],
            rows: 1,
            argument_types: &[key, key, offset, BOOL, BOOL],
            result_type: BOOL,
            collation: Oid(0),
            row: None,
            settings,
        })?;
        let result = result.as_boolean_opt().filter(|result| !result.is_null(0));
        result.map(|result| result.value(0)).ok_or_else(|| SqlError::internal("in_range"))
    }
}
