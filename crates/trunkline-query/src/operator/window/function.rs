//! Window functions that are not aggregates.

use std::sync::Arc;

use arrow_array::builder::Int32Builder;
use arrow_array::cast::AsArray;
use arrow_array::types::Int32Type;
use arrow_array::{Array, ArrayRef, Float64Array, Int64Array, UInt32Array, new_null_array};
use datafusion::arrow::compute::{interleave, take};
use trunkline_sql::functions::Argument;
use trunkline_sql::{SqlError, SqlState};

use super::definition::{RankFunction, ValueFunction};
use super::frame::Frames;
use super::partition::Partition;

/// Row numbers are int8.
fn int8(number: usize) -> i64 {
    i64::try_from(number).unwrap_or(i64::MAX)
}

/// An int4 argument in a row.
fn int4(arguments: &[Argument], number: usize, row: usize) -> Result<Option<i32>, SqlError> {
    let missing = || SqlError::internal("a window function lacks an int4 argument");
    let argument = arguments.get(number).ok_or_else(missing)?;
    let values = argument.array().as_primitive_opt::<Int32Type>().ok_or_else(missing)?;
    let at = argument.row(row);
    Ok((!values.is_null(at)).then(|| values.value(at)))
}

fn failed(error: datafusion::arrow::error::ArrowError) -> SqlError {
    SqlError::internal(error.to_string())
}

impl RankFunction {
    /// The result for each row.
    pub(super) fn results(
        self,
        arguments: &[Argument],
        partition: &Partition,
    ) -> Result<ArrayRef, SqlError> {
        let count = partition.rows();
        let rows = 0..count;
        let whole = |place: &dyn Fn(usize) -> usize| -> ArrayRef {
            Arc::new(rows.clone().map(|row| int8(place(row))).collect::<Int64Array>())
        };
        Ok(match self {
            Self::RowNumber => whole(&|row| row + 1),
            Self::Rank => whole(&|row| partition.peers(row).start + 1),
            Self::DenseRank => whole(&|row| partition.group(row) + 1),
            Self::PercentRank => {
                let rank = |row| match count {
                    1 => 0.0,
                    _ => partition.peers(row).start as f64 / (count - 1) as f64,
                };
                Arc::new(rows.map(rank).collect::<Float64Array>())
            }
            Self::CumeDist => {
                let share = |row| partition.peers(row).end as f64 / count as f64;
                Arc::new(rows.map(share).collect::<Float64Array>())
            }
            Self::Ntile => ntile(arguments, count)?,
        })
    }
}

/// Buckets of equal size; the first ones get what is left over. The number of buckets is that of the
/// first row where it is not null.
fn ntile(arguments: &[Argument], count: usize) -> Result<ArrayRef, SqlError> {
    let mut results = Int32Builder::with_capacity(count);
    let mut buckets: Option<usize> = None;
    let (mut bucket, mut in_bucket, mut larger, mut size) = (1_i32, 0, 0, 0);
    for row in 0..count {
        if buckets.is_none() {
            let Some(number) = int4(arguments, 0, row)? else {
                results.append_null();
                continue;
            };
            let number = usize::try_from(number).unwrap_or_default();
            if number == 0 {
                let message = "argument of ntile must be greater than zero";
                return Err(SqlError::new(SqlState::INVALID_ARGUMENT_FOR_NTILE, message));
            }
            buckets = Some(number);
            (size, larger) = match count / number {
                0 => (1, 0),
                size => (size, count % number),
            };
        }
        let room = size + usize::from(usize::try_from(bucket).is_ok_and(|at| at <= larger));
        if in_bucket == room {
            bucket += 1;
            in_bucket = 0;
        }
        in_bucket += 1;
        results.append_value(bucket);
    }
    Ok(Arc::new(results.finish()))
}

impl ValueFunction {
    /// The result for each row.
    pub(super) fn results(
        self,
        arguments: &[Argument],
        partition: &Partition,
        frames: &Frames,
    ) -> Result<ArrayRef, SqlError> {
        if matches!(self, Self::Lag | Self::Lead) {
            return self.moved(arguments, partition.rows());
        }
        let mut places: Vec<Option<u32>> = Vec::with_capacity(partition.rows());
        for row in 0..partition.rows() {
            let parts = frames.parts(row, partition);
            let place = match self {
                Self::Last => {
                    let last = parts.into_iter().rev().find(|part| !part.is_empty());
                    last.map(|part| part.end - 1)
                }
                Self::Nth => match int4(arguments, 1, row)? {
                    None => None,
                    Some(1..) => {
                        let number = int4(arguments, 1, row)?.unwrap_or_default() - 1;
                        let number = usize::try_from(number).unwrap_or_default();
                        parts.into_iter().flatten().nth(number)
                    }
                    Some(_) => {
                        let message = "argument of nth_value must be greater than zero";
                        let code = SqlState::INVALID_ARGUMENT_FOR_NTH_VALUE;
                        return Err(SqlError::new(code, message));
                    }
                },
                _ => parts.into_iter().flatten().next(),
            };
            places.push(place.and_then(|place| u32::try_from(place).ok()));
        }
        let [value, ..] = arguments else {
            return Err(SqlError::internal("a window function lacks its value"));
        };
        take(value.array(), &UInt32Array::from(places), None).map_err(failed)
    }

    /// `lag` and `lead`: the value some rows before or after, or a default.
    fn moved(self, arguments: &[Argument], count: usize) -> Result<ArrayRef, SqlError> {
        let [value, ..] = arguments else {
            return Err(SqlError::internal("a window function lacks its value"));
        };
        let null = new_null_array(value.array().data_type(), 1);
        let default = arguments.get(2).map_or(&null, Argument::array);
        let mut places = Vec::with_capacity(count);
        for row in 0..count {
            let distance = match arguments.len() {
                1 => Some(1),
                _ => int4(arguments, 1, row)?,
            };
            let Some(distance) = distance else {
                places.push((2, 0));
                continue;
            };
            let distance = if self == Self::Lag { -i64::from(distance) } else { distance.into() };
            let place = usize::try_from(int8(row).saturating_add(distance)).ok();
            places.push(match place.filter(|&place| place < count) {
                Some(place) => (0, place),
                None if arguments.len() > 2 => (1, row),
                None => (2, 0),
            });
        }
        interleave(&[&**value.array(), &**default, &*null], &places).map_err(failed)
    }
}
