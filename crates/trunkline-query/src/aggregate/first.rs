//! The first value of each group: groups that are found by keys show the first of their values.

use arrow_array::builder::BooleanBuilder;
use arrow_array::cast::AsArray;
use arrow_array::{Array, ArrayRef};
use std::sync::Arc;
use trunkline_sql::SqlError;
use trunkline_sql::functions::{AggregateCall, AggregateDefinition, Aggregation, GroupedRows};
use trunkline_sql::values::{Carrier, ColumnBuilder, PayloadReader};

/// The first value of a group, which may be null.
pub(crate) const FIRST_VALUE: AggregateDefinition = AggregateDefinition {
    transition: "trunkline_first",
    last: "",
    state: |call| vec![call.result_carrier, Carrier::Bool],
    start,
};

fn start(call: &AggregateCall) -> Result<Box<dyn Aggregation>, SqlError> {
    let (carrier, groups) = (call.result_carrier, Vec::new());
    Ok(Box::new(FirstValues { carrier, groups, bytes: 0 }))
}

/// For each group, its first value, if it has any row.
#[derive(Debug)]
struct FirstValues {
    carrier: Carrier,
    groups: Vec<Option<Option<Box<[u8]>>>>,
    bytes: usize,
}

impl FirstValues {
    fn grow(&mut self, count: usize) {
        if self.groups.len() < count {
            self.groups.resize_with(count, || None);
        }
    }

    fn add(&mut self, group: usize, value: impl FnOnce() -> Option<Box<[u8]>>) {
        if let Some(first @ None) = self.groups.get_mut(group) {
            let value = value();
            self.bytes += value.as_ref().map_or(0, |value| value.len());
            *first = Some(value);
        }
    }

    /// Removes the first groups and returns their values, and whether they have rows.
    fn take(&mut self, count: usize) -> Result<(ArrayRef, ArrayRef), SqlError> {
        self.grow(count);
        let mut values = ColumnBuilder::new(self.carrier, count);
        let mut exists = BooleanBuilder::with_capacity(count);
        for value in self.groups.drain(..count) {
            exists.append_value(value.is_some());
            match value.flatten() {
                None => values.append_null(),
                Some(value) => {
                    self.bytes = self.bytes.saturating_sub(value.len());
                    let appended = values.append(&value);
                    appended.map_err(|error| SqlError::internal(error.to_string()))?;
                }
            }
        }
        Ok((values.finish(), Arc::new(exists.finish())))
    }
}

impl Aggregation for FirstValues {
    fn update(&mut self, rows: &GroupedRows<'_>) -> Result<(), SqlError> {
        self.grow(rows.group_count);
        let [argument] = rows.arguments else {
            return Err(SqlError::internal("a first value of several arguments"));
        };
        let mut values = PayloadReader::new(self.carrier, argument.array())?;
        for (row, group) in rows.rows() {
            self.add(group, || values.get(argument.row(row)).map(Box::from));
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
        let wrong = || SqlError::internal("a state has two columns");
        let [values, exists] = states else { return Err(wrong()) };
        let mut values = PayloadReader::new(self.carrier, values)?;
        let exists = exists.as_boolean_opt().ok_or_else(wrong)?;
        for (row, &group) in groups.iter().enumerate() {
            if !exists.is_null(row) && exists.value(row) {
                self.add(group, || values.get(row).map(Box::from));
            }
        }
        Ok(())
    }

    fn finish(&mut self, count: usize) -> Result<ArrayRef, SqlError> {
        Ok(self.take(count)?.0)
    }

    fn partial(&mut self, count: usize) -> Result<Vec<ArrayRef>, SqlError> {
        let (values, exists) = self.take(count)?;
        Ok(vec![values, exists])
    }

    fn size(&self) -> usize {
        self.bytes + self.groups.capacity() * size_of::<Option<Option<Box<[u8]>>>>()
    }
}
