//! Collects partitions and evaluates the functions over each.
//!
//! Rows arrive in order, so a partition ends when another key follows. All of its rows are held.

use std::collections::VecDeque;
use std::sync::Arc;

use arrow_array::{Array, ArrayRef, RecordBatch};
use arrow_schema::{Field, Schema, SortOptions};
use datafusion::arrow::compute::concat_batches;
use datafusion::arrow::row::{OwnedRow, RowConverter, Rows, SortField};
use datafusion::common::{Result, exec_err};
use trunkline_sql::SqlError;

use super::definition::{Window, WindowCall, WindowFunction};
use super::frame::Frames;
use super::function::Arguments;
use super::partition::Partition;
use super::work::Work;
use crate::error::to_datafusion;
use crate::expression::{Program, column_name};
use crate::operator::definition::{Operator, Process, Streams};

impl Operator for Arc<Window> {
    fn name(&self) -> &'static str {
        "WindowAgg"
    }

    fn needs(&self) -> Vec<String> {
        let used = self.programs().flat_map(Program::columns).map(|&id| column_name(id));
        let keys = self.order_by.iter().map(|(name, _)| name);
        used.chain(self.partition_by.iter().chain(keys).cloned()).collect()
    }

    fn added(&self) -> Vec<Field> {
        let field = |call: &WindowCall| Field::new(&call.column, call.ty.clone(), true);
        self.calls.iter().map(field).collect()
    }

    fn order(&self) -> Option<Vec<(String, SortOptions)>> {
        let ascending = SortOptions { descending: false, nulls_first: false };
        let partitions = self.partition_by.iter().map(|name| (name.clone(), ascending));
        Some(partitions.chain(self.order_by.iter().cloned()).collect())
    }

    /// Without a row, its neighbours would see other rows.
    fn passes_filters(&self) -> bool {
        false
    }

    fn start(&self, streams: Streams) -> Result<Box<dyn Process>> {
        Ok(Box::new(Partitions::new(Self::clone(self), streams)?))
    }
}

/// The process of a [`Window`].
pub(super) struct Partitions {
    window: Arc<Window>,
    streams: Streams,
    /// Makes comparable rows of the columns of `PARTITION BY`, and of those of `ORDER BY`.
    converters: (Option<RowConverter>, Option<RowConverter>),
    /// The current partition's key.
    key: Option<OwnedRow>,
    /// Its rows so far.
    rows: Vec<RecordBatch>,
    /// What is reserved for them.
    bytes: usize,
    /// Partitions that are complete, and what is reserved for each.
    complete: VecDeque<(Vec<RecordBatch>, usize)>,
    /// The results of a partition, how many of its rows have been returned, and its memory.
    results: Option<(RecordBatch, usize, Work)>,
}

impl Partitions {
    pub(super) fn new(window: Arc<Window>, streams: Streams) -> Result<Self> {
        window.frame.check(&window.settings).map_err(to_datafusion)?;
        let order: Vec<&String> = window.order_by.iter().map(|(name, _)| name).collect();
        let partition_by: Vec<&String> = window.partition_by.iter().collect();
        let converters =
            (converter(&partition_by, &streams.input)?, converter(&order, &streams.input)?);
        Ok(Self {
            window,
            streams,
            converters,
            key: None,
            rows: Vec::new(),
            bytes: 0,
            complete: VecDeque::new(),
            results: None,
        })
    }

    /// The current partition is complete.
    fn end_partition(&mut self) {
        if !self.rows.is_empty() {
            let rows = std::mem::take(&mut self.rows);
            self.complete.push_back((rows, std::mem::take(&mut self.bytes)));
        }
    }

    fn add(&mut self, batch: RecordBatch, bytes: usize) -> Result<()> {
        self.streams.memory.try_grow(bytes)?;
        self.bytes += bytes;
        self.rows.push(batch);
        Ok(())
    }

