//! `sum` and `avg` of intervals.
//!
//! ```text
//!   avg('1 mon'::interval, '2 days')                   16 days
//!   sum('infinity'::interval, '-infinity')             22008, interval out of range
//! ```
//!
//! Sums count infinities apart, as the server does since 17, because adding one would lose its sign.
//!
//! Mirrors `do_interval_accum`, `interval_avg` and `interval_sum` of PostgreSQL's
//! `utils/adt/timestamp.c`.

use arrow_array::ArrayRef;
use arrow_array::builder::ArrayBuilder;

use super::super::aggregate::{AggregateCall, AggregateDefinition, Aggregation, GroupedRows};
use super::super::call::Argument;
use super::super::rows::{Input, Output};
use super::error::interval_out_of_range;
use super::interval::{Infinity, Interval};
use crate::error::SqlError;
use crate::values::Carrier;

/// The values of an argument that count, with their groups.
fn each_value<T: for<'a> Input<'a>>(
    rows: &GroupedRows<'_>,
    mut add: impl FnMut(usize, T) -> Result<(), SqlError>,
) -> Result<(), SqlError> {
    let argument = rows.arguments.first().ok_or_else(|| SqlError::internal("no argument"))?;
    for (row, group) in rows.rows() {
        if let Some(value) = value(argument, row)? {
            add(group, value)?;
        }
    }
    Ok(())
}

fn value<T: for<'a> Input<'a>>(argument: &Argument, row: usize) -> Result<Option<T>, SqlError> {
    let array = argument.array().as_any().downcast_ref::<<T as Input<'_>>::Array>();
    let array = array.ok_or_else(|| SqlError::internal("an array of another type"))?;
    Ok((!argument.is_null(row)).then(|| T::at(array, argument.row(row))))
}

/// The sum of a group's intervals.
#[derive(Debug, Clone, Copy, Default)]
struct Sum {
    /// The number of finite intervals.
    count: i64,
    finite: Interval,
    plus_infinities: i64,
    minus_infinities: i64,
}

impl Sum {
    fn add(&mut self, value: Interval, major: u32) -> Result<(), SqlError> {
        match value.infinity(major) {
            Some(Infinity::Plus) => self.plus_infinities += 1,
            Some(Infinity::Minus) => self.minus_infinities += 1,
            None => {
                self.finite = self.finite.plus(value, major)?;
                self.count += 1;
            }
        }
        Ok(())
    }

    fn merge(&mut self, other: Self, major: u32) -> Result<(), SqlError> {
        self.finite = self.finite.plus(other.finite, major)?;
        self.count += other.count;
        self.plus_infinities += other.plus_infinities;
        self.minus_infinities += other.minus_infinities;
        Ok(())
    }

    /// The sum or the average; null if there is no value.
    fn result(self, is_average: bool, major: u32) -> Result<Option<Interval>, SqlError> {
        match (self.plus_infinities > 0, self.minus_infinities > 0) {
            (true, true) => Err(interval_out_of_range()),
            (true, false) => Ok(Some(Infinity::Plus.interval())),
            (false, true) => Ok(Some(Infinity::Minus.interval())),
            (false, false) if self.count == 0 => Ok(None),
            (false, false) if is_average => {
                self.finite.divided_by(self.count as f64, major).map(Some)
            }
            (false, false) => Ok(Some(self.finite)),
        }
    }
}

/// `sum` or `avg` of intervals.
#[derive(Debug)]
struct Sums {
    groups: Vec<Sum>,
    is_average: bool,
    major: u32,
}

impl Sums {
    fn drain(&mut self, count: usize) -> impl Iterator<Item = Sum> + '_ {
        self.groups.drain(..count.min(self.groups.len()))
    }
}

impl Aggregation for Sums {
    fn update(&mut self, rows: &GroupedRows<'_>) -> Result<(), SqlError> {
        self.groups.resize(rows.group_count, Sum::default());
        let (groups, major) = (&mut self.groups, self.major);
        each_value(rows, |group, value: Interval| match groups.get_mut(group) {
            Some(sum) => sum.add(value, major),
            None => Ok(()),
        })
    }

    fn merge(
        &mut self,
        states: &[ArrayRef],
        groups: &[usize],
        group_count: usize,
    ) -> Result<(), SqlError> {
        self.groups.resize(group_count, Sum::default());
        let columns: Vec<_> = states.iter().cloned().map(Argument::column).collect();
        let [finite, count, plus, minus] = columns.as_slice() else {
            return Err(SqlError::internal("a sum of intervals has four columns"));
        };
        for (row, group) in groups.iter().enumerate() {
            let sum = Sum {
                count: value(count, row)?.unwrap_or_default(),
                finite: value(finite, row)?.unwrap_or_default(),
                plus_infinities: value(plus, row)?.unwrap_or_default(),
                minus_infinities: value(minus, row)?.unwrap_or_default(),
            };
            if let Some(group) = self.groups.get_mut(*group) {
                group.merge(sum, self.major)?;
            }
        }
        Ok(())
    }

    fn finish(&mut self, count: usize) -> Result<ArrayRef, SqlError> {
        let (is_average, major) = (self.is_average, self.major);
        let mut builder = Interval::builder(count);
        for sum in self.drain(count) {
            sum.result(is_average, major)?.append(&mut builder);
        }
        Ok(ArrayBuilder::finish(&mut builder))
    }

    fn partial(&mut self, count: usize) -> Result<Vec<ArrayRef>, SqlError> {
        let mut finite = Interval::builder(count);
        let mut counts = [i64::builder(count), i64::builder(count), i64::builder(count)];
        for sum in self.drain(count) {
            sum.finite.append(&mut finite);
            let numbers = [sum.count, sum.plus_infinities, sum.minus_infinities];
            for (builder, number) in counts.iter_mut().zip(numbers) {
                number.append(builder);
            }
        }
        let [mut count, mut plus, mut minus] = counts;
        let columns = [&mut finite as &mut dyn ArrayBuilder, &mut count, &mut plus, &mut minus];
        Ok(columns.map(|column| column.finish()).into())
    }

    fn size(&self) -> usize {
        self.groups.capacity() * size_of::<Sum>()
    }
}

fn sums(call: &AggregateCall, is_average: bool) -> Result<Box<dyn Aggregation>, SqlError> {
    let major = call.settings.major;
    Ok(Box::new(Sums { groups: Vec::new(), is_average, major }))
}

const fn sum(
    transition: &'static str,
    last: &'static str,
    start: fn(&AggregateCall) -> Result<Box<dyn Aggregation>, SqlError>,
) -> AggregateDefinition {
    let state = |_: &AggregateCall| {
        vec![Carrier::Fixed(16), Carrier::Int64, Carrier::Int64, Carrier::Int64]
    };
    AggregateDefinition { transition, last, state, start }
}

/// The aggregates, which have had other functions before 17.
pub(in super::super) const AGGREGATES: &[AggregateDefinition] = &[
    sum("interval_avg_accum", "interval_sum", |call| sums(call, false)),
    sum("interval_avg_accum", "interval_avg", |call| sums(call, true)),
    sum("interval_pl", "", |call| sums(call, false)),
    sum("interval_accum", "interval_avg", |call| sums(call, true)),
];
