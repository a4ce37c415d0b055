//! Window functions that are not aggregates.
//!
//! An argument is only evaluated in rows whose value a function asks for, as in PostgreSQL:
//!
//! ```text
//!   first_value(10 / a) OVER (ORDER BY a DESC)      a: 1, 0 ──▶ 10, 10
//! ```

use std::sync::Arc;

use arrow_array::builder::Int32Builder;
use arrow_array::cast::AsArray;
use arrow_array::types::Int32Type;
use arrow_array::{Array, ArrayRef, Float64Array, Int32Array, Int64Array, new_null_array};
use datafusion::arrow::compute::interleave;
use trunkline_sql::functions::{Argument, CallSettings};
use trunkline_sql::{SqlError, SqlState};

use super::definition::{RankFunction, ValueFunction};
use super::frame::Frames;
use super::partition::Partition;
use crate::expression::{Program, Scatter, failed};

/// Row numbers are int8.
fn int8(number: usize) -> i64 {
    i64::try_from(number).unwrap_or(i64::MAX)
}

fn uint32(row: usize) -> Result<u32, SqlError> {
    u32::try_from(row).map_err(|_| SqlError::internal("a partition has more than 2^32 rows"))
}

/// The arguments of a call over a partition.
pub(super) struct Arguments<'a> {
    pub(super) programs: &'a [Program],
    pub(super) partition: &'a Partition,
    pub(super) settings: &'a CallSettings,
}

impl Arguments<'_> {
    /// The values of a program in these rows, which are in order, and null in all others; without
    /// rows, in all.
    pub(super) fn some(
        &self,
        program: &Program,
        rows: Option<&[u32]>,
    ) -> Result<ArrayRef, SqlError> {
        let Some(rows) = rows else { return self.partition.evaluate(program, self.settings) };
        let values = self.partition.evaluate_at(program, rows, self.settings)?;
        let null = new_null_array(values.data_type(), 1);
        let mut all = Scatter::new(self.partition.rows());
        all.set(rows, &Argument::column(values));
        all.finish(null)
    }

    fn program(&self, number: usize) -> Result<&Program, SqlError> {
        let program = self.programs.get(number);
        program.ok_or_else(|| SqlError::internal("a window function lacks an argument"))
    }

    /// The values of an argument in these rows.
    fn values(&self, number: usize, rows: &[u32]) -> Result<ArrayRef, SqlError> {
        self.partition.evaluate_at(self.program(number)?, rows, self.settings)
    }

    /// The values of an int4 argument in all rows.
    fn int4s(&self, number: usize) -> Result<Int32Array, SqlError> {
        int4(&self.partition.evaluate(self.program(number)?, self.settings)?)
    }
}

fn int4(array: &ArrayRef) -> Result<Int32Array, SqlError> {
    let values = array.as_primitive_opt::<Int32Type>().cloned();
    values.ok_or_else(|| SqlError::internal("an argument of a window function is an int4"))
}

impl RankFunction {
    /// The result for each row.
    pub(super) fn results(self, arguments: &Arguments<'_>) -> Result<ArrayRef, SqlError> {
        let partition = arguments.partition;
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
fn ntile(arguments: &Arguments<'_>, count: usize) -> Result<ArrayRef, SqlError> {
    let mut results = Int32Builder::with_capacity(count);
    let mut buckets: Option<usize> = None;
    let (mut bucket, mut in_bucket, mut larger, mut size) = (1_i32, 0, 0, 0);
    for row in 0..count {
        if buckets.is_none() {
            let number = int4(&arguments.values(0, &[uint32(row)?])?)?;
            let Some(number) = number.iter().next().flatten() else {
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

/// Where a row's result comes from.
#[derive(Clone, Copy)]
enum Source {
    /// The value in the row at this place.
    Row(u32),
    /// The default.
    Default,
    Null,
}

impl ValueFunction {
    /// The result for each row.
    pub(super) fn results(
        self,
        arguments: &Arguments<'_>,
        frames: &Frames,
    ) -> Result<ArrayRef, SqlError> {
        let sources = match self {
            Self::Lag | Self::Lead => self.moved(arguments)?,
            Self::Nth => nth(arguments, frames)?,
            Self::First | Self::Last => {
                let partition = arguments.partition;
                let places = (0..partition.rows()).map(|row| {
                    let parts = frames.parts(row, partition);
                    match self {
                        Self::Last => parts.into_iter().rev().flat_map(Iterator::rev).next(),
                        _ => parts.into_iter().flatten().next(),
                    }
                });
                places.map(source).collect::<Result<_, _>>()?
            }
        };
        gathered(arguments, &sources)
    }

    /// `lag` and `lead`: the value some rows before or after, or a default.
    fn moved(self, arguments: &Arguments<'_>) -> Result<Vec<Source>, SqlError> {
        let count = arguments.partition.rows();
        let distances = match arguments.programs.len() {
            1 => None,
            _ => Some(arguments.int4s(1)?),
        };
        let sources = (0..count).map(|row| {
            let distance = match &distances {
                Some(distances) if distances.is_null(row) => return Ok(Source::Null),
                Some(distances) => i64::from(distances.value(row)),
                None => 1,
            };
            let distance = if self == Self::Lag { -distance } else { distance };
            let place = usize::try_from(int8(row).saturating_add(distance)).ok();
            match place.filter(|&place| place < count) {
                None if arguments.programs.len() > 2 => Ok(Source::Default),
                place => source(place),
            }
        });
        sources.collect()
    }
}

fn source(place: Option<usize>) -> Result<Source, SqlError> {
    place.map_or(Ok(Source::Null), |place| uint32(place).map(Source::Row))
}

/// `nth_value`.
fn nth(arguments: &Arguments<'_>, frames: &Frames) -> Result<Vec<Source>, SqlError> {
    let numbers = arguments.int4s(1)?;
    let sources = numbers.iter().enumerate().map(|(row, number)| match number {
        None => Ok(Source::Null),
        Some(number @ 1..) => {
            let number = usize::try_from(number - 1).unwrap_or_default();
            source(frames.parts(row, arguments.partition).into_iter().flatten().nth(number))
        }
        Some(_) => {
            let message = "argument of nth_value must be greater than zero";
            Err(SqlError::new(SqlState::INVALID_ARGUMENT_FOR_NTH_VALUE, message))
        }
    });
    sources.collect()
}

/// The values from their sources.
fn gathered(arguments: &Arguments<'_>, sources: &[Source]) -> Result<ArrayRef, SqlError> {
    let (mut rows, mut defaults) = (Vec::with_capacity(sources.len()), Vec::new());
    let mut places = Vec::with_capacity(sources.len());
    for (row, source) in sources.iter().enumerate() {
        places.push(match *source {
            Source::Null => (2, 0),
            Source::Row(place) => {
                rows.push(place);
                (0, rows.len() - 1)
            }
            Source::Default => {
                defaults.push(uint32(row)?);
                (1, defaults.len() - 1)
            }
        });
    }
    let values = arguments.values(0, &rows)?;
    let null = new_null_array(values.data_type(), 1);
    let defaults = match defaults.is_empty() {
        true => Arc::clone(&null),
        false => arguments.values(2, &defaults)?,
    };
    interleave(&[&*values, &*defaults, &*null], &places).map_err(failed)
}