    /// The rows of a partition with the results of all functions. `bytes` are reserved for the rows.
    fn evaluated(&self, rows: Vec<RecordBatch>, bytes: usize, work: &Work) -> Result<RecordBatch> {
        // Both the parts and the whole are in memory for a moment.
        work.keep(bytes).map_err(to_datafusion)?;
        let batch = concat_batches(&self.streams.input, &rows)?;
        drop(rows);
        self.streams.memory.shrink(bytes);
        let names: Vec<&String> = self.window.order_by.iter().map(|(name, _)| name).collect();
        let keys = match &self.converters.1 {
            Some(converter) => Some(converted(converter, &names, &batch)?),
            None => None,
        };
        let partition = Partition::new(batch, keys.as_ref());
        let frames = self.window.frame.frames(&partition, &self.window.settings, work);
        let frames = frames.map_err(to_datafusion)?;
        let mut columns = partition.batch().columns().to_vec();
        for call in &self.window.calls {
            let column = self.column(call, &partition, &frames, work).map_err(to_datafusion)?;
            if *column.data_type() != call.ty {
                let (name, found, expected) = (&call.text, column.data_type(), &call.ty);
                return exec_err!("{name} returned {found}, expected {expected}");
            }
            work.keep(column.get_array_memory_size()).map_err(to_datafusion)?;
            columns.push(column);
        }
        Ok(RecordBatch::try_new(Arc::clone(&self.streams.output), columns)?)
    }

    fn column(
        &self,
        call: &WindowCall,
        partition: &Partition,
        frames: &Frames,
        work: &Work,
    ) -> Result<ArrayRef, SqlError> {
        work.check()?;
        let (programs, settings) = (&call.arguments, &self.window.settings);
        let arguments = Arguments { programs, partition, settings };
        match &call.function {
            WindowFunction::Rank(function) => function.results(&arguments),
            WindowFunction::Value(function) => function.results(&arguments, frames),
            WindowFunction::Aggregate(aggregate) => aggregate.results(&arguments, frames, work),
        }
    }
}

impl Process for Partitions {
    fn push(&mut self, batch: RecordBatch) -> Result<()> {
        let rows = batch.num_rows();
        let bytes_of_row = batch.get_array_memory_size() / rows.max(1) + 1;
        let Some(converter) = &self.converters.0 else {
            return self.add(batch, rows * bytes_of_row);
        };
        let names: Vec<&String> = self.window.partition_by.iter().collect();
        let keys = converted(converter, &names, &batch)?;
        let mut start = 0;
        while start < rows {
            let key = keys.row(start);
            if self.key.as_ref().is_none_or(|current| current.row() != key) {
                self.end_partition();
                self.key = Some(key.owned());
            }
            let same = (start..rows).take_while(|&row| keys.row(row) == key).count();
            self.add(batch.slice(start, same), same * bytes_of_row)?;
            start += same;
        }
        Ok(())
    }

    fn finish(&mut self) -> Result<()> {
        self.end_partition();
        Ok(())
    }

    fn next(&mut self) -> Result<Option<RecordBatch>> {
        if self.results.is_none()
            && let Some((rows, bytes)) = self.complete.pop_front()
        {
            let work = Work::new(&self.streams);
            self.results = Some((self.evaluated(rows, bytes, &work)?, 0, work));
        }
        let Some((batch, from, work)) = self.results.take() else { return Ok(None) };
        let count = self.streams.rows_max.min(batch.num_rows() - from);
        let next = batch.slice(from, count);
        if from + count < batch.num_rows() {
            self.results = Some((batch, from + count, work));
        }
        Ok(Some(next))
    }
}

/// A converter for these columns; `None` if there are none.
fn converter(names: &[&String], schema: &Schema) -> Result<Option<RowConverter>> {
    if names.is_empty() {
        return Ok(None);
    }
    let field = |name: &&String| {
        let field = schema.field_with_name(name)?;
        Ok(SortField::new(field.data_type().clone()))
    };
    let fields = names.iter().map(field).collect::<Result<Vec<_>>>()?;
    Ok(Some(RowConverter::new(fields)?))
}

fn converted(converter: &RowConverter, names: &[&String], batch: &RecordBatch) -> Result<Rows> {
    let mut columns = Vec::with_capacity(names.len());
    for name in names {
        match batch.column_by_name(name) {
            Some(column) => columns.push(Arc::clone(column)),
            None => return exec_err!("a window's input has no column {name}"),
        }
    }
    Ok(converter.convert_columns(&columns)?)
}
