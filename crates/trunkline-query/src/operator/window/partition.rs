//! The rows of one partition, in order, and which of them are peers.

use std::ops::Range;

use arrow_array::{ArrayRef, RecordBatch, UInt32Array, new_empty_array};
use datafusion::arrow::row::Rows;
use trunkline_sql::SqlError;
use trunkline_sql::functions::CallSettings;

use crate::expression::Program;

/// All rows of a partition.
pub(super) struct Partition {
    batch: RecordBatch,
    /// For each row, the number of its group of peers.
    group_of: Vec<usize>,
    /// Where each group starts, and the end of the last one.
    starts: Vec<usize>,
}

impl Partition {
    /// A partition. Rows whose keys are equal are peers; without keys, all are.
    pub(super) fn new(batch: RecordBatch, keys: Option<&Rows>) -> Self {
        let (mut group_of, mut starts) = (Vec::with_capacity(batch.num_rows()), Vec::new());
        for row in 0..batch.num_rows() {
            let is_peer = row > 0 && keys.is_none_or(|keys| keys.row(row) == keys.row(row - 1));
            if !is_peer {
                starts.push(row);
            }
            group_of.push(starts.len() - 1);
        }
        starts.push(batch.num_rows());
        Self { batch, group_of, starts }
    }

    pub(super) fn batch(&self) -> &RecordBatch {
        &self.batch
    }

    pub(super) fn rows(&self) -> usize {
        self.group_of.len()
    }

    /// The number of groups of peers.
    pub(super) fn groups(&self) -> usize {
        self.starts.len() - 1
    }

    /// The number of a row's group.
    pub(super) fn group(&self, row: usize) -> usize {
        self.group_of.get(row).copied().unwrap_or_default()
    }

    /// The first row of a group; the number of rows for the group after the last one.
    pub(super) fn group_start(&self, group: usize) -> usize {
        self.starts.get(group).copied().unwrap_or(self.group_of.len())
    }

    /// A row and its peers.
    pub(super) fn peers(&self, row: usize) -> Range<usize> {
        let group = self.group(row);
        self.group_start(group)..self.group_start(group + 1)
    }

    /// The value of an expression in all rows.
    pub(super) fn evaluate(
        &self,
        program: &Program,
        settings: &CallSettings,
    ) -> Result<ArrayRef, SqlError> {
        program.evaluate(&program.frame(&self.batch, settings)?)
    }

    /// The value of an expression in the rows at these places, which may repeat.
    pub(super) fn evaluate_at(
        &self,
        program: &Program,
        places: &[u32],
        settings: &CallSettings,
    ) -> Result<ArrayRef, SqlError> {
        if places.is_empty() {
            return Ok(new_empty_array(&program.carrier().data_type()));
        }
        let frame = program.frame(&self.batch, settings)?;
        program.evaluate(&frame.select(&UInt32Array::from(places.to_vec()))?)
    }
}
