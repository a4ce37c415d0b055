//! The rows of a subplan's input, with the results that belong to them.
//!
//! Results are kept by the bytes of the outer values, because many rows have the same ones. If they
//! take too much memory, all are dropped.

use std::sync::Arc;

use arrow_array::cast::AsArray;
use arrow_array::{Array, ArrayRef, RecordBatch, RecordBatchOptions, UInt64Array, new_null_array};
use arrow_schema::SchemaRef;
use datafusion::arrow::compute::{concat_batches, take_record_batch};
use datafusion::arrow::row::{RowConverter, Rows, SortField};
use datafusion::common::{Result, ScalarValue, internal_datafusion_err};
use datafusion::execution::{SendableRecordBatchStream, TaskContext};
use futures::{Stream, StreamExt, stream};
use tokio::sync::OnceCell;
use trunkline_aio::facade::hash::Map;

use super::inner_plan::InnerPlan;
use super::value::SubplanKind;
use crate::error::to_datafusion;

/// The number of joined rows that are returned together.
const ROWS_TARGET: usize = 8192;

/// The input of a subplan while it is executed.
pub(super) struct OuterRows {
    input: SendableRecordBatchStream,
    inner: Arc<InnerPlan>,
    once: Arc<OnceCell<ScalarValue>>,
    schema: SchemaRef,
    context: Arc<TaskContext>,
    converter: Option<RowConverter>,
    known: Map<Box<[u8]>, ScalarValue>,
    known_bytes: usize,
    /// The outer row whose rows are being joined: its batch, the keys of that, and its place.
    current: Option<(RecordBatch, Vec<ArrayRef>, usize)>,
    /// Its rows, and whether there were any so far.
    joined: Option<(SendableRecordBatchStream, bool)>,
}

impl OuterRows {
    pub(super) fn new(
        input: SendableRecordBatchStream,
        inner: Arc<InnerPlan>,
        once: Arc<OnceCell<ScalarValue>>,
        schema: SchemaRef,
        context: Arc<TaskContext>,
    ) -> Self {
        let (known, known_bytes) = (Map::default(), 0);
        let (converter, current, joined) = (None, None, None);
        Self { input, inner, once, schema, context, converter, known, known_bytes, current, joined }
    }

    /// The batches of the result.
    pub(super) fn into_stream(self) -> impl Stream<Item = Result<RecordBatch>> + Send {
        stream::try_unfold(self, async |mut rows| {
            let batch = match rows.inner.kind {
                SubplanKind::Rows { outer } => rows.next_joined(outer).await?,
                _ => rows.next_values().await?,
            };
            Ok(batch.map(|batch| (batch, rows)))
        })
    }

    /// The next batch of the input with a column of values.
    async fn next_values(&mut self) -> Result<Option<RecordBatch>> {
        let Some(batch) = self.input.next().await.transpose()? else { return Ok(None) };
        let keys = self.keys(&batch)?;
        let guard = match &self.inner.guard {
            None => None,
            Some(guard) => Some(guard.evaluate(&batch)?.into_array(batch.num_rows())?),
        };
        let guard = guard.as_ref().map(|guard| guard.as_boolean());
        let is_wanted = |row| guard.is_none_or(|guard| guard.is_valid(row) && guard.value(row));
        let converted = self.converted(&keys)?;
        let last = self.schema.fields().last().map(|field| field.data_type().clone());
        let last = last.ok_or_else(|| internal_datafusion_err!("a subplan adds a column"))?;
        let null = ScalarValue::try_from(&last)?;
        let mut values = Vec::with_capacity(batch.num_rows());
        for row in 0..batch.num_rows() {
            values.push(match is_wanted(row) {
                true => self.value(&keys, converted.as_ref(), row).await?,
                false => null.clone(),
            });
        }
        let values = match values.is_empty() {
            true => new_null_array(&last, 0),
            false => ScalarValue::iter_to_array(values)?,
        };
        let columns = batch.columns().iter().cloned().chain([values]).collect();
        Ok(Some(RecordBatch::try_new(Arc::clone(&self.schema), columns)?))
    }

