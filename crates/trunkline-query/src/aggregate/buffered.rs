//! `DISTINCT` and `ORDER BY` inside an aggregate.
//!
//! The rows of each group are kept until its result is wanted. Then they are sorted, duplicates are
//! dropped, and the aggregate itself gets what is left.
//!
//! A row is kept in Arrow's row format, whose bytes compare like the values:
//!
//! ```text
//!   keys of ORDER BY │ keys of DISTINCT │ arguments
//!   compared ────────┴────────▶         │ passed on
//! ```

use arrow_array::ArrayRef;
use arrow_array::builder::BinaryViewBuilder;
use arrow_array::cast::AsArray;
use arrow_schema::{DataType, SortOptions};
use datafusion::arrow::row::{RowConverter, SortField};
use datafusion::common::Result;
use std::sync::Arc;
use trunkline_sql::SqlError;
use trunkline_sql::functions::{Aggregation, Argument, GroupedRows};
use trunkline_sql::values::Carrier;

/// What an aggregate with `DISTINCT` or `ORDER BY` gets: first its own arguments, then the keys.
#[derive(Debug, Clone)]
pub(super) struct BufferedOptions {
    /// The types of the aggregate's own arguments.
    pub(super) arguments: Vec<DataType>,
    /// The types of the keys, with their order. Rows with equal keys are duplicates.
    pub(super) keys: Vec<(DataType, SortOptions)>,
    /// `DISTINCT`.
    pub(super) distinct: bool,
}

/// Rows of all groups, and the aggregate that will get them.
pub(super) struct Buffered {
    inner: Box<dyn Aggregation>,
    options: BufferedOptions,
    keys: RowConverter,
    arguments: RowConverter,
    /// For each group, its rows in the order of their arrival: the length of the keys, and the bytes
    /// of keys and arguments.
    groups: Vec<Vec<(usize, Box<[u8]>)>>,
    bytes: usize,
}

impl std::fmt::Debug for Buffered {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "Buffered({:?})", self.inner)
    }
}

fn failed(error: datafusion::arrow::error::ArrowError) -> SqlError {
    SqlError::internal(error.to_string())
}

impl Buffered {
    pub(super) fn new(inner: Box<dyn Aggregation>, options: BufferedOptions) -> Result<Self> {
        let key =
            |(ty, order): &(DataType, SortOptions)| SortField::new_with_options(ty.clone(), *order);
        let keys = RowConverter::new(options.keys.iter().map(key).collect())?;
        let arguments = options.arguments.iter().map(|ty| SortField::new(ty.clone())).collect();
        let arguments = RowConverter::new(arguments)?;
        Ok(Self { inner, options, keys, arguments, groups: Vec::new(), bytes: 0 })
    }

    /// A state is all rows of a group, each with two lengths before it.
    pub(super) fn state_carriers() -> Vec<Carrier> {
        vec![Carrier::Bytes]
    }

    fn grow(&mut self, groups: usize) {
        if self.groups.len() < groups {
            self.groups.resize_with(groups, Vec::new);
        }
    }

    fn push(&mut self, group: usize, key: usize, row: Box<[u8]>) {
        if let Some(rows) = self.groups.get_mut(group) {
            self.bytes += row.len() + size_of::<(usize, Box<[u8]>)>();
            rows.push((key, row));
        }
    }

    /// Removes the first groups.
    fn take(&mut self, count: usize) -> Vec<Vec<(usize, Box<[u8]>)>> {
        self.grow(count);
        let rest = self.groups.split_off(count);
        let taken = std::mem::replace(&mut self.groups, rest);
        let rows = taken.iter().flatten();
        let bytes: usize = rows.map(|(_, row)| row.len() + size_of::<(usize, Box<[u8]>)>()).sum();
        self.bytes = self.bytes.saturating_sub(bytes);
        taken
    }
}