    /// The value for a row.
    async fn value(
        &mut self,
        keys: &[ArrayRef],
        converted: Option<&Rows>,
        row: usize,
    ) -> Result<ScalarValue> {
        if keys.is_empty() {
            let (inner, context) = (&self.inner, &self.context);
            let value = self.once.get_or_try_init(|| inner.value(Vec::new(), context));
            return value.await.cloned();
        }
        let bytes: Option<Box<[u8]>> = converted.map(|rows| rows.row(row).as_ref().into());
        if let Some(known) = bytes.as_ref().and_then(|bytes| self.known.get(bytes)) {
            return Ok(known.clone());
        }
        let value = self.inner.value(outer_values(keys, row)?, &self.context).await?;
        if let Some(bytes) = bytes {
            self.known_bytes += bytes.len() + value.size();
            if self.known_bytes > self.inner.cache_size {
                self.known.clear();
                self.known_bytes = bytes.len() + value.size();
            }
            self.known.insert(bytes, value.clone());
        }
        Ok(value)
    }

    fn keys(&self, batch: &RecordBatch) -> Result<Vec<ArrayRef>> {
        let keys = self.inner.keys.iter();
        keys.map(|key| key.evaluate(batch)?.into_array(batch.num_rows())).collect()
    }

    /// The outer values as bytes; `None` if results are not kept.
    fn converted(&mut self, keys: &[ArrayRef]) -> Result<Option<Rows>> {
        if keys.is_empty() || self.inner.is_volatile {
            return Ok(None);
        }
        let converter = match &mut self.converter {
            Some(converter) => converter,
            none => {
                let fields = keys.iter().map(|key| SortField::new(key.data_type().clone()));
                none.insert(RowConverter::new(fields.collect())?)
            }
        };
        Ok(Some(converter.convert_columns(keys)?))
    }

    /// The next rows of the join of the input with the subplan's rows.
    async fn next_joined(&mut self, outer: bool) -> Result<Option<RecordBatch>> {
        let (mut parts, mut count) = (Vec::new(), 0);
        while count < ROWS_TARGET {
            self.inner.cancellation.check().map_err(to_datafusion)?;
            let Some(part) = self.next_part(outer).await? else { break };
            count += part.num_rows();
            parts.push(part);
        }
        match parts.is_empty() {
            true => Ok(None),
            false => Ok(Some(concat_batches(&self.schema, &parts)?)),
        }
    }

    /// Some rows of one outer row, which may be none; `None` at the end.
    async fn next_part(&mut self, outer: bool) -> Result<Option<RecordBatch>> {
        let Some((batch, keys, row)) = &mut self.current else {
            let Some(batch) = self.input.next().await.transpose()? else { return Ok(None) };
            let keys = self.keys(&batch)?;
            self.current = Some((batch, keys, 0));
            return Ok(Some(RecordBatch::new_empty(Arc::clone(&self.schema))));
        };
        if *row >= batch.num_rows() {
            self.current = None;
            return Ok(Some(RecordBatch::new_empty(Arc::clone(&self.schema))));
        }
        let (rows, found) = match &mut self.joined {
            Some(joined) => joined,
            none => {
                let rows = self.inner.start(outer_values(keys, *row)?, &self.context)?;
                none.insert((rows, false))
            }
        };
        let right = rows.next().await.transpose()?;
        let (count, right) = match right {
            Some(right) => {
                *found |= right.num_rows() > 0;
                (right.num_rows(), right.columns().to_vec())
            }
            None => {
                let is_unmatched = outer && !*found;
                let nulls = usize::from(is_unmatched);
                let fields = self.schema.fields().iter().skip(batch.num_columns());
                let right = fields.map(|field| new_null_array(field.data_type(), nulls));
                let right = (nulls, right.collect());
                self.joined = None;
                right
            }
        };
        let places = UInt64Array::from(vec![*row as u64; count]);
        let left = take_record_batch(batch, &places)?;
        if self.joined.is_none() {
            *row += 1;
        }
        let columns = left.columns().iter().cloned().chain(right).collect();
        let options = RecordBatchOptions::new().with_row_count(Some(count));
        let schema = Arc::clone(&self.schema);
        Ok(Some(RecordBatch::try_new_with_options(schema, columns, &options)?))
    }
}

/// The outer values of a row.
fn outer_values(keys: &[ArrayRef], row: usize) -> Result<Vec<ScalarValue>> {
    keys.iter().map(|key| ScalarValue::try_from_array(key, row)).collect()
}