impl Aggregation for Buffered {
    fn update(&mut self, rows: &GroupedRows<'_>) -> Result<(), SqlError> {
        self.grow(rows.group_count);
        let count = rows.groups.len();
        let arrays = rows.arguments.iter().map(|argument| argument_array(argument, count));
        let arrays: Vec<ArrayRef> = arrays.collect::<Result<_, _>>()?;
        let (arguments, keys) = arrays
            .split_at_checked(self.options.arguments.len())
            .ok_or_else(|| SqlError::internal("an aggregate lacks arguments"))?;
        let keys = self.keys.convert_columns(keys).map_err(failed)?;
        let arguments = self.arguments.convert_columns(arguments).map_err(failed)?;
        for (row, group) in rows.rows() {
            let (key, argument) = (keys.row(row), arguments.row(row));
            let key = key.as_ref();
            self.push(group, key.len(), [key, argument.as_ref()].concat().into());
        }
        Ok(())
    }

    fn merge(
        &mut self,
        states: &[ArrayRef],
        groups: &[usize],
        group_count: usize,
    ) -> Result<(), SqlError> {
        self.grow(group_count);
        let state = states.first().and_then(|state| state.as_binary_view_opt());
        let state = state.ok_or_else(|| SqlError::internal("a state has a column of bytes"))?;
        for (row, &group) in groups.iter().enumerate() {
            let mut rest = state.value(row);
            while let Some((lengths, behind)) = rest.split_first_chunk::<8>() {
                let [a, b, c, d, e, f, g, h] = *lengths;
                let key = u32::from_le_bytes([a, b, c, d]) as usize;
                let all = u32::from_le_bytes([e, f, g, h]) as usize;
                let (row, next) = behind
                    .split_at_checked(all)
                    .ok_or_else(|| SqlError::internal("a state of rows ends early"))?;
                self.push(group, key, row.into());
                rest = next;
            }
        }
        Ok(())
    }

    fn finish(&mut self, count: usize) -> Result<ArrayRef, SqlError> {
        let (mut groups, mut ordered) = (Vec::new(), Vec::new());
        for (group, mut rows) in self.take(count).into_iter().enumerate() {
            fn key(row: &(usize, Box<[u8]>)) -> &[u8] {
                row.1.get(..row.0).unwrap_or_default()
            }
            // Stable, so that rows with equal keys stay in the order of the input.
            rows.sort_by(|one, other| key(one).cmp(key(other)));
            if self.options.distinct {
                rows.dedup_by(|one, other| key(one) == key(other));
            }
            groups.extend(std::iter::repeat_n(group, rows.len()));
            ordered.extend(rows);
        }
        let parser = self.arguments.parser();
        let rows =
            ordered.iter().map(|(key, row)| parser.parse(row.get(*key..).unwrap_or_default()));
        let arguments = self.arguments.convert_rows(rows).map_err(failed)?;
        let arguments: Vec<Argument> = arguments.into_iter().map(Argument::column).collect();
        let (groups, filter) = (groups.as_slice(), None);
        let rows = GroupedRows { arguments: &arguments, groups, filter, group_count: count };
        self.inner.update(&rows)?;
        self.inner.finish(count)
    }

    fn partial(&mut self, count: usize) -> Result<Vec<ArrayRef>, SqlError> {
        let mut states = BinaryViewBuilder::with_capacity(count);
        for rows in self.take(count) {
            let mut state = Vec::new();
            for (key, row) in rows {
                state.extend((key as u32).to_le_bytes());
                state.extend((row.len() as u32).to_le_bytes());
                state.extend(row);
            }
            if u32::try_from(state.len()).is_err() {
                let message = "the rows of a group with DISTINCT or ORDER BY exceed 4 GiB";
                return Err(SqlError::new(
                    trunkline_sql::SqlState::PROGRAM_LIMIT_EXCEEDED,
                    message,
                ));
            }
            states.append_value(state);
        }
        Ok(vec![Arc::new(states.finish())])
    }

    fn size(&self) -> usize {
        self.bytes + self.groups.capacity() * size_of::<Vec<u8>>() + self.inner.size()
    }
}

fn argument_array(argument: &Argument, rows: usize) -> Result<ArrayRef, SqlError> {
    if !argument.is_constant() {
        return Ok(Arc::clone(argument.array()));
    }
    let zeros = arrow_array::UInt32Array::from(vec![0; rows]);
    datafusion::arrow::compute::take(argument.array(), &zeros, None).map_err(failed)
}
